"""RMDID: its slow twin, R's numbers as far as another robust covariance allows, and what it refuses."""

import math
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_risk
import sdckit as sdc
from sdckit.core.checks import NotApplicable
from sdckit.metrics.original import Original
from sdckit.metrics.pair import pair_of
from sdckit.risk import intervals
from sdckit.risk.distances import MOST
from sdckit.risk.intervals import (
    SAMPLE,
    consistency_factor,
    reweighted_covariance,
    robust_distances,
    score_rmdid,
)

NAN = float("nan")


def cloud(n=60, p=2, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 1, (n, 1)) + rng.normal(0, 1, (n, p))
    values[:3] *= 20  # outliers
    return values


def moved(x, share, size, seed=1):
    rng = np.random.default_rng(seed)
    return x + size * rng.normal(size=x.shape) * (rng.random((len(x), 1)) < share)


def half_determined():
    x = cloud(60, p=3)
    x[:50, 2] = x[:50, 0] + x[:50, 1]
    return x


def test_one_variable_by_hand():
    x = np.arange(20.0)
    y = np.where(x < 5, 4 - x, x)  # 2 stays where it is
    score = score_rmdid(pair_of(x, y), per_record=True)
    assert score.value.overall == 0.8
    assert score.records.tolist() == [0, 0, 1, 0, 0, *[1] * 15]
    assert math.isnan(score.value.variables[0])


def test_outliers_are_close_from_farther_away():
    x = cloud(200)
    distances = robust_distances(Original.of(x), 0)
    assert distances[:3].min() > 4 * np.median(distances)
    y = x + 0.002 * x.std(0)  # scaling by the file's own mean takes a shift back
    assert sdc.rmdid(x, y, k=1e-6) == 1.0
    y[::2] += 0.01 * x.std(0)
    found = score_rmdid(pair_of(x, y), per_record=True).records
    assert found[:3].min() == 1.0 > found[3:].mean()


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.003, 0.3]))
def test_rmdid_is_its_slow_twin(seed, share, size):
    x = cloud(40, seed=seed)
    y = moved(x, share, size, seed).round(2)
    pair = pair_of(x, y)
    expected = naive_risk.rmdid(x, y, robust_distances(pair.original, 0))
    score = score_rmdid(pair, rule="alone")
    assert (score.parts["near"], score.parts["alone"]) == pytest.approx(expected, abs=1e-12)
    assert score.value.overall == score.parts["alone"] <= score.parts["near"]


def test_the_order_of_the_records_does_not_matter():
    x = np.exp(cloud(700, p=6).clip(-3, 3))  # the search for its covariance has several ends
    y = moved(x, 0.7, 0.01)
    rows = np.random.default_rng(3).permutation(len(x))
    first, second = Original.of(x), Original.of(x[rows])  # they keep their covariances
    ours, theirs = robust_distances(first, 0), robust_distances(second, 0)
    assert theirs == pytest.approx(ours[rows], rel=1e-9)
    for rule in ("near", "alone"):
        assert sdc.rmdid(second, y[rows], rule=rule) == pytest.approx(
            sdc.rmdid(first, y, rule=rule), abs=1e-12
        )


def test_records_that_lie_close_together_protect_each_other():
    x = cloud(60)
    twins = np.repeat(x, 2, axis=0)
    assert sdc.rmdid(twins, twins) == 1.0
    assert sdc.rmdid(twins, twins, rule="alone") == 0.0
    assert sdc.rmdid(x, x, rule="alone", k2=0.0) == 1.0
    assert sdc.rmdid(x, x, rule="alone", k2=100.0) == 0.0


def test_unrelated_records_score_the_level():
    x = cloud(300)
    level = score_rmdid(pair_of(x, x), k=0.5, detail=True).random.overall
    rng = np.random.default_rng(5)
    original = Original.of(x)
    draws = [score_rmdid(pair_of(original, x[rng.permutation(300)]), k=0.5).value.overall for _ in range(40)]
    noise = np.std(draws, ddof=1) * math.sqrt(1 / 40 + 1 / MOST)
    assert abs(np.mean(draws) - level) <= 4 * noise
    assert 0.02 < level < 0.5


def test_suppressed_cells_are_never_close_and_disturb_no_others():
    x = cloud(60, p=3)
    y = x.copy()
    y[:3] = NAN  # the outliers, so that the columns' means move
    y[3, 0] = NAN
    x[4, 1] = NAN
    score = score_rmdid(pair_of(x, y), detail=True, per_record=True)
    assert np.isnan(score.records[[0, 1, 2, 4]]).all()
    assert score.value.overall == 1.0
    assert score.used.tolist() == [55, 56, 56]
    assert score.left_out.tolist() == [1, 0, 1]
    alone = score_rmdid(pair_of(x, y), rule="alone", k2=0.0, per_record=True)
    assert np.isnan(alone.records[[0, 1, 2, 3, 4]]).all()


def test_large_files_use_a_sample_for_the_covariance(monkeypatch):
    monkeypatch.setattr(intervals, "SAMPLE", 2000)  # larger ones take long
    x = cloud(6000)
    whole, other = (robust_distances(Original.of(x), seed) for seed in (0, 1))
    assert not np.array_equal(whole, other)
    assert whole == pytest.approx(other, rel=0.15)


def test_no_record_is_left_out_of_a_file_of_up_to_ten_thousand(monkeypatch):
    assert SAMPLE == 10_000
    used = []

    def counted(points, seed):
        used.append(len(points))
        return densest_half(points, seed)

    densest_half = intervals.densest_half
    monkeypatch.setattr(intervals, "densest_half", counted)
    for n in (SAMPLE, SAMPLE + 1):
        robust_distances(Original.of(cloud(n, p=1)), 0)
    assert used == [SAMPLE, SAMPLE]
    robust_distances(Original.of(cloud(3000, p=1)), 0)
    assert used[-1] == 3000


# --- the scale of the robust covariance ---


@pytest.mark.parametrize("p", [1, 2, 5, 13])
def test_consistency_factors_equal_the_twin(p):
    for share in (0.5, 0.51, 0.75, 0.975, 0.999):
        expected = naive_risk.consistency_factor(share, p)
        assert consistency_factor(share, p) == pytest.approx(expected, rel=1e-9)
    assert consistency_factor(1.0, p) == 1.0


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(1, 4), st.integers(20, 80))
def test_the_reweighted_covariance_is_its_slow_twin(seed, p, n):
    points = cloud(n, p, seed)
    half = np.random.default_rng(seed).permutation(n) < (n + p + 1) // 2
    found = reweighted_covariance(points, half)
    assert found == pytest.approx(naive_risk.reweighted_covariance(points, half), rel=1e-8)


@pytest.mark.parametrize("outliers", [0.0, 0.3])
def test_the_robust_covariance_of_normal_data_has_their_scale(outliers):
    rng = np.random.default_rng(1)
    x = rng.multivariate_normal([0, 0, 0], [[4, 1, 0], [1, 2, 0], [0, 0, 1]], 2000)
    x[: int(outliers * len(x))] += 40
    half = intervals.densest_half(x, 0)
    good = np.cov(x[int(outliers * len(x)) :], rowvar=False)
    found = np.linalg.det(reweighted_covariance(x, half)) ** (1 / 3)
    # What is left out counts as the tails of normal data, outliers too: with them the scale is too large.
    factor = consistency_factor(0.975 * (1 - outliers), 3) / consistency_factor(0.975, 3)
    assert found == pytest.approx(np.linalg.det(good) ** (1 / 3) * factor, rel=0.05)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (cloud(9), "rmdid needs at least 10 records and the data have 9; "),
        (cloud(12, p=6), "twice as many complete records as variables and the data have 12 for 6; "),
        (cloud(30, p=2) @ [[1, 0, 1], [0, 1, 1]], r"\(rank 2 of 3\), so rmdid has no robust distance; "),
        (np.column_stack([cloud(30), np.ones(30)]), r"constant variables .*\(rank 2 of 3\)"),
        (np.repeat([0.0, 1.0, 2.0], [28, 1, 1]), "column 'x1' has one value in 28 of 30 records.*; leave"),
        (np.column_stack([cloud(30, p=1), [0.0] * 24 + [*range(1, 7)]]), "column 'x2' has one value in 24"),
        (half_determined(), "in half of the 60 records some variables determine others.*; leave one"),
    ],
)
def test_data_without_a_robust_distance_are_refused(values, reason):
    with pytest.raises(NotApplicable, match=reason):
        sdc.rmdid(values, values)


def test_census_is_refused_because_one_variable_is_the_sum_of_others(census):
    with pytest.raises(NotApplicable, match="rank 12 of 13"):
        sdc.rmdid(census, census)


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.covariance", None)
    with pytest.raises(ValueError, match=r'scikit-learn; pip install "sdckit\[stats\]"'):
        sdc.rmdid(cloud(), cloud())


def test_the_sentence_tells_the_rule():
    explain = sdc.METRICS["rmdid"].explain
    x = cloud()
    near, alone = (explain(score_rmdid(pair_of(x, x), rule=rule, detail=True)) for rule in ("near", "alone"))
    assert near.startswith(
        "a masked value lies close to the original (outliers are close from farther away) "
        "for 100 of 100 records; "
    )
    assert "and no other masked record is near" in alone


# --- R's sdcMicro 5.8.1, whose search for the densest half starts at random ---

SCALE = 609.134684  # sum of all m, which is its wrisk1 where every record is at risk


@pytest.fixture(scope="session")
def firms(tarragona):
    return Original.of(tarragona)


def masked_and_expected(golden, name):
    rows = pl.read_csv(golden / "metrics.csv").filter(dataset="Tarragona", masking=name)
    masked = pl.read_csv(golden / f"Tarragona_{name}.csv", infer_schema_length=None).cast(pl.Float64)
    return masked, dict(rows.select("metric", "value").iter_rows())


MASKINGS = ["mdav_k3", "mdav_k30", "onedims_k2", "onedims_k10", "rankswap_P0.05_seed1234567"]
MASKINGS += ["rankswap_R0.95_seed1234567", "additive_50_seed1", "correlated_50_seed2", "shuffle_ds_seed4"]


@pytest.mark.parametrize("name", MASKINGS)
def test_rmdid_of_the_package(golden, firms, name):
    masked, expected = masked_and_expected(golden, name)
    theirs = {rule: expected[f"dRiskRMD_k0.01_seed1_risk{i}"] for i, rule in ((1, "near"), (2, "alone"))}
    ratio = SCALE / (0.05 * robust_distances(firms, 0).sum())
    assert ratio == pytest.approx(1, abs=0.01)
    plain = score_rmdid(pair_of(firms, masked)).parts
    assert plain == pytest.approx(theirs, abs=0.008)
    rescaled = score_rmdid(pair_of(firms, masked), k=0.01 * ratio).parts
    assert rescaled == pytest.approx(theirs, abs=0.008)
    if expected["dRiskRMD_k0.7_seed1_risk1"] == 1.0:  # all are near, so neighbours alone decide
        wide = score_rmdid(pair_of(firms, masked), k=0.7).parts
        assert wide["alone"] == pytest.approx(expected["dRiskRMD_k0.7_seed1_risk2"], abs=1e-6)
