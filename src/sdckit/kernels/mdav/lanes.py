"""Squared distances of 16 records or boxes at once, in float32, added up column after column.

Numba leaves it to LLVM to find loops that a CPU can compute 16 steps at a time, and LLVM misses these: it
cannot know that arrays do not overlap. So they are written down as operations on vectors of 16 numbers, which
LLVM translates for any CPU: each number is computed as it would be alone, so all CPUs agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from sdckit.kernels.jit import Int, Single, Singles

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


def measuring(difference: Difference) -> Measure:
    """Return the function for kernels that measures 16 distances whose differences in a column are given."""

    def define(_context: Any, block: Any, _first: Any, query: Any, distances: Any) -> Any:
        """Return the types of the arguments, and the function that generates code."""
        return types.void(block, types.intp, query, distances), distances_of(difference)

    return cast("Measure", intrinsic(define))


def comparing(comparison: str) -> Compare:
    """Return the function for kernels that compares 16 distances with a limit."""

    def generate(context: Any, builder: Any, signature: Any, args: Values) -> Any:
        """Return the outcomes as the bits of an integer."""
        distances = make_array(signature.args[0])(context, builder, args[0])  # type: ignore[no-untyped-call]
        found = load(builder, distances, [args[1]])
        lanes = builder.fcmp_ordered(comparison, found, repeated(builder, args[2]))
        return builder.zext(builder.bitcast(lanes, ir.IntType(LANES)), ir.IntType(64))

    def define(_context: Any, distances: Any, _first: Any, _limit: Any) -> Any:
        """Return the types of the arguments, and the function that generates code."""
        return types.int64(distances, types.intp, types.float32), generate

    return cast("Compare", intrinsic(define))


def counting_zeros() -> Callable[[Int], Int]:
    """Return the function for kernels that finds the lowest bit of an integer that is set."""

    def define(_context: Any, _lanes: Any) -> Any:
        """Return the types of the arguments, and the function that generates code."""
        return types.int64(types.int64), lambda _, builder, __, args: builder.cttz(
            args[0], ir.Constant(ir.IntType(1), 1)
        )

    return cast("Callable[[Int], Int]", intrinsic(define))


# Each takes a block of records or boxes, the first of 16 lanes in it, the query, and where distances go.
record_distances = measuring(to_record)
least_box_distances = measuring(to_nearest)  # infinity for an empty box
largest_box_distances = measuring(to_farthest)  # infinity for an empty box

# Each takes distances, the first of 16 lanes, and a limit, and returns an integer: bit i is lane first + i.
lanes_within = comparing("<=")
lanes_beyond = comparing(">=")
lowest_lane = counting_zeros()
