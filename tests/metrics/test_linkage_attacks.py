"""Attacks: each equals its slow twin, on files full of ties; what they leave unchanged."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_risk
import sdckit as sdc
from linkages import ATTACKS, DIRECTIONS, NAN, all_values, score, tied_file, tied_files, with_holes
from maskings import fails
from sdckit.kernels.candidates import Targets
from sdckit.metrics.pair import pair_of
from sdckit.risk import literature
from sdckit.risk.facts import facts_of
from sdckit.risk.literature import MatchingAttack

FILES = 240


def check_credits(name, x, y, direction, places, expected):
    found = score(name, x, y, direction=direction, places=places, per_record=True)
    assert found.records == pytest.approx(expected[0], abs=1e-12)
    assert (found.value.overall, found.parts["strict"], found.parts["optimistic"]) == pytest.approx(
        tuple(expected.mean(1)), abs=1e-12
    )


def check_twin(name, x, y, direction, places):
    check_credits(name, x, y, direction, places, getattr(naive_risk, name)(x, y, direction, places))


# --- the nearest record ---


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_dbrl_is_brute_force_on_tied_files(direction):
    for seed in range(FILES):
        x, y = tied_file(seed)
        queries, targets = naive_risk.directed(x, y, direction)
        distances = naive_risk.squared_distances(queries, targets, naive_risk.scales_of(x))
        for places in (1, 2, 3):
            expected = naive_risk.among_equals(naive_risk.shared_credit(distances, places), queries)
            check_credits("dbrl", x, y, direction, places, expected)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", ["dbrl", "dbrl_rank"])
def test_missing_cells_are_left_out_as_by_brute_force(name, direction):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, y = tied_file(seed, largest=60)
        check_twin(name, x, with_holes(y, rng), direction, 1 + seed % 3)
        x, y = with_holes(x, rng), with_holes(y, rng)
        if not facts_of(pair_of(x, y)).tie_rows:  # what places tell is judged by another twin
            check_twin(name, x, y, direction, 1)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_ranks_are_compared_as_by_brute_force(direction):
    for seed in range(60):
        check_twin("dbrl_rank", *tied_file(seed, largest=90), direction, 1 + seed % 3)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_mahalanobis_distance_is_that_of_the_pseudo_inverse(direction):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x, y = tied_file(seed, largest=90)
        y += rng.normal(0, 0.01, y.shape) * (seed % 2)
        if seed % 3 == 0:  # a total and its parts, in both files
            x, y = (np.column_stack([values, values.sum(1)]) for values in (x, y))
        check_twin("dbrl_mahalanobis", x, y, direction, 1 + seed % 3)


@pytest.mark.parametrize("size", [1e3, 1e9, 1e12])
def test_ties_survive_beside_an_enormous_value_or_far_from_zero(size):
    for seed in range(15):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 6, (50, 2)).astype(float)
        x[0] = size
        check_twin("dbrl", x, x + rng.integers(-1, 2, x.shape), DIRECTIONS[seed % 2], 1)
        x = size + rng.integers(0, 6, (50, 2))
        check_twin("dbrl", x, x + rng.integers(-1, 2, x.shape), DIRECTIONS[seed % 2], 1)


def test_the_check_sees_ties_broken_by_rounding(monkeypatch):
    monkeypatch.setattr(literature, "TOLERANCE", 0.0)
    broken = [fails(check_twin, "dbrl", *tied_file(seed), DIRECTIONS[0], 1) for seed in range(40)]
    assert any(broken)


def test_the_check_sees_the_first_of_equals_credited(monkeypatch):
    def greedy(*arguments):
        closer, tied = beaten(*arguments)
        return np.array([closer, np.minimum(tied, 1)])

    beaten = Targets.count_closer
    monkeypatch.setattr(Targets, "count_closer", greedy)
    assert fails(check_twin, "dbrl", *tied_file(3), DIRECTIONS[0], 1)


def test_equal_records_stay_equal_in_the_directions_of_the_release():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(5, 200)), int(rng.integers(1, 8))
        kinds = rng.normal(size=(max(n // 3, 1), p))
        x = kinds[rng.integers(0, len(kinds), n)]
        distinct = len(np.unique(x, axis=0))
        assert sdc.dbrl_mahalanobis(x, x) == pytest.approx(distinct / n)


@pytest.mark.parametrize("n", [2, 64, 65, 1000])
def test_a_release_without_any_variance_tells_nothing(n):
    x = np.random.default_rng(0).normal(size=(n, 2))
    y = np.ones((n, 2))
    for name, direction in itertools.product(("dbrl_mahalanobis", "dbrl_rank", "matching"), DIRECTIONS):
        assert score(name, x, y, direction=direction).value.overall == pytest.approx(1 / n), name
    assert sdc.dbrl(x, y, direction="original_to_masked") == pytest.approx(1 / n)
    assert sdc.dbrl(x, y) == pytest.approx(1 / n)  # one original is nearest to all
    assert sdc.dbrl(y, x) == pytest.approx(1 / n)
    assert sdc.dbrl_mahalanobis(y, x, direction="masked_to_original") == pytest.approx(1 / n)


@given(tied_files(least=6), st.integers(0, 9))
def test_a_linear_combination_adds_nothing_to_the_mahalanobis_distance(files, seed):
    x, y = files
    rng = np.random.default_rng(seed)
    y = y + rng.normal(size=y.shape)
    mix = rng.integers(-3, 4, x.shape[1]).astype(float)
    wider = [np.column_stack([values, values @ mix]) for values in (x, y)]
    for direction in DIRECTIONS:
        expected = sdc.dbrl_mahalanobis(x, y, direction=direction)
        assert sdc.dbrl_mahalanobis(*wider, direction=direction) == pytest.approx(expected, abs=1e-9)


def test_a_release_half_as_long_in_one_direction_is_read_in_its_own_metric():
    rng = np.random.default_rng(3)
    parts = rng.normal(size=(2000, 2))
    x = parts @ np.array([[1.0, 1.0], [0.05, -0.05]])
    y = x + rng.normal(size=(2000, 2)) @ np.array([[0.5, 0.5], [0.0001, -0.0001]])
    assert sdc.dbrl_mahalanobis(x, y) > 2 * sdc.dbrl(x, y)


# --- what changes nothing ---


@given(tied_files(), st.randoms(use_true_random=False), st.sampled_from([None, 0, 2]))
@settings(max_examples=30)
def test_the_order_of_the_records_plays_no_part(files, random, window):
    x, y = files
    rows = random.sample(range(len(x)), len(x))
    expected = all_values(x, y, window=window, attacks=ATTACKS)  # folds of records are drawn by row
    assert all_values(x[rows], y[rows], window=window, attacks=ATTACKS) == pytest.approx(expected, abs=1e-7)


def test_a_solver_alone_would_credit_the_order_of_rows(monkeypatch):
    def as_solved(self, truth):
        hit = (self.matched.links == truth).astype(float)
        return literature.Credits(hit, hit, hit)

    x = np.arange(12.0)[:, None]  # every assignment has the same sum of distances
    y = x + 20
    turned = [np.roll(y, shift, axis=0) for shift in (0, 1, 5)]
    assert [sdc.matching(x, other) for other in turned] == pytest.approx([1 / 12] * 3)
    monkeypatch.setattr(MatchingAttack, "credits", as_solved)
    assert [sdc.matching(x, other) for other in turned] == [1.0] * 3


@given(tied_files(), st.lists(st.integers(-300, 300), min_size=4, max_size=4))
@settings(max_examples=30)
def test_units_play_no_part(files, powers):
    x, y = files
    units = 2.0 ** np.array(powers[: x.shape[1]])
    names = ("dbrl", "dbrl_mahalanobis", "dbrl_rank", "window", "matching")
    assert all_values(x * units, y * units, attacks=names) == all_values(x, y, attacks=names)


@given(tied_files())
@settings(max_examples=30)
def test_shared_credit_lies_between_the_counts(files):
    x, y = files
    for name, direction in itertools.product(ATTACKS, DIRECTIONS):
        found = score(name, x, y, direction=direction)
        assert 0 <= found.parts["strict"] <= found.value.overall + 1e-12
        assert found.value.overall <= found.parts["optimistic"] + 1e-12 <= 1 + 2e-12


@pytest.mark.parametrize("size", [1.0, 1e300, 1e-300])
def test_unchanged_records_are_found_whatever_their_size(size):
    x = np.random.default_rng(0).normal(size=(90, 3)) * size
    assert set(all_values(x, x, window=0).values()) == {1.0}


@pytest.mark.parametrize("far", [1e300, -1e300, 1e160])
@pytest.mark.parametrize("unit", [1.0, 1e-300])
def test_a_masked_value_beyond_all_others_does_no_harm(far, unit):
    x = np.random.default_rng(0).normal(size=(70, 3)) * [unit, 1.0, 1.0]
    for columns in (1, 2, 3):
        y = x.copy()
        y[0, :columns] = far
        values = all_values(x, y, window=3)
        assert all(0 <= value <= 1 for value in values.values())
        assert all(values["dbrl", direction] >= 69 / 70 for direction in DIRECTIONS)


# --- missing cells ---


def test_a_record_without_any_published_value_is_a_plain_guess():
    x = np.array([[0.0, 0.0], [3.0, 1.0], [-3.0, 2.0], [1.0, -4.0], [-1.0, 1.5]])  # the first near the centre
    y = x.copy()
    y[0] = NAN
    for name, direction in itertools.product(ATTACKS[:3], DIRECTIONS):
        found = score(name, x, y, direction=direction, per_record=True)
        assert found.records[0] == (1 / 5 if direction == DIRECTIONS[0] else 0.0), name
    assert sdc.dbrl(x, y) == pytest.approx((4 + 1 / 5) / 5)


def test_a_record_without_any_original_value_counts():
    x = np.array([[NAN, NAN], [3.0, 1.0], [-3.0, 2.0], [1.0, -4.0]])
    y = np.where(np.isnan(x), 1.0, x)
    for name, direction in itertools.product(ATTACKS[:3], DIRECTIONS):
        found = score(name, x, y, direction=direction, per_record=True)
        own = 0.0 if direction == DIRECTIONS[0] else 1 / 4  # other originals are near; all are equally far
        assert found.records.tolist() == [own, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", ATTACKS)
def test_a_variable_without_any_published_value(name):
    x = np.random.default_rng(0).normal(size=(20, 2))
    y = x.copy()
    y[:, 1] = NAN
    for direction in DIRECTIONS:
        found = score(name, x, y, direction=direction, window=0, detail=True)
        assert found.value.overall == (1.0 if name != "window" else pytest.approx(1.0))
        assert math.isnan(score(name, x, y * NAN, direction=direction).value.overall)


# --- the window ---


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_window_is_its_slow_twin(direction):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, y = tied_file(seed, largest=25)
        if seed % 2:
            y = with_holes(y, rng)
        width = int(rng.integers(0, 6))
        found = score("window", x, y, window=width, direction=direction, per_record=True)
        assert found.records == pytest.approx(naive_risk.window(x, y, width, direction))


def test_a_share_of_the_records_gives_the_same_window_as_the_method():
    x = np.arange(100.0)
    y = np.roll(x, 29)  # the last 29 are found at the other end
    assert score("window", x, y, within=0.29, direction=DIRECTIONS[0]).parts["optimistic"] == 0.71
    swapped = sdc.mask(x, "rank_swap", p=0.29, rng=1)
    assert score("window", x, swapped, within=0.29).parts["optimistic"] == 1.0


@given(
    st.sampled_from(["tied", "untied", "zeros"]),
    st.sampled_from([0.03, 0.1, 0.29, 0.5, 1.0]),
    st.sampled_from([0.0, 0.05, 0.2, 0.45]),
    st.sampled_from(["inclusive", "exclusive"]),
    st.sampled_from(["lowest", "highest"]),
    st.booleans(),
    st.integers(0, 999),
)
@settings(max_examples=40)
def test_the_true_record_is_always_within_the_published_window(kind, p, tails, bound, start, holes, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 120))
    x = rng.normal(size=(n, 3))
    if kind == "tied":
        x = x.round(0)
    if kind == "zeros":
        x = np.maximum(x, 0.0)
    if holes:
        x = with_holes(x, rng)
        tails = 0.0  # shares of fewer cells, rounded, may leave more of them in the middle
    options = {"p": p, "tails": tails, "bound": bound, "start": start}
    method = sdc.METHODS["rank_swap"]
    y = method.function(x, rng=rng, **options)
    window = method.window(options, x)
    for direction in DIRECTIONS:
        found = score("window", x, y, window=window, direction=direction)
        assert found.parts["optimistic"] == 1.0


# --- one-to-one matching ---


def costs_of(x, y):
    return np.sqrt(naive_risk.squared_distances(y, x, np.ones(x.shape[1])) * x.shape[1])


def credits_of(x, y):
    return MatchingAttack(x, y).credits(np.arange(len(x)))


def test_matching_is_the_mean_over_all_best_assignments_of_equal_records():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 7))
        kinds, masked_kinds = rng.normal(size=(3, 2)), rng.normal(size=(2, 2))
        x = kinds[rng.integers(0, 3, n)]
        y = masked_kinds[rng.integers(0, 2, n)] if seed % 2 else rng.normal(size=(n, 2))
        mean, strict, optimistic = naive_risk.matching(costs_of(x, y))
        found = credits_of(x, y)
        assert found.expected == pytest.approx(mean, abs=1e-8)
        assert found.strict.tolist() == strict.tolist()
        assert found.optimistic.tolist() == optimistic.tolist()


def test_matching_knows_the_links_of_all_best_assignments():
    gaps = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(2, 7)), int(rng.integers(1, 3))
        x, y = (rng.integers(0, 5, (n, p)).astype(float) for _ in range(2))
        mean, strict, optimistic = naive_risk.matching(costs_of(x, y))
        found = credits_of(x, y)
        assert found.strict.tolist() == strict.tolist()
        assert found.optimistic.tolist() == optimistic.tolist()
        gaps.append(abs(found.expected - mean).max())
    assert max(gaps) < 0.15
    assert np.mean(gaps) < 0.01


def test_the_shares_of_a_record_add_up_to_one():
    for seed in range(20):
        x, y = tied_file(seed, largest=80)
        shares = MatchingAttack(x, y).matched.shares
        assert shares.sum(0) == pytest.approx(1.0, abs=1e-6)
        assert shares.sum(1) == pytest.approx(1.0, abs=1e-6)


def test_matching_in_one_variable_leaves_open_who_is_who():
    """Any assignment of points to points beyond them has the same sum."""
    assert sdc.matching([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) == pytest.approx(1 / 3)
    assert score("matching", [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]).parts["optimistic"] == 1.0


def test_gower_distances_are_means_over_the_cells_that_are_there():
    x = np.array([[0.0, 0.0], [1.0, 10.0], [NAN, 20.0]])
    y = np.array([[0.5, NAN], [1.0, 10.0], [2.0, NAN]])
    rows = np.arange(3)
    found = MatchingAttack(x, y, "gower").distances(rows)
    inf = math.inf
    assert found == pytest.approx(np.array([[0.25, 0.25, inf], [0.5, 0.0, 0.5], [1.0, 0.5, inf]]))


def test_enormous_ranges_have_gower_distances():
    x = np.array([[1e308], [-1e308], [0.0]])
    assert sdc.matching(x, x, distance="gower") == 1.0
    rows = np.arange(3)
    assert MatchingAttack(x, x, "gower").distances(rows)[0, 1] == pytest.approx(1.0)


def test_matching_links_by_elimination():
    x = np.random.default_rng(0).normal(size=(8, 2))
    y = x.copy()
    y[3] = NAN
    assert sdc.matching(x, y) == 1.0
