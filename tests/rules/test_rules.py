"""Edit rules in words, found in data, checked; what an intruder makes of them."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_rules as naive
import sdckit as sdc
from cases import each
from linkages import DIRECTIONS
from maskings import NAN, fails, generator
from sdckit.core.table import Table
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair
from sdckit.risk.intervals import shuffled_pairs
from sdckit.rules import discover
from sdckit.rules.rules import Rules, rules_of

NAMES = ["A", "B", "C", "D"]
NOTHING = np.zeros((2, 4))


def rules(*texts, values=NOTHING, names=NAMES):
    return rules_of(list(texts), names, values)


# --- words ---


@each(
    ("text", "normal"),
    [
        ("A = B + C - 2*D", ["A = B + C - 2*D"]),
        ("A + B = C", ["C = A + B"]),
        ("A>=0", ["A >= 0"]),
        ("0 <= A <= 100", ["A >= 0", "A <= 100"]),
        ("100 >= A >= -0.50", ["A <= 100", "A >= -0.5"]),
        ("A <= B", ["A <= B"]),
        ("A >= B + C", ["A >= B + C"]),
        ("A - B >= 0", ["A >= B"]),
        ("-A + 2 >= B/4", ["B <= -4*A + 8"]),
        ("`A` == 1e3", ["A = 1000"]),
        ("A ≤ 1/3", ["A <= 1/3"]),
        ("2*A = B*3", ["2*A = 3*B"]),
        ("A + 0.25 = 'B' + A - - C", ["B = -C + 0.25"]),
    ],
)
def test_rules_have_a_normal_wording(text, normal):
    found = rules(text)
    assert list(found.texts) == normal
    again = rules(*found.texts)
    assert [rule.meaning for rule in again.rules] == [rule.meaning for rule in found.rules]


def test_odd_names_are_quoted():
    names = ["my column", "PAID.UP", "a`b", "2nd"]
    found = rules_of(['"my column" <= PAID.UP', "`a``b` >= '2nd'"], names, NOTHING)
    assert found.texts == ("`my column` <= PAID.UP", "`a``b` >= `2nd`")
    assert rules_of(list(found.texts), names, NOTHING) == found


@each(
    ("text", "message"),
    [
        ("A < B", "rule 'A < B' is strict; use <= instead of <"),
        ("A > 0", "rule 'A > 0' is strict; use >= instead of >"),
        ("A B", "rule 'A B' has no =, <= or >=; write it like"),
        ("", "rule '' has no"),
        ("A = B C", "lacks a sign before 'C'"),
        ("A = ", "rule 'A = ' cannot be read to its end"),
        ("A = B % C", "cannot be read at '% C'"),
        ("A * B = 1", "cannot be read at 'B'"),
        ("A / 0 = 1", "cannot be read at '0'"),
        ("A <= 1e999", "lacks a sign before '9'"),
        ("A = A", "names no column, or its columns cancel out"),
        ("1 <= 2", "names no column, or its columns cancel out"),
        ("A = BB", r"unknown column of an edit rule 'BB' \(did you mean 'B'\?\); choose from: A, B, C, D"),
    ],
)
def test_nonsense_is_refused_in_one_line(text, message):
    with pytest.raises(ValueError, match=message) as error:
        rules(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("wrong", [7, {"A": 1}, [3], [["A = B"]]])
def test_rules_are_texts(wrong):
    with pytest.raises(TypeError, match="write it like 'A = B"):
        rules_of(wrong, NAMES, NOTHING)


def test_contradictions_are_named():
    values = np.full((3, 4), -1.0)
    with pytest.raises(
        ValueError, match=r"satisfy all of these rules: A >= 2; A <= B; B <= 1; correct or drop"
    ):
        rules("C >= 0", "A >= 2", "A <= B", "D = C + A", "B <= 1", values=values)
    assert rules("C >= 0", "A >= 2", "A <= B", "B <= 3", values=values) is not None
    assert rules("A = B + C", "A = 1e12", "B >= 1e12", "C >= 0", values=values) is not None


def test_nothing_gives_nothing():
    assert rules_of(None, NAMES, NOTHING) is None
    assert rules_of([], NAMES, NOTHING) is None
    assert rules_of("discover", NAMES, -np.ones((20, 4))) is None


def test_rules_are_values():
    found = rules("C = A + B", "A >= 0", "A + B = C", "D <= 5")
    assert found.texts == ("C = A + B", "A >= 0", "D <= 5")
    assert found.columns == ("A", "B", "C", "D")
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - our own
    assert rules_of(found, NAMES, NOTHING) is found
    assert found.within(["A", "B", "D"]).texts == ("A >= 0", "D <= 5")
    assert found.within(["A", "B", "D"]).columns == ("A", "D")
    assert found.within(["B"]) is None
    with pytest.raises(ValueError, match="unknown column of an edit rule 'D'"):
        rules_of(found, ["A", "B", "C"], NOTHING)


# --- checking ---


def test_violations_by_hand():
    found = rules_of(["C = A + B", "A >= 0.3", "B <= C"], ["A", "B", "C"], NOTHING)
    table = np.array(
        [
            [0.3, 0.6, 0.9],  # 0.3 + 0.6 is not 0.9 in floating-point numbers
            [0.1, 0.2, 0.3],
            [0.4, 0.2, 0.61],
            [NAN, 0.2, 0.1],
            [-1.0, NAN, NAN],
            [1e15, 1.0, 1e15 + 2],
        ]
    )
    assert found.violations(table).tolist() == [2, 2, 1]
    assert found.violations(table).dtype == np.int64


@given(st.integers(0, 6), st.lists(st.integers(-(10**12), 10**12), min_size=3, max_size=3))
def test_sums_of_decimals_are_exact(places, steps):
    table = (
        np.array([steps, [steps[0] + steps[1] - 1, *steps[:2]], [steps[0] + steps[1], *steps[:2]]])
        / 10**places
    )
    rule = ((1, -1, -1), True, 0)
    found = rules_of("A = B + C", ["A", "B", "C"], table)
    for record in table:
        assert found.violations(record[None])[0] == naive.is_broken(rule, record)


# --- discovery ---


def test_the_census_has_one_sum(census):
    values = census.to_numpy()
    found = rules_of("discover", census.columns, values)
    (total,) = (rule for rule in found.rules if rule.equality)
    declared = rules_of("PTOTVAL = PEARNVAL + POTHVAL", census.columns, values)
    assert total.meaning == declared.rules[0].meaning
    assert set(found.texts[1:]) == {f"{name} >= 0" for name in census.columns}
    assert not found.violations(values[:, [census.columns.index(name) for name in found.columns]]).any()


def test_other_files(tarragona):
    found = rules_of("discover", tarragona.columns, tarragona.to_numpy())
    assert found.texts == tuple(f"{name} >= 0" for name in tarragona.columns if tarragona[name].min() >= 0)
    sample = Table(sdc.load_sample())
    names = sample.numeric_columns(None)
    found = rules_of("discover", names, sample.floats(names))
    assert [rule.text for rule in found.rules if rule.equality] == [
        "turnover = domestic_sales + export_sales"
    ]


def test_totals_of_totals_duplicates_and_idle_columns():
    rng = generator()
    a, b, c = (rng.integers(-500, 900, 60) / 100 for _ in range(3))
    rare = np.where(np.arange(60) == 7, 3.5, 0.0)
    first, second = np.round(a + b + rare, 2), np.round(a + b + rare + c, 2)
    columns = {
        "zero": np.zeros(60),
        "seven": np.full(60, 7.0),
        "a": a,
        "b": b,
        "rare": rare,
        "first": first,
        "again": first,
        "c": c,
        "second": second,
    }
    found = discover.discovered_sums(list(columns), np.column_stack(list(columns.values())))
    assert {rule.text for rule in found} == {"again = first", "first = a + b + rare", "second = first + c"}
    holes = np.column_stack(list(columns.values()))
    holes[1::7, 2] = NAN
    assert {rule.text for rule in discover.discovered_sums(list(columns), holes)} == {
        rule.text for rule in found
    }
    holes[3, 8] += 0.01
    assert {rule.text for rule in discover.discovered_sums(list(columns), holes)} == {
        "again = first",
        "first = a + b + rare",
    }


def test_few_records_prove_nothing():
    table = np.array([[3.0, 1.0, 2.0], [5.0, 4.0, 1.0], [9.0, 2.0, 7.0]])
    assert discover.discovered_sums(["A", "B", "C"], table) == []
    assert discover.discovered_sums(["A", "B", "C"], np.tile(table, (50, 1))) == []


def test_discovery_tells_no_minimum():
    values = np.column_stack([np.arange(5.0, 40.0), -np.arange(35.0), np.full(35, NAN)])
    assert rules_of("discover", ["A", "B", "C"], values).texts == ("A >= 0",)


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_discovery_finds_what_all_subsets_give(seed):
    rng = generator(seed)
    p = int(rng.integers(2, 5))
    table = rng.integers(-3, 50, (40, p)) / 10.0 ** rng.integers(0, 3)
    for _ in range(int(rng.integers(0, 3))):
        parts = rng.choice(table.shape[1], size=min(2, table.shape[1]), replace=False)
        table = np.column_stack([table, np.round(table[:, parts].sum(axis=1), 2)])
    names = [f"v{j}" for j in range(table.shape[1])]
    found = [rule for rule in discover.discovered_sums(names, table) if len(rule.terms) > 2]
    expected = naive.totals(table)
    factors = np.array([[dict(rule.terms).get(name, 0) for name in names] for rule in found]).reshape(
        -1, len(names)
    )
    for row in factors:
        total, parts = np.flatnonzero(row == 1), np.flatnonzero(row == -1)
        assert (total[0], tuple(parts)) in expected
    repeated = [rule for rule in discover.discovered_sums(names, table) if len(rule.terms) == 2]
    equal = [[dict(rule.terms).get(name, 0) for name in names] for rule in repeated]
    known = np.vstack([factors, np.array(equal).reshape(-1, len(names))])
    for total, parts in expected:
        row = np.zeros(len(names))
        row[total], row[list(parts)] = 1, -1
        assert np.linalg.matrix_rank(np.vstack([known, row])) == np.linalg.matrix_rank(known)


# --- what an intruder does ---


def check_projection(found, rule_list, table, unit):
    moved = found.projected(table, unit)
    for record, point in zip(table, moved, strict=True):
        expected = naive.projection(rule_list, record, unit)
        np.testing.assert_allclose(point, expected[1], atol=1e-7)


KNOWN = [
    (["A = B + C"], [((1, -1, -1), True, 0)]),
    (
        ["A = B + C", "B >= 0", "C >= 0"],
        [((1, -1, -1), True, 0), ((0, -1, 0), False, 0), ((0, 0, -1), False, 0)],
    ),
    (
        ["A <= B", "B <= C", "A >= 1", "C <= 4"],
        [((1, -1, 0), False, 0), ((0, 1, -1), False, 0), ((-1, 0, 0), False, -1), ((0, 0, 1), False, 4)],
    ),
    (["A = 2*B - C + 3", "A >= B"], [((1, -2, 1), True, 3), ((-1, 1, 0), False, 0)]),
    (["A = B + C +- 2"], [((1, -1, -1), True, 0, 2)]),
    (["A = B - C + 1 +- 1.5", "A >= 0"], [((1, -1, 1), True, 1, Fraction(3, 2)), ((-1, 0, 0), False, 0)]),
]


@pytest.mark.parametrize(("texts", "listed"), KNOWN)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_projection_is_the_nearest_point(texts, listed, seed):
    rng = generator(seed)
    names = ["A", "B", "C"]
    table = rng.normal(0, 4, (5, 3))
    unit = rng.choice([0.5, 1.0, 3.0], 3)
    found = rules_of(texts, names, table)
    check_projection(found, listed, table, unit)


def test_the_check_sees_a_projection_in_the_wrong_units():
    found = rules_of(KNOWN[0][0], ["A", "B", "C"], NOTHING)
    table, unit = generator().normal(0, 4, (5, 3)), np.array([1.0, 2.0, 4.0])
    check_projection(found, KNOWN[0][1], table, unit)

    class Wrong(Rules):
        def projected(self, values, spread):
            return super().projected(values, np.ones_like(spread))

    assert fails(check_projection, Wrong(found.columns, found.rules), KNOWN[0][1], table, unit)


def test_projection_leaves_what_holds_what_is_missing_and_what_does_not_vary():
    found = rules_of(["A = B + C", "B >= 0"], ["A", "B", "C"], NOTHING)
    table = np.array([[3.0, 1.0, 2.0], [NAN, -1.0, 2.0], [9.0, 1.0, 2.0]])
    moved = found.projected(table, np.array([0.0, NAN, 2.0]))
    assert np.array_equal(moved, [[3.0, 1.0, 2.0], [NAN, -1.0, 2.0], [9.0, 1.0, 8.0]], equal_nan=True)
    assert found.projected(table, np.ones(3))[1, 1] == 0.0


def test_fractions_are_exact():
    assert rules("A <= 0.1").rules[0].constant == Fraction(1, 10)


def attacked(x, y, found, name="linkage", **options):
    return sdc.METRICS[name].score(Pair(Original.of(x), y, rules=found), **options)


def small_release(share=0.8):
    """A total and its parts under noise, and a column that no rule names."""
    rng = generator(3)
    parts = rng.gamma(1.0, 2.0, (200, 2))
    x = np.column_stack([rng.normal(size=200), parts, parts.sum(axis=1)])
    y = x + rng.normal(0, share, x.shape) * x.std(axis=0)
    return x, y, rules_of(["x4 = x2 + x3", "x2 >= 0", "x3 >= 0"], ["x1", "x2", "x3", "x4"], x)


def test_where_the_rules_hold_nothing_changes():
    x, y, found = small_release()
    y[:, 1:] = found.repaired(y[:, 1:], None, [True] * 3)
    for direction in DIRECTIONS:
        known, unknown = (attacked(x, y, some, direction=direction, detail=True) for some in (found, None))
        assert known.parts == unknown.parts
        assert known.random.overall == unknown.random.overall


def test_parts_and_shuffles_of_a_pair_keep_the_rules():
    x, y, found = small_release()
    pair = Pair(Original.of(x), y, rules=found)
    assert pair.take(np.arange(50)).rules is found
    assert all(other.rules is found for other in shuffled_pairs(pair))
