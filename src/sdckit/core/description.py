"""Describe a table: its columns, the roles that they have, and recodings worth trying."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from sdckit.core import cells, notebook
from sdckit.core.cells import Uniques, cell_numbers, class_numbers, uniques_of
from sdckit.core.guesses import guess_columns
from sdckit.core.recode import Recoding, recode_column, recode_columns
from sdckit.core.text import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sdckit.arrays import Ints
    from sdckit.core.guesses import Guess
    from sdckit.core.prepared import PreparedTable
    from sdckit.core.roles import Roles
    from sdckit.core.table import Table


RAISED = 0.01  # rise of the floor from which survey weights are named by themselves


@dataclass(frozen=True)
class Floor:
    """Uniques and floor of the known untouched columns: together, of each alone, and without each.

    No masking of the other columns brings the risk of linkage below `floor`, the mean of 1 / class size.
    """

    columns: tuple[str, ...]
    together: Uniques
    alone: Mapping[str, Uniques]
    without: Mapping[str, Uniques]

    @property
    def share(self) -> float:
        """Share of the records that stand alone on these columns."""
        return self.together.share

    @property
    def floor(self) -> float:
        """Mean of 1 / class size, the least risk of linkage."""
        return self.together.floor

    def raising(self, weights: str | None = None) -> list[str]:
        """Return the columns by how much they raise the floor, most first; survey weights before all."""
        return sorted(
            self.columns,
            key=lambda name: (name != weights, self.without[name].floor, -self.alone[name].floor),
        )


def known_untouched(columns: Iterable[str], roles: Roles) -> list[str]:
    """Return those of a table's columns that are published without masking and known to the intruder."""
    return [name for name in roles.known_columns(roles.published(columns)) if name not in roles.variables]


def others_of(numbers: Sequence[Ints], n: int) -> list[Ints]:
    """Return, for each of the numbered columns, the classes of all the other ones."""
    before = [class_numbers([], n)]
    after = [class_numbers([], n)]
    for one in numbers[:-1]:
        before.append(class_numbers([before[-1], one], n))
    for one in reversed(numbers[1:]):
        after.append(class_numbers([after[-1], one], n))
    return [class_numbers(pair, n) for pair in zip(before, reversed(after), strict=True)] if numbers else []


def floor_of(numbers: Mapping[str, Ints], n: int, others: Sequence[Ints] | None = None) -> Floor:
    """Return the floor of columns given by the number of each cell; `others` are those of `others_of`."""
    rest = others_of(list(numbers.values()), n) if others is None else others
    return Floor(
        tuple(numbers),
        uniques_of(class_numbers(numbers.values(), n)),
        {name: uniques_of(class_numbers([one], n)) for name, one in numbers.items()},
        {name: uniques_of(one) for name, one in zip(numbers, rest, strict=True)},
    )


def floor_of_data(data: PreparedTable, roles: Roles | None = None) -> Floor:
    """Return the floor of prepared data: of its known columns that are not masked, as they are published.

    Other `roles` than those of the data tell what the intruder of a scenario knows.
    """
    named = data.table is not None and data.table.frame is not None
    names = known_untouched(data.table.names, roles or data.roles) if data.table and named else []
    return floor_of({name: cell_numbers(data.published_column(name)) for name in names}, data.n)


def floor_text(columns: Sequence[str], found: Uniques, variables: Sequence[str]) -> str:
    """Return the sentence on what untouched columns give away by themselves, with remedies."""
    if not columns:
        return "no untouched column is published and known, so that the masked columns alone decide the risk"
    word = "columns" if len(columns) > 1 else "column"
    what = f"masking of {shortened(variables)}" if variables else "masking"
    return (
        f"the untouched {word} {', '.join(columns)} alone single{'' if len(columns) > 1 else 's'} out "
        f"{found.share:.0%} of the records; no {what} can bring the risk below {found.floor:.2g}. "
        "Recode or drop them, or declare them unknown"
    )


def weights_text(floor: Floor, weights: str | None) -> str | None:
    """Return the sentence on survey weights that raise the floor; None where they do not."""
    if weights is None or weights not in floor.columns:
        return None
    without = floor.without[weights].floor
    if floor.floor - without < RAISED:
        return None
    return (
        f"the survey weights {weights} alone raise the least possible risk from {without:.2g} to "
        f"{floor.floor:.2g}; round them, drop them or declare them unknown"
    )


RARE = 20  # records of a category below which merging it is proposed
LONG_CODE = 100  # code from which the first digits are taken for coarser classes
BANDS = 12  # bands into which the middle nine tenths of the values are proposed to fall


GIVEN = {  # roles that the user gave, and what they are called
    **{role: role for role in ("key", "unit", "drop", "weights", "by", "untouched")},
    "recode": "untouched",
    "variables": "variable",
}


class Proposal(NamedTuple):
    """The role that a column would get, whether it is decided, and why."""

    role: str
    decided: bool
    reason: str


def propose_roles(guesses: Mapping[str, Guess], asked: Roles) -> dict[str, Proposal]:
    """Return the role of each column: the one asked for, else what its looks suggest."""
    taken = {"unit": asked.unit is not None, "weights": asked.weights is not None, "key": bool(asked.key)}
    found = {}
    for name, guess in guesses.items():
        given = next((word for role, word in GIVEN.items() if name in asked.columns_with(role)), None)
        if given is not None:
            found[name] = Proposal(given, decided=True, reason=f"as asked; {guess.reason}")
            continue
        role = {"code": "untouched", "date": "untouched", "text": "untouched"}.get(guess.role, guess.role)
        if guess.role == "nested" or (guess.role == "text" and guess.near_unique):
            role = "drop"
        if role == "variable" and asked.variables:  # other columns are named to be masked
            role = "untouched"
        if taken.get(role):  # one column has this role already
            role = "drop" if role == "key" else "untouched"
        taken |= {role: True} if role in taken else {}
        reason = f"{guess.reason}; masked unless named" if role == "weights" else guess.reason
        found[name] = Proposal(role, not guess.undecided, reason)
    return found


def roles_with(asked: Roles, proposals: Mapping[str, Proposal]) -> Roles:
    """Return the roles that hold if all proposals are accepted."""
    names: dict[str, list[str]] = {}
    for name, proposal in proposals.items():
        names.setdefault(proposal.role, []).append(name)
    recoded = set(asked.columns_with("recode"))
    return replace(
        asked,
        variables=tuple(names.get("variable", ())),
        key=asked.key or tuple(names.get("key", ())),
        drop=tuple(names.get("drop", ())),
        untouched=tuple(name for name in names.get("untouched", ()) if name not in recoded),
        unit=next(iter(names.get("unit", ())), None),
        weights=next(iter(names.get("weights", ())), None),
    )


def propose_recodings(
    name: str, column: nw.Series[Any], guess: Guess, na: Sequence[float], *, weights: bool
) -> list[Recoding]:
    """Return recodings of a column that may be worth trying, coarser ones last; none for identifiers.

    Survey weights (`weights`) are rounded, other numbers are put into bands: about a twelfth and a fourth of
    their spread.
    """
    if guess.role in {"key", "unit", "nested"}:
        return []
    if guess.role == "date":
        return [Recoding(name, "month"), Recoding(name, "year"), Recoding(name, "year", 10)]
    if guess.role in {"variable", "weights"} and column.dtype.is_numeric():
        values = cells.as_floats(column, na)
        seen = values[~np.isnan(values)]
        if seen.size < 2:
            return []
        low, high = np.quantile(seen, [0.05, 0.95])  # the extremes stay private
        sizes = dict.fromkeys(round_size((high - low) / parts) for parts in (BANDS, BANDS / 3) if high > low)
        return [Recoding(name, "round" if weights else "band", size) for size in sizes]
    rare = [Recoding(name, "rare", RARE)]
    if not column.dtype.is_numeric() or cells.beyond_floats(column):
        return rare
    largest = np.fmax.reduce(cells.as_floats(column, na))  # long codes keep their first digits
    powers = [10.0**power for power in range(1, 16) if 10.0**power <= largest]
    return rare + [Recoding(name, "band", size) for size in powers if largest >= LONG_CODE]


def round_size(size: float) -> float:
    """Return the nearest of 1, 2, 5, 10, 20, 50 ... and of 0.1, 0.2, 0.5 ... to a positive number."""
    power = 10.0 ** math.floor(math.log10(size))
    digit = min((1, 2, 5, 10), key=lambda d: abs(math.log(size / power / d)))
    return float(f"{digit * power:.1g}")


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
        rows.append(_step("recode", best[name].text, after))
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


TYPES = {
    nw.Boolean: "true/false",
    nw.Date: "date",
    nw.Datetime: "date and time",
    nw.Time: "time",
    nw.Duration: "duration",
    nw.String: "text",
    nw.Object: "objects",
    nw.Unknown: "objects",
}
OPTIONS = ("key", "unit", "weights", "untouched", "drop")  # in the order of the line that accepts proposals
CAPTIONS = (  # of the columns, the recodings and the steps
    "columns; floor_alone: linkage that an untouched column gives by itself; floor_without: all other ones",
    "recodings of one column, and the uniques and the floor before and after each",
    "recode or drop one after the other, until the floor is low",
)


@dataclass(frozen=True)
class Description:
    """Columns of a table, the roles they would get, and what those published unmasked give away.

    `table` has one row per column: type, missing cells, distinct values, values that occur once, role,
    whether the role is decided (else somebody has to name it before a release), the reason, and, for known
    columns that are not masked, the floor of the risk by that column alone and without it. `recodings` has
    recodings worth trying, with uniques and floor of the file, and the floor by the column alone, before and
    after; `steps` has a way to a floor of 0.05 by recoding and dropping one column after the other.

    `uniques` is the share of the records that stand alone on the known untouched columns, `floor` the mean of
    1 / class size: no masking of the other columns brings the risk of linkage below it. `options` has the
    roles, given and proposed, by option, `notes` has sentences on all this. No cell is part of a description.
    """

    table: pl.DataFrame
    recodings: pl.DataFrame
    steps: pl.DataFrame
    uniques: float
    floor: float
    options: dict[str, list[str]]
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        """Return the tables and the notes as text."""
        with pl.Config(
            tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=80, tbl_width_chars=160, tbl_hide_dataframe_shape=True
        ):
            lines = [line for caption, table in self._tables() for line in (caption, str(table))]
            return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        """Return what `print` shows, for notebooks."""
        parts = [
            part
            for caption, table in self._tables()
            for part in (notebook.paragraphs([caption]), notebook.frame_table(table))
        ]
        return notebook.block(*parts, notebook.paragraphs(self.notes))

    def _tables(self) -> list[tuple[str, pl.DataFrame]]:
        """Return captions and tables: the columns and, where there are any, the recodings and the steps."""
        tables = zip(CAPTIONS, (self.table, self.recodings, self.steps), strict=True)
        return [(caption, table) for caption, table in tables if table.height]

    def to_dict(self) -> dict[str, Any]:
        """Return the description as a JSON-ready dict."""
        return {
            "columns": self.table.rows(named=True),
            "recodings": self.recodings.rows(named=True),
            "steps": self.steps.rows(named=True),
            "uniques": self.uniques,
            "floor": self.floor,
            "options": self.options,
            "notes": list(self.notes),
        }


def describe_table(table: Table, asked: Roles, labelled: Sequence[str] = ()) -> Description:
    """Return the description of a table; every value of a column in `labelled` has a label."""
    if table.frame is None:
        raise TypeError("an array has no named columns to describe; give a dataframe instead")
    guesses = guess_columns(table, labelled=labelled, na=asked.na)
    proposals = propose_roles(guesses, asked)
    roles = roles_with(asked, proposals)
    recoded = recode_columns(table, asked.recode, asked.na)
    numbers = {
        name: cell_numbers(recoded.get(name, table.column(name)))
        for name in known_untouched(table.names, roles)
    }
    others = others_of(list(numbers.values()), table.n)
    floor = floor_of(numbers, table.n, others)
    rest = dict(zip(numbers, others, strict=True))
    trials = try_recodings(table, guesses, roles, rest, floor)
    rows = [_row(table, name, proposals[name], floor, roles.na) for name in table.names]
    return Description(
        pl.DataFrame(rows, infer_schema_length=None),  # floors may begin late in a wide file
        recodings_table(trials, floor),
        steps_down(numbers, trials, floor, table.n),
        floor.share,
        floor.floor,
        _accepting_options(proposals, asked),
        tuple(_notes(floor, roles, proposals)),
    )


def _row(table: Table, name: str, proposal: Proposal, floor: Floor, na: Sequence[float]) -> dict[str, Any]:
    """Return the row of one column in the table of a description."""
    column = table.column(name)
    gaps = cells.missing_cells(column)
    if column.dtype.is_numeric() and na:
        gaps = gaps | np.isin(column.to_numpy(), na)
    counts = np.bincount(cell_numbers(column)[~gaps], minlength=1)
    known = name in floor.columns
    return {
        "column": name,
        "type": _type_word(column.dtype),
        "missing": int(gaps.sum()),
        "distinct": int((counts > 0).sum()),
        "unique": int((counts == 1).sum()),
        "role": proposal.role,
        "decided": proposal.decided,
        "reason": proposal.reason,
        "floor_alone": floor.alone[name].floor if known else None,
        "floor_without": floor.without[name].floor if known else None,
    }


def _type_word(kind: nw.dtypes.DType) -> str:
    """Return the type of a column in a word or two."""
    if kind.is_integer():
        return "whole numbers"
    if kind.is_numeric():
        return "numbers"
    return next(
        (word for one, word in TYPES.items() if kind == one), "nested" if kind.is_nested() else "categories"
    )


def _accepting_options(proposals: Mapping[str, Proposal], asked: Roles) -> dict[str, list[str]]:
    """Return the options that name all roles, given or proposed, for the next command."""
    variables = {"columns": list(asked.variables)} if asked.variables else {}
    names = {role: [name for name, one in proposals.items() if one.role == role] for role in OPTIONS}
    recoded = set(asked.columns_with("recode"))
    names["untouched"] = [name for name in names["untouched"] if name not in recoded]
    found = {role: listed for role, listed in names.items() if listed}
    more = {role: list(asked.columns_with(role)) for role in ("by", "known", "unknown", "confidential")}
    more["recode"] = [f"{one.column}={one}" for one in asked.recode]
    return variables | found | {role: listed for role, listed in more.items() if listed}


def _notes(floor: Floor, roles: Roles, proposals: Mapping[str, Proposal]) -> Iterator[str]:
    """Yield the sentences below the tables: what columns give away, and what is to be decided."""
    weights = weights_text(floor, roles.weights)
    if weights is not None:
        yield weights
    yield floor_text(floor.columns, floor.together, roles.variables)
    raising = [name for name in floor.raising(roles.weights) if floor.without[name].floor < floor.floor]
    if len(raising) > 1:
        listed = (f"{name} ({floor.without[name].floor:.2g} without it)" for name in raising)
        yield f"columns that raise the floor, most first: {', '.join(listed)}"
    undecided = [name for name, one in proposals.items() if not one.decided]
    if undecided:
        yield f"proposed, to be decided before a release: {', '.join(undecided)}"
