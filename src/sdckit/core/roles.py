"""Roles of columns: which are masked, known, confidential, untouched, and which are still to be decided."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.core.cells import hashable, missing_cells
from sdckit.core.checks import warn
from sdckit.core.guesses import guess_columns, is_near_unique
from sdckit.core.recode import Recoding, parse_recodings
from sdckit.core.table import is_missing, names_of
from sdckit.core.text import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

    from sdckit.arrays import Ints
    from sdckit.core.table import Table


REMEDY = "settle each with untouched=, columns=, drop=, recode=, unknown=, key= or unit="
MEASURED = "settle each with untouched=, columns=, unknown=, key= or unit=, or publish it not at all"


class Undecided(NamedTuple):
    """A column that needs a decision before it is published as it is, and why.

    `weights` is True for what looks like survey weights: masked as a variable unless `columns` leaves it out.
    """

    column: str
    reason: str
    weights: bool = False

    def __str__(self) -> str:
        return f"{self.column!r} {self.reason}"


def find_undecided(
    table: Table, columns: Collection[str], *, labelled: Collection[str] = (), na: Iterable[float] = ()
) -> tuple[Undecided, ...]:
    """Return those of the columns without a role that look like codes or identifiers, dates or odd text.

    Weights count where nearly all of them differ. Arguments are as for `guess_columns`; a single series and
    an array have variables only.
    """
    if table.frame is None or table.series:
        return ()
    found = guess_columns(table, labelled=labelled, na=na, columns=columns)
    return tuple(
        Undecided(name, f"looks like {guess.looks_like} ({guess.reason})", guess.role == "weights")
        for name, guess in found.items()
        if guess.undecided and (guess.role != "weights" or is_near_unique(table.column(name)))
    )


def warn_of_masked_weights(variables: Iterable[str]) -> None:
    """Warn of variables that nobody named and that are named like survey weights."""
    for name in variables:
        if name.lower() in {"weight", "weights"}:
            warn(f"column {name!r} looks like a survey weight; name it in weights=, or variables in columns=")


def warn_of_undecided(columns: Iterable[Undecided], remedy: str = REMEDY) -> None:
    """Warn of undecided columns, all of them in one line; none, no warning."""
    listed = list(columns)
    if listed:
        head = f"not masked, and the role is undecided, of {len(listed)} {plural(len(listed), 'column')}"
        warn(f"{head}: {', '.join(map(str, listed))}; {remedy}")


def require_decided(columns: Iterable[Undecided]) -> None:
    """Raise ValueError, before a release is written, if the role of a column is undecided."""
    listed = list(columns)
    if listed:
        head = f"a release needs a decision on {len(listed)} {plural(len(listed), 'column')}"
        raise ValueError(f"{head}: {', '.join(map(str, listed))}; {REMEDY}")


OPTIONS = (  # keywords of every function that takes a table, in the order of its signature
    *("columns", "key", "weights", "by", "na"),
    *("untouched", "known", "unknown", "confidential", "unit", "drop", "recode", "estimates"),
)
OF_COLUMNS = tuple(one for one in OPTIONS if one not in {"columns", "na", "recode", "estimates"})
SEVERAL = ("columns", *(one for one in OF_COLUMNS if one not in {"weights", "unit"}))  # of many columns
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
    published. `estimates` are what users of the file compute, such as "total(turnover) by sector".
    `undecided` are columns that need a decision before a release.
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
    estimates: tuple[str, ...] = ()
    undecided: tuple[Undecided, ...] = ()

    def columns_with(self, role: str) -> tuple[str, ...]:
        """Return the names of the columns that have a role, such as "key"; for "estimates" their texts."""
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

    def with_undecided(self, table: Table, found: Iterable[Undecided]) -> Roles:
        """Return these roles with the undecided ones among `found`, and survey weights that single out."""
        settled = {*self.variables, *self.key, *self.columns_with("unit"), *self.by}
        settled |= {*self.untouched, *self.unknown, *self.drop, *self.columns_with("recode")}
        weights = () if self.weights is None or self.weights in settled else (self.weights,)
        undecided = [one for one in found if one.column not in {*settled, *weights}]
        if weights and table.frame is not None and is_near_unique(table.column(weights[0])):
            fact = "has survey weights of which at least 95 % are distinct"
            undecided.append(Undecided(weights[0], fact, weights=True))
        return replace(self, undecided=tuple(undecided))

    def check(self, table: Table | None) -> None:
        """Raise ValueError if the table lacks a named column, or one has roles that exclude each other."""
        if table is None:
            raise ValueError("the prepared data have no table to read roles from; prepare the table anew")
        for role in WORDS:
            if role != "variables":
                checks.require_known(self.columns_with(role), table.names)
        for one, other in EXCLUSIVE:
            for name in self.columns_with(one):
                if name in self.columns_with(other):
                    also = f"{WORDS[one]} but also {WORDS[other]}"
                    raise ValueError(f"column {name!r} is {also}; give it one role")
        if self.drop and set(table.names) <= set(self.drop):
            raise ValueError(
                "all columns are dropped, so that nothing is left to publish; drop fewer of them"
            )


def resolve_roles(table: Table, *, labelled: Collection[str] = (), **options: Any) -> Roles:
    """Return the checked roles of a table's columns from the options that a user gave, see `asked_roles`.

    Without `columns`, all numeric columns without another role are variables, less those that look like
    codes or identifiers; an array keeps all its columns. Every value of a column in
    `labelled` has a label, as categories have.
    """
    checks.require_two_records(table.n)
    columns = options.get("columns")
    if table.frame is None and all(one is None for one in options.values()):
        return Roles(tuple(table.names))
    asked = asked_roles(table, **options)
    free = [name for name in table.names if name not in {*asked.variables, *asked.other_columns}]
    undecided = find_undecided(table, free, labelled=labelled, na=asked.na)
    others = {*asked.other_columns, *(one.column for one in undecided if not one.weights)}
    if columns is None:
        numeric = [name for name in table.numeric_names if name not in asked.other_columns]
        doubtful = [one for one in undecided if one.column in numeric and not one.weights]
        if numeric and len(doubtful) == len(numeric):
            listed = ", ".join(map(str, doubtful))
            raise ValueError(f"no numeric column left: {listed}; name the variables with columns=")
    variables = tuple(table.numeric_columns(columns, leave_out=others))
    return replace(asked, variables=variables).with_undecided(table, undecided)


def asked_roles(table: Table, **given: Any) -> Roles:
    """Return the roles that a user gave, checked against the table; without `columns`, no variables.

    `given` has values of `OPTIONS` by name, None for those that were not given.
    """
    for role in given:
        checks.one_of("role", role, OPTIONS)

    def named(role: str) -> tuple[str, ...]:
        """Return the names of the columns with a role."""
        return unique_names(given.get(role))

    weights, na = given.get("weights"), given.get("na")
    known = None if given.get("known") is None else named("known")
    if known == ():
        raise ValueError("known names no column; name what the intruder knows, or leave known= out")
    asked = Roles(
        variables=named("columns"),
        key=named("key"),
        weights=str(weights) if isinstance(weights, (str, int)) else None,
        by=named("by"),
        na=tuple(checks.missing_codes(na)),
        untouched=named("untouched"),
        known=known,
        unknown=named("unknown"),
        confidential=named("confidential"),
        unit=checks.checked_unit(named("unit")),
        drop=named("drop"),
        recode=parse_recodings(given.get("recode")),
        estimates=named("estimates"),
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
    columns = [
        [None if is_missing(c) else c if hashable(c) else repr(c) for c in table.column(name).to_list()]
        for name in names
    ]
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
    gaps = np.logical_or.reduce([missing_cells(column) for column in columns])
    checks.require_complete_keys(int(np.count_nonzero(gaps)), label, file)
    keys = list(zip(*(column.to_list() for column in columns), strict=True))
    checks.require_unique_keys(len(set(keys)), len(keys), label, file)
    return keys


def match_keys(original: Table, masked: Table, key: str | Sequence[str]) -> Ints:
    """Return, for each row of `original`, the row number in `masked` with the same key."""
    ours = keys_of(original, key, "original")
    checks.require_masked_key(names_of(key), masked.names)
    theirs = keys_of(masked, key, "masked")
    place = {value: i for i, value in enumerate(theirs)}
    absent = sum(value not in place for value in ours)
    checks.require_matching_keys(absent, len(ours), len(theirs), ", ".join(names_of(key)))
    return np.array([place[value] for value in ours])
