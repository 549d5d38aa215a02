"""Models of two files: shared classes, domains, and models that have no coefficients."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from surveys import DESIGN, survey


@pytest.fixture(scope="module")
def data():
    return pl.DataFrame(survey(), nan_to_null=True)


def test_both_files_leave_out_the_same_class(data):
    masked = data.filter(pl.col("region") != "north")
    found = sdc.estimates(data, masked, "model: income ~ region + members").table
    rows = {row["estimate"].split("[", 1)[1][:-1]: row for row in found.iter_rows(named=True)}
    assert list(rows) == ["Intercept", "region[T.south]", "region[T.west]", "members"]
    assert {row["reason"] for row in rows.values()} == {
        "masked: the terms depend on each other: region[T.west] follows from those before it"
    }


def test_a_class_that_is_gone_is_left_out(data):
    masked = data.filter(pl.col("region") != "west")
    found = sdc.estimates(data, masked, "model: income ~ region").table
    assert found["reason"].to_list() == [None, None, "masked: no record of the domain has this class"]
    north, south = (masked.filter(pl.col("region") == one)["income"].mean() for one in ("north", "south"))
    assert found["masked"].to_list()[:2] == pytest.approx([north, south - north])


def test_a_model_by_domain_is_that_of_its_records(data):
    found = sdc.estimates(data, data, "model: log(income) ~ members by region", **DESIGN).table
    west = data.filter(pl.col("region") == "west")
    alone = sdc.estimates(west, west, "model: log(income) ~ members", **DESIGN).table
    part = found.filter(domain="west").select("original", "se_original", "records_original")
    assert part.equals(alone.select(part.columns))


BAD = {
    "model: income ~ members + I(2 * members)": "the terms depend on each other: I(2 * members) follows from",
    "logit: separated ~ members": "the terms separate the response perfectly",
    "logit: nearly ~ members": "the terms separate the response perfectly",
    "logit: members ~ income": "the response has values other than 0 and 1",
    "logit: always ~ income": "the response is always 1",
    "model: income ~ log(zero)": "no record has a value",
    "model: few ~ income + members + region": "4 records for 5 coefficients",
}


@pytest.mark.parametrize("text", BAD)
def test_a_model_without_coefficients_says_why(data, text):
    members = pl.col("members")
    more = data.with_columns(
        separated=(members > 3).cast(pl.Int64),
        nearly=pl.when(members == 3).then(pl.col("owner")).otherwise(members > 3),
        always=1,
        zero=0.0,
        few=pl.when(pl.int_range(pl.len()) < 4).then("income"),
    )
    found = sdc.estimates(more, more, text).table
    assert found["original"].null_count() == found.height
    assert all(BAD[text] in reason for reason in found["reason"])


def test_records_whose_terms_have_no_value_are_left_out(data):
    more = data.with_columns(x=pl.when(pl.col("members") > 1).then(pl.col("income")).otherwise(0.0))
    found = sdc.estimates(more, more, "model: spending ~ log(x)").table
    kept = more.filter(pl.col("x") > 0, pl.col("spending").is_not_null())
    assert set(found["records_original"]) == {kept.height}
    slope = np.polyfit(np.log(kept["x"].to_numpy()), kept["spending"].to_numpy(), 1)[0]
    assert found["original"][1] == pytest.approx(slope)


def test_a_column_has_classes_only_in_the_models_that_say_so(data):
    plain = "model: income ~ members"
    alone = sdc.estimates(data, data, plain).table
    beside = sdc.estimates(data, data, [plain, "model: log(income) ~ C(members)"]).table
    assert beside[: alone.height].equals(alone)
    assert beside["estimate"][-1].startswith("model: log(income) ~ C(members) [C(members)[T.")
