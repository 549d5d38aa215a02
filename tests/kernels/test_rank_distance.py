"""Order, tie blocks and mid-rank distances against the twins, on columns that take every path of the code."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
from cases import each
from columns import SHAPES, N, assert_order, assert_sums, column
from sdckit.kernels import ranks
from sdckit.kernels.ranks import (
    RULES,
    AlignedColumn,
    ColumnStack,
    OrderedColumn,
    RankSums,
    average_distance,
    distance,
    largest_absolute,
    largest_squared,
)

pytestmark = pytest.mark.usefixtures("short_columns")

ULP = np.spacing(1e9)


def distances(original, masked, ties):
    """The rank distance of each column of two stacks."""
    n, absolute2, squared4 = original.distances(masked, ties)
    return [RankSums(n, a, b) for a, b in zip(absolute2.tolist(), squared4.tolist(), strict=True)]


# --- one column ---


@each("name", SHAPES)
@each("n", [3, 63, 1500, N])
def test_order_and_tie_blocks(name, n):
    values = column(name, n)
    assert_order(OrderedColumn(values), values)


@each("name", SHAPES)
@each("n", [300, N])
def test_restricted_columns_are_ordered_alike(name, n):
    values = column(name, n)
    keep = np.random.default_rng(1).random(n) < 0.7
    assert_order(OrderedColumn(values).restrict(keep), values[keep])


@each("ties", ["average", "first", "last"])
@each("name", ["zero-inflated", "near and true ties", "signed zeros", "normal"])
def test_ranks_of_one_column(name, ties):
    values = column(name, 120)
    assert (OrderedColumn(values).ranks2(ties) / 2 + 1).tolist() == naive.ranks(values.tolist(), ties)


def test_random_ranks_break_only_ties_and_every_way():
    values = np.array([2.0, 1.0, 2.0, 3.0, 2.0, 3.0])
    rng = np.random.default_rng(3)
    drawn = [tuple(OrderedColumn(values).ranks2("random", rng) // 2 + 1) for _ in range(2400)]
    possible = {tuple(rank) for rank in naive.tie_breakings(values)}
    assert set(drawn) == possible
    counts = [drawn.count(rank) for rank in possible]
    assert max(counts) < 1.4 * min(counts)  # 12 equally likely ways, 200 each


def test_ranks_without_a_rule_for_one_column_are_refused():
    with pytest.raises(ValueError, match="ties='min'"):
        OrderedColumn(np.arange(3.0)).ranks2("min")


# --- two columns ---


@each("masked", SHAPES)
@each("original", ["normal", "zero-inflated", "small integers", "near and true ties"])
def test_average_distance_equals_the_twin(original, masked):
    x, y = column(original, seed=1), column(masked, seed=2)
    ordered = OrderedColumn(x)
    assert_sums(average_distance(ordered, y), x, y)
    assert_sums(AlignedColumn(ordered, y).average(), x, y)


@each("name", SHAPES)
@each("n", [2, 3, 64, 777, 4095])
def test_short_columns_in_a_stack_equal_single_columns(name, n):
    x = np.stack([column(other, n * 3, seed=1)[:n] for other in ("normal", name, "small integers")])
    y = np.stack([column(other, n * 3, seed=2)[:n] for other in (name, name, "cents")])
    stack = ColumnStack(x)
    for j, (sums, before, after) in enumerate(
        zip(distances(stack, ColumnStack(y), "average"), x, y, strict=True)
    ):
        assert_sums(sums, before, after)
        assert_sums(average_distance(OrderedColumn(before), after), before, after)
        assert_order(stack.column(j), before)


@each("name", SHAPES)
@each("n", [900, N])
def test_a_monotone_change_has_distance_zero_and_its_reversal_the_largest(name, n):
    x = column(name, n)
    ordered = OrderedColumn(x)
    same = average_distance(ordered, x.copy())
    assert (same.absolute2, same.squared4) == (0, 0)
    untied = np.empty(n)
    untied[ordered.order] = np.arange(n) / 3
    backwards = average_distance(OrderedColumn(untied), -untied)
    assert (backwards.absolute, backwards.squared) == (1.0, 1.0)


@each("n", range(2, 9))
def test_maxima_are_the_notes_sums(n):
    assert (largest_absolute(n), largest_squared(n)) == naive.largest_sums(n)


finite = st.floats(allow_nan=False, allow_infinity=False)
close = st.integers(0, 4).map(lambda k: 1e9 + k * ULP) | st.integers(0, 3).map(lambda k: -(1e9 + k * ULP))
cell = st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1.0, 1.0 + 2**-52, -1.5, 1e308]) | close | finite


@given(st.lists(st.tuples(cell, cell), min_size=2, max_size=80), st.data())
def test_any_floats_are_ranked_like_the_twin(rows, data):
    x, y = (np.array(values) for values in zip(*rows, strict=True))
    ordered = OrderedColumn(x)
    assert_order(ordered, x)
    assert_sums(average_distance(ordered, y), x, y)
    assert_sums(distances(ColumnStack(x[None, :]), ColumnStack(y[None, :]), "average")[0], x, y)
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(x), max_size=len(x))))
    if keep.sum() > 1:
        assert_sums(average_distance(ordered.restrict(keep), y[keep]), x[keep], y[keep])


one_ulp = st.sampled_from([np.nextafter(v, np.inf) for v in (1.0, -1.0, 1e9, -0.5)] + [1.0, -1.0, 1e9, -0.5])
few = st.sampled_from([0.0, -0.0, 1.0, -2.0]) | one_ulp


BESIDE_ZERO = [(0.0, 0.0, 0.0, 0.0)] * 4 + [(0.0, 0.0, -5e-324, 0.0)] * 4  # keys of both signs met here


@pytest.mark.parametrize("ties", RULES)
@example(rows=BESIDE_ZERO)
@given(rows=st.lists(st.tuples(few, few, cell, few), min_size=2, max_size=40))
def test_a_stack_ranks_by_every_rule_like_single_columns_and_the_twin(ties, rows):
    table = np.array(rows).T.copy()
    x, y = table[:3], np.roll(table, -1, axis=0)[:3].copy()
    ordered = [OrderedColumn(row) for row in x]
    found = distances(ColumnStack(x), ColumnStack(y), ties)
    for sums, before, single, after in zip(found, x, ordered, y, strict=True):
        expected = distance(single, after, ties)
        assert sums.n == len(rows)
        assert (sums.absolute2, sums.squared4) == pytest.approx(
            (expected.absolute2, expected.squared4), rel=1e-13
        )
        if ties != "expected":
            assert (sums.absolute2, sums.squared4) == (expected.absolute2, expected.squared4)
            twin = naive.br(before.tolist(), after.tolist(), ties)
            assert (sums.absolute, sums.squared) == pytest.approx(twin, rel=1e-12, abs=1e-15)


@settings(max_examples=30)
@given(rows=st.lists(st.tuples(few, few), min_size=2, max_size=5))
def test_a_stack_expects_the_mean_of_all_tie_breakings(rows):
    x, y = np.array(rows).T.copy()
    (sums,) = distances(ColumnStack(x[None, :]), ColumnStack(y[None, :]), "expected")
    means = [np.mean(values) for values in naive.every_tie_breaking(x, y)]
    assert (sums.absolute, sums.squared) == pytest.approx(means, rel=1e-12, abs=1e-15)


@each("ties", RULES)
@each("name", SHAPES)
def test_a_stack_of_any_shape_ranks_by_every_rule_like_single_columns(name, ties):
    n = 700
    x = np.stack([column(other, n, seed=1) for other in (name, "cents", "normal")])
    y = np.stack([column(other, n, seed=2) for other in ("microaggregated", name, name)])
    ordered = [OrderedColumn(row) for row in x]
    stack, masked = ColumnStack(x), ColumnStack(y)
    for _ in range(2):  # asked again, it has changed nothing
        for sums, single, after in zip(distances(stack, masked, ties), ordered, y, strict=True):
            expected = distance(single, after, ties)
            assert (sums.absolute2, sums.squared4) == pytest.approx(
                (expected.absolute2, expected.squared4), rel=1e-13
            )


def test_one_order_answers_every_rule_in_any_sequence():
    x, y = (np.stack([column(name, 90, seed) for name in ("cents", "small integers")]) for seed in (1, 2))
    stack = ColumnStack(x)
    alone = {ties: distances(stack, ColumnStack(y), ties) for ties in RULES}
    for rules in (RULES, RULES[::-1]):
        masked = ColumnStack(y)
        assert {ties: distances(stack, masked, ties) for ties in rules} == alone


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(4096, 5000),
    st.lists(cell, min_size=1, max_size=8),
    st.floats(0.0, 1.0),
    st.sampled_from([1.0, 1e-3, ULP, 2.0**-40]),
)
def test_any_mixture_of_few_values_and_noise_is_ranked_like_the_twin(seed, n, values, share, step):
    rng = np.random.default_rng(seed)
    around = rng.choice(values, n)
    with np.errstate(over="ignore"):
        jittered = around + step * rng.integers(-3, 4, n)
    y = np.where(rng.random(n) < share, around, np.where(np.isfinite(jittered), jittered, around))
    x = rng.permutation(np.trunc(y)) if rng.random() < 0.5 else rng.normal(size=n)
    ordered = OrderedColumn(x)
    assert_sums(average_distance(ordered, y), x, y)
    assert_order(OrderedColumn(y), y)


def test_a_long_run_of_values_that_only_differ_in_their_last_bits_is_sorted():
    """Nearly a tenth of the rows in one run: ordering it one by one would take time of its square."""
    n = 60_000
    rng = np.random.default_rng(4)
    y = rng.normal(size=n)
    rows = rng.choice(n, n // 11, replace=False)
    y[rows] = 1e9 - np.spacing(1e9) * rng.permutation(rows.size)
    x = y + rng.normal(size=n)
    assert_sums(average_distance(OrderedColumn(x), y), x, y)
    assert_order(OrderedColumn(y), y)


@each("far", [1e300, -1e300, 0.0, 5e-324])
def test_long_runs_of_near_ties_are_ordered_exactly(far):
    # One value far away leaves few bits to tell the others apart: hundreds agree in all of them.
    rng = np.random.default_rng(3)
    x = 1 + 1e-6 * rng.integers(0, 600, (2, 900))
    y = x[:, rng.permutation(900)]
    x[:, 7], y[:, 500] = far, -far
    for sums, ours, theirs in zip(distances(ColumnStack(x), ColumnStack(y), "average"), x, y, strict=True):
        assert_sums(sums, ours, theirs)


def test_a_thread_never_sees_ranks_that_another_is_still_writing(monkeypatch):
    """The original of a sweep is shared by threads, and kernels run without Python's lock."""
    columns = np.array([[30.0, 10.0, 20.0], [1.0, 1.0, 5.0]])
    expected, stack = ColumnStack(columns).ranks2("average").tolist(), ColumnStack(columns)
    write, seen = ranks._write_stack_ranks2, []  # noqa: SLF001 - where the other thread comes in

    def interrupted(*given):
        if not seen:
            seen.append(None)
            with ThreadPoolExecutor(1) as pool:
                seen[0] = pool.submit(stack.ranks2, "average").result().tolist()
        write(*given)

    monkeypatch.setattr(ranks, "_write_stack_ranks2", interrupted)
    assert stack.ranks2("average").tolist() == expected
    assert seen == [expected]
