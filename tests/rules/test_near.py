"""Edit rules with their counts: sums that broken, rounded and incomplete records do not hide."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_near as naive
import sdckit as sdc
from maskings import NAN, fails, generator
from sdckit.core.table import Table
from sdckit.rules import discover, near, near_search
from sdckit.rules.parse import parse

LETTERS = "ABCDEFGHIJK"


def amounts(n, p, seed=1):
    return np.round(generator(seed).lognormal(7, 1, (n, p)))


def broken(total, rng, share=0.06, size=500):
    """The total with errors in a share of the records."""
    hit = rng.permutation(len(total)) < share * len(total)
    return total + np.where(hit, np.rint(rng.normal(0, size, len(total))), 0)


def rounded(total, rng, share=1.0):
    """The total with rounding errors of up to 2 in a share of the records."""
    hit = rng.permutation(len(total)) < share * len(total)
    return total + np.where(hit, rng.integers(-2, 3, len(total)), 0)


def planted(damage, p=5, n=1000):
    """Columns A, B, ... and T = A + B + C + D, damaged."""
    rng = generator(2)
    parts = amounts(n, p)
    return [*LETTERS[:p], "T"], np.column_stack([parts, damage(parts[:, :4].sum(axis=1), rng)])


def sums(names, values):
    return [counted for counted in near.rules_with_counts(names, values) if counted.rule.equality]


def texts(names, values):
    return [counted.rule.text for counted in sums(names, values)]


# --- found in spite of broken records ---


@pytest.mark.parametrize("p", [5, 11])
@pytest.mark.parametrize(
    "damage",
    [
        broken,
        rounded,
        lambda total, rng: broken(total, rng, 0.19),
        lambda total, rng: rounded(total, rng, 0.06),
        lambda total, rng: rounded(broken(total, rng), rng),
    ],
    ids=["6 % broken", "all rounded", "19 % broken", "6 % rounded", "6 % broken, all rounded"],
)
def test_a_sum_is_found_and_counted(damage, p):
    names, values = planted(damage, p)
    (found,) = sums(names, values)
    assert found.rule.text == "T = A + B + C + D"
    expected = naive.counts(values, names.index("T"), (0, 1, 2, 3))
    assert (found.records, found.held, found.within, found.held_within) == expected
    assert not found.exact


def test_sentences():
    names, values = planted(lambda total, rng: total + 2 * (rng.permutation(1000) < 61))
    values[0, -1] += 1000
    values[5, 0] = NAN
    values[6, 4] = -1
    found = near.rules_with_counts(names, values)
    held = 1000 - np.count_nonzero(values[:, -1] - values[:, :4].sum(axis=1) != 0)
    assert [near.text(counted) for counted in found if counted.rule.text not in {"B >= 0", "C >= 0"}] == [
        "A >= 0 holds in all 999 records",
        "D >= 0 holds in all 1,000 records",
        "T >= 0 holds in all 1,000 records",
        f"T = A + B + C + D holds in {held} of 999 records, within 2 in 998",
        "E >= 0 holds in 999 of 1,000 records",
    ]


def test_exact_rules_come_first_and_are_those_of_discover():
    names, values = planted(lambda total, _: total)
    values = np.column_stack([values, broken(values[:, 4:6].sum(axis=1), generator(8))])
    found = near.rules_with_counts([*names, "S"], values)
    exact = discover.discovered([*names, "S"], values)
    assert [counted.rule for counted in found[: len(exact)]] == exact
    assert found[0] == near.CountedRule(exact[0], 1000, 1000, 0.0, 1000, exact[0], 1000)
    assert all(counted.exact for counted in found[: len(exact)])
    assert not any(counted.exact for counted in found[len(exact) :])
    assert [counted.rule.text for counted in found[len(exact) :]][:1] == ["S = E + T"]
    assert all((counted.within is None) != counted.rule.equality for counted in found)


def test_sums_of_sums():
    rng = generator(4)
    parts = amounts(1000, 6)
    middle = np.column_stack([broken(parts[:, j : j + 2].sum(axis=1), rng) for j in (0, 2, 4)])
    values = np.column_stack([parts, middle, broken(middle.sum(axis=1), rng)])
    found = texts([*LETTERS[:6], "X", "Y", "Z", "T"], values)
    assert set(found) == {"X = A + B", "Y = C + D", "Z = E + F", "T = X + Y + Z"}


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_missing_cells(share):
    rng = generator(6)
    names, values = planted(broken, p=9)
    values[rng.random(values.shape) < share * (np.arange(10) > 1)] = NAN
    (found,) = sums(names, values)
    assert found.rule.text == "T = A + B + C + D"
    expected = naive.counts(values, 9, (0, 1, 2, 3))
    assert (found.records, found.held, found.within, found.held_within) == expected


@pytest.mark.parametrize("damage", [broken, rounded])
def test_parts_that_are_mostly_zero(damage):
    rng = generator(7)
    parts = amounts(1500, 8) * (rng.random((1500, 8)) < [0.9, 0.6, 0.3, 0.05, 0.02, 0.9, 0.1, 0.05])
    values = np.column_stack([parts, damage(parts[:, :5].sum(axis=1), rng)])
    assert texts([*LETTERS[:8], "T"], values) == ["T = A + B + C + D + E"]


@pytest.mark.parametrize(("unit", "within"), [(1, 2), (0.01, 0.02), (1000, 2000)])
def test_tolerances_are_on_the_grid(unit, within):
    names, values = planted(rounded)
    values = values * unit if unit >= 1 else values / round(1 / unit)
    assert [(found.rule.text, found.within) for found in sums(names, values)] == [
        ("T = A + B + C + D", within)
    ]


def test_parts_and_totals_of_different_grids():
    exact = generator(9).lognormal(7, 1, (800, 3))
    cents = np.round(exact, 2)
    (found,) = sums(list("ABCT"), np.column_stack([cents, np.rint(exact.sum(axis=1))]))
    assert found.rule.text == "T = A + B + C"
    assert 0.49 < found.within <= 0.52
    assert round(found.within, 2) == found.within


def test_columns_that_are_equal_up_to_rounding():
    rng = generator(3)
    values = amounts(500, 2)
    again = values[:, 0] + (rng.random(500) < 0.3)
    (found,) = sums(["A", "B", "again"], np.column_stack([values, again]))
    assert (
        near.text(found)
        == f"A = again holds in {(again == values[:, 0]).sum()} of 500 records, within 1 in 500"
    )
    other = np.where(rng.random(500) < 0.1, values[:, 1], values[:, 0])
    assert sums(["A", "B", "other"], np.column_stack([values, other])) == []


def test_signs():
    values = np.abs(generator().normal(5, 1, (200, 3)))
    values[:4, 0] *= -1
    values[:5, 1] *= -1
    values[:100, 2] = NAN
    values[100:103, 2] = -1
    found = near.rules_with_counts(["A", "B", "C"], values)
    assert [near.text(counted) for counted in found] == ["A >= 0 holds in 196 of 200 records"]
    values[102, 2] = 1
    assert near.rules_with_counts(["A", "B", "C"], values)[1].records == 100


@pytest.mark.parametrize("damage", [broken, lambda total, _: total])
def test_a_total_that_often_equals_another_has_its_sum(damage):
    rng = generator(12)
    names, values = planted(damage)
    values = np.column_stack([values, broken(values[:, :4].sum(axis=1), rng)])
    assert set(texts([*names, "again"], values)) == {"T = A + B + C + D", "again = A + B + C + D"}
    often = np.where(rng.random(1000) < 0.1, values[:, 4], values[:, 0])
    assert texts([*names, "often"], np.column_stack([values[:, :6], often])) == ["T = A + B + C + D"]


# --- the twin ---


def check_against_all_subsets(names, table, found, rounding):
    """Every sum found is one of the twin's, with its counts; all of the twin's follow from those found."""
    expected = naive.near_sums(table, rounding)
    rows = []
    for counted in found:
        row = np.array([dict(counted.rule.terms).get(name, 0) for name in names])
        total, parts = int(np.flatnonzero(row == 1)[0]), tuple(int(j) for j in np.flatnonzero(row == -1))
        assert (total, parts) in expected or len(parts) == 1
        records, held, within, _ = naive.counts(table, total, parts)
        assert (counted.records, counted.held) == (records, held)
        assert counted.within == float(within)
        rows.append(row)
    assert len(rows) == (np.linalg.matrix_rank(rows) if rows else 0)
    for total, parts in expected:
        row = np.zeros(len(names))
        row[total], row[list(parts)] = 1, -1
        assert np.linalg.matrix_rank([*rows, row]) == len(rows)


def small_file(seed):
    """Two to four columns and up to two totals of any two columns before them; some with 5 % broken."""
    rng = generator(seed)
    table = np.round(rng.lognormal(5, 1, (80, int(rng.integers(2, 5)))))
    for _ in range(int(rng.integers(0, 3))):
        total = table[:, rng.choice(table.shape[1], 2, replace=False)].sum(axis=1)
        table = np.column_stack([table, broken(total, rng, rng.choice([0.0, 0.05]), 50)])
    table[rng.random(table.shape) < rng.choice([0.0, 0.02])] = NAN
    return [f"v{j}" for j in range(table.shape[1])], table


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_near_sums_are_those_of_all_subsets(seed):
    names, table = small_file(seed)
    check_against_all_subsets(names, table, sums(names, table), 0)


def test_rounded_sums_are_those_of_all_subsets_and_the_check_can_fail():
    names, values = planted(rounded, n=120)
    found = sums(names, values)
    check_against_all_subsets(names, values, found, 2)
    assert fails(check_against_all_subsets, names, values, [], 2)
    wrong = near.count(parse("T = A + B + C")[0], names, values)
    assert fails(check_against_all_subsets, names, values, [wrong], 2)


# --- no false rule ---


def unrelated(seed):
    """A column of each kind: wide, small, rare, binary, skewed, years with codes, near copies of others."""
    rng = generator(seed)
    n = int(rng.choice([20, 60, 400]))
    base = np.round(rng.lognormal(6, 1, n))
    rare = [np.round(rng.lognormal(6, 1, n)) * (rng.random(n) < share) for share in (0.03, 0.05, 0.3)]
    columns = [
        np.round(rng.normal(0, 100, n), 1),
        *rng.integers(0, 5, (3, n)),
        *rare,
        *(rng.random((2, n)) < 0.9),
        np.round(rng.pareto(0.7, n)),
        np.where(rng.random(n) < 0.04, 9999, rng.integers(1990, 2024, n)),
        base,
        base + np.round(rng.normal(0, 20, n)),
        np.round(0.3 * base),
    ]
    return np.column_stack(columns).astype(float)[:, rng.permutation(len(columns))]


def test_unrelated_columns_have_no_sums():
    for seed in range(20):
        values = unrelated(seed)
        assert texts([f"v{j}" for j in range(values.shape[1])], values) == []


def test_census_tarragona_and_the_sample_have_no_other_sums(census, tarragona):
    assert texts(census.columns, census.to_numpy()) == ["PTOTVAL = POTHVAL + PEARNVAL"]
    found = near.rules_with_counts(tarragona.columns, tarragona.to_numpy())
    assert [near.text(counted) for counted in found if not counted.exact] == [
        "CURRENT.ASSETS >= 0 holds in 831 of 834 records",
        "SHORT.TERM.DEBT >= 0 holds in 833 of 834 records",
        "DEPRECIATION >= 0 holds in 833 of 834 records",
    ]
    sample = Table(sdc.load_sample())
    names = sample.numeric_columns(None)
    assert texts(names, sample.floats(names)) == ["turnover = domestic_sales + export_sales"]


@pytest.mark.parametrize("shape", [(1, 3), (5, 3), (30, 1), (30, 2)])
def test_small_files(shape):
    assert sums(list("ABC")[: shape[1]], generator().random(shape)) == []


def test_huge_and_empty_columns():
    values = np.column_stack([amounts(60, 2) * 1e303, np.full(60, NAN), np.ones(60)])
    values = np.column_stack([values, broken(values[:, 0] / 1e303, generator()) * 1e303 + values[:, 1]])
    (found,) = sums(list("ABCDT"), values)
    assert found.rule.text == "T = A + B"
    assert found.held < 60


# --- parts of the search ---


def test_every_column_is_in_a_set_with_enough_records():
    gaps = generator().random((300, 12)) < np.linspace(0, 0.5, 12)
    sets = near_search.column_sets(gaps)
    assert set().union(*sets) == set(range(12))
    assert all((~gaps[:, columns].any(axis=1)).sum() >= 100 for columns in sets)
    assert near_search.column_sets(gaps[:, :2]) == [[0, 1]]


def test_what_follows():
    rows = np.array([[1, -1, -1, 0, 0], [0, 1, 0, -1, -1]])
    assert near_search.follows(rows, rows.sum(axis=0))
    assert near_search.follows(rows[:1], np.array([1, -1, -1, -1, 0]))
    assert not near_search.follows(rows[:1], rows[1])
    assert not near_search.follows([], rows[0])


def test_zeros_and_similar_values_are_no_evidence():
    rng = generator(5)
    rare = amounts(400, 3) * (rng.random((400, 3)) < 0.1)
    held = rare[:, 0] == rare[:, 1] + rare[:, 2]
    assert held.mean() > 0.7
    assert not near_search.has_evidence(rare, held, 0.0)
    rare[:, 0] = rare[:, 1] + rare[:, 2]
    assert near_search.has_evidence(rare, np.ones(400, bool), 0.0)
    years = rng.integers(2019, 2022, (400, 2)).astype(float)
    held = np.abs(years[:, 0] - years[:, 1]) <= 2
    assert held.all()
    assert not near_search.has_evidence(years, held, 2.0)


def test_near_sums_are_searched_among_few_columns_only(monkeypatch):
    parts = np.random.default_rng(6).integers(1, 900, (200, 2)).astype(float)
    table = np.column_stack([parts.sum(axis=1), parts])
    table[::20, 0] += 2

    def sums():
        return [one for one in near.rules_with_counts(["t", "a", "b"], table) if one.rule.equality]

    assert len(sums()) == 1
    monkeypatch.setattr("sdckit.rules.near.WIDEST", 2)
    assert sums() == []
