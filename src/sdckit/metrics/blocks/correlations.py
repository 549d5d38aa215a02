"""Correlations of columns from sums of products that add up over blocks of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.kernels.scaling import deviations, powers_of_two

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats


class FileCorrelations(NamedTuple):
    """Correlations of the columns of a file over its complete records.

    `norms` are roots of sums of squared deviations, each in a unit of its own: 0 for a constant column, whose
    correlations are 0.
    """

    norms: Floats
    products: Floats


class Correlations(NamedTuple):
    """Correlations in both files over the records without a missing cell in either."""

    original: FileCorrelations
    masked: FileCorrelations


def normed_products(centred: Floats, norms: Floats) -> Floats:
    """Return the sums of products of a block's deviations, each divided by its column's norm."""
    normed = centred / np.where(norms > 0, norms, 1.0)
    products: Floats = normed.T @ normed
    return products


def correlations_of(values: Floats) -> FileCorrelations:
    """Return the correlations of the columns of a matrix without missing cells."""
    centred = deviations(values / powers_of_two(values))
    norms = np.sqrt((centred**2).sum(0))
    return FileCorrelations(norms, normed_products(centred, norms))
