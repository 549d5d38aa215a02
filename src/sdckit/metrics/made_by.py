"""A masking of the user's own, given as a function: the intruder runs it again with draws of his own.

`add_masking(pair, disclosure, function)` lets a pair be masked again, after two runs have shown what the
function returns and whether it draws anything. Every error is one line without a cell of the data.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.table import Table
from sdckit.core.text import plural
from sdckit.core.warning_texts import warn
from sdckit.masking import rounded
from sdckit.risk.shadows import FEWEST, own_draws, published_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.core.disclosure import Disclosure
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.pair import Pair

    Masking = Callable[[Any, np.random.Generator], Any]

WHO = "the masking given by made_by"


def require_one_masking(made_by: Any, **others: Any) -> None:
    """Raise an error if `made_by` is no function, or something else says, too, how the file was masked."""
    if made_by is None:
        return
    if not callable(made_by):
        kind = type(made_by).__name__
        remedy = "give a function of table and random generator, or name a method with method="
        raise TypeError(f"made_by is of type {kind}, which cannot be called; {remedy}")
    for name in [name for name, value in others.items() if value is not None]:
        raise ValueError(f"made_by says how the file was masked and {name} is given too; drop one of them")


def add_masking(pair: Pair, disclosure: Disclosure, made_by: Masking | None, *, who: str = WHO) -> Disclosure:
    """Let the intruder mask the pair's file by a function; return the disclosure, which says if it draws.

    A function that draws nothing and makes this very file can be run again by everybody. One that draws
    nothing and makes another file is left aside with a warning.
    """
    if made_by is None:
        return disclosure
    remask = masking_again(pair, made_by, who)
    first, second = (remask(own_draws(number)) for number in range(FEWEST))
    if not _equal(first, second):
        pair.remask = remask
        return disclosure
    changed = _count_changed(first, rounded(pair.masked, published_steps(pair)))
    if not changed:
        return replace(disclosure, deterministic=True)
    warn(
        f"{who} draws nothing and does not make this file: {changed} of {first.size} "
        f"{plural(first.size, 'cell')} differ; name what was done to the file"
    )
    return disclosure


def masking_again(pair: Pair, made_by: Masking, who: str = WHO) -> Callable[[np.random.Generator], Floats]:
    """Return a function of a random generator that masks the pair's original and returns its variables."""
    original = pair.original.table
    if original is None:
        raise ValueError("the prepared data have no table that made_by could mask; prepare the table anew")
    steps = published_steps(pair)

    def mask(rng: np.random.Generator) -> Floats:
        """Return the variables of the original masked with the given draws, rounded as published."""
        made = _table_of(_run(made_by, deepcopy(original.native), rng), who)
        return np.asfortranarray(rounded(_variables_of(made, pair, who), steps))

    return mask


def _run(made_by: Masking, table: Any, rng: np.random.Generator) -> Any:
    """Return what the function returns; raise a ValueError that names the type of its error only."""
    try:
        return made_by(table, rng)
    except MadeByError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise ValueError(f"{WHO} failed with {kind}; mend it") from error


class MadeByError(ValueError):
    """An error in the words of this package, raised by a masking that is no function of the user's own."""


def _table_of(made: Any, who: str) -> Table:
    """Return what a masking returned as a table; raise TypeError if it is none."""
    try:
        return Table(made)
    except (TypeError, ValueError) as error:
        kind = type(made).__name__
        raise TypeError(f"{who} returned no table but {kind}; return the masked table") from error


def _variables_of(made: Table, pair: Pair, who: str) -> Floats:
    """Return the variables of a table that a masking made; raise an error if it is none of this file."""
    n = pair.original.n
    if made.n != n:
        fact = f"{who} returned {made.n} {plural(made.n, 'record')} of {n}"
        raise ValueError(f"{fact}; return all records, in the order of the original")
    names = list(pair.columns)
    lost = [name for name in names if name not in made.names]
    if lost:
        fact = f"{who} returned no column {', '.join(map(repr, lost))}"
        raise ValueError(f"{fact}; return every column that is compared")
    known = {*pair.original.table_names, *names, *(() if pair.table is None else pair.table.names)}
    new = [name for name in made.names if name not in known]
    if new:
        fact = f"{who} returned a column that neither file has: {', '.join(map(repr, new))}"
        raise ValueError(f"{fact}; return the columns of the masked file")
    text = [name for name in names if name not in made.numeric_names]
    if text:
        fact = f"{who} returned text in column {', '.join(map(repr, text))}"
        raise TypeError(f"{fact}; return numbers in columns that are compared")
    return made.floats(names, pair.original.roles.na)


def _equal(one: Floats, other: Floats) -> bool:
    """Return True if two files are equal in every cell."""
    return not _count_changed(one, other)


def _count_changed(one: Floats, other: Floats) -> int:
    """Return in how many cells two files differ; missing cells are equal."""
    return int(((one != other) & ~(np.isnan(one) & np.isnan(other))).sum())
