import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from cases import each
from microaggregations import SHAPES as EVERY_SHAPE
from microaggregations import holes, lines
from sdckit.kernels.mdav import groups as partition
from sdckit.kernels.mdav import scan, state
from sdckit.kernels.mdav.groups import mdav_groups
from sdckit.masking.microaggregation import individual_ranking, mdav, within_share

SHAPES = sorted(set(EVERY_SHAPE) - {"clusters", "huge and tiny"})

# --- the same groups as the slow twin ---


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(sorted(SHAPES)),
    n=st.integers(4, 80),
    p=st.sampled_from([1, 2, 4]),
    k=st.integers(2, 12),
    share=st.sampled_from([0.05, 0.3, 0.7]),
    seed=st.integers(0, 2**32 - 1),
)
def test_mdav_with_missing_cells_forms_the_twins_groups(*, name, n, p, k, share, seed):
    values = holes(lines(name, n, p, seed), share, seed)
    values[0, 0], values[1, 0] = np.nan, 1.0
    k = min(k, int((~np.isnan(values)).any(axis=1).sum()))
    if k > 1:
        np.testing.assert_array_equal(mdav_groups(values, k), naive.mdav_groups_missing(values, k))


def test_mdav_in_small_steps_forms_the_same_groups(monkeypatch):
    values = lines("normal", 500, 3, seed=2)
    expected, expected_holes = mdav_groups(values, 3), mdav_groups(holes(values, 0.1), 3)
    monkeypatch.setattr(partition, "STEP", 1)
    np.testing.assert_array_equal(mdav_groups(values, 3), expected)
    np.testing.assert_array_equal(mdav_groups(holes(values, 0.1), 3), expected_holes)


def test_mdav_subtracts_rows_in_ascending_order():
    points = lines("lognormal", 300, 4, seed=9)
    book = state.start(points, 40)
    assert not scan.advance(scan.fill_blocks(book, state.rounded_copy(points)), 40, 1)
    total = [naive.row_by_row_sum(column) for column in points.T]
    for rows in (np.flatnonzero(book.slots < 0)[book.groups[book.slots < 0] == number] for number in (0, 1)):
        for row in rows:
            total -= points[row]
    np.testing.assert_array_equal(book.total, total)


def test_mdav_does_not_depend_on_memory_order():
    values = lines("normal", 200, 4, seed=3)
    np.testing.assert_array_equal(mdav(np.asfortranarray(values)), mdav(values))
    np.testing.assert_array_equal(mdav(np.repeat(values, 2, axis=0)[::2]), mdav(values))


@each("name", SHAPES)
def test_individual_ranking_equals_its_twin(name):
    for n, p, k in [(3, 1, 3), (100, 4, 3), (101, 2, 10)]:
        for share in (0.0, 0.2):
            values = holes(lines(name, n, p, seed=k), share)
            np.testing.assert_allclose(
                individual_ranking(values, k=k), naive.individual_ranking(values, k), rtol=1e-12
            )


# --- small cases and edges ---


def test_mdav_by_hand():
    # The centroid is 7, the farthest from it 0 (by 7; 13 only by 6); the rest form the other group.
    values = np.array([[12.0], [0.0], [2.0], [10.0], [11.0], [1.0], [13.0]])
    np.testing.assert_array_equal(mdav_groups(values, 3), [1, 0, 0, 1, 1, 0, 1])
    np.testing.assert_array_equal(mdav(values, k=3).ravel(), [11.5, 1, 1, 11.5, 11.5, 1, 11.5])


def test_records_without_values_stay_out():
    values = holes(lines("normal", 30, 3, seed=4), 0.1)
    values[[3, 17]] = np.nan
    groups = mdav_groups(values, 3)
    assert (np.flatnonzero(groups < 0) == [3, 17]).all()
    assert np.isnan(mdav(values, k=3, gaps="merge")[[3, 17]]).all()


def test_records_that_share_no_column_are_grouped_last():
    values = np.array([[0.0, np.nan], [np.nan, 0.0], [1.0, np.nan], [np.nan, 1.0]])
    np.testing.assert_array_equal(mdav_groups(values, 2), naive.mdav_groups_missing(values, 2))
    assert (np.isfinite(mdav(values, k=2)) == np.isfinite(values)).all()


@pytest.mark.parametrize(
    "values", [np.zeros((2, 3)), np.full((9, 3), np.nan), np.zeros((0, 3)), np.zeros((9, 0))]
)
def test_too_few_records_are_refused(values):
    with pytest.raises(ValueError, match=r"records with a value: [02], fewer than k = 3; choose a smaller k"):
        mdav(values, k=3)


def test_a_column_with_few_values_is_suppressed():
    values = np.array([[1.0, np.nan], [2.0, 5.0], [3.0, 6.0]])
    np.testing.assert_array_equal(individual_ranking(values, k=3), [[2.0, np.nan]] * 3)


def test_methods_leave_their_input_alone():
    values = holes(lines("normal", 40, 3, seed=6), 0.1)
    before = values.copy()
    mdav(values, k=3)
    individual_ranking(values, k=3)
    np.testing.assert_array_equal(values, before)
    assert mdav(values, k=1) is not values


# --- published figures ---

SHARES = {  # SSE/SST on standardised data for k = 3, 4, 5, 10, float64
    "Tarragona": (0.169326, 0.195460, 0.224619, 0.331929),
    "Census": (0.056922, 0.074947, 0.090884, 0.141559),
}


def test_mdav_loses_the_known_share_of_squares(tarragona, census):
    for values, shares in zip((tarragona.to_numpy(), census.to_numpy()), SHARES.values(), strict=True):
        for k, expected in zip((3, 4, 5, 10), shares, strict=True):
            assert within_share(values, mdav(values, k=k)) == pytest.approx(expected, abs=1e-6)


def test_individual_ranking_equals_sdcmicro(tarragona, census, golden):
    for name, table, sizes in (("Tarragona", tarragona, (2, 3, 5, 10)), ("Census", census, (3,))):
        for k in sizes:
            expected = np.loadtxt(golden / f"{name}_onedims_k{k}.csv", delimiter=",", skiprows=1)
            np.testing.assert_allclose(individual_ranking(table.to_numpy(), k=k), expected, rtol=1e-12)
