"""Releases whose declared totals hold: measured as they are handed out, and as an intruder can undo them."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import naive_calibration as naive
import sdckit as sdc
from calls import called
from sdckit.estimation.guards import EXACT, public_rows
from sdckit.evaluation.measure import NOT_UNDONE
from sdckit.record.replay import replay
from sdckit.record.store import Store
from sdckit.selection.calibration import UNDONE, with_larger_risks

COLUMNS = ["turnover", "wages", "materials"]
TOTALS = ["total(turnover) by sector", "total(wages) by sector"]
ENTROPY = bytes(range(32))
OPTIONS = {
    "columns": COLUMNS,
    "key": "firm",
    "known": [*COLUMNS, "sector"],
    "rules": ["materials >= 0"],
    "metrics": ["brmae", "linkage"],
    "entropy": ENTROPY,
}


@pytest.fixture(scope="module")
def original():
    return sdc.load_sample().select("firm", "sector", *COLUMNS)[:400]


def release(original, method, **more):
    return called("release", original, method, **OPTIONS | more)


def sums(data, name="turnover"):
    return dict(data.group_by("sector").agg(pl.col(name).round(1).sum().round(6)).rows())


@pytest.fixture(scope="module")
def swapped(original):
    return release(original, "rank_swap", p=0.1, calibrate=TOTALS)


def test_what_is_handed_out_has_the_totals_and_is_what_is_measured(original, swapped):
    plain = release(original, "rank_swap", p=0.1)
    for name in ("turnover", "wages"):
        assert sums(swapped.data, name) == sums(original, name)
        assert sums(plain.data, name) != sums(original, name)
    assert swapped.data["materials"].equals(plain.data["materials"])
    assert (swapped.rows == plain.rows).all()
    again = sdc.Microdata(original, key="firm", columns=COLUMNS).evaluate(swapped, metrics="brmae")
    assert swapped.evaluation["brmae"] == again["brmae"] != plain.evaluation["brmae"]
    assert any(note.startswith("declared totals hold") for note in swapped.evaluation.notes)


@pytest.mark.long
def test_an_intruder_can_undo_a_calibration_so_that_the_risk_is_not_below_that_without_it(original, swapped):
    plain = release(original, "rank_swap", p=0.1)
    here = (pl.col("sector") == "trade").arg_true
    rows = swapped.data.select(here()).to_series()
    cells, before = (one.data["turnover"][rows].to_numpy() for one in (swapped, plain))
    factor = naive.undone_factor(cells.tolist(), original["turnover"].to_list())
    inside = cells < original["turnover"].max()
    assert abs(factor - 1) > 0.001
    assert np.mean(np.rint(cells / factor)[inside] == before[inside]) > 0.9
    alone = sdc.Microdata(original, key="firm", columns=COLUMNS, known=OPTIONS["known"]).evaluate(
        swapped, metrics="linkage"
    )
    assert swapped.evaluation["linkage"] == plain.evaluation["linkage"] > alone["linkage"]
    assert swapped.evaluation.meaning["linkage"].startswith(UNDONE)
    assert NOT_UNDONE in alone.notes
    assert NOT_UNDONE not in swapped.evaluation.notes


@pytest.mark.long
def test_limits_count_the_risk_of_the_undone_file(original, swapped):
    limit = swapped.evaluation["linkage"] - 0.01
    with pytest.raises(sdc.LimitsMissed):
        release(original, "rank_swap", p=0.1, calibrate=TOTALS, max_risk={"linkage": limit}, tries=1)


@pytest.mark.long
def test_the_larger_risk_is_taken_with_all_its_figures(original):
    options = {"intruders": {"press": {"known": ["turnover"]}}, "calibrate": "total(turnover)"}
    found = release(original, "noise", percent=30, **options).evaluation
    risky = replace(
        found,
        table=found.table.with_columns(value=pl.lit(0.9), ci_high=pl.lit(None, pl.Float64)),
        scenarios=found.scenarios.with_columns(value=pl.lit(0.95)),
    )
    both = with_larger_risks(found, risky)
    assert (both["linkage"], both["linkage (press)"]) == (0.9, 0.95)
    assert both["brmae"] == found["brmae"]
    assert both.table["metric"].to_list() == found.table["metric"].to_list()
    same = with_larger_risks(risky, found)
    assert same.table.equals(risky.table)


@pytest.mark.long
def test_a_calibrated_release_is_made_again_from_its_record(original, tmp_path):
    data, output, private = tmp_path / "data.csv", tmp_path / "public.csv", tmp_path / "record"
    original.write_csv(data)
    made = release(pl.read_csv(data), "mdav", k=5, calibrate=TOTALS)
    name = made.publish(output, private)
    store = Store(private)
    entry = store.read(name)
    assert entry.calibrate == TOTALS
    replay(store, name, data, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == output.read_bytes()
    assert sums(pl.read_csv(output)) == sums(original)


def test_classes_beside_exact_totals_give_no_small_domain_away():
    """The exact total less a domain whose class is told would tell the small rest to within ten percent."""
    rng = np.random.default_rng(3)
    small = np.arange(207) >= 201  # in whole groups, so that no domain moves far
    sales = np.where(small, 600.0, 100.0).round() + rng.integers(-9, 10, 207)
    data = pl.DataFrame({"size": np.where(small, "b", "a"), "sales": sales})
    texts = ["total(sales)", "total(sales) by size"]
    found = {}
    for exact in ((), ("total(sales)",)):
        made = sdc.Microdata(data, columns="sales", untouched="size", estimates=texts).release(
            "mdav", k=3, metrics="estimates", calibrate=exact, entropy=ENTROPY
        )
        found[exact] = {(row.estimate, row.domain): row for row in public_rows(made.evaluation.estimates)}
    told = found[()]["total(sales) by size", "a"]
    assert told.change is not None
    rest = sales.sum() - told.masked
    assert told.change.high / 100 * told.masked < 0.1 * rest  # what is left of the exact total is told by it
    hidden = found["total(sales)",]
    assert (
        hidden["total(sales) by size", "a"].withheld == hidden["total(sales) by size", "a"].withheld == EXACT
    )
    assert not hidden["total(sales)", "all"].withheld


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"calibrate": "total(turnover) by firm"}, "needs column 'firm', which is not published"),
        ({"calibrate": "mean(turnover)"}, "is no total"),
        ({"calibrate": "total(sales)"}, "unknown column 'sales'"),
        (
            {"calibrate": "total(wages)", "columns": ["turnover"]},
            "'wages' has a declared total and is not masked",
        ),
        ({"calibrate": "total(turnover) by wages", "columns": ["turnover"]}, "would give a record away"),
        ({"calibrate": "total(turnover)", "weights": np.ones(400)}, "needs the weights in a column"),
    ],
)
def test_bad_totals_are_refused_before_any_work(original, options, message):
    with pytest.raises(ValueError, match=message) as error:
        release(original, "mdav", k=5, **options)
    assert "\n" not in str(error.value)
