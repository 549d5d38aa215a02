"""What the exact MDAV algorithms share: groups, ungrouped records, centroid, distance list, rounded copy.

The groups are those of the textbook loop, bit for bit: the centroid is a running sum divided by a
count, squared Euclidean distances are added up column by column in float64, and every tie goes to
the smallest row number.

The record farthest from the centroid comes from a list sorted by the distance to an *earlier*
centroid: no record can be farther from the new one than that distance plus the drift between the two.

Records are also kept rounded to float32, at half the memory and twice the speed. This copy is rotated to its
principal axes where these are longer than the columns' own: boxes around correlated records are narrow then.
Rotation keeps distances; it and the rounding change a distance by no more than a known margin. So a record
beyond the margin in the copy is beyond it in float64, and the few others are measured again in float64.

Squared distances of 16 records or boxes are computed at once, added up column after column. Numba leaves it
to LLVM to find loops that a CPU can compute 16 steps at a time, and LLVM misses these: it cannot know that
arrays do not overlap. So they are written down as operations on vectors of 16 numbers, which LLVM translates
for any CPU: each number is computed as it would be alone, so all CPUs agree.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan, sqrt
from typing import Any, NamedTuple, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from sdckit.arrays import Floats, Int, Ints, Single, Singles
from sdckit.kernels.jit import INTERPRETED, inlined, inner, kernel, uncounted_inner

RESORT = 4  # the list is sorted again once RESORT x (records left + FEW) entries were inspected
FEW = 500  # in small files a sort costs more than inspecting some more entries
SLACK = 1 + 1e-9  # factor far above the rounding of a distance, so that a bound never excludes the answer
TINY = 1e-150  # as SLACK, added, for distances whose squares underflow

# Counters: records left, groups formed, first list entry not grouped, list length, entries inspected since
# the last sort, nodes or blocks visited.
LEFT, FORMED, HEAD, LISTED, LOOKED, WORK = range(6)


class MdavState(NamedTuple):
    """The state of MDAV: groups formed, running sums, distances, heap and counters."""

    points: Floats  # rows x columns, standardised by the caller; NaN for a missing cell
    slots: Ints  # where each row is kept; once it is grouped, a negative number
    total: Floats  # column sums of the ungrouped records
    centres: Floats  # the present centroid, and the one by which the list is sorted
    reach: Floats  # distances to the latter, largest first
    order: Ints  # the rows in that order
    near: Floats  # heap of the smallest distances seen in a search, largest on top
    group: Ints  # the rows in that heap; a group being formed
    groups: Ints  # the answer: a group number for each row
    counters: Ints


def start(points: Floats, k: int) -> MdavState:
    """Return the initial MDAV state for points (n >= k >= 2): no record is grouped."""
    n, p = points.shape
    return MdavState(
        points=np.ascontiguousarray(points),
        slots=np.arange(n),
        total=np.cumsum(points, axis=0)[-1],  # row after row, as the running sum goes on
        centres=np.empty((2, p)),
        reach=np.empty(n),
        order=np.empty(n, np.int64),
        near=np.empty(k),
        group=np.empty(k, np.int64),
        groups=np.empty(n, np.int64),
        counters=np.array([n, 0, 0, 0, RESORT * (n + FEW) + 1, 0]),
    )


def resort_if_needed(state: MdavState) -> bool:
    """Sort the ungrouped records by distance to the present centroid, if the old order is too old.

    Return whether they were sorted.
    """
    if not needs_resort(state.counters):
        return False
    left = int(state.counters[LEFT])
    state.centres[1] = state.total / left
    list_ungrouped(state.slots, state.points, state.centres[1], state.order, state.reach)
    distances, rows = np.sqrt(state.reach[:left]), state.order[:left].copy()
    order = np.argsort(-distances)
    state.reach[:left] = distances[order]
    state.order[:left] = rows[order]
    state.counters[HEAD : LOOKED + 1] = 0, left, 0
    return True


@kernel
def needs_resort(counters: Ints) -> bool:
    """Return True if so many list entries were inspected that sorting the list again is cheaper."""
    return counters[LOOKED] > RESORT * (counters[LEFT] + FEW)


@kernel
def list_ungrouped(slots: Ints, points: Floats, centre: Floats, order: Ints, reach: Floats) -> None:
    """Write the ungrouped rows and their squared distances to the centroid, unsorted."""
    size = 0
    for row in range(len(slots)):
        if slots[row] >= 0:
            order[size] = row
            reach[size] = squared_distance(points, row, centre)
            size += 1


@inlined
def squared_distance(points: Floats, row: Int, point: Floats) -> float:
    """Return the squared distance of a row to `point`, column after column; NaN if a cell is missing."""
    total = 0.0
    for j in range(len(point)):
        difference = points[row, j] - point[j]
        total += difference * difference
    return total


@uncounted_inner
def shared_distance(points: Floats, row: Int, point: Floats) -> float:
    """Return the squared distance over columns both have, scaled to all columns; infinity without any."""
    total, shared = 0.0, 0
    for j in range(len(point)):
        difference = points[row, j] - point[j]
        seen = not isnan(difference)
        total += difference * difference if seen else 0.0
        shared += seen
    return total * (len(point) / shared) if shared else inf


@inlined
def near_distance(points: Floats, row: Int, point: Floats) -> float:
    """Return the squared distance of a row to `point`, over the columns that both have."""
    distance = squared_distance(points, row, point)
    return shared_distance(points, row, point) if isnan(distance) else distance


@inlined
def farthest_from_centroid(state: MdavState, patience: int) -> Int:
    """Return the ungrouped row farthest from the centroid of all these; -1 after `patience` list entries."""
    counters, slots, order = state.counters, state.slots, state.order
    centre = state.centres[0]
    for j in range(len(centre)):
        centre[j] = state.total[j] / counters[LEFT]
    drift = sqrt(squared_distance(state.centres, 1, centre))
    while slots[order[counters[HEAD]]] < 0:
        counters[HEAD] += 1
    best, found, bound = -1.0, len(slots), -1.0
    for i in range(counters[HEAD], counters[LISTED]):
        if (state.reach[i] + drift) * SLACK + TINY < bound:
            break
        counters[LOOKED] += 1
        patience -= 1
        if patience < 0:
            return -1
        row = order[i]
        if slots[row] >= 0:
            distance = squared_distance(state.points, row, centre)
            if distance > best or (distance == best and row < found):
                best, found, bound = distance, row, sqrt(distance)
    return found


@inlined
def clear_heap(near: Floats, group: Ints, size: int, no_row: int) -> None:
    """Empty the heap of nearest records: infinite distances and the row number `no_row`."""
    for i in range(size):
        near[i], group[i] = inf, no_row


@kernel
def replace_largest(near: Floats, group: Ints, size: int, distance: float, row: Int) -> None:
    """Replace the top of the heap of nearest records by `row`; equal distances compare by row."""
    top, child = 0, 1
    while child < size:
        other = child + 1
        if other < size and (
            near[other] > near[child] or (near[other] == near[child] and group[other] > group[child])
        ):
            child = other
        if near[child] < distance or (near[child] == distance and group[child] < row):
            break
        near[top], group[top] = near[child], group[child]
        top, child = child, 2 * child + 1
    near[top], group[top] = distance, row


@inlined
def sort_rows(group: Ints, size: int) -> None:
    """Sort the first `size` row numbers in place (a shell sort: short to compile)."""
    gap = size // 2
    while gap > 0:
        for i in range(gap, size):
            row, j = group[i], i
            while j >= gap and group[j - gap] > row:
                group[j] = group[j - gap]
                j -= gap
            group[j] = row
        gap //= 2


@inlined
def number_group(state: MdavState, row: Int, k: int) -> None:
    """Give `row` and the k - 1 records of the heap a group number, and subtract them from the column sums."""
    group = state.group
    group[k - 1] = row
    sort_rows(group, k)
    for i in range(k):
        state.groups[group[i]] = state.counters[FORMED]
        for j in range(len(state.total)):
            state.total[j] -= state.points[group[i], j]
    state.counters[FORMED] += 1


@inlined
def group_the_rest(slots: Ints, groups: Ints, number: Int) -> None:
    """Give all records without a group the same group number."""
    for row in range(len(slots)):
        if slots[row] >= 0:
            groups[row] = number


LANES = 16
VECTOR = ir.VectorType(ir.FloatType(), LANES)
INDICES = ir.VectorType(ir.IntType(32), LANES)
ZEROS = ir.Constant(VECTOR, [0.0] * LANES)

Values = list[Any]  # LLVM values; llvmlite has no types
Difference = Callable[[Any, Any, Any, Any, Any], Any]
Measure = Callable[[Singles, Int, Singles, Singles], None]
Compare = Callable[[Singles, Int, Single], Int]


def repeated(builder: Any, value: Any) -> Any:
    """Return a vector of 16 times the same number."""
    one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, one, ir.Constant(INDICES, [0] * LANES))


def larger(builder: Any, one: Any, two: Any) -> Any:
    """Return the larger number of two in each lane."""
    return builder.select(builder.fcmp_ordered(">", one, two), one, two)


def vector_at(builder: Any, array: Any, indices: Values) -> Any:
    """Return a pointer to the 16 numbers of a C-contiguous array that begin at `indices`."""
    place = indices[0]
    sizes = cgutils.unpack_tuple(builder, array.shape)  # type: ignore[no-untyped-call]
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        place = builder.add(builder.mul(place, size), index)
    return builder.bitcast(builder.gep(array.data, [place]), VECTOR.as_pointer())


def load(builder: Any, array: Any, indices: Values) -> Any:
    """Return the 16 numbers of a C-contiguous array that begin at `indices`."""
    return builder.load(vector_at(builder, array, indices), align=4)


def distances_of(difference: Difference) -> Callable[..., Any]:
    """Return a generator of code that adds up `difference(builder, block, lane, column, query)`, squared."""

    def generate(context: Any, builder: Any, signature: Any, args: Values) -> Any:
        """Write the sums of 16 lanes into `distances`, from the lane `first` on."""
        block, query, distances = (
            make_array(signature.args[i])(context, builder, args[i])  # type: ignore[no-untyped-call]
            for i in (0, 2, 3)
        )
        first = args[1]
        total = cgutils.alloca_once_value(builder, ZEROS)  # type: ignore[no-untyped-call]
        with cgutils.for_range(builder, query.nitems) as loop:
            here = repeated(builder, builder.load(builder.gep(query.data, [loop.index])))
            step = difference(builder, block, first, loop.index, here)
            builder.store(builder.fadd(builder.load(total), builder.fmul(step, step)), total)
        builder.store(builder.load(total), vector_at(builder, distances, [first]), align=4)
        return context.get_dummy_value()

    return generate


def to_record(builder: Any, block: Any, first: Any, column: Any, query: Any) -> Any:
    """Return the differences between 16 records and the query in a column."""
    return builder.fsub(load(builder, block, [column, first]), query)


def to_shared(builder: Any, block: Any, first: Any, column: Any, query: Any) -> Any:
    """Return the differences between 16 records and the query in a column; 0 where a cell is missing."""
    difference = to_record(builder, block, first, column, query)
    return builder.select(builder.fcmp_ordered("ord", difference, difference), difference, ZEROS)


def corners(builder: Any, boxes: Any, first: Any, column: Any) -> tuple[Any, Any]:
    """Return the lower and the upper ends of 16 boxes in a column."""
    low, high = (ir.Constant(column.type, side) for side in (0, 1))
    return load(builder, boxes, [low, column, first]), load(builder, boxes, [high, column, first])


def to_nearest(builder: Any, boxes: Any, first: Any, column: Any, query: Any) -> Any:
    """Return how far the query is outside 16 boxes in a column; 0 inside."""
    low, high = corners(builder, boxes, first, column)
    outside = larger(builder, builder.fsub(low, query), builder.fsub(query, high))
    return larger(builder, outside, ZEROS)


def to_farthest(builder: Any, boxes: Any, first: Any, column: Any, query: Any) -> Any:
    """Return the distances from the query to the farther ends of 16 boxes in a column."""
    low, high = corners(builder, boxes, first, column)
    return larger(builder, builder.fsub(query, low), builder.fsub(high, query))


def measuring(difference: Difference, slowly: Callable[[Singles, Int, Int, Single], Singles]) -> Measure:
    """Return the function for kernels that measures 16 distances whose differences in a column are given.

    `slowly` gives the same differences in plain Python, for kernels that are not compiled.
    """

    def measure(block: Singles, first: Int, query: Singles, distances: Singles) -> None:
        """Write the sums of 16 lanes into `distances`, from the lane `first` on."""
        distances[first : first + LANES] = 0
        for j in range(len(query)):
            distances[first : first + LANES] += slowly(block, first, j, query[j]) ** 2

    def define(_context: Any, block: Any, _first: Any, query: Any, distances: Any) -> Any:
        """Return the types of the arguments, and the function that generates code."""
        return types.void(block, types.intp, query, distances), distances_of(difference)

    return measure if INTERPRETED else cast("Measure", intrinsic(define))


def comparing(comparison: str) -> Compare:
    """Return the function for kernels that compares 16 distances with a limit, by "<=" or ">="."""

    def compare(distances: Singles, first: Int, limit: Single) -> Int:
        """Return the outcomes as the bits of an integer."""
        found = distances[first : first + LANES]
        outcomes = found <= limit if comparison == "<=" else found >= limit
        return sum(1 << lane for lane in range(LANES) if outcomes[lane])

    def generate(context: Any, builder: Any, signature: Any, args: Values) -> Any:
        """Return the outcomes as the bits of an integer."""
        distances = make_array(signature.args[0])(context, builder, args[0])  # type: ignore[no-untyped-call]
        found = load(builder, distances, [args[1]])
        lanes = builder.fcmp_ordered(comparison, found, repeated(builder, args[2]))
        return builder.zext(builder.bitcast(lanes, ir.IntType(LANES)), ir.IntType(64))

    def define(_context: Any, distances: Any, _first: Any, _limit: Any) -> Any:
        """Return the types of the arguments, and the function that generates code."""
        return types.int64(distances, types.intp, types.float32), generate

    return compare if INTERPRETED else cast("Compare", intrinsic(define))


def counting_zeros() -> Callable[[Int], Int]:
    """Return the function for kernels that finds the lowest bit of an integer that is set."""
    if INTERPRETED:
        return lambda lanes: (int(lanes) & -int(lanes)).bit_length() - 1

    def define(_context: Any, _lanes: Any) -> Any:
        """Return the types of the arguments, and the function that generates code."""
        return types.int64(types.int64), lambda _, builder, __, args: builder.cttz(
            args[0], ir.Constant(ir.IntType(1), 1)
        )

    return cast("Callable[[Int], Int]", intrinsic(define))


# Each takes a block of records or boxes, the first of 16 lanes in it, the query, and where distances go.
record_distances = measuring(
    to_record, lambda block, first, j, query: block[j, first : first + LANES] - query
)
shared_distances = measuring(
    to_shared, lambda block, first, j, query: np.nan_to_num(block[j, first : first + 16] - query, posinf=inf)
)
least_box_distances = measuring(  # infinity for an empty box; a missing cell is nowhere outside
    to_nearest, lambda boxes, _, j, query: np.fmax(np.fmax(boxes[0, j] - query, query - boxes[1, j]), 0)
)
largest_box_distances = measuring(  # infinity for an empty box
    to_farthest, lambda boxes, _, j, query: np.maximum(query - boxes[0, j], boxes[1, j] - query)
)

# Each takes distances, the first of 16 lanes, and a limit, and returns an integer: bit i is lane first + i.
lanes_within = comparing("<=")
lanes_beyond = comparing(">=")
lowest_lane = counting_zeros()


UNIT = 2.0**-24  # largest relative error of rounding to float32
LONG = 2.0  # principal axes pay off if the longest variance is this many times the mean one


class RoundedCopy(NamedTuple):
    """Records divided by a power of two, rotated to principal axes and rounded to float32."""

    points: Singles  # rows x columns
    axes: Floats  # column x principal axis, scale included
    query: Singles  # the point from which distances are measured
    margin: Floats  # scale; largest absolute and largest relative error of a distance in the copy
    gaps: bool  # whether cells are missing: NaN, and no rotation


def rounded_copy(points: Floats) -> RoundedCopy:
    """Return the records rounded to float32, rotated to principal axes if these are much longer."""
    n, p = points.shape
    scale = 2.0 ** -min(max(np.frexp(largest_size(points))[1], -1000), 1000)
    axes = np.eye(p)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (points * scale).T @ (points * scale)
    if p > 2 and not np.isnan(squares).any():
        lengths, vectors = np.linalg.eigh(squares)
        if lengths[-1] * p > LONG * lengths.sum():
            axes = vectors[:, ::-1]
    axes = np.ascontiguousarray(axes * scale)
    copy = np.empty((n, p), np.float32)
    rotate_all(points, axes, copy)
    margin = np.array([scale, 0.0, (p + 16) * UNIT])
    rounded = RoundedCopy(copy, axes, np.empty(p, np.float32), margin, bool(np.isnan(squares).any()))
    set_absolute_margin(rounded, 1.0)
    return rounded


def largest_size(points: Floats | Singles) -> float:
    """Return the largest absolute value; 0 without any."""
    most, least = np.fmax.reduce(points, axis=None, initial=0), np.fmin.reduce(points, axis=None, initial=0)
    return float(max(most, -least))


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
            total += point[i] * axes[i, j] if axes[i, j] != 0.0 else 0.0  # a missing cell stays in its column
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
