"""The command `demo`: sweep, recommend, release and report on the bundled sample."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

from sdckit import terminal
from sdckit.cli import show
from sdckit.core.scenarios import SURE
from sdckit.core.text import number
from sdckit.io import datasets, files
from sdckit.io.atomic import check_folder, fill_folder, sha256_of
from sdckit.metrics.original import Original
from sdckit.metrics.pair import pair_of
from sdckit.record.publish import Origin, ReleaseFile, publish
from sdckit.record.store import Store
from sdckit.report import build
from sdckit.report.signing import summary_of
from sdckit.selection.microdata import Microdata
from sdckit.selection.release import make_release

if TYPE_CHECKING:
    from pathlib import Path

    from sdckit.evaluation.result import Evaluation
    from sdckit.selection.choice import Choice
    from sdckit.selection.release import Release, ReleasePlan
    from sdckit.selection.sweep_result import Sweep

PLAN: dict[str, dict[str, Any]] = {
    "mdav": {"k": [3, 5, 10, 15, 20]},
    "noise": {"percent": [10, 25, 50, 100, 150]},
    "correlated_noise": {"percent": [10, 25, 50, 100, 150]},
    "rank_noise": {"a": [0.05, 0.1, 0.2, 0.3, 0.5]},
}
LIMITS = {"linkage": 0.1, "linkage_outliers": 0.3}
MINIMISE = "brmae"
PRIVATE = "private"  # folder of the private record
MARK = "made-by-sdckit-demo.txt"
REPEATS = "sdckit demo replaces these files each time it runs."
# The identifier is not published; weights are, and are the same in a sector; each sector is masked by itself.
ROLES: dict[str, Any] = {"key": "firm", "by": "sector", "untouched": "weight"}
SEED = 20  # of the sweep
ENTROPY = b"public, for the sample is synthetic"  # that of a real release is secret


def run_demo(folder: Path, *, quiet: bool = False) -> Choice:
    """Mask the sample with 20 settings, choose one, release and report; on an error no file is left."""
    check_folder(folder, MARK)
    original = datasets.load_sample()
    prepared = Original.of(original, **ROLES)
    variables = prepared.columns
    found = Microdata(prepared, name="sample").sweep(PLAN, rng=SEED)
    choice = found.recommend(LIMITS, MINIMISE)
    choice.require_met()
    plan = choice.release_plan(per_record=True)
    with fill_folder(folder, MARK, REPEATS) as draft:
        files.write(draft / "original.csv", original)
        files.write(draft / "sweep.csv", found.table)
        made = _release(plan, prepared, draft)
        pair = pair_of(prepared, made.data, rows=made.rows)
        pair.disclose(made.disclosure)
        page = build.report_on_sweep(
            found,
            name="the sample",
            choice=choice,
            release=made.evaluation,
            pair=pair,
            summary=summary_of(
                pair, made.evaluation, file="masked.csv", sha256=sha256_of(draft / "masked.csv")
            ),
            facts={"draws of the release": str(made.draws), "variables": ", ".join(variables)},
        )
        build.write_page(draft / "report.html", page, overwrite=False)
        shutil.rmtree(folder / PRIVATE, ignore_errors=True)  # the record of an earlier demo
    if not quiet:
        _print_summary(folder, found, choice, made.evaluation, original.height, len(variables))
    return choice


def _release(plan: ReleasePlan, prepared: Original, draft: Path) -> Release[Any]:
    """Write the masked file into a folder, with its private record in a subfolder; return the release."""
    store = Store.at(draft / PRIVATE)
    store.check()
    origin = Origin(store, "demo", "original.csv", sha256_of(draft / "original.csv"))
    write = partial(publish, ReleaseFile(draft / "masked.csv"), origin=origin)
    release, _ = make_release(plan, prepared, entropy=ENTROPY, hand_out=write)
    return release


def _print_summary(
    folder: Path, found: Sweep, choice: Choice, result: Evaluation, records: int, variables: int
) -> None:
    """Print the safe settings, the recommendation, and the measures of the released file."""
    terminal.print_note(
        f"A synthetic business survey: {records} firms, {variables} variables, {found.files} masked files."
    )
    rows = [
        [
            point.method,
            point.parameters,
            *(number(point.values[name]) for name in (MINIMISE, *LIMITS, SURE)),
        ]
        for point in choice.safe
    ]
    columns = [
        "weakest safe setting",
        "parameters",
        "loss (brmae)",
        "risk (linkage)",
        "risk of outliers",
        "sure links",
    ]
    terminal.print_tables([terminal.table_of(columns, rows, right=2)])
    first, *others = choice.sentences
    for line in [first, *show.exposed_lines(result, {"n": records}), *others]:
        terminal.print_note(line)
    text = f"""
The released file itself, masked.csv, was measured:
- loss: {result.meaning[MINIMISE].split(";")[0]};
- suppressed cells: {result.meaning["suppressed"]};
- risk: {result.meaning["linkage"].split(": ", 1)[1].split(";")[0]}.
{chr(10).join(show.knowledge_lines(result.knowledge))}

Report, with the map of all maskings: {folder / "report.html"}
Private record, to make masked.csv again: {folder / PRIVATE}"""
    for line in text.split("\n"):
        terminal.print_note(line)
