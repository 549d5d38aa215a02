"""Rank noise: each variable's own values in the order of ranks plus normal noise."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_masking_shuffles as twins
import sdckit as sdc
from cases import each
from maskings import NAN, cell, check_missing_kept, generator
from sdckit.kernels.draws import normals
from sdckit.kernels.ranks import OrderedColumn
from sdckit.masking.swapping import Orders, rank_noise, rank_swap
from swappings import check_values_kept


def twin_of(values, a, rng):
    """The slow twin with the draws that the method takes from the same generator."""
    masked = values.copy()
    for j, column in enumerate(values.T):
        seen = column[~np.isnan(column)]
        ties = rng.random(seen.size) if np.unique(seen).size < seen.size else np.zeros(seen.size)
        noise = normals(rng, (seen.size,))
        masked[:, j] = twins.rank_noised(column.tolist(), a, ties.tolist(), noise.tolist())
    return masked


@each("a", [0.0, 0.02, 0.3, 2.0])
@each("n", [1, 2, 3, 50, 400])
def test_rank_noise_equals_its_twin(n, a):
    values = generator(n).normal(size=(n, 4))
    values[:, 1] = np.round(2 * values[:, 1])  # ties
    values[::3, 2] = NAN
    values[:, 3] = 5.0
    masked = rank_noise(values, a=a, rng=generator(7))
    np.testing.assert_array_equal(masked, twin_of(values, a, generator(7)))
    np.testing.assert_array_equal(masked, rank_noise(values, a=a, rng=generator(7), basis=Orders(values)))


@given(
    st.lists(st.tuples(cell, cell | st.just(NAN)), min_size=1, max_size=60),
    st.floats(0, 10),
    st.integers(0, 2**32),
)
def test_values_and_gaps_are_kept(rows, a, seed):
    values = np.array(rows)
    masked = rank_noise(values, a=a, rng=generator(seed))
    check_values_kept(values, masked)
    check_missing_kept(values, masked)
    np.testing.assert_array_equal(rank_noise(values, a=0, rng=generator(seed)), values)


def test_moves_are_normal_where_the_ends_are_far():
    n, a = 20_000, 0.02
    ranks = np.arange(float(n))[:, None]
    masked = rank_noise(ranks, a=a, rng=generator(3))
    moves = (masked - ranks)[n // 5 : -n // 5, 0] / (a * n)
    assert moves.mean() == pytest.approx(0, abs=0.05)
    assert moves.std() == pytest.approx(1, abs=0.03)
    assert np.mean(np.abs(moves) > 3) == pytest.approx(0.0027, abs=0.003)  # no largest move


def returning(masked, original):
    """The share of cells that hold the value of a cell that holds theirs, as after swaps."""
    places = {value: row for row, value in enumerate(original)}
    partner = np.array([places[value] for value in masked])
    moved = partner != np.arange(len(partner))
    return np.mean(partner[partner[moved]] == np.flatnonzero(moved))


def test_values_do_not_trade_places():
    values = generator(4).normal(size=(1000, 1))
    swapped, noised = rank_swap(values, p=0.1, rng=generator(5)), rank_noise(values, a=0.1, rng=generator(5))
    assert returning(swapped[:, 0], values[:, 0]) == 1
    assert returning(noised[:, 0], values[:, 0]) < 0.02


def test_equal_values_are_not_ordered_by_their_rows():
    column = np.repeat([0.0, 1.0], 100)[:, None]
    rows = [
        np.flatnonzero(rank_noise(column, a=0.1, rng=generator(seed))[:100, 0]).mean() for seed in range(60)
    ]
    assert np.mean(rows) == pytest.approx(49.5, abs=4)  # by their rows, the last would change first
    assert OrderedColumn(column[:, 0]).tied


def test_the_default_plan_runs_from_little_to_much_loss():
    (a,) = sdc.METHODS["rank_noise"].parameters
    values = generator(6).normal(size=(400, 3))
    ends = a.grid[0], a.grid[-1]
    losses = [sdc.brmae(values, rank_noise(values, a=one, rng=generator(8))) for one in ends]
    assert losses[0] < 0.05
    assert losses[1] > 0.4


def test_strata_and_units_are_masked_as_by_other_methods():
    rng = generator(9)
    unit = np.repeat(np.arange(60), 3)
    own, shared = rng.normal(size=180), rng.normal(size=60)[unit]
    data = pl.DataFrame({"unit": unit, "s": unit % 2, "shared": shared, "own": own})
    masked = sdc.Microdata(data, unit="unit", by="s", columns=["shared", "own"]).mask(
        "rank_noise", a=0.2, rng=1
    )
    assert masked.group_by("unit").n_unique()["shared"].to_list() == [1] * 60
    for name in ("shared", "own"):
        for stratum in (0, 1):
            before, after = (one.filter(s=stratum)[name].sort().to_list() for one in (data, masked))
            assert before == after
        assert masked[name].to_list() != data[name].to_list()
