"""All benchmarks: `python benchmarks/run.py [name ...]` prints a table and writes results.csv beside it."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import polars as pl
from rich.console import Console

from sdckit import terminal

BENCHMARKS = ("rank_distance", "rank_swapping", "mdav")


def main(names: list[str]) -> None:
    rows = []
    for name in names or BENCHMARKS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += import_module(name).rows()
    table = pl.DataFrame(rows)
    table.write_csv(Path(__file__).with_name("results.csv"))
    shown = [
        [
            str(row["what"]),
            str(row["case"]),
            f"{row['ms']:.3f}",
            str(row["yardstick"]),
            f"{row['times_the_time']:.2f}",
            f"{row['times_faster']:.1f}",
            str(row["target"]),
        ]
        for row in rows
    ]
    columns = ["what", "case", "ms", "yardstick", "times the time", "times faster", "target"]
    Console(width=150).print(terminal.grid(columns, shown, right=2))


if __name__ == "__main__":
    main(sys.argv[1:])
