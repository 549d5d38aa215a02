"""Estimates and standard errors against R's survey and laeken, and statsmodels (golden.csv, see its head)."""

import math
from pathlib import Path

import polars as pl
import pytest

import sdckit as sdc
from surveys import FINITE, survey

GOLDEN = pl.read_csv(Path(__file__).with_name("golden.csv"), comment_prefix="#")
CASES = GOLDEN.select("file", *FINITE).unique(maintain_order=True).rows()
CLOSE = 1e-8


@pytest.fixture(scope="module")
def files(request):
    def find(name):
        if name == "survey":
            return pl.DataFrame(survey(), nan_to_null=True)
        if name == "sample":
            weights = pl.read_csv(Path(__file__).with_name("golden_weights.csv"), comment_prefix="#")
            return sdc.load_sample().drop("weight").join(weights, on="firm", maintain_order="left")
        return request.getfixturevalue("tarragona")

    return find


def close(found, expected):
    if expected is None or math.isnan(expected):
        return found is None
    return found == pytest.approx(expected, rel=CLOSE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(one or "-" for one in case))
def test_estimates_are_those_of_other_programs(files, case):
    name, *design = case
    conditions = [
        pl.col(column).eq_missing(pl.lit(value)) for column, value in zip(FINITE, design, strict=True)
    ]
    expected = GOLDEN.filter(pl.col("file") == name, *conditions)
    texts = dict.fromkeys(text.split(" [")[0] for text in expected["text"])
    data = files(name)
    found = sdc.estimates(data, data, texts, **dict(zip(FINITE, design, strict=True)))
    rows = {(row["estimate"], row["domain"]): row for row in found.table.iter_rows(named=True)}
    assert len(rows) == expected.height
    for row in expected.iter_rows(named=True):
        own = rows[row["text"], row["domain"]]
        assert close(own["original"], row["value"]), row
        assert close(own["se_original"], row["se"]), (row, own)
        if row["low"] is not None:
            assert close(own["low_original"], row["low"]), row
            assert close(own["high_original"], row["high"]), row
        assert own["se_masked"] == own["se_original"]


def test_golden_numbers_cover_every_estimator():
    kinds = {text.split("(")[0].split(":")[0] for text in GOLDEN["text"]}
    assert kinds == {
        *("total", "mean", "median", "quantile", "share", "ratio", "correlation", "gini", "model", "logit"),
    }
