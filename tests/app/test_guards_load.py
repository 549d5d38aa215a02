"""Requests that are too long, too slow, too many or malformed; every test names the guard that it needs."""

import os
import threading
import time
from contextlib import ExitStack

import pytest

from app_server import (
    HANGING,
    OUTSIDE,
    assert_guarded,
    assert_refused,
    parsed,
    read_answer,
    read_until_closed,
)

MEGABYTE = 2**20
BUFFERED = 12 * MEGABYTE  # what the sockets of both sides may hold beside what the server has read
CHUNKED = {"content_length": None, "transfer_encoding": "chunked"}
ANSWERED = (*range(200, 400), *range(400, 500))


# Guard: length of the target.


def test_a_long_target_is_refused_and_a_shorter_one_is_not(server):
    assert server.navigate(f"open?more={'a' * 6000}").status < 400
    for length in (9_000, 20_000, 60_000):
        assert_refused(server, server.navigate(f"open?more={'a' * length}"))
        assert_refused(server, server.navigate(f"open?more={'a' * length}", cookie=None))


@pytest.mark.parametrize("signed_in", [True, False])
def test_a_path_without_end_is_refused_early(server, signed_in):
    before = server.memory()
    first = f"GET /{server.prefix if signed_in else 'x'}/open?path=".encode()
    got, sent = server.flood(first, b"a" * 65536, 256 * MEGABYTE)
    assert_refused(server, got)
    assert sent < BUFFERED
    assert server.memory() - before < 100


# Guard: length of the head.


@pytest.mark.parametrize("lines", [[("x", "a" * 200_000)], [(f"x{i}", "a" * 100) for i in range(2000)]])
def test_a_head_that_is_too_large_is_refused(server, lines):
    assert_refused(server, server.navigate("open", **dict(lines)))


def test_a_head_without_end_is_refused_early(server):
    before = server.memory()
    got, sent = server.flood(server.head("GET", "open")[:-2], b"x: aaaaaaaaaa\r\n" * 4096, 256 * MEGABYTE)
    assert_refused(server, got)
    assert sent < BUFFERED
    assert server.memory() - before < 100


# Guard: length of the body.


def test_a_body_may_be_long_but_not_too_long(server):
    assert server.ask("POST", "undo", b"a=" + b"b" * 900_000).status in ANSWERED
    too_long = server.ask("POST", "undo", content_length=MEGABYTE + 1)
    assert_refused(server, too_long, [413])
    assert_refused(server, server.ask("POST", "undo", content_length=2**30), [413])


def test_a_declared_gigabyte_is_refused_before_it_is_sent(server):
    for cookie, statuses in ((f"sdckit={server.cookie}", [413]), (None, range(400, 500))):
        head = server.head("POST", "open", content_length=2**30, cookie=cookie)
        assert_refused(server, server.raw(head), statuses)


@pytest.mark.parametrize("signed_in", [True, False])
@pytest.mark.parametrize("declared", [True, False])
def test_a_body_without_end_is_refused_early(server, declared, signed_in):
    before = server.memory()
    length = {"content_length": 2**30} if declared else CHUNKED
    more = {} if signed_in else {"cookie": None}
    head = server.head("POST", "open", content_type="application/x-www-form-urlencoded", **length, **more)
    piece = b"a" * 65536
    got, sent = server.flood(head, piece if declared else b"10000\r\n" + piece + b"\r\n", 256 * MEGABYTE)
    assert_refused(server, got, [413] if signed_in else range(400, 500))
    assert sent < BUFFERED
    assert server.memory() - before < 100


def test_what_is_refused_without_a_cookie_is_refused_before_its_body_came(server):
    head = server.head("POST", "undo", content_length=1000, cookie=None)
    assert_refused(server, server.raw(head))


# Guard: slow clients. All are slow at the same time, so that the test waits once.


def drip(server, sent, slow, found):
    """Send the first bytes at once and the others slowly until cut off; append all that came back."""
    with server.connect() as connection:
        reader = threading.Thread(target=lambda: found.append(read_until_closed(connection)))
        reader.start()
        connection.sendall(sent)
        for i in range(len(slow)):
            reader.join(0.5)
            if not reader.is_alive():
                break
            try:
                connection.sendall(slow[i : i + 1])
            except OSError:
                break
        reader.join(HANGING)
        assert not reader.is_alive(), "the connection was never closed"


@pytest.mark.long
def test_slow_clients_are_cut_off(server):
    get, keep = server.head("GET", "open"), server.head("GET", "open", connection="keep-alive")
    post = server.head("POST", "undo", content_length=1000, content_type="application/x-www-form-urlencoded")
    chunked = server.head("POST", "undo", **CHUNKED, content_type="application/x-www-form-urlencoded")
    cases = {
        "says nothing": (b"", b""),
        "first line by bytes": (b"", b"GET /" + b"a" * 500),
        "head by bytes": (get[:-2], b"x: " + b"a" * 500),
        "second head by bytes": (keep + b"GET", b" /" + b"a" * 500),
        "silent within the head": (get[:-2], b""),
        "body by bytes": (post, b"a" * 500),
        "body by chunks": (chunked, b"1\r\na\r\n" * 500),
        "no body": (post, b""),
        "without cookie": (server.head("POST", "undo", content_length=1000, cookie=None), b"a" * 500),
    }
    found = {name: [] for name in cases}
    threads = [
        threading.Thread(target=drip, args=(server, *case, found[name])) for name, case in cases.items()
    ]
    for thread in threads:
        thread.start()
    assert server.navigate("open").status < 400  # others are served meanwhile
    for thread in threads:
        thread.join()
    answers = {name: parsed(content[0]) for name, content in found.items() if content}
    assert set(answers) == set(cases)
    for name in ("body by bytes", "body by chunks", "no body"):
        assert_refused(server, answers[name], [408])
    assert_refused(server, answers["without cookie"])
    assert answers["second head by bytes"].status < 400
    for name in ("says nothing", "first line by bytes", "head by bytes", "silent within the head"):
        if answers[name] is not None:
            assert_refused(server, answers[name])


# Guard: many at once.


def test_two_hundred_requests_at_once_are_all_answered(server):
    kinds = [
        server.head("GET", "open"),
        server.head("GET", "open", cookie=None),
        server.head("GET", "static/app.css"),
        server.head("POST", "undo", content_length=0, origin="https://evil.example"),
    ]
    with ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(200)]
        for i, connection in enumerate(connections):
            connection.sendall(kinds[i % 4])
        answers = [read_answer(connection) for connection in connections]
    for i, got in enumerate(answers):
        assert got.status in (range(200, 400) if i % 2 == 0 else range(400, 500))
        assert_guarded(got)


def test_connections_that_are_held_open_keep_nobody_out(server):
    with ExitStack() as stack:
        for i in range(200):
            connection = stack.enter_context(server.connect())
            connection.sendall(server.head("GET", "events", connection="keep-alive") if i % 2 else b"GET /")
        assert server.navigate("open").status < 400


def test_clients_that_leave_in_the_middle_are_no_trouble(server):
    post = server.head("POST", "undo", content_length=1000)
    for sent in (b"", b"GET", server.head("GET", "events"), server.head("GET", "open"), post + b"a" * 10):
        with server.connect() as connection:
            connection.sendall(sent)
    time.sleep(0.05)  # what the server prints of them would be found after this test


# Guard: requests that two readers could understand differently are refused, and only one is read.


def smuggled(server, *headers, body):
    """Send a POST with an unclear end and a second request behind it; return all that came back."""
    head = server.head("POST", "undo", connection="keep-alive")[:-2]
    second = server.head("GET", "open")
    with server.connect() as connection:
        connection.sendall(head + b"".join(line + b"\r\n" for line in headers) + b"\r\n" + body + second)
        return read_until_closed(connection)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([b"Content-Length: 0", b"Content-Length: 5"], b"aaaaa"),
        ([b"Content-Length: 5", b"Content-Length: 0"], b"aaaaa"),
        ([b"Content-Length: 0, 5"], b"aaaaa"),
        ([b"Content-Length: -1"], b""),
        ([b"Content-Length: +3"], b"a=b"),
        ([b"Content-Length: 0x3"], b"a=b"),
        ([b"Content-Length: 3 3"], b"a=b"),
        ([b"Content-Length : 3"], b"a=b"),
        ([b"Content-Length: 99999999999999999999999999"], b""),
        ([b"Transfer-Encoding: chunked", b"Content-Length: 3"], b"0\r\n\r\n"),
        ([b"Content-Length: 3", b"Transfer-Encoding: chunked"], b"0\r\n\r\n"),
        ([b"Transfer-Encoding: gzip, chunked"], b"0\r\n\r\n"),
        ([b"Transfer-Encoding: xchunked"], b"0\r\n\r\n"),
        ([b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"], b"0\r\n\r\n"),
        ([b"Transfer-Encoding: chunked"], b"zz\r\naa\r\n0\r\n\r\n"),
        ([b"Content-Type: a", b" folded: b\x00", b"Content-Length: 0"], b""),
    ],
)
def test_smuggled_requests_are_refused(server, headers, body):
    content = smuggled(server, *headers, body=body)
    assert content.count(b"HTTP/1.1 ") == 1
    assert_refused(server, parsed(content))


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + b"\r\n\r\n",  # a TLS greeting
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\x00b\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: {own}\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: {own}\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: {own}\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: {own}\r\nno colon\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(server, sent):
    assert_refused(server, server.raw(sent.replace(b"{own}", server.own.encode())))


def test_nothing_is_upgraded(server):
    got = server.ask(
        "GET", "open", connection="Upgrade, HTTP2-Settings, close", upgrade="h2c", http2_settings="AA"
    )
    assert got.status in ANSWERED


# Guard: only bodies of forms are read, whatever is in them.


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b'{"path": "data.csv"}'),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--\r\n',
        ),
        ("multipart/form-data", b""),
        ("text/plain", b"path=data.csv"),
        ("application/x-www-form-urlencoded", b"\xff\xfe=%ff&%00=%00&" + b"%"),
        ("application/x-www-form-urlencoded", b"a=1&" * 100_000),
        ("\xff", b"a"),
    ],
)
@pytest.mark.parametrize("target", ["open", "roles", "rules", "goal", "map", "release", "search"])
def test_a_body_that_is_no_good_form_is_refused(server, target, kind, body):
    got = server.ask("POST", target, body, content_type=kind)
    assert got.status in range(400, 500)
    assert_guarded(got)
    assert OUTSIDE not in got.text


# Guard: targets are looked up among known ones, never on the disk.

CLIMBS = [
    "static/../../../../../../../../etc/passwd",
    "static/..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "static/..%252f..%252f..%252fetc/passwd",
    "static/..%5c..%5c..%5cetc%5cpasswd",
    "static/..\\..\\..\\etc\\passwd",
    "static/....//....//....//etc/passwd",
    "static/%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd",
    "static//etc/passwd",
    "static/%2fetc%2fpasswd",
    "static/file:///etc/passwd",
    "static/../server.py",
    "static/..%2fserver.py",
    "static/../guards.py",
    "static/../templates/panel.html",
    "static/../__init__.py",
    "static/app.css%00.js",
    "static/app.css%0d%0aset-cookie:%20a=b",
    "static/",
    "static",
    "static/.",
    "data.csv",
    "../start/data.csv",
    "..%2fopen",
    "link.csv",
    "linked/secret.csv",
    "%00",
    "%zz",
    "%ff%fe",
    ";open",
    "open;a",
    "a" * 5000,
]


@pytest.mark.parametrize("target", CLIMBS)
def test_no_target_reaches_a_file(server, target):
    got = server.ask("GET", f"/{server.prefix}/{target}", origin=None)
    assert_refused(server, got)
    assert "root:" not in got.text


def test_no_target_leads_to_another_host(server):
    for target in ("//evil.example/", "//evil.example/{}/", "/{}//evil.example/", "/{}/%2f%2fevil.example"):
        got = server.navigate(target.format(server.prefix))
        assert_refused(server, got)
        assert "location" not in [name for name, _ in got.headers]


def test_a_missing_slash_is_no_way_around(server):
    got = server.navigate(f"/{server.prefix}")
    assert got.status in range(300, 500)
    assert OUTSIDE not in got.text
    assert_guarded(got)


def test_the_server_is_one_process_that_is_still_there(server):
    os.kill(server.process.pid, 0)
    assert server.process.poll() is None
