"""Units by the law: rows are aligned by what is published unmasked, and paired at best where nothing is."""

from itertools import permutations

import numpy as np
import polars as pl
import pytest

import attacker
import sdckit as sdc
from sdckit.metrics.pair import Pair, pair_of
from sdckit.risk.attribute_disclosure import keep_columns
from sdckit.risk.units import ALL_ROWS, _best_pairing, read_units

COLUMNS = ["a", "b"]


def panel(firms=40, months=6, seed=1):
    """Firms of nearly the same size, each with its own good and bad months, rows in any order."""
    rng = np.random.default_rng(seed)
    values = np.exp(0.15 * rng.normal(size=(firms, 1, 2)) + 0.8 * rng.normal(size=(firms, months, 2)))
    table = pl.DataFrame(values.reshape(-1, 2), schema=COLUMNS).with_columns(
        firm=pl.Series(np.repeat(np.arange(firms), months)),
        month=pl.Series(np.tile(np.arange(months), firms)),
    )
    return table[rng.permutation(len(table)).tolist()]


def measured(table, masked, percent=150, **roles):
    return sdc.Microdata(table, columns=COLUMNS, unit="firm", **roles).evaluate(
        masked,
        made_by=sdc.Method("noise", percent=percent),
        metrics=["linkage", "linkage_units", "linkage_sure"],
    )


def test_months_align_the_rows_of_a_firm():
    found, expected = [], []
    table = panel()
    x, firm, month = table.select(COLUMNS).to_numpy(), table["firm"].to_numpy(), table["month"].to_numpy()
    for seed in range(3):
        masked = sdc.Microdata(table, columns=COLUMNS, unit="firm", untouched="month").mask(
            "noise", percent=150, rng=seed
        )
        result = measured(table, masked, untouched="month")
        found.append(result["linkage_units"])
        assert (
            result["linkage"] >= result.parts["linkage_units"]["unit_to_unit"] - 1e-9
        )  # rows of found firms
        rows = attacker.noise(x, masked.select(COLUMNS).to_numpy(), 150)
        scores = attacker.units_by_month(rows, firm, month, firm, month)
        expected.append(attacker.rows_in_found_units(scores, np.full(40, 6)))
    assert np.mean(found) >= 0.95 * np.mean(expected)
    assert np.mean(expected) > 0.3


def test_firms_are_found_less_often_where_nothing_aligns_their_rows():
    table = panel()
    masked = sdc.Microdata(table, columns=COLUMNS, unit="firm", untouched="month").mask(
        "noise", percent=150, rng=1
    )
    told = measured(table, masked, untouched="month")
    kept = measured(table.drop("month"), masked.drop("month"))
    assert told["linkage_units"] > kept["linkage_units"] > 1 / 40


@pytest.mark.long
@pytest.mark.parametrize("aligned", [True, False])
def test_firms_of_a_large_file_are_found_by_all_their_rows_together(aligned, monkeypatch):
    roles = {"untouched": "month"} if aligned else {}
    table = panel(300) if aligned else panel(300).drop("month")
    percent = 60 if aligned else 30
    masked = sdc.Microdata(table, columns=COLUMNS, unit="firm", **roles).mask("noise", percent=percent, rng=1)
    found = []
    for most in (ALL_ROWS, 0):
        monkeypatch.setattr("sdckit.risk.units.ALL_ROWS", most)
        found.append(measured(table, masked, percent, **roles).parts["linkage_units"]["unit_to_unit"])
    assert found[0] > 0.5
    assert found[1] >= 0.95 * found[0]


def test_firms_of_an_unchanged_file_are_all_found():
    table = panel(20, 3)
    found = sdc.Microdata(table, columns=COLUMNS, unit="firm", untouched="month").evaluate(
        table, metrics=["linkage_units", "linkage_sure"]
    )
    assert found["linkage_units"] == found["linkage_sure"] == 1.0


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_best_pairing_of_rows_is_that_of_trying_all(size):
    scores = np.random.default_rng(size).normal(size=(4 * size, 4 * size))

    class Reader:
        def likelihood(self, rows, originals):
            return scores[rows, originals]

    first, other = np.repeat(np.arange(4), 4) * size, np.tile(np.arange(4), 4) * size
    found = _best_pairing(Reader(), *(start[:, None] + np.arange(size) for start in (first, other)))
    expected = [
        max(sum(scores[a + k, b + way[k]] for k in range(size)) for way in permutations(range(size)))
        for a, b in zip(first, other, strict=True)
    ]
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(("method", "k"), [("mdav", 12), ("individual_ranking", 20)])
def test_rows_of_a_firm_are_found_together_where_nothing_is_drawn(method, k):
    table = panel()
    masked = sdc.Microdata(table, columns=COLUMNS, unit="firm", untouched="month").mask(method, k=k)
    profiles = {}  # he masks the file himself, and compares all months of a firm
    for firm, month, *cells in masked.select("firm", "month", *COLUMNS).iter_rows():
        profiles.setdefault(firm, {})[month] = cells
    alike = [sum(other == profiles[firm] for other in profiles.values()) for firm in masked["firm"]]
    roles = {"columns": COLUMNS, "unit": "firm", "untouched": "month"}
    metrics = ["linkage", "linkage_sure"]
    result = sdc.Microdata(table, **roles).evaluate(masked, made_by=sdc.Method(method, k=k), metrics=metrics)
    assert result["linkage"] >= np.mean([1 / count for count in alike]) - 1e-12
    assert result["linkage_sure"] == pytest.approx(np.mean([count == 1 for count in alike]))


def hidden(table, *, keep_order=False, **roles):
    """Measure a noised file without the number of the firm, its rows kept in place or known by a key."""
    roles = {"columns": COLUMNS, "drop": "firm", "untouched": "month"} | roles
    if not keep_order:
        table, roles = table.with_row_index("row"), roles | {"key": "row"}
    masked = sdc.Microdata(table, **roles).mask("noise", percent=150, rng=1)
    if not keep_order:
        masked = masked.with_columns(table["row"])
    metrics, parameters = ["linkage", "linkage_sure"], {"percent": 150}
    return sdc.Microdata(table, **roles).evaluate(
        masked, made_by=sdc.Method("noise", **parameters), metrics=metrics
    )


def with_weight(table, weights):
    """Give each firm a weight, which the intruder does not know."""
    return table.with_columns(weight=pl.Series(np.asarray(weights)[table["firm"].to_numpy()]))


def test_rows_of_a_firm_that_share_a_weight_are_read_together():
    table, roles = panel(), {"weights": "weight", "unknown": "weight"}
    alone = hidden(with_weight(table, np.ones(40)), **roles)
    shown = hidden(with_weight(table, 1 + np.arange(40) / 7), **roles)
    assert shown["linkage"] > 2 * alone["linkage"]
    assert shown["linkage_sure"] > 2 * alone["linkage_sure"]
    assert "drop or mask weight, or name firm as unit" in " ".join(shown.notes)
    assert "firm" not in " ".join(alone.notes)


def test_rows_of_a_firm_beside_each_other_are_read_together():
    shuffled, sorted_ = (hidden(table, keep_order=True) for table in (panel(), panel().sort("firm", "month")))
    assert sorted_["linkage"] > 2 * shuffled["linkage"]
    assert "shuffle the rows, or name firm as unit" in " ".join(sorted_.notes)
    assert "firm" not in " ".join(shuffled.notes)


def test_weights_that_most_firms_share_show_no_firm():
    weights = np.arange(40) % 15
    found = hidden(with_weight(panel(), 1 + weights), weights="weight", unknown="weight")
    assert "firm" not in " ".join(found.notes)


def test_firms_whose_weight_is_their_own_are_read_where_they_are_most():
    table = panel()
    weights = np.minimum(np.arange(40), 34)  # six firms share one
    found = hidden(with_weight(table, 1 + weights), weights="weight", unknown="weight")
    every = hidden(with_weight(table, 1 + np.arange(40)), weights="weight", unknown="weight")
    assert every["linkage"] / 2 < found["linkage"] <= every["linkage"]


def test_regions_of_many_rows_are_no_units():
    table = panel().drop("month").with_columns(firm=pl.col("firm") % 4)
    found = hidden(with_weight(table, np.arange(4)), untouched="weight", unknown="weight")
    assert "firm" not in " ".join(found.notes)


def test_searches_read_the_units_that_a_release_shows():
    table = with_weight(panel(), 1 + np.arange(40) / 7)
    roles = {"columns": COLUMNS, "drop": "firm", "untouched": "month", "unknown": "weight"}
    original = sdc.Microdata(table, **roles).original
    released = pair_of(original, table.drop("firm"))
    keep_columns(original)
    searched = Pair(original.without_table(), original.values)
    assert read_units(searched).shown_by == read_units(released).shown_by == ("weight",)
    assert np.array_equal(read_units(searched).numbers, read_units(released).numbers)
