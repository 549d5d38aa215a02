"""Means and sums of squares of columns, merged over blocks of records without loss of digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.scaling import spread_of_sums
from sdckit.metrics.blocks.coupled_columns import stream_power

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sdckit.kernels.jit import Bools, Floats, Ints


@dataclass(frozen=True)
class ColumnMoments:
    """Count, weight, mean, sum of squared deviations, smallest and largest value of several columns.

    The mean is `origin + offset`, where the origin is a value of the column: in data like 1e9 + small the
    offset keeps digits that the mean has no place for. Origin and offset count in units of 2**power and
    `squares` in units of 4**power; the power is 0 for all but extreme columns. Columns without a value have
    a smallest value of infinity and a largest of minus infinity.
    """

    count: Ints
    weight: Floats
    origin: Floats
    offset: Floats
    squares: Floats
    power: NDArray[np.int32]
    low: Floats
    high: Floats

    @classmethod
    def of(cls, values: Floats, seen: Bools, weights: Floats | None = None) -> ColumnMoments:
        """Return the moments of a block's seen cells; `values` has one row per column."""
        low = np.min(values, axis=1, initial=np.inf, where=seen)
        high = np.max(values, axis=1, initial=-np.inf, where=seen)
        count = seen.sum(1)
        largest = np.where(count > 0, np.maximum(np.abs(low), np.abs(high)), 1.0)
        power = np.concatenate([stream_power(one) for one in largest[:, None]])
        origin = np.ldexp(np.where(count > 0, low, 0.0), -power)
        if power.any():
            values = np.ldexp(values, -power[:, None])
        shares = seen.astype(np.float64) if weights is None else seen * weights
        gaps = np.where(seen, values - origin[:, None], 0.0)
        weight = shares.sum(1)
        offset = np.divide((gaps * shares).sum(1), weight, out=np.zeros(count.size), where=weight > 0)
        squares = ((gaps - offset[:, None]) ** 2 * shares).sum(1)
        return cls(count, weight, origin, offset, squares, power, low, high)

    def merge(self, other: ColumnMoments) -> ColumnMoments:
        """Return the moments of two blocks together."""
        power = np.where(self.count == 0, other.power, self.power)
        power = np.where((self.count > 0) & (other.count > 0), np.maximum(power, other.power), power)
        ours, theirs = self._in_unit(power), other._in_unit(power)
        origin = np.where(self.count > 0, ours.origin, theirs.origin)
        first, second = ((part.origin - origin) + part.offset for part in (ours, theirs))
        first = np.where(self.count > 0, first, second)
        second = np.where(other.count > 0, second, first)
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros(weight.size), where=weight > 0)
        gap = second - first
        return ColumnMoments(
            count=self.count + other.count,
            weight=weight,
            origin=origin,
            offset=first + gap * share,
            squares=ours.squares + theirs.squares + gap * gap * share * self.weight,
            power=power,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
        )

    def _in_unit(self, power: NDArray[np.int32]) -> ColumnMoments:
        """Return the same moments in units of other powers of two."""
        if np.array_equal(power, self.power):
            return self
        up = self.power - power
        return ColumnMoments(
            self.count,
            self.weight,
            np.ldexp(self.origin, up),
            np.ldexp(self.offset, up),
            np.ldexp(self.squares, 2 * up),
            power,
            self.low,
            self.high,
        )

    @property
    def means(self) -> Floats:
        """Mean of each column; 0 for one without a value."""
        found: Floats = np.ldexp(self.origin + self.offset, self.power)
        return found

    @property
    def variances(self) -> Floats:
        """Mean squared deviation of each column, in units of 4**power; 0 for one without a value."""
        return np.divide(self.squares, self.weight, out=np.zeros(self.weight.size), where=self.weight > 0)

    def spreads(self, *, weighted: bool) -> Floats:
        """Return the standard deviation (ddof 1) of each column; 0 for fewer than two values."""
        found: Floats = np.ldexp(
            spread_of_sums(self.squares, self.count, self.weight if weighted else None), self.power
        )
        return found

    @property
    def constant(self) -> Bools:
        """True for each column whose values are all equal, and for one without a value."""
        return self.low >= self.high

    @property
    def largest(self) -> Floats:
        """Largest absolute value of each column; 0 for one without a value."""
        return np.where(self.count > 0, np.maximum(np.abs(self.low), np.abs(self.high)), 0.0)
