"""Calibrated files: totals of the original hold, and those that would give a record away are refused."""

import numpy as np
import polars as pl
import pytest

import naive_calibration as naive
import sdckit as sdc
from calls import called
from cases import each

ROLES = {"key": "firm", "by": "sector", "weights": "weight", "decimals": "original", "rng": 1}


@pytest.fixture(scope="module")
def original():
    return sdc.load_sample()


@pytest.fixture(scope="module")
def masked(original):
    return called("mask", original, "noise", percent=30, rules="discover", **ROLES)


def totals_by(data, column, by):
    cells = zip(data[column].to_list(), data[by].to_list(), strict=True)
    found = {}
    for cell, domain in cells:
        if cell is not None:
            found[domain] = found.get(domain, 0) + round(100 * cell)
    return found


def small(values, sectors="a", **more):
    """A file of one column, x, with a sector for each record."""
    n = len(values)
    return pl.DataFrame({"x": np.array(values, float), "sector": list((sectors * n)[:n]), **more})


def test_totals_by_domain_hold_to_the_last_digit_and_rules_still_do(original, masked):
    texts = ["total(turnover) by sector", "total(wages) by sector", "total(export_sales)"]
    found = sdc.calibrate(original, masked, texts, rules="discover", rng=1)
    for column in ("turnover", "wages"):
        assert totals_by(found.data, column, "sector") == totals_by(original, column, "sector")
        assert totals_by(masked, column, "sector") != totals_by(original, column, "sector")
    sums = found.data["turnover"] - found.data["domestic_sales"] - found.data["export_sales"]
    assert sums.abs().max() < 1e-9
    assert found.table["missed"].to_list() == [0.0] * 11
    assert found.data.columns == masked.columns
    assert found.data.schema == masked.schema
    assert found.data["wages"].is_null().to_list() == masked["wages"].is_null().to_list()
    assert found.notes[0].startswith("declared totals hold (total(turnover) by sector; ")
    estimates = sdc.estimates(original, found.data, texts)
    assert estimates.table["change"].abs().max() < 1e-12


def test_rows_need_no_order_and_other_columns_stay(original, masked):
    shuffled = masked.sample(fraction=1.0, shuffle=True, seed=3)
    found = sdc.calibrate(original, shuffled.to_pandas(), "total(turnover)", by="sector", rng=1)
    assert totals_by(pl.DataFrame(found.data), "turnover", "sector") == totals_by(
        original, "turnover", "sector"
    )
    others = [name for name in masked.columns if name != "turnover"]
    assert pl.DataFrame(found.data[others]).equals(pl.DataFrame(shuffled.to_pandas()[others]))


def test_weighted_totals_hold_or_the_difference_is_said(original, masked):
    found = sdc.calibrate(original, masked, "total(turnover) by sector", weights="weight", rng=1)
    change = sdc.estimates(original, found.data, "total(turnover) by sector", weights="weight").table[
        "change"
    ]
    assert change.abs().max() < 1e-9
    lone = small([10.0] * 12, weight=[3.0] * 12)
    file = small([*[10.0] * 11, 7.0], weight=[3.5] * 12)
    missed = sdc.calibrate(lone, file, "total(x)", weights="weight", rng=1)
    assert missed.table["missed"].to_list() == [0.5]  # 103 steps of weight 3.5 are nearest to 360
    assert missed.notes[1].startswith("1 declared total could not be met exactly on the grid")


def test_codes_of_missing_cells_stay():
    values = [*range(20, 40), -9, -9]
    file = small([*range(22, 41), 19, -9, -9])
    found = sdc.calibrate(small(values), file, "total(x)", na=-9, rng=1)
    assert found.data["x"].to_list()[-2:] == [-9, -9]
    assert found.data["x"][:20].sum() == sum(range(20, 40))


def test_an_intruder_who_knows_the_others_computes_the_last_record():
    data = small([5, 8, 9, 20, 40, 31, 17, 12, 11])
    total = sdc.estimates(data, data, "total(x)").table["original"][0]
    assert naive.last_record(total, data["x"][1:]) == data["x"][0]
    with pytest.raises(ValueError, match=r"total\(x\) would give a record away: fewer than 10 records"):
        sdc.calibrate(data, data, "total(x)")


def test_what_the_second_largest_contributor_can_compute_is_refused():
    rng = np.random.default_rng(2)
    seen = []
    for _ in range(60):
        data = small(np.round(np.exp(rng.normal(3, rng.uniform(0.2, 4), 12)), 1) + 0.1)
        largest, guess = naive.largest_seen_by_second(data["x"].to_list())
        seen.append(guess - largest < 0.1 * largest)
        if seen[-1]:
            with pytest.raises(ValueError, match="one of them dominates it"):
                sdc.calibrate(data, data, "total(x)")
    assert 10 < sum(seen) < 50


def test_the_records_of_a_unit_count_as_one():
    data = small(range(50, 90), firm=list(range(8)) * 5)
    assert sdc.calibrate(data, data, "total(x)").table["missed"].to_list() == [0.0]
    with pytest.raises(ValueError, match="fewer than 10 records contribute"):
        sdc.calibrate(data, data, "total(x)", unit="firm")


def test_a_file_with_the_totals_stays_as_it_is():
    data = pl.DataFrame({"a": np.random.default_rng(1).exponential(1, 40)}).with_columns(
        b=1 + 2 * pl.col("a")
    )
    found = sdc.calibrate(data, data, ["total(a)", "total(b)"], rules=["a <= b"])
    assert found.data.equals(data)
    assert found.notes == ("declared totals hold (total(a); total(b)): 0 of 80 masked cells were changed",)


def test_differences_of_totals_are_refused_where_they_tell_of_few_records():
    values = list(range(50, 90))
    data = small(values, size=[None] * 3 + ["small"] * 37)
    safe = small(values, size=[None] * 12 + ["small"] * 28)
    both = ["total(x)", "total(x) by size"]
    total, part = (sum(values), sum(values[3:]))
    assert total - part == sum(values[:3])  # what an intruder computes
    with pytest.raises(
        ValueError, match=r"total\(x\) and total\(x\) by size together would give a record away"
    ):
        sdc.calibrate(data, data, both)
    assert sdc.calibrate(safe, safe, both).table["missed"].to_list() == [0.0, 0.0]


def test_totals_that_follow_by_a_rule_are_refused_where_one_record_dominates():
    parts = np.arange(50.0, 80.0)
    other = np.array([1000.0, *[1.0] * 29])
    data = pl.DataFrame({"t": parts + other, "a": parts, "b": other})
    assert sdc.calibrate(data, data, ["total(t)", "total(a)"]).notes
    with pytest.raises(ValueError, match=r"the total of b, which follows by the rule t = a \+ b, would give"):
        sdc.calibrate(data, data, ["total(t)", "total(a)"], rules=["t = a + b"])


def test_totals_that_follow_by_two_rules_are_refused_too():
    parts, other = np.arange(50.0, 80.0), np.array([1000.0, *[1.0] * 29])
    data = pl.DataFrame({"a": parts + other, "b": parts + 7, "c": parts, "d": other})
    data = data.with_columns(t=pl.col("a") + pl.col("b"))
    texts, rules = ["total(t)", "total(b)", "total(c)"], ["t = a + b", "a = c + d"]
    assert sdc.calibrate(data, data, texts[:2], rules=rules).notes
    with pytest.raises(ValueError, match=r"the total of d, which follows by the rule a = c \+ d, would give"):
        sdc.calibrate(data, data, texts, rules=rules)


@each(
    ("change", "totals", "options", "message"),
    [
        ({}, "mean(x)", {}, r"'mean\(x\)' is no total; calibrate takes totals"),
        ({}, "total(y)", {}, "unknown column 'y'"),
        ({}, [], {}, "no estimate is named"),
        ({"sector": ["b"] * 30}, "total(x) by sector", {}, "data have no domain"),
        ({"x": [None] * 30}, "total(x)", {}, r"total\(x\) cannot hold"),
        ({"x": [1.0] * 30}, "total(x)", {}, r"total\(x\) cannot hold"),
        ({}, "total(x)", {"columns": ["sector"]}, "column 'x' has a declared total and is not masked"),
        ({}, "total(x)", {"rules": ["x <= 60"]}, "the masked file breaks the rule x <= 60 in 19 records"),
        ({}, "total(x)", {"weights": "sector"}, "not numeric"),
    ],
)
def test_bad_totals_get_one_clear_line(change, totals, options, message):
    data = small(range(50, 80))
    file = data.with_columns(
        **{name: pl.Series(cells, dtype=data[name].dtype) for name, cells in change.items()}
    )
    with pytest.raises((ValueError, TypeError), match=message) as error:
        sdc.calibrate(data, file, totals, **options)
    assert "\n" not in str(error.value)
