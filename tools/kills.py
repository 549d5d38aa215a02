"""Kill commands and the page at random moments and run them again: nothing half written, nothing lost.

    python tools/kills.py --commands 200 --signal KILL                   masks, releases, sweeps, jobs
    python tools/kills.py --searches 20 --releases 6 --roles 6 --seed 1  the page

Commands leave no half file, no draft and no release without its record, and lose no finished run. Of the
page only the server is killed; what it has started must end by itself, or finish what it writes. Promises
that were broken are printed, and then this tool ends with 1.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from sdckit.cli import main, show
from sdckit.masking import METHODS
from sdckit.record.store import Store, digest_of_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

HANGING = 120.0  # seconds after which a page that does not answer is taken to hang
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)(/open\?token=[\w-]+)\n")
COOKIE = re.compile(r"(sdckit=[\w-]+);.*Path=(/[\w-]+)/")
VERSION = re.compile(r'data-version="([\d.]+)"')
MARK = "SDCKIT_TEST_MARK"  # variable of the environment by which processes of a page are found
ORPHANED = 15.0  # seconds after which nothing that the page has started may run any more
WRITING = 120.0  # seconds for a release that is being written
WORK, CELLS = "data-sdckit", "cells.bin"
GOAL = {"risk-linkage": "0.3", "minimise": "brmae"}
RELEASE = {"output": "out.csv", "report": "report.html", "save_job": "saved.toml"}
WARMED = show  # imported here, so that no command spends its time on imports
ROWS = 60
SHOWN = 3000  # characters of a traceback
TABLE = Path("out/sweep.csv")
ENDED = {"KILL": {-signal.SIGKILL}, "INT": {130}, "TERM": {143}}
COMMANDS = {
    "mask": "mask data.csv -o out.csv --method mdav --seed 1 -q",
    "release": "mask data.csv -o out.csv --method noise --release -q",
    "recommend": "recommend data.csv -o out.csv --max-risk linkage=0.9 --method mdav -q",
    "sweep": "sweep data.csv -o out --grid mdav.k=3:6 --format csv --seed 1 -q",
    "run": "run job.toml -q",
}
JOB = """
[input]
data = "data.csv"

[search]
max_risk = { linkage = 0.9 }
methods = ["mdav"]
workers = 1

[output]
output = "out.csv"
"""
ONE_WORKER = {"sweep", "recommend"}
RELEASES = {"release", "recommend", "run"}


def put_data(folder: Path, records: int) -> None:
    """Write a file of skewed amounts."""
    columns = np.random.default_rng(1).lognormal(5, 1, (records, 3)).round(2)
    lines = [",".join(map(str, row)) for row in columns.tolist()]
    folder.mkdir(parents=True)
    (folder / "data.csv").write_text("\n".join(["a,b,c", *lines, ""]))


# Commands, forked from this process, which has imported the package and used none of its threads, so that
# each begins at once and as in a fresh interpreter.


@dataclass
class Command:
    """How long a command takes, and what it writes, where nobody stops it."""

    seconds: float
    files: dict[str, bytes]


def words_of(name: str) -> list[str]:
    """Return the words of a command."""
    return [*COMMANDS[name].split(), *(["--workers", "1"] if name in ONE_WORKER else ())]


def start(folder: Path, words: list[str]) -> int:
    """Fork a process that runs a command in a folder, printing into a file; return its number."""
    child = os.fork()
    if child:
        return child
    os.chdir(folder.parent)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["XDG_STATE_HOME"] = str(state_of(folder))
    log = os.open("log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.chdir(folder)
    code: object = 1
    try:
        main(words)
    except SystemExit as stop:
        code = stop.code or 0
    finally:
        os._exit(code if isinstance(code, int) else 1)


def state_of(folder: Path) -> Path:
    """Return the state directory of the command in a folder: no release of another one is judged with its."""
    return folder.parent / f"state of {folder.name}"


def is_recorded(folder: Path) -> bool:
    """Return True if the release in a folder is in the private record of its command."""
    store = Store.at(state_of(folder) / "sdckit" / "releases")
    return store.find(digest_of_file(folder / "out.csv")) is not None


def wait(child: int) -> int:
    """Return the exit code of a process, negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def command_alone(home: Path, name: str) -> Command:
    """Run a command to its end; return its time and its files."""
    folder = home / "undisturbed" / name
    put_data(folder, ROWS)
    (folder / "job.toml").write_text(JOB)
    began = time.monotonic()
    if wait(start(folder, words_of(name))):
        raise RuntimeError(f"{name} fails: {(folder.parent / 'log.txt').read_text()[-SHOWN:]}")
    return Command(time.monotonic() - began, contents(folder))


def broken_by_signal(home: Path, name: str, moment: float, sent: str, expected: Command) -> list[str]:
    """Send a signal to a command, run it again; return a line for each promise that it broke."""
    folder = home / "stopped" / name
    for path in (folder, state_of(folder)):
        shutil.rmtree(path, ignore_errors=True)
    put_data(folder, ROWS)
    (folder / "job.toml").write_text(JOB)
    child = start(folder, words_of(name))
    time.sleep(moment)
    os.kill(child, getattr(signal, f"SIG{sent}"))
    code, after = wait(child), contents(folder)
    log = (folder.parent / "log.txt").read_text() if (folder.parent / "log.txt").exists() else ""
    found = [] if code in {0, *ENDED[sent]} else [f"ended with {code}: {log[-SHOWN:]}"]
    found += half_files(after, expected)
    if name in RELEASES and "out.csv" in after and not is_recorded(folder):
        found.append("left out.csv without its private record")
    if sent != "KILL":
        found += [f"left {path}" for path in after if "/.sdckit-" in f"/{path}"]
    again = words_of(name) if name == "sweep" or "out.csv" not in after else [*words_of(name), "--overwrite"]
    began = time.monotonic()
    if wait(start(folder, again)):
        found.append(f"does not run again: {(folder.parent / 'log.txt').read_text()[-SHOWN:]}")
    if name != "sweep":  # which resumes; the first run may have compiled what it needed
        expected.seconds = min(expected.seconds, time.monotonic() - began)
    return found + broken_afterwards(after, contents(folder), expected, fixed="--seed" in again)


def half_files(after: dict[str, bytes], expected: Command) -> list[str]:
    """Return a line for each file that is there but not whole."""
    found = [f"changed {name}" for name in ("data.csv",) if after.get(name) != expected.files[name]]
    lines = expected.files.get("out.csv", b"").count(b"\n")
    if "out.csv" in after and after["out.csv"].count(b"\n") != lines:
        found.append("left half of out.csv")
    table = str(TABLE)
    if table in after and after[table] != expected.files[table]:
        found.append("left another table")
    return found


def broken_afterwards(
    before: dict[str, bytes], after: dict[str, bytes], expected: Command, *, fixed: bool
) -> list[str]:
    """Return a line for each promise that a command broke which ran again after it was stopped."""
    found = [f"left the draft {path}" for path in after if "/.sdckit-" in f"/{path}"]
    if {*after} != {*expected.files}:
        found.append(f"left other files: {sorted({*after} ^ {*expected.files})}")
    results = [name for name in ("out.csv", str(TABLE)) if name in expected.files and fixed]
    found += [f"wrote another {name}" for name in results if after.get(name) != expected.files[name]]
    cells = f"out/private/{CELLS}"
    if cells in expected.files:
        kept = before.get(cells, b"")
        if not after.get(cells, b"").startswith(kept):
            found.append("lost finished runs")
        if len(after.get(cells, b"")) != len(expected.files[cells]):
            found.append("measured finished runs again")
    return found + half_files(after, expected)


def kill_commands(seed: int, count: int, sent: str = "KILL") -> int:
    """Send a signal to so many commands at moments drawn from a seed; print failures, return their number."""
    rng, failures, began = random.Random(seed), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        expected = {name: command_alone(home, name) for name in COMMANDS}
        for number in range(count):
            name = list(COMMANDS)[number % len(COMMANDS)]
            moment = rng.uniform(0, 1.05) * expected[name].seconds
            if found := broken_by_signal(home, name, moment, sent, expected[name]):
                failures += 1
                print(f"{name}, SIG{sent} after {moment:.3f} s:", *found, sep="\n  ", flush=True)
    took = time.monotonic() - began
    print(f"seed {seed}: SIG{sent} at {count} moments, {failures} failures, {took:.0f} s", flush=True)
    return failures


# The page


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


@dataclass(frozen=True)
class Undisturbed:
    """A search that nobody stopped: its folder, the points of its map, and the bytes of one measured run."""

    folder: Path
    points: dict[str, Any]
    record: int


def cells_of(folder: Path) -> bytes:
    """Return the measured runs of the search in a folder as they are on disk."""
    with suppress(FileNotFoundError):
        for found in (folder / WORK).glob(f"search-*/{CELLS}"):
            return found.read_bytes()
    return b""


def runs_in(content: bytes, record: int) -> set[bytes]:
    """Return the complete runs of a file of runs."""
    whole = len(content) - len(content) % record
    return {content[place : place + record] for place in range(0, whole, record)}


def undisturbed(home: Path, records: int, methods: list[str]) -> Undisturbed:
    """Search once without a kill."""
    folder = home / "undisturbed"
    put_data(folder, records)
    page = Page(folder)
    try:
        page.post("/goal", **GOAL, method=methods)
        page.finish_search()
        points, version = page.points(), json.loads(page.get("/map/points"))["version"]
    finally:
        page.stop()
    return Undisturbed(folder, points, len(cells_of(folder)) // int(version.split()[1]))


def begun(home: Path, expected: Undisturbed) -> Path:
    """Return a folder with the same job and the same seed, in which nothing is measured yet."""
    folder = home / "stopped"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(expected.folder, folder, ignore=shutil.ignore_patterns(CELLS))
    return folder


def broken_search(
    home: Path, rng: random.Random, expected: Undisturbed, *, kills: int = 1, patient: bool = False
) -> list[str]:
    """Kill the server of a search at random numbers of measured runs, go on each time; return what is broken.

    `patient`: the page is started again when the search that it left has ended, else at once.
    """
    folder, whole = begun(home, expected), cells_of(expected.folder)
    page, found = Page(folder), []
    for moment in sorted(rng.randrange(len(whole)) for _ in range(kills)):
        page.post("/search/start")
        while len(cells_of(folder)) < moment:
            time.sleep(0.002)
        shown = page.points() if rng.random() < 0.5 else {}
        time.sleep(rng.uniform(0, 0.1))
        before = runs_in(cells_of(folder), expected.record)
        page.kill()
        if patient and seconds_until_alone(folder, ORPHANED) >= ORPHANED:
            found.append(f"processes are left: {processes_of(folder)}")
        page = Page(folder)
        found += broken_restart(page, folder, shown, before, expected)
    page.finish_search()
    if page.points() != expected.points:
        found.append("the map is another one than that of a search that was not stopped")
    page.stop()
    return found + broken_end(folder, before, expected)


def broken_restart(
    page: Page, folder: Path, shown: dict[str, Any], before: set[bytes], expected: Undisturbed
) -> list[str]:
    """Return what a page that was started again has lost: points that were shown, or measured runs."""
    points = page.points()
    lost = [one for one in shown if points.get(one, {}).get("risk") != shown[one]["risk"]]
    kept = before <= runs_in(cells_of(folder), expected.record)
    return [f"points are gone or others: {lost}"] * bool(lost) + ["runs are lost at the restart"] * (not kept)


def broken_end(folder: Path, before: set[bytes], expected: Undisturbed) -> list[str]:
    """Return what is wrong after the end of a search: runs lost or measured twice, processes, history."""
    found, after = broken_history(folder), cells_of(folder)
    if not before <= runs_in(after, expected.record):
        found.append("runs are lost when the search went on")
    if len(after) != len(cells_of(expected.folder)):
        found.append(f"{len(after) / expected.record:g} runs instead of as many as without a kill")
    if seconds_until_alone(folder, ORPHANED) >= ORPHANED:
        found.append(f"processes are left at the end: {processes_of(folder)}")
    return found


def broken_history(folder: Path) -> list[str]:
    """Return a line if the history of a job is damaged, or if its job file is about another state."""
    if damaged := list((folder / WORK).glob("*damaged*")):
        return [f"the history was damaged: {damaged}"]
    return [f"a draft is left: {one}" for one in (folder / WORK).rglob(".sdckit-*")]


def release_seconds(home: Path, expected: Undisturbed) -> float:
    """Return how long a release takes that nobody stops."""
    page = Page(searched(home, expected))
    try:
        began = time.monotonic()
        page.finish_release(**RELEASE)
        return time.monotonic() - began
    finally:
        page.stop()


def searched(home: Path, expected: Undisturbed) -> Path:
    """Return a folder with a finished search."""
    folder = home / "released"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(expected.folder, folder)
    return folder


def is_writing(folder: Path) -> bool:
    """Return True if the file of a release, or a draft of it, is there."""
    names = [path.name for path in folder.iterdir()]
    return "out.csv" in names or any(name.startswith(".sdckit-") for name in names)


def broken_release(
    home: Path, rng: random.Random, expected: Undisturbed, *, seconds: float | None, all_at_once: bool
) -> list[str]:
    """Kill the server while a release is written, and its command if `all_at_once`; return what is broken.

    The moment is drawn from so many seconds; without them it is that at which the first draft is there.
    """
    folder = searched(home, expected)
    page = Page(folder)
    page.post("/release", **RELEASE)
    time.sleep(rng.uniform(0, seconds or 0))
    latest = time.monotonic() + WRITING
    while seconds is None and not is_writing(folder) and time.monotonic() < latest:
        time.sleep(0.002)
    page.kill()
    for one in processes_of(folder) if all_at_once else ():
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    found = ["a release never ends"] if seconds_until_alone(folder, WRITING) >= WRITING else []
    return found + broken_output(folder)


def broken_second_release(home: Path) -> list[str]:
    """Write the release again whose command was killed; return what is broken."""
    folder = home / "released"
    page = Page(folder)
    try:
        text = page.finish_release(**RELEASE, overwrite="yes")["text"]
    finally:
        page.stop()
    found = [f"the release is not written again: {text}"] if text else broken_output(folder, there=True)
    drafts = [f"the draft {path} is left" for path in folder.rglob(".sdckit-*")]
    return found + drafts + broken_history(folder)


def broken_output(folder: Path, *, there: bool = False) -> list[str]:
    """Return what is wrong with a released file: cut off, without its record, or missing where it must be."""
    released = folder / "out.csv"
    if not released.exists():
        return ["there is no released file"] if there else []
    lines = (folder / "data.csv").read_bytes().count(b"\n")
    found = [] if released.read_bytes().count(b"\n") == lines else ["half a file was released"]
    store = Store.at(folder / "state" / "sdckit" / "releases")
    return found + (["a released file has no record"] if store.find(digest_of_file(released)) is None else [])


def broken_roles(home: Path, rng: random.Random, expected: Undisturbed) -> list[str]:
    """Kill the server while roles are being saved; return a line if those that it took are not kept."""
    folder = begun(home, expected)
    page = Page(folder)
    opening, _, number = page.version().partition(".")
    answered = [int(number)]

    def save() -> None:
        """Save one of two choices of roles after the other, until the server is gone."""
        with suppress(OSError, HTTPException):
            while True:
                masked = "columns" if answered[-1] % 2 else "untouched"
                roles = {"role-0": "columns", "role-1": "columns", "role-2": masked}
                page.post("/roles", version=f"{opening}.{answered[-1]}", **roles)
                answered.append(answered[-1] + 1)

    saving = threading.Thread(target=save)
    saving.start()
    time.sleep(rng.uniform(0, 1))
    page.kill()
    saving.join()
    Page(folder).stop()
    content = json.loads((folder / WORK / "history.json").read_text())
    roles, version = content["states"][content["position"]]["job"]["roles"], content["version"]
    found = [] if answered[-1] <= version <= answered[-1] + 1 else [f"{answered[-1]} became {version}"]
    if f"columns = {json.dumps(roles['columns'])}" not in (folder / WORK / "job.toml").read_text():
        found.append("the job file is about other roles than the history")
    return found + broken_history(folder)


def trials(
    home: Path, rng: random.Random, expected: Undisturbed, counts: tuple[int, int, int]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the broken promises of so many searches, releases and forms."""
    searches, releases, roles = counts
    for number in range(searches):
        patient = bool(number % 2)
        yield f"search, patient={patient}", broken_search(home, rng, expected, patient=patient)
    seconds = release_seconds(home, expected) if releases else 0.0
    for number in range(releases):
        options: dict[str, Any] = {"seconds": seconds, "all_at_once": bool(number % 2)}
        found = broken_release(home, rng, expected, **options)
        yield f"release, {options}", found + broken_second_release(home)
    for _ in range(roles):
        yield "roles", broken_roles(home, rng, expected)


def kill_pages(counts: tuple[int, int, int], seed: int, records: int, methods: list[str]) -> int:
    """Kill so many searches, releases and forms; print what is broken, and return how many had a fault."""
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        home = Path(name).resolve()
        expected = undisturbed(home, records, methods)
        for what, found in trials(home, random.Random(seed), expected, counts):
            failures += bool(found)
            print(f"{what}: {'; '.join(found) or 'nothing is lost'}", flush=True)
    killed = "{} searches, {} releases and {} forms".format(*counts)
    print(f"seed {seed}: killed in {killed}, {len(expected.points)} settings; {failures} with a fault")
    return failures


def kill(words: Sequence[str] | None = None) -> int:
    """Kill what the options ask for; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("commands", "searches", "releases", "roles"):
        parser.add_argument(f"--{name}", type=int, default=0, help="how many are killed")
    parser.add_argument("--signal", default="KILL", help="that commands get: KILL, INT or TERM")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=int, default=1_000, help="of the file that the page works on")
    given = parser.parse_args(words)
    failures = kill_commands(given.seed, given.commands, given.signal) if given.commands else 0
    counts = given.searches, given.releases, given.roles
    if any(counts):
        methods = [name for name, one in METHODS.items() if one.default]
        failures += kill_pages(counts, given.seed, given.records, methods)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(kill())
