"""Windows of rank swapping that follow from the values, and moves that are drawn.

Also R's sdcMicro 5.8.1: what its R0 and K0 allow, read off its masked files.
"""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import naive_masking_shuffles as slow
import sdckit as sdc
from maskings import NAN, cell, check_missing_kept, fails, generator
from sdckit.masking.swapping import (
    drawn_moves,
    largest_move,
    p_distribution_swap,
    rank_swap,
    swap_by_moves,
)
from swappings import check_displacement, check_values_kept

# --- the window from a correlation (r0) or from means of subsets (k0) ---


def windows_of(values, **options):
    """The largest move in ranks of each column."""
    options = {"p": 0.05, "tails": 0.0, "bound": "inclusive", "start": "lowest"} | options
    return largest_move(options, values).tolist()


def window_of(values, **options):
    """The largest move in ranks of one column."""
    (found,) = windows_of(values, **options)
    return found


def test_windows_by_hand():
    ten = np.arange(10.0)[:, None]  # mean 4.5, variance 8.25, range 9
    assert window_of(ten, r0=0.5) == math.floor(10 * math.sqrt(8.25) / 9) == 3
    assert window_of(ten, k0=0.2) == math.floor(10 * math.sqrt(8 / 3) * 0.2 * 4.5 / 9) == 1
    assert window_of(ten, r0=0.5, bound="exclusive") == 2
    assert window_of(ten, r0=1.0) == 0
    assert window_of(ten, k0=100.0) == 10  # p is at most 1
    assert windows_of(np.hstack([ten, ten + 100]), k0=0.2) == [1, 10]
    # tails of 2 end at 1 and 8; the values that take part are 2..7: variance 35/12, range 7
    assert window_of(ten, r0=0.5, tails=0.25) == math.floor(6 * math.sqrt(35 / 12) / 7) == 1
    assert window_of(np.vstack([ten, [[NAN]]]), r0=0.5) == 3
    assert windows_of(np.full((5, 2), 7.0), r0=0.5) == [0, 0]
    assert window_of(np.full((5, 1), NAN), k0=0.5) == 0


def check_window(values, masked, tails, **share):
    """No value that takes part moves farther than R0 or K0 allow."""
    for x, y in zip(values.T, masked.T, strict=True):
        seen = ~np.isnan(x)
        rows = np.flatnonzero(seen)[np.argsort(x[seen], kind="stable")]
        tail = max(math.ceil(rows.size * tails) - 1, 0)
        inside = rows[tail : rows.size - tail]
        assert np.array_equal(np.sort(x[inside]), np.sort(y[inside]))
        largest = max(slow.swap_window(x.tolist(), tails=tails, **share), 0)
        assert naive.displacement(x[inside].tolist(), y[inside].tolist()) <= largest


@given(
    st.lists(st.tuples(cell, cell | st.just(NAN)), min_size=2, max_size=60),
    st.sampled_from([{"r0": 0.3}, {"r0": 0.95}, {"r0": 1.0}, {"k0": 0.1}, {"k0": 3.0}]),
    st.sampled_from([0.0, 0.05]),
    st.integers(0, 2**32),
)
def test_r0_and_k0_keep_values_gaps_and_their_window(rows, share, tails, seed):
    values = np.array(rows)
    masked = rank_swap(values, **share, tails=tails, rng=generator(seed))
    check_missing_kept(values, masked)
    assert windows_of(values, tails=tails, **share) == [
        0 if np.isnan(x).all() else max(slow.swap_window(x.tolist(), tails=tails, **share), 0)
        for x in values.T
    ]
    if not tails:
        check_values_kept(values, masked)
        check_window(values, masked, tails, **share)


def test_p_is_ignored_beside_r0_and_refused_are_both_at_once():
    values = generator(1).normal(size=(300, 2))
    masked = [rank_swap(values, p=p, r0=0.9, rng=generator(2)) for p in (0.0, 0.9)]
    assert np.array_equal(*masked)
    check_window(values, masked[0], 0.0, r0=0.9)
    assert fails(lambda: check_window(values, rank_swap(values, p=0.5, rng=generator(2)), 0.0, r0=0.9))
    for call in (
        lambda: sdc.mask(values, "rank_swap", r0=0.9, k0=0.5, rng=1),
        lambda: window_of(values, r0=0.9, k0=0.5),
    ):
        with pytest.raises(
            ValueError, match=r"^r0 is 0.9 and k0 is 0.5; set one of them and leave the other"
        ):
            call()


def test_r0_and_k0_do_not_depend_on_the_unit():
    values = np.abs(generator(3).normal(3, 1, size=(500, 1)))
    for share in ({"r0": 0.9}, {"k0": 0.05}):
        plain = window_of(values, **share)
        assert 5 < plain < 500
        for power in (1000, -1000):  # squares would leave the range of floating-point numbers
            assert window_of(values * 2.0**power, **share) == plain


def test_equally_spaced_values_keep_the_correlation_asked_for():
    values = generator(4).permutation(5000.0 + np.arange(5000))[:, None]
    for r0 in (0.5, 0.9, 0.99):
        reached = np.corrcoef(values[:, 0], rank_swap(values, r0=r0, rng=generator(5))[:, 0])[0, 1]
        assert r0 < reached < 1 - (1 - r0) / 8


SHARES = {"R0.95": {"r0": 0.95}, "K0.1": {"k0": 0.1}}


@pytest.mark.parametrize("name", SHARES)
def test_the_files_of_the_package_use_these_windows_to_the_last_rank(tarragona, golden, name):
    theirs = pl.read_csv(golden / f"Tarragona_rankswap_{name}_seed1234567.csv", infer_schema_length=None)
    tail = math.ceil(0.05 * tarragona.height) - 1
    for column in tarragona.columns:
        x, y = tarragona[column].to_numpy(), theirs[column].cast(pl.Float64).to_numpy()
        inside = np.argsort(x, kind="stable")[tail:-tail]
        window = window_of(x[:, None], tails=0.05, bound="exclusive", **SHARES[name])
        assert naive.displacement(x[inside].tolist(), y[inside].tolist()) == window
        assert window == slow.swap_window(x.tolist(), tails=0.05, exclusive=True, **SHARES[name])


def test_the_argus_file_moves_by_whole_percents(tarragona, golden):
    theirs = pl.read_csv(golden / "Tarragona_argus_rankswap_p10_seed1.csv", infer_schema_length=None)
    values, masked = tarragona.to_numpy(), theirs.cast(pl.Float64).to_numpy()
    check_values_kept(values, masked)
    check_displacement(values, masked, 0.1)
    assert fails(check_displacement, values, masked, 82.5 / 834)  # and one rank less is too little
    assert windows_of(values, p=0.1) == [83] * 13


# --- moves that are drawn: p-distribution swapping ---


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60))
def test_drawn_moves_lead_to_the_nearest_free_rank(moves):
    ordered = np.arange(float(len(moves)))
    swap_by_moves(ordered, np.array(moves))
    assert ordered.tolist() == slow.swapped_by_moves(range(len(moves)), moves)


@given(
    st.lists(st.tuples(cell, cell | st.just(NAN)), min_size=2, max_size=60),
    st.floats(0, 1),
    st.integers(0, 2**32),
)
def test_drawn_moves_keep_values_and_gaps(rows, p, seed):
    values = np.array(rows)
    masked = p_distribution_swap(values, p=p, rng=generator(seed))
    check_values_kept(values, masked)
    check_missing_kept(values, masked)
    assert np.array_equal(masked, values, equal_nan=True) or p > 0


def check_moves(masked, p):
    """Moves of ranks 0, 1, 2, ... are normal with mean and deviation p/2, their size counts."""
    n = len(masked)
    moves = np.abs(masked - np.arange(n))[n // 10 : -n // 5] / (n * p)
    size = np.abs(0.5 + 0.5 * generator(9).normal(size=200_000))
    assert moves.mean() == pytest.approx(size.mean(), rel=0.03)
    for share in (0.25, 0.5, 0.75, 0.95):
        assert np.quantile(moves, share) == pytest.approx(np.quantile(size, share), rel=0.06)


def test_drawn_moves_are_normal_and_know_no_bound():
    n, p = 40_000, 0.05
    values = np.arange(float(n))[:, None]
    masked = p_distribution_swap(values, p=p, rng=generator(6))[:, 0]
    check_moves(masked, p)
    assert fails(check_moves, rank_swap(values, p=p, rng=generator(6))[:, 0], p)
    assert np.array_equal(masked[masked.astype(int)], np.arange(n))  # pairs
    assert 0.1 < np.mean(np.abs(masked - values[:, 0]) > n * p) < 0.25
    assert sdc.METHODS["p_distribution_swap"].window is None
    drawn = drawn_moves(n, p, generator(7))
    assert drawn.min() == 0
    assert drawn.mean() == pytest.approx(0.5833 * n * p, rel=0.01)  # of |N(1/2, 1/2)|
