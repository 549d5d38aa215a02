"""The original data, prepared once for all comparisons with masked files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from sdckit.arrays import Bools, Floats, Ints
from sdckit.core.prepared import PreparedTable
from sdckit.core.roles import OF_COLUMNS, Roles
from sdckit.core.text import plural
from sdckit.kernels.ranks import SMALL, ColumnStack, OrderedColumn
from sdckit.kernels.sums import spread
from sdckit.metrics.blocks import variable_scales

NAMED = 8  # variables that are named where the data are shown


def rows_of(values: Floats, rows: Ints) -> Floats:
    """Return some rows of a matrix, one column after the other in memory, in one copy."""
    return np.take(values.T, rows, axis=1).T


class HoldsOriginal:
    """Base of `Microdata`, which is above this package: data that can be given in place of an original."""

    @property
    def original(self) -> Original:
        """The prepared data."""
        raise NotImplementedError


class Original(PreparedTable):
    """Original data with sorted columns and standard deviations cached for comparisons.

    Each cached part is computed when first used.
    """

    def __init__(self, roles: Roles, values: Floats, **more: Any) -> None:
        super().__init__(roles, values, **more)
        self.cache: dict[str, Any] = {}  # intermediate results that several metrics share
        self.kept: dict[str, Any] = {}  # read from the table; outlives it, see `without_table`
        self._ordered: dict[int, OrderedColumn] = {}

    @classmethod
    def of(cls, data: Any, **options: Any) -> Self:
        """Return data as prepared, those of a microdata too; see `PreparedTable.of`."""
        return super().of(data.original if isinstance(data, HoldsOriginal) else data, **options)

    def __repr__(self) -> str:
        """Return the number of records, and the names of the variables and of columns with other roles."""
        return f"Original({self.summary})"

    @property
    def summary(self) -> str:
        """The number of records, and the names of the variables and of columns with other roles."""
        shown = [*self.columns[:NAMED], *(["..."] if len(self.columns) > NAMED else [])]
        found = {option: self.roles.columns_with(option) for option in OF_COLUMNS}
        others = [f"{option}: {', '.join(names)}" for option, names in found.items() if names]
        variables = f"{len(self.columns)} {plural(len(self.columns), 'variable')}: {', '.join(shown)}"
        return "; ".join([f"{self.n} records", variables, *others])

    @cached_property
    def missing(self) -> Bools:
        """True for each cell of the n x p matrix that is missing."""
        return np.isnan(self.values)

    @cached_property
    def by_variable(self) -> Floats:
        """Values as a contiguous p x n matrix, one row per variable."""
        return np.ascontiguousarray(self.values.T)

    @cached_property
    def complete(self) -> bool:
        """True if the file has no missing cell."""
        return not np.isnan(self.values.min(initial=np.inf))  # no kernel: the page asks before it has any

    def ordered(self, j: int) -> OrderedColumn:
        """Return column j with its observed values sorted, computed once."""
        if j not in self._ordered:
            if self.short:
                self._ordered[j] = self.stack.column(j)
            else:
                self._ordered[j] = OrderedColumn(self.values[~self.missing[:, j], j])
        return self._ordered[j]

    def sorted_columns(self, begin: int, several: int) -> tuple[Floats, Ints]:
        """Return `several` complete columns from `begin` on, sorted, and their records' places in the stack.

        All columns together are small, and asked for again by every masked file: they are kept.
        """
        if "sorted columns" in self.cache:
            kept: tuple[Floats, Ints] = self.cache["sorted columns"]
            return kept
        columns = [self.ordered(j) for j in range(begin, begin + several)]
        found = (
            np.stack([column.sorted for column in columns]),
            np.stack([column.order + line * self.n for line, column in enumerate(columns)]),
        )
        if several == len(self.columns):
            self.cache["sorted columns"] = found
        return found

    @cached_property
    def short(self) -> bool:
        """True for a file without missing cells so short that all its columns are sorted in one call."""
        return 1 < self.n < SMALL and self.complete

    @cached_property
    def stack(self) -> ColumnStack:
        """All columns of a short file without missing cells, sorted in one compiled call."""
        return ColumnStack(self.by_variable)

    @cached_property
    def spreads(self) -> Floats:
        """Standard deviation of each column (ddof 1; weighted where there are weights); NaN without one."""
        return np.where((~self.missing).sum(0) > 1, spread(self.values, self.weights), np.nan)

    @cached_property
    def all_vary(self) -> bool:
        """True where every column has a standard deviation above 0."""
        return bool((self.spreads > 0).all())

    @cached_property
    def scales(self) -> Floats:
        """Divisor of each column's costs in IL1s: sqrt(2) standard deviations."""
        return variable_scales(self.spreads)

    def take(self, rows: Ints) -> Original:
        """Return the original data restricted to the given row numbers."""
        weights = None if self.weights is None else self.weights[rows]
        roles = replace(self.roles, key=(), by=())
        return Original(roles, rows_of(self.values, rows), weights=weights)

    @cached_property
    def parts(self) -> list[tuple[str, Ints, Original]]:
        """Name, row numbers and data of each stratum; empty without strata."""
        return [(name, rows, self.take(rows)) for name, rows in self.strata] if self.roles.by else []

    def without_table(self) -> Original:
        """Return variables, weights and what was kept of the table, without the table itself."""
        other = Original(self.roles, self.values, weights=self.weights, codes=self.codes)
        other.kept = self.kept | {"names": self.table_names}
        return other

    @property
    def table_names(self) -> list[str]:
        """Names of all columns of the table, also after the table itself was dropped."""
        names: list[str] = self.kept.get("names", []) if self.table is None else self.table.names
        return names

    def with_variables(self, more: Sequence[str]) -> Original:
        """Return the original data with further columns of its table as variables."""
        columns = (*self.columns, *more)
        roles = replace(self.roles, variables=columns)
        return Original(roles, self.matrix(columns), weights=self.weights, table=self.table)

    def with_roles(self, roles: Roles, weights: Floats | None) -> Self:
        """Return a copy with other roles of columns and other weights; sorted columns are kept."""
        other = super().with_roles(roles, weights)
        for name in ("parts", "spreads", "all_vary", "scales"):
            other.__dict__.pop(name, None)
        other.cache, other.kept = {}, {name: self.kept[name] for name in ("marks",) if name in self.kept}
        return other
