"""A client of the page: starts `sdckit app`, opens its address, and asks for screens as a browser does."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

HANGING = 120.0  # seconds after which a page that does not answer is taken to hang
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)(/open\?token=[\w-]+)\n")
COOKIE = re.compile(r"(sdckit=[\w-]+);.*Path=(/[\w-]+)/")
VERSION = re.compile(r'data-version="([\d.]+)"')
MARK = "SDCKIT_TEST_MARK"  # variable of the environment by which processes of a page are found


class Page:
    """A running `sdckit app` in a folder, whose address was opened."""

    def __init__(self, folder: Path, data: str = "data.csv") -> None:
        """Start the command and exchange the token of the address that it prints for the cookie."""
        words = [sys.executable, "-m", "sdckit.cli", "app", data, "--no-browser"]
        self.process = subprocess.Popen(  # noqa: S603 - our own command
            words,
            cwd=folder,
            env=os.environ | {"XDG_STATE_HOME": str(folder / "state"), MARK: str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None  # noqa: S101 - a pipe
        found = ADDRESS.fullmatch(self.process.stdout.readline())
        if found is None:
            raise RuntimeError("sdckit app has printed no address")
        self.port, self.cookie, self.root = int(found[1]), "", ""
        with self.ask("GET", found[2]) as answer:
            cookie = COOKIE.match(answer.headers.get("set-cookie", ""))
        if cookie is None:
            raise RuntimeError(f"the address was refused: {answer.status}")
        self.cookie, self.root = cookie[1], cookie[2]
        self.get("/open")  # the first screen, which reads the file

    @contextmanager
    def ask(
        self, method: str, target: str, form: Mapping[str, Any] | None = None, accept: str = "*/*"
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request of the page's own script; yield the answer, not read yet."""
        own = f"127.0.0.1:{self.port}"
        headers = {"Host": own, "Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin", "Accept": accept}
        if method == "POST":
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        body = urlencode(form, doseq=True) if form is not None else None
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGING)) as connection:
            connection.request(method, f"{self.root}{target}", body, headers | {"Cookie": self.cookie})
            with connection.getresponse() as answer:
                yield answer

    def get(self, target: str) -> str:
        """Return the text of a screen; raise RuntimeError if there is none."""
        with self.ask("GET", target) as answer:
            text = answer.read().decode()
            if answer.status != http.client.OK:
                raise RuntimeError(f"GET {target}: {answer.status} {text[:200]}")
            return text

    def spent(self, target: str, repeats: int = 1) -> float:
        """Return the CPU seconds that the server takes for a screen; it counts in hundredths."""
        before = self._cpu_seconds()
        for _ in range(repeats):
            self.get(target)
        return (self._cpu_seconds() - before) / repeats

    def _cpu_seconds(self) -> float:
        """Return the CPU seconds of the server so far, those of the system included."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def post(self, target: str, **form: Any) -> None:
        """Send a form of the present state of the job; raise RuntimeError unless it was taken."""
        if "version" not in form:
            form["version"] = self.version()
        with self.ask("POST", target, form) as answer:
            text = answer.read().decode()
            if answer.status != http.client.SEE_OTHER:
                raise RuntimeError(f"POST {target}: {answer.status} {text[:200]}")

    def version(self) -> str:
        """Return what a form says of the job's state: numbers of files opened and of changes."""
        found = VERSION.search(self.get("/open"))
        if found is None:
            raise RuntimeError("the first screen has no version of the job")
        return found[1]

    def points(self) -> dict[str, Any]:
        """Return the points of the map by their identities."""
        spec = json.loads(self.get("/map/points"))["spec"]
        return {} if spec is None else {row["id"]: row for row in spec["data"]["values"]}

    def next_event(self, stream: http.client.HTTPResponse, name: str) -> dict[str, Any]:
        """Return the content of the next event of a name; raise RuntimeError where the stream ends."""
        for line in stream:
            if line == f"event: {name}\n".encode():
                return json.loads(stream.readline().partition(b":")[2])
        raise RuntimeError("the event stream has ended")

    def finish_search(self, look: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
        """Start the search, or go on with it, and follow the event stream to its end.

        `look` is called with the content of each event on the search.
        """
        with self.ask("GET", "/events", accept="text/event-stream") as stream:
            self.post("/search/start")
            running = before = False
            while running or not before:
                found = self.next_event(stream, "search")
                look(found)
                running = found["running"]
                before = before or running

    def finish_release(self, **form: Any) -> dict[str, Any]:
        """Write the release and wait for its end; return what the event stream says about it then."""
        with self.ask("GET", "/events", accept="text/event-stream") as stream:
            found = self.next_event(stream, "release")
            before = found["finished"]
            self.post("/release", **form)
            while found["finished"] == before:
                found = self.next_event(stream, "release")
        return found

    def kill(self) -> None:
        """Kill the server, and nothing else."""
        self.process.kill()
        self.process.communicate()

    def stop(self) -> None:
        """End the page as a supervisor does."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=HANGING)


def processes_of(folder: Path) -> list[int]:
    """Return the processes that were started by a page in a folder, itself included."""
    found = Path("/proc").glob("[0-9]*/environ")
    return [int(path.parent.name) for path in found if _is_marked(path, folder)]


def _is_marked(environ: Path, folder: Path) -> bool:
    """Return True if a process has the mark of a folder in its environment."""
    try:
        return f"{MARK}={folder}".encode() in environ.read_bytes().split(b"\0")
    except OSError:  # it has ended, or belongs to somebody else
        return False


def seconds_until_alone(folder: Path, limit: float) -> float:
    """Wait until no process of a page in a folder is left; return how long it took, at most `limit`."""
    began = time.monotonic()
    while processes_of(folder) and time.monotonic() - began < limit:
        time.sleep(0.02)
    return time.monotonic() - began
