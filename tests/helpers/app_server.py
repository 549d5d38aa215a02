"""The page as an intruder meets it: the command in a folder of its own, and requests written by hand."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import sdckit

HANGING = 60  # seconds after which a server that says nothing is taken to hang
CANARY = "918273645"  # a cell of the data file below the 20 rows of the preview
PREVIEWED = "564738291"  # a cell of its third row
OUTSIDE = "outsider-secret-77"  # in the files that lie beside the start folder
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/open\?token=([\w-]+)\n")
POLICY = {
    "default-src": {"'self'"},
    "frame-ancestors": {"'none'"},
    "base-uri": {"'none'"},
    "form-action": {"'self'"},
    "object-src": {"'none'"},
    "img-src": {"'self'", "data:"},
}
ALWAYS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def prepare(root):
    """Write a start folder with data and links out of it, and what lies beside it; return the folder."""
    start = root / "start"
    for name in ("start/below", "outside", "start-not", "state", "tmp"):
        (root / name).mkdir(parents=True)
    rows = [f"{i},{1000 + 37 * i % 911},{20 + i % 50},{'NSW'[i % 3]}" for i in range(60)]
    rows[2] = f"2,{PREVIEWED},33,N"
    rows[40] = f"40,{CANARY},61,S"
    (start / "data.csv").write_text("\n".join(["id,income,age,region", *rows, ""]))
    secret = f"id,income\n1,5\n2,{OUTSIDE}\n"
    for name in ("outside/secret.csv", "start-not/secret.csv"):
        (root / name).write_text(secret)
    (start / "link.csv").symlink_to(root / "outside/secret.csv")
    (start / "linked").symlink_to(root / "outside")
    (start / "loop.csv").symlink_to("loop.csv")
    os.mkfifo(start / "pipe.csv")
    return start


class Server:
    """A running page, and the ways of talking to it."""

    def __init__(self, root, process):
        self.root, self.process, self.start = root, process, root / "start"
        deadline = time.monotonic() + HANGING
        while not (line := self.printed("stdout")).endswith("\n") and process.poll() is None:
            assert time.monotonic() < deadline, "no address was printed"
            time.sleep(0.01)
        found = ADDRESS.fullmatch(line)
        assert found, (line, self.printed("stderr"))
        self.port, self.token = int(found[1]), found[2]
        self.own = f"127.0.0.1:{self.port}"
        self.prefix = self.cookie = "not-yet"

    def printed(self, stream):
        """Return all that was printed on a stream so far."""
        return (self.root / f"{stream}.txt").read_text()

    def exchange(self, page):
        """Take the prefix and the cookie from the page that the token was exchanged for."""
        found = re.fullmatch(r"sdckit=([\w-]+);.*?path=/([\w-]+)/.*", page.one("set-cookie"), re.IGNORECASE)
        assert found, page.one("set-cookie")
        self.cookie, self.prefix = found[1], found[2]

    def head(self, method, target, **changes):
        """Write a request as a script of the page sends it; None leaves a header out, a list repeats it."""
        if not target.startswith("/") and "//" not in target:
            target = f"/{self.prefix}/{target}"
        usual = {
            "host": self.own,
            "cookie": f"sdckit={self.cookie}",
            "origin": f"http://{self.own}",
            "sec-fetch-site": "same-origin",
            "sec-fetch-mode": "cors",
            "sec-fetch-dest": "empty",
            "connection": "close",
        }
        lines = [f"{method} {target} HTTP/1.1"]
        for name, values in (usual | {k.replace("_", "-"): v for k, v in changes.items()}).items():
            several = values if isinstance(values, list) else [values]
            lines += [f"{name}: {value}" for value in several if value is not None]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def ask(self, method, target, body=b"", **changes):
        """Send one request and return its answer."""
        if method == "POST":
            kind = {"content-type": "application/x-www-form-urlencoded", "content-length": len(body)}
            changes = kind | {k.replace("_", "-"): v for k, v in changes.items()}
        return self.raw(self.head(method, target, **changes) + body, method=method)

    def navigate(self, target, **changes):
        """Open an address as the user does, by typing it or by a link of the page itself."""
        usual = {"origin": None, "sec_fetch_site": "none", "sec_fetch_mode": "navigate"}
        return self.ask("GET", target, **(usual | {"sec_fetch_dest": "document"} | changes))

    def connect(self):
        """Open a connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=HANGING)

    def raw(self, sent, method="GET"):
        """Send bytes and return the answer to them."""
        with self.connect() as connection:
            connection.sendall(sent)
            return read_answer(connection, method)

    def flood(self, first, piece, most):
        """Send a head and then pieces without end; return the answer (None: cut off) and the bytes sent."""
        with self.connect() as connection:
            found, sent = [], 0
            reader = threading.Thread(target=lambda: found.append(read_until_closed(connection)))
            reader.start()
            try:
                connection.sendall(first)
                while reader.is_alive() and sent < most:
                    connection.sendall(piece)
                    sent += len(piece)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # refused: what was answered before is still read
            reader.join()
        return parsed(found[0]), sent

    def memory(self):
        """Return the most memory that the process has held, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024

    def files(self):
        """Return all below the folders that the server could write to, with bytes, modes and links."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            if path.name not in {"stdout.txt", "stderr.txt"}:
                regular = path.is_file() and not path.is_symlink()
                found[str(path.relative_to(self.root))] = (
                    path.lstat().st_mode,
                    path.read_bytes() if regular else None,
                )
        return found


def read_answer(connection, method="GET"):
    """Read one answer; of an event stream, which does not end, only the head."""
    response = http.client.HTTPResponse(connection, method=method)
    try:
        response.begin()
        endless = (response.getheader("content-type") or "").startswith("text/event-stream")
        return answer(response.status, response.getheaders(), b"" if endless else response.read())
    finally:
        response.close()


def answer(status, pairs, body):
    """Make an answer whose headers are looked up by lower-case names."""
    headers = [(name.lower(), value) for name, value in pairs]

    def one(name):
        found = [value for key, value in headers if key == name]
        assert len(found) == 1, (name, headers)
        return found[0]

    return SimpleNamespace(
        status=status, headers=headers, body=body, text=body.decode(errors="replace"), one=one
    )


def read_until_closed(connection):
    """Return all bytes until the other side closes or resets."""
    found = []
    try:
        while piece := connection.recv(65536):
            found.append(piece)
    except ConnectionError:
        pass
    return b"".join(found)


def parsed(content):
    """Read the first answer out of bytes; None where there is none."""
    if not content:
        return None
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(content)
        theirs.shutdown(socket.SHUT_WR)
        return read_answer(ours)


@contextmanager
def running(root, *words, **more):
    """Start the command in the start folder below `root`, and stop it at the end."""
    environment = os.environ | {
        "PYTHONPATH": str(Path(sdckit.__file__).parents[1]),
        "XDG_STATE_HOME": str(root / "state"),
        "TMPDIR": str(root / "tmp"),
    }
    with (root / "stdout.txt").open("wb") as out, (root / "stderr.txt").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "sdckit.cli", "app", *map(str, words)],
            cwd=root / "start",
            env=environment | more,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        try:
            yield Server(root, process)
        finally:
            stop(process)


def stop(process):
    """End the command as a supervisor does; kill it where it does not follow."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(HANGING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


def assert_guarded(got):
    """Check the headers that every answer has."""
    for name, value in ALWAYS.items():
        assert got.one(name) == value
    words = [part.split() for part in got.one("content-security-policy").split(";") if part.strip()]
    policy = {first: set(rest) for first, *rest in words}
    assert len(policy) == len(words)  # a directive named twice counts as it was named first
    assert {name: policy.get(name) for name in POLICY} == POLICY
    for allowed in policy.values():
        assert not allowed & {"*", "http:", "https:", "'unsafe-eval'", "'unsafe-hashes'"}
    assert "'unsafe-inline'" not in policy.get("script-src", set())
    assert [name for name, _ in got.headers if name.startswith("access-control")] == []


def assert_refused(server, got, statuses=range(400, 500)):
    """Check that an answer refuses in one line and says nothing of files, of this machine or of the key."""
    assert got is not None, "cut off without an answer"
    assert got.status in statuses, (got.status, got.body[:300])
    assert_guarded(got)
    assert got.one("content-type").startswith("text/plain")
    assert len(got.body) < 300
    assert got.text.strip().count("\n") == 0
    for secret in (CANARY, PREVIEWED, OUTSIDE, server.token, server.cookie, server.prefix, "income"):
        assert secret not in got.text
    for path in (str(server.root), str(Path(sdckit.__file__).parent), ".py", "Traceback"):
        assert path not in got.text
    assert "set-cookie" not in [name for name, _ in got.headers]
