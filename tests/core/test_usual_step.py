"""The step between the usual values of a column: shared by 95 % of them, decided by no single record."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_grid
import sdckit as sdc
from cases import each
from sdckit.core.table import Step, usual_step

RNG = np.random.default_rng(12)
WHOLE = RNG.integers(1, 400, 1000)


def size(step):
    return Fraction(step.multiple) / Fraction(10) ** step.decimals


def with_others(values, share, others):
    """The values, the first share of which are other ones."""
    found = np.array(values, np.float64)
    count = int(share * found.size)
    found[:count] = others[:count]
    return found


ODD = RNG.integers(1, 40_000, 1000) * 2 + 1  # whole, but not round
COLUMNS = {
    "hundreds": (WHOLE * 100, 100),
    "hundreds and a few others": (with_others(WHOLE * 100, 0.05, ODD), 100),
    "hundreds and too many others": (with_others(WHOLE * 100, 0.08, ODD), 1),
    "one record with more decimals": (with_others(WHOLE / 10, 0.001, [0.123456]), 0.1),
    "millions": (WHOLE * 1_000_000, 1_000_000),
    "quarters": (WHOLE / 4, 0.25),
    "halves": (WHOLE / 2, 0.5),
    "eighths": (WHOLE / 8, 0.125),
    "dozens": (WHOLE * 12, 12),
    "ages in bands of five": (WHOLE % 18 * 5, 5),
    "whole numbers": (WHOLE, 1),
    "cents": ((WHOLE * 7) / 100, 0.01),
    "mostly zeros": (with_others(np.zeros(1000), 0.04, ODD), 1),
    "mostly one value": (with_others(np.full(1000, 100.0), 0.04, WHOLE), 1),
    "few values": ([100.0, 200.0, 300.0] * 30, 1),
    "negative": (-WHOLE * 50, 50),
    "missing cells": (with_others(WHOLE * 100, 0.3, np.full(1000, np.nan)), 100),
    "no value": (np.full(30, np.nan), 1),
    "zeros": (np.zeros(30), 1),
    "no grid": (RNG.normal(size=1000), Fraction(1, 10**15)),
    "beyond whole numbers": (WHOLE * 2.0**54, 1),
}


@each("name", COLUMNS)
def test_steps_of_columns(name):
    values, expected = COLUMNS[name]
    assert size(usual_step(np.asarray(values, np.float64))) == Fraction(str(expected))


@settings(max_examples=30)
@given(
    st.lists(st.integers(-60, 60), min_size=1, max_size=60),
    st.sampled_from([1, 2, 5, 12, 25, 100, 125, 0.5, 0.25, 0.1]),
    st.lists(st.floats(-1e3, 1e3).map(lambda value: round(value, 3)), max_size=3),
)
def test_the_step_is_that_of_the_slow_twin(counts, unit, others):
    values = [float(count * Fraction(str(unit))) for count in counts] + others
    assert size(usual_step(np.array(values))) == naive_grid.usual_step(values)


@settings(max_examples=30)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.integers(-3, 4),
    st.sampled_from([1, 2, 5, 12, 25, 125]),
)
def test_rounding_goes_to_the_nearest_multiple_and_stays_there(values, decimals, multiple):
    step, values = Step(decimals, multiple), np.array(values)
    found = step.rounded(values)
    np.testing.assert_array_equal(step.rounded(found), found)
    assert (np.abs(found - values) <= float(size(step)) / 2 * (1 + 1e-9)).all()
    assert all(naive_grid.is_multiple(value, size(step)) for value in found.tolist())
    assert not np.signbit(found[found == 0]).any() or (multiple == 1 and decimals >= 0)


def test_what_is_missing_or_too_large_stays():
    values = np.array([np.nan, 2.0**60 + 2**20, -(2.0**70), 149.0])
    np.testing.assert_array_equal(Step(-2).rounded(values), [np.nan, *values[1:3], 100.0])


# --- what is published ---


def survey():
    """Income in hundreds but for a few, rent in quarters, their sum, and a share that is mostly 100."""
    rng = np.random.default_rng(2)
    income, rent = with_others(WHOLE * 100, 0.03, ODD), WHOLE[::-1] / 4
    share = with_others(np.full(1000, 100.0), 0.04, rng.integers(1, 100, 1000))
    return pl.DataFrame({"income": income, "rent": rent, "both": income + rent, "share": share})


@pytest.mark.parametrize("method", ["noise", "mdav", "rank_swap"])
def test_released_values_have_the_usual_step(method):
    found = sdc.release(survey(), method, metrics="brmae").data
    assert (found["income"] % 100 == 0).all()
    assert (found["rent"] % 0.25 == 0).all()
    assert (found["share"] % 1 == 0).all()
    assert (found["share"] % 100 != 0).any()
    masked = sdc.mask(survey(), method, decimals="original", rng=1)
    assert (masked["income"] % 100 == 0).all()


def test_columns_of_edit_rules_keep_all_decimals_so_that_sums_hold():
    release = sdc.Microdata(survey(), rules="both = income + rent").release("noise", metrics="brmae")
    exact = [[Fraction(repr(cell)) for cell in release.data[name]] for name in ("income", "rent", "both")]
    assert all(a + b == total for a, b, total in zip(*exact, strict=True))
    assert (release.data["income"] % 100 != 0).any()


def test_a_search_judges_settings_with_the_step_of_the_release():
    choice = sdc.recommend(
        survey(), max_risk={"linkage": 1}, plan={"mdav": {"k": [3, 5]}}, decimals="original", workers=1
    )
    release = choice.release()
    assert (release.data["income"] % 100 == 0).all()
    assert release.evaluation["brmae"] == choice.point.values["brmae"]
