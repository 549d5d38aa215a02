"""Running pages that tests share: one for all attacks, one on a small file whose job was searched."""

import threading

import pytest

import app_server

EVIL = "https://evil.example"


def early_attempts(server):
    """Try the good token in requests that fail some other check; return the answers by name."""
    target = f"/open?token={server.token}"
    by_form = {"origin": None, "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_version": "13"}
    key = {"sec_websocket_key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    return {
        "foreign host": server.navigate(target, host="evil.example"),
        "rebound name": server.navigate(target, host=f"evil.example:{server.port}"),
        "localhost": server.navigate(target, host=f"localhost:{server.port}"),
        "no host": server.navigate(target, host=None),
        "two hosts": server.navigate(target, host=[server.own, "evil.example"]),
        "absolute target": server.navigate(f"http://evil.example{target}"),
        "foreign origin": server.navigate(target, origin=EVIL),
        "origin null": server.navigate(target, origin="null"),
        "origin on another port": server.navigate(target, origin="http://127.0.0.1:1"),
        "picture": server.ask(
            "GET", target, origin=None, sec_fetch_site="cross-site", sec_fetch_mode="no-cors"
        ),
        "frame": server.navigate(target, sec_fetch_site="cross-site", sec_fetch_dest="iframe"),
        "cross-site script": server.ask("GET", target, origin=EVIL, sec_fetch_site="cross-site"),
        "POST": server.ask("POST", target, b"", **by_form),
        "in the body": server.ask("POST", "/open", f"token={server.token}".encode(), **by_form),
        "HEAD": server.ask("HEAD", target, **by_form),
        "OPTIONS": server.ask("OPTIONS", target, **by_form),
        "websocket": server.navigate(target, **upgrade, **key),
        "long target": server.navigate(f"{target}&more={'a' * 9000}"),
        "wrong token": server.navigate("/open?token=" + "A" * len(server.token)),
        "token twice": server.navigate(f"{target}&token=wrong"),
        "token cut": server.navigate(target[:-1]),
        "token and more": server.navigate(f"{target}x"),
        "token in other case": server.navigate(f"/open?token={server.token.swapcase()}"),
        "empty token": server.navigate("/open?token="),
        "no token": server.navigate("/open"),
        "token with NUL": server.navigate(f"{target}%00"),
        "token that is not ASCII": server.navigate("/open?token=%C3%A9%FF"),
        "token as cookie": server.navigate("/open", cookie=f"sdckit={server.token}"),
    }


def exchange_at_once(server, times=8):
    """Send the good token over several connections at the same moment; return the answers."""
    found, together = [], threading.Barrier(times)
    # The browser is sent here by a page on disk: for it another site.
    fetch = {"origin": None, "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    sent = server.head(
        "GET", f"/open?token={server.token}", cookie=None, **fetch, sec_fetch_site="cross-site"
    )

    def go():
        with server.connect() as connection:
            together.wait(app_server.HANGING)
            connection.sendall(sent)
            found.append(app_server.read_answer(connection))

    threads = [threading.Thread(target=go) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found, key=lambda got: got.status)


@pytest.fixture(scope="session")
def small(browser, tmp_path_factory):
    """The page on a small file, after a search."""
    from app_small import Small  # only tests in a browser need its packages

    folder = tmp_path_factory.mktemp("small") / "work"
    folder.mkdir()
    found = Small(browser, folder)
    yield found
    found.stop()


@pytest.fixture(scope="session")
def attacked(tmp_path_factory):
    """A page whose token was tried in every wrong way before the right one."""
    root = tmp_path_factory.mktemp("page")
    app_server.prepare(root)
    with app_server.running(root, "data.csv", "--no-browser") as server:
        server.unopened = server.files()
        server.early = early_attempts(server)
        server.after_early = server.files()
        server.exchanged = exchange_at_once(server)
        # Where an attempt got the cookie, which one of the tests reports, the others still have one.
        given = [*server.exchanged, *server.early.values()]
        server.exchange(next(got for got in given if "set-cookie" in dict(got.headers)))
        # What is right, lest a refusal of everything passes for guards.
        server.allowed = {
            "page": server.navigate(""),
            "link of the page": server.navigate("open", sec_fetch_site="same-origin"),
            "script": server.ask("GET", "open", origin=None),
            "post": server.ask("POST", "undo"),
            "post of an older browser": server.ask("POST", "undo", sec_fetch_site=None, sec_fetch_mode=None),
            "events": server.ask("GET", "events"),
            "style": server.ask("GET", "static/app.css", origin=None, sec_fetch_mode="no-cors"),
        }
        yield server


@pytest.fixture
def server(attacked):
    """The running page; a test's refused requests must leave no file, no line and no dead server behind."""
    before = attacked.files()
    yield attacked
    assert attacked.files() == before
    assert app_server.ADDRESS.fullmatch(attacked.printed("stdout"))
    assert attacked.printed("stderr") == ""
    assert attacked.ask("GET", "static/app.css", origin=None).status == 200
