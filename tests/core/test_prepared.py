"""Roles of columns: one resolution for every function, and prepared data that carry them."""

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
    "prepare": sdc.prepare,
    "mask": lambda x, **roles: sdc.mask(x, "mdav", **roles),
    "evaluate": lambda x, **roles: sdc.evaluate(x, doubled(data()), **roles),
    "sweep": lambda x, **roles: sdc.sweep(x, PLAN, **roles),
    "recommend": lambda x, **roles: sdc.recommend(x, max_risk=LIMITS, plan=PLAN, **roles),
    "release": lambda x, **roles: sdc.release(x, "mdav", **roles),
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
    prepared = sdc.prepare(with_codes(), **ROLES)
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
    masked = sdc.mask(sdc.prepare(table, **roles), "noise", rng=5)
    expected = sdc.mask(table, "noise", rng=5, **roles)
    assert type(masked) is type(table)
    assert np.array_equal(masked, expected) if kind == "numpy" else masked.equals(expected)


def test_prepared_data_are_measured_like_their_table():
    original = with_codes()
    masked = sdc.mask(original, "rank_swap", p=0.2, rng=3, **ROLES)
    expected = sdc.evaluate(original, masked, **ROLES)
    assert sdc.evaluate(sdc.prepare(original, **ROLES), masked).table.equals(expected.table)
    assert sdc.evaluate(sdc.prepare(original, **ROLES), masked, **ROLES).table.equals(expected.table)


@pytest.mark.long
def test_prepared_data_are_swept_and_recommended_like_their_table():
    original, options = with_codes(), {"rng": 3, "workers": 1}
    prepared = sdc.prepare(original, **ROLES)
    swept = sdc.sweep(original, PLAN, **ROLES, **options)
    assert sdc.sweep(prepared, PLAN, **options).table.equals(swept.table)
    search = {"max_risk": LIMITS, "plan": PLAN, **options}
    ours, theirs = sdc.recommend(prepared, **search), sdc.recommend(original, **search, **ROLES)
    assert ours.points == theirs.points
    assert ours.conditions == theirs.conditions


@pytest.mark.long
@pytest.mark.parametrize("weights", ["w", "numbers"])
def test_a_choice_is_applied_to_prepared_data_and_to_their_table(weights):
    original = with_codes()
    numbers = {"weights": original["w"].to_numpy(), "columns": NAMES}
    roles = ROLES | ({} if weights == "w" else numbers)
    prepared = sdc.prepare(original, **roles)
    choice = sdc.recommend(prepared, max_risk=LIMITS, plan=PLAN, rng=3)
    releases = [choice.apply(data, entropy=entropy(8)) for data in (prepared, original)]
    assert releases[0].data.equals(releases[1].data)
    assert releases[0].evaluation.table.equals(releases[1].evaluation.table)
    assert set(releases[0].evaluation.table["stratum"]) == {"all", "x", "y"}


@pytest.mark.long
def test_a_release_of_prepared_data_is_that_of_their_table():
    original = with_codes()
    ours = sdc.release(sdc.prepare(original, **ROLES), "noise", entropy=entropy(2))
    theirs = sdc.release(original, "noise", entropy=entropy(2), **ROLES)
    assert ours.data.equals(theirs.data)
    assert ours.evaluation.table.equals(theirs.evaluation.table)


CONTRADICTIONS = {
    "columns": (
        ["a"],
        "prepared with columns a, b and columns is now a; name its columns when you prepare it",
    ),
    "key": ("g", "prepared with key id and key is now g; give key when you prepare it, or leave key out"),
    "by": ("id", "prepared with by g and by is now id; give by when you prepare it, or leave by out"),
    "weights": ("a", "prepared with weights w and weights is now a; give weights when you prepare it"),
    "na": (-1, "prepared with na -9 and na is now -1; declare missing codes when you prepare it"),
}


@each("option", CONTRADICTIONS)
@each("call", CALLS)
def test_an_option_that_contradicts_prepared_data_is_refused(call, option):
    value, message = CONTRADICTIONS[option]
    with pytest.raises(ValueError, match=message):
        CALLS[call](sdc.prepare(data(), **ROLES), **{option: value})


@pytest.mark.parametrize("call", CALLS)
def test_an_option_that_repeats_prepared_data_is_accepted(call):
    CALLS[call](sdc.prepare(data(), **ROLES), columns=["b", "a"], **ROLES)


def test_numbers_in_place_of_a_column_are_the_same_weights():
    prepared, weights = sdc.prepare(data(), **ROLES), data()["w"].to_numpy()
    assert sdc.prepare(prepared, weights=weights) is prepared
    with pytest.raises(ValueError, match="prepared with weights w and weights is now other numbers"):
        sdc.prepare(prepared, weights=weights + 1)


@pytest.mark.parametrize("form", [pl.DataFrame.to_series, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_weights_may_be_a_column_with_a_name(form):
    given = sdc.prepare(data(), **PLAIN, weights=form(data().select("w"))).weights
    assert given.tolist() == sdc.prepare(data(), **PLAIN, weights="w").weights.tolist()


def test_weights_with_two_columns_or_of_text_are_refused():
    for weights in (data().select(NAMES), data().select(NAMES).to_numpy()):
        with pytest.raises(ValueError, match="weights has 2 columns; give one number per record"):
            sdc.prepare(data(), **PLAIN, weights=weights)
    with pytest.raises(TypeError, match="column 'g' is not numeric but text"):
        sdc.prepare(data(), **PLAIN, weights=data()["g"])


def test_a_role_that_was_left_open_can_be_added():
    prepared = sdc.prepare(data(), **PLAIN)
    assert prepared.roles == Roles(NAMES, unknown=("id", "w"))
    assert sdc.prepare(prepared) is prepared
    more = sdc.prepare(prepared, by="g", weights="w")
    assert more.roles == Roles(NAMES, by=("g",), weights="w", unknown=("id", "w"))
    assert len(more.parts) == 2
    assert prepared.weights is None
    with pytest.raises(ValueError, match="column 'a' is a variable but also a stratum"):
        sdc.prepare(prepared, by="a")


def test_added_weights_weigh_what_was_computed_without_them():
    masked = sdc.mask(data(), "noise", **PLAIN, rng=1)
    prepared = sdc.prepare(data(), **PLAIN)
    plain = sdc.il1s(prepared, masked)
    weighted = sdc.il1s(sdc.prepare(data(), **PLAIN, weights="w"), masked)
    assert sdc.il1s(prepared, masked, weights="w") == weighted != plain
    assert sdc.il1s(prepared, masked) == plain


@pytest.mark.parametrize(("option", "value"), [("by", "g"), ("na", -9)])
def test_a_choice_refuses_data_that_are_prepared_in_another_way(option, value):
    choice = sdc.recommend(data(), max_risk=LIMITS, plan="mdav", rng=1, **PLAIN)
    with pytest.raises(ValueError, match=r"the data are prepared with .* and the recommendation is for none"):
        choice.apply(sdc.prepare(data(), **PLAIN, **{option: value}))


def test_the_order_of_columns_is_found_once_for_all_roles():
    prepared = sdc.prepare(data(), **PLAIN)
    column = prepared.ordered(0)
    assert sdc.prepare(prepared, weights="w").ordered(0) is column


def test_columns_of_any_role_are_read_beside_the_variables():
    prepared = PreparedTable.of(with_codes(), **ROLES)
    found = prepared.matrix(["w", "b", "a"])
    assert found[:, 0] == pytest.approx(data()["w"].to_numpy())
    assert np.array_equal(found[:, 2], prepared.matrix(["a"])[:, 0], equal_nan=True)
    assert np.isnan(found[:, 2]).sum() == 7


def test_a_dataframe_may_have_columns_named_like_the_parts_of_prepared_data():
    frame = pd.DataFrame({"roles": [1.0, 2.0, 4.0], "values": [3.5, 1.0, 2.0], "table": [1.0, 5.0, 2.0]})
    assert sdc.prepare(frame).columns == ("roles", "values", "table")
    assert list(sdc.mask(frame, "noise", rng=1).columns) == list(frame.columns)
