"""Records as intruders compare them: spaces, ranks, classes of equal records, and the credit of a guess.

Only variables that the intruder knows have a column in a space.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
import polars as pl

from sdckit.arrays import Bools, Floats, Ints, UInt64s
from sdckit.core.cells import number_values
from sdckit.kernels.jit import kernel
from sdckit.kernels.sums import powers_of_two, whitening_axes
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polars._typing import RankMethod

    from sdckit.metrics.pair import Pair

REGULAR = 1e-10  # share of the largest eigenvalue below which a direction has no variance
TYPICAL = 1_000  # records from which the typical value of a column is taken
FARTHEST = 1e140  # standard deviations; squares of what lies beyond might leave the range of numbers
MOST, FEWEST = 20, 2  # permutations of short and of long files
PERMUTED = 200_000  # records in all, within these bounds: a mean over many records needs few permutations
HANDBOOK = "Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239"
RISK: dict[str, Any] = {"family": "risk", "bounds": (0.0, 1.0), "best": 0.0}
OF_ROWS: dict[str, Any] = {**RISK, "needs": "rows", "by_variable": False}
OVERVIEW: dict[str, Any] = {"place": 11, "shown": "overview", "paired": False, "reference": HANDBOOK}

File = TypeVar("File")  # a pair of files
More = ParamSpec("More")
Found = TypeVar("Found")


def once(
    function: Callable[Concatenate[File, More], Found], store: str = "cache"
) -> Callable[Concatenate[File, More], Found]:
    """Decorate a function of a pair or an original: what it finds is kept in its cache, under its name."""

    @wraps(function)
    def kept(file: File, /, *more: More.args, **options: More.kwargs) -> Found:
        """Return the answer, from the cache if it is there."""
        name = " ".join(map(str, (function.__name__, *more, *options.values())))
        return cached_value(getattr(file, store), name, lambda: function(file, *more, **options))

    return kept


def kept(function: Callable[[File], Found]) -> Callable[[File], Found]:
    """Decorate a function of an original: its answer outlives the table, see `Original.without_table`."""
    return once(function, "kept")


def cached_value(store: dict[str, Any], name: str, compute: Callable[[], Any]) -> Any:
    """Return the value stored under a name in a cache; compute and store it if absent."""
    name = f"risk: {name}"
    if name not in store:
        store[name] = compute()
    return store[name]


def last_value(store: dict[str, Any], name: str, key: Any, compute: Callable[[], Found]) -> Found:
    """Return the value last stored under a name if it was that of the same key; else compute and store it."""
    kept = store.get(name)
    if kept is None or not np.array_equal(kept[0], key):
        kept = store[name] = key, compute()
    return kept[1]


def known_files(pair: Pair) -> tuple[Floats, Floats]:
    """Return the variables that the intruder knows, of the original and of the masked file."""
    return known_columns(pair, pair.original.values), known_columns(pair, pair.masked)


def mean_or_nan(values: Floats | Bools) -> float:
    """Return the mean of the values, or the share of True; NaN without any."""
    return float(values.mean()) if values.size else math.nan


def score_of_file(
    pair: Pair, value: float, *, used: Ints | None = None, random: float | None = None, **more: Any
) -> Score:
    """Return a score with a value of the file and none of single variables, in which no cell is left out."""
    none, used = np.full(pair.p, np.nan), pair.counts.both if used is None else used
    level = None if random is None else Values(random, none)
    return Score(Values(value, none), used, np.zeros(pair.p, np.int64), random=level, **more)


def known_columns(pair: Pair, values: Floats) -> Floats:
    """Return the columns of the variables that the intruder knows."""
    known = pair.known_variables
    return values if len(known) == pair.p else np.ascontiguousarray(values[:, known])


@once
def breaks_rules(pair: Pair) -> bool:
    """Return True if masked records break the edit rules, so that they were not repaired."""
    if pair.rules is None:
        return False
    columns = [pair.columns.index(name) for name in pair.rules.columns]
    return bool(pair.rules.violations(pair.masked[:, columns]).any())


# --- standard deviations ---------------------------------------------------------------------------------


class Scale(NamedTuple):
    """Unit (a power of two), typical value and 1 / standard deviation of each column, to scale values.

    The typical value is not the mean: one enormous value would move the mean far from all others, whose
    differences, and so their ties, would be lost in rounding.
    """

    unit: Floats
    centre: Floats
    factor: Floats  # 0 for a column that does not vary
    mean: Floats  # standardised, too

    def apply(self, values: Floats) -> Floats:
        """Return deviations from the typical values in standard deviations; 0 in a constant column."""
        with np.errstate(over="ignore", invalid="ignore"):  # cut below
            found = np.ascontiguousarray((values / self.unit - self.centre) * self.factor)
        found[:, self.factor == 0] = 0.0
        found[np.isnan(values)] = np.nan
        return np.clip(found, -FARTHEST, FARTHEST, out=found)


def column_scale(values: Floats) -> Scale:
    """Return typical value and standard deviation of each column, missing cells left out."""
    unit = powers_of_two(np.stack([np.fmax.reduce(values), np.fmin.reduce(values)]))
    unit[unit == 0] = 1.0
    some = np.sort(values[:: max(len(values) // TYPICAL, 1)] / unit, axis=0)  # NaN last
    centre = some[(~np.isnan(some)).sum(axis=0) // 2, np.arange(len(unit))]
    centre[np.isnan(centre)] = 0.0
    cells = values / unit - centre
    seen = ~np.isnan(cells)
    count = np.maximum(seen.sum(axis=0), 2)
    mean = np.cumsum(np.where(seen, cells, 0.0), axis=0)[-1] / count  # added up in one order on any machine
    sd = np.sqrt(np.cumsum(np.where(seen, (cells - mean) ** 2, 0.0), axis=0)[-1] / (count - 1))
    factor = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
    return Scale(unit, centre, factor, mean * factor)


def original_scale(pair: Pair) -> Scale:
    """Return typical value and standard deviation of each original column, computed once."""
    return cached_value(pair.original.cache, "scale", lambda: column_scale(pair.original.values))


def standardised_variables(pair: Pair) -> tuple[Floats, Floats]:
    """Return all variables of both files in standard deviations of the original; 0 if constant."""
    original, scale = pair.original, original_scale(pair)
    ours = cached_value(original.cache, "standardised", lambda: scale.apply(original.values))
    return ours, cached_value(pair.cache, "standardised", lambda: scale.apply(pair.masked))


def standardised(pair: Pair) -> tuple[Floats, Floats]:
    """Return the known variables of both files in standard deviations of the original; 0 if constant."""
    ours, theirs = standardised_variables(pair)
    return known_columns(pair, ours), known_columns(pair, theirs)


def squared_lengths(pair: Pair) -> Floats:
    """Return each original record's squared standardised distance from the mean; missing cells add 0."""
    gaps = standardised_variables(pair)[0] - original_scale(pair).mean
    found = np.zeros(len(gaps))
    for column in gaps.T:
        found += np.where(np.isnan(column), 0.0, column * column)
    return found


# --- principal axes --------------------------------------------------------------------------------------


@once
def whitened(pair: Pair) -> tuple[Floats, Floats]:
    """Return both files along the masked file's principal axes, scaled to unit variance there.

    Directions without variance are left out, such as that of a total that is the sum of its parts. A missing
    cell is set to the masked file's mean; a record without any value is NaN.
    """
    files = known_files(pair)
    scale = column_scale(files[1])
    filled = [np.where(np.isnan(values), scale.mean, scale.apply(values)) for values in files]
    release = filled[1] - scale.mean
    axes = whitening_axes(release.T @ release / max(len(release) - 1, 1), REGULAR)
    axes = axes if axes.size else np.zeros((release.shape[1], 1))
    # One axis after the other: the same to the last digit for equal rows, unlike BLAS.
    ours, theirs = (
        sum((column[:, None] * axis for column, axis in zip(cells.T, axes, strict=True)), np.zeros((1, 1)))
        for cells in filled
    )
    for points, values in zip((ours, theirs), files, strict=True):
        points[np.isnan(values).all(axis=1)] = np.nan
    return ours, theirs


# --- ranks -----------------------------------------------------------------------------------------------


class TieBlocks(NamedTuple):
    """First and last rank, from 0, of the values equal to each cell's, per variable; NaN if missing."""

    first: Floats
    last: Floats


def tie_blocks(values: Floats) -> TieBlocks:
    """Return first and last rank of the values equal to each cell's."""
    return TieBlocks(
        *(np.column_stack([ranks_within(column, None, way) for column in values.T]) for way in ("min", "max"))
    )


def tie_blocks_of_files(pair: Pair) -> tuple[TieBlocks, TieBlocks]:
    """Return first and last rank of the values equal to each cell's, in the original and masked file."""
    ours = cached_value(pair.original.cache, "blocks", lambda: tie_blocks(pair.original.values))
    return ours, cached_value(pair.cache, "blocks", lambda: tie_blocks(pair.masked))


def mid_ranks_of(values: Floats, start: float = 1.0) -> Floats:
    """Return the mid-rank, from 1, of each cell in its column, scaled to all records; NaN where missing."""
    ranks = [ranks_within(column) + start for column in values.T]
    sizes = np.maximum((~np.isnan(values)).sum(axis=0), 1)
    return np.column_stack(ranks) * (len(values) / sizes)


def ranks_within(values: Floats, blocks: Ints | None = None, ties: RankMethod = "average") -> Floats:
    """Return ranks from 0 of the values, within their block if given; equal ones share, and NaN stays NaN."""
    cells = pl.DataFrame({"value": values + 0.0, "block": 0 if blocks is None else blocks})  # no -0.0
    ranks = pl.col("value").fill_nan(None).rank(ties).cast(float) - 1
    found = cells.select((ranks if blocks is None else ranks.over("block")).fill_null(np.nan))
    return found.to_series().to_numpy()


@once
def mid_ranks(pair: Pair) -> tuple[Floats, Floats]:
    """Return the known variables of both files as mid-ranks, each file ranked by itself."""
    ours, theirs = (mid_ranks_of(file, 0.5) for file in known_files(pair))
    return ours, theirs


def permutations(n: int, blocks: Ints | None = None) -> Iterator[Ints]:
    """Yield random orders of n records, the same at every call: 20 for short files, down to 2 for long.

    They tell what an attack finds by chance, where simple formulas fail under ties. With `blocks`, records
    change places within their block only.
    """
    rng = np.random.default_rng(0)
    for _ in range(min(MOST, max(FEWEST, PERMUTED // n))):
        if blocks is None:
            yield rng.permutation(n)
        else:
            found = np.empty(n, np.int64)
            found[np.argsort(blocks, kind="stable")] = np.lexsort((rng.random(n), blocks))
            yield found


# --- equal records, which share the credit of a guess ----------------------------------------------------


class Credits(NamedTuple):
    """Success of each of the intruder's guesses, from 0 to 1, under three rules for equally good guesses.

    `expected` shares the credit among equals; `strict` counts only guesses without an equal,
    `optimistic` all that may be right.
    """

    expected: Floats
    strict: Floats
    optimistic: Floats


def credits_of_counts(closer: Ints, tied: Ints, places: int) -> Credits:
    """Return credits from the numbers of targets closer than the true one and equally close."""
    left = np.maximum(places - closer, 0)
    return Credits(
        np.minimum(1.0, left / np.maximum(tied, 1)) * (left > 0),
        ((left > 0) & (tied <= left)).astype(float),
        (left > 0).astype(float),
    )


@kernel
def _add_marks(bits: UInt64s, marks: UInt64s) -> None:
    """Mix the bits of each row's cells into its mark (splitmix64)."""
    for j in range(bits.shape[1]):
        for i in range(len(bits)):
            x = (marks[i] ^ bits[i, j]) + np.uint64(0x9E3779B97F4A7C15)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            marks[i] = x ^ (x >> np.uint64(31))


def row_marks(*parts: Floats | Ints | UInt64s) -> UInt64s:
    """Return a pseudo-random number for each record, equal for records with equal cells in all parts.

    Missing cells are equal to each other. Two of a million different records share a number with a
    probability below 1e-7.
    """
    marks = np.zeros(len(parts[0]), np.uint64)
    for part in parts:
        cells = part.reshape(len(part), -1)
        if cells.dtype.kind == "f":
            cells = np.where(np.isnan(cells), np.nan, cells + 0.0)  # one kind of NaN, and no -0.0
        if cells.shape[1]:
            _add_marks(np.ascontiguousarray(cells).view(np.uint64), marks)
    return marks


def rows_like(marks: UInt64s, rows: Ints) -> Ints:
    """Return all rows whose mark is that of one of the given rows, in ascending order."""
    return np.flatnonzero(pl.Series(marks).is_in(pl.Series(marks[rows])))


def places_among(cells: Floats | Ints, values: Floats | Ints) -> Ints:
    """Return the place of each cell among sorted values; -1 for a cell that is not one of them."""
    if not values.size:
        return np.full(len(cells), -1)
    place = np.minimum(np.searchsorted(values, cells), len(values) - 1)
    return np.where(values[place] == cells, place, -1)


class RecordClasses:
    """Records grouped by equal labels: each record's class and the number of records in it."""

    def __init__(self, labels: Ints | UInt64s) -> None:
        self.numbers: Ints = number_values(labels)
        self.sizes: Ints = np.bincount(self.numbers)
        self.alone: bool = bool(self.sizes.max(initial=1) == 1)

    @property
    def firsts(self) -> Ints:
        """A record of each class."""
        found = np.empty(len(self.sizes), np.int64)
        found[self.numbers] = np.arange(len(self.numbers))
        return found

    def shared(self, found: Credits) -> Credits:
        """Return the success of each query, shared among the queries of its class."""
        if self.alone:
            return found
        expected, optimistic = (
            (np.bincount(self.numbers, weights=values) / self.sizes)[self.numbers]
            for values in (found.expected, found.optimistic)
        )
        return Credits(expected, found.strict * (self.sizes[self.numbers] == 1), optimistic)
