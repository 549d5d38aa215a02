"""Roles of columns: masked, key, unit, strata, published or not, known or not; resolved in one place."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from sdckit.core import checks
from sdckit.core.recode import Recoding, parse_recodings
from sdckit.core.table import is_missing, is_number, names_of
from sdckit.core.warning_texts import warn

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from sdckit.core.table import Table
    from sdckit.kernels.jit import Bools, Floats, Ints

IDENTIFIER = re.compile(  # "firm_id", "record no", "personId", but not "paid" or "valid"
    r"(?i:(^|[_. ])(id|ids|key|nr|no|number|record|row|index)([_. ]|$))|[a-z]I[dD]$"
)


OPTIONS = (  # keywords of every function that takes a table, in the order of its signature
    *("columns", "key", "weights", "by", "na"),
    *("untouched", "known", "unknown", "confidential", "unit", "drop", "recode"),
)
WORDS = {  # what a column with a role is
    "variables": "a variable",
    "key": "the key",
    "unit": "the unit",
    "untouched": "untouched",
    "drop": "dropped",
    "weights": "the survey weights",
    "by": "a stratum",
    "known": "known",
    "unknown": "unknown",
    "confidential": "confidential",
    "recode": "recoded",
}
EXCLUSIVE = (  # pairs of roles that no column has both
    *combinations(("variables", "key", "unit", "untouched", "drop"), 2),
    *product(("variables", "unit"), ("weights", "by")),
    *combinations(("known", "unknown", "confidential"), 2),
    *product(("known", "unknown", "confidential", "recode"), ("key", "unit", "drop")),
    *product(("recode",), ("variables", "by")),
)


class Undecided(NamedTuple):
    """A column that needs a decision before it is published, and why."""

    column: str
    reason: str


@dataclass(frozen=True)
class Roles:
    """Names of the columns by their role: what is masked, published and known; and the missing codes.

    `variables` are masked and measured. The columns of `key` together identify a record and are never
    released; `unit` is the column of households, firms or persons, whose values repeat. `untouched` are
    published as they are, by decision; `drop` are not published. `weights` is the column of survey weights,
    None without weights and where weights were given as numbers. The values of the columns of `by` form
    strata. `na` are the numbers that stand for a missing cell.

    The intruder knows the columns of `known` (None: all that are published), less those of `unknown`; he
    wants to learn those of `confidential`. `recode` says how untouched columns are coarsened when they are
    published. `undecided` are columns that need a decision before a release.
    """

    variables: tuple[str, ...]
    key: tuple[str, ...] = ()
    weights: str | None = None
    by: tuple[str, ...] = ()
    na: tuple[float, ...] = ()
    untouched: tuple[str, ...] = ()
    known: tuple[str, ...] | None = None
    unknown: tuple[str, ...] = ()
    confidential: tuple[str, ...] = ()
    unit: str | None = None
    drop: tuple[str, ...] = ()
    recode: tuple[Recoding, ...] = ()
    undecided: tuple[Undecided, ...] = ()

    def columns_with(self, role: str) -> tuple[str, ...]:
        """Return the names of the columns that have a role, such as "key" or "unit"."""
        if role == "recode":
            return tuple(one.column for one in self.recode)
        found = getattr(self, role)
        return () if found is None else (found,) if isinstance(found, str) else found

    @property
    def other_columns(self) -> list[str]:
        """Names of the columns that have a role and so are no variables, each once."""
        roles = ("key", "by", "weights", "unit", "untouched", "drop", "recode")
        return list(dict.fromkeys(name for role in roles for name in self.columns_with(role)))

    def published(self, columns: Iterable[str]) -> list[str]:
        """Return those of a table's columns that a release has: all but the key and the dropped ones."""
        return [name for name in columns if name not in self.key and name not in self.drop]

    def known_columns(self, published: Iterable[str]) -> list[str]:
        """Return those of the published columns whose original values the intruder knows."""
        others = {*self.key, *self.drop, *self.unknown, *self.confidential, *self.columns_with("unit")}
        return [
            name for name in published if name not in others and (self.known is None or name in self.known)
        ]

    def check(self, table: Table | None) -> None:
        """Raise ValueError if the table lacks a named column, or one has roles that exclude each other."""
        if table is None:
            raise ValueError("the prepared data have no table to read roles from; prepare the table anew")
        for role in WORDS:
            if role != "variables":
                checks.require_known(self.columns_with(role), table.names)
        for one, other in EXCLUSIVE:
            checks.require_one_role(
                self.columns_with(one), WORDS[one], self.columns_with(other), WORDS[other]
            )
        checks.require_some_left(table.names, self.drop)


def resolve_roles(
    table: Table,
    *,
    columns: Any = None,
    key: Any = None,
    weights: Any = None,
    by: Any = None,
    na: Any = None,
    untouched: Any = None,
    known: Any = None,
    unknown: Any = None,
    confidential: Any = None,
    unit: Any = None,
    drop: Any = None,
    recode: Any = None,
    leave_out: Iterable[str] = (),
) -> Roles:
    """Return the checked roles of a table's columns from the options that a user gave.

    Without `columns`, all numeric columns without another role are variables, those in `leave_out` excepted.
    """
    checks.require_two_records(table.n)
    named = (key, weights, by, na, untouched, known, unknown, confidential, unit, drop, recode)
    if table.frame is None and not leave_out and columns is None and all(one is None for one in named):
        return Roles(tuple(table.names))
    asked = asked_roles(
        table,
        columns=columns,
        key=key,
        weights=weights,
        by=by,
        na=na,
        untouched=untouched,
        known=known,
        unknown=unknown,
        confidential=confidential,
        unit=unit,
        drop=drop,
        recode=recode,
    )
    variables = table.numeric_columns(columns, leave_out=[*asked.other_columns, *leave_out])
    return replace(asked, variables=tuple(variables))


def asked_roles(
    table: Table,
    *,
    columns: Any = None,
    key: Any = None,
    weights: Any = None,
    by: Any = None,
    na: Any = None,
    untouched: Any = None,
    known: Any = None,
    unknown: Any = None,
    confidential: Any = None,
    unit: Any = None,
    drop: Any = None,
    recode: Any = None,
) -> Roles:
    """Return the roles that a user gave, checked against the table; without `columns`, no variables."""
    asked = Roles(
        variables=unique_names(columns),
        key=unique_names(key),
        weights=str(weights) if isinstance(weights, (str, int)) else None,
        by=unique_names(by),
        na=tuple(checks.missing_codes(na)),
        untouched=unique_names(untouched),
        known=None if known is None else checks.require_some_known(unique_names(known)),
        unknown=unique_names(unknown),
        confidential=unique_names(confidential),
        unit=checks.checked_unit(unique_names(unit)),
        drop=unique_names(drop),
        recode=parse_recodings(recode),
    )
    asked.check(table)
    return asked


def unique_names(given: Any) -> tuple[str, ...]:
    """Return column names, given as one name or several, each once."""
    return tuple(dict.fromkeys(names_of(given)))


def strata_of(table: Table, by: str | Sequence[str] | None) -> list[tuple[str, Ints]]:
    """Return name and row numbers of each stratum, by first appearance; one named "all" without `by`."""
    names = names_of(by)
    if not names:
        return [("all", np.arange(table.n))]
    columns = [[_hashable_level(cell) for cell in table.column(name).to_list()] for name in names]
    rows: dict[tuple[Hashable, ...], list[int]] = {}
    for i, levels in enumerate(zip(*columns, strict=True)):
        rows.setdefault(levels, []).append(i)
    labels: dict[str, Ints] = {}
    for levels, found in rows.items():
        label = ", ".join(_level_text(level, alone=len(names) == 1) for level in levels)
        if label in labels:  # as for 1 and "1" in a column of objects
            label = ", ".join("(missing)" if level is None else repr(level) for level in levels)
        labels[label] = np.array(found)
    return list(labels.items())


def _hashable_level(cell: Any) -> Hashable:
    """Return the cell of a stratum column as a dictionary key: None if missing, text for a list."""
    if is_missing(cell):
        return None
    try:
        hash(cell)
    except TypeError:  # such as a list
        return repr(cell)
    return cell


def _level_text(level: Hashable, *, alone: bool) -> str:
    """Return the value of a stratum column as text, quoted where it could be mistaken for a reserved word."""
    if level is None:
        return "(missing)"
    text = str(level)
    unclear = text == "all" if alone else "," in text  # in tables, "all" stands for the whole file
    return repr(text) if unclear or text == "(missing)" or text.startswith(("'", '"')) else text


def keys_of(table: Table, key: str | Sequence[str], file: str) -> list[tuple[Any, ...]]:
    """Return the key of each record as a tuple; raise ValueError if one is missing or repeated."""
    names = names_of(key)
    columns = [table.column(name) for name in names]
    label = ", ".join(names)
    gaps = np.logical_or.reduce([_missing_cells(column) for column in columns])
    checks.require_complete_keys(gaps, label, file)
    keys = list(zip(*(column.to_list() for column in columns), strict=True))
    checks.require_unique_keys(len(set(keys)), len(keys), label, file)
    return keys


def _missing_cells(column: nw.Series[Any]) -> Bools:
    """Return True for each cell of a column that is null, or NaN in a column of floats."""
    gaps: Bools = column.is_null().to_numpy().astype(np.bool_)
    return gaps | np.isnan(column.to_numpy()) if column.dtype.is_float() else gaps


def match_keys(original: Table, masked: Table, key: str | Sequence[str]) -> Ints:
    """Return, for each row of `original`, the row number in `masked` with the same key."""
    ours, theirs = keys_of(original, key, "original"), keys_of(masked, key, "masked")
    place = {value: i for i, value in enumerate(theirs)}
    absent = [value for value in ours if value not in place]
    if absent or len(ours) != len(theirs):
        raise ValueError(
            f"key {', '.join(names_of(key))!r} does not match: {len(absent)} of {len(ours)} original records "
            f"are not among the {len(theirs)} masked ones; compare files with the same records"
        )
    return np.array([place[value] for value in ours])


def warn_about_roles(table: Table, columns: Sequence[str], values: Floats) -> None:
    """Warn of variables that look like an identifier or a survey weight by name and values."""
    for j, name in enumerate(columns):
        if _looks_like_identifier(name, values[:, j]) and table.frame is not None:
            warn(f"column {name!r} looks like an identifier; leave it out with columns or name it as key")
        elif name.lower() in {"weight", "weights"}:
            warn(f"column {name!r} looks like a survey weight; leave it out with columns or name it weights")


def warn_about_objects(table: Table, leave_out: Sequence[str] = ()) -> None:
    """Warn of columns that hold only numbers but are stored as objects, and so are not masked."""
    for name in table.names if table.frame is not None else ():
        column = table.column(name)
        if name in leave_out or column.dtype not in {nw.Object, nw.Unknown}:
            continue
        cells = [cell for cell in column.to_list() if not is_missing(cell)]
        if cells and all(is_number(cell) for cell in cells):
            warn(
                f"column {name!r} looks like numbers stored as objects and is left as it is; "
                "convert it to a numeric type or drop it"
            )


def _looks_like_identifier(name: str, values: Floats) -> bool:
    """Return True if all values are distinct whole numbers, and consecutive or named like an identifier."""
    if values.size < 3 or np.isnan(values).any() or (values != np.floor(values)).any():
        return False
    if not IDENTIFIER.search(name) and values.max() != values.min() + values.size - 1:
        return False  # checked before sorting, which takes longer
    ordered = np.sort(values)
    return bool((ordered[1:] > ordered[:-1]).all())
