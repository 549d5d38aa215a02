"""Try recodings of known columns that are not masked, one by one and in a row, and measure the floor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from sdckit.core.classes import Uniques, cell_numbers, class_numbers, uniques_of
from sdckit.core.proposals import propose_recodings
from sdckit.core.recode import Recoding, recode_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sdckit.core.guesses import Guess
    from sdckit.core.roles import Roles
    from sdckit.core.table import Table
    from sdckit.core.uniques import Floor
    from sdckit.kernels.jit import Ints

WORTH = 0.9  # largest ratio of the floor after a recoding to the floor before it ...
WORTH_ALONE = 0.5  # ... or of the floor by the column alone, which counts where many columns single out
LOW = 0.05  # floor at which the steps down end
FIGURES = ("uniques_before", "uniques_after", "floor_before", "floor_after", "alone_before", "alone_after")
STEP = {"option": pl.String, "value": pl.String, "uniques": pl.Float64, "floor": pl.Float64}


class Trial(NamedTuple):
    """A recoding, the number of each recoded cell, and the uniques of that column and of the file with it."""

    way: Recoding
    numbers: Ints
    alone: Uniques
    together: Uniques

    @property
    def text(self) -> str:
        """The recoding as the command line takes it, such as age=5."""
        return f"{self.way.column}={self.way}"


def try_recodings(
    table: Table, guesses: Mapping[str, Guess], roles: Roles, others: Mapping[str, Ints], floor: Floor
) -> list[Trial]:
    """Return recodings that lower the floor of the file or of their column by much, best first.

    `others` has, for each known untouched column, the classes of all the other ones.
    """
    found = []
    for name in floor.columns:
        if name not in roles.columns_with("recode"):
            ways = propose_recodings(
                name, table.column(name), guesses[name], roles.na, weights=name == roles.weights
            )
            for trial in _trials(table, ways, roles.na, others[name]):
                lower = trial.together.floor <= WORTH * floor.floor
                if lower or trial.alone.floor <= WORTH_ALONE * floor.alone[name].floor:
                    found.append(trial)
    return sorted(found, key=lambda one: (one.together.floor, one.alone.floor))


def _trials(table: Table, ways: Sequence[Recoding], na: Sequence[float], others: Ints) -> Iterator[Trial]:
    """Yield those of the recodings that fit their column and leave more than one value."""
    for way in ways:
        try:
            numbers = cell_numbers(recode_column(table.column(way.column), way, na))
        except (TypeError, ValueError):  # it does not fit
            continue
        if numbers.min() < numbers.max():
            both = class_numbers([others, numbers], table.n)
            yield Trial(way, numbers, uniques_of(class_numbers([numbers], table.n)), uniques_of(both))


def recodings_table(trials: Sequence[Trial], floor: Floor) -> pl.DataFrame:
    """Return the recodings with uniques and floor of the file, and floor of the column, before and after."""
    rows = []
    for trial in trials:
        name = trial.way.column
        after, alone = trial.together, (floor.alone[name].floor, trial.alone.floor)
        figures = (floor.share, after.share, floor.floor, after.floor, *alone)
        rows.append({"column": name, "recode": str(trial.way)} | dict(zip(FIGURES, figures, strict=True)))
    return pl.DataFrame(rows, {"column": pl.String, "recode": pl.String} | dict.fromkeys(FIGURES, pl.Float64))


def steps_down(numbers: Mapping[str, Ints], trials: Sequence[Trial], floor: Floor, n: int) -> pl.DataFrame:
    """Return steps after each of which the floor is lower, until it is 0.05: recode columns, then drop some.

    The column that singles out most by itself comes first. Each row has option and value as the command line
    takes them, and uniques and floor after all steps so far.
    """
    best: dict[str, Trial] = {}
    for trial in sorted(trials, key=lambda one: one.alone.floor):
        best.setdefault(trial.way.column, trial)
    order = sorted(best, key=lambda name: -floor.alone[name].floor)
    now, rows = dict(numbers), []
    left = floor.floor
    for name, after in zip(order, _after_recoding(numbers, best, order, n), strict=True):
        if left <= LOW:
            break
        now[name], left = best[name].numbers, after.floor
        rows.append(
            {"option": "recode", "value": best[name].text, "uniques": after.share, "floor": after.floor}
        )
    if left > LOW:
        rows += _drop_steps(now, n)
    return pl.DataFrame(rows, STEP)


def lowered_options(options: Mapping[str, Sequence[str]], steps: pl.DataFrame) -> dict[str, list[str]]:
    """Return the options that give roles after all steps down; dropped columns have no other role."""
    dropped = steps.filter(option="drop")["value"].to_list()
    recoded = steps.filter(option="recode")["value"].to_list()
    found = {name: list(names) for name, names in options.items()}
    found["recode"] = [*found.get("recode", ()), *recoded]
    changed = {text.rpartition("=")[0] for text in found["recode"]}
    found["recode"] = [text for text in found["recode"] if text.rpartition("=")[0] not in dropped]
    for name in ("untouched", "known", "unknown", "confidential", "weights", "by"):
        gone = {*dropped, *(changed if name == "untouched" else ())}
        found[name] = [column for column in found.get(name, ()) if column not in gone]
    found["drop"] = [*found.get("drop", ()), *dropped]
    return {name: names for name, names in found.items() if names}


def _step(option: str, value: str, after: Uniques) -> dict[str, Any]:
    """Return a row of the steps down: the option, its value, and the figures after it."""
    return {"option": option, "value": value, "uniques": after.share, "floor": after.floor}


def _after_recoding(
    numbers: Mapping[str, Ints], best: Mapping[str, Trial], order: Sequence[str], n: int
) -> Iterator[Uniques]:
    """Yield the uniques of the file after each of the recodings, made one after the other."""
    rest = [class_numbers((one for name, one in numbers.items() if name not in best), n)]
    for name in reversed(order[1:]):
        rest.append(class_numbers([rest[-1], numbers[name]], n))
    done = class_numbers([], n)
    for name, others in zip(order, reversed(rest), strict=False):
        done = class_numbers([done, best[name].numbers], n)
        yield uniques_of(class_numbers([done, others], n))


def _drop_steps(numbers: Mapping[str, Ints], n: int) -> list[dict[str, Any]]:
    """Return the columns to drop until the floor is low, with uniques and floor after each."""
    alone = {name: uniques_of(class_numbers([one], n)).floor for name, one in numbers.items()}
    order = sorted(numbers, key=lambda name: alone[name])
    rest = class_numbers([], n)
    rows: list[dict[str, Any]] = []
    for name in order:  # from the last column to be dropped to the first
        rows.append(_step("drop", name, uniques_of(rest)))
        rest = class_numbers([rest, numbers[name]], n)
    rows.reverse()
    enough = next((place for place, row in enumerate(rows) if row["floor"] <= LOW), len(rows) - 1)
    return rows[: enough + 1]
