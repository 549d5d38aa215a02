"""The main job on the bundled sample: four maskings, their measured loss, the files in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit import datasets, files, outputs, terminal
from sdckit.evaluation import Evaluation, evaluate
from sdckit.masking import mask

if TYPE_CHECKING:
    from pathlib import Path

MASKINGS: dict[str, dict[str, Any]] = {
    "mdav": {"k": 5},
    "noise": {"percent": 20},
    "correlated_noise": {"percent": 20},
    "rank_swap": {"p": 0.05},
}
MARK = "made-by-sdckit-demo.txt"
SEED = 20  # the sample is synthetic and public; a real release takes no published seed


def run(folder: Path, *, quiet: bool = False) -> dict[str, Evaluation]:
    """Mask the sample, measure, print and write."""
    _claim(folder)
    original = datasets.load_sample()
    variables = [name for name in original.columns if name not in {"firm", "sector", "weight"}]
    files.write(folder / "original.csv", original, overwrite=True)
    results: dict[str, Evaluation] = {}
    for method, parameters in MASKINGS.items():
        masked = mask(original, method, columns=variables, rng=SEED, decimals="original", **parameters)
        file = folder / f"masked-{method}.csv"
        files.write(file, masked, overwrite=True)
        results[method] = evaluate(original, files.read(file).frame, columns=variables)
    tables = [
        result.table.select(
            pl.lit(method).alias("method"), pl.lit(_setting(method)).alias("parameters"), pl.all()
        )
        for method, result in results.items()
    ]
    files.write(folder / "losses.csv", pl.concat(tables), overwrite=True)
    if not quiet:
        _show(folder, original.height, len(variables), results)
    return results


def _claim(folder: Path) -> None:
    """Take an empty or new folder, or one that an earlier demo made; never anybody else's."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"'{folder}' is a file; choose another folder with -o")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise FileExistsError(f"folder '{folder}' holds other files; choose another one with -o")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise OSError(f"could not make folder '{folder}': {reason}; choose another one with -o") from error
    outputs.write_text(
        folder / MARK, "sdckit demo writes this folder anew each time it runs.\n", overwrite=True
    )


def _setting(method: str) -> str:
    return ", ".join(f"{name}={value}" for name, value in MASKINGS[method].items())


def _show(folder: Path, records: int, variables: int, results: dict[str, Evaluation]) -> None:
    metrics = next(iter(results.values())).summary["metric"].to_list()
    rows = [
        [method, _setting(method), *(terminal.number(result[metric]) for metric in metrics)]
        for method, result in results.items()
    ]
    level = next(iter(results.values())).summary["random"]
    rows.append(["unrelated order", "", *(terminal.number(value) for value in level)])
    screen = terminal.console()
    screen.print(
        f"A synthetic business survey: {records} firms, {variables} variables, masked in four ways.\n"
    )
    screen.print(terminal.grid(["method", "parameters", *metrics], rows, right=2))
    best = min(results, key=lambda method: results[method]["brmae"])
    meaning = results[best].meaning["brmae"]
    for line in (
        "brmae and brmse lie between 0 (every variable keeps its order) and 1 (as far from it as possible);",
        "the last line is what an unrelated order would score. The other four have no largest value.",
        f"Least change of order here: {best} ({_setting(best)}): {meaning}.",
        "Loss is one half of the choice: a masking that changes little may protect little.",
        f"\nMasked files and all figures per variable: {folder}/",
    ):
        screen.print(line, markup=False)
