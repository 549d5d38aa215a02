"""Published columns that the intruder does not know: they tell as much as follows from what he knows."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc


def firms(n=600):
    rng = np.random.default_rng(4)
    amounts = np.exp(rng.normal(size=(n, 3)) + 0.5 * rng.normal(size=(n, 1))).round(3)
    table = pl.DataFrame({f"x{j}": amounts[:, j] for j in range(3)})
    return table.with_columns(region=pl.Series(rng.choice(["north", "south"], n)))


def printed(table, metric="linkage", **roles):
    masked = sdc.Microdata(table, columns=["x0", "x1", "x2"], by="region", **roles).mask("mdav", k=10)
    found = sdc.Microdata(table, columns=["x0", "x1", "x2"], by="region", **roles).evaluate(
        masked, made_by=sdc.Method("mdav", stratified=True, k=10), metrics=metric
    )
    return masked, found[metric]


@pytest.mark.parametrize("classes", [2, 8, 40])
def test_classes_that_follow_from_nothing_tell_nothing(classes):
    table = firms()
    drawn = np.random.default_rng(classes).integers(0, classes, len(table))
    for role in ("unknown", "confidential"):
        masked, linkage = printed(table.with_columns(w=pl.Series(drawn)), untouched="w", **{role: "w"})
        assert linkage == pytest.approx(masked.drop("w").n_unique() / len(table))


def test_a_weight_of_each_region_tells_nothing():
    table = firms()
    weight = table["region"].replace_strict({"north": 4.5, "south": 9.8})
    masked, linkage = printed(table.with_columns(w=weight), weights="w", unknown="w")
    assert linkage == pytest.approx(masked.drop("w").n_unique() / len(table))


def test_noise_that_follows_from_nothing_tells_nothing():
    table = firms()
    drawn = np.random.default_rng(9).normal(size=len(table))
    masked, linkage = printed(table.with_columns(w=pl.Series(drawn)), untouched="w", unknown="w")
    assert linkage == pytest.approx(masked.drop("w").n_unique() / len(table))


def test_classes_of_a_size_split_the_groups():
    """Who knows the rule of the classes guesses among the members of a group that share one."""
    table = firms()
    sizes = np.searchsorted(np.quantile(table["x0"], [0.3, 0.6, 0.9]), table["x0"])
    masked, linkage = printed(table.with_columns(w=pl.Series(sizes)), untouched="w", unknown="w")
    assert linkage >= 0.95 * masked.n_unique() / len(table)


def test_a_large_file_with_nothing_to_look_records_up_by():
    """Only a column with a few wrong codes is known: no distance comes near what it tells."""
    rng = np.random.default_rng(8)
    table = pl.DataFrame({"x": rng.lognormal(size=3200), "region": rng.choice(["north", "south"], 3200)})
    wrong = np.where(rng.random(3200) < 0.03, "north", table["region"].to_numpy())
    masked = table.with_columns(x=pl.Series(rng.lognormal(size=3200)), region=pl.Series(wrong))
    roles = {"columns": ["x"], "untouched": "region", "known": "region"}
    assert 0 < sdc.Microdata(table, **roles).evaluate(masked, metrics="linkage")["linkage"] < 0.01


def test_suppression_alone_leaves_every_record_found():
    table = firms(200).drop("region")
    holes = np.random.default_rng(1).random((200, 3)) < 0.1
    masked = pl.DataFrame({name: table[name].to_numpy().copy() for name in table.columns})
    masked = masked.with_columns(
        pl.Series(name, np.where(holes[:, j], np.nan, masked[name])).fill_nan(None)
        for j, name in enumerate(masked.columns)
    )
    found = sdc.evaluate(table, masked, metrics=["linkage", "linkage_sure"])
    assert found["linkage"] > 0.98
    assert found["linkage_sure"] > 0.95
