"""Estimates of two files: against the slow twin, and what the table and the summary say."""

import math

import numpy as np
import polars as pl
import pytest

import naive_estimates as naive
import sdckit as sdc
from sdckit.estimation.estimators import Ordering
from sdckit.estimation.survey_file import Design, Domains, Grouping
from surveys import DESIGN, survey

FUNCTIONS = {
    "total(income) by region": (naive.total, "income"),
    "mean(income) by region": (naive.mean, "income"),
    "ratio(income, members) by region": (naive.ratio, "income", "members"),
    "correlation(income, members) by region": (naive.correlation, "income", "members"),
    "gini(income) by region": (naive.gini, "income"),
}


@pytest.fixture(scope="module")
def data():
    """A part of the survey, with records of weight 0."""
    table = pl.DataFrame(survey(), nan_to_null=True)[::4]
    return table.with_columns(weight=pl.when(pl.int_range(pl.len()) % 11 == 3).then(0.0).otherwise("weight"))


def rows_of(found):
    return {(row["estimate"], row["domain"]): row for row in found.table.iter_rows(named=True)}


def test_linearised_errors_are_those_of_the_twin(data):
    rows = rows_of(sdc.estimates(data, data, FUNCTIONS, **DESIGN))
    columns = data.to_dict(as_series=False)
    units = list(zip(columns["stratum"], columns["house"], strict=True))
    for text, (function, *names) in FUNCTIONS.items():
        for region in ("north", "south", "west"):
            inside = [one == region for one in columns["region"]]
            value, error = naive.linearised(
                function,
                inside,
                columns["weight"],
                columns["stratum"],
                units,
                *(columns[name] for name in names),
            )
            assert rows[text, region]["original"] == pytest.approx(value, rel=1e-10)
            assert rows[text, region]["se_original"] == pytest.approx(error, rel=1e-5)


@pytest.mark.parametrize("level", [0.02, 0.3, 0.5, 0.8])
def test_quantiles_and_their_intervals_are_those_of_the_twin(data, level):
    text = f"quantile(members, {level}) by region"  # members have many ties
    rows = rows_of(sdc.estimates(data, data, text, **DESIGN))
    columns = data.to_dict(as_series=False)
    units = list(zip(columns["stratum"], columns["house"], strict=True))
    for region in ("north", "south", "west"):
        inside = [one == region for one in columns["region"]]
        expected = naive.woodruff(
            level, inside, columns["weight"], columns["stratum"], units, columns["members"]
        )
        row = rows[text, region]
        found = row["original"], row["se_original"], row["low_original"], row["high_original"]
        assert found == pytest.approx(expected, rel=1e-8)
        assert (row["se_original"] is None) == ("beyond the data" in (row["reason"] or ""))


def test_a_share_is_the_mean_of_0_and_1_and_leaves_missing_cells_out(data):
    texts = ["share(spending > 40)", "mean(above)", "share(region = 'west')", "share(income < spending)"]
    more = data.with_columns(above=pl.col("spending") > 40)
    rows = rows_of(sdc.estimates(more, more, texts, weights="weight"))
    share, above, west, less = (rows[text, "all"] for text in texts)
    assert {**share, "estimate": ""} == {**above, "estimate": ""}
    assert share["records_original"] == data["spending"].count() < data.height
    weights = data["weight"]
    assert west["original"] == pytest.approx(weights.filter(data["region"] == "west").sum() / weights.sum())
    both = data.filter(pl.col("spending").is_not_null())
    expected = both.filter(pl.col("income") < pl.col("spending"))["weight"].sum() / both["weight"].sum()
    assert less["original"] == pytest.approx(expected)


def test_the_same_file_loses_nothing_in_any_order_of_rows_and_any_type(data):
    texts = [*FUNCTIONS, "median(spending) by region", "model: income ~ C(members) + region"]
    other = data.sample(fraction=1.0, shuffle=True, seed=1).with_columns(pl.col("members").cast(pl.Float64))
    for masked in (other, other.to_pandas(), other.to_arrow()):
        found = sdc.estimates(data, masked, texts, **DESIGN)
        assert found.table["overlap"].to_numpy() == pytest.approx(1.0)
        assert found.table["change"].to_numpy() == pytest.approx(0.0, abs=1e-8)
        assert set(found.table["sign"]) == {"kept"}
        assert found.summary["outside_1_se"] == found.summary["overlap_below_half"] == 0


def test_prepared_data_bring_their_roles(data):
    roles = {"weights": "weight", "unit": "house", "na": -1}
    positive = data.filter(pl.col("weight") > 0)[["income", "weight", "house"]]
    prepared = sdc.Microdata(positive, columns=["income"], untouched="weight", **roles)
    expected = sdc.estimates(positive, positive, "total(income)", **roles)
    assert sdc.estimates(prepared, positive, "total(income)").table.equals(expected.table)
    with pytest.raises(TypeError, match="states unit; leave unit out"):
        sdc.estimates(prepared, positive, "total(income)", unit="income")
    numbers = sdc.Microdata(positive[["income"]], weights=positive["weight"].to_numpy())
    with pytest.raises(ValueError, match="pass weights= again"):
        sdc.estimates(numbers, positive, "total(income)")


def test_what_is_said_of_a_change():
    original = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, -1.0, 3.0], "g": [1, 1, 1, 1, 2, 2]})
    masked = original.with_columns(
        x=pl.Series([2.0, 2.0, 3.0, 4.0, -3.0, -1.0]), g=pl.col("g").cast(pl.String)
    )
    found = sdc.estimates(original, masked, "mean(x)", by="g")
    first, second = found.table.rows(named=True)
    assert (first["domain"], second["domain"]) == ("1", "2")
    assert (first["original"], first["masked"], first["change"]) == pytest.approx((2.5, 2.75, 10.0))
    assert first["change_in_se"] == pytest.approx(0.25 / first["se_original"])
    ends = [(first[f"low_{which}"], first[f"high_{which}"]) for which in ("original", "masked")]
    assert first["overlap"] == pytest.approx(naive.overlap(*ends))
    assert (first["sign"], first["significance"]) == ("kept", "kept")
    assert (second["sign"], second["significance"]) == ("changed", "gained")
    summary = found.summary
    assert summary["worst"] == "mean(x) by g, 2"
    assert summary["worst_overlap"] == min(first["overlap"], second["overlap"])
    assert summary["sign_changed"] == summary["significance_gained"] == 1
    assert summary["outside_1_se"] == np.mean([abs(row["change_in_se"]) > 1 for row in (first, second)])
    assert "mean(x) by g, 2: 1.000 -> -2.000, -300.00 %" in repr(found)


def test_rows_without_a_value_say_why():
    original = pl.DataFrame(
        {"x": [1.0, 2.0, 5.0, 7.0, None], "g": ["a", "a", "b", "c", "d"], "w": [1, 1, 1, 0, 1]}
    )
    masked = original.filter(pl.col("g") != "a").with_columns(g=pl.col("g").replace("c", "e"))
    rows = rows_of(sdc.estimates(original, masked, "mean(x)", by="g", weights="w"))
    reasons = {domain: row["reason"] for (_, domain), row in rows.items()}
    assert reasons == {
        "a": "masked: no such domain",
        "b": "one record, so no standard error",
        "c": "original: all weights are 0; masked: no such domain",
        "d": "no record has a value",
        "e": "original: no such domain; masked: all weights are 0",
    }
    assert rows["mean(x) by g", "a"]["overlap"] == 0  # the masked file has lost the estimate
    assert rows["mean(x) by g", "b"]["original"] == 5
    assert rows["mean(x) by g", "b"]["overlap"] is None


def test_a_constant_column_a_zero_denominator_and_a_lonely_unit_say_why():
    data = pl.DataFrame({"x": [1.0, 2.0, 3.0], "zero": [0.0, 0.0, 0.0], "s": ["a", "a", "b"]})
    texts = ["correlation(x, zero)", "ratio(x, zero)", "gini(zero)"]
    rows = rows_of(sdc.estimates(data, data, texts))
    assert [rows[text, "all"]["reason"] for text in texts] == [
        "a column is constant",
        "the denominator is 0",
        "the total is not above 0",
    ]
    (row,) = sdc.estimates(data, data, "mean(x)", strata="s").table.rows(named=True)
    assert (row["original"], row["se_original"]) == (2.0, None)
    assert row["reason"] == "a stratum has one unit, so no standard error"


def test_replications_show_the_spread_and_an_interval_that_knows_of_it():
    rng = np.random.default_rng(3)
    original = pl.DataFrame({"x": rng.normal(10, 2, 200)})
    maskings = [original.with_columns(x=pl.col("x") + rng.normal(0.2, 3, 200)) for _ in range(6)]
    found = sdc.estimates(original, maskings[0], "mean(x)", replications=maskings[1:])
    (row,) = found.table.rows(named=True)
    means = np.array([one["x"].mean() for one in maskings])
    assert row["spread"] == pytest.approx(means.std(ddof=1))
    squares = row["se_original"] ** 2 + np.mean((means - original["x"].mean()) ** 2)
    assert row["se_inflated"] == pytest.approx(math.sqrt(squares))
    assert row["high_inflated"] - row["masked"] == pytest.approx(naive.FACTOR * row["se_inflated"])
    alone = sdc.estimates(original, maskings[0], "mean(x)").table
    assert alone["se_inflated"].to_list() == [None]


def test_quantiles_of_equal_weights_are_those_of_the_twin_in_any_order():
    rng = np.random.default_rng(5)
    domains = rng.integers(-1, 4, 200)
    domains[domains == 2] = 3  # one domain is empty
    values = rng.integers(0, 30, 200).astype(float)
    grouping = Grouping(Domains(list("abcd"), domains), Design(200, None, None))
    plain, weighted = (Ordering(grouping, weights, values) for weights in (None, np.ones(200)))
    for share in (*rng.random(40), 0.0, 0.5, 1.0, 0.5, 0.25):
        found = plain.quantiles(np.full(4, share))
        own = [values[domains == domain].tolist() for domain in range(4)]
        expected = [naive.quantile([1.0] * len(one), one, share) if one else math.nan for one in own]
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(weighted.quantiles(np.full(4, share)), expected)


@pytest.mark.parametrize(
    ("population", "said"),
    [
        ([9, 9, 9, 8], "the population differs between records of a stratum; "),
        ([3, 3, 3, 3], "a stratum has 4 units and a population of 3; "),
        ([9, None, 9, 9], "the population 'size' is missing in 1 record of the original data; "),
    ],
)
def test_a_population_that_cannot_be_is_refused(population, said):
    data = pl.DataFrame({"x": [1.0, 2.0, 4.0, 7.0], "size": population})
    with pytest.raises(ValueError, match=said):
        sdc.estimates(data, data, "mean(x)", population="size")


def test_a_census_has_no_sampling_error():
    data = pl.DataFrame({"x": [1.0, 2.0, 4.0, 7.0], "size": [4, 4, 4, 4]})
    assert sdc.estimates(data, data, "total(x)", population="size").table["se_original"].to_list() == [0.0]


def test_missing_codes_name_no_domain_and_no_class_but_a_unit():
    coded = pl.DataFrame({"y": [1.0, 2.0, 4.0, 7.0] * 5, "group": [0, 1, 1, 2] * 5})
    texts = ["mean(y) by group", "model: y ~ C(group)"]
    blank = coded.with_columns(pl.col("group").replace(0, None))
    wanted = sdc.estimates(blank, blank, texts).table
    assert sdc.estimates(coded, coded, texts, na=0).table.equals(wanted)
    assert wanted["domain"].to_list()[:2] == ["1", "2"]
    found = sdc.estimates(coded, coded, "mean(y)", unit="group", na=0).table
    assert found["records_original"].to_list() == [20]


def test_the_order_of_rows_costs_an_estimate_without_an_error_nothing():
    rng = np.random.default_rng(3)
    a, b = rng.lognormal(3, 1, (2, 90)).round(1)
    group = np.arange(90) % 9
    columns = {"a": a, "b": b, "sum": (a + b).round(1), "group": group, "same": 0.1 + group / 7}
    data = pl.DataFrame(columns | {"weight": rng.uniform(1, 3, 90)})
    texts = ["mean(same) by group", "ratio(sum, sum)", "model: sum ~ 0 + a + b"]
    found = sdc.estimates(data, data.reverse(), texts, weights="weight").table
    assert found["overlap"].to_list() == [1.0] * found.height
    assert found["change_in_se"].abs().max() == 0
