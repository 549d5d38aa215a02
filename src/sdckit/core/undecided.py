"""Columns that would be published as they are although nobody decided so: found, warned of, refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sdckit.core.guesses import guess_columns, is_near_unique
from sdckit.core.text import plural
from sdckit.core.warning_texts import warn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

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


def undecided_weights(table: Table, weights: str) -> tuple[Undecided, ...]:
    """Return the column of survey weights if it singles records out, as nearly all weights differ."""
    if table.frame is None or not is_near_unique(table.column(weights)):
        return ()
    return (Undecided(weights, "has survey weights of which at least 95 % are distinct", weights=True),)


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
