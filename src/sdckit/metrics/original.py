"""The original data, prepared once for all comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from sdckit.core import checks
from sdckit.core.table import Table, names_of
from sdckit.kernels.jit import Bools, Floats, Ints, count_special
from sdckit.kernels.packed_sort import SMALL
from sdckit.kernels.rank_distance import OrderedColumn
from sdckit.kernels.rank_distance_batch import ColumnStack
from sdckit.kernels.scaling import spread


class Original:
    """The original data, with whatever comparisons reuse: order, ranks, tie blocks, scales.

    Made by `prepare`; each piece is computed when first asked for.
    """

    def __init__(
        self,
        columns: Sequence[str],
        values: Floats,
        *,
        weights: Floats | None = None,
        table: Table | None = None,
        key: str | Sequence[str] | None = None,
        na: object = None,
    ) -> None:
        self.columns = tuple(columns)
        self.values = values
        self.weights = weights
        self.table = table
        self.key = key
        self.na = na
        self.n = len(values)
        self.cache: dict[str, Any] = {}  # what a family of metrics computes once
        self._ordered: dict[int, OrderedColumn] = {}

    def __repr__(self) -> str:
        return f"Original({self.n} records, {len(self.columns)} variables)"

    @cached_property
    def missing(self) -> Bools:
        """Where cells are missing."""
        return np.isnan(self.values)

    @cached_property
    def by_variable(self) -> Floats:
        """The values with one row per variable."""
        return np.ascontiguousarray(self.values.T)

    @cached_property
    def complete(self) -> bool:
        """True where no cell is missing."""
        return not count_special(self.by_variable.ravel())[0]

    def ordered(self, j: int) -> OrderedColumn:
        """The observed values of a column with their order."""
        if j not in self._ordered:
            if self.short:
                self._ordered[j] = self.stack.column(j)
            else:
                self._ordered[j] = OrderedColumn(self.values[~self.missing[:, j], j])
        return self._ordered[j]

    @cached_property
    def short(self) -> bool:
        """True for a short and complete file, whose columns are sorted in one call."""
        return 1 < self.n < SMALL and self.complete

    @cached_property
    def stack(self) -> ColumnStack:
        """All columns of a short and complete file, ready for one call."""
        return ColumnStack(self.by_variable)

    @cached_property
    def spreads(self) -> Floats:
        """Standard deviation of each column (ddof 1; weighted where there are weights); NaN without one."""
        return np.where((~self.missing).sum(0) > 1, spread(self.values, self.weights), np.nan)

    @cached_property
    def all_vary(self) -> bool:
        """True where every column has a spread above 0."""
        return bool((self.spreads > 0).all())

    def take(self, rows: Ints) -> Original:
        """The original restricted to some records."""
        weights = None if self.weights is None else self.weights[rows]
        return Original(self.columns, np.asfortranarray(self.values[rows]), weights=weights)


def prepare(
    original: Any,
    *,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: Any = None,
    na: Any = None,
) -> Original:
    """Prepare original data once, to compare many masked versions with it.

    Parameters
    ----------
    original : table
        pandas, polars, pyarrow or numpy; an `Original` is returned as it is.
    columns : list of str, optional
        Variables to compare; by default all numeric columns that have no other role.
    key : str, optional
        Column that identifies records in both files; without it, rows are paired by order.
    weights : str or array, optional
        Survey weights, all above 0.
    na : number or list of numbers, optional
        Values that stand for a missing cell, such as -999.

    Returns
    -------
    Original

    Examples
    --------
    >>> import sdckit as sdc
    >>> original = sdc.prepare([10.0, 20.0, 30.0])
    >>> sdc.brmae(original, [20.0, 10.0, 30.0])
    0.5
    """
    if isinstance(original, Original):
        if columns is not None:
            raise ValueError("the original is prepared already; name its columns when you prepare it")
        if na is not None:
            raise ValueError("the original is prepared already; declare missing codes when you prepare it")
        return original
    return prepare_table(Table(original), columns=columns, key=key, weights=weights, na=na)


def prepare_table(table: Table, *, columns: Any, key: Any, weights: Any, na: Any, by: Any = None) -> Original:
    """The same for a table that is known to be one; strata are no variables."""
    named = [weights] if isinstance(weights, (str, int)) else []
    roles = [name for role in (key, by, named) for name in names_of(role)]
    checks.known_columns(roles, table.names)
    names = table.numeric(columns, leave_out=roles)
    values = table.floats(names, na)
    found = weight_values(table, weights)
    return Original(names, values, weights=found, table=table, key=key, na=na)


def weight_values(table: Table, weights: Any) -> Floats | None:
    """Survey weights by column name or as one number per record."""
    if weights is None:
        return None
    if isinstance(weights, (str, int)):
        name = str(weights)
        values = table.floats(table.numeric([name]))[:, 0]
    else:
        name, values = "weights", Table(weights).floats(["x1"])[:, 0]
        checks.same_length("weights", len(values), table.n)
    return checks.weights_of(values, name)


def with_weights(original: Original, weights: Any) -> Original:
    """The same prepared data with other weights."""
    if original.table is None:
        raise ValueError("these prepared data take no weights any more; give weights to prepare")
    found = weight_values(original.table, weights)
    return Original(
        original.columns,
        original.values,
        weights=found,
        table=original.table,
        key=original.key,
        na=original.na,
    )
