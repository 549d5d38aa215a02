"""Turn a masked table into one that is handed out: rows shuffled, no key, fresh numbers of units and rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.cells import missing_cells
from sdckit.core.classes import cell_numbers, number_values
from sdckit.core.randomness import secret_order
from sdckit.core.table import Table, numbered_series

if TYPE_CHECKING:
    import narwhals as nw

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.masking import Masking
    from sdckit.metrics.original import Original


@dataclass(frozen=True)
class Published:
    """A masked table as it is handed out, before it is written.

    `rows` has the number, from 0, of the original row that each row comes from; `renumbered` names the
    columns whose cells are fresh numbers, of which nothing in the original file holds any more.
    """

    masking: Masking
    rows: Ints
    renumbered: tuple[str, ...] = ()

    @property
    def data(self) -> Any:
        """The table."""
        return self.masking.data


def leave_in_place(made: Masking, original: Original) -> Published:
    """Return a masked table with its key and with its rows where they are in the original."""
    return Published(made, np.arange(original.n))


def publish(
    made: Masking,
    original: Original,
    secret: bytes,
    *,
    keep_order: bool = False,
    groups: str | None = None,
    numbered: str | None = None,
) -> Published:
    """Return a masked table as it is handed out: without its key, rows shuffled unless `keep_order`.

    Cells that are NaN, and not null as others of their column, become null.
    Units, and the groups of records that the column `groups` numbers, get fresh numbers from 1 in random
    order, as their old ones may follow the order of the rows. The new column `numbered`, if one is named,
    numbers the records from 1 in an order that neither the published rows nor the original ones have. All
    orders follow from the bytes of `secret`.
    """
    rows = np.arange(original.n) if keep_order else secret_order(original.n, secret, "rows")
    unit = original.roles.unit
    data = made.data if unit is None else _with_fresh_units(Table(made.data), unit, secret)
    data = data if groups is None else _with_fresh_groups(Table(data), groups, secret)
    table = Table(_with_alike_gaps(Table(data)))
    shuffled = table.take(original.roles.published(table.names), rows)
    if numbered is not None:
        shuffled = _with_record_numbers(Table(shuffled), numbered, secret)
    renumbered = tuple(name for name in (unit, groups, numbered) if name is not None)
    return Published(replace(made, data=shuffled), rows, renumbered)


def _with_record_numbers(table: Table, name: str, secret: bytes) -> Any:
    """Return a table with one more column, the numbers of its records in an order of their own."""
    numbers = (secret_order(table.n, secret, "records") + 1).astype(np.float64)
    if table.frame is None:
        return np.column_stack([table.array, numbers])
    return table.with_columns([numbered_series(table.column(table.names[0]).alias(name), numbers)])


def _with_alike_gaps(table: Table) -> Any:
    """Return a table in which NaN is null in the columns that have both: which of them tells nothing."""
    columns = [table.column(name) for name in table.names] if table.frame is not None else []
    mixed = [one for one in columns if one.dtype.is_float() and _has_both_gaps(one)]
    return table.with_columns([one.fill_nan(None) for one in mixed]) if mixed else table.native


def _has_both_gaps(column: nw.Series[Any]) -> bool:
    """Return True if a column of floats has cells that are NaN and cells that are null."""
    null = column.is_null()
    return bool(null.any()) and bool((column.is_nan().fill_null(value=False) & ~null).any())


def _with_fresh_units(table: Table, unit: str, secret: bytes) -> Any:
    """Return a table with new numbers for the units; a missing unit stays missing."""
    column = table.column(unit)
    fresh = _fresh_numbers(cell_numbers(column), missing_cells(column), secret, "units")
    return table.with_columns([numbered_series(column, fresh)])


def _with_fresh_groups(table: Table, groups: str, secret: bytes) -> Any:
    """Return a table with new numbers for the groups of records; records without a group keep their 0."""
    array = table.frame is None  # the last column of an array has the numbers
    old = table.array[:, -1] if array else table.floats([groups])[:, 0]
    fresh = np.nan_to_num(_fresh_numbers(number_values(old), old == 0, secret, "groups"))
    if array:
        return np.column_stack([table.array[:, :-1], fresh])
    return table.with_columns([numbered_series(table.column(groups), fresh)])


def _fresh_numbers(classes: Ints, left_out: Bools, secret: bytes, purpose: str) -> Floats:
    """Return a number from 1 for each class, in random order, and NaN for the records that are left out."""
    numbers = np.full(classes.size, np.nan)
    found = number_values(classes[~left_out])
    numbers[~left_out] = secret_order(int(found.max(initial=-1)) + 1, secret, purpose)[found] + 1
    return numbers
