"""The page in the browser: CPU time of its start, of a click on a point of the map, and beside a search."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import sdckit as sdc
from maskings import sorted_columns, table
from sdckit.app.job import open_job
from sdckit.app.panel import make_panel
from sdckit.core.randomness import fresh_entropy
from sdckit.request.toml import check_job
from timing import Row, row, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.app.job import OpenedJob

sys.path.append(str(Path(__file__).parents[1] / "tools"))
from app_client import Page

ROWS, COLUMNS, CLICKS = 10_000, 8, 10
STARTS, SEARCHES, SEARCHED = 5, 10, 1_000  # repeats of a start and of a search, and records of a search
INTERVAL = 3.0  # seconds between two maps of a running search, as in app.js
WORK = Path("data-sdckit")
SETTINGS: dict[str, dict[str, Any]] = {"mdav": {"k": 10}, "noise": {"percent": 20}}


def put_table(folder: Path, records: int) -> None:
    """Write a file of skewed amounts."""
    amounts = np.exp(5 + table(records, COLUMNS)).round(1)
    pl.DataFrame(amounts, schema=[f"x{j + 1}" for j in range(COLUMNS)]).write_csv(folder / "data.csv")


def opened_table() -> OpenedJob:
    """A job on a file of skewed amounts, with a limit on the risk."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        put_table(folder, ROWS)
        content = {
            "command": "recommend",
            "input": {"data": "data.csv"},
            "search": {"max_risk": {"linkage": 0.1}},
            "output": {"output": "masked.csv"},
        }
        return open_job(check_job(content, folder))


def spent_by_processes(work: Callable[[], object]) -> float:
    """CPU seconds of the processes that some work starts and waits for, and of those that they wait for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def run_python(folder: Path, *words: str) -> None:
    """Run Python with words of a command line in a folder, to its end."""
    environment = os.environ | {"XDG_STATE_HOME": str(folder / "state")}
    subprocess.run([sys.executable, *words], cwd=folder, env=environment, check=True, capture_output=True)  # noqa: S603


def panel_rows() -> list[Row]:
    """The first click apart: it loads the kernels and prepares the original; then the median of ten."""
    opened, secret, found = opened_table(), fresh_entropy(), []
    original = opened.prepare()
    for method, parameters in SETTINGS.items():

        def click(method: str = method, parameters: dict[str, Any] = parameters) -> None:
            make_panel(opened, original, method, parameters, secret).to_html()

        began = time.process_time()
        click()
        first = time.process_time() - began
        made = sdc.release(original, method, **parameters)
        contenders = [
            click,
            lambda made=made: sdc.evaluate(original, made),
            lambda: sorted_columns(original.values),
        ]
        spent, measuring, sorting = seconds(contenders, repeats=CLICKS, clock=time.process_time)
        case = f"{method}, {ROWS:,} x {COLUMNS}"
        found += [
            row("panel, first click", case, first, "evaluate of a release", measuring),
            row("panel", case, spent, "evaluate of a release", measuring),
            row("panel", case, spent, "np.sort of the columns", sorting),
        ]
    return found


def start_rows() -> list[Row]:
    """From the start of the command to its first screen with a file, beside shorter commands and imports."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        put_table(folder, ROWS)
        pages = "import sdckit.app.launch, sdckit.app.pages"
        contenders: dict[str, Callable[[], object]] = {
            "page": lambda: Page(folder).kill(),
            "sdckit --help": lambda: run_python(folder, "-m", "sdckit.cli", "--help"),
            "import sdckit": lambda: run_python(folder, "-c", "import sdckit"),
            "import of what the page imports": lambda: run_python(folder, "-c", pages),
            "sdckit describe": lambda: run_python(folder, "-m", "sdckit.cli", "describe", "data.csv"),
        }
        times: dict[str, list[float]] = {one: [] for one in contenders}
        clocks: dict[str, list[float]] = {one: [] for one in contenders}
        for _ in range(STARTS):
            for one, work in contenders.items():
                began = time.perf_counter()
                times[one].append(spent_by_processes(work))
                clocks[one].append(time.perf_counter() - began)
    cpu = {one: median(found) for one, found in times.items()}
    clock = {one: median(found) for one, found in clocks.items()}
    case = f"{ROWS:,} x {COLUMNS}"
    found = [row("page, first screen", case, cpu["page"], one, cpu[one]) for one in cpu if one != "page"]
    hint = "sdckit --help"
    return [*found, row("page, first screen, by the clock", case, clock["page"], hint, clock[hint])]


def click_rows() -> list[Row]:
    """A click on a point of the map to its panel, over HTTP: CPU time of the server."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        put_table(folder, ROWS)
        page = Page(folder)
        page.post("/goal", **{"risk-linkage": "0.1", "minimise": "brmae", "method": list(SETTINGS)})
        page.finish_search()
        points = list(page.points())
        spent = [page.spent(f"/map/panel?id={one}") for one in points]
        screen = page.spent("/open", 50)
        page.stop()
    case = f"{ROWS:,} x {COLUMNS}"
    later = f"median of {len(points) - 1} others"
    return [
        row("click over HTTP, first", case, spent[0], later, median(spent[1:])),
        row("click over HTTP", case, median(spent[1:]), "the first screen", screen),
    ]


def begun_search(folder: Path) -> None:
    """Make a folder in which the page has begun a search and measured nothing; it has the seed."""
    put_table(folder, SEARCHED)
    page = Page(folder)
    page.post("/search/start")
    while not list(folder.glob(f"{WORK}/search-*/cells.bin")):
        time.sleep(0.01)
    page.stop()
    for cells in folder.glob(f"{WORK}/search-*/cells.bin"):
        cells.unlink()
    job = folder / WORK / "job.toml"  # without the report, which the page would not make either
    job.write_text("".join(line for line in job.open() if not line.startswith("report = ")))


def search_on_page(folder: Path) -> None:
    """Search with a page whose client asks for the map as its script does."""
    page = Page(folder)
    asked, share = 0.0, -1.0

    def draw(found: dict[str, Any]) -> None:
        """Ask for the map if there is something new, every three seconds at most, and at the end."""
        nonlocal asked, share
        late = time.monotonic() - asked >= INTERVAL and found["share"] != share
        if late or not found["running"]:
            asked, share = time.monotonic(), found["share"]
            page.points()

    page.finish_search(draw)
    page.stop()


def search_rows() -> list[Row]:
    """A search with the page open, all of its processes, against the same search by the same job file."""
    times: tuple[list[float], list[float]] = [], []
    with tempfile.TemporaryDirectory() as name:
        begun, folder = Path(name, "begun"), Path(name, "run")
        begun.mkdir()
        begun_search(begun)
        job = str(WORK / "job.toml")
        works = (
            lambda: search_on_page(folder),
            lambda: run_python(folder, "-m", "sdckit.cli", "run", job, "-q"),
        )
        for _ in range(1 + SEARCHES):
            for work, found in zip(works, times, strict=True):
                shutil.copytree(begun, folder)
                found.append(spent_by_processes(work))
                shutil.rmtree(folder)
    for found in times:
        del found[0]  # it has compiled the kernels
    ratios = [page / command for page, command in zip(*times, strict=True)]
    command = median(times[1])
    case = f"{SEARCHED:,} x {COLUMNS}, median of {SEARCHES} ratios"
    return [
        row("search, page open", case, median(ratios) * command, "sdckit run of the job", command, "<= 1.1")
    ]


def rows() -> list[Row]:
    """All benchmarks of the page."""
    return [*start_rows(), *panel_rows(), *click_rows(), *search_rows()]
