"""Near sums that `discover` enforces with their tolerance, and those that it only proposes."""

import warnings
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import naive_near as naive
import naive_rules
import sdckit as sdc
from file_transport import engine
from maskings import generator
from sdckit.engines.masking import mask_files
from sdckit.metrics.statistics import guarded_values
from sdckit.rules import near, rules_of

NAMES = [*"ABCDEF", "X", "Y", "Z", "T"]
SUMS = {
    "X = A + B": (6, (0, 1)),
    "Y = C + D": (7, (2, 3)),
    "Z = E + F": (8, (4, 5)),
    "T = X + Y + Z": (9, (6, 7, 8)),
}


def damaged(total, rng, rounded=0.0, broken=0.0, size=2):
    """A total with rounding errors in a share of the records and with gross errors in another."""
    order = rng.permutation(len(total)) / len(total)
    off = rng.choice([-1, 1], len(total)) * rng.integers(1, size + 1, len(total))
    gross = 500 + np.rint(rng.lognormal(6, 1, len(total)))
    return total + np.where(order < broken, gross, np.where(order < broken + rounded, off, 0))


def sums_of_sums(**damage):
    """Six parts, three sums of two and the sum of these, all damaged."""
    rng = generator(4)
    parts = np.round(rng.lognormal(7, 1, (500, 6)))
    middle = np.column_stack([damaged(parts[:, j : j + 2].sum(axis=1), rng, **damage) for j in (0, 2, 4)])
    return np.column_stack([parts, middle, damaged(middle.sum(axis=1), rng, **damage)])


def one_sum(n=500, **damage):
    rng = generator(8)
    parts = np.round(rng.lognormal(6, 1, (n, 2)))
    return np.column_stack([damaged(parts.sum(axis=1), rng, **damage), parts])


def discovered(names, values, *texts):
    """The equations that `discover` enforces, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = rules_of([*texts, "discover"], names, values)
    return [rule.text for rule in found.rules if rule.equality], [str(one.message) for one in caught]


@pytest.mark.parametrize("damage", [{"rounded": 0.06}, {"rounded": 0.9}, {"rounded": 0.06, "broken": 0.002}])
def test_all_sums_up_to_rounding_are_enforced_with_their_tolerance(damage):
    values = sums_of_sums(**damage)
    found, said = discovered(NAMES, values)
    assert set(found) == {f"{text} +- 2" for text in SUMS}
    assert said == []
    assert {naive.tolerance(values, *place, 2) for place in SUMS.values()} == {2}


def test_sums_with_gross_errors_are_proposed_with_the_tolerance_of_the_others():
    values = sums_of_sums(rounded=0.3, broken=0.06)
    found, said = discovered(NAMES, values)
    assert found == []
    expected = []
    for text, place in SUMS.items():
        assert naive.tolerance(values, *place, 2) == 2
        missed = naive.misses(naive.exactly(values), *place)
        held, within = (sum(miss <= limit for miss in missed) / 5 for limit in (0, 2))
        assert (held, within) == (64.0, 94.0)
        add = f"add it as a rule with --rule '{text} +- 2'"
        expected.append(f"{text} holds in {held} % of the records, within +-2 in {within} %; {add}")
    assert sorted(said) == sorted(expected)


def test_sums_with_gross_errors_alone_are_proposed_without_tolerance():
    found, said = discovered(["T", "A", "B"], one_sum(broken=0.061))
    assert found == []
    assert said == ["T = A + B holds in 93.8 % of the records; add it as a rule with --rule 'T = A + B'"]
    assert discovered(["T", "A", "B"], one_sum(broken=0.002)) == (["T = A + B"], [])


def test_errors_beyond_a_few_steps_are_no_rounding():
    found, said = discovered(["T", "A", "B"], one_sum(rounded=0.1, size=40))
    assert found == []
    assert said[0].startswith("T = A + B holds in 90.0 % of the records")


@pytest.mark.parametrize("declared", ["T = A + B +- 5", "T = A + B"])
@pytest.mark.parametrize("damage", [{"rounded": 0.06}, {"rounded": 0.06, "broken": 0.06}])
def test_a_declared_tolerance_stays(declared, damage):
    assert discovered(["T", "A", "B"], one_sum(**damage), declared) == ([declared], [])


@pytest.mark.parametrize(("unit", "text"), [(100, "T = A + B +- 0.02"), (0.01, "T = A + B +- 200")])
def test_tolerances_are_exact_decimals(unit, text):
    values = one_sum(rounded=0.06) / unit
    assert discovered(["T", "A", "B"], values) == ([text], [])
    rule = rules_of("discover", ["T", "A", "B"], values).rules[-1]
    assert rule.tolerance == Fraction(2) / Fraction(str(unit))


def test_masked_files_keep_discovered_sums_within_their_tolerance():
    table = pl.DataFrame(one_sum(rounded=0.06), schema=["T", "A", "B"])
    masked = sdc.mask(table, "noise", percent=50, rules="discover", decimals="original", rng=1)
    listed = [((1, -1, -1), True, 0, 2), ((0, -1, 0), False, 0)]
    assert not naive_rules.any_broken(listed, masked.to_numpy())
    gap = (masked["T"] - masked["A"] - masked["B"]).abs()
    assert (gap == 2).mean() > 0.5  # moved to the edge of the tolerance and no further
    original = sdc.evaluate(table, masked, rules="discover", metrics="brmae")
    assert original.notes == ()


def test_engines_keep_tolerances(tmp_path):
    pl.DataFrame(one_sum(60, rounded=0.5), schema=["T", "A", "B"]).write_parquet(tmp_path / "in.parquet")
    made = mask_files(
        tmp_path / "in.parquet",
        "noise",
        transport=engine(blocks=3),
        decimals=0,
        rng=4,
        output=tmp_path / "out.parquet",
        rules=["T = A + B +- 2"],
        parameters={"percent": 50.0},
    )
    masked = pl.read_parquet(made.path)
    gap = (masked["T"] - masked["A"] - masked["B"]).abs()
    assert gap.max() == 2
    assert made.notes[0].startswith("edit rules hold in every record (T = A + B +- 2): ")


def test_totals_that_follow_up_to_a_tolerance_are_withheld_together():
    values = one_sum(60, rounded=0.5)
    values[0] = 1e9, 1e9, 0.0  # one record makes up the totals of T and A
    for text in ("T = A + B", "T = A + B +- 2"):
        shown = guarded_values(["T", "A", "B"], values, rules_of(text, ["T", "A", "B"], values))
        assert shown["total", "B"] == (None, None)
    assert guarded_values(["T", "B"], values[:, [0, 2]])["total", "B"] != (None, None)


# --- counts ---


def test_offers_name_the_tolerance_and_both_counts():
    found = near.rules_with_counts(["T", "A", "B"], one_sum(rounded=0.06))
    assert [near.offer(one) for one in found if one.rule.equality] == [
        "T = A + B +- 2 holds in all 500 records, without tolerance in 470"
    ]
    (gross,) = (
        one for one in near.rules_with_counts(["T", "A", "B"], one_sum(broken=0.06)) if one.rule.equality
    )
    assert near.offer(gross) == near.text(gross)
    assert near.offer(gross).startswith("T = A + B holds in 470 of 500 records, within ")
    (both,) = (
        one
        for one in near.rules_with_counts(["T", "A", "B"], one_sum(rounded=0.06, broken=0.1))
        if one.rule.equality
    )
    assert near.offer(both) == "T = A + B +- 2 holds in 450 of 500 records, without tolerance in 420"
