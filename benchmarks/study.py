"""The note's study, masked file by masked file: what one costs, and all 54,060 of them."""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING

import sdckit as sdc
from sdckit.masking import apply
from sdckit.paper import study
from sdckit.paper.correlations import BOUNDED, UNBOUNDED
from sdckit.paper.design import NOTE_METHODS, STUDY_METHODS
from sdckit.selection.plan import settings_of
from timing import Row, row

if TYPE_CHECKING:
    from sdckit.metrics.original import Original

SIX = (*(f"{metric}_first" for metric in BOUNDED), *UNBOUNDED)  # the note's metrics
R_MS = 12.0  # CPU time of R's sdcMicro for a file, masking and metrics, as measured elsewhere
ONE_BY_ONE = 30  # files for the yardstick


def cpu_seconds() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def one_by_one(original: Original, label: str) -> float:
    """CPU seconds for a file with the public functions, each call preparing everything anew."""
    study_method = STUDY_METHODS[label]
    settings = settings_of({study_method.method: study_method.grid})
    table = original.values.copy()
    began = time.process_time()
    for setting in settings[:: max(len(settings) // ONE_BY_ONE, 1)]:
        masked = sdc.mask(table, study_method.method, rng=1, **setting.options)
        for metric in (sdc.brmae, sdc.brmse):
            metric(table, masked, ties="first")
        for metric in (sdc.mae, sdc.mse, sdc.il1s):
            metric(table, masked)
        sdc.il1(table, masked, zeros="drop")
    return (time.process_time() - began) / len(settings[:: max(len(settings) // ONE_BY_ONE, 1)])


def in_a_sweep(name: str, original: Original, label: str) -> tuple[int, float]:
    """Number of files and CPU seconds for each, on one core."""
    began = time.process_time()
    found = study.measure_losses(original, [label], name=name, replications=5, workers=1, metrics=SIX)
    return found.height, (time.process_time() - began) / found.height


def rows() -> list[Row]:
    data = study.load_data_sets(["tarragona", "census"])
    found = []
    for name, original in data.items():
        case = f"{name}, {original.n} x {len(original.columns)}"
        apply(sdc.METHODS["mdav"], original.values, {"k": 3}, None)  # type: ignore[arg-type]
        study.measure_losses(
            original, list(NOTE_METHODS), name=name, replications=1, workers=1, metrics=SIX
        )  # warm up
        for label in NOTE_METHODS:
            files, spent = in_a_sweep(name, original, label)
            slow = one_by_one(original, label)
            what = f"{label}: {spent * 1e6:.0f} us, {R_MS / spent / 1e3:.0f} x below R"
            found.append(row(what, f"{case}, {files} files", spent, "mask and six metrics one by one", slow))
    return [*found, whole(data)]


def whole(data: dict[str, Original]) -> Row:
    """All files with 30 replications on all cores."""
    began, cpu = time.perf_counter(), cpu_seconds()
    files = sum(
        study.measure_losses(original, list(NOTE_METHODS), name=name, replications=30, metrics=SIX).height
        for name, original in data.items()
    )
    wall, cpu = time.perf_counter() - began, cpu_seconds() - cpu
    what = f"{files} files: {wall:.1f} s, {cpu / files * 1e6:.0f} us CPU a file"
    return row(what, "the whole study", cpu / files, "R, 12 ms CPU a file", R_MS / 1e3, "90 s; 20 x faster")
