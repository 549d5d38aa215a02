"""The posterior of one-to-one links: enumeration, dense twins, calibration, lists, and exact ties."""

import numpy as np
import pytest

import attacker_posterior as slow
import sdckit as sdc
from sdckit.kernels.candidates import no_facts
from sdckit.risk import posterior


def pairs_of(scores):
    """From a matrix of log-likelihoods, the pairs that are possible, all of them listed."""
    rows, originals = np.nonzero(np.isfinite(scores))
    return posterior.Pairs(rows, originals, scores[rows, originals], np.ones(len(rows)), len(scores))


def dense(found, probability):
    """From a posterior, its probabilities as a matrix, 0 where a pair is not listed."""
    table = np.zeros((found.pairs.n, found.pairs.n))
    table[found.pairs.rows, found.pairs.originals] = probability
    return table


def noisy_scores(n, p, sd, seed):
    """Log-likelihoods of all pairs of a normal file and its noised copy, by the true law."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    y = x + sd * rng.normal(size=(n, p))
    return -0.5 * (((y[:, None] - x[None]) / sd) ** 2).sum(axis=2)


# --- against slow twins ---


@pytest.mark.long
@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_probabilities_come_near_enumeration(n):
    errors, twins = [], []
    for seed in range(12):
        scores = noisy_scores(n, 2, 0.7, seed)
        exact, found = slow.enumerated(scores), posterior.Posterior(pairs_of(scores))
        errors.append(
            [np.abs(dense(found, p) - exact).max() for p in (found.sinkhorn, found.bethe, found.both)]
        )
        twins.append(np.abs(slow.posterior(scores) - exact).max())
    sinkhorn, bethe, both = np.mean(errors, axis=0)
    assert both <= min(
        sinkhorn, bethe
    )  # one claims too little, the other too much: why half of each is taken
    assert both == pytest.approx(np.mean(twins), abs=0.02)


@pytest.mark.parametrize("n", [2, 3])
def test_bethe_claims_too_much_of_two_or_three_records_and_never_too_little_of_the_likeliest(n):
    for seed in range(10):
        scores = noisy_scores(n, 2, 0.7, seed)
        exact, found = slow.enumerated(scores), posterior.Posterior(pairs_of(scores))
        claims = dense(found, found.bethe)
        assert claims.sum(axis=1) == pytest.approx(np.ones(n))
        assert claims.max() >= exact.max() - 0.02


def test_probabilities_are_those_of_the_dense_twins():
    for seed in range(5):
        scores = noisy_scores(40, 2, 0.5, seed)
        scores[np.random.default_rng(seed).random(scores.shape) < 0.3] = -np.inf
        np.fill_diagonal(scores, np.where(np.isfinite(scores.diagonal()), scores.diagonal(), -1.0))
        found = posterior.Posterior(pairs_of(scores))
        assert dense(found, found.plain) == pytest.approx(slow.row_posterior(scores))
        assert np.abs(dense(found, found.sinkhorn) - slow.sinkhorn(scores)).max() < 0.02
        assert np.abs(dense(found, found.bethe) - slow.bethe(scores)).max() < 0.02


def test_a_chain_of_single_pairs_is_certain_and_a_number():
    n = 200
    scores = np.full((n, n), -np.inf)
    scores[np.arange(n), np.arange(n)] = 0.0
    scores[np.arange(1, n), np.arange(n - 1)] = 40.0  # each row but the first also fits the one before it
    found = posterior.Posterior(pairs_of(scores))
    assert np.isfinite(found.bethe).all()
    assert found.of_truth(found.bethe)[0] == 1.0


# --- calibration and chance ---


def test_claims_are_right_as_often_as_they_say():
    claims, right = [], []
    for seed in range(12):
        found = posterior.Posterior(pairs_of(noisy_scores(150, 2, 0.3, seed)))
        table = dense(found, found.bethe)
        claims.append(table.max(axis=1))
        right.append(table.argmax(axis=1) == np.arange(150))
    claims, right = np.concatenate(claims), np.concatenate(right)
    error = np.sqrt((claims * (1 - claims)).sum())
    assert abs(claims.sum() - right.sum()) <= 3 * error
    sure = claims > posterior.SURE
    assert abs(claims[sure].sum() - right[sure].sum()) <= 3 * np.sqrt((claims * (1 - claims))[sure].sum())


def test_permuted_truth_has_the_credit_of_chance():
    found = posterior.Posterior(pairs_of(noisy_scores(100, 2, 0.3, 1)))
    rng = np.random.default_rng(2)
    draws = [found.credit(found.both, rng.permutation(100)).mean() for _ in range(200)]
    assert abs(np.mean(draws) - 0.01) <= 3 * np.std(draws) / np.sqrt(len(draws))
    assert found.credit(found.both, np.arange(100)).mean() > 0.2


def test_equal_pairs_share_their_credit_both_ways():
    found = posterior.Posterior(pairs_of(np.zeros((5, 5))))
    for chance in (found.plain, found.sinkhorn, found.bethe):
        for forward in (True, False):
            assert found.credit(chance, np.arange(5), forward=forward) == pytest.approx(np.full(5, 0.2))
    assert found.links_claimed.size == 0


def test_files_without_any_published_value_are_guessed():
    x = np.random.default_rng(0).normal(size=(120, 3))
    assert sdc.linkage(x, np.full_like(x, np.nan)) == pytest.approx(1 / 120)


# --- lists ---


def listed(scores):
    """The posterior by the lists that a large file has."""
    n = len(scores)
    return posterior.Posterior(
        posterior.likely_pairs(posterior.Search(lambda u, i: scores[u, i], list), no_facts(n), no_facts(n))
    )


@pytest.mark.long
def test_lists_find_what_all_pairs_find():
    scores = noisy_scores(1500, 2, 0.06, 3)
    truth = np.arange(1500)
    whole, some = posterior.Posterior(pairs_of(scores)), listed(scores)
    assert len(some.pairs.rows) < 0.1 * len(whole.pairs.rows)
    for name in ("plain", "both"):
        full = whole.credit(getattr(whole, name), truth).mean()
        assert some.credit(getattr(some, name), truth).mean() == pytest.approx(full, rel=0.02)
    full = whole.of_truth(whole.bethe)
    assert some.of_truth(some.bethe).mean() == pytest.approx(full.mean(), rel=0.02)


def test_pairs_drawn_at_random_stand_for_all_others():
    some = listed(noisy_scores(400, 2, 0.3, 4))
    totals = np.bincount(some.pairs.rows, some.pairs.standing, 400)
    assert totals == pytest.approx(np.full(400, 400.0))


def test_small_files_are_listed_whole():
    some = listed(noisy_scores(200, 2, 0.3, 4))
    assert len(some.pairs.rows) == 200**2
    assert (some.pairs.standing == 1).all()
