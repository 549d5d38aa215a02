"""The main job on the bundled sample: four maskings, their measured loss, the files in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit import datasets, files, folders, terminal, ties
from sdckit.evaluation import Evaluation, evaluate
from sdckit.masking import mask
from sdckit.registry import METRICS

if TYPE_CHECKING:
    from pathlib import Path

MASKINGS: dict[str, dict[str, Any]] = {
    "mdav": {"k": 5},
    "noise": {"percent": 20},
    "correlated_noise": {"percent": 20},
    "rank_swap": {"p": 0.05},
}
MARK = "made-by-sdckit-demo.txt"
REPEATS = "sdckit demo writes these files anew each time it runs."
SEED = 20  # the sample is synthetic and public; a real release takes no published seed


def run(folder: Path, *, quiet: bool = False) -> dict[str, Evaluation]:
    """Mask the sample, measure, print and write; the folder is filled when all went well."""
    folders.check(folder, MARK)
    original = datasets.load_sample()
    variables = [name for name in original.columns if name not in {"firm", "sector", "weight"}]
    with folders.filled(folder, MARK, REPEATS) as draft:
        files.write(draft / "original.csv", original)
        results: dict[str, Evaluation] = {}
        for method, parameters in MASKINGS.items():
            masked = mask(original, method, columns=variables, rng=SEED, decimals="original", **parameters)
            file = draft / f"masked-{method}.csv"
            files.write(file, masked)
            results[method] = evaluate(original, files.read(file).frame, columns=variables)
        files.write(draft / "losses.csv", _losses(results))
    if not quiet:
        _show(folder, original.height, len(variables), results)
    return results


def _losses(results: dict[str, Evaluation]) -> pl.DataFrame:
    return pl.concat(
        result.table.select(
            pl.lit(method).alias("method"), pl.lit(_setting(method)).alias("parameters"), pl.all()
        )
        for method, result in results.items()
    )


def _setting(method: str) -> str:
    return ", ".join(f"{name}={value}" for name, value in MASKINGS[method].items())


def _show(folder: Path, records: int, variables: int, results: dict[str, Evaluation]) -> None:
    metrics = next(iter(results.values())).summary["metric"].to_list()
    rows = [
        [method, _setting(method), *(terminal.number(result[metric]) for metric in metrics)]
        for method, result in results.items()
    ]
    levels = dict(zip(("brmae", "brmse"), ties.untied_level(records), strict=True))
    rows.append(["unrelated order", "", *(terminal.number(levels.get(metric)) for metric in metrics)])
    terminal.say(f"A synthetic business survey: {records} firms, {variables} variables, masked in four ways.")
    terminal.console().print(terminal.grid(["method", "parameters", *metrics], rows, right=2))
    bounded = " and ".join(name for name in metrics if METRICS[name].bounded)
    best = min(results, key=lambda method: results[method]["brmae"])
    meaning = results[best].meaning["brmae"].split(";")[0]
    terminal.say(f"""\
{bounded}: from 0 (every variable keeps its order) to 1 (as far from it as can be).
The last line is what an unrelated order scores where no values are equal; ties lower it.
The other losses have no upper end.
Least change of order: {best} ({_setting(best)}):
{meaning}.
Loss is one half of the choice: a masking that changes little may protect little.

Masked files and all figures per variable: {folder}/""")
