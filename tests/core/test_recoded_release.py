"""Recoding beside masking: what is published is coarse, what is compared is the original."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from sdckit.core.description import floor_of_data
from secret_bytes import entropy

RNG = np.random.default_rng(5)
N = 60
PEOPLE = pl.DataFrame(
    {
        "age": RNG.integers(18, 90, N),
        "town": RNG.choice(["a", "b", "c", "d"], N, p=[0.6, 0.3, 0.05, 0.05]),
        "income": np.round(RNG.lognormal(7, 1, N), 1),
        "rent": np.round(RNG.lognormal(5, 1, N), 1),
        "w": RNG.uniform(1, 9, N),
    }
)
HOW = {"age": 10, "town": "rare:9", "w": "round:1"}


def test_a_recoded_column_is_published_coarse_and_not_masked():
    masked = sdc.Microdata(PEOPLE, weights="w", recode=HOW).mask("mdav", k=3)
    assert masked.drop("income", "rent").equals(sdc.recode(PEOPLE, HOW).drop("income", "rent"))
    assert masked.select("income", "rent").equals(
        sdc.mask(PEOPLE.select("income", "rent"), "mdav", k=3).select("income", "rent")
    )


def test_prepared_data_keep_the_original_cells_and_the_published_ones():
    original = sdc.Microdata(PEOPLE, weights="w", recode=HOW).original
    assert original.columns == ("income", "rent")
    assert original.table.column("age").to_list() == PEOPLE["age"].to_list()
    assert original.published_column("age").to_list() == (PEOPLE["age"] // 10 * 10).to_list()
    assert original.published_column("rent").to_list() == PEOPLE["rent"].to_list()


def test_a_recommendation_recodes_its_release():
    limits = {"linkage": 1, "linkage_sure": 1}
    choice = sdc.Microdata(PEOPLE.drop("w"), recode={"age": 10}).recommend(
        max_risk=limits, plan={"mdav": {"k": [3, 5]}}, rng=1
    )
    assert choice.release(entropy=entropy(1)).data["age"].is_in(range(0, 99, 10)).all()


@pytest.mark.long
@pytest.mark.parametrize("recode", [None, {"age": 30, "town": "rare:9"}, {"age": 60, "town": "rare:9"}])
def test_a_recoded_file_has_one_risk(recode):
    frame = PEOPLE.drop("w")
    columns = ["income", "rent"]
    made = sdc.Microdata(frame, columns=columns, recode=recode).release("mdav", k=3, entropy=entropy(1))
    risk = made.evaluation["linkage"]
    aligned = frame[made.rows.tolist()]
    assert sdc.Microdata(aligned, columns=columns).evaluate(made.data, made_by=made.disclosure)[
        "linkage"
    ] == pytest.approx(risk)
    swept = (
        sdc.Microdata(frame, columns=columns, recode=recode)
        .sweep({"mdav": {"k": [3]}}, metrics="linkage")
        .table
    )
    assert swept["value"][0] == pytest.approx(risk)
    floor = sdc.Microdata(frame, columns=columns, recode=recode).describe().floor
    assert risk >= floor - 1e-12
    assert floor_of_data(sdc.Microdata(frame, columns=columns, recode=recode).original).floor == floor
    known = sdc.Microdata(aligned, columns=columns, known=columns).evaluate(
        made.data, made_by=made.disclosure
    )["linkage"]
    assert risk > known


@pytest.mark.parametrize(
    ("roles", "text"),
    [
        ({"columns": ["age", "income"]}, "'age'"),
        ({"drop": "age"}, "'age'"),
        ({"key": "age"}, "'age'"),
        ({"by": "age"}, "'age'"),
        ({"unit": "age"}, "'age'"),
    ],
)
def test_recoded_columns_have_no_role_that_forbids_it(roles, text):
    with pytest.raises(ValueError, match=text):
        sdc.Microdata(PEOPLE, recode={"age": 10}, **roles)
