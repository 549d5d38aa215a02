"""Kill commands at random moments and run them again: no half file, no draft left, no finished run lost.

Commands are forked from this process, which has imported the package and used none of its threads, so that
each begins at once and as in a fresh interpreter.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sdckit.cli import commands, main
from sdckit.record.private_files import digest_of_file
from sdckit.record.store import Store

WARMED = commands  # imported here, so that no command spends its time on imports
ROWS = 60
SHOWN = 3000  # characters of a traceback
CELLS, TABLE = Path("out/private/cells.bin"), Path("out/sweep.csv")
ENDED = {"KILL": {-signal.SIGKILL}, "INT": {130}, "TERM": {143}}
COMMANDS = {
    "mask": ["mask", "data.csv", "-o", "out.csv", "--method", "mdav", "--seed", "1", "-q"],
    "release": ["mask", "data.csv", "-o", "out.csv", "--method", "noise", "--release", "-q"],
    "recommend": [
        "recommend",
        "data.csv",
        "-o",
        "out.csv",
        "--max-risk",
        "linkage=0.9",
        "--method",
        "mdav",
        "-q",
    ],
    "sweep": [
        "sweep",
        "data.csv",
        "-o",
        "out",
        "--grid",
        "mdav.k=3:6",
        "--format",
        "csv",
        "--seed",
        "1",
        "-q",
    ],
}
COMMANDS["run"] = ["run", "job.toml", "-q"]
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


@dataclass
class Undisturbed:
    """How long a command takes, and what it writes, where nobody stops it."""

    seconds: float
    files: dict[str, bytes]


def words_of(name: str) -> list[str]:
    """Return the words of a command."""
    return [*COMMANDS[name], *(["--workers", "1"] if name in ONE_WORKER else ())]


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


def put_data(folder: Path) -> None:
    """Write the file that all commands read."""
    rng = np.random.default_rng(1)
    columns = rng.lognormal(5, 1, (ROWS, 3)).round(2)
    lines = [",".join(map(str, row)) for row in columns.tolist()]
    folder.mkdir(parents=True)
    (folder / "job.toml").write_text(JOB)
    (folder / "data.csv").write_text("\n".join(["a,b,c", *lines, ""]))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def undisturbed(home: Path, name: str) -> Undisturbed:
    """Run a command to its end; return its time and its files."""
    folder = home / "undisturbed" / name
    put_data(folder)
    began = time.monotonic()
    if wait(start(folder, words_of(name))):
        raise RuntimeError(f"{name} fails: {(folder.parent / 'log.txt').read_text()[-SHOWN:]}")
    return Undisturbed(time.monotonic() - began, contents(folder))


def broken_by_signal(home: Path, name: str, moment: float, sent: str, expected: Undisturbed) -> list[str]:
    """Send a signal to a command, run it again; return a line for each promise that it broke."""
    folder = home / "stopped" / name
    for path in (folder, state_of(folder)):
        shutil.rmtree(path, ignore_errors=True)
    put_data(folder)
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


def half_files(after: dict[str, bytes], expected: Undisturbed) -> list[str]:
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
    before: dict[str, bytes], after: dict[str, bytes], expected: Undisturbed, *, fixed: bool
) -> list[str]:
    """Return a line for each promise that a command broke which ran again after it was stopped."""
    found = [f"left the draft {path}" for path in after if "/.sdckit-" in f"/{path}"]
    if {*after} != {*expected.files}:
        found.append(f"left other files: {sorted({*after} ^ {*expected.files})}")
    results = [name for name in ("out.csv", str(TABLE)) if name in expected.files and fixed]
    found += [f"wrote another {name}" for name in results if after.get(name) != expected.files[name]]
    cells = str(CELLS)
    if cells in expected.files:
        kept = before.get(cells, b"")
        if not after.get(cells, b"").startswith(kept):
            found.append("lost finished runs")
        if len(after.get(cells, b"")) != len(expected.files[cells]):
            found.append("measured finished runs again")
    return found + half_files(after, expected)


def run(seed: int, count: int, sent: str = "KILL") -> int:
    """Send a signal to so many commands at moments drawn from a seed; print failures, return their number."""
    rng, failures, began = random.Random(seed), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        expected = {name: undisturbed(home, name) for name in COMMANDS}
        for number in range(count):
            name = list(COMMANDS)[number % len(COMMANDS)]
            moment = rng.uniform(0, 1.05) * expected[name].seconds
            if found := broken_by_signal(home, name, moment, sent, expected[name]):
                failures += 1
                print(f"{name}, SIG{sent} after {moment:.3f} s:", *found, sep="\n  ", flush=True)
    took = time.monotonic() - began
    print(f"seed {seed}: SIG{sent} at {count} moments, {failures} failures, {took:.0f} s", flush=True)
    return failures
