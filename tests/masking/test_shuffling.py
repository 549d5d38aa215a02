"""Shuffling given columns and within bins: invariants, each also shown a broken method, and slow twins."""

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

import naive_masking_shuffles as slow
import sdckit as sdc
from cases import each
from maskings import NAN, cell, check_missing_kept, fails, generator
from sdckit.kernels.draws import normals
from sdckit.masking.synthetic import (
    Scores,
    classes_of,
    given_normal,
    notes_on_single_records,
    sequential_shuffle,
    shuffle,
)
from swappings import check_values_kept

tables = st.integers(1, 4).flatmap(
    lambda p: st.lists(st.tuples(*[cell | st.just(NAN)] * p), min_size=2, max_size=40)
)


def rank_correlations(values):
    """Spearman's, of complete columns."""
    return np.corrcoef([rankdata(column) for column in values.T])


# --- data shuffling ---


def check_given_kept(before, after, places):
    assert np.array_equal(before[:, places], after[:, places], equal_nan=True)


@given(tables, st.integers(0, 3), st.integers(0, 2**32))
def test_shuffling_keeps_values_gaps_and_the_given_columns(rows, count, seed):
    values = np.array(rows)
    places = tuple(range(min(count, values.shape[1] - 1)))
    before = values.copy()
    masked = shuffle(values, given=places, rng=generator(seed))
    check_values_kept(values, masked)
    check_missing_kept(values, masked)
    check_given_kept(values, masked, places)
    assert np.array_equal(values, before, equal_nan=True)
    again = shuffle(values, given=places, rng=generator(seed), basis=Scores(values))
    assert np.array_equal(again, masked, equal_nan=True)


def related(n, seed=0, gaps=0.0):
    """Four columns that depend on each other, one of them with ties."""
    rng = generator(seed)
    values = np.exp(rng.normal(size=(n, 1)) + rng.normal(size=(n, 4)))
    values[:, 1] *= -1
    values[:, 3] = np.round(values[:, 3])
    values[rng.random(values.shape) < gaps] = NAN
    return values


@each("places", [(), (0,), (3, 1), (0, 1, 2)])
@each("gaps", [0.0, 0.1])
def test_shuffling_does_what_the_formula_says(places, gaps):
    for seed in range(5):
        values = related(60, seed, gaps)
        draws = normals(generator(seed), (4 - len(places), 60))
        expected = slow.shuffled(values, places, draws)
        assert np.array_equal(shuffle(values, given=places, rng=generator(seed)), expected, equal_nan=True)


def check_correlations(before, after, tolerance):
    assert np.abs(rank_correlations(before) - rank_correlations(after)).max() <= tolerance


def test_shuffling_keeps_rank_correlations():
    """About 5 standard deviations of a rank correlation of 2000 records on either side."""
    values = related(2000, 1)
    values[:, 3] = np.exp(values[:, 3] / 10) + generator(2).random(2000)
    for places in ((), (0,), (1, 3)):
        masked = shuffle(values, given=places, rng=generator(3))
        check_correlations(values, masked, 0.11)
        alone = np.column_stack([generator(j).permutation(column) for j, column in enumerate(values.T)])
        assert fails(check_correlations, values, alone, 0.11)


def test_the_checks_of_shuffling_refuse_broken_methods():
    values = related(50)
    masked = shuffle(values, given=(0,), rng=generator(1))
    assert not fails(check_given_kept, values, masked, (0,))
    assert fails(check_given_kept, values, masked, (0, 1))
    assert fails(check_given_kept, values, masked[::-1], (0,))
    drawn = masked.copy()
    drawn[:, 1] = generator(2).choice(values[:, 1], 50)  # with replacement
    assert fails(check_values_kept, values, drawn)
    assert fails(check_missing_kept, related(50, gaps=0.2), masked)


def test_shuffled_values_know_their_record_through_the_given_columns_only():
    """Partial correlation with the own original, the given column held: 0 but for chance."""
    rng = generator(5)
    given_column = rng.normal(size=4000)
    values = np.column_stack([given_column, given_column + rng.normal(size=4000)])
    masked = shuffle(values, given=(0,), rng=generator(6))
    left = [
        np.polyval(np.polyfit(given_column, y, 1), given_column) - y for y in (values[:, 1], masked[:, 1])
    ]
    assert abs(np.corrcoef(left)[0, 1]) < 5 / math.sqrt(4000)
    free = shuffle(values, rng=generator(6))
    assert abs(np.corrcoef(values[:, 0], free[:, 0])[0, 1]) < 5 / math.sqrt(4000)


def test_a_given_column_in_the_same_order_gives_another_away():
    x = generator(7).normal(size=100)
    values = np.column_stack([x, np.exp(x), generator(8).normal(size=100)])
    masked = shuffle(values, given=(0,), rng=generator(9))
    assert np.array_equal(masked[:, 1], values[:, 1])
    assert not np.array_equal(masked[:, 2], values[:, 2])


def test_given_columns_that_repeat_each_other_count_once():
    values = related(80)
    doubled = np.column_stack([values, values[:, 0] ** 3, np.full(80, 7.0)])
    slopes, root = given_normal(Scores(doubled).correlations, [0, 4, 5], [1, 2])
    plain = given_normal(Scores(values).correlations, [0], [1, 2])
    assert slopes[:, :2].sum(axis=1) == pytest.approx(plain[0][:, 0])
    assert root == pytest.approx(plain[1])
    masked = shuffle(doubled, given=(0, 4, 5), rng=generator(1))
    assert np.array_equal(masked[:, 1:4], shuffle(values, given=(0,), rng=generator(1))[:, 1:])


def test_correlations_that_no_data_can_have_are_replaced():
    """Each pair of columns shares other records, so that a ~ b, b ~ c and a ~ -c do not fit together."""
    x = np.arange(20.0)
    values = np.full((60, 3), NAN)
    values[:20, 0] = values[:20, 1] = values[20:40, 1] = values[20:40, 2] = values[40:, 0] = x
    values[40:, 2] = -x
    relations = Scores(values).correlations
    assert np.linalg.eigvalsh(relations).min() > -1e-12
    assert np.diag(relations) == pytest.approx(1)
    for places in ((), (0,), (0, 2)):
        masked = shuffle(values, given=places, rng=generator(2))
        check_values_kept(values, masked)
        check_missing_kept(values, masked)


def test_one_column_is_permuted_and_all_given_is_an_error():
    values = np.arange(300.0)[:, None]
    masked = shuffle(values, rng=generator(3))
    check_values_kept(values, masked)
    assert abs(np.corrcoef(values[:, 0], masked[:, 0])[0, 1]) < 0.3
    with pytest.raises(ValueError, match=r"^given names all 2 columns; leave at least one to shuffle$"):
        shuffle(np.ones((5, 2)), given=(1, 0), rng=generator())


def test_the_file_of_the_package_is_one_draw_of_ours(tarragona, golden):
    """Rank correlations of R's shuffled columns 1-3, with 4-7 and among them: within 3.5 deviations."""
    theirs = pl.read_csv(golden / "Tarragona_shuffle_ds_seed4.csv", infer_schema_length=None)
    values, masked = (t.cast(pl.Float64).to_numpy()[:, :7] for t in (tarragona, theirs))
    check_values_kept(values, masked)
    check_given_kept(values, masked, (3, 4, 5, 6))
    basis = Scores(values)
    pairs = np.array([(i, j) for i in range(3) for j in range(i + 1, 7)]).T

    def correlations(table):
        return rank_correlations(table)[*pairs]

    ours = [
        correlations(shuffle(values, given=(3, 4, 5, 6), rng=generator(s), basis=basis)) for s in range(100)
    ]
    middle, spread = np.mean(ours, axis=0), np.std(ours, axis=0, ddof=1)
    assert spread.max() < 0.035
    assert (np.abs(correlations(masked) - middle) / spread).max() < 3.5
    assert np.abs(correlations(values) - middle).max() < 0.05


# --- sequential shuffling within bins ---


def cells(values, bins):
    """How many records each combination of bins has."""
    return Counter(map(tuple, classes_of(values, bins).T.tolist()))


def check_cells_kept(before, after, bins):
    assert cells(before, bins) == cells(after, bins)


@given(tables, st.integers(1, 12), st.sampled_from(["simple", "full"]), st.integers(0, 2**32))
def test_sequential_shuffling_keeps_values_and_combinations_of_bins(rows, bins, condition, seed):
    values = np.array(rows)
    before = values.copy()
    masked = sequential_shuffle(values, bins=bins, condition=condition, rng=generator(seed))
    check_values_kept(values, masked)
    check_cells_kept(values, masked, bins)
    assert np.array_equal(values, before, equal_nan=True)
    gaps = [Counter(map(tuple, np.isnan(table).tolist())) for table in (values, masked)]
    assert gaps[0] == gaps[1]


@settings(max_examples=30)
@given(tables, st.integers(1, 6), st.sampled_from(["simple", "full"]), st.integers(0, 2**32))
def test_sequential_shuffling_takes_the_steps_described(rows, bins, condition, seed):
    values = np.array(rows)
    masked = sequential_shuffle(values, bins=bins, condition=condition, rng=generator(seed))
    expected = slow.sequentially_shuffled(rows, bins, condition, generator(seed))
    same = [[slow.bin_of(x, column, bins) for x in column] for column in values.T.tolist()]
    assume(same == classes_of(values, bins).tolist())  # an edge of a bin can be rounded either way
    assert np.array_equal(masked, expected, equal_nan=True)


def test_bins_are_of_equal_width_and_hold_their_upper_edge():
    values = np.array([[0.0, 5.0], [2.5, 5.0], [2.6, 5.0], [5.0, 5.0], [7.5, NAN], [10.0, 5.0]])
    assert classes_of(values, 4).tolist() == [[0, 0, 1, 1, 2, 3], [0, 0, 0, 0, 4, 0]]
    large = np.array([[-1.7e308], [0.0], [1.7e308]])
    assert classes_of(large, 2).tolist() == [[0, 0, 1]]
    assert classes_of(large * 1e-300 * 1e-300, 1).tolist() == [[0, 0, 0]]
    assert classes_of(np.full((3, 1), NAN), 4).tolist() == [[4, 4, 4]]


def test_the_checks_of_sequential_shuffling_refuse_broken_methods():
    values = related(200)
    masked = sequential_shuffle(values, bins=8, rng=generator(1))
    assert not fails(check_cells_kept, values, masked, 8)
    broken = masked.copy()
    broken[:, 2] = generator(2).permutation(broken[:, 2])  # not within bins
    assert fails(check_cells_kept, values, broken, 8)
    alone = sequential_shuffle(values[:, :1], bins=8, rng=generator(3))
    assert fails(check_cells_kept, values, np.column_stack([alone, masked[:, 1:]]), 8)
    assert fails(check_values_kept, values, np.round(masked, 3))


def test_rows_come_in_random_order_and_one_column_is_only_that():
    values = np.arange(400.0)[:, None]
    masked = sequential_shuffle(values, bins=400, rng=generator(1))
    check_values_kept(values, masked)
    assert abs(np.corrcoef(values[:, 0], masked[:, 0])[0, 1]) < 0.25
    pairs = np.column_stack([values, 3 * values])
    fine = sequential_shuffle(pairs, bins=100_000, rng=generator(2))
    assert np.array_equal(fine[:, 1], 3 * fine[:, 0])  # each value is alone in its bin
    loose = sequential_shuffle(pairs, bins=1, rng=generator(3))
    assert abs(np.corrcoef(loose.T)[0, 1]) < 0.25


def test_fewer_bins_keep_less_of_a_relation_and_the_grid_runs_that_way():
    values = np.abs(related(3000)[:, :2]) ** 0.2
    kept = [
        rank_correlations(sequential_shuffle(values, bins=bins, rng=generator(4)))[0, 1]
        for bins in (40, 4, 1)
    ]
    assert kept[0] > kept[1] + 0.02 > kept[2] + 0.04
    bins = sdc.METHODS["sequential_shuffle"].parameters[0]
    assert list(bins.grid) == sorted(bins.grid, reverse=True)
    assert not sdc.METHODS["sequential_shuffle"].paired


def test_a_note_counts_records_that_nothing_can_change():
    values = np.array([[0.0, 0.0], [0.1, 0.1], [10.0, 10.0]])
    assert notes_on_single_records(values, {"bins": 4}) == [
        "1 record only changed rows: each value is alone in its bin"
    ]
    assert notes_on_single_records(values, {"bins": 1000}) == [
        "3 records only changed rows: each value is alone in its bin"
    ]
    assert notes_on_single_records(values, {"bins": 1}) == []
