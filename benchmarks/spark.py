"""What an evaluation on Spark costs: `python benchmarks/spark.py [rows ...] [folder]`.

Files of 10,000,000 rows (or of each number of rows that is given) and 5 columns with ties, zeros and missing
cells are made in a temporary folder, below `folder` if one is given. They are evaluated with all losses of
ranks and cells, in memory by one process, one column at a time, and on a cluster of this machine with a
master and two workers. It prints

- CPU time of all processes on Spark (workers, their Python, the driver) over that of memory,
- bytes that are shuffled for each row and column, from Spark's log of events,
- the largest resident memory of a Python worker and of the driver's Python (this process until the end of
  the evaluation, shared libraries included, Java and the reading of Spark's log left out),
- the largest difference between the values of both,
- the number of tasks of each stage, none of which may read rows with one task alone,
- for several numbers of rows, each in a process of its own: the exponent by which CPU time on Spark grows.

Other work on the machine hardly changes these numbers; the load is printed with them.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

import sdckit as sdc

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS, COLUMNS = 10_000_000, 5
AT_ONCE = 1_000_000  # rows that are made at a time
LOOKED = 0.5  # seconds between two looks at the memory of workers
HELPERS = Path(__file__).parents[1] / "tests" / "helpers"
LIMITS = {
    "CPU, times that of memory": 6,
    "shuffled bytes a row and column": 60,
    "MB of a Python worker": 1000,
    "MB of the driver's Python": 300,
}
EXPONENT = 1.1  # limit on the growth of CPU time


def metrics() -> list[str]:
    losses = [one for one in sdc.METRICS.values() if one.family == "loss" and one.in_blocks]
    return [one.name for one in losses if one.needs in {"ranks", "cells"}]


def make(rows: int, folder: Path) -> None:
    """Write an original and a masked file with ties, zeros and missing cells."""
    import numpy as np  # noqa: PLC0415 - the driver is to stay small
    import polars as pl  # noqa: PLC0415

    for part, first in enumerate(range(0, rows, AT_ONCE)):
        rng, n = np.random.default_rng(part), min(AT_ONCE, rows - first)
        x = rng.lognormal(3, 1, (COLUMNS, n))
        x[1], x[2] = np.round(x[1]), np.where(rng.random(n) < 0.4, 0, x[2])
        y = x + rng.normal(0, 3, x.shape)
        y[1], y[2] = np.round(y[1]), np.where(x[2] == 0, 0, y[2])
        x[3, rng.random(n) < 0.05] = y[4, rng.random(n) < 0.05] = np.nan
        for name, values in (("original", x), ("masked", y)):
            (folder / name).mkdir(exist_ok=True)
            columns = {f"x{j}": values[j] for j in range(COLUMNS)}
            pl.DataFrame(columns, nan_to_null=True).write_parquet(folder / name / f"{part:04}.parquet")


def memory(folder: Path) -> None:
    """Print the CPU time of the evaluation in memory, without reading files or compiling, and its values."""
    import polars as pl  # noqa: PLC0415 - the driver is to stay small

    spent, values = 0.0, {}
    for j in range(COLUMNS):
        tables = [pl.read_parquet(folder / name, columns=[f"x{j}"]) for name in ("original", "masked")]
        sdc.evaluate(*(table.head(1000) for table in tables), metrics=metrics())
        began = time.process_time()
        found = sdc.evaluate(*tables, metrics=metrics())
        spent += time.process_time() - began
        values |= values_of(found)
    print(json.dumps([spent, values]))


def values_of(found: Any) -> dict[str, float]:
    """Return the values of an evaluation by metric and variable."""
    rows = found.table.select("metric", "variable", "value").rows()
    return {f"{metric} {variable}": value for metric, variable, value in rows if variable.startswith("x")}


def difference(ours: dict[str, float], theirs: dict[str, float]) -> float:
    """Return the largest relative difference of values."""
    if not ours or set(ours) != set(theirs):
        raise RuntimeError(f"{len(ours)} and {len(theirs)} values: they are not of the same metrics")
    return max(abs(ours[one] - theirs[one]) / max(abs(ours[one]), 1e-300) for one in ours)


def alone(*words: object) -> str:
    """Run a part of this script in a process of its own; return what it prints."""
    command = [sys.executable, __file__, *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603


def family() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def cpu() -> float:
    """Return the CPU time of this process and all below it, those that have ended included."""
    spent = 0.0
    for process in family():
        with suppress(psutil.NoSuchProcess):
            spent += sum(process.cpu_times()[:4])
    return spent


def peak(process: psutil.Process) -> float:
    """Return the largest memory that a process has had, in MB."""
    with suppress(OSError):
        for line in Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return float(line.split()[1]) * 1024 / 1e6
    return 0.0


class Watch(threading.Thread):
    """Keeps the largest memory of a Python worker of Spark."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.largest, self.ended = 0.0, threading.Event()

    def run(self) -> None:
        """Look until the end."""
        while not self.ended.wait(LOOKED):
            for process in family():
                with suppress(psutil.NoSuchProcess):
                    if "pyspark.daemon" in process.cmdline():
                        self.largest = max(self.largest, peak(process))


def events(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the events that Spark wrote."""
    for path in sorted(
        path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")
    ):
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.startswith("{"))


def shuffled(found: list[dict[str, Any]]) -> int:
    """Return the bytes that all tasks shuffled."""
    tasks = [one["Task Metrics"] for one in found if one["Event"] == "SparkListenerTaskEnd"]
    return sum(one["Shuffle Write Metrics"]["Shuffle Bytes Written"] for one in tasks if one)


def stages(found: list[dict[str, Any]]) -> list[int]:
    """Return the number of tasks of each stage, in order."""
    done = [one["Stage Info"] for one in found if one["Event"] == "SparkListenerStageCompleted"]
    return [one["Number of Tasks"] for one in sorted(done, key=lambda one: one["Stage ID"])]


def on_spark(folder: Path) -> tuple[float, dict[str, float], tuple[float, float], list[dict[str, Any]]]:
    """Evaluate on a cluster; return CPU time, values, memory of a worker and the driver, Spark's events."""
    sys.path.append(str(HELPERS))
    import spark_cluster  # noqa: PLC0415 - beside the tests
    from sdckit.engines.spark import spark_session  # noqa: PLC0415

    for name in ("cluster", "events"):
        (folder / name).mkdir()
    more = {
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
    }
    with spark_cluster.running(folder / "cluster", Path(sdc.__file__).parents[1]) as address:
        session = spark_session(address, spark_cluster.SETTINGS | more)
        watch, before = Watch(), cpu()
        watch.start()
        done = sdc.Microdata(folder / "original", engine="spark").evaluate(
            folder / "masked", metrics=metrics()
        )
        spent, driver = cpu() - before, peak(psutil.Process())
        watch.ended.set()
        watch.join()
        session.stop()
    return spent, values_of(done), (watch.largest, driver), list(events(folder / "events"))


def measure(rows: int, below: Path) -> None:
    """Print what the evaluation of files of so many rows costs; the last line is its CPU time."""
    with tempfile.TemporaryDirectory(dir=below) as name:
        folder = Path(name)
        alone("make", rows, folder)
        yardstick, expected = json.loads(alone("memory", folder))
        spent, computed, sizes, found = on_spark(folder)
    values = (spent / yardstick, shuffled(found) / (rows * COLUMNS), *sizes)
    print(f"{rows} rows x {COLUMNS} columns, {len(metrics())} losses; load {os.getloadavg()[0]:.1f}")
    print(f"CPU: {spent:.1f} s on Spark, {yardstick:.1f} s in memory")
    for (what, limit), value in zip(LIMITS.items(), values, strict=True):
        print(f"{what}: {value:.2f} (limit {limit})")
    print(f"largest relative difference of a value: {difference(expected, computed):.1g}")
    print(f"tasks of each stage: {stages(found)}")
    print(spent)


def main(words: list[str]) -> None:
    """Measure each number of rows among the words, in the folder among them, and print the growth."""
    counts = [int(float(word)) for word in words if word[0].isdigit()] or [ROWS]
    below = next((word for word in words if not word[0].isdigit()), tempfile.gettempdir())
    found = []
    for rows in counts:
        *lines, spent = alone("measure", rows, below).splitlines()
        print("\n".join(lines), flush=True)
        found.append(float(spent))
    for last in range(1, len(counts)):
        growth = math.log(found[last] / found[0]) / math.log(counts[last] / counts[0])
        print(f"exponent of CPU from {counts[0]} to {counts[last]} rows: {growth:.2f} (limit {EXPONENT})")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", rows, folder]:
            make(int(rows), Path(folder))
        case ["memory", folder]:
            memory(Path(folder))
        case ["measure", rows, folder]:
            measure(int(rows), Path(folder))
        case words:
            main(words)
