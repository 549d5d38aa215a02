"""The score of a metric, and the records that risks are measured on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.core.randomness import stream_generator

if TYPE_CHECKING:
    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.metrics.pair import Pair


@dataclass(frozen=True)
class Values:
    """One number for the whole file and one for each variable."""

    overall: float
    variables: Floats


@dataclass(frozen=True)
class WorstAttack:
    """Name and direction of the attack that links most records of a file."""

    name: str
    direction: str


class Estimate(NamedTuple):
    """An interval for a value of all records, and the numbers of records that it was estimated on."""

    low: float
    high: float
    drawn: int
    records: int

    @property
    def text(self) -> str:
        """The estimate in words, such as "estimated on 500 of 3000 records, 95% interval 0.08 to 0.12"."""
        ends = f"95% interval {self.low:.3g} to {self.high:.3g}"
        return f"estimated on {self.drawn} of {self.records} records, {ends}"


@dataclass(frozen=True)
class Score:
    """Result of a metric: value, value for unrelated records, range over ties, and counts of cells."""

    value: Values
    used: Ints
    left_out: Ints
    random: Values | None = None
    tie_low: Values | None = None
    tie_high: Values | None = None
    records: Floats | None = None
    notes: tuple[str, ...] = ()
    parts: dict[str, float] = field(default_factory=dict)  # components of the value, by name
    subject: str = ""  # names of the columns that the value is about, where these are not the variables
    attack: WorstAttack | None = None  # the attack that the value of a linkage risk is from
    estimate: Estimate | None = None  # where the value is that of a sample of records


def sentence_of(
    score: Score,
    text: str,
    *,
    factor: float = 1.0,
    empty: str = "there are no cells to compare",
    kept: str = "",
    infinite: str = "",
    unrelated: bool = True,
) -> str:
    """Return `text` with the value of the file times `factor` filled in, and the value in unrelated order.

    `empty` is said of a file without a value, `kept` of the value 0, and `infinite` of an infinite one.
    """
    value = score.value.overall
    if math.isnan(value):
        return empty
    if (value == 0 and kept) or (math.isinf(value) and infinite):
        return infinite if value else kept
    sentence = text.format(value * factor)
    if unrelated and score.random is not None and not math.isnan(score.random.overall):
        sentence += f"; an unrelated order would score {score.random.overall:.4g}"
    return sentence


CONFIDENCE = 0.95
LOOKED_UP = 5_000  # records of a large file, at first
SEED = 0  # of the random order in which records are drawn: the same files give the same estimate


@dataclass(frozen=True)
class QuerySample:
    """How many query records are drawn, and the stream of random numbers that decides which.

    A larger sample of the same stream contains the smaller one. `confidence` is that of intervals.
    """

    size: int
    stream: int = 0
    confidence: float = CONFIDENCE

    def order(self, n: int, cache: dict[str, Any] | None = None, first: int = 0) -> Ints:
        """Return the numbers of n records in the random order in which they are drawn, kept in a cache.

        `first` is the row number of the first of them: strata of the same size draw in other orders.
        """
        found: Ints | None = None if cache is None else cache.get(f"order {self.stream}")
        if found is None:
            numbers = (self.stream, n, first) if first else (self.stream, n)
            found = stream_generator(SEED, numbers).permutation(n)
        if cache is not None:
            cache[f"order {self.stream}"] = found
        return found


@dataclass(frozen=True)
class Sampling:
    """Sizes of samples: the first one, doubled until each interval lies on one side of the limit of its risk.

    `limits` are those by the name of a risk; one without a limit is estimated on the first sample. `most` is
    the largest sample; None goes on until all records are looked up, so that the value is exact.
    """

    first: int
    limits: Mapping[str, float] = field(default_factory=dict)
    most: int | None = None
    stream: int = 0

    def sizes(self, n: int) -> list[int]:
        """Return the sizes of the samples of n records that are tried in turn; n itself stands for all."""
        last = n if self.most is None else min(self.most, n)
        found = [min(self.first, last)]
        while found[-1] < last:
            size = 2 * found[-1]
            found.append(n if 2 * size > n and last == n else min(size, last))
        return found

    def scores(
        self, risk: str, pairs: Sequence[Pair], measure: Callable[[], list[Score | None]]
    ) -> list[Score | None]:
        """Return the scores that `measure` gives for the pairs, the whole file first, on a sample.

        The error of the interval is divided among the samples that may be tried, so that it holds however
        many were needed.
        """
        limit, sizes = self.limits.get(risk), self.sizes(pairs[0].original.n)
        tried = sizes[:1] if limit is None else sizes
        for size in tried:
            for pair in pairs:
                pair.sample = QuerySample(size, self.stream, 1 - (1 - CONFIDENCE) / len(tried))
            found = measure()
            if limit is None or found[0] is None or settles(found[0].estimate, limit):
                break
        return found


def settles(estimate: Estimate | None, limit: float) -> bool:
    """Return True if an interval lies wholly on one side of a limit, or the value is exact."""
    return estimate is None or estimate.high <= limit or estimate.low > limit


def sampling_of(size: Any) -> Sampling | None:
    """Return the sampling with a given first size; None for 0 and None, which stand for all records."""
    if size is None or checks.as_number(size) == 0:
        return None
    return Sampling(checks.checked_count("sample_queries", size))


class Queries(NamedTuple):
    """The records that a risk is about, or those drawn from them."""

    rows: Bools | Ints  # True for each record that counts; or the numbers of the records drawn
    records: int  # number of records that count
    sample: QuerySample | None = None  # None where all of them are looked up

    @property
    def drawn(self) -> int:
        """Number of records that are looked up."""
        return self.records if self.sample is None else len(self.rows)

    def scatter(self, values: Floats, n: int) -> Floats:
        """Return the values of the records looked up as those of n records, NaN for all others."""
        found = np.full(n, np.nan)
        found[self.rows] = values
        return found


def estimate_of_largest(total: float, queries: Queries, tried: int = 1) -> Estimate | None:
    """Return the interval for the largest of several mean credits, from the largest sum over one sample.

    Clopper-Pearson intervals, which are wide enough for credits between 0 and 1, too. The upper end is that
    of the largest sum: no correction is needed, since it is not below the upper end of the attack that is
    the largest on all records. The largest of several estimates tends to be too large, though, so that the
    error of the lower end is divided among all that were tried. None where all records were looked up.
    """
    if queries.sample is None:
        return None
    from scipy.special import betaincinv  # noqa: PLC0415 - slow to import, and rarely needed

    m, tail = queries.drawn, (1 - queries.sample.confidence) / 2
    total = min(total, m)
    low = float(betaincinv(total, m - total + 1, tail / tried)) if total > 0 else 0.0
    high = float(betaincinv(total + 1, m - total, 1 - tail)) if total < m else 1.0
    return Estimate(low, high, m, queries.records)


def larger_estimate(values: Sequence[float], estimates: Sequence[Estimate | None]) -> Estimate | None:
    """Return the interval for the largest of some values, from an interval for each.

    A value without an estimate is exact, and the interval does not lie below it. None where all are.
    """
    known = [one for one in estimates if one is not None]
    if not known:
        return None
    ends = [(v, v) if one is None else one[:2] for v, one in zip(values, estimates, strict=True)]
    low, high = (max(found) for found in zip(*ends, strict=True))
    return known[0]._replace(low=low, high=high)


def mean_estimate(
    values: Sequence[float], estimates: Sequence[Estimate | None], weights: Floats
) -> Estimate | None:
    """Return the interval for a weighted mean of values, from independent estimates of each.

    The distances of the ends from the values add up in squares (Zou & Donner 2008, doi:10.1002/sim.3095).
    A value without an estimate is exact. None where all are.
    """
    known = [one for one in estimates if one is not None]
    if not known:
        return None
    shares = weights / weights.sum()
    found = np.asarray(values)
    ends = np.array([(v, v) if one is None else one[:2] for v, one in zip(values, estimates, strict=True)])
    below, above = (np.sqrt((shares**2) @ (ends[:, side] - found) ** 2) for side in (0, 1))
    mean = float(shares @ found)
    exact = int(weights.sum()) - sum(one.records for one in known)
    drawn = exact + sum(one.drawn for one in known)
    return Estimate(max(mean - below, 0.0), min(mean + above, 1.0), drawn, int(weights.sum()))
