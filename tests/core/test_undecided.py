"""Columns that look like codes, identifiers or odd text: no variables, warned of, refused in a release."""

import datetime as dt
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sdckit as sdc
from cases import each
from sdckit.core.prepared import PreparedTable
from sdckit.core.roles import require_decided, warn_of_undecided

N = 60
RNG = np.random.default_rng(5)
START = dt.date(2001, 3, 5)
PLAIN = {"income": RNG.lognormal(7, 1, N).round(2), "age": RNG.integers(16, 90, N)}
DOUBTFUL = {
    "sex": RNG.integers(1, 3, N),
    "person": np.arange(N) + 1000,
    "hhid": np.repeat(np.arange(N // 2) * 7 + 3, 2),
    "spent": ["1.5", "n.a."] + [f"{i}.5" for i in range(N - 2)],
    "name": [f"name {i}" for i in range(N)],
    "born": [START + dt.timedelta(days=17 * i) for i in range(N)],
    "tags": [[i, i + 1] for i in range(N)],
}
LOOKS = {
    "sex": "a code",
    "person": "an identifier",
    "hhid": "an identifier of households, firms or persons",
    "spent": "text",
    "name": "text",
    "born": "a date",
    "tags": "nested data",
}
CLEAR = {"town": ["x", "y", "z"] * (N // 3), "day": [START] * N, "flag": [True, False] * (N // 2)}
SETTLING = ("untouched", "drop", "unknown")


def data(*names):
    chosen = {name: DOUBTFUL[name] for name in names or DOUBTFUL}
    return pl.DataFrame(PLAIN | CLEAR | chosen)


def masked_of(frame):
    return frame.with_columns(pl.col("income", "age") * 2)


CALLS = {
    "mask": lambda x, **roles: sdc.Microdata(x, **roles).mask("mdav"),
    "evaluate": lambda x, **roles: sdc.Microdata(x, **roles).evaluate(masked_of(x)),
    "sweep": lambda x, **roles: sdc.Microdata(x, **roles).sweep({"mdav": {"k": 3}}, metrics="mae"),
    "recommend": lambda x, **roles: sdc.Microdata(x, **roles).recommend(
        max_risk={"linkage": 1.0}, plan="mdav"
    ),
    "release": lambda x, **roles: sdc.Microdata(x, **roles).release("mdav", metrics="mae"),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_function_warns_in_one_line_that_names_them_all(call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        CALLS[call](data())
    texts = {str(one.message) for one in seen}
    assert len(texts) == 1
    (text,) = texts
    assert text.startswith("not masked, and the role is undecided, of 7 columns: ")
    for name, look in LOOKS.items():
        assert re.search(rf"'{name}' looks like {look} \([^()]+\)[,;]", text), name
    assert all(f"{option}=" in text for option in ("untouched", "columns", "unknown", "key", "unit"))
    assert {one.filename for one in seen} == {__file__}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_doubtful_column_is_no_variable_and_is_refused_in_a_release(name):
    prepared = PreparedTable.of(data(name), warn=False)
    assert prepared.columns == ("income", "age")
    assert [one.column for one in prepared.roles.undecided] == [name]
    with pytest.raises(
        ValueError, match=rf"^a release needs a decision on 1 column: '{name}' looks like"
    ) as why:
        require_decided(prepared.roles.undecided)
    assert "settle each with untouched=, columns=, drop=, recode=, unknown=, key= or unit=" in str(why.value)


@each("role", SETTLING)
@each("name", DOUBTFUL)
def test_a_role_settles_a_doubtful_column(name, role):
    prepared = sdc.Microdata(data(name), **{role: name}).original
    assert prepared.columns == ("income", "age")
    assert prepared.roles.undecided == ()
    require_decided(prepared.roles.undecided)


def test_other_roles_settle_as_well():
    columns = ["income", "age", "sex"]
    assert sdc.Microdata(data("sex"), columns=columns).original.columns == tuple(columns)
    assert not sdc.Microdata(data("person"), key="person").original.roles.undecided
    assert not sdc.Microdata(data("hhid"), unit="hhid").original.roles.undecided
    assert not sdc.Microdata(data("sex"), by="sex").original.roles.undecided
    assert not sdc.Microdata(data("born"), recode={"born": "year"}).original.roles.undecided


def test_what_the_intruder_knows_settles_nothing():
    for role in ("known", "confidential"):
        with pytest.warns(UserWarning, match="'sex' looks like a code"):
            sdc.Microdata(data("sex"), **{role: "sex"}).mask("mdav")


def test_columns_given_by_name_leave_the_others_undecided():
    with pytest.warns(UserWarning, match="undecided, of 2 columns: 'sex' .*, 'name'"):
        sdc.Microdata(data("sex", "name"), columns="income").mask("mdav")


def test_weights_that_are_nearly_all_distinct_need_a_decision():
    frame = pl.DataFrame(PLAIN | {"w": RNG.uniform(1, 2, N)})
    message = "'w' has survey weights of which at least 95 % are distinct; settle each with"
    with pytest.warns(UserWarning, match=message):
        sdc.Microdata(frame, weights="w").mask("mdav")
    with pytest.raises(ValueError, match=message):
        require_decided(sdc.Microdata(frame, weights="w").original.roles.undecided)
    for role in SETTLING:
        require_decided(sdc.Microdata(frame, weights="w", **{role: "w"}).original.roles.undecided)
    require_decided(sdc.Microdata(frame.drop("w"), weights=frame["w"].to_numpy()).original.roles.undecided)
    later = sdc.Microdata(frame, columns=["income", "age"], weights="w")
    assert [one.column for one in later.original.roles.undecided] == ["w"]


def test_columns_that_look_like_weights_are_masked_unless_named():
    frame = pl.DataFrame(PLAIN | {"weight": RNG.integers(2, 9, N) / 2, "hh_wgt": RNG.uniform(1, 2, N)})
    message = "^column 'weight' looks like a survey weight; name it in weights=, or variables in columns=$"
    for call in CALLS.values():
        with pytest.warns(UserWarning, match=message):
            call(frame)
        call(frame, weights="weight")
    assert sdc.Microdata(frame).original.columns == ("income", "age", "weight", "hh_wgt")
    named = sdc.Microdata(frame, columns=["income", "age"])
    with pytest.warns(UserWarning, match="of 1 column: 'hh_wgt' looks like a survey weight"):
        named.mask("mdav")
    with pytest.raises(ValueError, match="decision on 1 column: 'hh_wgt' looks like a survey weight"):
        require_decided(named.original.roles.undecided)


def test_evaluate_warns_only_of_columns_that_are_published():
    frame = data("sex", "name")
    with pytest.warns(UserWarning, match="undecided, of 1 column: 'sex' looks like a code .*; settle each"):
        sdc.evaluate(frame, masked_of(frame).drop("name"))
    sdc.evaluate(frame, masked_of(frame).drop("sex", "name"))
    prepared = sdc.Microdata(frame, untouched=["sex", "name"])
    prepared.evaluate(masked_of(frame))


def test_clear_columns_of_all_kinds_need_no_decision():
    assert sdc.Microdata(pl.DataFrame(PLAIN | CLEAR)).original.roles.undecided == ()
    warn_of_undecided([])


def test_arrays_and_series_keep_all_their_columns():
    codes = np.column_stack([DOUBTFUL["sex"], DOUBTFUL["person"], PLAIN["age"]])
    assert sdc.Microdata(codes).original.columns == ("x1", "x2", "x3")
    assert sdc.Microdata(codes, na=-9).original.columns == ("x1", "x2", "x3")
    assert sdc.Microdata(pd.Series(DOUBTFUL["sex"], name="sex")).original.columns == ("sex",)


def test_without_a_clear_column_the_error_names_the_doubtful_ones():
    frame = pl.DataFrame({name: DOUBTFUL[name] for name in ("sex", "person", "name")})
    message = (
        r"^no numeric column left: 'sex' looks like a code .*, 'person' looks like an identifier .*columns="
    )
    with pytest.raises(ValueError, match=message):
        sdc.mask(frame, "mdav")


def test_warnings_never_print_a_cell():
    frame = data().with_columns(spent=pl.lit("secret-7"), name=pl.Series([f"secret-{i}" for i in range(N)]))
    with pytest.warns(UserWarning, match="'name' looks like text") as seen:
        sdc.evaluate(frame, masked_of(frame))
    assert not any("secret" in str(one.message) for one in seen)
