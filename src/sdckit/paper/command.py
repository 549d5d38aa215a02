"""The command `sdckit paper`: run the study and write its tables, figures and page into a folder."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sdckit.core import checks
from sdckit.io import datasets
from sdckit.io.atomic import check_folder, fill_folder
from sdckit.paper import page, risks, study
from sdckit.paper.design import SEED
from sdckit.progress import track

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sdckit.metrics.original import Original

MARK = "made-by-sdckit-paper.txt"
REPEATS = "sdckit paper replaces these files each time it runs; private/ holds finished work."
PRIVATE = "private"
NOTE = ("tarragona", "census")  # the note's own data sets


def check_arguments(data: Sequence[str], formats: Sequence[str]) -> None:
    """Raise ValueError for unknown data sets, more than two of them, or unknown picture formats."""
    for name in data:
        checks.one_of("data set", name, ["sample", *datasets.DATASETS])
    if not 1 <= len(dict.fromkeys(data)) <= len(NOTE):
        known = ", ".join(["sample", *datasets.DATASETS])
        raise ValueError(f"{len(data)} data sets named; give one or two of: {known}")
    for form in formats:
        checks.one_of("format", form, page.FORMATS)


def run(
    folder: Path,
    *,
    data: Sequence[str] = NOTE,
    replications: int = 30,
    formats: Sequence[str] = ("svg",),
    seed: int | None = None,
    workers: int | None = None,
    overwrite: bool = False,
) -> list[str]:
    """Measure, draw and write the study into a folder; return the lines to print."""
    check_arguments(data, formats)
    check_folder(folder, MARK)
    originals = _load_with_hint(list(dict.fromkeys(data)))
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MARK).exists():
        (folder / MARK).write_text(REPEATS, encoding="utf-8")
    seed = SEED if seed is None else seed
    began = time.monotonic()
    options: dict[str, Any] = {
        "replications": replications,
        "seed": seed,
        "workers": workers,
        "folder": folder / PRIVATE,
        "overwrite": overwrite,
    }
    with track("the study", 10.0) as report:
        report(0.0, 5.0)
        losses = study.run_study(originals, **options)
        report(5.0, 4.0, "the attacks")
        measured = replace(losses, risks=risks.run_attacks(originals, **options))
        seconds = time.monotonic() - began
        found = page.Results(measured, seed)
        report(9.0, 1.0, "drawing")
        with fill_folder(folder, MARK, REPEATS) as draft:
            page.write_folder(found, draft, tuple(formats))
    return page.summary_lines(found, folder, seconds)


def _load_with_hint(names: Sequence[str]) -> dict[str, Original]:
    """Load and prepare data sets by name; errors name the bundled data as a remedy."""
    try:
        return study.load_data_sets(names)
    except (OSError, ValueError) as error:
        raise type(error)(f"{error}; pass data=['sample'] to run the study on bundled data") from error
