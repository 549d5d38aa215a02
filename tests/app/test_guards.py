"""Who may talk to the page: its token, cookie and names; every test names the guard that it needs."""

import re
import socket
from pathlib import Path

import pytest

from app_server import CANARY, PREVIEWED, assert_guarded, assert_refused, running

GUARDS = (400, 403, 421)  # what guards answer; a page that merely cannot do what is asked answers 409 or 422


# Guard: each guard lets the page itself through.


@pytest.mark.parametrize(
    "name", ["page", "link of the page", "script", "post", "post of an older browser", "events", "style"]
)
def test_the_page_itself_is_let_in(server, name):
    got = server.allowed[name]
    assert got.status < 400 or (name.startswith("post") and got.status in {409, 422}), got.body[:300]
    assert_guarded(got)


def test_the_event_stream_is_one(server):
    assert server.allowed["events"].one("content-type").startswith("text/event-stream")


# Guard: the token is looked at last and used up by the one request that passes everything else.


def test_a_token_in_a_bad_request_is_refused(server):
    statuses = {name: got.status for name, got in server.early.items()}
    assert {name: status for name, status in statuses.items() if status not in range(400, 500)} == {}
    for name, got in server.early.items():
        if name != "HEAD":  # has no body
            assert_refused(server, got)


def test_bad_requests_do_not_use_up_the_token_and_write_nothing(server):
    assert server.exchanged[0].status == 200
    assert server.after_early == server.unopened


def test_of_the_same_token_sent_at_once_one_is_taken(server):
    assert [got.status for got in server.exchanged].count(200) == 1
    for got in server.exchanged[1:]:
        assert_refused(server, got, GUARDS)


# Guard: a token counts once.


@pytest.mark.parametrize("site", ["none", "cross-site", "same-origin"])
def test_a_used_token_is_refused(server, site):
    for cookie in (None, f"sdckit={server.cookie}"):
        got = server.navigate(f"/open?token={server.token}", sec_fetch_site=site, cookie=cookie)
        assert_refused(server, got, GUARDS)


# Guard: secrets cannot be guessed, and do not give each other away.


def test_token_cookie_and_prefix_are_long_and_unlike(server):
    secrets = [server.token, server.cookie, server.prefix]
    assert len(set(secrets)) == 3
    assert min(len(server.token), len(server.cookie)) >= 22  # 128 bits in base 64
    assert len(server.prefix) >= 8
    assert not any(a in b for a in secrets for b in secrets if a is not b)


def test_the_first_page_gives_no_token_away(server):
    page = server.exchanged[0]
    assert server.token not in page.text
    assert server.cookie not in page.text
    assert_guarded(page)
    assert PREVIEWED not in page.text


# Guard: attributes of the cookie.


def test_the_cookie_is_strict_unreadable_by_scripts_and_ends_with_the_browser(server):
    value, *parts = server.exchanged[0].one("set-cookie").split(";")
    assert value == f"sdckit={server.cookie}"
    attributes = {part.strip().lower() for part in parts}
    assert {"httponly", "samesite=strict"} < attributes
    assert {part.split("=")[0] for part in attributes} == {"httponly", "samesite", "path"}
    assert f"Path=/{server.prefix}/" in server.exchanged[0].one("set-cookie")


# Guard: the cookie.


@pytest.mark.parametrize("target", ["", "open", "events", "static/app.css", "report", "nowhere", "undo"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_cookie_there_is_nothing(server, method, target):
    assert_refused(server, server.ask(method, target, cookie=None), GUARDS)


@pytest.mark.parametrize("wrong", ["", "{}x", "x{}", "\xe9{}", '"{}', "{};a", "sdckit={}", "null", "*", "%s"])
def test_a_wrong_cookie_is_refused(server, wrong):
    value = wrong.replace("{}", server.cookie[:-1] if wrong == "{};a" else server.cookie)
    for target in ("open", "events"):
        assert_refused(server, server.ask("GET", target, cookie=f"sdckit={value}"), GUARDS)


@pytest.mark.parametrize("name", ["SDCKIT", "sdckit2", "__Host-sdckit", "session"])
def test_the_cookie_under_another_name_is_refused(server, name):
    assert_refused(server, server.ask("GET", "open", cookie=f"{name}={server.cookie}"), GUARDS)


def test_the_token_the_prefix_and_a_changed_case_are_no_cookie(server):
    for value in (server.token, server.prefix, server.cookie.swapcase(), server.cookie[:-1]):
        assert_refused(server, server.ask("GET", "open", cookie=f"sdckit={value}"), GUARDS)


def test_a_cookie_tossed_by_another_port_does_not_lock_the_user_out(server):
    # Another server on 127.0.0.1 can set sdckit=evil for Path=/; browsers send the longer path first.
    assert server.navigate("", cookie=f"sdckit={server.cookie}; sdckit=evil").status < 400


@pytest.mark.parametrize("target", ["/", "/open/", "/static/app.css", "/wrong/open", "/favicon.ico", "/%00"])
def test_outside_of_the_prefix_there_is_nothing(server, target):
    assert_refused(server, server.navigate(target), GUARDS)


def test_a_wrong_prefix_with_the_good_cookie_is_refused(server):
    for prefix in (server.prefix.swapcase(), server.prefix[:-1], f"{server.prefix}x", "%C3%A9"):
        assert_refused(server, server.navigate(f"/{prefix}/open"), GUARDS)


# Guard: exact Host.

HOSTS = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1",
    "127.0.0.1:{other}",
    "127.0.0.1:0{port}",
    "127.0.0.1.:{port}",
    "127.0.0.1:{port}.",
    "127.0.0.1:{port}.evil.example",
    "127.0.0.1.evil.example:{port}",
    "evil@127.0.0.1:{port}",
    "127.0.0.1:{port},evil.example",
    "127.0.0.1:{port}/",
    "127.0.0.1:{port}#",
    "localhost",
    "localhost:{port}",
    "LOCALHOST:{port}",
    "127.1:{port}",
    "0.0.0.0:{port}",
    "2130706433:{port}",
    "[::1]:{port}",
    "[::ffff:127.0.0.1]:{port}",
    "http://127.0.0.1:{port}",
    "\xff:{port}",
    "",
]


@pytest.mark.parametrize("host", HOSTS)
def test_a_foreign_host_is_refused(server, host):
    host = host.format(port=server.port, other=server.port - 1)
    assert_refused(server, server.navigate("", host=host))
    assert_refused(server, server.ask("POST", "undo", host=host, origin=f"http://{host}"))
    assert_refused(server, server.ask("GET", "events", host=host))


def test_a_missing_or_doubled_host_is_refused(server):
    for hosts in (None, ["evil.example", server.own], [server.own, "evil.example"], [server.own] * 2):
        assert_refused(server, server.navigate("", host=hosts))
    assert_refused(server, server.raw(f"GET /{server.prefix}/ HTTP/1.0\r\n\r\n".encode()))


@pytest.mark.parametrize("site", ["http://evil.example", "https://127.0.0.1:1", "http://localhost:{port}"])
def test_a_target_that_names_another_host_is_refused(server, site):
    target = f"{site.format(port=server.port)}/{server.prefix}/open"
    assert_refused(server, server.navigate(target))


@pytest.mark.parametrize("name", ["x-forwarded-host", "x-host", "forwarded", "x-original-host"])
def test_no_proxy_header_stands_for_the_host(server, name):
    value = f"host={server.own}" if name == "forwarded" else server.own
    assert_refused(server, server.navigate("", host="evil.example", **{name: value}))


# Guard: bound to 127.0.0.1 alone.


@pytest.mark.parametrize("address", ["127.0.0.2", "::1"])
def test_only_one_address_is_listened_on(server, address):
    # 127.0.0.2 belongs to this machine, too: who listens everywhere is reached there as from the network.
    with pytest.raises(OSError, match=r"refused|[Cc]annot assign|not supported|unreachable"):
        socket.create_connection((address, server.port), timeout=5)


# Guard: secrets of one server are worth nothing at another one, nor seen in the list of processes.


def arguments_of_all():
    """Return the command line of every process, as every user of this machine can read it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)


def test_another_server_shares_nothing_and_opens_the_browser_in_private(server, tmp_path):
    (tmp_path / "start").mkdir()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "start/data.csv").write_bytes((server.start / "data.csv").read_bytes())
    seen = tmp_path / "seen.txt"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}.part; mv {seen}.part {seen}; sleep 2\n')
    browser.chmod(0o700)
    with running(tmp_path, "data.csv", BROWSER=f"{browser} %s", DISPLAY=":9") as other:
        assert len({other.token, server.token}) == 2
        assert_refused(server, server.navigate(f"/open?token={other.token}"), GUARDS)
        assert_refused(other, other.navigate(f"/open?token={server.token}"), GUARDS)
        while not seen.exists():
            assert other.process.poll() is None
        assert other.token not in arguments_of_all()
        address = seen.read_text().strip()
        assert other.token not in address
        file = Path(re.fullmatch(r"(?:file://)?(/.*)", address)[1])
        assert file.stat().st_mode & 0o077 == 0 or file.parent.stat().st_mode & 0o077 == 0
        assert other.token in file.read_text()
        other.exchange(other.navigate(f"/open?token={other.token}"))
        assert other.prefix != server.prefix
        for target in ("", f"/{server.prefix}/"):
            assert_refused(other, other.navigate(target, cookie=f"sdckit={server.cookie}"), GUARDS)
            assert_refused(server, server.navigate(target, cookie=f"sdckit={other.cookie}"), GUARDS)
        other.navigate("")
    assert not file.exists()
    assert CANARY not in other.printed("stderr")
    assert other.process.returncode in {0, -15, 143}
