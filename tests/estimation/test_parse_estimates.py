"""Texts of estimates: what they mean, and one clear line for those that cannot be read."""

import polars as pl
import pytest

import sdckit as sdc
from cases import each
from sdckit.estimation.parse import parse_estimate, parse_estimates

DATA = pl.DataFrame({"turnover": [1.0, 2.0, 4.0, 3.0], "sector": ["a", "b", "a", "b"], "y": [0, 1, 1, 0]})
NORMAL = {
    "total( turnover )by sector": "total(turnover) by sector",
    "median(`net pay`) by sector,  size": "median(`net pay`) by sector, size",
    "quantile(a.b, .90)": "quantile(a.b, 0.9)",
    "share(profit>-5)": "share(profit > -5)",
    "share(a≥b)": "share(a >= b)",
    'share(sector == "it\'s")': "share(sector = 'it''s')",
    "ratio(wages,employees)": "ratio(wages, employees)",
    "model:log( profit )~log(turnover)+sector": "model: log(profit) ~ log(turnover) + sector",
    "logit: y ~ C(`net pay`) * x by sector": "logit: y ~ C(`net pay`) * x by sector",
    "model: y ~ poly(x, 2) + I(x^2) - 1": "model: y ~ poly(x, 2) + I(x^2) - 1",
}
BAD = {
    "totl(turnover)": "unknown function of an estimate 'totl' (did you mean 'total'?)",
    "total(turnovr)": "unknown column 'turnovr' (did you mean 'turnover'?)",
    "mean(sector)": "column 'sector' is not numeric but text",
    "share(sector > 3)": "column 'sector' is not numeric but text",
    "share(sector > 'a')": "orders texts; compare them by = or !=",
    "share(turnover)": "share takes a condition, as in share(profit > 0)",
    "ratio(turnover)": "ratio takes two columns",
    "mean(turnover, y)": "mean takes a column",
    "quantile(turnover, 1.5)": "quantile takes a column and a share between 0 and 1",
    "": "cannot be read to its end",
    "mean turnover": "cannot be read at 'turnover'",
    "mean(turnover) by": "cannot be read at 'by'",
    "mean(turnover) by sector y": "cannot be read at",
    "mean(turnover; y)": "cannot be read at '; y)'",
    "modl: y ~ turnover": "unknown kind of model 'modl' (did you mean 'model'?)",
    "model: y": "has no response and terms",
    "model: y ~ sin(turnover)": "unknown function of a model 'sin'",
    "model: y ~ (turnover": "cannot be read to its end",
    "model: y ~ turnover)": "cannot be read at ')'",
    "model: y ~ turnover sector": "Missing operator between `turnover` and `sector`",
    "model: y ~ log(sector)": "cannot be computed",
    "model: sector ~ turnover": "the response of model 'sector ~ turnover' is no number",
    "model: y + turnover ~ sector": "has 2 terms; write a sum as I(a + b)",
    "model: y ~ 0": "model 'y ~ 0' has no term",
    "model: y ~ eval('1')": "unknown function of a model 'eval'",
    "model: y ~ I(turnover.__class__)": "unknown column 'turnover.__class__'",
    "model: y ~ turnover + '1'": "cannot be read at \"'1'\"",
    "model: y ~ I(9^9^9^9^9)": "cannot be read at '^ 9'",
    "model: y ~ I(9**9)": "cannot be read at '*'",
}


@each("text", NORMAL)
def test_an_estimate_has_one_normal_text(text):
    found = parse_estimate(text)
    assert found.text == NORMAL[text]
    assert parse_estimate(found.text) == found


@each("text", BAD)
def test_a_bad_estimate_gets_one_clear_line(text):
    with pytest.raises((ValueError, TypeError)) as caught:
        sdc.estimates(DATA, DATA, ["mean(turnover)", text])
    assert BAD[text] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "column_" not in str(caught.value)


def test_estimates_are_texts_and_at_least_one():
    with pytest.raises(ValueError, match="no estimate is named"):
        sdc.estimates(DATA, DATA, [])
    with pytest.raises(TypeError, match="estimate 3 is no text"):
        sdc.estimates(DATA, DATA, [3])


def test_by_forms_domains_of_estimates_without_their_own():
    texts = ["mean(y)", "mean(y) by size", "mean(y) by sector"]
    assert [one.text for one in parse_estimates(texts, ("sector",))] == [
        "mean(y) by sector",
        "mean(y) by size",
    ]


def test_a_masked_file_without_a_column_is_named():
    with pytest.raises(ValueError, match="the masked data have no column 'turnover'"):
        sdc.estimates(DATA, DATA.drop("turnover"), "mean(turnover)")
    with pytest.raises(ValueError, match="unknown column 'w'"):
        sdc.estimates(DATA, DATA, "mean(turnover)", weights="w")


@pytest.mark.parametrize("bad", [-1.0, None, float("inf")])
def test_weights_below_0_are_refused(bad):
    data = DATA.with_columns(w=pl.Series([1.0, 2.0, bad, 0.0]))
    with pytest.raises(ValueError, match=r"1 (value missing or below 0 in the original data|infinite value)"):
        sdc.estimates(data, data, "mean(turnover)", weights="w")


@pytest.mark.parametrize(("option", "what"), [("unit", "unit"), ("strata", "stratum")])
def test_units_and_strata_are_complete(option, what):
    data = DATA.with_columns(g=pl.Series(["a", None, "b", "b"]))
    with pytest.raises(ValueError, match=f"the {what} g is missing in 1 record of the original data"):
        sdc.estimates(data, data, "mean(turnover)", **{option: "g"})
