"""Roles of columns: one resolution for every method, and prepared data that carry them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sdckit as sdc
from cases import each
from sdckit.core.prepared import PreparedTable
from sdckit.core.roles import Roles, resolve_roles
from sdckit.core.table import Table
from secret_bytes import entropy

N = 60
NAMES = ("a", "b")
PLAN = {"mdav": {"k": [3, 5]}, "noise": {"percent": [20, 80]}}
LIMITS = {"linkage": 0.9}


def data():
    rng = np.random.default_rng(11)
    frame = {"id": [f"r{i}" for i in range(N)], "g": ["x", "y"] * (N // 2)}
    numbers = {name: rng.lognormal(3, 1, N).round(1) for name in NAMES}
    return pl.DataFrame(frame | {"w": rng.uniform(1, 3, N)} | numbers)


ROLES = {"key": "id", "weights": "w", "by": "g", "na": -9, "unknown": "w"}
PLAIN = {"columns": NAMES, "unknown": ["id", "w"]}


def with_codes():
    return data().with_columns(pl.when(pl.arange(N) % 9 == 0).then(-9.0).otherwise(pl.col("a")).alias("a"))


# --- one resolution ---


def test_roles_are_resolved_in_one_place():
    found = resolve_roles(Table(data()), **ROLES)
    assert found == Roles(NAMES, key=("id",), weights="w", by=("g",), na=(-9.0,), unknown=("w",))
    with pytest.raises(AttributeError):
        found.key = ()


def test_names_count_once_and_codes_are_numbers():
    found = resolve_roles(Table(data()), columns=["b", "b"], by=["g", "g"], key=["id", "id"], na=["-9", 1])
    assert found == Roles(("b",), key=("id",), by=("g",), na=(-9.0, 1.0))


def doubled(frame):
    """A masked table: amounts and weights doubled."""
    return frame.with_columns(pl.col(*NAMES, "w") * 2)


CALLS = {
    "mask": lambda x, **roles: sdc.Microdata(x, **roles).mask("mdav"),
    "evaluate": lambda x, **roles: sdc.Microdata(x, **roles).evaluate(doubled(data())),
    "sweep": lambda x, **roles: sdc.Microdata(x, **roles).sweep(PLAN),
    "recommend": lambda x, **roles: sdc.Microdata(x, **roles).recommend(max_risk=LIMITS, plan=PLAN),
    "release": lambda x, **roles: sdc.Microdata(x, **roles).release("mdav"),
}
WRONG = {
    "unknown variable": ({"columns": ["a", "z"]}, "unknown column 'z'"),
    "unknown key": ({"key": "z"}, "unknown column 'z'"),
    "unknown stratum": ({"by": ["g", "z"]}, "unknown column 'z'"),
    "unknown weights": ({"weights": "z"}, "unknown column 'z'"),
    "text": ({"columns": ["g"]}, "column 'g' is not numeric but text"),
    "two roles": ({"columns": ["a", "w"], "weights": "w"}, "column 'w' is a variable but also the survey"),
    "grouped": ({"columns": ["a", "b"], "by": "b"}, "column 'b' is a variable but also a stratum"),
    "no code": ({"na": "none"}, "na is 'none'; give the number"),
}


@each("wrong", WRONG)
@each("call", CALLS)
def test_every_function_refuses_the_same_roles_in_the_same_words(call, wrong):
    roles, message = WRONG[wrong]
    with pytest.raises((ValueError, TypeError), match=message):
        CALLS[call](data(), **roles)


@pytest.mark.parametrize("call", CALLS)
def test_every_function_refuses_a_single_record(call):
    with pytest.raises(ValueError, match="the data have 1 record; give at least 2"):
        CALLS[call](data()[:1])


@pytest.mark.parametrize("call", [*CALLS])
def test_every_function_names_columns_that_look_like_another_role(call):
    doubtful = data().with_columns(firm_id=pl.arange(N), g=pl.lit(1.5))
    known = {"known": NAMES} if call == "recommend" else {}  # no identifier, which would miss every limit
    with pytest.warns(UserWarning, match="'firm_id' looks like an identifier") as seen:
        CALLS[call](doubtful, **known) if call != "evaluate" else sdc.evaluate(doubtful, doubled(doubtful))
    assert {warning.filename for warning in seen} == {__file__}  # where the package was called


# --- prepared data ---


def test_prepared_data_carry_roles_strata_weights_and_codes():
    prepared = sdc.Microdata(with_codes(), **ROLES).original
    assert prepared.roles == resolve_roles(Table(data()), **ROLES)
    assert [(name, len(rows)) for name, rows in prepared.strata] == [("x", 30), ("y", 30)]
    assert [part.n for _, _, part in prepared.parts] == [30, 30]
    ratio = data()["w"].to_numpy() / prepared.weights
    assert np.log2(ratio).tolist() == [round(np.log2(ratio[0]))] * N  # divided by one power of two
    assert [set(codes) for codes in prepared.codes] == [{-9.0}, set()]
    assert np.isnan(prepared.values).sum() == 7


@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow", "numpy"])
def test_prepared_data_are_masked_into_the_type_of_their_table(kind):
    frame = with_codes()
    table = {
        "polars": frame,
        "pandas": frame.to_pandas(),
        "pyarrow": frame.to_arrow(),
        "numpy": frame.select(NAMES).to_numpy(),
    }[kind]
    roles = {"na": -9} if kind == "numpy" else ROLES
    assert type(sdc.Microdata(table, **roles).mask("noise", rng=5)) is type(table)


@pytest.mark.long
def test_methods_of_one_microdata_give_what_a_fresh_one_gives():
    table, options = with_codes(), {"rng": 3, "workers": 1}
    kept = sdc.Microdata(table, **ROLES)
    masked = kept.mask("rank_swap", p=0.2, rng=3)
    search = {"max_risk": LIMITS, "plan": PLAN, **options}
    calls = [
        lambda data: data.evaluate(masked).table,
        lambda data: data.sweep(PLAN, **options).table,
        lambda data: data.release("noise", entropy=entropy(2)).data,
        lambda data: data.recommend(**search).release(entropy=entropy(8)).data,
    ]
    for call in calls:
        assert call(kept).equals(call(sdc.Microdata(table, **ROLES)))


@pytest.mark.long
@pytest.mark.parametrize("weights", ["w", "numbers"])
def test_a_choice_keeps_the_roles_of_its_data(weights):
    original = with_codes()
    numbers = {"weights": original["w"].to_numpy(), "columns": NAMES}
    roles = ROLES | ({} if weights == "w" else numbers)
    choice = sdc.Microdata(original, **roles).recommend(max_risk=LIMITS, plan=PLAN, rng=3)
    release = choice.release(entropy=entropy(8))
    assert set(release.evaluation.table["stratum"]) == {"all", "x", "y"}


@pytest.mark.parametrize("option", ["weights", "unit", "na"])
def test_a_role_that_the_data_state_is_refused_elsewhere(option):
    stated = sdc.Microdata(data(), key="id", weights="w", unit="g", na=-9)
    with pytest.raises(TypeError, match=f"the data are a Microdata, which states {option}; leave"):
        sdc.estimates(stated, data(), "mean(a)", **{option: "w" if option == "weights" else -9})
    with pytest.raises(
        TypeError, match="the data are a Microdata and weights is given too; state weights there"
    ):
        sdc.brmae(stated, data(), weights="w")


@pytest.mark.parametrize("form", [pl.DataFrame.to_series, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_weights_may_be_a_column_with_a_name(form):
    given = sdc.Microdata(data(), **PLAIN, weights=form(data().select("w"))).original.weights
    assert given.tolist() == sdc.Microdata(data(), **PLAIN, weights="w").original.weights.tolist()


def test_weights_with_two_columns_or_of_text_are_refused():
    for weights in (data().select(NAMES), data().select(NAMES).to_numpy()):
        with pytest.raises(ValueError, match="weights has 2 columns; give one number per record"):
            sdc.Microdata(data(), **PLAIN, weights=weights).mask("mdav")
    with pytest.raises(TypeError, match="column 'g' is not numeric but text"):
        sdc.Microdata(data(), **PLAIN, weights=data()["g"]).mask("mdav")


def test_columns_of_any_role_are_read_beside_the_variables():
    prepared = PreparedTable.of(with_codes(), **ROLES)
    found = prepared.matrix(["w", "b", "a"])
    assert found[:, 0] == pytest.approx(data()["w"].to_numpy())
    assert np.array_equal(found[:, 2], prepared.matrix(["a"])[:, 0], equal_nan=True)
    assert np.isnan(found[:, 2]).sum() == 7


def test_a_dataframe_may_have_columns_named_like_the_parts_of_prepared_data():
    frame = pd.DataFrame({"roles": [1.0, 2.0, 4.0], "values": [3.5, 1.0, 2.0], "table": [1.0, 5.0, 2.0]})
    assert sdc.Microdata(frame).original.columns == ("roles", "values", "table")
    assert list(sdc.mask(frame, "noise", rng=1).columns) == list(frame.columns)
