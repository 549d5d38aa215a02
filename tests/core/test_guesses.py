"""What columns look like: codes, identifiers, units, weights, dates, text."""

import datetime as dt
import string

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cases import each
from sdckit.core.guesses import Guess, guess_columns, is_near_unique
from sdckit.core.table import Table

N = 600
RNG = np.random.default_rng(7)
WORDS = ["".join(RNG.choice(list(string.ascii_lowercase), 8)) for _ in range(N)]
DAYS = [dt.date(1930, 1, 1) + dt.timedelta(days=int(d)) for d in RNG.integers(0, 30_000, N)]
HOUSEHOLDS = np.repeat(np.arange(1, N), RNG.integers(1, 6, N - 1))[:N]
INSIDE = np.arange(N) - np.flatnonzero(np.diff(HOUSEHOLDS, prepend=0))[HOUSEHOLDS - 1]  # from 0
AMOUNTS = np.round(RNG.lognormal(8, 1, N), 2)

COLUMNS = {  # name of the column: cells, role, undecided
    "income": (AMOUNTS, "variable", False),
    "valid": (RNG.integers(0, 10_000, N), "variable", False),
    "age": (RNG.integers(0, 95, N), "variable", False),
    "household_income": (RNG.integers(10, 99, N) * 1000, "variable", False),
    "number_of_staff": (RNG.integers(1, 60, N), "variable", False),
    "sex": (RNG.integers(1, 3, N), "code", True),
    "rooms": (RNG.integers(1, 9, N).astype(float), "code", True),
    "owner": (RNG.random(N) < 0.5, "code", False),
    "firm_id": (RNG.permutation(10 * N)[:N], "key", True),
    "n": (RNG.permutation(N), "key", True),
    "huge_id": (RNG.permutation(N) + 2**60, "key", True),
    "code_of_firm": ([f"F{i:04}" for i in range(N)], "key", True),
    "hhid": (HOUSEHOLDS * 7, "unit", True),
    "group": (HOUSEHOLDS, "unit", True),
    "firm": ([f"F{i // 12:04}" for i in range(N)], "unit", True),
    "region_id": (RNG.integers(1, 15, N), "code", True),
    "postcode": (RNG.integers(1000, 9999, N), "code", True),
    "region_gdp": (RNG.integers(1000, 9999, N), "variable", False),
    "RB030": (RNG.permutation(9 * 10**6)[:N] + 10**6, "key", True),
    "HB030": (np.sort(RNG.permutation(9 * 10**6)[:N])[HOUSEHOLDS] + 10**6, "unit", True),
    "DB030": (HOUSEHOLDS * 100, "unit", True),
    "RB031": (HOUSEHOLDS * 100 + INSIDE, "key", True),
    "teacher_no": (RNG.integers(100, 300, N), "unit", True),
    "Company name": (WORDS, "text", True),
    "ordered": (np.sort(RNG.permutation(10**6)[:N]), "variable", False),
    "cpsid": (RNG.integers(0, 200, N), "unit", True),
    "PERWT": (RNG.integers(10, 900, N), "weights", True),
    "birth_weight": (RNG.normal(3400, 400, N), "variable", False),
    "fnlwgt": (RNG.integers(1000, 900_000, N), "weights", True),
    "weight": (np.round(RNG.uniform(1, 30, N), 1), "weights", True),
    "w": (AMOUNTS / AMOUNTS.mean(), "weights", True),
    "born": (DAYS, "date", True),
    "visit": ([day.strftime("%d.%m.%Y") for day in DAYS], "date", True),
    "month": ([day.replace(day=1) for day in DAYS[:20]] * (N // 20), "date", False),
    "diagnosed": ([int(day.strftime("%Y%m%d")) for day in DAYS], "date", True),
    "surname": ([*WORDS[: N - 9], *WORDS[:9]], "text", True),
    "town": (RNG.choice(WORDS[:40], N), "text", False),
    "zip": ([f"0{i:04}" for i in RNG.integers(0, 90, N)], "text", False),
    "wage": ([*(f"{a}" for a in AMOUNTS[3:]), "n/a", "?", "n/a"], "text", True),
    "purchases": ([[1, 2]] * N, "nested", True),
    "empty": ([None] * N, "text", False),
}


@each("name", COLUMNS)
@each("kind", ["polars", "pandas", "pyarrow"])
def test_role_of_a_column(name, kind):
    cells, role, undecided = COLUMNS[name]
    frame = pl.DataFrame({name: cells})
    if kind == "pandas":
        frame = pd.DataFrame({name: cells})
    if kind == "pyarrow":
        frame = frame.to_arrow()
    (guess,) = guess_columns(Table(frame)).values()
    assert (guess.role, guess.undecided) == (role, undecided), guess
    assert guess.reason


def test_labels_make_codes_and_missing_codes_are_left_out():
    frame = pl.DataFrame({"a": AMOUNTS, "b": [*range(1, 6), 9] * (N // 6), "id": [-9, *range(N - 1)]})
    guesses = guess_columns(Table(frame), labelled=["a"], na=[-9])
    assert [guess.role for guess in guesses.values()] == ["code", "code", "variable"]
    assert guess_columns(Table(frame))["id"].role == "key"


def test_a_weight_beside_a_height_is_a_body_weight():
    frame = pl.DataFrame({"weight": RNG.normal(75, 9, N), "height": RNG.normal(1.7, 0.1, N)})
    assert [guess.role for guess in guess_columns(Table(frame)).values()] == ["variable", "variable"]


def test_columns_of_arrays_are_variables():
    assert {guess.role for guess in guess_columns(Table(np.ones((9, 2)))).values()} == {"variable"}


def test_sorted_counts_are_no_units():
    frame = pl.DataFrame(
        {"employees": np.sort(RNG.geometric(0.01, 3000)), "years": np.sort(RNG.integers(18, 90, 3000))}
    )
    assert {guess.role for guess in guess_columns(Table(frame)).values()} == {"variable"}


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_numbers_are_variables(sign):
    """Their differences and sums overflow, of which no warning tells."""
    numbers = np.full(40, 1e308) + 1e306 * np.arange(40)
    numbers[1::2] *= sign
    assert guess_columns(Table(pl.DataFrame({"a": numbers})))["a"].role == "variable"


def test_near_unique_by_a_sample_and_in_full():
    assert is_near_unique(Table(pl.DataFrame({"a": range(20_000)})).column("a"))
    assert not is_near_unique(Table(pl.DataFrame({"a": [i // 2 for i in range(20_000)]})).column("a"))
    assert not is_near_unique(Table(pl.DataFrame({"a": [i % 9 for i in range(20_000)]})).column("a"))


def test_reasons_hold_no_cell():
    for name, (cells, _, _) in COLUMNS.items():
        guess = guess_columns(Table(pl.DataFrame({name: cells})))[name]
        assert not any(word in guess.reason for word in [*WORDS, "F0001", "n/a"])
        assert guess.looks_like
    assert Guess("key", "x").looks_like == "an identifier"


CODED = "the negative ones look like missing codes"


@each(
    ("negative", "coded"),
    [
        ([-9, -9], True),
        ([-8, -9, -9, -99], True),
        ([-1, -1, -2], True),
        ([-999, -998, -999], True),
        ([-9], False),  # once: an amount
        ([-12, -12], False),  # no usual code
        ([-9.5, -9.5], False),
        ([-9, -120, -35, -35], False),
        ([], False),
    ],
)
def test_missing_codes_are_pointed_out_unless_declared(negative, coded):
    table = Table(pl.DataFrame({"income": [*np.geomspace(1, 1e4, 60), *map(float, negative)]}))
    assert (CODED in guess_columns(table)["income"].reason) == coded
    assert CODED not in guess_columns(table, na=negative)["income"].reason
