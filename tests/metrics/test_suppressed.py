"""The share of suppressed cells: by hand, against a slow twin, with weights, strata and a penalty."""

import math

import numpy as np
import polars as pl
import pytest

import naive
import sdckit as sdc
from sdckit.metrics.pair import pair_of
from sdckit.report.page import headlines

NAN = float("nan")
X = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, NAN], [4.0, 8.0]])
Y = np.array([[1.0, NAN], [2.0, NAN], [3.0, 7.0], [NAN, 9.0]])


def test_by_hand():
    assert sdc.suppressed(X, Y) == 3 / 7
    table = sdc.evaluate(X, Y, metrics="suppressed").table
    assert table["value"].to_list() == [3 / 7, 1 / 4, 2 / 3]
    assert table["n_suppressed"].to_list() == [3, 1, 2]
    assert sdc.suppressed(X, X) == 0.0


def test_equals_its_twin():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = (np.where(rng.random((30, 3)) < 0.3, NAN, rng.normal(size=(30, 3))) for _ in range(2))
        weights = rng.uniform(0.5, 3, 30)
        assert sdc.suppressed(x, y) == pytest.approx(naive.suppressed(x, y), abs=1e-15)
        found = sdc.suppressed(x, y, weights=weights)
        assert found == pytest.approx(naive.suppressed(x, y, weights), abs=1e-15)


def test_records_have_their_own_shares():
    score = sdc.METRICS["suppressed"].score(pair_of(X, Y), per_record=True)
    assert score.records.tolist() == [0.5, 0.5, 0.0, 0.5]


def test_a_column_without_values_counts_nothing():
    x = np.column_stack([[1.0, 2, 3, 4], [NAN] * 4])
    y = np.column_stack([[1.0, NAN, 3, 4], [1.0] * 4])
    assert sdc.suppressed(x, y) == 0.25
    assert math.isnan(sdc.METRICS["suppressed"].score(pair_of(x, y)).value.variables[1])


def test_strata_have_their_own_share():
    data = pl.DataFrame({"a": X[:, 0], "s": ["n", "n", "s", "s"]})
    masked = pl.DataFrame({"a": Y[:, 0], "s": ["n", "n", "s", "s"]})
    table = sdc.Microdata(data, by="s", columns="a").evaluate(masked, metrics="suppressed").table
    shares = table.filter(pl.col("variable") == "all").select("stratum", "value").rows()
    assert shares == [("all", 0.25), ("n", 0.0), ("s", 0.5)]


def test_it_is_printed_beside_the_rank_losses():
    assert list(sdc.METRICS)[:3] == ["brmae", "brmse", "suppressed"]
    result = sdc.evaluate(X, Y)
    assert result.meaning["suppressed"] == "43 of 100 values of the original are missing in the masked file"
    assert sdc.evaluate(X, X).meaning["suppressed"].startswith("no value of the original is missing")
    assert "suppressed cells, left out of every metric: 3" in " ".join(result.notes)
    notes = sdc.Microdata(X, missing="penalise").evaluate(Y, metrics=["brmae", "mae"]).notes
    counted = "suppressed cells, counted as the largest loss: 3"
    assert f"{counted}; metrics without a largest value leave them out" in notes


def test_the_report_shows_it_where_cells_are_gone():
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(x > 1, NAN, x + 0.1)
    rows = {"evaluation": sdc.evaluate(x, y), "points": None, "limits": {}}
    assert [one.title for one in headlines(**rows)] == ["brMAE", "linkage", "suppressed cells"]
    rows["evaluation"] = sdc.evaluate(x, x + 0.1)
    assert [one.title for one in headlines(**rows)] == ["brMAE", "linkage"]
