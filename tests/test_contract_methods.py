"""What every method must do, without naming any: whoever files a new one is tested here."""

import inspect
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sdckit as sdc
from contract import NAMES, data, documented
from sdckit.checks import parameter_value
from sdckit.plans import cells_of, settings_of
from sdckit.tasks import generator

NAN = float("nan")


@pytest.fixture(params=list(sdc.METHODS))
def method(request):
    return sdc.METHODS[request.param]


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


# --- in a sweep ---


def holed(n):
    """Data with missing cells in two columns."""
    values = data(n)
    values[::7, 0] = values[3::11, 2] = NAN
    return values


@pytest.mark.parametrize("make", [data, holed])
@pytest.mark.parametrize("n", [200, 5000])
def test_method_with_its_basis_at_hand_masks_as_without(method, n, make):
    values = np.asfortranarray(make(n))
    before, basis = values.copy(), method.basis(values) if method.basis else None

    def masked(**more):
        extra = {"rng": np.random.default_rng(7)} if method.random else {}
        return method.function(values, **extra, **more).tobytes()

    for options in ({}, strong(method), {}):  # again: nobody may use the basis up
        if basis is not None:
            assert masked(basis=basis, **options) == masked(**options)
    assert np.array_equal(values, before, equal_nan=True)


@pytest.mark.filterwarnings("ignore:not masked, every value")  # the weakest of the grid
@pytest.mark.parametrize("draws", ["common", "fresh"])
def test_method_in_a_sweep_costs_what_it_costs_alone(method, draws):
    frame = pl.DataFrame(data(120), schema=NAMES)
    plan = {method.name: {p.name: p.grid[:: len(p.grid) - 1] for p in method.parameters if p.grid}}
    metrics = list(sdc.METRICS)
    found = sdc.sweep(frame, plan, metrics=metrics, replications=2, draws=draws, rng=9, workers=1)
    rows = iter(found.table.rows(named=True))
    cells = cells_of(settings_of(plan), 2)
    assert len(cells) == 2 * (2 if method.random else 1)
    for cell in cells:
        options = cell.setting.options
        window = method.published(options)
        masked = sdc.mask(frame, method.name, rng=generator(9, cell.stream(draws)), **cell.setting.options)
        for name in metrics:
            row = next(rows)
            assert (row["method"], row["parameters"], row["replication"], row["metric"]) == (
                method.name,
                cell.setting.text,
                cell.replication,
                name,
            )
            alone = sdc.evaluate(frame, masked, metrics=name, window=window)
            assert row["value"] == alone[name]
            if window is None:
                assert row["value"] == sdc.METRICS[name].function(frame, masked)
    assert next(rows, None) is None
