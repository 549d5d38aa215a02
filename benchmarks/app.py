"""The page in the browser: CPU time from a click on a point of the map to its panel, rendered."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import sdckit as sdc
from maskings import sorted_columns, table
from sdckit.app.opened_job import open_job
from sdckit.app.panel import make_panel
from sdckit.core.randomness import fresh_entropy
from sdckit.job.read import check_job
from timing import Row, row, seconds

if TYPE_CHECKING:
    from sdckit.app.opened_job import OpenedJob

ROWS, COLUMNS, CLICKS = 10_000, 8, 10
SETTINGS: dict[str, dict[str, Any]] = {"mdav": {"k": 10}, "noise": {"percent": 20}}


def opened_table() -> OpenedJob:
    """A job on a file of skewed amounts, with a limit on the risk."""
    amounts = np.exp(5 + table(ROWS, COLUMNS)).round(1)
    with tempfile.TemporaryDirectory() as folder:
        pl.DataFrame(amounts, schema=[f"x{j + 1}" for j in range(COLUMNS)]).write_csv(f"{folder}/data.csv")
        content = {
            "command": "recommend",
            "input": {"data": "data.csv"},
            "search": {"max_risk": {"linkage": 0.1}},
            "output": {"output": "masked.csv"},
        }
        return open_job(check_job(content, Path(folder)))


def rows() -> list[Row]:
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
            lambda made=made: sdc.evaluate(original, made.data, rows=made.rows, disclosure=made),
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
