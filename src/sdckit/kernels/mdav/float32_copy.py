"""Records rounded to float32: half the memory, twice the speed, and a margin that keeps answers exact.

The copy is rotated to its principal axes where these are longer than the columns' own: boxes around
correlated records are narrow then. Rotation keeps distances; it and the rounding change a distance by no
more than a known margin. So a record beyond the margin in the copy is beyond it in float64, and the few
others are measured again in float64.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Floats, Int, Single, Singles, inlined, inner, kernel
from sdckit.kernels.mdav.lanes import LANES, lanes_beyond, lanes_within, record_distances
from sdckit.kernels.mdav.state import SLACK, TINY

UNIT = 2.0**-24  # largest relative error of rounding to float32
LONG = 2.0  # principal axes pay off if the longest variance is this many times the mean one


class RoundedCopy(NamedTuple):
    """Records divided by a power of two, rotated to principal axes and rounded to float32."""

    points: Singles  # rows x columns
    axes: Floats  # column x principal axis, scale included
    query: Singles  # the point from which distances are measured
    margin: Floats  # scale; largest absolute and largest relative error of a distance in the copy


def rounded_copy(points: Floats) -> RoundedCopy:
    """Return the records rounded to float32, rotated to principal axes if these are much longer."""
    n, p = points.shape
    largest = float(max(points.max(), -points.min()))
    scale = 2.0 ** -min(max(np.frexp(largest)[1], -1000), 1000)
    axes = np.eye(p)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (points * scale).T @ (points * scale)
    if p > 2:
        lengths, vectors = np.linalg.eigh(squares)
        if lengths[-1] * p > LONG * lengths.sum():
            axes = vectors[:, ::-1]
    axes = np.ascontiguousarray(axes * scale)
    copy = np.empty((n, p), np.float32)
    rotate_all(points, axes, copy)
    rounded = RoundedCopy(copy, axes, np.empty(p, np.float32), np.array([scale, 0.0, (p + 16) * UNIT]))
    set_absolute_margin(rounded, 1.0)
    return rounded


def set_absolute_margin(rounded: RoundedCopy, largest: float) -> None:
    """Set the largest absolute error of a distance (not squared) in the copy.

    `largest` is the largest absolute value in it.
    """
    p = len(rounded.query)
    rounded.margin[1] = 4 * sqrt(p) * (UNIT * largest + 1e-14 * p) + 2.0**-70


@inner
def rotate(point: Floats, axes: Floats, rotated: Singles) -> None:
    """Write one point rotated to the principal axes and rounded to float32."""
    for j in range(len(rotated)):
        total = 0.0
        for i in range(len(rotated)):
            total += point[i] * axes[i, j]
        rotated[j] = total


@kernel
def rotate_all(points: Floats, axes: Floats, rotated: Singles) -> None:
    """Write many points rotated, each in the same way, so that equal records stay equal."""
    for row in range(len(points)):
        rotate(points[row], axes, rotated[row])


@inlined
def near_limit(margin: Floats, distance: float) -> Single:
    """Return the float32 squared distance that no record within the true squared `distance` exceeds."""
    bound = ((sqrt(distance) * SLACK + TINY) * margin[0] + margin[1]) * (1 + margin[2])
    return np.float32(bound * bound)


@inlined
def far_limit(margin: Floats, distance: float) -> Single:
    """Return the float32 squared distance that every record beyond the true squared `distance` reaches."""
    bound = -1.0
    if distance > 0:
        bound = ((sqrt(distance) / SLACK - TINY) * margin[0] - margin[1]) * (1 - margin[2])
    return np.float32(bound * bound if bound > 0 else -1.0)


@inlined
def measure_block(
    block: Singles, query: Singles, near: Single, far: Single, distances: Singles, width: int
) -> Int:
    """Write a block's squared distances to the query; return 0 if none is within `near` or beyond `far`."""
    hits = np.int64(0)
    for first in range(0, width, LANES):
        record_distances(block, first, query, distances)
        hits |= lanes_within(distances, first, near) | lanes_beyond(distances, first, far)
    return hits
