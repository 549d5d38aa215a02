"""A table with the roles of its columns, its variables converted once to a matrix of numbers."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sdckit.core import checks
from sdckit.core.cells import converted_numbers, number_values, polars_column
from sdckit.core.recode import recode_columns
from sdckit.core.roles import (
    Roles,
    keys_of,
    resolve_roles,
    strata_of,
    warn_of_masked_weights,
    warn_of_undecided,
)
from sdckit.core.table import Table, kind_of
from sdckit.kernels.sums import powers_of_two

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import narwhals as nw

    from sdckit.arrays import Floats, Ints


class PreparedTable:
    """A table with the roles of its columns and the float matrix of its variables.

    `values` has a column for each variable, NaN where a cell is missing; `weights` has one number for each
    record, or is None; `codes` has, for each variable, the contents of its missing cells, where missing codes
    were declared. `table` is the table itself, None where only the numbers were kept.
    """

    def __init__(
        self,
        roles: Roles,
        values: Floats,
        *,
        weights: Floats | None = None,
        table: Table | None = None,
        codes: Sequence[Floats] = (),
    ) -> None:
        self.roles = roles
        self.values = values
        self.weights = weights
        self.table = table
        self.codes = codes
        self.n: int = len(values)

    @classmethod
    def of(
        cls,
        data: Any,
        *,
        columns: Any = None,
        weights: Any = None,
        labelled: Collection[str] = (),
        warn: bool = True,
        **roles: Any,
    ) -> Self:
        """Return the prepared table of `data`; data prepared before are returned as they are.

        `roles` are the other options of `resolve_roles`. With `warn`, a warning names the columns whose role
        is undecided.
        """
        if isinstance(data, cls):
            given = {"columns": columns, "weights": weights, **roles}
            for name in (name for name, value in given.items() if value is not None):
                raise TypeError(f"the data are a Microdata and {name} is given too; state {name} there")
            return data
        table = data if isinstance(data, Table) else Table(data)
        found = resolve_roles(table, columns=columns, weights=weights, labelled=labelled, **roles)
        values, codes = _read_variables(table, found)
        if warn:
            warn_of_undecided(found.undecided)
        if warn and columns is None and table.frame is not None:
            warn_of_masked_weights(found.variables)
        made = cls(found, values, weights=weight_values(table, weights), table=table, codes=codes)
        made.recoded  # noqa: B018 - a recoding that does not fit is refused at once
        return made

    @property
    def kind(self) -> str:
        """The type of the table, "polars", "pandas" or "pyarrow", in which results are returned."""
        return kind_of(None if self.table is None else self.table.frame)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the variables, the columns that are masked and measured."""
        return self.roles.variables

    @cached_property
    def strata(self) -> list[tuple[str, Ints]]:
        """Name and row numbers of each stratum, by first appearance; one named "all" without strata."""
        if self.roles.by and self.table is None:
            raise ValueError("the prepared data have no table to read strata from; prepare the table anew")
        return strata_of(self.table, self.roles.by) if self.table else [("all", np.arange(self.n))]

    @cached_property
    def units(self) -> Ints | None:
        """Number of the unit of each record, such as its household; None without a unit or a table."""
        if self.roles.unit is None or self.table is None:
            return None
        return number_values(converted_numbers(polars_column(self.table.column(self.roles.unit)))[0])

    @cached_property
    def recoded(self) -> dict[str, nw.Series[Any]]:
        """The recoded columns as they are published, by name; empty without recodings."""
        if self.roles.recode and self.table is None:
            raise ValueError("the prepared data have no table to recode; prepare the table anew")
        return recode_columns(self.table, self.roles.recode, self.roles.na) if self.table else {}

    def published_column(self, name: str) -> nw.Series[Any]:
        """Return a column that is not masked as it is published: recoded where that is asked for."""
        if self.table is None:
            raise ValueError(f"the prepared data have no table with column {name!r}; prepare the table anew")
        return self.recoded[name] if name in self.recoded else self.table.column(name)

    def require_unique_key(self) -> None:
        """Raise ValueError if the key is missing in a record or shared by two records."""
        if self.roles.key and self.table is not None:
            keys_of(self.table, self.roles.key, "original")

    def matrix(self, names: Sequence[str]) -> Floats:
        """Return columns of the table, variables or not, as an n x p float matrix."""
        others = [name for name in names if name not in self.columns]
        read = np.empty((self.n, 0)) if self.table is None else self.table.floats(others, self.roles.na)
        found = np.empty((self.n, len(names)), order="F")
        for j, name in enumerate(names):
            known = name in self.columns
            found[:, j] = self.values[:, self.columns.index(name)] if known else read[:, others.index(name)]
        return found

    def with_roles(self, roles: Roles, weights: Floats | None) -> Self:
        """Return a copy of the prepared data with other roles of columns and other weights."""
        other = copy(self)
        other.roles, other.weights = roles, weights
        for name in ("strata", "recoded", "units"):
            other.__dict__.pop(name, None)
        return other


def _read_variables(table: Table, roles: Roles) -> tuple[Floats, list[Floats]]:
    """Return the variables as floats, NaN in missing cells, and the codes that missing cells held."""
    values = table.floats(roles.variables)
    if not roles.na:
        return values, []
    declared = np.isin(values, roles.na)
    codes = [values[declared[:, j] | np.isnan(values[:, j]), j] for j in range(values.shape[1])]
    values[declared] = np.nan
    return values, codes


def weight_values(table: Table, weights: Any) -> Floats | None:
    """Return survey weights as floats, from the named column or from one number per record.

    Numbers may be an array, a series of any name or a table with one column. The weights are divided by the
    largest power of two up to the largest of them: no digit changes, and their sums stay within range.
    """
    if weights is None:
        return None
    if isinstance(weights, (str, int)):
        name = str(weights)
        values = table.floats(table.numeric_columns([name]))[:, 0]
    else:
        name, given = "weights", Table(weights)
        if len(given.names) != 1:
            raise ValueError(f"weights has {len(given.names)} columns; give one number per record")
        values = given.floats(given.numeric_columns(given.names))[:, 0]
        checks.require_length("weights", len(values), table.n)
    found = checks.checked_weights(values, name)
    return found / powers_of_two(found)
