"""The attacks are real: each finds about what it should in files that are masked as a user would.

What is printed beside them is not looked at here.
"""

import itertools
import math

import numpy as np
import pytest

import attacked_releases as releases
import attacker
import attacker_posterior as chances
import sdckit as sdc
from cases import few

DRAWS = range(30_000, 30_003)


def mean_found(line, **size):
    return np.mean([line(draw, **size).found for draw in DRAWS])


@pytest.mark.parametrize(
    ("line", "size", "least"),
    few(
        [
            ("rank_swap", {"n": 300}, 0.95),
            ("rank_swap_two_columns", {"n": 300}, 0.95),
            ("rank_swap_tails", {"n": 300}, 0.95),
            ("rank_swap_strata", {"n": 450}, 0.95),
            ("rank_swap_known_75", {"n": 300}, 0.95),
            ("rank_swap_known_50", {"n": 300}, 0.5),
            ("p_distribution_swap", {"n": 300}, 0.95),
            ("wealth_beside_swaps", {"n": 300}, 0.95),
            ("panel_by_month", {"firms": 40}, 0.95),
            ("three_releases", {"n": 300}, 0.65),
            ("multiplicative_noise", {"n": 300}, 0.2),
            ("secret_rotation", {"n": 200}, 0.99),
            ("missing_correlated", {"n": 400}, 0.7),
            ("wrong_codes_mdav", {"n": 300}, 0.95),
            ("wrong_codes_40_mdav", {"n": 300}, 0.8),
            ("wrong_ages_mdav", {"n": 300}, 0.8),
            ("follows_99_mdav", {"n": 300}, 0.4),
            ("unknown_sum_noise", {"n": 300}, 0.95),
            ("unknown_ratio_mdav", {"n": 300}, 0.95),
            ("class_of_size_mdav", {"n": 300}, 0.5),
            ("sorted_by_sum_noise", {"n": 300}, 1.0),
            ("sorted_by_dropped_mdav", {"n": 300}, 1.0),
            ("attribute_of_sorted", {"n": 300}, 1.0),
            ("attribute_of_units", {"firms": 40}, 0.95),
            ("units_shown_by_weight", {"firms": 40}, 0.9),
            ("leaving_rank_swap", {"n": 200}, 1.0),
            ("leaving_mdav", {"n": 200}, 0.75),
            ("leaving_moment_preserving_noise", {"n": 200}, 0.75),
            ("leaving_romm", {"n": 200}, 0.75),
        ],
        8,
    ),
)
def test_attack_finds_records(line, size, least):
    assert mean_found(releases.LINES[line], **size) >= least


def nearest(X, Y):
    """What somebody finds who takes the nearest record, in standard deviations."""
    gaps = (((Y[:, None] - X[None]) / attacker.spreads(X)) ** 2).sum(2)
    return chances.right_links(-gaps, np.arange(len(X))).mean()


@pytest.mark.parametrize(
    ("method", "parameters", "times"),
    [
        ("multiplicative_noise", {"percent": 50}, 1.7),
        ("kim_noise", {"percent": 100}, 1.3),
        ("moment_preserving_noise", {"delta": 0.8}, 1.3),
        ("romm", {"percent": 100}, 1.3),
        ("correlated_noise", {"percent": 60}, 1.1),
        ("zero_preserving_noise", {"percent": 100}, 1.3),
    ],
)
def test_law_of_a_method_finds_more_than_the_nearest_record(method, parameters, times):
    X = releases.with_zeros(250, 4) if method == "zero_preserving_noise" else releases.skewed(250, 6)
    files = [sdc.mask(X, method, rng=draw, **parameters) for draw in range(4)]
    law = [chances.found(getattr(attacker, method)(X, Y, **parameters)) for Y in files]
    assert np.mean(law) >= times * np.mean([nearest(X, Y) for Y in files])


def test_outliers_are_found_by_their_own_strength():
    X = releases.skewed(250, 6, spread=1.5)
    own = [sdc.mask(X, "outlier_noise", percent=50, rng=100 + run) for run in range(100)]
    factors = attacker.factors_by_masking(X, 50, own)
    files = [sdc.mask(X, "outlier_noise", percent=50, rng=draw) for draw in range(4)]
    law = [chances.found(attacker.outlier_noise(X, Y, 50, factors)) for Y in files]
    assert np.mean(law) >= 1.3 * np.mean([nearest(X, Y) for Y in files])


def test_plain_noise_holds_no_secret_beyond_the_nearest_record():
    X = releases.skewed(250, 4)
    files = [sdc.mask(X, "noise", rng=draw, percent=50) for draw in range(4)]
    law = np.mean([chances.found(attacker.noise(X, Y, 50)) for Y in files])
    assert np.mean([nearest(X, Y) for Y in files]) <= law + 1e-9
    assert law <= 1.4 * np.mean([nearest(X, Y) for Y in files])


def test_law_of_rank_noise_finds_more_than_a_distance_of_ranks():
    found, by_distance = [], []
    X = releases.skewed(300, 4)
    for draw in range(4):
        noisy = X.argsort(0).argsort(0) + 0.2 * 300 * np.random.default_rng(draw).normal(size=X.shape)
        Y = np.take_along_axis(np.sort(X, 0), noisy.argsort(0).argsort(0), 0)
        found.append(chances.found(attacker.rank_noise(X, Y, 0.2)))
        by_distance.append(nearest(X.argsort(0).argsort(0) + 0.0, Y.argsort(0).argsort(0) + 0.0))
    assert np.mean(found) >= 1.1 * np.mean(by_distance)


def test_surest_links_are_right():
    precision = np.mean([releases.precision_of_surest(draw, n=300) for draw in range(6)])
    assert precision >= 0.85


def test_places_of_missing_cells_single_out_records():
    assert releases.missing_cells().found == pytest.approx(21 / 1000)


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_swaps_with_equal_values_never_exclude_the_truth(share):
    """Of persons who are not known, too, one may have had the value that a known one is published with."""
    X = releases.skewed(200, 4).round(-2)
    for draw in range(4):
        Y = sdc.mask(X, "rank_swap", p=0.3, rng=draw)
        known = np.random.default_rng(draw).permutation(200)[: round(share * 200)]
        scores = attacker.swap_scores(X[known], Y, attacker.window_moves(X[known], Y, 0.3))
        assert np.isfinite(scores[known, np.arange(len(known))]).all()


def test_exact_products_tell_the_pairing_of_few_records_and_a_release_says_so():
    x = np.random.default_rng(3).lognormal(size=(7, 2))
    release = sdc.release(x, "moment_preserving_noise", delta=0.9, decimals=None, metrics=["brmae"])
    y, centred = release.data, x - x.mean(0)
    pairings = np.array(list(itertools.permutations(range(7))))
    products = np.einsum("ki,pkj->pij", centred, y[pairings])  # of originals and published records
    misses = np.abs(products - math.sqrt(1 - 0.9**2) * centred.T @ centred).max(axis=(1, 2))
    assert (release.rows[pairings[misses.argmin()]] == np.arange(7)).all()
    assert any(
        note.startswith("sums of products of original and published") for note in release.evaluation.notes
    )


def test_permuted_file_gives_chance():
    """No attack finds more where rows were put in another order: none looks at which pairs are true."""
    X = releases.skewed(200, 4)
    Y = sdc.mask(X, "rank_swap", p=0.3, rng=1)
    order = np.random.default_rng(2).permutation(200)
    scores = attacker.swap_scores(X, Y[order], attacker.window_moves(X, Y[order], 0.3))
    assert chances.found(scores, order, one_to_one=False) >= 0.95
    assert chances.found(scores, one_to_one=False) <= 0.05
    noisy = attacker.noise(X, sdc.mask(X, "noise", percent=10, rng=1)[order], 10)
    assert chances.found(noisy, order) >= 0.8
    assert chances.found(noisy) <= 0.05


# ---- the one-to-one posterior ------------------------------------------------------------------------------


def cases(n, draws=20):
    """Scores of n records with two variables and noise as strong as their spread."""
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 2))
        Y = X + rng.normal(size=(n, 2))
        yield -0.5 * ((Y[:, None] - X[None]) ** 2).sum(2)


@pytest.mark.parametrize("n", [5, 6, 7])
def test_posterior_is_near_enumeration(n):
    exact = [chances.enumerated(scores) for scores in cases(n)]
    near = {
        name: np.mean([np.abs(way(scores) - one).mean() for scores, one in zip(cases(n), exact, strict=True)])
        for name, way in vars(chances).items()
        if name in {"bethe", "sinkhorn", "posterior", "row_posterior"}
    }
    assert near["bethe"] <= 0.03
    assert near["sinkhorn"] <= 0.06
    assert near["posterior"] <= 0.04
    assert max(near["bethe"], near["sinkhorn"]) <= 0.7 * near["row_posterior"]


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_links_are_those_of_enumeration(n):
    """Of two or three records belief propagation claims too much, but it names the same ones."""
    same = [
        (chances.posterior(scores).argmax(1) == chances.enumerated(scores).argmax(1)).mean()
        for scores in cases(n)
    ]
    assert np.mean(same) >= 0.95


@pytest.mark.parametrize("way", [chances.enumerated, chances.bethe, chances.sinkhorn])
def test_posterior_adds_up_to_one_and_keeps_impossible_pairs_out(way):
    scores = next(cases(6)).copy()
    scores[0, 1:4] = -np.inf
    found = way(scores)
    np.testing.assert_allclose(found.sum(0), 1, atol=0.02)
    np.testing.assert_allclose(found.sum(1), 1, atol=0.02)
    assert (found[0, 1:4] == 0).all()


def test_posterior_of_equal_records_is_shared():
    np.testing.assert_allclose(chances.bethe(np.zeros((5, 5))), 0.2, atol=1e-6)
    assert chances.found(np.zeros((5, 5))) == pytest.approx(0.2)


def test_certain_links_are_certain():
    scores = np.full((6, 6), -np.inf)
    scores[np.arange(6), np.arange(6)] = 0
    assert chances.bethe(scores)[0, 0] > 0.999
    assert chances.found(scores) == 1
    assert chances.exposed(scores, limit=0.9) == 6


def test_claims_add_up_to_what_is_found():
    """Belief propagation is calibrated: the sum of its claims is the number of right links, within chance."""
    claimed, right = [], []
    X = releases.skewed(200, 4)
    for draw in range(8):
        table = chances.bethe(attacker.noise(X, sdc.mask(X, "noise", percent=50, rng=draw), 50))
        claimed.append(table.max(1).sum())
        right.append((table.argmax(1) == np.arange(200)).sum())
    spread = np.sqrt(np.sum(right)) + 1
    assert abs(np.sum(claimed) - np.sum(right)) <= 3 * spread
