"""A file as a survey: columns read when they are needed, domains, sums and variances over its design."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import narwhals as nw
import numpy as np
import polars as pl

from sdckit.core import checks
from sdckit.core.cells import NUMBER, converted, number_values, polars_column
from sdckit.core.checks import shown
from sdckit.core.table import Table, is_missing, names_of
from sdckit.core.text import plural
from sdckit.kernels.sums import NOTHING, cell_moments
from sdckit.metrics.original import HoldsOriginal, Original

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sdckit.arrays import Bools, Floats, Int32s, Ints


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
    """Return the original and the masked files as surveys; a microdata brings its own roles along."""
    if isinstance(original, HoldsOriginal):
        table, options = _prepared(original.original, weights=weights, unit=unit, na=na)
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
    """Return table and options of a microdata; an option that it states itself is refused.

    Recoded columns are taken as they are published.
    """
    if original.table is None:
        raise ValueError("the prepared data have no table to read columns from; prepare the table anew")
    roles = original.roles
    for name, given in {"weights": weights, "unit": unit, "na": na}.items():
        if given is not None and getattr(roles, name):
            raise TypeError(f"the data are a Microdata, which states {name}; leave {name} out")
    if weights is None and roles.weights is None and original.weights is not None:
        raise ValueError("the weights of the data are numbers, whose scale is not kept; pass weights= again")
    found = roles.weights if weights is None else weights
    recoded = [*original.recoded.values()]
    table = Table(original.table.with_columns(recoded)) if recoded else original.table
    units = roles.unit if unit is None else checks.checked_unit(names_of(unit))
    return table, Options(found, (), units, roles.na if na is None else tuple(checks.missing_codes(na)))


# --- domains: records that share their cells in some columns, with labels that are equal in both files ---


WHOLE = "all"  # the domain of all records


@dataclass(frozen=True)
class Domains:
    """Labels of the domains in their order, and the number of each record's domain; -1 outside all."""

    labels: list[str]
    numbers: Ints

    @property
    def count(self) -> int:
        """Number of domains."""
        return len(self.labels)


def joint_domains(columns: Sequence[Domains], n: int) -> Domains:
    """Return the domains that the cells of several columns form together; those of all records for none."""
    if not columns:
        return Domains([WHOLE], np.zeros(n, np.int64))
    if len(columns) == 1:
        return columns[0]
    numbers, outside = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for column in columns:
        numbers, outside = numbers * max(column.count, 1) + column.numbers, outside | (column.numbers < 0)
        numbers[outside] = 0
    inside, found = numbers[~outside], np.full(n, -1)
    found[~outside] = number_values(inside)
    present = np.empty(int(found.max(initial=-1)) + 1, np.int64)
    present[found[~outside]] = inside
    sizes = [column.count for column in columns]
    parts = np.unravel_index(present, sizes) if present.size else [present for _ in sizes]
    labels = [
        ", ".join(column.labels[i] for column, i in zip(columns, place, strict=True))
        for place in zip(*parts, strict=True)
    ]
    return Domains(labels, found)


def domains_of(column: pl.Series) -> Domains:
    """Return the domains that the cells of a column form; a missing cell belongs to none.

    Cells are compared after one conversion: 1, 1.0 and "1" are equal. Numbers come before texts.
    """
    if column.dtype == pl.Object or column.dtype.is_nested():
        cells = [None if is_missing(cell) else str(cell) for cell in column.to_list()]
        column = pl.Series(column.name, cells, pl.String)
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype.is_float():
        column = column.fill_nan(None)
    distinct = column.drop_nulls().unique()
    keys = [converted(cell) for cell in distinct.to_list()]
    order = {key: place for place, key in enumerate(sorted({key for key in keys if key}))}
    if not order:
        return Domains([], np.full(len(column), -1))
    places = pl.Series([-1 if key is None else order[key] for key in keys], dtype=pl.Int64)
    numbers = column.replace_strict(distinct, places, default=-1, return_dtype=pl.Int64)
    return Domains([_label(*key) for key in order], numbers.to_numpy())


def _label(kind: int, value: float | str) -> str:
    """Return a cell after its conversion as text; a whole number has no decimals."""
    if kind == NUMBER and float(value).is_integer() and abs(float(value)) < 1e15:
        return str(int(value))
    return str(value)


# --- sums over domains, and variances of estimated totals over a design of strata and units ---


Array = TypeVar("Array", "Floats", "Int32s")


class Design:
    """How the records of a file were drawn: units with replacement within strata; a record without a unit.

    `stratum` and `unit` have a number for each record, None where all are in one stratum or are units
    themselves. A unit that lies in two strata counts as two. `sizes` are the units of each stratum.
    `left` is the share of each stratum's units that was not drawn: 1 without `population`, the number of
    units in the population of each record's stratum.
    """

    def __init__(
        self, n: int, strata: Domains | None, units: Domains | None, population: Floats | None = None
    ) -> None:
        self.stratum: Ints | None = None if strata is None else strata.numbers
        self.strata: int = 1 if strata is None else strata.count
        self.unit: Ints | None = None
        if units is None:
            of_unit = self.stratum
            count = n
        else:
            both = units.numbers if self.stratum is None else units.numbers * self.strata + self.stratum
            self.unit = number_values(both)
            count = int(self.unit.max(initial=-1)) + 1
            of_unit = None if self.stratum is None else _of_groups(self.unit, self.stratum, count)
        self.sizes: Floats = (
            np.array([float(count)]) if of_unit is None else np.bincount(of_unit).astype(float)
        )
        self.left: Floats = (
            np.ones(self.sizes.size) if population is None else 1 - self.sizes / self._each(population)
        )

    def _each(self, population: Floats) -> Floats:
        """Return the population of each stratum; raise ValueError if records disagree or it is too small."""
        numbers = np.zeros(population.size, np.int64) if self.stratum is None else self.stratum
        found = np.empty(self.sizes.size)
        found[numbers] = population
        if not (found[numbers] == population).all():
            raise ValueError("the population differs between records of a stratum; give one number for each")
        few = np.flatnonzero(found < self.sizes)
        if few.size:
            at = int(few[0])
            raise ValueError(
                f"a stratum has {self.sizes[at]:g} units and a population of {shown(f'{found[at]:g}')}; give "
                "the number of units that could have been drawn"
            )
        return found


class Grouping:
    """Domains of a file together with its design: sums over domains and variances of such sums."""

    def __init__(self, domains: Domains, design: Design) -> None:
        self.labels: list[str] = domains.labels
        self.count: int = domains.count
        self.design = design
        outside = domains.numbers < 0
        self.some_outside: bool = bool(outside.any())
        # Records outside all domains form one more, the last, which is cut off from all results.
        self.numbers: Ints = (
            np.where(outside, self.count, domains.numbers) if self.some_outside else domains.numbers
        )

    def sums(self, values: Floats | None, weights: Floats | None = None) -> Floats:
        """Return the weighted sum of the values over the records of each domain; their number for None."""
        if values is None:
            return self.records.astype(float)
        none = np.zeros(self.count + 1)
        return _moments(self._small, values, weights, none)[0][: self.count]

    @cached_property
    def _small(self) -> Int32s:
        """Number of each record's domain in four bytes, as sums are as fast as memory is read."""
        return self.numbers.astype(np.int32)

    @cached_property
    def records(self) -> Ints:
        """Number of records of each domain."""
        return self.count_records(None)

    def count_records(self, chosen: Bools | None) -> Ints:
        """Return how many of the chosen records, or of all, each domain has."""
        numbers = self.numbers if chosen is None else self.numbers[chosen]
        return np.bincount(numbers, minlength=self.count + 1)[: self.count]

    @cached_property
    def by_domain(self) -> Ints:
        """Row numbers sorted by domain; records outside all domains come last."""
        small = self.numbers.astype(np.uint16) if self.count < 2**16 else self.numbers
        return np.argsort(small, kind="stable")

    def slices(self) -> Iterator[tuple[int, int]]:
        """Yield where the records of each domain begin and end in `by_domain`."""
        end = 0
        for records in self.records.tolist():
            begin, end = end, end + records
            yield begin, end

    def at_records(self, values: Floats) -> Floats:
        """Return the value of each record's domain; 0 outside all domains."""
        return np.take(np.append(values, 0.0), self.numbers)

    @cached_property
    def _parts(self) -> tuple[Ints | None, Int32s, Floats]:
        """The pair of unit and domain of each record, the cell of each pair, and the pairs of each cell.

        A cell is a domain in a stratum. Without units each record is a pair, which needs no number.
        """
        design = self.design
        cells = self.numbers if design.stratum is None else self.numbers * design.strata + design.stratum
        pairs = None
        if design.unit is not None:
            pairs = number_values(design.unit * (self.count + 1) + self.numbers)
            cells = _of_groups(pairs, cells, int(pairs.max(initial=-1)) + 1)
        sizes = np.bincount(cells, minlength=(self.count + 1) * design.strata).astype(float)
        return pairs, self._small if cells is self.numbers else cells.astype(np.int32), sizes

    @cached_property
    def _factors(self) -> Floats:
        """By what squares about a mean are multiplied in each cell: units / (units - 1), and what is left."""
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = self.design.sizes / (self.design.sizes - 1) * self.design.left
        factors[self.design.left == 0] = 0.0  # also of one unit, which is the whole stratum
        return np.tile(factors, self.count + 1)

    def totals(self, values: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """Return each domain's weighted sum of the values and its variance.

        The variance is NaN where a stratum has one unit.
        """
        pairs, cells, sizes = self._parts
        if pairs is not None:
            parts = values if weights is None else values * weights
            values = np.asarray(np.bincount(pairs, parts, cells.size), np.float64)
            weights = None
        none = np.zeros(sizes.size)
        sums, _ = _moments(cells, values, weights, none)
        with np.errstate(divide="ignore", invalid="ignore"):
            shifts = np.where(sizes > 0, sums / sizes, 0.0)
        rest, squares = _moments(cells, values, weights, none, shifts=shifts)
        squares -= rest**2 / np.maximum(sizes, 1.0)
        whole = sums.reshape(-1, self.design.strata)[: self.count].sum(1)
        return np.asarray(whole), self._finished(sums, squares)

    def variances(self, values: Floats, weights: Floats | None = None) -> Floats:
        """Return the variance of each domain's weighted sum of the values."""
        return self.totals(values, weights)[1]

    def residual_variances(
        self,
        values: Floats,
        weights: Floats | None,
        centres: Floats,
        others: Floats | None = None,
        slopes: Floats | None = None,
    ) -> Floats:
        """Return the variance of each domain's weighted sum of value - slope * other - centre.

        Centres and slopes are those of domains; the sum over all strata of a domain is 0 or nearly so.
        """
        pairs, cells, sizes = self._parts
        if pairs is not None:
            residuals = values - self.at_records(centres)
            if others is not None and slopes is not None:
                residuals -= self.at_records(slopes) * others
            return self.variances(residuals, weights)
        middle, factor = (self._at_cells(one) for one in (centres, slopes))
        sums, squares = _moments(cells, values, weights, middle, others, factor)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._finished(sums, np.where(sizes > 0, squares - sums**2 / sizes, 0.0))

    def _at_cells(self, values: Floats | None) -> Floats:
        """Return the value of each cell's domain; 0 outside all domains and where there is none."""
        known = np.zeros(self.count) if values is None else np.nan_to_num(values, posinf=0.0, neginf=0.0)
        return np.repeat(np.append(known, 0.0), self.design.strata)

    def _finished(self, sums: Floats, squares: Floats) -> Floats:
        """Return variances from the sums over each cell and its squares about their own mean.

        Units outside the domain count as 0. In a stratum with n units, of which m have records in the
        domain, the squares about the mean of all n are those of the m about their own mean, and
        (n - m) / (n m) times their squared sum.
        """
        sizes, units = self._parts[2], np.tile(self.design.sizes, self.count + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = squares + sums**2 * (units - sizes) / (sizes * units)
            found = np.where(sizes > 0, whole * self._factors, 0.0)
        return np.asarray(found.reshape(-1, self.design.strata)[: self.count].sum(1))


def _moments(
    cells: Int32s,
    values: Floats,
    weights: Floats | None,
    centres: Floats,
    others: Floats | None = None,
    slopes: Floats | None = None,
    *,
    shifts: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return sums and sums of squares over cells; options that are None play no part."""
    none = np.zeros(centres.size)
    return cell_moments(
        _frozen(cells),
        _frozen(NOTHING if weights is None else weights),
        _frozen(values),
        _frozen(NOTHING if others is None else others),
        none if slopes is None else slopes,
        centres,
        none if shifts is None else shifts,
    )


def _frozen(array: Array) -> Array:
    """Return a view that cannot be written to, as polars columns are: one compiled kernel serves all."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _of_groups(groups: Ints, values: Ints, count: int) -> Ints:
    """Return the value that the records of each group share."""
    found = np.empty(count, np.int64)
    found[groups] = values
    return found
