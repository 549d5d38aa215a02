"""Warnings of `evaluate`: files that were not masked, and rows that look wrongly paired."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sdckit as sdc

N = 50
RNG = np.random.default_rng(8)
DATA = pl.DataFrame(
    {
        "id": [f"r{i:02d}" for i in range(N)],
        "a": RNG.lognormal(3, 1, N).round(3),
        "b": RNG.lognormal(3, 1, N).round(3),
        "c": RNG.lognormal(3, 1, N).round(3),
    }
)
MASKED = DATA.with_columns(pl.col("a", "b", "c") * 2)
ROLES = {"untouched": "id"}
FORMS = {"polars": lambda f: f, "pandas": pl.DataFrame.to_pandas, "pyarrow": pl.DataFrame.to_arrow}


def warnings_of(masked, original=DATA, **roles):
    """The texts of the warnings of an evaluation."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        sdc.Microdata(original, **ROLES | roles).evaluate(masked, metrics="mae")
    assert {one.filename for one in seen} <= {__file__}
    return [str(one.message) for one in seen]


def partly(share, column="a"):
    """The masked table with a share of the cells of one column as in the original."""
    kept = pl.arange(N) < share * N
    return MASKED.with_columns(pl.when(kept).then(DATA[column]).otherwise(MASKED[column]).alias(column))


def test_a_masked_file_has_no_warning():
    for form in FORMS.values():
        assert warnings_of(form(MASKED), form(DATA)) == []
    assert warnings_of(MASKED, key="id", untouched=None) == []


def test_an_identical_file():
    text = "the masked file is identical to the original in every compared column; mask it first"
    for form in FORMS.values():
        assert warnings_of(form(DATA), form(DATA)) == [text]
    assert warnings_of(DATA.reverse(), key="id", untouched=None) == [text]
    gaps = DATA.with_columns(a=pl.when(pl.arange(N) < 9).then(None).otherwise("a"))
    assert warnings_of(gaps, gaps) == [text]
    array = DATA.select("a", "b").to_numpy()
    with pytest.warns(UserWarning, match=text):
        sdc.evaluate(array, array)


def test_a_column_unchanged_in_more_than_half_of_its_cells():
    text = "more than half of the cells are as in the original: 'a'; mask more strongly"
    assert warnings_of(partly(0.5)) == []
    assert warnings_of(partly(0.52)) == [text]
    assert warnings_of(partly(1)) == [text]
    both = partly(1).with_columns(partly(0.6, "b")["b"])
    assert warnings_of(both) == [text.replace("'a'", "'a', 'b'")]
    constant = DATA.with_columns(a=pl.lit(5.5))
    assert warnings_of(MASKED.with_columns(a=pl.lit(5.5)), constant) == []


def test_half_of_the_cells_counts_observed_ones():
    gaps = DATA.with_columns(a=pl.when(pl.arange(N) < 10).then("a"))
    six = gaps.with_columns(a=pl.when(pl.arange(N) < 6).then("a").otherwise(pl.col("a") + 1), b="c", c="b")
    assert warnings_of(six, gaps) == [
        "more than half of the cells are as in the original: 'a'; mask more strongly"
    ]


def test_every_unchanged_column_is_named():
    names = [f"v{j:02d}" for j in range(15)]
    data = pl.DataFrame({name: RNG.normal(size=N) for name in names})
    masked = data.with_columns(v00=pl.col("v00") * 2)
    (text,) = warnings_of(masked, data, untouched=None)
    assert all(repr(name) in text for name in names[1:])


@pytest.mark.parametrize("form", FORMS)
def test_a_column_that_repeats_an_original_one(form):
    copy = FORMS[form](MASKED.with_columns(before=DATA["b"], other=DATA["b"] + 1))
    text = "the masked file has columns with original values: 'before' repeats 'b'; drop them"
    assert warnings_of(copy, FORMS[form](DATA)) == [text]


def test_copies_are_found_when_rows_are_paired_by_key():
    copy = MASKED.with_columns(before=DATA["b"]).sample(fraction=1, shuffle=True, seed=1)
    text = "the masked file has columns with original values: 'before' repeats 'b'; drop them"
    assert warnings_of(copy, key="id", untouched=None) == [text]


def test_an_untouched_column_that_equals_a_variable():
    data = DATA.with_columns(twin=DATA["a"])
    masked = MASKED.with_columns(twin=DATA["a"])
    text = "the masked file has columns with original values: 'twin' repeats 'a'; drop them"
    assert warnings_of(masked, data, untouched=["id", "twin"]) == [text]


@pytest.mark.parametrize("form", FORMS)
def test_a_unique_column_in_another_order(form):
    text = (
        "the values of 'id' are unique, the same in both files and in another order, and rows are paired by "
        "position; name it as key="
    )
    turned = MASKED.reverse()
    assert warnings_of(FORMS[form](turned), FORMS[form](DATA)) == [text]
    assert warnings_of(FORMS[form](turned), FORMS[form](DATA), key="id", untouched=None) == []
    other = turned.with_columns(id=pl.col("id") + "x")
    assert warnings_of(FORMS[form](other), FORMS[form](DATA)) == []


def test_a_unique_number_in_another_order_is_named_if_it_looks_like_an_identifier():
    data = DATA.with_columns(firm_id=pl.arange(N) * 3 + 10).drop("id")
    turned = data.with_columns(MASKED.select("a", "b", "c")).reverse()
    (text,) = warnings_of(turned, data, untouched="firm_id")
    assert text.startswith("the values of 'firm_id' are unique")
    swapped = MASKED.with_columns(c=DATA["c"].reverse())
    assert warnings_of(swapped, columns=["a", "b"]) == []


def test_pandas_tables_with_the_same_labels_in_another_order():
    text = (
        "both tables have the same index labels in another order, and rows are paired by position; "
        "sort both alike, or give key="
    )
    for labels in (list("abcdefghij") * 5, range(N), [f"k{i}" for i in range(N)]):
        ours = DATA.drop("id").to_pandas().set_index(pd.Index(labels))
        theirs = MASKED.drop("id").to_pandas().set_index(pd.Index(labels))
        expected = [text] if theirs.index.is_unique else []
        assert warnings_of(theirs[::-1], ours, untouched=None) == expected
        assert warnings_of(theirs, ours, untouched=None) == []
    other = theirs.set_index(pd.Index(range(N)))
    assert warnings_of(other, ours, untouched=None) == []


def test_metrics_by_themselves_warn_of_labels_in_another_order_where_pairs_matter():
    ours, theirs = (one.select("a", "b").to_pandas() for one in (DATA, MASKED))
    for function in (sdc.brmae, sdc.mse, sdc.linkage):
        with pytest.warns(UserWarning, match="same index labels in another order.*sort both alike"):
            function(ours, theirs[::-1])
        function(ours, theirs)
    with pytest.warns(UserWarning, match="same index labels in another order"):
        sdc.brmae(ours["a"], theirs["a"][::-1])
    sdc.ks(ours, theirs[::-1])  # compares distributions


def test_columns_to_be_dropped_that_are_still_there():
    text = "the masked file still has columns to be dropped: 'id'; remove them first"
    assert warnings_of(MASKED, drop="id", untouched=None) == [text]
    assert warnings_of(MASKED.drop("id"), drop="id", untouched=None) == []


def test_rows_that_stand_for_no_record_raise_no_doubt_on_pairs():
    turned = MASKED.reverse()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sdc.Microdata(DATA, **ROLES).evaluate(turned, made_by=sdc.Method(paired=False))


def test_warnings_never_print_a_cell():
    marked = DATA.with_columns(id=pl.lit("secret") + pl.col("id"), a=pl.lit(777777.0) + pl.col("a"))
    for masked in (marked, marked.reverse(), marked.with_columns(more=marked["a"])):
        texts = warnings_of(masked, marked)
        assert texts
        assert not any("secret" in text or "7777" in text for text in texts)


def test_untouched_columns_in_another_order_look_shuffled():
    rng = np.random.default_rng(5)
    original = pl.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "sex": ["f", "m", "m"] * 20})
    masked = original.with_columns(pl.col("a", "b") + 0.5)[rng.permutation(60)]
    with pytest.warns(UserWarning, match="'sex' are the same in both files, but in another order"):
        sdc.evaluate(original, masked, metrics="mae")
