"""From the words of a command line to checked arguments of the library, before any work."""

from __future__ import annotations

import csv
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit import checks, doubts, frames, outputs, ties
from sdckit.evaluation import Evaluation, evaluate
from sdckit.files import Dialect, Source
from sdckit.loss.rankmeans import rank_table
from sdckit.pairs import Original, prepare

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from sdckit.compiled import Floats


@dataclass(frozen=True)
class Asked:
    """What the options shared by `mask` and `evaluate` ask for."""

    columns: list[str] | None
    key: list[str]
    weights: str | None
    by: list[str]
    na: list[str] | None
    metrics: list[str] | None
    ties: str
    missing: str
    seed: int | None
    dialect: Dialect

    @property
    def roles(self) -> list[str]:
        """The columns that are neither masked nor measured."""
        return [*self.key, *self.by, *([self.weights] if self.weights else [])]

    @property
    def how(self) -> dict[str, Any]:
        """The options of `evaluate` that say how to measure."""
        return {"metrics": self.metrics, "ties": self.ties, "missing": self.missing, "rng": self.seed}

    @property
    def who(self) -> dict[str, Any]:
        """The options that say which column plays which role."""
        return {
            "columns": self.columns,
            "key": self.key or None,
            "weights": self.weights,
            "by": self.by or None,
            "na": self.na,
        }

    def prepared(self, source: Source) -> Original:
        """The original of a masking, with every role checked."""
        frame = source.frame
        checks.at_least_two(frame.height)
        self.warn_of_text(source, "masked")
        checks.known_columns(self.roles, frame.columns)
        checks.apart(self.columns, self.roles)
        if self.key:
            unique = frame.select(self.key).n_unique()
            checks.unique_keys(unique, frame.height, ", ".join(self.key), "original")
        columns = frames.Table(frame).numeric(self.columns, leave_out=self.roles)
        original = prepare(frame, columns=columns, weights=self.weights, na=self.na)
        if self.columns is None:
            frames.warn_about_roles(frames.Table(frame), columns, original.values)
        return original

    def warn_of_text(self, source: Source, done: str) -> None:
        """Name the text columns that are numeric but for a few words; refuse those that were asked for."""
        for name, (reason, remedy) in doubts.text_numbers(source, skip=self.roles).items():
            fact = f"column {name!r} is read as text because {reason}"
            if self.columns is None:
                warnings.warn(f"{fact} and is not {done}; {remedy}", stacklevel=2)
            elif name in self.columns:
                raise ValueError(f"{fact}; {remedy}")

    def measure(self, ours: pl.DataFrame, theirs: pl.DataFrame, *, per_record: bool) -> Evaluation:
        """Compare two files."""
        return evaluate(ours, like(theirs, ours), **self.how, **self.who, per_record=per_record)

    def records(self, result: Evaluation, ours: pl.DataFrame) -> pl.DataFrame:
        """Each record's losses beside its key, or its number where there is none."""
        shares = pl.DataFrame() if result.records is None else result.records
        if self.key:
            return pl.concat([ours.select(self.key), shares], how="horizontal")
        return shares.with_row_index("record", offset=1)

    def ranks(self, result: Evaluation, ours: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
        """All about the ranks of the variables that were measured; weights play no part."""
        columns = [name for name in result.table["variable"].unique(maintain_order=True) if name != "all"]
        return rank_table(ours, like(theirs, ours), columns=columns, key=self.key or None, na=self.na)

    def measure_release(self, original: Original, written: pl.DataFrame) -> Evaluation:
        """Compare a file just written with what it was made from: row by row, whatever the key."""
        return evaluate(original, written, **self.how, by=self.by or None)


def understood(given: dict[str, Any]) -> Asked:
    """Check everything that needs no data."""
    if given["as_json"] and given["as_csv"]:
        raise ValueError("--json and --csv exclude each other; give one of them")
    asked = Asked(
        columns=names(given["columns"]),
        key=names(given["key"]) or [],
        weights=given["weights"],
        by=names(given["by"]) or [],
        na=[code for code in given["na"] if _is_number(code)] or None,
        metrics=names(given["metrics"]),
        ties=checks.one_of("rule for ties", given["ties"], ties.TIES),
        missing=checks.one_of("rule for missing cells", given["missing"], checks.MISSING),
        seed=given["seed"],
        dialect=Dialect(
            given["delimiter"], given["decimal_comma"], given["encoding"], missing=tuple(given["na"])
        ),
    )
    chosen = checks.metrics_named(asked.metrics)
    if asked.missing == "penalise" and not any(metric.bounded for metric in chosen):
        raise ValueError(
            f"none of the metrics {', '.join(metric.name for metric in chosen)} has a largest value, so that "
            "missing cells have no penalty; add brmae or brmse, or use --missing pairwise"
        )
    checks.no_weights_with(asked.ties, asked.weights)
    checks.generator(asked.seed)
    return asked


def names(text: str | None) -> list[str] | None:
    """Split a list of names; a name with a comma goes into quotation marks."""
    if text is None:
        return None
    found = next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in found if name.strip()]


def settings(words: Sequence[str]) -> dict[str, str]:
    """Read the parameters of a method, NAME=VALUE each."""
    found: dict[str, str] = {}
    for word in words:
        name, _, value = (part.strip() for part in word.partition("="))
        if not name or not value:
            raise ValueError(f"--set {word!r} has no name or no value; write NAME=VALUE, such as k=5")
        if name in found:
            raise ValueError(f"--set gives {name!r} twice; give it once")
        found[name] = value
    return found


def check_output(output: Path, inputs: Iterable[Path], *, overwrite: bool) -> None:
    """Refuse an output that could not be written, or that is an input."""
    for data in inputs:
        if data.exists() and output.exists() and data.samefile(output):
            raise ValueError(f"'{output}' is the input file, which is never changed; choose another output")
    outputs.check_target(output, overwrite)


def like(theirs: pl.DataFrame, ours: pl.DataFrame) -> pl.DataFrame:
    """Read a column without any value as numbers where the original has numbers."""
    empty = [
        column.name
        for column in theirs
        if column.name in ours.columns
        and ours[column.name].dtype.is_numeric()
        and column.null_count() == theirs.height
    ]
    return theirs.with_columns(pl.col(empty).cast(pl.Float64))


def untouched(original: Original, written: Floats) -> str:
    """Count the cells that are as in the original; warn of columns that are so from top to bottom."""
    same = (original.values == written).sum(axis=0)
    cells = (~original.missing).sum(axis=0)
    idle = [name for name, s, n in zip(original.columns, same, cells, strict=True) if n and s == n]
    if idle:
        listed = ", ".join(repr(name) for name in idle)
        warnings.warn(f"not masked, every value is as in the original: {listed}", stacklevel=2)
    columns = f"{len(cells)} masked column{'s' * (len(cells) != 1)}"
    return f"{same.sum()} of {cells.sum()} cells in {columns} are as in the original"


def _is_number(code: str) -> bool:
    try:
        return math.isfinite(float(code))
    except ValueError:
        return False
