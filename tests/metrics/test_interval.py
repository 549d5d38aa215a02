"""SDID and RID: tables worked by hand, slow twins, R's numbers, the level of unrelated records."""

import math
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_risk
import sdckit as sdc
from sdckit.metrics.pair import pair_of
from sdckit.risk.distances import MOST, permutations
from sdckit.risk.intervals import mean_level, score_rid, score_sdid, shuffled_pairs

FOLDER = Path(os.environ.get("SDCKIT_GOLDEN") or "absent")
FILES = sorted(path.stem for path in FOLDER.glob("*_*.csv")) or ["Tarragona_mdav_k3"]
NAN = float("nan")


@st.composite
def tied_files(draw, *, missing=False):
    """Two files of few distinct values, so that ties abound, masked values beyond the originals."""
    n, p = draw(st.integers(2, 40)), draw(st.integers(1, 3))
    cells = st.integers(0, draw(st.sampled_from([1, 4, 30])))
    if missing:
        cells = cells | st.just(NAN)
    rows = st.lists(cells, min_size=n * p, max_size=n * p)
    x, y = (np.array(draw(rows), float).reshape(n, p) for _ in range(2))
    return x, y * draw(st.sampled_from([1.0, 1.05, 2.0]))


def same(found, expected):
    return found == pytest.approx(expected, abs=1e-12, nan_ok=True)


# --- the level of unrelated records ---


def test_permutations_are_the_same_at_every_call_and_fewer_for_long_files():
    first, again = list(permutations(50)), list(permutations(50))
    assert len(first) == MOST
    assert np.array_equal(first, again)
    assert not np.array_equal(first[0], first[1])
    assert all(sorted(rows) == list(range(50)) for rows in first)
    assert len(list(permutations(100_000))) == 2


def test_a_level_is_the_mean_over_the_permutations_that_have_one():
    pair = pair_of([[1.0, NAN], [2.0, 4.0]], [[1.0, 4.0], [2.0, NAN]])
    levels = [score_sdid(other).value for other in shuffled_pairs(pair)]
    kept = [level.overall for level in levels]
    assert set(kept) == {0.0, 1.0}  # either order comes up
    known = [level.variables[1] for level in levels if not math.isnan(level.variables[1])]
    assert set(known) == {1.0}
    found = mean_level(levels)
    assert found.overall == pytest.approx(np.mean(kept))
    assert found.variables[1] == 1.0


def correlated(n=400, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 1, (n, 1)) + rng.normal(0, 1, (n, 3))
    values[:, 2] = np.maximum(values[:, 2], 0).round(1)  # half of it zeros
    return values


@pytest.mark.parametrize(
    "score", [score_rid, score_sdid, lambda pair, **given: score_sdid(pair, k=0.5, level="cells", **given)]
)
def test_unrelated_records_score_the_level(score):
    x = correlated()
    level = score(pair_of(x, x), detail=True).random
    rng = np.random.default_rng(99)
    draws = [score(pair_of(x, x[rng.permutation(len(x))])).value for _ in range(40)]
    means = mean_level(draws)
    spread = np.std([draw.overall for draw in draws], ddof=1)
    noise = spread * math.sqrt(1 / 40 + 1 / MOST)
    assert abs(means.overall - level.overall) <= 4 * noise
    assert means.variables == pytest.approx(level.variables, abs=0.02)
    assert score(pair_of(x, x)).value.overall == 1.0 > 2 * level.overall


# --- SDID ---


def test_sdid_by_hand():
    x = np.array([[0.0, 10.0], [2.0, 20.0], [4.0, 30.0]])  # standard deviations 2 and 10
    y = np.array([[0.05, 10.5], [2.05, 20.6], [4.2, 29.5]])
    score = score_sdid(pair_of(x, y), per_record=True)
    assert score.value.overall == pytest.approx(1 / 3)
    assert score.value.variables == pytest.approx([2 / 3, 2 / 3])
    assert score.parts == pytest.approx({"records": 1 / 3, "cells": 4 / 6})
    assert score.records.tolist() == [1.0, 0.0, 0.0]
    cells = score_sdid(pair_of(x, y), level="cells", per_record=True)
    assert cells.value.overall == pytest.approx(4 / 6)
    assert cells.records.tolist() == [1.0, 0.5, 0.5]
    assert sdc.sdid(x, y, k=0.11) == 1.0
    assert sdc.sdid(x, y, k=0) == 0.0


def test_sdid_with_the_masked_scale_grows_with_the_noise():
    x = np.random.default_rng(0).normal(size=(2000, 1))
    y = x + np.random.default_rng(1).normal(0, 3, x.shape)
    assert sdc.sdid(x, y, scale="masked") > 2 * sdc.sdid(x, y)


def test_a_suppressed_cell_is_never_inside():
    x = [[1.0, 1.0], [2.0, 2.0], [3.0, 5.0], [4.0, 4.0]]
    y = [[NAN, NAN], [2.0, NAN], [NAN, 9.0], [4.0, 4.0]]
    score = score_sdid(pair_of(x, y), detail=True, per_record=True)
    assert score.records.tolist() == pytest.approx([NAN, 1.0, 0.0, 1.0], nan_ok=True)
    assert score.value.overall == pytest.approx(2 / 3)
    assert score.value.variables.tolist() == [1.0, 0.5]
    assert score.used.tolist() == [2, 2]
    assert score.notes == ("sdid judges records with suppressed cells by the cells they have left",)


def test_sdid_of_a_constant_or_enormous_column():
    assert sdc.sdid([5.0, 5.0, 5.0], [5.0, 5.0, 5.1]) == pytest.approx(2 / 3)
    assert sdc.sdid([1e308, -1e308, 0.0], [-1e308, -1e308, 0.0]) == pytest.approx(2 / 3)


@given(tied_files(missing=True), st.sampled_from([0.0, 0.05, 0.5]))
def test_sdid_is_its_slow_twin(files, k):
    for scale in ("original", "masked"):
        for level in ("records", "cells"):
            found = score_sdid(pair_of(*files), k=k, scale=scale, level=level, per_record=True)
            assert same(found.value.overall, naive_risk.sdid(*files, k=k, scale=scale, level=level))
            known = found.records[~np.isnan(found.records)]
            if level == "records" and known.size:
                assert known.mean() == pytest.approx(found.value.overall)


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_sdid_of_the_package(golden, tarragona, census, name):
    dataset, masking = name.split("_", 1)
    x = {"Tarragona": tarragona, "Census": census}[dataset]
    y = pl.read_csv(golden / f"{name}.csv", infer_schema_length=None).cast(pl.Float64)
    rows = pl.read_csv(golden / "metrics.csv").filter(dataset=dataset, masking=masking)
    expected = dict(rows.select("metric", "value").iter_rows())
    for k in ("0.01", "0.05", "0.1"):
        found = sdc.sdid(x, y, k=float(k), scale="masked")
        assert found == pytest.approx(expected[f"dRisk_k{k}"], abs=1e-12)


def test_sdid_refuses_what_it_does_not_know():
    for wrong in ({"k": -1}, {"scale": "both"}, {"level": "cell"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            sdc.sdid([1.0, 2.0], [1.0, 2.0], **wrong)


def test_sdid_tells_an_attackers_sentence():
    x = np.arange(100.0).reshape(50, 2)
    y = x + np.where(np.arange(50) < 6, 0.0, 40.0)[:, None]
    score = score_sdid(pair_of(x, y), detail=True)
    sentence = sdc.METRICS["sdid"].explain(score)
    assert sentence.startswith(
        "the masked record lies within 5% of a standard deviation of the original in every variable "
        "for 12 of 100 records; with unrelated records it would be "
    )
    assert "cells" in sdc.METRICS["sdid"].explain(score_sdid(pair_of(x, y), level="cells"))


# --- RID ---


def test_rid_of_the_worked_example():
    x = np.arange(1.0, 101.0)
    score = score_rid(pair_of(x, np.where(x <= 50, x + 4.5, x)), detail=True, per_record=True)
    assert score.value.overall == pytest.approx(0.76)
    assert score.parts["5%"] == pytest.approx(0.91)
    assert score.value.overall == pytest.approx(np.mean(list(score.parts.values())))
    assert score.records.mean() == pytest.approx(0.76)
    assert score.random.overall == pytest.approx(0.11, abs=0.01)
    assert score.tie_low is None


def test_the_half_width_is_rounded_to_the_nearest_place_and_halves_up():
    x = np.arange(50.0)
    y = x.copy()
    y[[10, 11]] = y[[11, 10]]  # found from a half width of one place on
    widths = [naive_risk.half_width(percent, 50) for percent in (1, 2, 3)]
    assert widths == [1, 1, 2]
    full, half = (score_rid(pair_of(x, y), half_width=rule).parts for rule in ("full", "half"))
    assert full["1%"] == 1.0
    assert (half["1%"], half["2%"]) == (pytest.approx(48 / 50), 1.0)  # 0.25 and 0.5 places


@pytest.mark.parametrize(
    ("x", "y"),
    [([1, 2, 3, 4, 5, 6], [2, 2, 2, 5, 5, 7]), ([0, 0, 0, 1, 5, 9], [0, 0, 1, 0, 0, 9])],
)
def test_ties_are_guessed_over_all_orders(x, y):
    score = score_rid(pair_of(x, y), detail=True)
    by_width = [naive_risk.rid_over_orders(x, y, naive_risk.half_width(p, 6)) for p in range(1, 11)]
    low, mean, high = np.mean(by_width, axis=0)
    assert score.value.overall == pytest.approx(mean)
    assert low < mean < high
    assert (score.tie_low.overall, score.tie_high.overall) == pytest.approx((low, high))


def test_a_frequent_value_raises_the_level_of_unrelated_records():
    x = np.concatenate([np.zeros(600), np.arange(1.0, 401.0)])
    level = score_rid(pair_of(x, x), detail=True).random.overall
    assert level == pytest.approx(0.43, abs=0.01)  # 0.11 without ties


def test_values_beyond_all_masked_ones_are_not_found():
    assert sdc.rid(np.arange(20.0), np.full(20, 30.0)) == 0.0
    assert sdc.rid(np.arange(20.0), np.full(20, -1.0)) == 0.0


@given(tied_files(missing=True), st.sampled_from(["full", "half"]))
def test_rid_is_its_slow_twin(files, rule):
    score = score_rid(pair_of(*files), half_width=rule, detail=True, per_record=True)
    assert same(score.value.overall, naive_risk.rid(*files, hundred={"full": 100, "half": 200}[rule]))
    if score.tie_low is not None:
        assert score.tie_low.overall <= score.value.overall <= score.tie_high.overall
    assert ((score.records >= 0) & (score.records <= 1) | np.isnan(score.records)).all()


@given(tied_files(), st.randoms(use_true_random=False))
def test_risks_lie_in_bounds_and_do_not_depend_on_the_order_of_records(files, random):
    x, y = files
    rows = random.sample(range(len(x)), len(x))
    for metric in (sdc.sdid, sdc.rid):
        found = metric(x, y)
        assert 0 <= found <= 1
        assert same(metric(x[rows], y[rows]), found)
        assert metric(x, x) == 1.0


def test_rid_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="half_width 'whole'"):
        sdc.rid([1.0, 2.0], [1.0, 2.0], half_width="whole")


def test_risks_per_variable_and_notes_reach_the_evaluation():
    x = correlated()
    result = sdc.evaluate(x, x[::-1], metrics=["sdid", "rid"], per_record=True)
    assert result.table.filter(metric="rid")["random"].null_count() == 0
    assert result.records["rid"].mean() == pytest.approx(result["rid"])
    assert list(result.parts["rid"]) == [f"{percent}%" for percent in range(1, 11)]
    assert "; with unrelated records it would be " in repr(result)
    assert "1% to 10% of the ranks" in result.meaning["rid"]
