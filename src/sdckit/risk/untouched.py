"""Columns that are published but were not masked: what a published cell says about its original.

Cells are compared after one conversion: 1, 1.0 and "1" are equal, dates and texts in ISO form are dates, all
else is text. The case of a column says how its published cells follow from the original ones:

a   equal in all records
b   a function of the original, such as a recoding, bands or rounding
c   equal or missing
d   equal in at least half of the records: a fact that may be wrong
e   none of these: no fact

A missing cell is a value like any other in cases a, b and d. A one-to-one change of distinct cells that does
not follow their order is a fresh numbering, which tells nothing (d or e).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core.classes import cell_numbers, class_numbers, number_values
from sdckit.core.converted_cells import converted_numbers, polars_column
from sdckit.risk.distances import cached_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    import narwhals as nw

    from sdckit.core.table import Table
    from sdckit.kernels.jit import Ints
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair


class UntouchedColumn(NamedTuple):
    """A published column that was not masked: its case, and the number of each cell in both files.

    Numbers are positions among the sorted distinct cells of both files; -1 stands for a missing cell.
    """

    name: str
    case: str
    original: Ints
    published: Ints


def untouched_column(name: str, original: nw.Series[Any], published: nw.Series[Any]) -> UntouchedColumn:
    """Return case and cells of a column from the original and the published one, with aligned rows."""
    x, y = polars_column(original), polars_column(published)
    if x.dtype == y.dtype and x.equals(y):
        cells = converted_numbers(x)[0]
        return UntouchedColumn(name, "a", cells, cells)
    ours, theirs = converted_numbers(x, y)
    return UntouchedColumn(name, column_case(ours, theirs), ours, theirs)


def column_case(x: Ints, y: Ints) -> str:
    """Return the case of a column, "a" to "e", from the numbers of its original and published cells."""
    same = x == y
    if same.all():
        return "a"
    if _is_function(x, y) and not _is_renumbering(x, y):
        return "b"
    if (same | (y == -1)).all():
        return "c"
    return "d" if 2 * np.count_nonzero(same) >= len(same) else "e"


def _is_function(x: Ints, y: Ints) -> bool:
    """Return True if equal cells of the first column always stand beside equal ones of the second."""
    image = np.empty(int(x.max()) + 2, np.int64)
    image[x + 1] = y
    return bool((image[x + 1] == y).all())


def _is_renumbering(x: Ints, y: Ints) -> bool:
    """Return True if all cells of both columns are distinct and neither rise nor fall together."""
    if min(x.min(), y.min()) < 0 or np.bincount(x).max() > 1 or np.bincount(y).max() > 1:
        return False
    steps = np.diff(y[np.argsort(x)])
    return not ((steps > 0).all() or (steps < 0).all())


# --- the columns of a file ------------------------------------------------------------------------------


def untouched_columns(
    original: Table, published: Table, names: Iterable[str], rows: Ints | None
) -> list[UntouchedColumn]:
    """Return the case and cells of columns that both tables have, from the file and the published file.

    `rows` gives the published row of each original; None where they are aligned.
    """
    found = []
    for name in names:
        column = published.column(name)
        there = column if rows is None else column[rows.tolist()]
        found.append(untouched_column(name, original.column(name), there))
    return found


def untouched_of(pair: Pair) -> list[UntouchedColumn]:
    """Return case and cells of the known columns that a masked table has unmasked, read once."""
    ours, theirs = pair.original.table, pair.table
    if ours is None or theirs is None or theirs.frame is None:
        return []
    names = untouched_names(pair.original, theirs.names, pair.disclosure.columns)
    found: list[UntouchedColumn] = cached_value(
        pair.cache, "untouched", lambda: untouched_columns(ours, theirs, names, pair.places)
    )
    return found


def marks_of(pair: Pair, name: str) -> tuple[Ints | None, Ints | None]:
    """Return what a column's missing cells show in both files, as numbers; None where they show nothing.

    A released file shows in a cell that is still missing what the original shows there.
    """
    ours = pair.original.kept.get("marks", {}).get(name)
    if pair.marks is None:
        return ours, ours
    theirs = pair.marks.get(name)
    if ours is None and theirs is None:
        return None, None
    none = np.zeros(pair.original.n, np.int64)
    theirs = none if theirs is None else theirs if pair.places is None else theirs[pair.places]
    return none if ours is None else ours, theirs


def published_classes(pair: Pair) -> Ints:
    """Return the class of each record by its cells in the known columns that are published unmasked."""
    if pair.whole is not None and pair.rows is not None:
        return published_classes(pair.whole)[pair.rows]
    if pair.table is None:
        blocks = blocks_of_original(pair.original)
        return class_numbers([], pair.original.n) if blocks is None else blocks
    return class_numbers([column.published + 1 for column in untouched_of(pair)], pair.original.n)


def known_unmasked(pair: Pair) -> list[str]:
    """Return the names of the known columns that are published unmasked."""
    whole = pair.whole or pair
    names = whole.original.table_names if whole.table is None else whole.table.names
    return untouched_names(whole.original, names, whole.disclosure.columns)


def untouched_names(original: Original, published: Iterable[str], masked: Iterable[str] = ()) -> list[str]:
    """Return the published columns that the intruder knows and that no method changed."""
    others = {*original.columns, *masked}
    ours = () if original.table is None or original.table.frame is None else original.table.names
    return [n for n in original.roles.known_columns(published) if n not in others and n in ours]


def blocks_of_original(original: Original) -> Ints | None:
    """Return the class of each original by its known untouched columns, computed once; None without any.

    For releases that publish these columns as they are or recoded, as those of sweeps and searches do. The
    classes are kept where the table is not (`Original.without_table`).
    """
    if "blocks" not in original.kept:
        names = [] if original.table is None else untouched_names(original, original.table.names)
        numbers = [cell_numbers(original.published_column(n)) for n in names]
        marks = original.kept.get("marks", {})
        numbers += [number_values(marks[n]) for n in names if n in marks and n not in original.recoded]
        classes = class_numbers(numbers, original.n) if numbers else None
        original.kept["blocks"] = classes if classes is None or classes.any() else None
    found: Ints | None = original.kept["blocks"]
    return found
