"""Linkage risks: worked examples, groups of k, chance levels, R's numbers, known figures, sentences."""

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdckit as sdc
from linkages import ATTACKS, DIRECTIONS, NAN, all_values, masked_as, score, tied_files
from maskings import fails
from sdckit.core.checks import NotApplicable
from sdckit.metrics.pair import pair_of
from sdckit.risk import attacks, literature
from sdckit.risk.attacks import outliers
from sdckit.risk.distances import permutations
from sdckit.risk.literature import LARGEST, MatchingAttack

FOLDER = Path(os.environ.get("SDCKIT_GOLDEN") or "absent")
TO_ORIGINAL, TO_MASKED = DIRECTIONS


def linked_files():
    """Files of which R's package has record linkage, each with the distances it used."""
    found = pl.read_csv(FOLDER / "metrics.csv").filter(pl.col("metric").str.starts_with("recordLinkage"))
    names = found.select(name=pl.col("dataset") + "_" + pl.col("masking"))["name"]
    return names.unique(maintain_order=True).to_list()


FILES = linked_files() if FOLDER.is_dir() else ["Tarragona_mdav_k2"]


# --- worked examples ---


def test_dbrl_by_hand():
    x = np.array([0.0, 1.0, 3.0, 7.0])
    y = np.array([0.5, 1.0, 1.0, 8.0])  # halfway between two; found; nearer to another; found
    found = score("dbrl", x, y, per_record=True)
    assert found.records.tolist() == [0.5, 0.5, 0.5, 1.0]  # 1 and 0, shared by equal published records
    assert found.value.overall == 0.625
    assert found.parts == {"strict": 0.25, "optimistic": 0.75, "outliers": 1.0}
    back = score("dbrl", x, y, direction=TO_MASKED, per_record=True)
    assert back.records.tolist() == [1.0, 0.5, 0.5, 1.0]  # the second and third are published as one value
    assert score("dbrl", x, y, places=2, per_record=True).records.tolist() == [1.0, 0.5, 0.5, 1.0]


def test_small_and_medium_firms_of_the_handbook():
    """Eleven firms in three groups: three are found, and six with two guesses."""
    x = np.array(
        [
            [790, 710, 730, 810, 950, 510, 400, 330, 510, 760, 50],  # surface
            [55, 44, 32, 17, 3, 25, 45, 50, 5, 52, 12],  # employees
        ],
        float,
    ).T
    groups = np.array([0, 0, 0, 1, 1, 2, 2, 2, 1, 0, 2])
    y = np.array([x[groups == group].mean(0) for group in groups])
    scaled = (x - x.mean(0)) / x.std(0)
    within = ((x - y) / x.std(0)) ** 2
    assert within.sum() / (scaled**2).sum() == pytest.approx(0.3402, abs=5e-5)  # as printed there
    assert sdc.dbrl(x, y) == pytest.approx(3 / 11)
    assert sdc.dbrl(x, y, places=2) == pytest.approx(6 / 11)
    assert sdc.sdid(x, y, k=0.5, scale="masked") == pytest.approx(2 / 11)


def test_the_window_by_hand():
    found = score("window", [1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 3.0], window=1, per_record=True)
    assert found.records == pytest.approx([1 / 3, 1 / 2, 1 / 2, 1 / 3])
    exact = score("window", [1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 3.0])
    assert exact.value.overall == 0.0


def test_outliers_are_those_farthest_from_the_centre():
    x = np.column_stack([np.arange(100.0), np.zeros(100)])
    x[40, 1] = 1e6
    pair = pair_of(x, x)
    assert np.flatnonzero(outliers(pair)).tolist() == [0, 40, 99]  # two of a hundred, and one that ties
    assert np.flatnonzero(outliers(pair, 0.001)).tolist() == [40]
    assert outliers(pair, 1.0).all()
    y = x[::-1].copy()
    y[40], y[59] = x[40], x[59]
    assert sdc.linkage_outliers(x, y, share=0.01) == 1.0
    assert score("dbrl", x, y).parts["outliers"] == pytest.approx(1 / 3)


# --- microaggregation ---


def check_groups(x, y, groups, k):
    """No attack finds more than one record of each group; two guesses find two."""
    n, limit = len(x), groups / len(x) + 1e-9
    assert limit <= 1 / k + 2e-9
    values = all_values(x, y, attacks=("dbrl", "dbrl_mahalanobis", "dbrl_rank", "matching", "linkage"))
    assert max(values.values()) <= 1 / k + 1e-9
    for name, direction in ((name, d) for name in ("dbrl", "dbrl_mahalanobis") for d in DIRECTIONS):
        assert values[name, direction] <= limit
        twice = score(name, x, y, direction=direction, places=2).value.overall
        assert twice <= 2 * limit
    for width in (0, 1, n):
        for direction in DIRECTIONS:
            assert score("window", x, y, window=width, direction=direction).value.overall <= 1 / k + 1e-9


@given(tied_files(least=6, most=60), st.integers(2, 6))
@settings(max_examples=30)
def test_microaggregation_keeps_every_attack_below_one_in_k(files, k):
    x = files[0]
    y = np.asarray(sdc.METHODS["mdav"].function(x, k=k))
    groups = max(len(x) // k, 1)
    check_groups(x, y, groups, min(k, len(x)))


@given(st.integers(0, 999), st.integers(2, 5))
@settings(max_examples=40)
def test_microaggregation_of_untied_data_keeps_every_attack_below_one_in_k(seed, k):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(int(rng.integers(6, 80)), int(rng.integers(1, 5)))) + rng.normal()
    check_groups(x, np.asarray(sdc.METHODS["mdav"].function(x, k=k)), len(x) // k, k)


def test_the_check_sees_credit_by_the_order_of_rows(monkeypatch):
    def as_solved(self, truth):
        hit = (self.matched.links == truth).astype(float)
        return literature.Credits(hit, hit, hit)

    x = np.random.default_rng(0).normal(size=(60, 2))
    arguments = (x, np.asarray(sdc.METHODS["mdav"].function(x, k=3)), 20, 3)
    check_groups(*arguments)
    monkeypatch.setattr(MatchingAttack, "credits", as_solved)
    assert fails(check_groups, *arguments)


def test_the_check_sees_a_first_of_equals(monkeypatch):
    def first(self, truth):
        found = kept(self, truth)
        return found._replace(expected=found.optimistic)

    kept = literature.NearestAttack.credits
    x = np.random.default_rng(0).normal(size=(60, 2))
    monkeypatch.setattr(literature.NearestAttack, "credits", first)
    assert fails(check_groups, x, np.asarray(sdc.METHODS["mdav"].function(x, k=3)), 20, 3)


# --- chance ---


@pytest.mark.parametrize("name", [*ATTACKS, "linkage"])
def test_permuted_records_have_the_chance_level(name):
    rng = np.random.default_rng(1)
    n = 300
    x = rng.normal(size=(n, 3))
    y = (x + rng.normal(0, 0.1, x.shape))[rng.permutation(n)]
    for direction in DIRECTIONS:
        window = 30 if name == "window" else None
        found = score(name, x, y, direction=direction, window=window, detail=True)
        assert found.value.overall <= 0.03
        if name not in ("linkage", "window"):
            assert found.random.overall == pytest.approx(1 / n, abs=1.5 / n)
        near = x + rng.normal(0, 0.01, x.shape)
        real = score(name, x, near, direction=direction, window=window, detail=True)
        assert real.value.overall > 20 * real.random.overall


def test_the_chance_level_is_that_of_permuted_rows():
    rng = np.random.default_rng(0)
    x = np.maximum(rng.normal(size=(80, 2)).round(1), 0.0)
    y = masked_as("integers", x, rng)
    for name in ATTACKS:
        for direction in DIRECTIONS:
            level = score(name, x, y, direction=direction, window=5, detail=True).random.overall
            orders = [np.argsort(rows) if direction == TO_ORIGINAL else rows for rows in permutations(80)]
            draws = [score(name, x, y[rows], direction=direction, window=5) for rows in orders]
            assert np.mean([draw.value.overall for draw in draws]) == pytest.approx(level, abs=1e-6), name


def test_ties_raise_no_chance_level_above_what_permutations_give():
    x = np.repeat([0.0, 1.0, 2.0], 20)
    found = score("dbrl", x, x, detail=True)
    assert found.value.overall == pytest.approx(3 / 60)
    assert (found.tie_low.overall, found.tie_high.overall) == (0.0, 1.0)
    assert found.random.overall == pytest.approx(1 / 60, abs=0.01)


# --- R's numbers ---


@pytest.fixture(scope="module")
def originals(tarragona, census):
    return {"Tarragona": sdc.Microdata(tarragona).original, "Census": sdc.Microdata(census).original}


@pytest.mark.parametrize("name", FILES)
def test_matching_has_the_mean_distances_of_the_package(golden, originals, name):
    dataset, masking = name.split("_", 1)
    y = pl.read_csv(golden / f"{name}.csv", infer_schema_length=None).cast(pl.Float64)
    rows = pl.read_csv(golden / "metrics.csv").filter(dataset=dataset, masking=masking)
    expected = dict(rows.select("metric", "value").iter_rows())
    compared = 0
    for distance, word in (("gower", "gower"), ("raw", "euclidean")):
        key = f"recordLinkage_{word}_mean_distance"
        if key in expected:
            found = score("matching", originals[dataset], y, distance=distance)
            assert found.parts["mean_distance"] == pytest.approx(expected[key], rel=1e-9)
            compared += 1
    assert compared


def test_matching_shares_what_the_package_credits_to_row_order(golden, originals):
    y = pl.read_csv(golden / "Tarragona_mdav_k2.csv", infer_schema_length=None).cast(pl.Float64)
    found = score("matching", originals["Tarragona"], y, distance="gower")
    assert found.value.overall == pytest.approx(0.499, abs=0.001)  # R prints 0.896
    assert found.parts["optimistic"] > 0.99


# --- known figures of both data sets ---


def masked(x, method, **options):
    found = sdc.METHODS[method].function(x.values, rng=np.random.default_rng(1), **options)
    return pl.DataFrame(dict(zip(x.columns, found.T, strict=True)))


def test_rank_swapping_of_firms_is_read_by_ranks(originals):
    x = originals["Tarragona"]
    options = {"p": 0.18, "tails": 0.0, "bound": "inclusive", "start": "lowest"}
    y = masked(x, "rank_swap", **options)
    window = sdc.METHODS["rank_swap"].window(options, x.values)
    found = score("linkage", x, y, window=window)
    assert found.parts["dbrl"] == pytest.approx(0.90, abs=0.04)  # nearest within the window
    assert found.parts["guess"] == pytest.approx(0.91, abs=0.04)
    assert found.parts["folds"] == found.value.overall >= 0.95
    assert found.attack.name == "folds"
    assert score("matching", x, y, window=window).value.overall == pytest.approx(0.97, abs=0.03)
    assert score("window", x, y, window=window).value.overall == pytest.approx(0.89, abs=0.04)
    unknown = score("linkage", x, y)
    assert unknown.parts["dbrl"] == pytest.approx(0.23, abs=0.05)
    assert score("dbrl_rank", x, y).value.overall == pytest.approx(0.79, abs=0.04)
    assert unknown.parts["folds"] == unknown.value.overall >= 0.79
    assert set(unknown.parts) == {"dbrl", "guess", "folds"}


def test_noise_does_not_hide_the_largest_firms(originals):
    x = originals["Tarragona"]
    y = masked(x, "noise", percent=165)
    assert score("dbrl", x, y).value.overall == pytest.approx(0.06, abs=0.03)
    assert score("linkage", x, y).value.overall < 0.1
    assert sdc.linkage(x, y) > 0.9  # its rows are sorted by a variable, nearly
    found = score("linkage_outliers", x, y, per_record=True)
    assert found.value.overall >= 0.9
    assert (~np.isnan(found.records)).sum() == 17


def test_correlated_noise_is_read_in_the_metric_of_the_release(originals):
    x = originals["Census"]
    y = masked(x, "correlated_noise", percent=50)
    assert sdc.dbrl(x, y) == pytest.approx(0.25, abs=0.05)
    assert sdc.dbrl_mahalanobis(x, y) == pytest.approx(0.56, abs=0.05)


def test_directions_differ(originals):
    x = originals["Census"]
    y = masked(x, "noise", percent=50)
    assert sdc.dbrl(x, y) == pytest.approx(0.40, abs=0.04)
    assert sdc.dbrl(x, y, direction=TO_MASKED) == pytest.approx(0.26, abs=0.04)


# --- limits, sentences ---


def test_matching_refuses_large_files_and_linkage_does_without():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(LARGEST + 1, 2))
    y = x + rng.normal(0, 0.01, x.shape)
    with pytest.raises(NotApplicable, match="at most 2000 records and the data have 2001; use dbrl"):
        sdc.matching(x, y)
    found = score("linkage", x, y)
    assert set(found.parts) == {"dbrl", "guess", "folds"}
    assert found.value.overall == max(found.parts.values())
    assert sdc.evaluate(x, y, metrics=["linkage"]).parts["linkage"] == found.parts


def test_linkage_is_the_worst_attack_and_names_it():
    rng = np.random.default_rng(0)
    x = np.exp(2 * rng.normal(size=(200, 3)))
    y = np.column_stack([np.sort(column)[np.argsort(np.argsort(column))] ** 3 for column in x.T])
    for name in ("linkage", "linkage_outliers"):
        found = score(name, x, y, detail=True, per_record=True)
        worst = max(found.parts, key=found.parts.get)
        assert found.attack.name == worst
        assert found.value.overall == found.parts[worst]
        assert np.nanmean(found.records) == pytest.approx(found.value.overall)
        assert f"the worst of 3 attacks ({worst})" in sdc.METRICS[name].explain(found)


@pytest.mark.parametrize("name", [*ATTACKS, "linkage", "linkage_outliers"])
def test_sentences_say_who_looks_up_whom(name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = x + rng.normal(0, 0.3, x.shape)
    forward, back = (
        sdc.METRICS[name].explain(score(name, x, y, direction=direction, window=6, detail=True))
        for direction in DIRECTIONS
    )
    assert "someone who holds the original file" in forward
    assert "someone who knows a record's original values" in back
    assert "among the published ones" not in forward
    assert "for each published one" not in back
    for sentence in (forward, back):
        assert "of 100 cases" in sentence
        assert "; guessing among the records that fit would give " in sentence
        assert "nan" not in sentence
        assert not sentence.endswith(".")
    if name in attacks.ATTACKS:
        does = attacks.ATTACKS[name].does.format(each=" for each published one")
        assert does in forward
    if name == "linkage_outliers":
        assert "among the records farthest from the centre" in forward


def test_a_sentence_about_nothing():
    x = np.random.default_rng(0).normal(size=(5, 2))
    found = score("dbrl", x, x * NAN, detail=True)
    assert math.isnan(found.value.overall)
    assert sdc.METRICS["dbrl"].explain(found) == "there are no records to compare"
    assert score("linkage", x, x * NAN).value.overall == 1 / 5  # any of five is as good a guess


@pytest.mark.parametrize(
    ("value", "words"), [(1.0, "100"), (0.9983, "99.8"), (0.31, "31"), (0.0512, "5.1"), (0.0, "0")]
)
def test_shares_are_printed_in_hundredths(value, words):
    x = np.arange(5.0)
    found = score("dbrl", x, x)
    changed = replace(found, value=replace(found.value, overall=value))
    assert attacks.explain_linkage(changed).endswith(f"is right in {words} of 100 cases")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("dbrl", {"direction": "forward"}),
        ("dbrl", {"places": 0}),
        ("dbrl_rank", {"places": 1.5}),
        ("window", {"within": 1.5}),
        ("matching", {"distance": "euclid"}),
        ("linkage_outliers", {"share": 0}),
    ],
)
def test_options_are_checked(name, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        getattr(sdc, name)([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], **wrong)


def test_the_tree_of_the_original_serves_all_maskings():
    rng = np.random.default_rng(0)
    x = sdc.Microdata(rng.normal(size=(200, 3))).original
    for seed in range(3):
        y = x.values + np.random.default_rng(seed).normal(0, 0.5, x.values.shape)
        expected = all_values(x.values.copy(), y)
        assert all_values(x, y) == expected
    assert sum("targets" in name for name in x.cache) == 2  # of values, and of ranks
