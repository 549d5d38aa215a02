"""All benchmarks: `python benchmarks/run.py [name ...]` prints a table and updates results.csv beside it."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from sdckit.cli import terminal
from sdckit.core import checks

if TYPE_CHECKING:
    from timing import Row

BENCHMARKS = (
    "rank_distance",
    "rank_swapping",
    "mdav",
    "maskings",
    "secret_draws",
    "linkage",
    "candidates",
    "sampled_search",
    "estimates",
    "study",
    "app",
)


RESULTS = Path(__file__).with_name("results.csv")


def updated(results: Path, fresh: list[Row]) -> pl.DataFrame:
    """What the file holds, the benchmarks that ran now in place of their earlier rows."""
    table = pl.DataFrame(fresh)
    before = pl.read_csv(results) if results.exists() else table.clear()
    if before.columns != table.columns:  # of another version of this script
        return table
    before = before.with_columns(pl.col(pl.String).fill_null(""))  # an empty target
    others = before.filter(~pl.col("benchmark").is_in(table["benchmark"].unique().to_list()))
    order = {name: place for place, name in enumerate(BENCHMARKS)}
    place = pl.col("benchmark").replace_strict(order, default=len(order))
    return pl.concat([others, table], how="vertical_relaxed").sort(place, maintain_order=True)


def main(names: list[str]) -> None:
    for name in names:
        checks.one_of("benchmark", name, BENCHMARKS)
    rows: list[Row] = []
    for name in names or BENCHMARKS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += [{"benchmark": name} | found for found in import_module(name).rows()]
    updated(RESULTS, rows).write_csv(RESULTS)
    shown = [
        [
            str(row["what"]),
            str(row["case"]),
            str(row["yardstick"]),
            f"{row['ms']:.3f}",
            f"{row['times_the_time']:.2f}",
            f"{row['times_faster']:.1f}",
            str(row["target"]),
        ]
        for row in rows
    ]
    columns = ["what", "case", "yardstick", "ms", "times the time", "times faster", "target"]
    terminal.print_tables([terminal.table_of(columns, shown, right=3, left=1)])


if __name__ == "__main__":
    main(sys.argv[1:])
