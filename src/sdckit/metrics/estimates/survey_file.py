"""A file as a survey: its columns of numbers, weights, strata and units, read when they are needed."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from sdckit.core import checks
from sdckit.core.converted_cells import polars_column
from sdckit.core.table import Table, names_of
from sdckit.core.text import plural
from sdckit.metrics.estimates.domains import Domains, domains_of, joint_domains
from sdckit.metrics.estimates.grouping import Design, Grouping
from sdckit.metrics.original import Original

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.kernels.jit import Floats


class Options(NamedTuple):
    """How both files were sampled: weights, strata, units; and the numbers that stand for missing cells.

    `weights` is the name of a column, or one number per record of both files. `population` is the column with
    the number of units in the population of each record's stratum.
    """

    weights: Any = None
    strata: tuple[str, ...] = ()
    unit: str | None = None
    na: tuple[float, ...] = ()
    population: str | None = None


class SurveyFile:
    """A table with survey weights, strata and units; answers what estimators ask, each column read once.

    `which` is "original" or "masked", for errors.
    """

    def __init__(self, table: Table, which: str, options: Options) -> None:
        self.table = table
        self.which = which
        self.options = options
        self.n: int = table.n
        self.columns: dict[str, Floats] = {}
        self.column_domains: dict[str, Domains] = {}
        self.groupings: dict[tuple[str, ...], Grouping] = {}
        self.cache: dict[Any, Any] = {}  # samples, by columns, condition and domains
        self.masked_columns: frozenset[str] = frozenset()

    def replaced(self, numbers: Mapping[str, Floats]) -> SurveyFile:
        """Return the masked file that has other numbers in some columns; shares what does not depend on them.

        Neither weights nor strata nor units are among the columns.
        """
        other = copy(self)
        other.which, other.masked_columns = "masked", frozenset(numbers)
        other.columns = {**self.columns, **numbers}
        other.column_domains = {
            name: found for name, found in self.column_domains.items() if name not in numbers
        }
        other.groupings = {by: one for by, one in self.groupings.items() if not {*by} & other.masked_columns}
        other.cache = {
            key: sample for key, sample in self.cache.items() if not {*key[0], *key[2]} & other.masked_columns
        }
        return other

    def require(self, names: Sequence[str]) -> None:
        """Raise ValueError if the table lacks one of the named columns."""
        if self.which == "masked":
            checks.require_masked_columns(names, self.table.names)
        checks.require_known(names, self.table.names)

    def is_boolean(self, name: str) -> bool:
        """Return True for a column of truth values, which count as 0 and 1."""
        return self.table.frame is not None and self.table.frame[name].dtype == nw.Boolean

    def is_number(self, name: str) -> bool:
        """Return True for a column of numbers or truth values."""
        return name in self._number_names

    @cached_property
    def _number_names(self) -> frozenset[str]:
        """Names of the columns of numbers or truth values, in masked copies those of the file itself."""
        names = self.table.names
        return frozenset([*self.table.numeric_names, *(name for name in names if self.is_boolean(name))])

    def numbers(self, name: str) -> Floats:
        """Return a column as floats, NaN where a cell is missing; raise TypeError for a text."""
        if name not in self.columns:
            if self.is_boolean(name):
                column = self.table.column(name).cast(nw.Int8).cast(nw.Float64).to_numpy()
                self.columns[name] = np.asarray(column, np.float64)
            else:
                self.columns[name] = self._floats(name)
        return self.columns[name]

    def _floats(self, name: str) -> Floats:
        """Return a column of numbers as floats; one of finite floats is not copied."""
        self.table.numeric_columns([name])
        if self.table.frame is not None and self.table.frame[name].dtype == nw.Float64:
            values = np.asarray(self.table.frame[name].to_numpy(), np.float64)
            if not self.options.na and np.isfinite(values.sum()):
                return np.ascontiguousarray(values)
        return self.table.floats([name], self.options.na)[:, 0]

    def domains(self, names: Sequence[str]) -> Domains:
        """Return the domains that the named columns form; those of each column are found once."""
        for name in names:
            if name not in self.column_domains:
                self.column_domains[name] = domains_of(self._cells(name))
        return joint_domains([self.column_domains[name] for name in names], self.n)

    def _cells(self, name: str) -> pl.Series:
        """Return the cells of a column, as numbers where these replace it; missing codes are null."""
        if name in self.masked_columns:
            return pl.Series(name, self.columns[name])
        found = polars_column(self.table.column(name))
        if not self.options.na or not found.dtype.is_numeric():
            return found
        return found.set(found.cast(pl.Float64).is_in(self.options.na), None)

    def grouping(self, by: tuple[str, ...]) -> Grouping:
        """Return the domains of the columns of `by` with the sampling design, computed once."""
        if by not in self.groupings:
            self.groupings[by] = Grouping(self.domains(by), self.design)
        return self.groupings[by]

    @cached_property
    def weights(self) -> Floats | None:
        """Survey weights as they are, not scaled; None without weights."""
        given = self.options.weights
        if given is None:
            return None
        if isinstance(given, (str, int)):
            name = str(given)
            self.require([name])
            values = self.numbers(name)
        else:
            name, values = "weights", Table(given).floats(Table(given).names)[:, 0]
            checks.require_length("weights", len(values), self.n)
        bad = int((~(values >= 0) | np.isinf(values)).sum())
        if bad:
            raise ValueError(
                f"weights {name!r} have {bad} {plural(bad, 'value')} missing or below 0 in the {self.which} "
                "data; correct or drop them"
            )
        return values

    @cached_property
    def design(self) -> Design:
        """Strata and units of the records."""
        strata = self._complete(self.options.strata, "stratum") if self.options.strata else None
        unit = self._complete((self.options.unit,), "unit") if self.options.unit is not None else None
        return Design(self.n, strata, unit, self._population)

    @property
    def _population(self) -> Floats | None:
        """Number of units in the population of each record's stratum; None where it is not given."""
        name = self.options.population
        if name is None:
            return None
        self.require([name])
        found = self.numbers(name)
        absent = int(np.isnan(found).sum())
        if absent:
            raise ValueError(
                f"the population {name!r} is missing in {absent} {plural(absent, 'record')} of the "
                f"{self.which} data; complete it"
            )
        return found

    def _complete(self, names: Sequence[str], what: str) -> Domains:
        """Return the strata or units that columns form; raise ValueError where a record has none.

        Missing codes do not count here: they are codes of values, and a unit may be called 0.
        """
        self.require(names)
        columns = [domains_of(polars_column(self.table.column(name))) for name in names]
        found = joint_domains(columns, self.n)
        absent = int((found.numbers < 0).sum())
        if absent:
            raise ValueError(
                f"the {what} {', '.join(names)} is missing in {absent} {plural(absent, 'record')} of the "
                f"{self.which} data; complete it or drop these records"
            )
        return found


def survey_files(
    original: Any,
    masked: Sequence[Any],
    *,
    weights: Any,
    strata: Any,
    unit: Any,
    na: Any,
    population: str | None = None,
) -> tuple[SurveyFile, list[SurveyFile]]:
    """Return the original and the masked files as surveys; prepared data bring their own roles along."""
    if isinstance(original, Original):
        table, options = _prepared(original, weights=weights, unit=unit, na=na)
    else:
        table = Table(original)
        options = Options(weights, (), checks.checked_unit(names_of(unit)), tuple(checks.missing_codes(na)))
    options = options._replace(strata=tuple(names_of(strata)), population=population)
    first = SurveyFile(table, "original", options)
    others = [SurveyFile(Table(one), "masked", options) for one in masked]
    for file in (first, *others):
        file.weights, file.design  # noqa: B018 - cached, so that errors come before any work
    return first, others


def _prepared(original: Original, *, weights: Any, unit: Any, na: Any) -> tuple[Table, Options]:
    """Return table and options of prepared data; an option that contradicts their roles is refused.

    Recoded columns are taken as they are published.
    """
    if original.table is None:
        raise ValueError("the prepared data have no table to read columns from; prepare the table anew")
    named = weights if isinstance(weights, (str, int)) else None
    roles = original.with_options(weights=named, unit=unit, na=na).roles
    if weights is None and roles.weights is None and original.weights is not None:
        raise ValueError(
            "the data are prepared with weights as numbers, whose scale is not kept; pass weights= again"
        )
    found = roles.weights if weights is None or named is not None else weights
    recoded = [*original.recoded.values()]
    table = Table(original.table.with_columns(recoded)) if recoded else original.table
    return table, Options(found, (), roles.unit, roles.na)
