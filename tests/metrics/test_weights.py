"""Weighted losses against twins and worked examples."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import sdckit as sdc
from cases import each

NAN = float("nan")
CELLS = {"mae": sdc.mae, "mse": sdc.mse, "il1": sdc.il1, "il1s": sdc.il1s}
RANKS = {"brmae": sdc.brmae, "brmse": sdc.brmse}

positive = st.floats(0.01, 100)
weighted_rows = st.lists(
    st.tuples(st.integers(0, 6).map(float), st.integers(0, 6).map(float), positive), min_size=2, max_size=12
)


def test_worked_weights():
    x, y, w = [10, 20, 30, 40], [20, 10, 40, 30], [1, 1, 4, 2]
    assert (round(sdc.brmae(x, y, weights=w), 4), round(sdc.brmse(x, y, weights=w), 4)) == (0.6429, 0.3425)
    assert (sdc.brmae(x, y), sdc.brmse(x, y)) == pytest.approx((0.5, 0.2))


@settings(max_examples=80)
@given(weighted_rows)
def test_weighted_ranks_equal_the_twin_and_stay_in_bounds(rows):
    x, y, w = (list(values) for values in zip(*rows, strict=True))
    found = sdc.brmae(x, y, weights=w), sdc.brmse(x, y, weights=w)
    assert found == pytest.approx(naive.weighted_br(x, y, w), abs=1e-9)
    assert min(found) >= 0
    assert max(found) <= 1
    assert (sdc.brmae(x, x, weights=w), sdc.brmse(x, x, weights=w)) == (0, 0)
    scaled = [weight * 7.3 for weight in w]
    assert (sdc.brmae(x, y, weights=scaled), sdc.brmse(x, y, weights=scaled)) == pytest.approx(
        found, abs=1e-9
    )


@given(st.lists(positive, min_size=2, max_size=30))
def test_weighted_reversal_scores_one(w):
    x = np.arange(len(w), dtype=float)
    assert sdc.brmae(x, -x, weights=w) == pytest.approx(1, abs=1e-12)
    assert sdc.brmse(x, -x, weights=w) == pytest.approx(1, abs=1e-12)


@given(weighted_rows, positive)
def test_equal_weights_reproduce_midranks(rows, weight):
    x, y, _ = (list(values) for values in zip(*rows, strict=True))
    for function in RANKS.values():
        assert function(x, y, weights=[weight] * len(x)) == pytest.approx(function(x, y), abs=1e-12)


@given(weighted_rows)
def test_weighted_cells_equal_the_twin(rows):
    x, y, w = (list(values) for values in zip(*rows, strict=True))
    matrix = [[a + 1, 3 * a - b] for a, b in zip(x, y, strict=True)]
    masked = [[b, a] for a, b in zip(x, y, strict=True)]
    if len({row[0] for row in matrix}) < 2 or len({row[1] for row in matrix}) < 2:
        return
    for name, function in CELLS.items():
        expected = naive.cell_loss(name, matrix, masked, w)
        assert function(matrix, masked, weights=w) == pytest.approx(expected, rel=1e-9)


def test_one_heavy_record_is_noted():
    x, y = np.arange(10.0), np.arange(10.0)[::-1]
    notes = sdc.Microdata(x, weights=[50.0] + [1.0] * 9).evaluate(y, metrics="brmae").notes
    assert any("over a quarter of the weight" in note for note in notes)
    assert not sdc.Microdata(x, weights=[1.0] * 10).evaluate(y, metrics="brmae").notes


def test_weights_may_be_a_column_of_any_name():
    frame = pl.DataFrame({"a": [1.5, 2.0, 2.0, 4.0], "w": [1.0, 2.0, 1.0, 2.0]})
    x, y = frame.select("a"), 2 * frame.select("a")
    expected = sdc.mae(x, y, weights=[1.0, 2.0, 1.0, 2.0])
    columns = [
        frame["w"],
        pd.Series(frame["w"].to_list(), name="w"),
        frame.to_arrow()["w"],
        frame.select("w"),
    ]
    for weights in columns:
        assert sdc.mae(x, y, weights=weights) == expected
        assert sdc.Microdata(x, weights=weights).evaluate(y, metrics="mae")["mae"] == expected


@pytest.mark.parametrize(
    ("weights", "error", "text"),
    [
        (np.ones((4, 2)), ValueError, "^weights has 2 columns; give one number per record$"),
        (pl.DataFrame({"v": [1.0] * 4, "w": [1.0] * 4}), ValueError, "^weights has 2 columns; give one"),
        (pl.Series("w", list("abcd")), TypeError, "^column 'w' is not numeric but text; convert it or leave"),
        (pl.Series("w", [1.0, 2.0]), ValueError, "^weights has 2 values"),
    ],
)
def test_other_weights_are_refused_in_one_line(weights, error, text):
    x = [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(error, match=text) as refusal:
        sdc.mae(x, x, weights=weights)
    assert "\n" not in str(refusal.value)


def with_missing_cells(n=60):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    y = x + 0.3 * rng.normal(size=(n, 3))
    x[1, 0] = y[1, 0] = y[4, 1] = NAN
    return x, y, rng.choice([1.0, 0.5, 0.25, 0.125], n)  # exact also as multiples of 1e-320


WEIGHTED = [
    name
    for name, metric in sdc.METRICS.items()
    if metric.family == "loss" and "weights" in inspect.signature(metric.function).parameters
]


@each("missing", ["pairwise", "penalise"])
@each("name", WEIGHTED)
def test_no_weighted_metric_depends_on_the_scale_of_the_weights(name, missing):
    x, y, w = with_missing_cells()
    found = [
        sdc.Microdata(x, weights=w * scale, missing=missing).evaluate(y, metrics=name, per_record=True)
        for scale in (1.0, 1e308, 1e-320)
    ]
    for other in found[1:]:
        for column in ("value", "random", "n_used"):
            mine, theirs = (result.table[column].cast(float).to_numpy() for result in (found[0], other))
            np.testing.assert_allclose(theirs, mine, rtol=1e-12)
        np.testing.assert_allclose(other.records.to_numpy(), found[0].records.to_numpy(), rtol=1e-12)
