"""Masked records made to satisfy edit rules: exactly, with the smallest change, and nothing else."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_rules as naive
import sdckit as sdc
from cases import each
from maskings import NAN, fails, generator
from repairs import NAMES, check_repair
from sdckit.core.table import Step
from sdckit.masking import column_steps, rounded
from sdckit.rules import repair
from sdckit.rules.rules import Rules, rules_of

SUM = ((1, -1, -1), True, 0)
POSITIVE = [((-1, 0, 0), False, 0), ((0, -1, 0), False, 0), ((0, 0, -1), False, 0)]
SETS = {  # in words, and for the slow twin
    "bounds": (["0 <= A <= 3", "B >= -1"], [((1, 0, 0), False, 3), POSITIVE[0], ((0, -1, 0), False, 1)]),
    "fixed": (["A = 2", "B + 1 = 0"], [((1, 0, 0), True, 2), ((0, 1, 0), True, -1)]),
    "sum": (["A = B + C"], [SUM]),
    "positive sum": (["A = B + C", "A >= 0", "B >= 0", "C >= 0"], [SUM, *POSITIVE]),
    "bounded sum": (["A = B + C", "A <= 4", "B >= 0"], [SUM, ((1, 0, 0), False, 4), POSITIVE[1]]),
    "shifted sum": (["A = B - C + 2", "C <= 1"], [((1, -1, 1), True, 2), ((0, 0, 1), False, 1)]),
    "order": (["A <= B"], [((1, -1, 0), False, 0)]),
    "chain": (["A <= B", "B <= C", "A >= 0"], [((1, -1, 0), False, 0), ((0, 1, -1), False, 0), POSITIVE[0]]),
    "sum and order": (["A = B + C", "B <= C", "B >= 0"], [SUM, ((0, 1, -1), False, 0), POSITIVE[1]]),
    "double": (["A = 2*B - C", "A >= 0"], [((1, -2, 1), True, 0), POSITIVE[0]]),
    "parity": (["2*A = B + C", "A >= 0"], [((2, -1, -1), True, 0), POSITIVE[0]]),
}
WITHIN = {  # rules with a tolerance
    "one column": (["A = 2 +- 1"], [((1, 0, 0), True, 2, 1)]),
    "sum within": (["A = B + C +- 2"], [((1, -1, -1), True, 0, 2)]),
    "between grid points": (["A = B - C + 1 +- 1.5"], [((1, -1, 1), True, 1, Fraction(3, 2))]),
    "linked sums": (
        ["A = B + C +- 1", "B = 2*C +- 2", "A <= 4"],
        [((1, -1, -1), True, 0, 1), ((0, 1, -2), True, 0, 2), ((1, 0, 0), False, 4)],
    ),
    "with an exact sum": (
        ["A = B + C +- 1", "A = C + 2"],
        [((1, -1, -1), True, 0, 1), ((1, 0, -1), True, 2)],
    ),
    "factors": (["2*A = B + C +- 0.5", "A >= 0"], [((2, -1, -1), True, 0, Fraction(1, 2)), POSITIVE[0]]),
}
cells = st.integers(-4, 6)
tables = st.lists(st.tuples(cells, cells, cells), min_size=2, max_size=5).map(
    lambda rows: np.array(rows, float)
)
frees = st.tuples(st.booleans(), st.booleans(), st.booleans()).filter(any)


def rules_named(name):
    texts, listed = (SETS | WITHIN)[name]
    return rules_of(texts, NAMES, np.zeros((0, 3))), listed


# --- worked examples ---


def test_a_total_takes_what_it_misses():
    table = np.array([[10.0, 4.0, 5.0], [30.0, 12.0, 18.0], [7.0, -3.0, 8.0], [-5.0, -3.0, -1.0]])
    rules, _ = rules_named("positive sum")
    found = rules.repaired(table, [0, 0, 0], [True] * 3)
    assert found.tolist() == [[9, 4, 5], [30, 12, 18], [8, 0, 8], [0, 0, 0]]
    assert table[0, 0] == 10  # the input is not changed


def test_what_varies_most_takes_it():
    table = np.array([[10.0, 4.0, 5.0], [10.0, 90.0, 18.0], [10.0, 2.0, 8.0]])
    rules, listed = rules_named("positive sum")
    found = rules.repaired(table, [0, 0, 0], [True] * 3)
    assert found.tolist() == [[10, 5, 5], [18, 0, 18], [10, 2, 8]]  # of equals, the first column
    spread = naive.spreads(table, listed)
    assert naive.cost(table[1], found[1], spread) == pytest.approx(90 / spread[1] + 8 / spread[2])


def test_decimals_hold_as_written():
    rules, listed = rules_named("sum")
    table = np.array([[0.31, 0.1, 0.2], [0.7, 0.1, 0.2], [1.1, 2.2, 3.31]])
    found = rules.repaired(table, [2, 1, 1], [True, True, True])
    assert not naive.any_broken(listed, found)
    assert np.array_equal(found, rounded(found, [Step(2), Step(1), Step(1)]))
    assert found[0].tolist() == [0.3, 0.1, 0.2]


def test_columns_that_stay():
    rules, _ = rules_named("positive sum")
    table = np.array([[10.0, 4.0, 5.0], [3.0, 5.0, 0.0], [-1.0, -5.0, 0.0], [2.5, 1.0, 1.0]])
    found = rules.repaired(table, [0, 0, 0], [False, False, True])
    assert np.array_equal(found[:, 2], [6.0, NAN, 4.0, NAN], equal_nan=True)
    assert np.array_equal(found[:, :2], table[:, :2])
    assert np.array_equal(rules.repaired(table, [0, 0, 0], [False] * 3), table)


def test_missing_cells_void_a_rule_and_stay():
    rules, _ = rules_named("positive sum")
    table = np.array([[NAN, -4.0, 5.0], [9.0, NAN, 5.0], [NAN, NAN, NAN], [1.0, 2.0, 3.0]])
    found = rules.repaired(table, [0, 0, 0], [True] * 3)
    expected = [[NAN, 0.0, 5.0], [9.0, NAN, 5.0], [NAN, NAN, NAN]]
    assert np.array_equal(found[:3], expected, equal_nan=True)
    assert not np.isnan(found[3]).any()


@pytest.mark.parametrize("decimals", [None, [0, 0], [1, 1]])
def test_a_column_with_one_allowed_value_gets_it_from_below_and_above(decimals):
    rules = rules_of(["A = 5", "3 = -B"], ["A", "B"], np.zeros((0, 2)))
    block = repair.blocks_of(rules.columns, rules.rules, np.array([True, True]), np.ones(2), None)
    assert [each.bounds.tolist() for each in block] == [[[5.0], [5.0]], [[-3.0], [-3.0]]]
    table = np.array([[4.0, -4.0], [5.0, -3.0], [7.0, 2.0]])
    assert rules.repaired(table, decimals, [True, True]).tolist() == [[5.0, -3.0]] * 3


def test_bounds_between_two_grid_points():
    rules = rules_of(["0.25 <= A <= 1.5"], ["A"], np.zeros((0, 1)))
    table = np.array([[0.0], [2.0], [1.0]])
    assert rules.repaired(table, [0], [True]).ravel().tolist() == [1.0, 1.0, 1.0]
    assert rules.repaired(table, [1], [True]).ravel().tolist() == [0.3, 1.5, 1.0]
    assert rules.repaired(table, None, [True]).ravel().tolist() == [0.25, 1.5, 1.0]
    narrow = rules_of(["0.25 <= A <= 0.5"], ["A"], np.zeros((0, 1)))
    assert np.isnan(narrow.repaired(table, [0], [True])).all()


def test_a_sum_that_the_grid_cannot_keep_is_suppressed():
    rules = rules_of("A = B + 0.5", ["A", "B"], np.zeros((0, 2)))
    assert np.isnan(rules.repaired(np.array([[1.0, 2.0], [3.0, 4.0]]), [0, 0], [True, True])).all()
    found = rules.repaired(np.array([[1.0, 2.0], [3.0, 4.0]]), [1, 0], [True, True])
    assert found.tolist() == [[2.5, 2.0], [4.5, 4.0]]


def test_numbers_too_large_to_count():
    rules, _ = rules_named("positive sum")
    table = np.array([[3e15, 1e15, 1e15 + 3], [1e300, 4.0, -1e300], [5.0, 1.25, 1.25]])
    found = rules.repaired(table, [2, 2, 2], [True] * 3)
    assert not rules.violations(found).any()
    assert found[2].tolist() == [2.5, 1.25, 1.25]
    assert found[0].tolist() == [2e15 + 3, 1e15, 1e15 + 3]


# --- against all points of the grid ---


@pytest.mark.parametrize("name", SETS)
@given(table=tables)
@settings(max_examples=25)
def test_no_grid_point_is_nearer(name, table):
    check_repair(*rules_named(name), table)


@pytest.mark.parametrize("name", [*SETS, *WITHIN])
@given(table=tables, free=frees)
@settings(max_examples=12)
def test_no_grid_point_is_nearer_where_columns_stay(name, table, free):
    check_repair(*rules_named(name), table, free=free)


@pytest.mark.parametrize("name", ["positive sum", "sum and order", "parity"])
@given(table=tables, holes=st.integers(0, 10**6))
@settings(max_examples=12)
def test_no_grid_point_is_nearer_where_cells_are_missing(name, table, holes):
    gaps = generator(holes).random(table.shape) < 0.2
    gaps[:2] = False
    check_repair(*rules_named(name), np.where(gaps, NAN, table))


@pytest.mark.parametrize("name", ["positive sum", "sum and order", "double"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=6)
def test_no_grid_point_is_nearer_with_different_decimals(name, seed):
    rng = generator(seed)
    table = np.column_stack([rng.integers(-4, 6, 3), rng.integers(-40, 60, 3) / 10, rng.integers(-4, 6, 3)])
    check_repair(*rules_named(name), table.astype(float), decimals=(0, 1, 0))


# --- the checks see what is wrong ---


class Broken(Rules):
    """A repair that is not one."""

    change = staticmethod(lambda _before, after: after)

    def repaired(self, values, decimals, free):
        return self.change(values, super().repaired(values, decimals, free))


@pytest.mark.parametrize(
    "change",
    [
        lambda before, _after: before,
        lambda _before, after: after + 1,
        lambda _before, after: np.zeros_like(after),
        lambda _before, after: after + np.array([2, 1, 1]),
        lambda _before, after: after * np.nan,
        lambda _before, after: after + 0.25 * np.array([2, 1, 1]),
    ],
)
def test_the_check_sees_a_wrong_repair(change, monkeypatch):
    rules, listed = rules_named("positive sum")
    table = np.array([[5.0, 4.0, -2.0], [3.0, 1.0, 2.0], [4.0, 1.0, 1.0]])
    check_repair(rules, listed, table)
    monkeypatch.setattr(Broken, "change", staticmethod(change))
    assert fails(check_repair, Broken(rules.columns, rules.rules), listed, table)
    within = rules_named("sum within")[1]
    assert fails(check_repair, rules_named("sum")[0], within, table)  # nearer than a tolerance asks for


def test_the_check_sees_the_dearest_column_first(monkeypatch):
    rules, listed = rules_named("sum")
    table = np.array([[5.0, 4.0, -2.0], [30.0, 1.0, 2.0], [4.0, 1.0, 1.0]])
    check_repair(rules, listed, table)
    monkeypatch.setattr(repair, "_costs", lambda spreads: spreads)
    assert fails(check_repair, rules, listed, table)


# --- both ways of solving ---


@given(table=tables)
@settings(max_examples=25)
def test_plain_arithmetic_and_the_programme_agree(table):
    rules, _ = rules_named("positive sum")
    (block,) = repair.blocks_of(
        rules.columns, rules.rules, np.ones(3, bool), np.array([3.0, 2.0, 1.0]), [0, 0, 0]
    )
    quick, thorough = repair.repair_block(block, table), repair.solved(block, table)
    spread = np.array([3.0, 2.0, 1.0])
    for before, one, other in zip(table, quick, thorough, strict=True):
        assert naive.cost(before, one, spread) == pytest.approx(naive.cost(before, other, spread))


@pytest.mark.parametrize("name", [*SETS, "linked sums"])
@given(table=tables, free=frees)
@settings(max_examples=4)
def test_the_programme_finds_the_nearest_point_by_itself(name, table, free):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repair, "MOST", -1)
        patch.setattr(repair.Block, "disjoint_sums", [])
        patch.setattr(repair.Block, "may_need_solver", True)
        check_repair(*rules_named(name), table, free=free)


@each("name", SETS)
def test_the_programme_finds_the_nearest_point_without_a_grid(name):
    rules, _ = rules_named(name)
    table = generator(2).normal(0, 3, (40, 3))[:, [NAMES.index(column) for column in rules.columns]]
    free = [True] * table.shape[1]
    expected = rules.repaired(table, None, free)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repair, "MOST", -1)
        patch.setattr(repair.Block, "disjoint_sums", [])
        patch.setattr(repair.Block, "may_need_solver", True)
        found = rules.repaired(table, None, free)
    assert not rules.violations(found).any()
    spread = table.std(axis=0, ddof=1)
    costs = [
        [naive.cost(a, b, spread) for a, b in zip(table, some, strict=True)] for some in (found, expected)
    ]
    np.testing.assert_allclose(*costs, atol=1e-6)


def test_overlapping_sums_of_many_records():
    rng = generator()
    names = ["total", "a", "b", "tax", "net"]
    table = np.round(rng.normal(100, 60, (300, 5)), 2)
    rules = rules_of(
        ["total = a + b", "net = total - tax", "tax <= total", "a >= 0", "tax >= 0"], names, table
    )
    found = rules.repaired(table, [2] * 5, [True] * 5)
    assert not np.isnan(found).any()
    assert not rules.violations(found).any()
    listed = [((1, -1, -1, 0, 0), True, 0), ((1, 0, 0, -1, -1), True, 0)]
    assert not naive.any_broken(listed, found)


# --- not rounded ---


@pytest.mark.parametrize("name", [*SETS, *WITHIN])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=15)
def test_unrounded_records_satisfy_the_rules(name, seed):
    rng = generator(seed)
    rules, _ = rules_named(name)
    at = [NAMES.index(column) for column in rules.columns]
    table = rng.normal(0, 3, (6, 3)) * 10.0 ** rng.integers(-3, 9)
    found = rules.repaired(table[:, at], None, [True] * len(at))
    assert not np.isnan(found).any()
    assert not rules.violations(found).any()
    kept = ~rules.broken(table[:, at]).any(axis=1)
    assert np.array_equal(found[kept], table[kept][:, at])
    assert np.array_equal(rules.repaired(found, None, [True] * len(at)), found)


def test_unrounded_sums_hold_to_the_last_bit():
    rng = generator()
    table = rng.normal(5, 3, (2000, 3)) ** 3
    for wide in range(3):  # whichever column takes what is missing
        stretched = table.copy()
        stretched[:, wide] *= 100
        for name in ("sum", "positive sum"):
            rules, _ = rules_named(name)
            found = rules.repaired(stretched, None, [True] * 3)
            assert np.array_equal(found[:, 0], found[:, 1] + found[:, 2])
            assert (found >= 0).all() or name == "sum"


# --- the census ---


def masked(census, method, **options):
    x = np.asfortranarray(census.to_numpy())
    record = sdc.METHODS[method]
    extra = {"rng": generator(1)} if record.random else {}
    steps = column_steps(x, census.columns, "original", ruled=census.columns)
    found = rounded(np.asarray(record.function(x, **options, **extra)), steps)
    return x, found, [step.decimals for step in steps]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("noise", {"percent": 50}),
        ("correlated_noise", {"percent": 50}),
        ("rank_swap", {"p": 0.1}),
        ("mdav", {"k": 3}),
        ("individual_ranking", {"k": 3}),
    ],
)
def test_the_census_keeps_its_rules(census, method, options):
    x, y, decimals = masked(census, method, **options)
    rules = rules_of("discover", census.columns, x)
    assert rules.columns == tuple(census.columns)
    assert rules.violations(y).sum() > 100
    found = rules.repaired(y, decimals, [True] * len(decimals))
    assert not rules.violations(found).any()
    total, parts = census.columns.index("PTOTVAL"), [census.columns.index(c) for c in ("PEARNVAL", "POTHVAL")]
    steps = np.rint(found * 10.0 ** np.array(decimals)[None]).astype(int)
    assert decimals[total] == decimals[parts[0]] == decimals[parts[1]]
    assert (steps[:, total] == steps[:, parts].sum(axis=1)).all()
    assert (found >= 0).all()
    untouched = ~rules.broken(y).any(axis=1)
    assert np.array_equal(found[untouched], y[untouched])


def test_groups_stay_groups(census):
    x, y, decimals = masked(census, "mdav", k=5)
    rules = rules_of(["discover", "FEDTAX <= AGI"], census.columns, x)
    found = rules.repaired(y, decimals, [True] * len(decimals))
    assert np.unique(found, axis=0, return_counts=True)[1].min() >= 5
