"""Linkage of units equals the slow one by nearest rows and units, and by the law finds as much or more."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from cases import few
from intruder_cases import drawn_case
from intruder_distances import attack_both, cell_distances, plain, reversed_distance
from intruder_facts import facts
from intruder_units import linkage_units, row_to_unit, rows_of_units, unit_candidates, unit_distances
from sdckit.core.table import Table
from sdckit.risk.distances import standardised
from sdckit.risk.facts import DIRECTIONS, facts_of
from sdckit.risk.literature import nearest_attack
from sdckit.risk.units import (
    Units,
    equality,
    guessed_shares,
    linked_shares,
    score_linkage_units,
    unit_credits,
    units_of,
)

UNIT_NAMES = {"plain": "guess", "unit means": "unit_means", "sorted rows": "sorted_rows"}
SEEDS = range(48)
SOME = range(0, 48, 4)  # files on which the larger of all attacks is compared


def with_units(case, seed):
    """The case with a column of units of one to four rows, published under fresh numbers."""
    rng, n = np.random.default_rng(seed + 1000), len(case.original["v0"])
    units = np.sort(rng.integers(0, n // 2, n)) if seed % 2 else rng.integers(0, n // 2, n)
    fresh = rng.permutation(n)[units]
    original, masked = case.pair.original, case.pair.table
    table = Table(original.table.native.with_columns(unit=pl.Series(units)))
    roles = replace(original.roles, unit="unit")
    changed = original.with_roles(roles, None)
    changed.table = table
    published = Table(masked.native.with_columns(unit=pl.Series(fresh)))
    pair = replace(case.pair, original=changed, table=published, cache={})
    names = {"unit": "unit", "untouched": (*case.release.untouched, "unit")}
    ours, theirs = case.original | {"unit": units.tolist()}, case.published | {"unit": fresh.tolist()}
    return pair, ours, theirs, replace(case.release, **names)


def fast_rows(pair, name, direction):
    """Each row's share of links to its own unit, by a plain guess or the nearest row."""
    units = units_of(pair)
    wanted = equality(units, units)
    if name == "plain":
        return guessed_shares(facts_of(pair).sides(direction), wanted)
    return linked_shares(nearest_attack(pair, standardised, direction), wanted)


@pytest.mark.filterwarnings("ignore::UserWarning")  # coarse files: values kept, codes hit
@pytest.mark.parametrize("seed", few(SEEDS, 8))
def test_rows_lead_to_units_as_the_slow_attack_says(seed):
    pair, original, published, release = with_units(drawn_case(seed), seed)
    inside = facts(original, published, release).certain
    for made in [plain(len(original["unit"])), *cell_distances(original, published, release)[:1]]:
        ways = (inside, made), (inside.T, reversed_distance(made))
        for direction, way in zip(DIRECTIONS, ways, strict=True):
            expected = row_to_unit(*way, original["unit"]).mean()
            found = fast_rows(pair, made.name, direction).mean()
            assert found == pytest.approx(expected, abs=1e-9), (made.name, direction)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", few(SEEDS, 8))
def test_units_are_found_as_the_slow_attack_says(seed):
    pair, original, published, release = with_units(drawn_case(seed), seed)
    groups = rows_of_units(original["unit"])
    fits = unit_candidates(facts(original, published, release).certain, groups)
    made = [plain(len(groups))]
    if cell_distances(original, published, release):
        made += unit_distances(original, published, release, groups)
    found = [(name, credit.mean()) for name, credit in unit_credits(pair, Units(units_of(pair)))]
    expected = [
        (UNIT_NAMES[one.name], attack_both(fits, one)[way].mean()) for way in DIRECTIONS for one in made
    ]
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert [value for _, value in found] == pytest.approx([value for _, value in expected], abs=1e-9)
    if release.re_paired and not facts_of(pair).tie_rows:
        with pytest.raises(sdc.NotApplicable):
            score_linkage_units(pair)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_as_many_units_are_found_as_by_the_best_of_the_slow_attacks():
    found, expected = [], []
    for seed in SOME:
        pair, original, published, release = with_units(drawn_case(seed), seed)
        if not release.re_paired:
            found.append(score_linkage_units(pair).value.overall)
            expected.append(linkage_units(original, published, release)["linkage_units"])
    assert np.mean(found) >= np.mean(expected) - 0.01


def panel(firms=20, years=12, seed=1):
    rng = np.random.default_rng(seed)
    size = np.repeat(rng.lognormal(3, 1.5, firms), years)
    sales = (size * rng.uniform(0.95, 1.05, firms * years)).round(2)
    staff = (size * rng.uniform(0.95, 1.05, firms * years)).round(2)
    return pl.DataFrame({"firm": np.repeat(np.arange(firms), years), "sales": sales, "staff": staff})


def test_a_panel_of_firms_is_found_though_rows_are_safe():
    data = panel()
    masked = sdc.Microdata(data, columns=["sales", "staff"], untouched="firm").mask("mdav", k=10)
    result = sdc.Microdata(data, columns=["sales", "staff"], unit="firm").evaluate(
        masked, made_by=sdc.Method("mdav")
    )
    assert result["dbrl"] <= 0.1 + 1e-12
    assert result["linkage_units"] > 0.5
    assert result["linkage"] > 0.1  # rows of a firm that is found, as far as their groups tell them apart
    assert result.parts["linkage_units"]["unit_to_unit"] > 0.5
    assert "is led to its unit in " in result.meaning["linkage_units"]
    without = sdc.Microdata(data, columns=["sales", "staff"], unit="firm").evaluate(
        masked.drop("firm"), metrics="linkage_units"
    )
    assert without.parts["linkage_units"]["unit_to_unit"] == 0
    assert "does not show which rows belong together" in without.meaning["linkage_units"]


def test_a_panel_masked_by_firms_hides_them():
    data, roles = panel(), {"columns": ["sales", "staff"], "unit": "firm"}
    masked = sdc.Microdata(data, **roles).mask("mdav", k=10)
    result = sdc.Microdata(data, **roles).evaluate(
        masked, made_by=sdc.Method("mdav", k=10), metrics="linkage_units"
    )
    assert result.parts["linkage_units"]["row_to_unit"] <= 0.1 + 1e-9
