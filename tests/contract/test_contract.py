"""What every metric must do: each test runs on all registered metrics, new ones included."""

import inspect
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sdckit as sdc
from cases import each, later
from contract import NAMES, data, documented, ladder, shaken
from sdckit.core.checks import NotApplicable
from sdckit.core.registry import metrics_named, parameter_value
from sdckit.metrics.pair import pair_of
from sdckit.risk.literature import LARGEST

NAN = float("nan")


@pytest.fixture(params=[name for name, metric in sdc.METRICS.items() if metric.role is None])
def metric(request):
    """A metric of the variables; those about columns of other roles are in test_contract_roles.py."""
    return sdc.METRICS[request.param]


@pytest.fixture(params=list(sdc.METRICS))
def any_metric(request):
    return sdc.METRICS[request.param]


def within(record, value):
    low, high = record.bounds
    return low <= value <= high


KINDS = {
    "pandas": lambda values: pd.DataFrame(values, columns=NAMES),
    "polars": lambda values: pl.DataFrame(values, schema=NAMES),
    "pyarrow": lambda values: pa.table({name: values[:, j] for j, name in enumerate(NAMES)}),
    "numpy": np.array,
}


def to_numpy(table):
    return table.to_pandas().to_numpy() if isinstance(table, pa.Table) else np.asarray(table)


def test_metric_is_documented_and_public(any_metric):
    text = documented(any_metric.function)
    assert getattr(getattr(sdc, any_metric.family), any_metric.name) is any_metric.function
    assert any_metric.name in dir(sdc)
    assert re.search(r"^0 means|^1 means", text, re.MULTILINE), "say what the ends of the scale mean"
    assert any_metric.summary
    assert any_metric.title
    assert any_metric.reference
    assert any_metric.family in {"loss", "risk"}
    assert any_metric.bounds[0] <= any_metric.best <= any_metric.bounds[1]
    assert any_metric.bounded == math.isfinite(any_metric.bounds[1])
    accepted = inspect.signature(any_metric.function).parameters
    assert all(accepted[name].kind is inspect.Parameter.KEYWORD_ONLY for name in list(accepted)[2:])


def test_metric_parameters_have_valid_defaults(any_metric):
    for parameter in any_metric.parameters:
        assert parameter_value(parameter, parameter.default) == parameter.default
        assert parameter.text


def measured(metric, x, y):
    """The metric's value; None where it says in one line that the data do not suit it."""
    try:
        return metric.function(x, y)
    except NotApplicable:
        return None


def size(metric, n=40):
    least = metric.records + 30 if metric.records > 2 else 2
    n = n if metric.family == "loss" else min(n, LARGEST + 1)  # from which on risks are those of long files
    return max(min(n, 500) if metric.extra else n, least)  # scikit-learn searches long from 501 records on


@each("seed", range(5))
def test_metric_respects_its_bounds(metric, seed):
    x = data(size(metric), seed=seed)
    y = shaken(x, seed)
    maskings = [y, -x, x[::-1].copy(), np.full_like(x, x.mean()), np.where(x > x.mean(), NAN, x)]
    values = [measured(metric, x, masked) for masked in maskings]
    assert all(found is None or within(metric, found) for found in values)
    assert values[0] is not None
    assert set(values) - {metric.identical, None}


@pytest.mark.parametrize("n", [2, 3, 40, later(5000)])
def test_metric_of_identical_data(metric, n):
    found = measured(metric, data(size(metric, n)), data(size(metric, n)))
    assert found == metric.identical or (found is None and n != 40)


def test_public_function_is_the_scores_overall_value(metric):
    x = data(size(metric))
    y = shaken(x)
    pair = pair_of(x, y)
    expected = metric.function(x, y)
    assert metric.score(pair).value.overall == expected
    for detail, per_record in ((True, False), (True, True), (False, True)):
        score = metric.score(pair, detail=detail, per_record=per_record)
        assert score.value.overall == expected
        assert score.value.variables.shape == score.used.shape == score.left_out.shape == (3,)
        assert score.records is None or (per_record and len(score.records) == len(x))
    assert sdc.evaluate(x, y, metrics=metric.name)[metric.name] == expected


@each("n", [40, 5000])
def test_metric_is_the_same_for_every_kind_of_table(metric, n):
    if n > 40 and metric.family == "risk":  # seconds each, and no other code reads the table
        return
    x = data(size(metric, n))
    y = shaken(x)
    expected = measured(metric, x, y)
    if expected is None and n > 40:
        return
    for make in KINDS.values():
        original, masked = make(x), make(y)
        before = to_numpy(original).copy(), to_numpy(masked).copy()
        assert metric.function(original, masked) == expected
        assert metric.function(sdc.Microdata(original).original, masked) == expected
        assert np.array_equal(to_numpy(original), before[0])
        assert np.array_equal(to_numpy(masked), before[1])
    prepared = sdc.Microdata(x).original
    assert metric.function(prepared, y) == metric.function(prepared, y) == expected
    assert metric.function(np.asfortranarray(x), y[:, :]) == expected


def test_metric_leaves_read_only_arrays_alone(metric):
    x = data(size(metric))
    y = shaken(x)
    expected = metric.function(x, y)
    x.setflags(write=False)
    y.setflags(write=False)
    assert metric.function(x, y) == expected


def test_metric_explains_itself_in_one_sentence(metric):
    x = data(size(metric))
    for masked in (x, shaken(x), np.full_like(x, 3.0)):
        if measured(metric, x, masked) is None and masked[0, 0] == masked[1, 0]:
            continue  # nothing to explain about a constant column
        sentence = metric.explain(metric.score(pair_of(x, masked), detail=True))
        assert sentence
        assert "\n" not in sentence
        assert not sentence.endswith(".")
        assert "nan" not in sentence


def test_metric_with_missing_cells(metric):
    n = size(metric)
    x = data(n)
    y = shaken(x)
    x[3, 0] = x[5:9, 1] = NAN
    y[3, 0] = y[10:30, 2] = y[4, 1] = NAN
    found = metric.function(x, y)
    assert within(metric, found)
    assert metric.family == "risk" or found != metric.identical  # a single outlier may be found
    score = metric.score(pair_of(x, y), detail=True, per_record=True)
    both = np.array([n - 1, n - 5, n - 20])
    if metric.by_variable:
        assert score.used.tolist() == both.tolist()
    assert (score.used <= both).all()
    assert (score.used > 0).all()
    kept = ~np.isnan(x[:, 1]) & ~np.isnan(y[:, 1])
    if metric.variables == 1 and metric.family == "loss" and metric.needs != "places":
        assert metric.function(x[:, 1], y[:, 1]) == pytest.approx(
            metric.function(x[kept, 1], y[kept, 1]), rel=0.2
        )
    if metric.family == "loss":
        assert metric.function(x, x) == metric.identical


def test_metric_of_columns_without_a_common_cell_has_no_value(metric):
    x = np.array([1.0, 2.0, NAN, NAN])
    y = np.array([NAN, NAN, 2.0, 3.0])
    found = measured(metric, x, y)
    if found is None:
        return
    if metric.any_data and metric.needs == "rows":  # a guess is always possible, and never sure
        assert found == (0 if metric.name == "linkage_sure" else 1 / len(x))
        return
    if metric.needs == "places":
        assert found == metric.bounds[1]  # none of the original's cells is left
        return
    assert math.isnan(found)
    result = sdc.evaluate(x, y, metrics=metric.name)
    assert result.summary["value"].to_list() == [None]
    assert "no value" in repr(result)


def test_metric_of_odd_shapes(metric):
    def suits(found):
        return found is None or within(metric, found)

    x = data(size(metric))
    y = shaken(x)
    if metric.variables > 1:
        with pytest.raises(
            NotApplicable, match=f"at least {metric.variables} variables and the data have 1; "
        ):
            metric.function(x[:, 0], y[:, 0])
    else:
        assert within(metric, metric.function(x[:, 0], y[:, 0]))
        assert metric.function(x[:, 0], y[:, 0]) == metric.function(x[:, [0]], y[:, [0]])
    for masked in ([1.0, 2.0], [2.0, 1.0], [5.0, 5.0]):
        assert suits(measured(metric, [1.0, 2.0], masked))
    constant = np.full(6, 0.1)
    unchanged = measured(metric, constant, constant)
    assert suits(unchanged)
    assert metric.family == "risk" or unchanged in {metric.best, None}
    assert suits(measured(metric, constant, np.arange(6.0)))
    assert suits(measured(metric, np.arange(1.0, 7.0), constant))
    with pytest.raises(ValueError, match=r"1 record;.*at least 2"):
        metric.function([1.0], [1.0])
    with pytest.raises(ValueError, match=f"{len(x) - 1} records, the original {len(x)}"):
        metric.function(x, y[:-1])


def test_metric_moves_one_way_as_the_masking_grows(metric):
    x, maskings = ladder(metric)
    distances = [abs(metric.function(x, masked) - metric.identical) for masked in maskings]
    assert distances[0] < distances[1] < distances[2]


def fixed_options_of(metric):
    """Every option of the metric with every value that it can take."""
    every = [(option.name, value) for option in metric.parameters for value in option.choices]
    return [pair for pair in every if metric.bounded or pair != ("missing", "penalise")]


@pytest.mark.parametrize("n", [40, later(5000)])
def test_metric_with_a_fixed_option_is_the_metric_with_that_option(metric, n):
    x = data(size(metric, n))
    y = shaken(x).round()
    if n > 40 and measured(metric, x, y) is None:
        return
    x[3, 0] = y[4, 1] = NAN
    others = {"ties": "last", "missing": "pairwise", "zeros": "drop", "rng": 5}
    for option, value in fixed_options_of(metric):
        name = f"{metric.name}:{option}={value}"
        (fixed,) = metrics_named(name)
        assert (fixed.name, fixed.fixed_options) == (name, {option: value})
        assert fixed.open_options == metric.open_options - {option}
        rng = {"rng": 5} if value == "random" else {}
        assert sdc.evaluate(x, y, metrics=[name], rng=5)[name] == metric.function(
            x, y, **{option: value}, **rng
        )
        given = {key: others[key] for key in fixed.open_options if key in others}
        rng = {"rng": 5} if metric.random else {}
        expected = metric.function(x, y, **given, **{option: value}, **rng)
        assert fixed.score_with(pair_of(x, y), others).value.overall == expected
