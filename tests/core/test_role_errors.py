"""Roles that contradict each other or name no column: one clear line each, the same in every function."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from cases import each
from sdckit.core.table import names_of

N = 40
RNG = np.random.default_rng(3)
DATA = pl.DataFrame(
    {
        "id": [f"r{i}" for i in range(N)],
        "hh": [f"h{i // 2}" for i in range(N)],
        "sex": ["f", "m"] * (N // 2),
        "w": RNG.integers(2, 9, N) / 2,
        "a": RNG.lognormal(3, 1, N).round(1),
        "b": RNG.lognormal(3, 1, N).round(1),
    }
)
MASKED = DATA.with_columns(pl.col("a", "b") * 2)


def published(drop):
    """The masked table without the dropped columns."""
    names = names_of(drop)
    return MASKED if set(names) >= set(MASKED.columns) else MASKED.drop(names, strict=False)


GOOD = {"columns": ["a", "b"], "key": "id", "unit": "hh", "untouched": ["sex", "w"]}
CALLS = {
    "mask": lambda x, **roles: sdc.Microdata(x, **roles).mask("mdav"),
    "evaluate": lambda x, drop=(), **roles: sdc.Microdata(x, drop=drop, **roles).evaluate(published(drop)),
    "sweep": lambda x, **roles: sdc.Microdata(x, **roles).sweep({"mdav": {"k": [3]}}),
    "recommend": lambda x, **roles: sdc.Microdata(x, **roles).recommend(
        max_risk={"linkage": 0.5}, plan={"mdav": {"k": [3]}}
    ),
    "release": lambda x, **roles: sdc.Microdata(x, **roles).release("mdav"),
}
PUBLICATION = {  # roles of which a column has one, as arguments and in words
    "columns": "a variable",
    "key": "the key",
    "unit": "the unit",
    "untouched": "untouched",
    "drop": "dropped",
}
KNOWLEDGE = ("known", "unknown", "confidential")
WRONG = {
    **{f"unknown {role}": ({role: "z"}, "unknown column 'z'") for role in [*PUBLICATION, *KNOWLEDGE]},
    **{
        f"{one} and {other}": ({one: "a", other: "a"}, f"column 'a' is {word} but also {other_word}; give it")
        for i, (one, word) in enumerate(PUBLICATION.items())
        for other, other_word in [*PUBLICATION.items()][i + 1 :]
    },
    **{
        f"{one} and {other}": (
            {one: ["b", "a"], other: "a"},
            f"column 'a' is {one} but also {other}; give it",
        )
        for i, one in enumerate(KNOWLEDGE)
        for other in KNOWLEDGE[i + 1 :]
    },
    **{
        f"{role} that is not published": ({role: "id", **given}, f"column 'id' is {role} but also {word}")
        for role in KNOWLEDGE
        for given, word in (({"key": "id"}, "the key"), ({"drop": "id"}, "dropped"))
    },
    "weights to mask": ({"columns": ["a", "w"], "weights": "w"}, "'w' is a variable but also the survey"),
    "weights as unit": ({"unit": "w", "weights": "w"}, "column 'w' is the unit but also the survey weights"),
    "stratum as unit": ({"unit": "hh", "by": "hh"}, "column 'hh' is the unit but also a stratum; give"),
    "two units": ({"unit": ["hh", "id"]}, "unit names 2 columns, hh, id; join them into one column"),
    "nothing known": ({"known": []}, "known names no column; name what the intruder knows, or leave known="),
    "all dropped": ({"drop": DATA.columns}, "all columns are dropped, so that nothing is left to publish;"),
    "all numbers dropped": ({"drop": ["w", "a", "b"]}, "no numeric column left; name some with columns"),
}


@each("wrong", WRONG)
@each("call", CALLS)
def test_every_function_refuses_wrong_roles_in_the_same_words(call, wrong):
    roles, message = WRONG[wrong]
    with pytest.raises(ValueError, match=message) as error:
        CALLS[call](DATA, **roles)
    assert "\n" not in str(error.value)
    assert "; " in str(error.value)


@pytest.mark.parametrize("call", CALLS)
def test_every_function_takes_every_role(call):
    CALLS[call](DATA, **GOOD, known=["sex", "a"], unknown="w", confidential="b")
    CALLS[call](DATA, columns=["a", "b"], drop="id", unit="hh", weights="w", by="sex", unknown=["w", "sex"])
    CALLS[call](DATA, columns=["a", "b"], drop="id", unit="hh", weights="w", by="sex", untouched=["w", "sex"])


def test_the_intruder_knows_all_that_is_published_unless_declared():
    def known(**roles):
        return sdc.Microdata(DATA, **GOOD, **roles).original.roles.known_columns(DATA.columns)

    assert known() == ["sex", "w", "a", "b"]
    assert known(unknown="w") == ["sex", "a", "b"]
    assert known(unknown="w", confidential=["a"]) == ["sex", "b"]
    assert known(known=["sex", "a"]) == ["sex", "a"]
    assert known(known="a", confidential="b") == ["a"]
    roles = sdc.Microdata(DATA, columns=["a", "b"], drop=["id", "w"], unit="hh").original.roles
    assert roles.known_columns(DATA.columns) == ["sex", "a", "b"]
    assert roles.published(DATA.columns) == ["hh", "sex", "a", "b"]
    assert roles.known_columns(["a", "new"]) == ["a", "new"]


def test_columns_with_another_role_are_no_variables():
    assert sdc.Microdata(DATA, key="id", unit="hh").original.columns == ("w", "a", "b")
    assert sdc.Microdata(DATA, key="id", unit="hh", untouched="w", unknown="a").original.columns == ("a", "b")
    assert sdc.Microdata(DATA, key="id", unit="hh", untouched="w", drop="b", known="a").original.columns == (
        "a",
    )


def test_known_columns_must_be_in_the_masked_file():
    with pytest.raises(ValueError, match="known names 'sex', which the masked file does not have; leave out"):
        sdc.Microdata(DATA, **GOOD, known=["a", "sex"]).evaluate(MASKED.drop("sex"))


def test_a_search_keeps_the_roles_of_its_data():
    roles = GOOD | {"known": ["sex", "a"], "unknown": "w", "confidential": "b"}
    data = sdc.Microdata(DATA, **roles)
    choice = data.recommend(max_risk={"linkage": 0.5}, plan="mdav")
    assert choice.conditions.original is data.original
