"""Functions of a user on both files, with intervals by the bootstrap."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc


@pytest.fixture(scope="module")
def panel():
    """40 units of 5 records that are nearly the same within units."""
    rng = np.random.default_rng(5)
    level = np.repeat(rng.normal(0, 1, 40), 5)
    return pl.DataFrame({"x": level + rng.normal(0, 0.1, 200), "unit": np.repeat(np.arange(40), 5)})


def mean_of_x(data):
    return data["x"].mean()


@pytest.mark.long
def test_draws_follow_from_the_seed_and_errors_are_those_of_the_mean(panel):
    first, again, other = (
        sdc.compare(panel, panel, mean_of_x, resamples=300, rng=seed).table for seed in (1, 1, 2)
    )
    assert first.equals(again)
    assert not first.equals(other)
    (row,) = first.rows(named=True)
    assert row["estimate"] == "mean_of_x"
    assert (row["change"], row["overlap"]) == (0.0, 1.0)
    assert row["se_original"] == pytest.approx(panel["x"].std() / np.sqrt(200), rel=0.2)


@pytest.mark.long
def test_units_are_drawn_as_a_whole(panel):
    (row,) = sdc.compare(panel, panel, mean_of_x, unit="unit", resamples=300, rng=1).table.rows(named=True)
    linear = sdc.estimates(panel, panel, "mean(x)", unit="unit").table["se_original"][0]
    assert row["se_original"] == pytest.approx(linear, rel=0.2)
    sizes = []
    sdc.compare(
        panel, panel, lambda data: sizes.append(data["unit"].value_counts()["count"]) or 0.0, unit="unit"
    )
    assert all((size % 5 == 0).all() and size.sum() == 200 for size in sizes)


def test_strata_keep_their_numbers_of_records(panel):
    data = panel.with_columns(s=pl.when(pl.col("unit") < 3).then(pl.lit("a")).otherwise(pl.lit("b")))
    seen = []
    sdc.compare(
        data, data, lambda one: float(seen.append((one["s"] == "a").sum()) or 0), strata="s", resamples=5
    )
    assert set(seen) == {15}


def test_a_function_may_return_several_numbers_and_take_any_table(panel):
    def both(data):
        return {"mean": data["x"].mean(), "none": None}

    found = sdc.compare(panel.to_pandas(), panel.to_pandas(), both, resamples=20, rng=1).table
    assert found["estimate"].to_list() == ["mean", "none"]
    assert found["reason"].to_list() == [None, "the function has no value"]


def test_bad_functions_get_one_line(panel):
    with pytest.raises(TypeError, match="function is 3; give a function of a table"):
        sdc.compare(panel, panel, 3)
    with pytest.raises(TypeError, match="returned str 'a' for 'lambda'"):
        sdc.compare(panel, panel, lambda _: "a")
    with pytest.raises(ValueError, match="resamples is 0"):
        sdc.compare(panel, panel, mean_of_x, resamples=0)
