"""Edit rules with tolerances: read, checked in exact decimals, restored by the smallest change."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_rules as naive
import sdckit as sdc
from cases import each
from file_transport import engine
from maskings import NAN, generator
from repairs import NAMES
from sdckit.engines.masking import mask_files
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair
from sdckit.metrics.publishable import guarded_values
from sdckit.risk.distances import breaks_rules
from sdckit.rules.rules import rules_of

NOTHING = np.zeros((0, 3))
POSITIVE = [((-1, 0, 0), False, 0), ((0, -1, 0), False, 0), ((0, 0, -1), False, 0)]
# --- words ---


@each(
    ("text", "normal", "tolerance"),
    [
        ("A = B + C +- 2", "A = B + C +- 2", 2),
        ("A == B + C ± 0.25", "A = B + C +- 0.25", Fraction(1, 4)),
        ("B + C = A+-1e1", "A = B + C +- 10", 10),
        ("A = B + 3 +/- 2", "A = B + 3 +- 2", 2),
        ("3*A = 3*B +- 1", "A = B +- 1/3", Fraction(1, 3)),
        ("A/4 = B +- 0.1", "A = 4*B +- 0.4", Fraction(2, 5)),
        ("A = 5 +- 2", "A = 5 +- 2", 2),
        ("A = B +- 0", "A = B", 0),
        ("A = B + -2", "A = B - 2", 0),
    ],
)
def test_tolerances_are_exact_and_have_a_normal_wording(text, normal, tolerance):
    (rule,) = rules_of(text, NAMES, NOTHING).rules
    assert (rule.text, rule.tolerance) == (normal, tolerance)
    (again,) = rules_of(rule.text, NAMES, NOTHING).rules
    assert again == rule
    assert again.meaning == rule.meaning


def test_rules_with_different_tolerances_are_different_rules():
    found = rules_of(["A = B + C +- 2", "B + C = A +- 2.0", "A = B + C +- 1", "A = B + C"], NAMES, NOTHING)
    assert found.texts == ("A = B + C +- 2", "A = B + C +- 1", "A = B + C")


@each(
    ("text", "message"),
    [
        ("A <= B +- 2", "has a tolerance but is not one equation; write 'A = B "),
        ("0 <= A ± 2", "has a tolerance but is not one equation; write 'A = B "),
        ("A = B = C +- 2", "has a tolerance but is not one equation; write 'A = B "),
        ("A +- 2 = B", "does not end in its tolerance, a number; write 'A = B "),
        ("A = B +- C", "does not end in its tolerance, a number; write 'A = B "),
        ("A = B +- 2 + C", "does not end in its tolerance, a number; write 'A = B "),
        ("A = B +-", "cannot be read to its end; write it like"),
        ("A = B +- -2", "cannot be read at '-'; write it like"),
        ("A +- 2", "has no =, <= or >=; write it like"),
    ],
)
def test_what_has_no_tolerance_is_refused_in_one_line(text, message):
    with pytest.raises(ValueError, match=message) as error:
        rules_of(text, NAMES, NOTHING)
    assert "\n" not in str(error.value)


def test_contradictions_are_seen_within_the_tolerance():
    assert rules_of(["A = B +- 2", "A = B + 3 +- 1"], NAMES, NOTHING) is not None
    with pytest.raises(ValueError, match=r"these rules: A = B \+- 1; A = B \+ 3 \+- 1; correct"):
        rules_of(["A = B +- 1", "A = B + 3 +- 1"], NAMES, NOTHING)


# --- checked ---


@given(
    places=st.integers(0, 4),
    steps=st.lists(st.integers(-(10**10), 10**10), min_size=2, max_size=2),
    tolerance=st.integers(1, 500),
)
@settings(max_examples=40)
def test_records_are_within_the_tolerance_in_exact_decimals(places, steps, tolerance):
    missed = np.array([-tolerance - 1, -tolerance, 0, tolerance, tolerance + 1])
    table = np.column_stack([sum(steps) + missed, *(np.full(5, step) for step in steps)]) / 10**places
    exact = Fraction(tolerance, 10**places)
    found = rules_of(f"A = B + C +- {exact}", NAMES, NOTHING).broken(table)[:, 0]
    assert found.tolist() == [True, False, False, False, True]
    assert found.tolist() == [naive.is_broken(((1, -1, -1), True, 0, exact), record) for record in table]


def test_missing_cells_and_bounds_of_one_column():
    found = rules_of(["A = 0.3 +- 0.1", "A = B +- 1"], NAMES, NOTHING)
    table = np.array([[0.2, 1.2], [0.4, NAN], [0.41, 1.5], [0.19, -0.9], [NAN, 9.0]])
    assert found.broken(table).tolist() == [
        [False, False],
        [False, False],
        [True, True],
        [True, True],
        [False, False],
    ]


# --- restored ---


def test_a_total_moves_to_the_edge_of_its_tolerance():
    table = np.array([[10.0, 4.0, 5.0], [30.0, 12.0, 8.0], [-30.0, 2.0, 3.0]])
    found = rules_of("A = B + C +- 2", NAMES, NOTHING).repaired(table, [0, 0, 0], [True] * 3)
    assert found.tolist() == [[10, 4, 5], [22, 12, 8], [3, 2, 3]]
    finer = rules_of("A = B + C +- 0.75", NAMES, NOTHING).repaired(table, [1, 0, 0], [True] * 3)
    assert finer.tolist() == [[9.7, 4, 5], [20.7, 12, 8], [4.3, 2, 3]]


def test_linked_sums_are_restored_without_the_solver(monkeypatch):
    rules = rules_of(["A = B + C +- 1", "D = E + F +- 1", "A <= D + 90"], list("ABCDEF"), np.zeros((0, 6)))
    table = np.array([[9.0, 1, 1, 1, 9, 1], [1, 9, 1, 9, 1, 1], [9, 1, 1, 9, 1, 1], [1, 9, 1, 1, 9, 1]])
    monkeypatch.setattr("sdckit.rules.repair.solved", None)
    found = rules.repaired(table, [0] * 6, [True] * 6)
    assert not rules.broken(found).any()


@given(
    seed=st.integers(0, 10**6),
    method=st.sampled_from(["noise", "mdav", "rank_swap", "individual_ranking"]),
    tolerance=st.sampled_from(["0.05", "0.5", "2", "30"]),
    decimals=st.integers(0, 2),
)
@settings(max_examples=25)
def test_no_released_record_breaks_a_rule_beyond_its_tolerance(seed, method, tolerance, decimals):
    rng = generator(seed)
    parts = np.round(rng.lognormal(4, 1, (20, 2)), decimals)
    total = np.round(parts.sum(axis=1) + rng.uniform(-1, 1, 20) * float(tolerance), decimals)
    table = pl.DataFrame(dict(zip(NAMES, [total, *parts.T], strict=True)))
    rules = [f"A = B + C +- {tolerance}", "B >= 0"]
    listed = [((1, -1, -1), True, 0, Fraction(tolerance)), POSITIVE[1]]
    if naive.any_broken(listed, table.to_numpy()):  # rounding may have moved a total beyond its tolerance
        with pytest.warns(UserWarning, match="original itself breaks the rule"):
            masked = sdc.Microdata(table, rules=rules).mask(method, decimals="original", rng=seed)
    else:
        masked = sdc.Microdata(table, rules=rules).mask(method, decimals="original", rng=seed)
    assert not naive.any_broken(listed, masked.to_numpy())


# --- what an intruder does ---


def test_records_within_the_tolerance_are_not_corrected_by_intruders():
    rng = generator(3)
    parts = rng.integers(0, 99, (50, 2)).astype(float)
    x = np.column_stack([parts.sum(axis=1), parts])
    y = x + np.array([1.0, 0.0, 0.0])
    near, exact = (rules_of(text, ["x1", "x2", "x3"], x) for text in ("x1 = x2 + x3 +- 1", "x1 = x2 + x3"))
    assert breaks_rules(Pair(Original.of(x), y, rules=exact))
    assert not breaks_rules(Pair(Original.of(x), y, rules=near))
    assert np.array_equal(near.projected(y, np.ones(3)), y)
    assert breaks_rules(Pair(Original.of(x), y + np.array([0.5, 0.0, 0.0]), rules=near))


# --- elsewhere ---


def one_sum(n):
    """Records with T = A + B, missed by 1 or 2 in half of them."""
    rng = generator(8)
    parts = np.round(rng.lognormal(6, 1, (n, 2)))
    off = rng.choice([-2, -1, 1, 2], n) * (rng.permutation(n) < n / 2)
    return np.column_stack([parts.sum(axis=1) + off, parts])


def test_engines_keep_tolerances(tmp_path):
    pl.DataFrame(one_sum(60), schema=["T", "A", "B"]).write_parquet(tmp_path / "in.parquet")
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
    values = one_sum(60)
    values[0] = 1e9, 1e9, 0.0  # one record makes up the totals of T and A
    for text in ("T = A + B", "T = A + B +- 2"):
        shown = guarded_values(["T", "A", "B"], values, rules_of(text, ["T", "A", "B"], values))
        assert shown["total", "B"] == (None, None)
    assert guarded_values(["T", "B"], values[:, [0, 2]])["total", "B"] != (None, None)
