"""What every metric and every method must do, without naming any: whoever files a new one is tested here."""

import inspect
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sdckit as sdc
from sdckit.checks import parameter_value
from sdckit.pairs import pair_of

NAN = float("nan")
SECTIONS = ("Parameters", "Returns", "References", "Examples")


@pytest.fixture(params=list(sdc.METRICS))
def metric(request):
    return sdc.METRICS[request.param]


@pytest.fixture(params=list(sdc.METHODS))
def method(request):
    return sdc.METHODS[request.param]


def documented(function):
    text = inspect.getdoc(function)
    for section in SECTIONS:
        assert re.search(rf"^{section}\n-{{{len(section)}}}$", text, re.MULTILINE), section
    assert ">>> " in text
    return text


def data(n=40, p=3, seed=0):
    """Correlated columns without zeros, one of them with ties."""
    rng = np.random.default_rng(seed)
    values = rng.normal(50, 10, (n, 1)) + rng.normal(0, 5, (n, p))
    values[:, -1] = np.round(values[:, -1] / 4)
    return values


def shaken(values, seed=1):
    return values + np.random.default_rng(seed).normal(0, 8, values.shape)


def within(record, value):
    low, high = record.bounds
    return low <= value <= high


NAMES = ["a", "b", "c"]
KINDS = {
    "pandas": lambda values: pd.DataFrame(values, columns=NAMES),
    "polars": lambda values: pl.DataFrame(values, schema=NAMES),
    "pyarrow": lambda values: pa.table({name: values[:, j] for j, name in enumerate(NAMES)}),
    "numpy": np.array,
}


def to_numpy(table):
    return table.to_pandas().to_numpy() if isinstance(table, pa.Table) else np.asarray(table)


# --- metrics ---


def test_metric_is_documented_and_public(metric):
    text = documented(metric.function)
    assert getattr(sdc, metric.name) is metric.function
    assert metric.name in dir(sdc)
    assert re.search(r"^0 means|^1 means", text, re.MULTILINE), "say what the ends of the scale mean"
    assert metric.summary
    assert metric.title
    assert metric.reference
    assert metric.family in {"loss", "risk"}
    assert metric.bounds[0] <= metric.best <= metric.bounds[1]
    assert metric.bounded == math.isfinite(metric.bounds[1])
    accepted = inspect.signature(metric.function).parameters
    assert all(accepted[name].kind is inspect.Parameter.KEYWORD_ONLY for name in list(accepted)[2:])


def test_metric_parameters_have_valid_defaults(metric):
    for parameter in metric.parameters:
        assert parameter_value(parameter, parameter.default) == parameter.default
        assert parameter.text


@pytest.mark.parametrize("seed", range(5))
def test_metric_respects_its_bounds(metric, seed):
    x, y = data(seed=seed), shaken(data(seed=seed), seed)
    for masked in (y, -x, x[::-1].copy(), np.full_like(x, x.mean())):
        assert within(metric, metric.function(x, masked))
    assert metric.function(x, y) != metric.best


@pytest.mark.parametrize("n", [2, 3, 40, 5000])
def test_metric_is_best_on_identical_data(metric, n):
    assert metric.function(data(n), data(n)) == metric.best


def test_public_function_is_the_scores_overall_value(metric):
    x, y = data(), shaken(data())
    pair = pair_of(x, y)
    value = metric.function(x, y)
    assert metric.score(pair).value.overall == value
    for detail, per_record in ((True, False), (True, True), (False, True)):
        score = metric.score(pair, detail=detail, per_record=per_record)
        assert score.value.overall == value
        assert score.value.variables.shape == score.used.shape == score.left_out.shape == (3,)
        assert (score.records is not None) == per_record
    assert sdc.evaluate(x, y, metrics=metric.name)[metric.name] == value


@pytest.mark.parametrize("n", [40, 5000])
def test_metric_is_the_same_for_every_kind_of_table(metric, n):
    x, y = data(n), shaken(data(n))
    expected = metric.function(x, y)
    for make in KINDS.values():
        original, masked = make(x), make(y)
        before = to_numpy(original).copy(), to_numpy(masked).copy()
        assert metric.function(original, masked) == expected
        assert metric.function(sdc.prepare(original), masked) == expected
        assert np.array_equal(to_numpy(original), before[0])
        assert np.array_equal(to_numpy(masked), before[1])
    prepared = sdc.prepare(x)
    assert metric.function(prepared, y) == metric.function(prepared, y) == expected
    assert metric.function(np.asfortranarray(x), y[:, :]) == expected


def test_metric_leaves_read_only_arrays_alone(metric):
    x, y = data(), shaken(data())
    expected = metric.function(x, y)
    x.setflags(write=False)
    y.setflags(write=False)
    assert metric.function(x, y) == expected


def test_metric_explains_itself_in_one_sentence(metric):
    x, y = data(), shaken(data())
    for masked in (x, y, np.full_like(x, 3.0)):
        sentence = metric.explain(metric.score(pair_of(x, masked), detail=True))
        assert sentence
        assert "\n" not in sentence
        assert not sentence.endswith(".")
        assert "nan" not in sentence


def test_metric_with_missing_cells(metric):
    x, y = data(), shaken(data())
    x[3, 0] = x[5:9, 1] = NAN
    y[3, 0] = y[10:30, 2] = y[4, 1] = NAN
    value = metric.function(x, y)
    assert within(metric, value)
    assert value != metric.best
    score = metric.score(pair_of(x, y), detail=True, per_record=True)
    assert score.used.tolist() == [39, 35, 20]
    kept = ~np.isnan(x[:, 1]) & ~np.isnan(y[:, 1])
    assert metric.function(x[:, 1], y[:, 1]) == pytest.approx(
        metric.function(x[kept, 1], y[kept, 1]), rel=0.2
    )
    assert metric.function(x, x) == metric.best


def test_metric_of_columns_without_a_common_cell_has_no_value(metric):
    x = np.array([1.0, 2.0, NAN, NAN])
    y = np.array([NAN, NAN, 2.0, 3.0])
    assert math.isnan(metric.function(x, y))
    result = sdc.evaluate(x, y, metrics=metric.name)
    assert result.summary["value"].to_list() == [None]
    assert "no value" in repr(result)


def test_metric_of_odd_shapes(metric):
    x, y = data(), shaken(data())
    assert within(metric, metric.function(x[:, 0], y[:, 0]))
    assert metric.function(x[:, 0], y[:, 0]) == metric.function(x[:, [0]], y[:, [0]])
    for masked in ([1.0, 2.0], [2.0, 1.0], [5.0, 5.0]):
        assert within(metric, metric.function([1.0, 2.0], masked))
    constant = np.full(6, 0.1)
    assert metric.function(constant, constant) == metric.best
    assert within(metric, metric.function(constant, np.arange(6.0)))
    assert within(metric, metric.function(np.arange(1.0, 7.0), constant))
    with pytest.raises(ValueError, match=r"1 record;.*at least 2"):
        metric.function([1.0], [1.0])
    with pytest.raises(ValueError, match="39 records, the original 40"):
        metric.function(x, y[:-1])


def test_metric_grows_with_the_change_of_an_untied_column(metric):
    """From identity to reversal, by way of a few neighbours changing places."""
    x = np.arange(1.0, 31.0)
    swapped = x.copy()
    swapped[[0, 1, 14, 15]] = swapped[[1, 0, 15, 14]]
    values = [metric.function(x, masked) for masked in (x, swapped, x[::-1])]
    assert abs(values[0] - metric.best) < abs(values[1] - metric.best) < abs(values[2] - metric.best)


# --- methods ---


def masking(method, values, rng=7, **options):
    """The method with options that surely change something."""
    for parameter in method.parameters:
        if parameter.grid and parameter.name not in options:
            options[parameter.name] = parameter.kind(parameter.grid[min(len(parameter.grid) - 1, 3)])
            if parameter.high == 1:
                options[parameter.name] = 0.3
    return sdc.mask(values, method.name, rng=rng, **options)


def test_method_is_documented(method):
    documented(method.function)
    assert method.title
    assert method.summary
    assert method.reference
    assert method.keeps
    accepted = inspect.signature(method.function).parameters
    assert set(accepted) - {"values", "rng", "basis"} == {parameter.name for parameter in method.parameters}
    assert ("rng" in accepted) == method.random
    assert ("basis" in accepted) == (method.basis is not None)
    for parameter in method.parameters:
        assert accepted[parameter.name].default == parameter.default
    assert method.group_size is None or method.group_size in method.defaults()


def test_method_parameters_are_in_range(method):
    for parameter in method.parameters:
        assert parameter.text
        assert parameter_value(parameter, parameter.default) == parameter.default
        assert isinstance(parameter.default, parameter.kind)
        for value in parameter.grid:
            assert parameter_value(parameter, value) == value
        assert list(parameter.grid) == sorted(set(parameter.grid))
        with pytest.raises(ValueError, match=parameter.name):
            sdc.mask(data(), method.name, **{parameter.name: "nonsense"})
        if parameter.low is not None:
            with pytest.raises(ValueError, match="out of range"):
                sdc.mask(data(), method.name, **{parameter.name: parameter.low - 1})
    with pytest.raises(ValueError, match="has no parameter 'sigma'"):
        sdc.mask(data(), method.name, sigma=1)


def table_with_others(kind):
    """Two columns to mask among others, in an order of their own."""
    values = data(12)
    columns = {
        "name": [f"firm {i}" for i in range(12)],
        "b": values[:, 1],
        "sector": ["x", "y", "x"] * 4,
        "a": values[:, 0],
        "flag": [True, False] * 6,
    }
    if kind == "pandas":
        return pd.DataFrame(columns, index=pd.Index([f"r{i}" for i in range(12, 0, -1)], name="row"))
    return pl.DataFrame(columns) if kind == "polars" else pa.table(columns)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_method_gives_the_same_kind_of_table_and_leaves_the_rest_alone(method, kind):
    table, before = table_with_others(kind), table_with_others(kind)
    masked = masking(method, table, columns=["a", "b"])
    assert type(masked) is type(table)
    assert table.equals(before)
    after, frame = (t.to_pandas() if kind != "pandas" else t for t in (masked, before))
    assert after.columns.tolist() == frame.columns.tolist()
    assert after.index.equals(frame.index)
    assert after.drop(columns=["a", "b"]).equals(frame.drop(columns=["a", "b"]))
    assert not after["a"].equals(frame["a"])
    plain = masking(method, frame[["a", "b"]].to_numpy())
    assert np.array_equal(after[["a", "b"]].to_numpy(), plain)
    only = masking(method, table, columns="b")
    only = only.to_pandas() if kind != "pandas" else only
    assert only.drop(columns="b").equals(frame.drop(columns="b"))


def test_method_does_not_change_arrays(method):
    values = data()
    before = values.copy()
    masked = masking(method, values)
    assert masked.shape == values.shape
    assert masked.dtype == np.float64
    assert not np.shares_memory(masked, values)
    assert np.array_equal(values, before)
    flat = masking(method, values[:, 0])
    assert flat.shape == (40,)
    assert np.array_equal(flat, masking(method, values[:, [0]])[:, 0])


def test_method_is_reproducible_under_a_seed_only(method):
    values = data()
    again = masking(method, values)
    assert np.array_equal(masking(method, values), again)
    assert np.array_equal(masking(method, values, rng=np.random.default_rng(7)), again)
    assert (
        np.array_equal(masking(method, values, rng=None), masking(method, values, rng=None)) != method.random
    )
    assert np.array_equal(masking(method, values, rng=8), again) != method.random


def test_method_keeps_missing_cells_missing(method):
    values = data()
    holes = np.random.default_rng(3).random(values.shape) < 0.1
    values[holes] = NAN
    masked = masking(method, values, **small(method))
    assert np.isnan(masked[holes]).all()
    assert np.isfinite(masked[~holes]).mean() > 0.8  # microaggregation suppresses cells of small groups
    assert (masked[~holes] != values[~holes]).mean() > 0.5
    frame = masking(method, pl.DataFrame(values, schema=NAMES, nan_to_null=True), **small(method))
    assert np.array_equal(frame.to_numpy(), masked, equal_nan=True)
    assert sum(frame.null_count().row(0)) == np.isnan(masked).sum()


def test_method_masks_strata_apart(method):
    values = data(30)
    values[20:] += 1000
    frame = pl.DataFrame(values, schema=NAMES).with_columns(g=pl.Series(["p"] * 20 + ["q"] * 10))
    frame = frame[np.random.default_rng(5).permutation(30).tolist()]
    masked = masking(method, frame, by="g")
    assert masked["g"].equals(frame["g"])
    whole = masking(method, values)
    keeps_values = all(np.array_equal(np.sort(whole[:, j]), np.sort(values[:, j])) for j in range(3))
    for stratum in ("p", "q"):
        before, after = (t.filter(g=stratum).drop("g").to_numpy() for t in (frame, masked))
        assert not np.array_equal(before, after)
        if not method.random:
            assert np.array_equal(after, masking(method, before))
        if keeps_values:
            assert np.array_equal(np.sort(after, axis=0), np.sort(before, axis=0))
    assert masked.filter(g="p")["a"].max() < 500 < masked.filter(g="q")["a"].min()


@pytest.mark.parametrize("constant", [7.0, 0.1, 1e9 + 1 / 3, -1e-5])
@pytest.mark.parametrize("n", [5, 37, 1000])
def test_method_leaves_a_constant_column_constant(method, constant, n):
    values = data(n)
    values[:, 1] = constant
    for options in (small(method), small(method) | strong(method)):
        assert (masking(method, values, **options)[:, 1] == constant).all()
        assert (masking(method, np.full(n, constant), **options) == constant).all()


def small(method):
    """The smallest group that masks anything."""
    return {method.group_size: 2} if method.group_size else {}


def strong(method):
    """The strongest masking of the grid."""
    return {p.name: p.kind(p.grid[-1]) for p in method.parameters if p.grid and p.name != method.group_size}


def test_method_on_five_records_and_on_duplicates(method):
    masked = masking(method, data(5), **small(method))
    assert np.isfinite(masked).all()
    repeated = np.repeat(data(6), 4, axis=0)
    assert np.isfinite(masking(method, repeated)).all()
    with pytest.raises(ValueError, match=r"1 record;.*at least 2"):
        sdc.mask([1.0], method.name)


@pytest.mark.filterwarnings("ignore:not masked, every value")  # weak noise is rounded away
def test_method_on_whole_numbers(method):
    frame = pl.DataFrame({"a": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3], "b": [2, 7, 1, 8, 2, 8, 1, 8, 2, 8]})
    exact = masking(method, frame, **small(method))
    assert np.array_equal(exact.to_numpy(), masking(method, frame.to_numpy(), **small(method)))
    rounded = masking(method, frame, decimals="original", **small(method))
    assert rounded.schema == frame.schema
    assert np.array_equal(rounded.to_numpy(), np.round(exact.to_numpy()))


def test_minus_999_is_data_until_declared_missing(method):
    values = data(20)
    values[[2, 5, 7], 0] = -999
    declared = masking(method, values, na=-999, **small(method))
    assert (declared[[2, 5, 7], 0] == -999).all()
    gaps = values.copy()
    gaps[[2, 5, 7], 0] = NAN
    as_missing = masking(method, gaps, **small(method))
    others = np.delete(declared[:, 0], [2, 5, 7])
    assert np.array_equal(others, np.delete(as_missing[:, 0], [2, 5, 7]), equal_nan=True)
    as_data = masking(method, values, **small(method))
    assert not np.array_equal(np.delete(as_data[:, 0], [2, 5, 7]), others)


@pytest.mark.filterwarnings("ignore:not masked, every value")  # two ranks are too few to swap
def test_a_group_smaller_than_needed_is_an_error_that_names_the_stratum(method):
    frame = pl.DataFrame({"a": np.arange(9.0) ** 2, "g": ["large"] * 7 + ["tiny"] * 2})
    if method.group_size is None:
        assert masking(method, frame, by="g").height == 9
        return
    with pytest.raises(
        ValueError, match=rf"stratum 'tiny' has 2 records, fewer than {method.group_size} = 4"
    ):
        sdc.mask(frame, method.name, by="g", **{method.group_size: 4})
    with pytest.raises(ValueError, match="the file has 9 records"):
        sdc.mask(frame, method.name, columns="a", **{method.group_size: 10})


def test_method_refuses_infinities_by_name(method):
    with pytest.raises(ValueError, match="column 'x2' has 1 infinite value;"):
        sdc.mask([[1.0, 2.0], [3.0, math.inf], [4.0, 5.0]], method.name)
