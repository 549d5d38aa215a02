"""What users get wrong with the roles of columns: the files, the command, and what its one line must say."""

import polars as pl

from bad_input import PEOPLE, evaluate, mask, plain, text
from bad_input_recommend import recommend
from bad_input_sweep import plan, sweep

GRID = "--grid mdav.k=2:3"
WIDE = pl.concat([PEOPLE.with_columns(sex=pl.Series([1, 2] * 6))] * 3).with_columns(
    id=pl.Series([f"p{i}" for i in range(36)]), spent=pl.Series(["1.5", "x"] * 18)
)
CODES = {"data.csv": text(WIDE.select("id", "sex", "region"))}
UNDECIDED = {"data.csv": text(WIDE)}
SETTLED = "settle each with --untouched, --columns, --drop, --recode, --unknown, --key or --unit$"


def both(more):
    return [
        "recommend",
        "data.csv",
        "-o",
        "out.csv",
        "--max-risk",
        "linkage=0.9",
        *GRID.split(),
        *more.split(),
    ]


ROLE_CASES = {
    **{
        f"unknown column as {role}": (
            mask(f"--{role} regio"),
            r"unknown column 'regio' \(did you mean 'region'\?\); choose from: id, region",
        )
        for role in ("untouched", "known", "unknown", "confidential", "unit", "drop")
    },
    "a key that is a unit": (mask("--key id --unit id"), "column 'id' is the key but also the unit; give it"),
    "key and untouched": (sweep(f"{GRID} --key id --untouched id"), "'id' is the key but also untouched; "),
    "key that is dropped": (recommend("--key id --drop id"), "'id' is the key but also dropped; give it one"),
    "unit that is untouched": (
        mask("--unit region --untouched region"),
        "column 'region' is the unit but also untouched; give it one role",
    ),
    "unit of strata": (mask("--unit region --by region"), "'region' is the unit but also a stratum; give"),
    "variable to drop": (mask("--drop age"), "column 'age' is a variable but also dropped; give it one role"),
    "variable untouched": (
        evaluate("--columns income --untouched income"),
        "'income' is a variable but also unt",
    ),
    "untouched and dropped": (
        mask("--untouched id,region --drop region"),
        "column 'region' is untouched but also dropped; give it one role",
    ),
    "known and unknown": (
        mask("--known region,age --unknown weight --unknown age"),
        "column 'age' is known but also unknown; give it one role",
    ),
    "known and confidential": (
        evaluate("--known region,age --confidential age"),
        "column 'age' is known but also confidential; give it one role",
    ),
    "unknown and confidential": (
        mask("--unknown age --confidential age"),
        "column 'age' is unknown but also confidential; give it one role",
    ),
    "known key": (mask("--key id --known id"), "column 'id' is known but also the key; give it one role"),
    "confidential and dropped": (
        mask("--drop region --confidential region"),
        "column 'region' is confidential but also dropped; give it one role",
    ),
    "known, but not in the masked file": (
        {"masked.csv": text(PEOPLE.drop("region").with_columns(pl.col("income", "age") * 2))},
        evaluate("--columns income,age --known income,region"),
        "known names 'region', which the masked file does not have; leave out of --known",
    ),
    "nothing known": (
        [*mask(), "--known", ""],
        "known names no column; name what the intruder knows, or leave --known out",
    ),
    "all columns dropped": (
        plain("--drop id,region --drop income,age,weight"),
        "all columns are dropped, so that nothing is left to publish; drop fewer of them",
    ),
    "all numbers dropped": (
        plain("--drop income,age,weight"),
        "no numeric column left; name some with columns",
    ),
    "codes alone": (
        CODES,
        plain(),
        r"no numeric column left: 'sex' looks like a code \(at most 20 distinct whole numbers\); name",
    ),
    "undecided columns": (
        UNDECIDED,
        both(""),
        (
            r"^error: a release needs a decision on 3 columns: 'id' looks like an identifier \(.*\), "
            r"'sex' looks like a code \(.*\), "
            rf"'spent' looks like text \(.*\); {SETTLED}"
        ),
    ),
    "one undecided column": (
        UNDECIDED,
        both("--key id --untouched weight,spent --known sex"),
        rf"^error: a release needs a decision on 1 column: 'sex' looks like a code \([^()]*\); {SETTLED}",
    ),
    "undecided columns to hand out": (
        UNDECIDED,
        plain("--release --untouched weight"),
        rf"^error: a release needs a decision on 3 columns: 'id' .*, 'sex' .*, 'spent' .*; {SETTLED}",
    ),
    "distinct weights": (
        {"data.csv": text(WIDE.with_columns(weight=pl.arange(36) / 7 + 1))},
        both("--drop id,spent,sex --weights weight"),
        f"decision on 1 column: 'weight' has survey weights of which at least 95 % are distinct; {SETTLED}",
    ),
    # plans
    "plan with a number as key": (
        *plan("key = 5\n[mdav]\nk = 2\n"),
        "key in 'plan.toml' is 5; give names of columns in a list",
    ),
    "plan with a list of numbers": (
        *plan("drop = [1, 2]\n[mdav]\nk = 2\n"),
        r"drop in 'plan.toml' is \[1, 2\]; give names of columns in a list",
    ),
    "plan with a switch for missing cells": (
        *plan("na = [true]\n[mdav]\nk = 2\n"),
        r"na in 'plan.toml' is \[True\]; give missing codes in a list",
    ),
    "plan with two units": (
        *plan('unit = ["id", "region"]\n[mdav]\nk = 2\n'),
        "unit in the plan names 2 columns; name one",
    ),
}
