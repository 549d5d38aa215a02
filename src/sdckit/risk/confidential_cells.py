"""Cells of confidential columns in both files: which published cells are right guesses of an original one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core.converted_cells import NUMBER, converted, polars_column
from sdckit.risk.distances import cached_value
from sdckit.risk.linked_shares import Property

if TYPE_CHECKING:
    import narwhals as nw

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair

WITHIN = 0.1  # a guess is right if it is at most this share of the true value away from it
MISSING = -1


class Cells(NamedTuple):
    """Cells of a column: numbers, and codes: 0 for a number, -1 for a missing cell, else that of a text."""

    numbers: Floats
    codes: Ints

    @property
    def observed(self) -> Bools:
        """True for each cell that is not missing."""
        return np.asarray(self.codes != MISSING)

    def take(self, rows: Ints) -> Cells:
        """Return the cells of some rows."""
        return Cells(self.numbers[rows], self.codes[rows])


class Confidential(NamedTuple):
    """Cells of a confidential column in the original and in the published file, rows aligned."""

    original: Cells
    published: Cells


def number_cells(values: Floats) -> Cells:
    """Return the cells of a column of numbers, NaN where they are missing."""
    return Cells(np.where(np.isnan(values), 0.0, values), np.where(np.isnan(values), MISSING, 0))


def converted_cells(*columns: nw.Series[Any]) -> list[Cells]:
    """Return the cells of columns of any type, with the same codes for equal texts and dates."""
    codes: dict[Any, int] = {}
    found = []
    for column in map(polars_column, columns):
        if column.dtype.is_numeric():
            found.append(number_cells(column.cast(float).fill_null(float("nan")).to_numpy()))
            continue
        keys = [converted(cell) for cell in column.to_list()]
        numbers = [float(key[1]) if key is not None and key[0] == NUMBER else 0.0 for key in keys]
        marks = [_code(key, codes) for key in keys]
        found.append(Cells(np.array(numbers), np.array(marks, np.int64)))
    return found


def _code(key: tuple[int, float | str] | None, codes: dict[Any, int]) -> int:
    """Return the code of a converted cell, a new one for a text or date that was not seen before."""
    if key is None:
        return MISSING
    return 0 if key[0] == NUMBER else codes.setdefault(key, len(codes) + 1)


def right_guesses(targets: Cells, queries: Cells) -> Property:
    """Return the property of a published cell (target) to be a right guess of an original one (query).

    Numbers are right within 10 % of the true one, all else if equal; missing cells are never right.
    """
    low, high = _ends_of_right(queries.numbers)
    text = queries.codes != 0
    low[text], high[text] = -np.inf, np.inf
    value = np.where(targets.codes != 0, 0.0, targets.numbers)
    codes = np.where(targets.codes == MISSING, MISSING - 1, targets.codes).astype(float)
    ours = np.column_stack([value, codes])
    asked = queries.codes.astype(float)
    return Property((ours, ours), (np.column_stack([low, asked]), np.column_stack([high, asked])))


def _ends_of_right(values: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest number within 10 % of each value, to the last bit."""
    within = WITHIN * np.abs(values)
    low, high = values - within, values + within
    low = np.where(values - low > within, np.nextafter(low, np.inf), low)
    return low, np.where(high - values > within, np.nextafter(high, -np.inf), high)


# --- the columns of a pair of files ---------------------------------------------------------------------


def confidential_of(pair: Pair) -> dict[str, Confidential]:
    """Return the cells of each confidential column that is published, by name; read once."""
    if pair.whole is not None and pair.rows is not None:
        rows = pair.rows
        whole = confidential_of(pair.whole)
        return {name: Confidential(*(cells.take(rows) for cells in both)) for name, both in whole.items()}

    def read() -> dict[str, Confidential]:
        """Return the cells of both files."""
        found = {name: _read_column(pair, name) for name in pair.original.roles.confidential}
        return {name: cells for name, cells in found.items() if cells is not None}

    found: dict[str, Confidential] = cached_value(pair.cache, "confidential", read)
    return found


def _read_column(pair: Pair, name: str) -> Confidential | None:
    """Return the cells of a confidential column in both files; None if it is not published."""
    original = pair.original
    if name in pair.columns:
        j = pair.columns.index(name)
        return Confidential(number_cells(original.values[:, j]), number_cells(pair.masked[:, j]))
    if pair.table is None:
        return confidential_of_original(original)[name]
    if original.table is None or name not in pair.table.names:
        return None
    column = pair.table.column(name)
    there = column if pair.places is None else column[pair.places.tolist()]
    return Confidential(*converted_cells(original.table.column(name), there))


def confidential_of_original(original: Original) -> dict[str, Confidential]:
    """Return the cells of confidential columns that are not masked, as releases publish them; read once.

    For sweeps and searches; the cells are kept where the table is not (`Original.without_table`).
    """
    if "confidential" not in original.kept:
        table, cells = original.table, {}
        for name in original.roles.confidential:
            if table is not None and name not in original.columns:
                both = converted_cells(table.column(name), original.published_column(name))
                cells[name] = Confidential(*both)
        original.kept["confidential"] = cells
    found: dict[str, Confidential] = original.kept["confidential"]
    return found
