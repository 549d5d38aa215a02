"""Invariants of rank swapping, each also shown a broken method, on files of every length."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdckit as sdc
from cases import each
from maskings import NAN, cell, check_missing_kept, fails, generator
from sdckit.kernels.ranks import SMALL, largest_absolute, largest_squared
from sdckit.masking.swapping import Orders, SwapParameters, largest_move, rank_swap, swap_ranks, swap_stack
from swappings import check_displacement, check_values_kept


def check_loss_bound(before, after, p):
    n = len(before)
    h = math.floor(n * p + 1e-9)
    assert sdc.brmae(before, after, ties="min") <= n * h / largest_absolute(n) + 1e-12
    assert sdc.brmse(before, after, ties="min") <= n * h * h / largest_squared(n) + 1e-12


@given(
    st.lists(st.tuples(cell, cell | st.just(NAN)), min_size=2, max_size=60),
    st.floats(0, 1),
    st.integers(0, 2**32),
)
def test_swapping_keeps_values_gaps_and_ranks_up_to_the_largest_move(rows, p, seed):
    values = np.array(rows)
    masked = rank_swap(values, p=p, rng=generator(seed))
    check_values_kept(values, masked)
    check_missing_kept(values, masked)
    check_displacement(values, masked, p)


@settings(max_examples=50)
@given(st.integers(2, 400), st.sampled_from([0.0, 0.01, 0.07, 0.29, 0.5, 1.0]), st.integers(0, 2**32))
def test_swapping_bounds_the_loss(n, p, seed):
    values = generator(seed).normal(size=(n, 2))
    masked = rank_swap(values, p=p, rng=generator(seed + 1))
    check_loss_bound(values, masked, p)
    assert np.array_equal(masked, values) or p > 0


def test_swapping_uses_its_largest_move_and_every_free_rank():
    n, p = 100, 0.29
    values = np.arange(float(n))[:, None]
    moves = [np.abs(rank_swap(values, p=p, rng=generator(seed)) - values).max() for seed in range(60)]
    assert max(moves) == 29  # 0.29 * 100 is a little below 29 in floating point
    exclusive = [
        np.abs(rank_swap(values, p=p, bound="exclusive", rng=generator(s)) - values).max() for s in range(60)
    ]
    assert max(exclusive) == 28
    assert np.array_equal(rank_swap(values, p=0, rng=generator()), values)


def partners(n, window, rng):
    """The rank each rank changes places with; itself where it stays."""
    ranks = np.arange(float(n))[:, None]
    return rank_swap(ranks, p=min(window / n, 1), rng=rng)[:, 0].astype(int)


@given(st.integers(2, 300), st.integers(0, 80), st.integers(0, 2**32))
def test_partners_are_pairs_within_the_window(n, window, seed):
    found = partners(n, window, generator(seed))
    assert np.array_equal(found[found], np.arange(n))
    assert np.abs(found - np.arange(n)).max() <= window
    alone = np.flatnonzero(found == np.arange(n))
    if window:  # a rank stays only where every rank ahead of it in the window was taken
        assert (np.diff(alone) > window).all()


def test_many_draws_do_not_repeat_across_batches():
    found = partners(200_000, 1000, generator(1))
    moves = np.abs(found - np.arange(200_000))
    assert np.array_equal(found[found], np.arange(200_000))
    assert np.unique(moves).size > 900
    assert np.mean(moves == 0) < 0.001


def test_the_checks_of_swapping_refuse_broken_methods():
    values = generator(4).normal(size=(80, 2))
    holes = values.copy()
    holes[3, 1] = NAN
    masked = rank_swap(values, p=0.1, rng=generator(5))
    doubled = masked.copy()
    doubled[0] = doubled[1]
    assert fails(check_values_kept, values, doubled)
    assert fails(check_values_kept, values, masked + 1e-12)
    assert fails(check_missing_kept, holes, np.nan_to_num(holes))
    too_far = rank_swap(values, p=0.2, rng=generator(5))
    assert fails(check_displacement, values, too_far, 0.1)
    assert fails(check_loss_bound, values, values[::-1], 0.1)
    assert not fails(check_displacement, values, masked, 0.1)


# --- short files are swapped as one stack, long ones and those with gaps column by column ---

LENGTHS = (2, 3, 64, 65, 200, SMALL - 1, SMALL, 5000)


def stepped(n, p=3, seed=0):
    """Columns without ties, and one with many."""
    values = generator(seed).normal(size=(n, p))
    values[:, -1] = np.round(2 * values[:, -1])
    return values


@each("start", ["lowest", "highest"])
@each("n", LENGTHS)
def test_every_length_keeps_values_and_the_largest_move(n, start):
    values = stepped(n)
    assert Orders(values).short == (n < SMALL)
    for p in (0.0, 0.001, 0.1, 1.0):
        masked = rank_swap(values, p=p, start=start, rng=generator(1))
        check_values_kept(values, masked)
        check_displacement(values, masked, p)
        assert np.array_equal(masked, values) == (math.floor(n * p + 1e-9) < 1)


@pytest.mark.parametrize("start", ["lowest", "highest"])
@pytest.mark.parametrize("n", [41, 200, 5000])
def test_every_length_levels_its_tails(n, start):
    values = generator(2).permuted(np.tile(np.arange(float(n)), (2, 1)), axis=1).T
    masked = rank_swap(values, p=0.2, tails=0.1, start=start, rng=generator(3))
    tail = math.ceil(n * 0.1) - 1
    for before, after in zip(values.T, masked.T, strict=True):
        low, high = before < tail, before >= n - tail
        middle = ~(low | high)
        assert after[low] == pytest.approx((tail - 1) / 2)
        assert after[high] == pytest.approx(n - 1 - (tail - 1) / 2)
        assert np.unique(after[low]).size == np.unique(after[high]).size == 1
        assert np.array_equal(np.sort(after[middle]), np.arange(tail, n - tail))
        assert 0 < np.abs(after - before)[middle].max() <= math.floor((n - 2 * tail) * 0.2 + 1e-9)


@each("bound", ["inclusive", "exclusive"])
@each("n", [2, 50, 900, 5000])
@each("tails", [0.0, 0.05])
def test_from_the_highest_is_the_mirror_image_of_from_the_lowest(n, bound, tails):
    values = generator(4).normal(size=(n, 2))
    options = {"p": 0.1, "bound": bound, "tails": tails}
    up = rank_swap(-values, **options, start="lowest", rng=generator(5))
    down = rank_swap(values, **options, start="highest", rng=generator(5))
    assert np.array_equal(down, -up)
    if n > 20:
        assert not np.array_equal(down, rank_swap(values, **options, rng=generator(5)))


@pytest.mark.parametrize("start", ["lowest", "highest"])
def test_the_value_at_the_start_always_swaps_and_its_partner_is_uniform(start):
    values = np.arange(12.0)[:, None]
    first = 0 if start == "lowest" else 11
    found = [rank_swap(values, p=0.34, start=start, rng=generator(seed))[first, 0] for seed in range(4000)]
    moves = np.bincount(np.abs(np.array(found) - first).astype(int), minlength=5)
    assert moves[0] == 0
    assert moves[1:] == pytest.approx(1000, abs=5 * math.sqrt(750))


def test_columns_of_a_stack_draw_for_themselves():
    same = np.tile(np.arange(300.0)[:, None], (1, 3))
    masked = rank_swap(same, p=0.2, rng=generator(6))
    assert not np.array_equal(masked[:, 0], masked[:, 1])
    assert not np.array_equal(masked[:, 1], masked[:, 2])


@pytest.mark.parametrize("rows", [0, 1])
def test_a_column_with_one_value_or_none_stays(rows):
    values = np.full((6, 2), NAN)
    values[:, 0], values[:rows, 1] = np.arange(6.0), 5.0
    masked = rank_swap(values, p=1.0, rng=generator(8))
    assert np.array_equal(masked[:, 1], values[:, 1], equal_nan=True)
    check_values_kept(values, masked)


class Stubborn:
    """Draws that hit taken ranks until the free ones are counted."""

    def __init__(self):
        self.rounds = 0

    def random(self, size=None, *, out=None):
        self.rounds += 1
        return np.full(size, 0.999) if out is None else np.copyto(out, 0.999) or out


def test_draws_that_run_out_are_drawn_again():
    line, stack = np.arange(500.0), np.tile(np.arange(500.0), (2, 1))
    draws = Stubborn(), Stubborn()
    swap_ranks(line, 499, draws[0])
    swap_stack(stack, 499, draws[1])
    for found in (line, *stack):
        partner = found.astype(int)
        assert np.array_equal(partner[partner], np.arange(500))
        assert np.array_equal(found, line)
        assert (found != np.arange(500)).all()
    assert min(source.rounds for source in draws) > 5


def test_the_rule_counts_tails_and_moves():
    assert SwapParameters(0.29).window(100) == (0, 29)  # 0.29 * 100 is a little below 29 in floating point
    assert SwapParameters(0.29, exclusive=True).window(100) == (0, 28)
    assert SwapParameters(0.1, tails=0.05).window(100) == (4, 9)
    assert SwapParameters(0.1, tails=0.05).window(834) == (41, 75)
    assert SwapParameters(0.0, exclusive=True).window(100) == (0, -1)
    assert SwapParameters(1.0, tails=0.49).window(2) == (0, 2)
    levelled = [
        SwapParameters(0.1, tails).window(n)[0] for n, tails in ((100, 0.07), (100, 0.071), (7, 1 / 7))
    ]
    assert levelled == [6, 7, 0]  # a rounding error adds no value to a tail


def test_equal_values_in_a_tail_stay_what_they_are():
    """The mean of three times 0.1 is not 0.1 in binary."""
    values = np.array([0.1] * 6 + [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])[:, None]
    masked = rank_swap(values, p=0.1, tails=0.3, rng=np.random.default_rng(1))
    assert masked.min() == 0.1


@pytest.mark.parametrize("missing", [0, 1, 2, 5])
def test_no_rank_leaves_the_published_window_where_cells_are_missing(missing):
    rng = np.random.default_rng(missing)
    for tails in (0.0, 0.1, 0.45):
        values = rng.normal(size=(21, 1))
        values[:missing] = np.nan
        options = {"p": 0.5, "tails": tails, "bound": "inclusive", "start": "lowest"}
        for _ in range(50):
            masked = rank_swap(values, p=0.5, tails=tails, rng=rng)[missing:, 0]
            x = values[missing:, 0]
            first = np.searchsorted(np.sort(masked), masked, "left")
            last = np.searchsorted(np.sort(masked), masked, "right") - 1
            rank = x.argsort().argsort()
            moved = np.maximum(first - rank, rank - last)
            assert moved.max() <= largest_move(options, values)
