"""A masking of the user's own: the intruder runs it again, and each thing that can go wrong is one line."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import attacked_releases as releases
import sdckit as sdc
from calls import called
from cases import each

N = 200
NAMES = ["turnover", "wages", "costs"]
WHO = "the masking given by made_by"


def data(n=N):
    return releases.frame(releases.skewed(n, 3))


def swap(table, rng):
    return sdc.mask(table, "rank_swap", p=0.4, rng=int(rng.integers(2**31)))


def stretch(table, rng):
    """Multiply each cell by a random factor, which differs from row to row."""
    return table.with_columns(pl.col(name) * (1 + 0.3 * rng.normal(size=table.height)) for name in NAMES)


def groups(table, _rng):
    return sdc.mask(table, "mdav", k=4)


def linkage(original, masked, **how):
    return called("evaluate", original, masked, metrics="linkage", **how)


def drawn(function, seed=9):
    return function(data(), np.random.default_rng(seed))


# --- what it finds ---


def test_swaps_of_a_function_are_undone_as_those_of_the_method():
    masked = drawn(swap)
    blind, told = linkage(data(), masked), linkage(data(), masked, made_by=swap)
    named = linkage(data(), masked, method="rank_swap", parameters={"p": 0.4})
    assert blind["linkage"] < 0.3
    assert told["linkage"] == named["linkage"] == 1
    assert told.notes == ()


def test_a_law_that_no_method_has_is_learnt_from_the_function():
    def squeeze(table, rng):
        """Halve or keep a record, with noise that grows with its first cell."""
        scale = rng.choice([0.5, 1.0], (table.height, 1)) * (1 + 0.1 * rng.normal(size=(table.height, 3)))
        return pl.DataFrame(table.to_numpy() * scale, schema=NAMES)

    draws = range(4)
    found = [
        [linkage(data(), drawn(squeeze, seed), **how)["linkage"] for seed in draws]
        for how in ({}, {"made_by": squeeze})
    ]
    assert np.mean(found[1]) >= np.mean(found[0]) > 0.05


@pytest.mark.parametrize("kind", ["polars", "pandas", "array"])
def test_the_function_gets_the_users_own_kind_of_table_with_all_its_columns(kind):
    convert = {"polars": lambda one: one, "pandas": pl.DataFrame.to_pandas, "array": pl.DataFrame.to_numpy}[
        kind
    ]
    original, masked = convert(data()), convert(drawn(swap))
    seen = []

    def own(table, rng):
        seen.append((type(table), table.shape))
        return swap(table, rng)

    assert linkage(original, masked, made_by=own)["linkage"] == 1
    assert set(seen) == {(type(original), (N, 3))}


def test_columns_that_are_not_compared_reach_the_function_and_need_not_come_back():
    original = data().with_columns(firm=pl.Series(np.arange(N)), region=pl.lit("north"))
    masked = swap(data(), np.random.default_rng(1)).with_columns(firm=pl.Series(np.arange(N)))
    seen = []

    def own(table, rng):
        seen.append(table.columns)
        return swap(table.select(NAMES), rng)

    assert linkage(original, masked, key="firm", made_by=own)["linkage"] == 1
    assert set(map(tuple, seen)) == {(*NAMES, "firm", "region")}


def test_a_function_that_masks_in_place_leaves_the_original_alone():
    original = data().to_pandas()
    before = original.copy()

    def own(table, rng):
        table[NAMES] *= 1 + 0.2 * rng.normal(size=table.shape)
        return table

    masked = own(original.copy(), np.random.default_rng(5))
    assert linkage(original, masked, made_by=own)["linkage"] > 0.3
    pd.testing.assert_frame_equal(original, before)


def test_the_draws_are_the_intruders_own_and_the_same_at_every_run():
    masked, numbers = drawn(swap), []

    def own(table, rng):
        numbers.append(int(rng.integers(2**31)))
        return sdc.mask(table, "rank_swap", p=0.4, rng=numbers[-1])

    values = [linkage(data(), masked, made_by=own, rng=seed)["linkage"] for seed in (1, 2)]
    assert values[0] == values[1]
    half = len(numbers) // 2
    assert numbers[:half] == numbers[half:]
    assert len(set(numbers[2:half])) == half - 2


def test_a_shuffled_release_is_attacked_as_one_in_order():
    masked = drawn(swap)
    rows = np.random.default_rng(3).permutation(N)
    assert linkage(data(), masked[rows], rows=rows, made_by=swap)["linkage"] == 1


def test_several_releases_are_masked_by_the_same_function():
    made = [drawn(stretch, seed) for seed in (1, 2)]
    alone = linkage(data(), made[0], made_by=stretch)["linkage"]
    assert linkage(data(), made, together=True, made_by=stretch)["linkage"] > alone


def test_scenarios_use_it_too():
    masked = drawn(swap)
    result = linkage(data(), masked, made_by=swap, intruders={"press": sdc.Intruder(known=NAMES[:2])})
    blind = linkage(data(), masked, intruders={"press": sdc.Intruder(known=NAMES[:2])})
    assert result["linkage (press)"] > blind["linkage (press)"]


# --- a masking that draws nothing ---


def test_a_masking_that_draws_nothing_leaves_the_records_published_alike():
    masked = drawn(groups)
    told = linkage(data(), masked, made_by=groups)
    assert told["linkage"] == pytest.approx(
        linkage(data(), masked, method="mdav", parameters={"k": 4})["linkage"]
    )
    assert told["linkage"] <= 0.25
    assert told.notes == ()


def test_a_masking_that_draws_nothing_and_makes_another_file_is_named():
    with pytest.warns(
        UserWarning, match="draws nothing and does not make this file: 600 of 600 cells differ"
    ):
        result = linkage(data(), drawn(groups), made_by=lambda table, _: sdc.mask(table, "mdav", k=5))
    assert result["linkage"] == linkage(data(), drawn(groups))["linkage"]
    assert any("folds of the release alone" in note for note in result.notes)


def test_a_masking_that_fits_the_file_badly_is_named():
    with pytest.warns(UserWarning, match="does not look as if made by the masking given; name what was done"):
        linkage(data(), drawn(stretch), made_by=swap)


# --- errors ---


def failing(_table, _rng):
    raise KeyError("a cell: 4711.08")


WRONG = {
    "failed with KeyError; mend it": failing,
    "returned 7 records of 200; return all records": lambda table, _: table.head(7),
    "returned 400 records of 200": lambda table, _: pl.concat([table, table]),
    "returned no column 'wages'; return": lambda table, _: table.drop("wages"),
    "returned a column that neither file has: 'other'; return": lambda t, _: t.with_columns(other=1.0),
    "returned text in column 'wages'; return numbers": lambda t, _: t.cast({"wages": pl.String}),
    "returned no table but NoneType; return the masked table": lambda *_: None,
}


@each("text", WRONG)
def test_what_a_function_does_wrong_is_one_line_without_a_cell(text):
    function, kind = WRONG[text], TypeError if "text" in text or "no table" in text else ValueError
    with pytest.raises(kind) as error:
        linkage(data(), drawn(swap), made_by=function)
    assert str(error.value).startswith(f"{WHO} {text}")
    assert "\n" not in str(error.value)
    assert "4711" not in str(error.value)


def test_what_is_no_function():
    with pytest.raises(TypeError, match=r"^made_by is a str; give sdc.Method\(...\), a function"):
        linkage(data(), drawn(swap), made_by="rank_swap")


def test_prepared_data_without_a_table_cannot_be_masked():
    prepared = sdc.Microdata(data()).original.without_table()
    with pytest.raises(ValueError, match="have no table that made_by could mask; prepare the table anew"):
        linkage(prepared, drawn(swap), made_by=swap)


def test_engines_that_read_blocks_take_no_function(tmp_path):
    for name, table in {"a": data(), "b": drawn(swap)}.items():
        table.write_parquet(tmp_path / f"{name}.parquet")
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    with pytest.raises(ValueError, match="the engine local reads blocks of rows and takes no made_by"):
        called("evaluate", *files, engine="local", made_by=swap)
    assert called("evaluate", *files, metrics="linkage", engine="memory", made_by=swap)["linkage"] == 1


# --- small and odd files ---


def noisy(table, rng):
    return np.asarray(table) + 0.1 * rng.normal(size=np.shape(table))


HOW = {"unnamed": {}, "named": {"method": "noise", "parameters": {"percent": 10}}, "made": {"made_by": noisy}}


@pytest.mark.parametrize("how", HOW)
def test_a_file_of_one_record_is_one_line(how):
    with pytest.raises(ValueError, match=r"^the data have 1 record; give at least 2$"):
        called("evaluate", np.ones((1, 2)), np.ones((1, 2)), **HOW[how])


@each("how", HOW)
@each("n", [2, 5, 9, 10])
def test_few_records_have_a_figure(how, n):
    x = np.random.default_rng(n).normal(size=(n, 3))
    y = noisy(x, np.random.default_rng(1))
    assert 1 / n <= linkage(x, y, **HOW[how])["linkage"] <= 1


@pytest.mark.filterwarnings("ignore:not masked")
@pytest.mark.parametrize(("n", "p", "seed"), [(11, 4, 1), (12, 3, 0), (20, 3, 5)])
def test_swaps_of_few_records_have_a_figure(n, p, seed):
    """Of few records neither a law nor the structure of swaps is sure: no matching may be left."""
    x = np.random.default_rng(100 * seed + n).normal(size=(n, p))
    y = sdc.mask(x, "rank_swap", p=0.3, rng=seed)
    found = sdc.evaluate(x, y, made_by=sdc.Method("rank_swap", p=0.3), metrics=["linkage", "linkage_sure"])
    assert 1 / n < found["linkage"] <= 1
    assert 0 <= found["linkage_sure"] <= found["linkage"]


@pytest.mark.filterwarnings("ignore:.*does not look as if")
@each("how", HOW)
@each("case", ["missing", "suppressed", "constant"])
def test_a_column_without_values_or_without_differences(how, case):
    x = np.random.default_rng(1).normal(size=(40, 3))
    if case != "suppressed":
        x[:, 1] = np.nan if case == "missing" else 5
    y = noisy(x, np.random.default_rng(1))
    if case != "constant":
        y[:, 1] = np.nan
    assert 0.3 < linkage(x, y, **HOW[how])["linkage"] <= 1


@pytest.mark.filterwarnings("ignore:.*does not look as if")
@pytest.mark.parametrize("how", HOW)
def test_equal_records_are_found_by_chance_only(how):
    x = np.ones((40, 3))
    assert linkage(x, noisy(x, np.random.default_rng(1)), **HOW[how])["linkage"] == pytest.approx(1 / 40)
