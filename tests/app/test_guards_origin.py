"""Where requests come from: other sites and ports, sockets and methods; every test names its guard."""

import pytest

from app_server import assert_refused

EVIL = "https://evil.example"
GUARDS = (400, 403, 421)  # what guards answer; a page that merely cannot do what is asked answers 409 or 422
UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec_websocket_version": "13",
    "sec_websocket_key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "sec_fetch_mode": "websocket",
    "sec_fetch_dest": "websocket",
}
# Guard: Origin, wherever it is sent.

ORIGINS = [
    EVIL,
    "null",
    "file://",
    "http://127.0.0.1",
    "http://127.0.0.1:{other}",
    "https://127.0.0.1:{port}",
    "http://localhost:{port}",
    "http://127.0.0.1:{port}.evil.example",
    "http://127.0.0.1:{port}@evil.example",
    "http://127.0.0.1:{port}/",
    "http://127.0.0.1:{port} https://evil.example",
    "127.0.0.1:{port}",
    "ws://127.0.0.1:{port}",
    "chrome-extension://abcdefgh",
    "\xff",
    "",
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_foreign_origin_is_refused_whatever_else_is_right(server, origin):
    origin = origin.format(port=server.port, other=server.port - 1)
    for site in ("same-origin", None):
        fetch = {"origin": origin, "sec_fetch_site": site}
        assert_refused(server, server.ask("POST", "undo", **fetch), GUARDS)
        assert_refused(server, server.ask("GET", "events", **fetch), GUARDS)
        assert_refused(server, server.ask("GET", "open", **fetch), GUARDS)
    assert_refused(server, server.navigate("", origin=origin), GUARDS)


def test_two_origins_are_refused(server):
    own = f"http://{server.own}"
    for both in ([own, EVIL], [EVIL, own]):
        assert_refused(server, server.ask("POST", "undo", origin=both), GUARDS)


def test_no_proxy_header_changes_what_our_origin_is(server):
    got = server.ask("POST", "undo", origin=f"https://{server.own}", x_forwarded_proto="https")
    assert_refused(server, got, GUARDS)
    got = server.ask("POST", "undo", origin=EVIL, x_forwarded_host="evil.example", x_forwarded_proto="https")
    assert_refused(server, got, GUARDS)


# Guard: Sec-Fetch-Site on all that changes anything and on the event stream.


@pytest.mark.parametrize("target", ["undo", "redo", "open", "search/start", "search/stop", "release/write"])
@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "", "SAME-SITE", "evil"])
def test_a_post_that_does_not_come_from_the_page_is_refused(server, target, site):
    own = f"http://{server.own}"
    for origin in (None, own):
        fetch = {"sec_fetch_site": site, "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
        assert_refused(server, server.ask("POST", target, b"path=data.csv", origin=origin, **fetch), GUARDS)


def test_a_form_on_another_site_or_port_as_browsers_send_it_is_refused(server):
    for site, origin in (("cross-site", EVIL), ("same-site", f"http://127.0.0.1:{server.port - 1}")):
        fetch = {"sec_fetch_site": site, "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
        for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"):
            got = server.ask("POST", "undo", b"a=b", origin=origin, content_type=kind, **fetch)
            assert_refused(server, got, GUARDS)


@pytest.mark.parametrize(
    ("method", "target"), [("POST", "undo"), ("POST", "release/write"), ("GET", "events")]
)
def test_a_request_that_does_not_say_where_it_comes_from_is_refused(server, method, target):
    silent = {"origin": None, "sec_fetch_site": None, "sec_fetch_mode": None, "sec_fetch_dest": None}
    assert_refused(server, server.ask(method, target, **silent), GUARDS)


def test_two_values_of_sec_fetch_site_are_refused(server):
    for both in (["same-origin", "cross-site"], ["cross-site", "same-origin"]):
        assert_refused(server, server.ask("POST", "undo", origin=None, sec_fetch_site=both), GUARDS)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("mode", "dest"),
    [
        ("no-cors", "script"),
        ("no-cors", "image"),
        ("cors", "empty"),
        ("navigate", "iframe"),
        ("navigate", "object"),
    ],
)
def test_another_site_can_load_nothing(server, site, mode, dest):
    fetch = {"origin": None, "sec_fetch_site": site, "sec_fetch_mode": mode, "sec_fetch_dest": dest}
    for target in ("", "static/app.js", "events", "map/points"):
        assert_refused(server, server.ask("GET", target, **fetch), GUARDS)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_on_another_site_does_not_open_the_page(server, site):
    assert_refused(server, server.navigate("", sec_fetch_site=site), GUARDS)


# Guard: no WebSocket.


@pytest.mark.parametrize("origin", [EVIL, "null", None, "own", "port"])
@pytest.mark.parametrize("cookie", [True, False])
def test_websockets_are_refused(server, origin, cookie):
    known = {"own": f"http://{server.own}", "port": f"http://127.0.0.1:{server.port - 1}"}
    more = {} if cookie else {"cookie": None}
    for target in ("events", "", "ws"):
        for site in ("same-origin", "cross-site"):
            got = server.ask(
                "GET", target, origin=known.get(origin, origin), sec_fetch_site=site, **more, **UPGRADE
            )
            assert_refused(server, got)


# Guard: methods.


@pytest.mark.parametrize(
    "method", ["TRACE", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "PROPFIND", "get"]
)
def test_other_methods_are_refused(server, method):
    for target in ("open", "undo", "events", "static/app.css"):
        got = server.ask(method, target, x_said="echo-me", access_control_request_method="POST")
        assert_refused(server, got)
        assert "echo-me" not in got.text


def test_a_tunnel_and_the_asterisk_are_refused(server):
    for line in (f"CONNECT {server.own}", "CONNECT evil.example:443", "OPTIONS *"):
        sent = f"{line} HTTP/1.1\r\nHost: {server.own}\r\nConnection: close\r\n\r\n"
        assert_refused(server, server.raw(sent.encode()))


@pytest.mark.parametrize("target", ["undo", "redo", "search/start", "search/stop", "release/write"])
def test_what_changes_anything_is_not_done_by_get_or_head(server, target):
    assert_refused(server, server.navigate(target))
    assert server.ask("HEAD", target).status in range(400, 500)
