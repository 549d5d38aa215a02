"""Records rounded to float32: half the memory, twice the speed, and a margin that keeps answers exact.

The copy is turned to its principal axes where these are longer than the columns' own: boxes around
correlated records are slim then. Turning keeps distances; it and the rounding move a distance by no
more than a known margin. So whoever is beyond the margin in the copy is beyond in truth, and the few
others are measured again in float64.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sdckit.kernels.jit import Floats, inlined, inner, kernel
from sdckit.kernels.mdav.state import SLACK, TINY

Single = np.float32
Singles = npt.NDArray[np.float32]

UNIT = 2.0**-24  # largest relative error of rounding to float32
LONG = 2.0  # principal axes pay off if the longest variance is this many times the mean one


class Rounded(NamedTuple):
    """Records divided by a power of two, turned and rounded."""

    points: Singles  # rows x columns
    axes: Floats  # column x principal axis, scale included
    query: Singles  # the point that is being asked about
    margin: Floats  # scale; absolute error of a distance in the copy; the relative one


def round_off(points: Floats) -> Rounded:
    """Round a copy of `points`."""
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
    turn_all(points, axes, copy)
    rounded = Rounded(copy, axes, np.empty(p, np.float32), np.array([scale, 0.0, (p + 16) * UNIT]))
    set_margin(rounded, 1.0)
    return rounded


def set_margin(rounded: Rounded, largest: float) -> None:
    """Adapt the margin to the largest absolute value among the records left."""
    p = len(rounded.query)
    rounded.margin[1] = 4 * sqrt(p) * (UNIT * largest + 1e-14 * p) + 2.0**-70


@inner
def turn(point: Floats, axes: Floats, turned: Singles) -> None:
    """Turn one point to the principal axes, and round it."""
    for j in range(len(turned)):
        total = 0.0
        for i in range(len(turned)):
            total += point[i] * axes[i, j]
        turned[j] = total


@kernel
def turn_all(points: Floats, axes: Floats, turned: Singles) -> None:
    """Turn many points, each like every other, so that equal records stay equal."""
    for row in range(len(points)):
        turn(points[row], axes, turned[row])


@inlined
def near_limit(margin: Floats, distance: float) -> Single:
    """Whoever is at a squared `distance` or nearer is not beyond this in the copy."""
    bound = ((sqrt(distance) * SLACK + TINY) * margin[0] + margin[1]) * (1 + margin[2])
    return np.float32(bound * bound)


@inlined
def far_limit(margin: Floats, distance: float) -> Single:
    """Whoever is at a squared `distance` or farther is not below this in the copy."""
    bound = -1.0
    if distance > 0:
        bound = ((sqrt(distance) / SLACK - TINY) * margin[0] - margin[1]) * (1 - margin[2])
    return np.float32(bound * bound if bound > 0 else -1.0)


@inlined
def measure(
    block: Singles, query: Singles, near: Single, far: Single, distances: Singles, width: int
) -> np.int32:
    """Squared distances of a block's records in the copy; how many are within `near` or beyond `far`."""
    p = len(query)
    for i in range(width):
        distances[i] = 0.0
    for j in range(0, p - 1, 2):
        for i in range(width):
            one = block[j, i] - query[j]
            two = block[j + 1, i] - query[j + 1]
            distances[i] = distances[i] + one * one + two * two
    if p % 2 == 1:
        for i in range(width):
            one = block[p - 1, i] - query[p - 1]
            distances[i] += one * one
    hits = np.int32(0)
    for i in range(width):
        hits += (distances[i] <= near) | (distances[i] >= far)
    return hits
