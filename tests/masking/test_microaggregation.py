import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from cases import each
from sdckit.kernels.mdav import groups as partition
from sdckit.kernels.mdav import scan, state
from sdckit.kernels.mdav.groups import mdav_groups, mdav_points
from sdckit.masking.microaggregation import individual_ranking, mdav, within_share

SHAPES = {
    "normal": lambda rng, n, p: rng.normal(size=(n, p)),
    "lognormal": lambda rng, n, p: rng.lognormal(sigma=2, size=(n, p)),
    "duplicates": lambda rng, n, p: rng.normal(size=(max(n // 5, 1), p))[rng.integers(0, max(n // 5, 1), n)],
    "integers": lambda rng, n, p: rng.integers(-2, 3, (n, p)).astype(float),
    "correlated": lambda rng, n, p: rng.normal(size=(n, 1)) + 0.1 * rng.normal(size=(n, p)),
    "constant column": lambda rng, n, p: np.where(np.arange(p) == 0, 0.1, rng.normal(size=(n, p))),
    "all equal": lambda _rng, n, p: np.full((n, p), 7.1),
    "lattice": lambda rng, n, p: (
        np.indices((2,) * p).reshape(p, -1).T[rng.integers(0, 2**p, n)].astype(float)
    ),
}


def holes(values, share, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(values.shape) < share, np.nan, values)


def lines(name, n, p, seed):
    return SHAPES[name](np.random.default_rng(seed), n, p)


# --- the same groups as the slow twin ---


@each("name", SHAPES)
@each(("n", "p", "k"), [(7, 2, 3), (64, 1, 2), (130, 4, 3), (300, 13, 5), (257, 2, 50)])
def test_mdav_forms_the_twins_groups(name, n, p, k):
    values = lines(name, n, p, seed=n)
    np.testing.assert_array_equal(mdav_groups(values, k), naive.mdav_groups(values, k))


@pytest.mark.parametrize(("name", "p", "k"), [("normal", 4, 3), ("integers", 2, 7), ("lognormal", 13, 10)])
def test_mdav_forms_the_twins_groups_in_larger_files(name, p, k):
    values = lines(name, 2000, p, seed=5)
    np.testing.assert_array_equal(mdav_groups(values, k), naive.mdav_groups(values, k))


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(SHAPES)),
    n=st.integers(1, 150),
    p=st.sampled_from([1, 2, 4, 13]),
    k=st.integers(1, 50),
    seed=st.integers(0, 2**32 - 1),
)
def test_mdav_forms_the_twins_groups_on_any_file(name, n, p, k, seed):
    values = lines(name, n, p, seed)
    k = min(k, n)
    np.testing.assert_array_equal(mdav_groups(values, k), naive.mdav_groups(values, k))


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


# --- invariants, each one shown to catch a broken method ---


def check_partition(method, values, k):
    """Groups of k to 2k-1 records, at most one of them not of k; read off the published values."""
    sizes = np.unique(method(values, k=k), axis=0, return_counts=True)[1]
    assert sizes.sum() == len(values)
    assert k <= sizes.min() <= sizes.max() <= 2 * k - 1
    assert (sizes != k).sum() <= 1


def check_means(method, values, k):
    difference = method(values, k=k).mean(axis=0) - values.mean(axis=0)
    assert (np.abs(difference) <= 1e-9 * np.abs(values).max(axis=0)).all()


def check_order(method, values, k):
    masked = method(values, k=k)
    for before, after in zip(values.T, masked.T, strict=True):
        assert (np.diff(after[np.argsort(before, kind="stable")]) >= 0).all()


def check_identity(method, values, k):  # noqa: ARG001 - the checks are called alike
    np.testing.assert_array_equal(method(values, k=1), values)


def check_equal_values(method, values, k):
    """A column of one value, and a file of one record, come back to the last bit."""
    constant = np.hstack([values, np.full((len(values), 1), 0.1)])
    np.testing.assert_array_equal(method(constant, k=k)[:, -1], 0.1)
    copies = np.repeat(values[:1] / 3, len(values), axis=0)
    np.testing.assert_array_equal(method(copies, k=k), copies)


def check_missing(method, values, k):
    """Missing stays missing, and each published number stands for at least k records."""
    values = holes(values, 0.1)
    masked = method(values, k=k)
    assert np.isnan(masked[np.isnan(values)]).all()
    assert np.isfinite(masked).mean() > 0.2
    for column in masked.T:
        counts = np.unique(column[~np.isnan(column)], return_counts=True)[1]
        assert counts.min() >= k


def check_shrinks(method, values, k):
    """Within-group squares are a share of all squares, between 0 and 1."""
    points, masked = mdav_points(values), method(values, k=k)
    error = (((values - masked) / values.std(axis=0)) ** 2).sum()
    assert 0 < error <= (points**2).sum()


def too_small_groups(values, *, k):
    return values.copy() if k == 1 else mdav(values, k=k - 1)


def leftovers_apart(values, *, k):
    masked = mdav(values, k=k)
    masked[0] = values[0]
    return masked


def medians(values, *, k):
    groups, masked = mdav_groups(values, k), np.empty_like(values)
    for group in np.unique(groups):
        masked[groups == group] = np.median(values[groups == group], axis=0)
    return masked


def shifted(values, *, k):
    return mdav(values, k=k) + 1e-6


def summed_means(values, *, k):
    return mdav(values, k=k) * 3 / 3 + 1e-17 + 0.1 - 0.1


def imputed(values, *, k):
    masked = mdav(values, k=k)
    return np.where(np.isnan(values), np.nanmean(masked, axis=0), masked)


def unsuppressed(values, *, k):
    groups, masked = mdav_groups(values, k), values.copy()
    for group in np.unique(groups):
        members = values[groups == group]
        for j in range(values.shape[1]):
            seen = members[~np.isnan(members[:, j]), j]
            if len(seen):
                masked[(groups == group) & ~np.isnan(values[:, j]), j] = seen.mean()
    return masked


def reversed_order(values, *, k):
    return -individual_ranking(values, k=k)


MULTIVARIATE = [
    check_partition,
    check_means,
    check_identity,
    check_equal_values,
    check_missing,
    check_shrinks,
]
UNIVARIATE = [check_means, check_order, check_identity, check_equal_values, check_missing, check_shrinks]
BROKEN = [
    (check_partition, too_small_groups),
    (check_partition, leftovers_apart),
    (check_means, medians),
    (check_means, shifted),
    (check_order, mdav),
    (check_order, reversed_order),
    (check_identity, shifted),
    (check_equal_values, summed_means),
    (check_missing, imputed),
    (check_missing, unsuppressed),
    (check_shrinks, reversed_order),
]


@each("check", MULTIVARIATE)
@each(("n", "p", "k"), [(100, 4, 3), (99, 13, 5), (101, 1, 2), (20, 2, 10), (19, 2, 10)])
def test_mdav_keeps_its_promises(check, n, p, k):
    check(partial(mdav, gaps="merge"), lines("lognormal", n, p, seed=1), k)


@each("check", UNIVARIATE)
@each(("n", "p", "k"), [(100, 4, 3), (101, 1, 2), (40, 2, 10)])
def test_individual_ranking_keeps_its_promises(check, n, p, k):
    check(individual_ranking, lines("lognormal", n, p, seed=1), k)


@each(("check", "broken"), BROKEN)
def test_checks_catch_broken_methods(check, broken):
    with pytest.raises(AssertionError):
        check(broken, lines("lognormal", 100, 4, seed=1), 3)


def test_every_check_has_a_broken_method():
    assert {check for check, _ in BROKEN} == {*MULTIVARIATE, *UNIVARIATE}


# --- small cases and edges ---


def test_mdav_by_hand():
    # The centroid is 7, the farthest from it 0 (by 7; 13 only by 6); the rest form the other group.
    values = np.array([[12.0], [0.0], [2.0], [10.0], [11.0], [1.0], [13.0]])
    np.testing.assert_array_equal(mdav_groups(values, 3), [1, 0, 0, 1, 1, 0, 1])
    np.testing.assert_array_equal(mdav(values, k=3).ravel(), [11.5, 1, 1, 11.5, 11.5, 1, 11.5])


@pytest.mark.parametrize("power", [-900, 900])
def test_mdav_groups_huge_and_tiny_values_alike(power):
    values = lines("normal", 100, 3, seed=8)
    np.testing.assert_array_equal(mdav_groups(np.ldexp(values, power), 3), mdav_groups(values, 3))


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


def test_heap_keeps_the_smallest_of_many():
    rng = np.random.default_rng(0)
    distances = rng.integers(0, 40, 500).astype(float)
    near, group = np.full(20, np.inf), np.full(20, 500)
    for row in rng.permutation(500):
        if (distances[row], row) < (near[0], group[0]):
            state.replace_largest(near, group, 20, distances[row], row)
    np.testing.assert_array_equal(np.sort(group), np.sort(np.lexsort((np.arange(500), distances))[:20]))


# --- published figures ---

SHARES = {  # SSE/SST on standardised data for k = 3, 4, 5, 10, float64
    "Tarragona": (0.169326, 0.195460, 0.224619, 0.331929),
    "Census": (0.056922, 0.074947, 0.090884, 0.141559),
}


def folder(variable):
    if variable not in os.environ:
        pytest.skip(f"{variable} does not name a folder")
    return Path(os.environ[variable])


def read(path):
    return np.loadtxt(path, delimiter=",", skiprows=1)


def file(name):
    return read(folder("SDCKIT_DATA") / {"Census": "CASCrefmicrodata.csv"}.get(name, f"{name}.csv"))


@pytest.mark.parametrize("name", SHARES)
def test_mdav_loses_the_known_share_of_squares(name):
    values = file(name)
    for k, expected in zip((3, 4, 5, 10), SHARES[name], strict=True):
        assert within_share(values, mdav(values, k=k)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "k"), [("Tarragona", 2), ("Tarragona", 3), ("Tarragona", 5), ("Tarragona", 10), ("Census", 3)]
)
def test_individual_ranking_equals_sdcmicro(name, k):
    expected = read(folder("SDCKIT_GOLDEN") / f"{name}_onedims_k{k}.csv")
    np.testing.assert_allclose(individual_ranking(file(name), k=k), expected, rtol=1e-12)
