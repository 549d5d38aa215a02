"""Numbers kept as mantissa and power of two, so that no sum, product or quotient leaves their range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sdckit.kernels.jit import Floats

LOWEST = -(2**20)  # below the exponent of any product of a few floats


@dataclass(frozen=True)
class Scaled:
    """Arrays of numbers `mantissas` times 2 to the `exponents`."""

    mantissas: Floats
    exponents: NDArray[np.int32]

    @classmethod
    def of(cls, values: Floats) -> Scaled:
        """Return floats as scaled numbers; no digit changes."""
        return cls(*np.frexp(values))

    @classmethod
    def gaps(cls, x: Floats, y: Floats) -> Scaled:
        """Return |x - y|, also where that exceeds the largest float."""
        gaps = np.abs(x - y)
        beyond = np.isinf(gaps)
        found = cls.of(np.where(beyond, np.abs(x / 2 - y / 2), gaps))
        return cls(found.mantissas, found.exponents + beyond.astype(np.int32))

    @classmethod
    def stack(cls, parts: list[Scaled]) -> Scaled:
        """Return one array of several scaled numbers or arrays of the same length."""
        return cls(
            np.array([part.mantissas for part in parts]),
            np.array([part.exponents for part in parts], np.int32),
        )

    def __mul__(self, other: Scaled) -> Scaled:
        return Scaled(self.mantissas * other.mantissas, self.exponents + other.exponents)

    def __truediv__(self, other: Scaled) -> Scaled:
        return Scaled(self.mantissas / other.mantissas, self.exponents - other.exponents)

    def minus(self, other: Scaled) -> Scaled:
        """Return the differences from other scaled numbers."""
        return Scaled.stack([self, Scaled(-other.mantissas, other.exponents)]).sum()

    def __getitem__(self, chosen: NDArray[np.bool_]) -> Scaled:
        return Scaled(self.mantissas[chosen], self.exponents[chosen])

    def in_one_unit(self) -> Scaled:
        """Return numbers that share the largest exponent along the first axis; far smaller ones vanish."""
        top = np.max(self.exponents, axis=0, where=self.mantissas != 0, initial=LOWEST)
        return Scaled(np.ldexp(self.mantissas, self.exponents - top), np.asarray(top, np.int32))

    def sum(self) -> Scaled:
        """Return the sum over the first axis."""
        parts = self.in_one_unit()
        return Scaled(parts.mantissas.sum(axis=0), parts.exponents)

    def floats(self) -> Floats:
        """Return the numbers as floats, infinite beyond the largest one."""
        found: Floats = np.ldexp(self.mantissas, self.exponents)
        return found
