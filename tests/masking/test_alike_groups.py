"""Records of a group are published alike, whatever cells they miss: places and codes tell none apart."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_masking_groups as twins
import sdckit as sdc
from maskings import fails
from microaggregations import NAN, holes, lines
from sdckit.core.prepared import PreparedTable
from sdckit.masking.mask_table import mask_prepared
from sdckit.masking.microaggregation import MEASURES, publish, with_empty_records

GROUPED = [name for name, method in sdc.METHODS.items() if method.groups is not None]


def by_hand():
    """Two groups of four and one of three; the second variable has gaps."""
    values = np.column_stack([np.arange(11.0), [1, 2, 3, NAN, 5, NAN, NAN, 8, 9, 10, 11]])
    return values, np.repeat([0, 1, 2], [4, 4, 3])


def test_a_variable_is_published_for_all_or_for_none():
    values, groups = by_hand()
    masked = publish(values, groups, 3, gaps="alike")
    np.testing.assert_array_equal(masked[:, 0], [1.5] * 4 + [5.5] * 4 + [9] * 3)
    np.testing.assert_array_equal(masked[:, 1], [2] * 4 + [NAN] * 4 + [10] * 3)  # 3, 2 and all 3 have a value


def test_two_values_fill_nothing_and_two_records_without_a_gap_are_published():
    values = np.array([[1.0, 1], [2, 2], [3, NAN], [5, 5], [7, 7]])
    masked = publish(values, np.array([0, 0, 0, 1, 1]), 2, gaps="alike")
    np.testing.assert_array_equal(masked, [[2, NAN]] * 3 + [[6, 6]] * 2)


@pytest.mark.parametrize("aggregate", MEASURES)
@pytest.mark.parametrize("share", [0.02, 0.2, 0.7])
def test_alike_aggregates_equal_their_twin(share, aggregate):
    for seed in range(5):
        values = holes(lines("lognormal", 80, 3, seed), share, seed)
        groups = np.random.default_rng(seed).integers(-1, 12, 80)
        expected = twins.alike_aggregates(values, groups, 4, aggregate)
        np.testing.assert_allclose(publish(values, groups, 4, aggregate, gaps="alike"), expected, rtol=1e-13)


@pytest.mark.parametrize("empty", [1, 3, 4, 11])
def test_records_without_any_value_join_a_group(empty):
    for seed in range(5):
        values = holes(lines("lognormal", 60, 3, seed), 0.1, seed)
        values[5 : 5 + empty] = NAN
        groups = np.random.default_rng(seed).permutation(np.arange(60) % 9)
        groups[np.isnan(values).all(axis=1)] = -1
        expected = twins.with_empty_records(values, groups, 4)
        np.testing.assert_array_equal(with_empty_records(values, groups, 4, "alike"), expected)
        np.testing.assert_array_equal(with_empty_records(values, groups, 4, "merge"), groups)


# --- what must hold for any file ---


def check_alike(masked, groups, k):
    """Every group has at least k records, and one published record."""
    assert groups.min() >= 0
    assert np.bincount(groups).min() >= k
    for group in range(groups.max() + 1):
        assert len(np.unique(np.nan_to_num(masked[groups == group], nan=9e300), axis=0)) == 1


files = given(
    n=st.integers(9, 70),
    p=st.integers(1, 4),
    k=st.integers(2, 9),
    share=st.floats(0.0, 0.95),
    seed=st.integers(0, 2**32 - 1),
)


@pytest.mark.parametrize("name", GROUPED)
@settings(max_examples=40, deadline=None)
@files
def test_records_of_a_group_are_equal_and_the_counts_are_right(*, name, n, p, k, share, seed):
    values = holes(lines("lognormal", n, p, seed), share, seed)
    values[:k, 0] = np.arange(1, k + 1) / 7
    options = {"k": k} | ({"block": 20} if name == "blocked_mdav" else {})
    groups = sdc.METHODS[name].groups(values, **options)
    masked = sdc.METHODS[name].function(values, **options)
    check_alike(masked, groups, k)
    np.testing.assert_allclose(masked, twins.alike_aggregates(values, groups, k), rtol=1e-9)
    made = mask_prepared(PreparedTable.of(values), name, parameters=options)
    np.testing.assert_array_equal(made.data, masked)
    filled, suppressed = (np.isnan(a) & ~np.isnan(b) for a, b in ((values, masked), (masked, values)))
    found = [note for note in made.notes if "alike" in note]
    if filled.any() or suppressed.any():
        (note,) = found
        assert note.startswith(f"{filled.sum()} missing cell")
        assert f"filled, {suppressed.sum()} others suppressed" in note
    else:
        assert not found


def test_the_check_sees_broken_maskings():
    values = holes(lines("lognormal", 60, 3), 0.2)
    groups = np.arange(60) % 12
    assert not fails(check_alike, publish(values, groups, 3, gaps="alike"), groups, 3)
    for gaps in ("merge", "suppress"):
        assert fails(check_alike, publish(values, groups, 3, gaps=gaps), groups, 3)
    assert fails(check_alike, publish(values, groups, 3, gaps="alike"), np.where(groups == 1, 0, groups), 3)


def test_a_limit_on_linkage_holds_for_incomplete_files():
    values = holes(lines("lognormal", 120, 4), 0.15)
    for name in GROUPED:
        masked = sdc.mask(values, name, k=6)
        found = sdc.evaluate(values, masked, made_by=sdc.Method(name, k=6), metrics="linkage")
        assert found["linkage"] <= 1 / 6 + 1e-12


# --- strata, units, codes ---


def test_strata_have_groups_and_group_sizes_of_their_own():
    values = holes(lines("lognormal", 60, 2), 0.2)
    frame = pl.DataFrame(values, schema=["a", "b"]).fill_nan(None).with_columns(s=pl.Series([0, 1] * 30))
    masked = sdc.Microdata(frame, by="s", columns=["a", "b"]).mask("mdav", k={"0": 3, "1": 7}, groups="g")
    for stratum, k in ((0, 3), (1, 7)):
        part = masked.filter(s=stratum)
        sizes = part.group_by("g").agg(pl.len(), pl.struct("a", "b").n_unique().alias("different"))
        assert sizes["len"].min() >= k
        assert sizes["different"].max() == 1


def test_the_value_of_one_household_fills_no_group():
    unit = np.repeat(np.arange(12), 4)
    income = np.where(unit % 3 == 0, 100.0 + unit, NAN)  # one of three households of a group has a value
    frame = pl.DataFrame({"unit": unit, "size": unit // 3 * 10.0 + unit % 3, "income": income}).fill_nan(None)
    masked = sdc.Microdata(frame, unit="unit", columns=["size", "income"]).mask("mdav", k=3, groups="g")
    holders = frame.with_columns(g=masked["g"]).drop_nulls("income").group_by("g")
    few = holders.agg(pl.col("unit").n_unique()).filter(pl.col("unit") < 3)["g"]
    assert few.len()
    assert masked.filter(pl.col("g").is_in(few.implode()))["income"].null_count() == few.len() * 12


def coded(seed=1):
    """A table whose missing cells have two codes, or none."""
    rng = np.random.default_rng(seed)
    values = rng.lognormal(3, size=(60, 3)).round(1)
    return np.where(rng.random((60, 3)) < 0.2, rng.choice([-9.0, -8.0], (60, 3)), values)


@pytest.mark.parametrize("name", GROUPED)
def test_codes_tell_no_records_apart(name):
    values = coded()
    masked = sdc.Microdata(values, na=[-9, -8]).mask(name, k=4)
    assert not np.isin(masked, [-9, -8]).any()
    groups = sdc.METHODS[name].groups(np.where(values < 0, NAN, values), k=4)
    check_alike(masked, groups, 4)
    kept = sdc.Microdata(values, na=[-9, -8]).mask(name, k=4, gaps="merge")
    np.testing.assert_array_equal(kept[values < 0], values[values < 0])
    np.testing.assert_array_equal(sdc.Microdata(values, na=[-9, -8]).mask(name, k=1), values)


def test_single_columns_keep_their_gaps_and_codes():
    values = coded()
    for name in ("individual_ranking", "optimal_univariate"):
        masked = sdc.Microdata(values, na=[-9, -8]).mask(name, k=4)
        np.testing.assert_array_equal(masked[values < 0], values[values < 0])
        assert sdc.METHODS[name].alike is None
