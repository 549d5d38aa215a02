"""Kill the page at random moments and start it again: nothing that was measured or kept may be lost.

    python tools/app_kills.py --searches 20 --releases 6 --roles 6 --seed 1

Only the server is killed; what it has started must end by itself, or finish what it writes. Every promise
that was broken is printed, and then this tool ends with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from app_client import Page, processes_of, seconds_until_alone
from sdckit.masking import METHODS
from sdckit.record.private_files import digest_of_file
from sdckit.record.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

ORPHANED = 15.0  # seconds after which nothing that the page has started may run any more
WRITING = 120.0  # seconds for a release that is being written
WORK, CELLS = "data-sdckit", "cells.bin"
GOAL = {"risk-linkage": "0.3", "minimise": "brmae"}
RELEASE = {"output": "out.csv", "report": "report.html", "save_job": "saved.toml"}


@dataclass(frozen=True)
class Undisturbed:
    """A search that nobody stopped: its folder, the points of its map, and the bytes of one measured run."""

    folder: Path
    points: dict[str, Any]
    record: int


def put_data(folder: Path, records: int) -> None:
    """Write a file of skewed amounts."""
    columns = np.random.default_rng(1).lognormal(5, 1, (records, 3)).round(2)
    lines = [",".join(map(str, row)) for row in columns.tolist()]
    folder.mkdir(parents=True)
    (folder / "data.csv").write_text("\n".join(["a,b,c", *lines, ""]))


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


def run(counts: tuple[int, int, int], seed: int, records: int, methods: list[str]) -> int:
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


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in (("searches", 20), ("releases", 6), ("roles", 6), ("seed", 1), ("records", 1_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument(
        "--methods", nargs="+", default=[name for name, one in METHODS.items() if one.default]
    )
    given = parser.parse_args()
    counts = given.searches, given.releases, given.roles
    sys.exit(run(counts, given.seed, given.records, given.methods) > 0)


if __name__ == "__main__":
    main()
