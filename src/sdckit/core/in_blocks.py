"""How a method masks a file that does not fit into memory: what it asks of the whole file, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sdckit.kernels.scaling import powers_of_two, spread_of_sums

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats, Ints

Options = Mapping[str, Any]


@dataclass(frozen=True)
class WholeColumns:
    """Facts on the columns of all records of a file or stratum, added up from its blocks of rows.

    `records` is the number of records, `present` that of records with a value. Each column has `seen` values
    (other than 0 if `nonzero`), `zeros` zeros, the extremes `low` and `high` (NaN without a value), a mean.
    `products` are the sums of products of deviations, in units of `powers`, `pairs` the numbers of records
    that have both values, `codes` the codes of the tails; `few_coded` says that one or two values pass a
    limit.
    """

    records: int
    present: int
    seen: Ints
    zeros: Ints
    low: Floats
    high: Floats
    means: Floats
    products: Floats | None = None
    pairs: Floats | None = None
    codes: tuple[Any, ...] = ()
    few_coded: bool = False
    nonzero: bool = False

    @property
    def powers(self) -> Floats:
        """Unit of each column: the largest power of two up to its largest absolute value."""
        return powers_of_two(np.stack([self.low, self.high]))

    @property
    def constant(self) -> Bools:
        """True for each column whose values are all equal."""
        return self.low == self.high

    @property
    def centres(self) -> Floats:
        """Mean of each column in its unit; NaN for a constant column."""
        return np.where(self.constant, np.nan, self.means / self.powers)

    @property
    def spread(self) -> Floats:
        """Standard deviation (ddof 1) of each column."""
        assert self.products is not None  # noqa: S101 - methods say that they need it
        return self.powers * spread_of_sums(np.diag(self.products), self.seen)


def _no_basis(_whole: WholeColumns, _options: Options) -> Any:
    """Return None, the basis of a method that needs nothing of the whole file."""
    return None


def _no_notes(_whole: WholeColumns, _options: Options) -> list[str]:
    """Return no note."""
    return []


def _nothing_refused(_options: Options) -> None:
    """Return None: all parameters can be used."""


@dataclass(frozen=True)
class InBlocks:
    """How a method masks a file in parts.

    `how` is "cells" if each block of rows is masked by the method's own function, with `basis(whole,
    options)` in place of what it would compute from all values; "ranks" if each column is sorted first, and
    "groups" if groups are formed within blocks of similar records. `needs` says which facts of the whole file
    the basis uses: "counts", "squares", "products" or "codes", without zeros if `nonzero`. `notes(whole,
    options)` are sentences to publish, as `Method.release_notes` gives them. `refused(options)` says in a
    phrase which parameters only work in memory; None if all given ones can be used.
    """

    how: Literal["cells", "ranks", "groups"] = "cells"
    needs: Literal["counts", "squares", "products", "codes"] = "counts"
    nonzero: bool = False
    basis: Callable[[WholeColumns, Options], Any] = _no_basis
    notes: Callable[[WholeColumns, Options], list[str]] = _no_notes
    refused: Callable[[Options], str | None] = _nothing_refused
