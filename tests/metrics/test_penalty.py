"""The penalty of suppressed cells where hardly a record is left to compare."""

import math

import pytest

import naive
import sdckit as sdc

NAN = float("nan")
RANKS = [sdc.brmae, sdc.brmse]


@pytest.mark.parametrize("metric", RANKS)
def test_a_single_record_that_is_left_has_lost_nothing(metric):
    x, y = [1.0, 2.0, 3.0, 4.0], [1.0, NAN, NAN, NAN]
    assert math.isnan(metric(x, y))
    assert metric(x, y, missing="penalise") == naive.penalised(0.0, 1, 3) == 0.75
    weights = [5.0, 1.0, 1.0, 3.0]
    assert metric(x, y, missing="penalise", weights=weights) == naive.penalised(0.0, 5, 5) == 0.5


@pytest.mark.parametrize("metric", RANKS)
def test_two_records_that_are_left_are_compared(metric):
    x, y = [1.0, 2.0, 3.0, 4.0], [2.0, 1.0, NAN, NAN]
    assert metric(x, y, missing="penalise") == naive.penalised(1.0, 2, 2) == 1.0
    assert metric(x, [1.0, 2.0, NAN, NAN], missing="penalise") == naive.penalised(0.0, 2, 2) == 0.5


@pytest.mark.parametrize("metric", RANKS)
def test_a_single_record_without_a_suppressed_one_has_no_value(metric):
    assert math.isnan(metric([1.0, NAN, NAN], [1.0, 2.0, 3.0], missing="penalise"))
