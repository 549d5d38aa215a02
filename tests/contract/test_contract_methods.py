"""What every method must do: each test runs on all registered methods, new ones included."""

import inspect
import math
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sdckit as sdc
from calls import called
from cases import each
from contract import (
    NAMES,
    NAN,
    SHAPES,
    data,
    documented,
    masked_by,
    masking,
    needed,
    rows_of,
    small,
    strong,
    suited,
    with_holes,
    with_zeros,
)
from sdckit.core.registry import parameter_value
from sdckit.selection.points import strength_sign

UNMASKED = "ignore:not masked, every value"


@pytest.fixture(params=list(sdc.METHODS))
def method(request):
    return sdc.METHODS[request.param]


@contextmanager
def companions(method, *others):
    """Expect a warning for columns beside rows that stand for no original record, and no other warning."""
    if method.paired:
        yield
        return
    with pytest.warns(UserWarning, match=f"rows of {method.name} stand for no original record") as caught:
        yield
    assert all(f"'{name}'" in str(warning.message) for warning in caught for name in others)


# --- the record of the registry ---


def test_method_is_documented(method):
    documented(method.function)
    assert method.title
    assert method.summary
    assert method.reference
    assert method.keeps
    accepted = inspect.signature(method.function).parameters
    own = {parameter.name for parameter in method.parameters}
    assert set(accepted) - {"values", "rng", "basis", "groups"} == own
    in_blocks = method.in_blocks and method.in_blocks.basis  # some take theirs from blocks of rows only
    basis = method.basis or ("basis" in accepted and in_blocks)
    for name, given in (("rng", method.random), ("basis", basis), ("groups", method.groups)):
        assert (name in accepted) == bool(given), name
    for parameter in method.parameters:
        default = None if parameter.kind is dict else parameter.default
        assert accepted[parameter.name].default == default
    assert method.group_size is None or method.group_size in method.defaults()


def test_method_parameters_are_in_range(method):
    for parameter in method.parameters:
        assert parameter.text
        assert parameter_value(parameter, parameter.default) == parameter.default
        assert isinstance(parameter.default, parameter.kind)
        nonsense = ["nonsense"] if parameter.kind is tuple else "nonsense"  # no column of that name
        with pytest.raises(ValueError, match=parameter.name):
            sdc.mask(data(), method.name, **{parameter.name: nonsense})
        if parameter.low is not None:
            below = {"x1": parameter.low - 1} if parameter.kind is dict else parameter.low - 1
            with pytest.raises(ValueError, match="out of range"):
                sdc.mask(data(), method.name, **{parameter.name: below})
        if parameter.high is not None:
            with pytest.raises(ValueError, match="out of range"):
                sdc.mask(data(), method.name, **{parameter.name: parameter.high + 1})
    with pytest.raises(ValueError, match="has no parameter 'sigma'"):
        sdc.mask(data(), method.name, sigma=1)


def test_method_grids_run_from_weak_to_strong(method):
    """As numbers, each once, in the strength_sign that the search reads; never more than one grid."""
    gridded = [parameter for parameter in method.parameters if parameter.grid]
    assert len(gridded) <= 1
    for parameter in gridded:
        assert all(parameter_value(parameter, value) == value for value in parameter.grid)
        down = strength_sign(method, parameter.name) < 0
        assert list(parameter.grid) == sorted(set(parameter.grid), reverse=down)
        values = data(120)
        weak, strength = (
            abs(masked_by(method, values, {parameter.name: parameter.grid[place]}) - values).mean()
            for place in (0, -1)
        )
        assert weak < strength or not method.paired


def test_method_says_how_many_records_it_needs(method):
    for p in (1, 3):
        for options in (small(method), {}):
            least = needed(method, options, p)
            masked = masked_by(method, data(least, p + 1)[:, :p], options)
            assert np.isfinite(masked).all()
            if least > 2:
                message = rf"^the file has {least - 1} records?[ ,].*{method.name}.*; (lower|take fewer) \S+$"
                with pytest.raises(ValueError, match=message):
                    called("mask", data(least - 1, p + 1)[:, :p], method.name, **options)


def test_notes_of_a_method_are_lines_of_text(method):
    for shape in SHAPES.values():
        values = suited(method, shape(), small(method))
        options = {p.name: (() if p.kind is tuple else p.default) for p in method.parameters}
        options |= {p.name: None for p in method.parameters if p.kind is dict} | small(method)
        notes = [] if method.release_notes is None else method.release_notes(values, options)
        assert all(isinstance(line, str) and line and "\n" not in line for line in notes)


# --- tables ---


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


@each("kind", ["pandas", "polars", "pyarrow"])
def test_method_gives_the_same_kind_of_table_and_leaves_the_rest_alone(method, kind):
    table, before = table_with_others(kind), table_with_others(kind)
    with companions(method, "name", "sector", "flag"):
        masked = masking(method, table, columns=["a", "b"], untouched="name")
    assert type(masked) is type(table)
    assert table.equals(before)
    after, frame = (t.to_pandas() if kind != "pandas" else t for t in (masked, before))
    assert after.columns.tolist() == frame.columns.tolist()
    assert after.index.equals(frame.index)
    assert after.drop(columns=["a", "b"]).equals(frame.drop(columns=["a", "b"]))
    assert not after["a"].equals(frame["a"])
    plain = masking(method, frame[["a", "b"]].to_numpy())
    assert np.array_equal(after[["a", "b"]].to_numpy(), plain)
    with companions(method, "a"):
        only = masking(method, table, columns="b", untouched="name")
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


# --- data of every shape ---


def check_missing_cells(method, before, after):
    """Missing cells stay where they are; or as many, where rows are new. Only groups may suppress more."""
    gaps, found = np.isnan(before), np.isnan(after)
    if method.group_size:
        assert found[gaps].all()
        assert found[~gaps].mean() < 0.2
    elif method.paired:
        assert np.array_equal(found, gaps)
    else:
        assert np.array_equal(found.sum(axis=0), gaps.sum(axis=0))
    assert not np.isinf(after).any()


@each("shape", SHAPES)
def test_method_on_data_of_every_shape(method, shape):
    options = strong(method)
    values = suited(method, SHAPES[shape](), options)
    before = values.copy()
    for masked in [masked_by(method, values, chosen, 3) for chosen in (options, small(method))]:
        assert masked.shape == values.shape
        check_missing_cells(method, values, masked)
        constant = np.nanmin(values, axis=0) == np.nanmax(values, axis=0)
        seen = ~np.isnan(masked) & constant
        assert (masked[seen] == np.broadcast_to(np.nanmin(values, axis=0), masked.shape)[seen]).all()
    assert np.array_equal(values, before, equal_nan=True)
    firm = options | ({method.group_size: 5} if method.group_size else {})  # more than are equal
    maskings = [masked_by(method, values, firm, seed) for seed in range(3)]
    assert not all(np.array_equal(masked, values, equal_nan=True) for masked in maskings)
    if not method.paired and values.shape[1] > 1:  # another order of rows alone does not protect
        assert any(rows_of(masked) != rows_of(values) for masked in maskings)


def test_method_takes_missing_cells_of_tables_for_what_they_are(method):
    values = with_holes()
    plain = masking(method, values)
    frame = masking(method, pl.DataFrame(values, schema=NAMES, nan_to_null=True))
    assert np.array_equal(frame.to_numpy(), plain, equal_nan=True)
    assert sum(frame.null_count().row(0)) == np.isnan(plain).sum()


def test_method_on_records_without_any_value_between_others(method):
    """They change nothing about a method that draws nothing, and are found where they were."""
    values = data()
    with_empty = np.insert(values, [0, 7, 40], NAN, axis=0)
    masked = masked_by(method, with_empty, strong(method))
    check_missing_cells(method, with_empty, masked)
    if not method.random:
        filled = ~np.isnan(masked).all(axis=1)
        assert np.array_equal(masked[filled], masked_by(method, values, strong(method)))


def test_method_masks_strata_apart(method):
    values = data(30)
    values[20:] += 1000
    frame = pl.DataFrame(values, schema=NAMES).with_columns(g=pl.Series(["p"] * 20 + ["q"] * 10))
    frame = frame[np.random.default_rng(5).permutation(30).tolist()]
    options = small(method)
    with warnings.catch_warnings(action="error"):  # what forms strata belongs to the rows of each
        masked = masking(method, frame, by="g", **options)
    assert masked["g"].equals(frame["g"])
    for stratum in ("p", "q"):
        before, after = (t.filter(g=stratum).drop("g").to_numpy() for t in (frame, masked))
        assert not np.array_equal(before, after)
        if not method.random:
            assert np.array_equal(after, masking(method, before, **options))
    low, high = (masked.filter(g=stratum)["a"] for stratum in ("p", "q"))
    assert low.mean() < 300 < high.mean()
    frame = frame.with_columns(a=pl.col("a") + 1e6 * (pl.col("g") == "q"))
    again = masking(method, frame, by="g", **options)  # the other stratum has no part in it
    first = frame["g"][0]
    assert first == "q" or again.filter(g="p").equals(masked.filter(g="p"))


@each("constant", [7.0, 0.1, 1e9 + 1 / 3, -1e-5, 0.0])
@each("n", [9, 37, 1000])
def test_method_leaves_a_constant_column_constant(method, constant, n):
    values = data(n)
    values[:, 1] = constant
    for options in (small(method), strong(method)):
        assert (masked_by(method, values, options)[:, 1] == constant).all()
        assert (masked_by(method, np.full((n, 1), constant), options) == constant).all()


@each("place", range(3))
def test_method_on_a_column_of_one_value_and_of_none(method, place):
    """What cannot be estimated from a column must not spoil the others."""
    for count in (0, 1, 2):
        values = data()
        values[count:, place] = NAN
        masked = masked_by(method, values, strong(method))
        others = [j for j in range(3) if j != place]
        assert np.isfinite(masked[:, others]).all()
        assert np.isnan(masked[:, place]).sum() >= 40 - count


def test_one_record_is_refused(method):
    with pytest.raises(ValueError, match=r"1 record;.*at least 2"):
        sdc.mask([1.0], method.name)


@pytest.mark.filterwarnings(UNMASKED)  # weak noise is rounded away
def test_method_on_whole_numbers(method):
    frame = pl.DataFrame({"a": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3], "b": [2, 7, 1, 8, 2, 8, 1, 8, 2, 8]})
    for options in (small(method), strong(method)):
        exact = called("mask", frame, method.name, rng=7, **options)
        assert np.array_equal(
            exact.to_numpy(), called("mask", frame.to_numpy(), method.name, rng=7, **options)
        )
        rounded = called("mask", frame, method.name, rng=7, decimals="original", **options)
        assert rounded.schema == frame.schema
        assert np.array_equal(rounded.to_numpy(), np.round(exact.to_numpy()))


@pytest.mark.filterwarnings(UNMASKED)  # rounding may hide a small change
def test_a_zero_has_no_sign(method):
    """Some CPUs exchange 0.0 and -0.0 as they sort: the sign must neither count nor show."""
    values = with_zeros()
    values[1::4, 0] = 0.0
    values[1, 2] = -values[1, 2]
    signed = values.copy()
    signed[::4][signed[::4] == 0] = -0.0
    assert np.signbit(signed[signed == 0]).any()
    for decimals in (None, 0):
        plain, other = (masking(method, table, decimals=decimals) for table in (values, signed))
        assert plain.tobytes() == other.tobytes()
        assert not np.signbit(plain[plain == 0]).any()


def test_minus_999_is_data_until_declared_missing(method):
    values, coded = data(23), [2, 5, 7]
    values[coded, 0] = -999
    gaps = values.copy()
    gaps[coded, 0] = NAN
    declared, as_missing, as_data = (
        masking(method, values, na=-999),
        masking(method, gaps),
        masking(method, values),
    )
    assert np.isfinite(as_data).all()
    codes = np.isnan(gaps) if method.paired else np.isnan(as_missing)
    if method.alike is None:
        assert (declared[codes] == -999).all()
    else:  # a code would tell the records of a group apart
        assert np.array_equal(declared, as_missing, equal_nan=True)
    assert codes[:, 0].sum() == 3
    assert np.array_equal(declared[~codes], as_missing[~codes], equal_nan=True)
    values[coded, 0] = -998.75  # a number like any other: nearly the same data, nearly the same result
    assert np.abs(masking(method, values) - as_data).max() < 5


@pytest.mark.filterwarnings(UNMASKED)  # two ranks are too few to swap
def test_a_group_smaller_than_needed_is_an_error_that_names_the_stratum(method):
    frame = pl.DataFrame({"a": np.arange(9.0) ** 2, "g": ["large"] * 7 + ["tiny"] * 2})
    least = needed(method, small(method), 1)
    if least > 2:
        message = rf"stratum 'tiny' has 2 records and {method.name} needs {least} "
        with pytest.raises(ValueError, match=message):
            sdc.Microdata(frame, by="g").mask(method.name)
    elif method.group_size is None:
        assert masking(method, frame, by="g").height == 9
    else:
        size = method.group_size
        with pytest.raises(ValueError, match=rf"stratum 'tiny' has 2 records, fewer than {size} = 4"):
            sdc.Microdata(frame, by="g").mask(method.name, **{size: 4})
        with pytest.raises(ValueError, match="the file has 9 records"):
            sdc.mask(frame.drop("g"), method.name, **{size: 10})


def test_method_refuses_infinities_by_name(method):
    with pytest.raises(ValueError, match="column 'x2' has 1 infinite value;"):
        sdc.mask([[1.0, 2.0], [3.0, math.inf], [4.0, 5.0]], method.name)


@each("power", [-300, -150, 150, 300])
def test_method_works_at_every_size(method, power):
    """On numbers near the ends of what a double holds, as on any other."""
    values = data() / 1000 * 10.0**power
    for options in (small(method), strong(method)):
        masked = masked_by(method, values, options)
        assert np.isfinite(masked).all()
        assert np.abs(masked).max() <= 1000 * np.abs(values).max()
