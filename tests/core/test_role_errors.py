"""Roles that contradict each other or name no column: one clear line each, the same in every function."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from cases import each
from sdckit.core.roles import Roles
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
    "prepare": sdc.prepare,
    "mask": lambda x, **roles: sdc.mask(x, "mdav", **roles),
    "evaluate": lambda x, drop=(), **roles: sdc.evaluate(x, published(drop), drop=drop, **roles),
    "sweep": lambda x, **roles: sdc.sweep(x, "mdav", **roles),
    "recommend": lambda x, **roles: sdc.recommend(x, max_risk={"linkage": 0.5}, plan="mdav", **roles),
    "release": lambda x, **roles: sdc.release(x, "mdav", **roles),
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


@each("call", CALLS)
@each(
    ("role", "ours", "theirs"),
    [
        ("untouched", "sex, w", "sex"),
        ("known", "a, sex", "a"),
        ("unknown", "w", "sex"),
        ("confidential", "b", "a"),
        ("unit", "hh", "sex"),
    ],
)
def test_every_function_refuses_roles_that_contradict_prepared_data(call, role, ours, theirs):
    prepared = sdc.prepare(DATA, **GOOD, known=["a", "sex"], unknown="w", confidential="b")
    with pytest.raises(ValueError, match=f"prepared with {role} {ours} and {role} is now {theirs}; give"):
        CALLS[call](prepared, **{role: theirs})


def test_the_intruder_knows_all_that_is_published_unless_declared():
    def known(**roles):
        return sdc.prepare(DATA, **GOOD, **roles).roles.known_columns(DATA.columns)

    assert known() == ["sex", "w", "a", "b"]
    assert known(unknown="w") == ["sex", "a", "b"]
    assert known(unknown="w", confidential=["a"]) == ["sex", "b"]
    assert known(known=["sex", "a"]) == ["sex", "a"]
    assert known(known="a", confidential="b") == ["a"]
    roles = sdc.prepare(DATA, columns=["a", "b"], drop=["id", "w"], unit="hh").roles
    assert roles.known_columns(DATA.columns) == ["sex", "a", "b"]
    assert roles.published(DATA.columns) == ["hh", "sex", "a", "b"]
    assert roles.known_columns(["a", "new"]) == ["a", "new"]


def test_columns_with_another_role_are_no_variables():
    assert sdc.prepare(DATA, key="id", unit="hh").columns == ("w", "a", "b")
    assert sdc.prepare(DATA, key="id", unit="hh", untouched="w", unknown="a").columns == ("a", "b")
    assert sdc.prepare(DATA, key="id", unit="hh", untouched="w", drop="b", known="a").columns == ("a",)


def test_roles_can_be_added_to_prepared_data():
    prepared = sdc.prepare(DATA, columns=["a", "b"], key="id", untouched="w")
    more = sdc.prepare(prepared, unit="hh", known=["a"], confidential="b")
    assert more.roles == Roles(
        ("a", "b"), key=("id",), untouched=("w",), unit="hh", known=("a",), confidential=("b",)
    )
    with pytest.raises(ValueError, match="column 'id' is the key but also the unit"):
        sdc.prepare(prepared, unit="id")
    with pytest.raises(ValueError, match="known names no column"):
        sdc.prepare(prepared, known=[])


def test_known_columns_must_be_in_the_masked_file():
    with pytest.raises(ValueError, match="known names 'sex', which the masked file does not have; leave out"):
        sdc.evaluate(DATA, MASKED.drop("sex"), **GOOD, known=["a", "sex"])


def test_a_search_keeps_the_roles_of_its_data():
    roles = GOOD | {"known": ["sex", "a"], "unknown": "w", "confidential": "b"}
    choice = sdc.recommend(DATA, max_risk={"linkage": 0.5}, plan="mdav", **roles)
    assert choice.conditions.roles == sdc.prepare(DATA, **roles).roles
    assert choice.conditions.prepare(DATA).roles == choice.conditions.roles
    with pytest.raises(
        ValueError, match=r"prepared with unknown sex and unknown is now w; give unknown when"
    ):
        choice.apply(sdc.prepare(DATA, **GOOD, unknown="sex"))
    plain = sdc.recommend(DATA, max_risk={"linkage": 1, "linkage_sure": 1}, plan="mdav", **GOOD)
    with pytest.raises(ValueError, match="prepared with unknown w and the recommendation is for none; apply"):
        plain.apply(sdc.prepare(DATA, **GOOD, unknown="w"))
