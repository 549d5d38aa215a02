"""The literature's Score: its arithmetic, its five terms of loss, and where its risks come from."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import naive_risk
import sdckit as sdc
from sdckit.core.registry import METRICS
from sdckit.metrics.pair import pair_of
from sdckit.risk.trade_off_score import information_loss, loss_terms, weighted_score

NAN = float("nan")


@pytest.fixture
def linked(monkeypatch):
    """A linkage that finds every fifth record."""
    found = SimpleNamespace(value=SimpleNamespace(overall=0.2))
    monkeypatch.setitem(METRICS, "dbrl", SimpleNamespace(score=lambda _: found))


def positive(seed=0, n=50, p=3):
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(0, 0.3, (n, 1)) + rng.normal(0, 0.3, (n, p)))


def test_the_weights_of_the_literature():
    assert weighted_score(0.30, 0.20, 0.10, 0.40) == pytest.approx(0.2875)
    assert weighted_score(0.30, 0.20, 0.10, 0.40, weights=(0, 0, 1, 0)) == pytest.approx(0.10)


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.5, 0.5, 0.5, 0.5), (1.5, -0.5, 0.0, 0.0), ("a", 1, 0, 0)])
def test_weights_that_are_no_shares_are_refused(weights):
    with pytest.raises(ValueError, match=r"give (four that sum to 1|a share from 0 to 1)"):
        weighted_score(0.3, 0.2, 0.1, 0.4, weights=weights)


def test_two_variables_by_hand():
    x = np.array([[1.0, 2.0], [2.0, 6.0], [3.0, 4.0]])  # means 2, 4; variances 1, 4; covariance 1
    y = np.array([[1.0, 2.0], [2.0, 6.0], [6.0, 4.0]])  # means 3, 4; variances 7, 4; covariance 1
    assert loss_terms(pair_of(x, y)) == pytest.approx(
        {
            "cells": 1 / 6,
            "means": 0.5 / 2,
            "variances": 6 / 2,
            "covariances": 6 / 3,
            "correlations": 0.5 - 1 / math.sqrt(28),
        }
    )
    cut = [1 / 6, 0.25, 1, 1, 0.5 - 1 / math.sqrt(28)]
    assert information_loss(pair_of(x, y)) == pytest.approx(np.mean(cut))


@pytest.mark.parametrize("p", [1, 2, 4])
def test_loss_terms_are_their_slow_twins(p):
    x = positive(p=p)
    y = x * positive(1, p=p)
    assert loss_terms(pair_of(x, y)) == pytest.approx(naive_risk.loss_terms(x, y), nan_ok=True)
    huge = loss_terms(pair_of(1e300 * x, 1e300 * y))
    assert huge == pytest.approx(loss_terms(pair_of(x, y)), nan_ok=True)


def test_terms_that_the_data_do_not_have_are_left_out():
    x, y = [0.1] * 6, [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]  # six times 0.1 is no 0.6, and no spread must come of it
    terms = loss_terms(pair_of(x, y))
    assert math.isnan(terms["variances"])  # a changed zero
    assert math.isnan(terms["correlations"])
    assert terms["means"] == pytest.approx(1.0)
    assert information_loss(pair_of(x, y)) == pytest.approx(1.0)
    assert math.isnan(information_loss(pair_of([1.0, NAN], [NAN, 1.0])))


def test_missing_cells_are_compared_where_both_files_have_them():
    x, y = positive(), positive(1)
    kept = loss_terms(pair_of(x[2:], y[2:]))
    x[0], y[1] = NAN, NAN
    assert loss_terms(pair_of(x, y)) == pytest.approx(kept)


@pytest.mark.usefixtures("linked")
def test_linkage_counts_for_both_kinds_and_ranks_for_intervals():
    x, y = positive(), positive(1)
    loss = information_loss(pair_of(x, y))
    assert sdc.score(x, y) == pytest.approx(0.5 * loss + 0.25 * 0.2 + 0.25 * sdc.rid(x, y))
    assert sdc.score(x, y, weights=(0, 0.5, 0.5, 0)) == pytest.approx(0.2)
    assert sdc.score(x, y, weights=(0, 0, 0, 1)) == sdc.rid(x, y)
    assert sdc.score(x, x) == pytest.approx(0.25 * 0.2 + 0.25)


@pytest.mark.usefixtures("linked")
def test_the_score_stays_within_bounds():
    x = positive()
    for masked in (x, 1000 * x, -x, x[::-1], np.zeros_like(x)):
        assert 0 <= sdc.score(x, masked) <= 1


def test_the_score_is_no_metric():
    assert "score" not in METRICS
