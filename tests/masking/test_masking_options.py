"""Options that go with every method: numbers by stratum, group numbers, columns by name, unpaired rows."""

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sdckit as sdc
from cases import each
from contract import NAMES, NAN, data, masking, needed, small, strong, with_holes
from sdckit.core.prepared import PreparedTable
from sdckit.masking.mask_table import mask_prepared

METHODS = list(sdc.METHODS.values())
WITH_GRID = [m.name for m in METHODS if any(p.grid for p in m.parameters)]
WITH_GROUPS = [m.name for m in METHODS if m.groups]
UNPAIRED = [m.name for m in METHODS if not m.paired]
BY_COLUMN = [(m.name, p.name, p.kind) for m in METHODS for p in m.parameters if p.kind in (tuple, dict)]
LISTS = [(method, name) for method, name, kind in BY_COLUMN if kind is tuple]
UNMASKED = "ignore:not masked, every value"
NUMBERS = [(method, name) for method, name, kind in BY_COLUMN if kind is dict]


def frame(n=40):
    return pl.DataFrame(data(n), schema=NAMES)


def regional():
    """Two strata, in turns, of which the south comes first."""
    return frame().with_columns(region=pl.Series(["south", "north"] * 20))


def one_line(call, *arguments, **options):
    """What a refused call says."""
    with pytest.raises(ValueError, match=r"^[^\n]+; [^\n]+$") as caught:
        call(*arguments, **options)
    return str(caught.value)


# --- a number for each stratum ---


@pytest.mark.filterwarnings(UNMASKED)  # the weakest of the grid
@each("name", WITH_GRID)
def test_a_parameter_may_differ_from_stratum_to_stratum(name):
    method = sdc.METHODS[name]
    parameter = next(p for p in method.parameters if p.grid)
    # In groups, 30 is more than a stratum has.
    weak, firm = (parameter.kind(parameter.grid[place]) for place in (2, 5 if method.group_size else -1))
    chosen = {"north": firm, "south": weak}
    table = regional()
    masked = sdc.Microdata(table, by="region").mask(name, rng=3, **{parameter.name: chosen})
    rng = np.random.default_rng(3)
    for region in ("south", "north"):  # as they appear
        part = table.filter(region=region).drop("region")
        alone = sdc.mask(part, name, rng=rng, **{parameter.name: chosen[region]})
        assert masked.filter(region=region).drop("region").equals(alone)
    text = f"north:{firm}, south: {weak}"
    assert sdc.Microdata(table, by="region").mask(name, rng=3, **{parameter.name: text}).equals(masked)
    both = sdc.Microdata(table, by="region").mask(name, rng=3, **{parameter.name: weak})
    assert not both.equals(masked)


def test_strata_of_numbers_and_missing_strata_have_names_too():
    table = frame(9).with_columns(g=pl.Series([1, 1, 1, 2, 2, 2, None, None, None]))
    masked = sdc.Microdata(table, by="g").mask("mdav", k={1: 2, 2: 3, "(missing)": 3})
    assert masked.equals(sdc.Microdata(table, by="g").mask("mdav", k="1:2,2:3,(missing):3"))
    assert masked["a"].n_unique() == 3
    several = table.with_columns(h=pl.lit("x"))
    assert (
        sdc.Microdata(several, by=["g", "h"])
        .mask("mdav", k={"1, x": 2, "2, x": 3, "(missing), x": 3})
        .drop("h")
        .equals(masked)
    )


@each(
    ("k", "by", "said"),
    [
        ({"north": 3}, "region", "k has no value for stratum 'south'"),
        ("north:3", "region", "k has no value for stratum 'south'"),
        ({"north": 3, "south": 3, "west": 3}, "region", "unknown stratum 'west'"),
        ({"nroth": 3, "south": 3}, "region", "unknown stratum 'nroth' (did you mean 'north'?)"),
        ({"north": 3, "south": 0}, "region", "k is 0, out of range"),
        ({"north": 3, "south": "many"}, "region", "k is 'many'; give a whole number"),
        ({"north": 3, "south": 21}, "region", "stratum 'south' has 20 records, fewer than k = 21 of mdav"),
        ("north:3,south", "region", "k is 'north:3,south'; give a number for each name"),
        ("north:3,north:5", "region", "k is 'north:3,north:5'; give a number for each name"),
        ({}, "region", "k has no value for stratum 'south'"),
        ({"north": 3, "south": 5}, None, "and there are no strata; give one number, or strata"),
        ("north:3,south:5", [], "and there are no strata; give one number, or strata"),
    ],
)
def test_numbers_by_stratum_are_refused_in_one_line(k, by, said):
    columns = None if by else NAMES
    assert said in one_line(sdc.Microdata(regional(), by=by, columns=columns).mask, "mdav", k=k)


def test_words_do_not_differ_from_stratum_to_stratum():
    scale = {"north": "sd", "south": "variance"}
    assert "unknown scale" in one_line(
        sdc.Microdata(regional(), by="region").mask, "correlated_noise", scale=scale
    )


# --- numbers of groups ---


def tables(values):
    """The same records as every kind of table."""
    columns = dict(zip(NAMES, values.T, strict=True))
    index = [f"r{i}" for i in range(len(values))]
    return [pd.DataFrame(columns, index=index), pl.DataFrame(columns), pa.table(columns)]


@pytest.mark.parametrize("name", WITH_GROUPS)
def test_groups_come_as_a_column_of_every_kind_of_table(name):
    values = with_holes()
    empty = np.isnan(values).all(axis=1)
    assert empty.any()
    for gaps in ("merge", "alike"):  # the last one is the default
        plain = sdc.mask(values, name, groups="group", gaps=gaps)
        assert plain.shape == (40, 4)
        assert np.array_equal(plain[:, :3], sdc.mask(values, name, gaps=gaps), equal_nan=True)
        numbers = plain[:, 3]
        assert np.array_equal(numbers == 0, empty & (gaps == "merge"))
        assert np.unique(numbers[~empty]).tolist() == [*range(1, int(numbers.max()) + 1)]
    for table in tables(values):
        masked = sdc.mask(table, name, groups="group")
        assert type(masked) is type(table)
        found = masked if isinstance(masked, pd.DataFrame) else masked.to_pandas()
        assert found.columns.tolist() == [*NAMES, "group"]
        assert found["group"].dtype == np.int64
        assert np.array_equal(found.to_numpy(np.float64), plain, equal_nan=True)
    assert sdc.mask(tables(values)[0], name, groups="group").index[3] == "r3"
    flat = sdc.mask(data()[:, 0], name, groups="group")
    assert flat.shape == (40, 2)
    assert len(set(flat[:, 0])) == flat[:, 1].max()


@pytest.mark.parametrize("name", WITH_GROUPS)
def test_groups_are_counted_on_from_stratum_to_stratum(name):
    method = sdc.METHODS[name]
    sizes = {method.group_size: {"south": 3, "north": 5}}
    table = regional()
    masked = sdc.Microdata(table, by="region").mask(name, groups="group", **sizes)
    assert masked.columns == [*NAMES, "region", "group"]
    first, second = (masked.filter(region=region)["group"] for region in ("south", "north"))
    assert (first.min(), second.max()) == (1, masked["group"].n_unique())
    assert second.min() == first.max() + 1
    for region, k in sizes[method.group_size].items():
        part = table.filter(region=region).drop("region")
        alone = sdc.mask(part, name, groups="group", **{method.group_size: k})
        together = masked.filter(region=region)
        assert together.select(NAMES).equals(alone.select(NAMES))
        assert (together["group"] - together["group"].min() + 1).equals(alone["group"])
        assert alone["group"].value_counts()["count"].min() >= k


@pytest.mark.parametrize("taken", ["a", "region", "", "  ", 3, ["g"]])
def test_a_name_that_is_taken_is_refused(taken):
    message = one_line(sdc.Microdata(regional(), by="region").mask, "mdav", groups=taken)
    assert f"the column for group numbers cannot be named {taken!r}, which " in message


@each("name", [m.name for m in METHODS if not m.groups])
def test_a_method_without_groups_has_no_numbers_to_give(name):
    with pytest.raises(ValueError, match=f"^{name} forms no groups of records to number; choose from"):
        sdc.mask(data(), name, groups="group")


# --- columns by name ---


@pytest.mark.parametrize(("name", "option"), LISTS)
def test_names_of_columns_come_in_a_list_or_as_text(name, option):
    table = frame().select("c", "a", "b")  # the option goes by name, not by place
    masked = sdc.mask(table, name, rng=3, **{option: ["a", "b"]})
    for same in (("a", "b"), "a,b", " a , b ,", np.array(["a", "b"]).tolist(), ["a", "b", "a"]):
        assert sdc.mask(table, name, rng=3, **{option: same}).equals(masked)
    turned = sdc.mask(table, name, rng=3, **{option: "b,a"})
    assert np.allclose(turned.to_numpy(), masked.to_numpy(), rtol=1e-9, atol=0)
    assert not sdc.mask(table, name, rng=3).equals(masked)
    assert sdc.mask(table, name, rng=3, **{option: ""}).equals(sdc.mask(table, name, rng=3))
    renamed = sdc.mask(table.to_numpy(), name, rng=3, **{option: ["x2", "x3"]})
    assert np.array_equal(renamed, masked.to_numpy())


@pytest.mark.parametrize(("name", "option"), LISTS)
def test_names_of_columns_are_checked(name, option):
    assert f"unknown column in {option} 'z'" in one_line(sdc.mask, frame(), name, **{option: ["z"]})
    assert f"unknown column in {option} 'c'" in one_line(
        sdc.Microdata(frame(), columns=["a", "b"]).mask, name, **{option: "c"}
    )
    assert f"{option} is 5; give names of columns" in one_line(sdc.mask, frame(), name, **{option: 5})
    assert f"{option} names " in one_line(sdc.mask, frame(), name, **{option: NAMES})


@pytest.mark.filterwarnings(UNMASKED)  # a limit beyond all values
@pytest.mark.parametrize(("name", "option"), NUMBERS)
def test_numbers_by_column_come_in_a_dictionary_or_as_text(name, option):
    table = frame().select("c", "a", "b")
    by_default = sdc.mask(table, name, rng=3)
    results = []
    for number in (0.5, 50, 200):
        masked = sdc.mask(table, name, rng=3, **{option: {"a": number, "b": 45}})
        for same in (f"a:{number},b:45", f" b: 45 , a : {number}", {"a": str(number), "b": 45.0}):
            assert sdc.mask(table, name, rng=3, **{option: same}).equals(masked)
        results.append(masked)
    assert not all(masked.equals(by_default) for masked in results)
    assert sdc.mask(table, name, rng=3, **{option: {}}).equals(by_default)


@pytest.mark.parametrize(("name", "option"), NUMBERS)
def test_numbers_by_column_are_checked(name, option):
    table = regional()
    for by in (None, "region"):  # a column's number is not one of a stratum
        message = one_line(
            sdc.Microdata(table, by=by, columns=NAMES).mask, name, **{option: {"north": 1, "a": 2}}
        )
        assert f"unknown column in {option} 'north'" in message
    message = one_line(sdc.Microdata(table, columns=["a", "b"]).mask, name, **{option: "c:1"})
    assert f"unknown column in {option} 'c'" in message
    for wrong, said in (
        (5, f"{option} is 5; give a number for each name"),
        ("a", f"{option} is 'a'; give a number for each name"),
        ("a:1,a:2", f"{option} is 'a:1,a:2'; give a number for each name"),
        ({"a": "much"}, f"{option} is 'much'; give a number"),
        ({"a": NAN}, f"{option} is nan; give a number"),
    ):
        assert said in one_line(sdc.Microdata(table, columns=NAMES).mask, name, **{option: wrong})


# --- rows that stand for no original record ---


def shuffled(values):
    return values[np.random.default_rng(4).permutation(len(values))]


def test_metrics_without_pairs_do_not_see_the_order_of_rows():
    original, masked = data(120), data(120, seed=5)
    result = sdc.evaluate(original, masked, made_by=sdc.Method(paired=False))
    again = sdc.evaluate(original, shuffled(masked), made_by=sdc.Method(paired=False))
    measured = result.summary["metric"].to_list()
    known = [m for m in sdc.METRICS.values() if not m.experimental and m.extra is None and m.role is None]
    assert measured == [m.name for m in known if not m.paired and m.needs != "rows"]  # no fact ties rows
    for name in measured:
        assert again[name] == pytest.approx(result[name], rel=1e-9), name
        assert sdc.evaluate(original, masked, metrics=name)[name] == result[name]
    left_out = [m.name for m in known if m.paired and m.default]
    assert result.notes[0] == f"left out because rows are not paired: {', '.join(left_out)}"
    paired = sdc.evaluate(original, masked)
    assert not any("not paired" in note for note in paired.notes)
    assert {"brmae", "linkage"} <= set(paired.summary["metric"]) - set(measured)


@pytest.mark.long
@pytest.mark.parametrize("name", UNPAIRED)
def test_a_sweep_measures_unpaired_rows_by_what_makes_sense(name):
    plan = {name: {}, "noise": {"percent": [50]}}
    method = sdc.METHODS[name]
    plan[name] = {p.name: p.grid[-1:] for p in method.parameters if p.grid}
    found = sdc.sweep(frame(120), plan, rng=3, workers=1)
    default = [m for m in sdc.METRICS.values() if m.default and not m.experimental]
    by_default = [m.name for m in default if m.role is None]  # the others are about columns of a role
    metrics = found.table["metric"].unique(maintain_order=True).to_list()
    assert metrics == [*by_default, "ks", "hellinger"]
    for row in found.table.rows(named=True):
        metric = sdc.METRICS[row["metric"]]
        no_value = row["method"] == name and (metric.paired or metric.needs == "rows")
        assert (row["value"] is None) == no_value, row["metric"]
    assert found.frontier()["method"].to_list() == ["noise"]
    paired = sdc.sweep(frame(120), {"noise": {"percent": [50]}}, rng=3, workers=1)
    assert paired.table["metric"].unique(maintain_order=True).to_list() == by_default
    named = sdc.sweep(frame(120), plan, metrics=["brmae", "ks"], rng=3, workers=1)
    assert named.table["metric"].unique(maintain_order=True).to_list() == ["brmae", "ks"]


@pytest.mark.parametrize("name", UNPAIRED)
def test_codes_of_missing_cells_are_as_many_as_before(name):
    values = data()
    values[3:9, 0], values[20:22, 0], values[30, 0], values[5:8, 2] = -999, -888, NAN, -888
    before = values.copy()
    masked = masking(sdc.METHODS[name], values, na=[-999, -888])
    assert np.array_equal(values, before, equal_nan=True)
    for j, counts in enumerate([{-999: 6, -888: 2, "gap": 1}, {}, {-888: 3}]):
        cells = ["gap" if np.isnan(cell) else cell for cell in masked[:, j]]
        assert {code: n for code, n in Counter(cells).items() if code in {-999, -888, "gap"}} == counts
    table = pl.DataFrame(values, schema=NAMES)
    assert np.array_equal(
        masking(sdc.METHODS[name], table, na=[-999, -888]).to_numpy(), masked, equal_nan=True
    )


@pytest.mark.parametrize("name", UNPAIRED)
def test_columns_beside_unpaired_rows_are_named(name):
    table = frame().with_columns(id=pl.arange(40), **{f"other {i}": pl.lit("abcdef"[i]) for i in range(6)})
    with pytest.warns(UserWarning, match="stand for no original record") as caught:
        sdc.Microdata(table, key="id").mask(name, rng=1)
    assert str(caught[0].message) == (
        f"rows of {name} stand for no original record, and columns beside them are original: "
        "'id', 'other 0', 'other 1', 'other 2', 'other 3', 'other 4', 'other 5'; drop them"
    )
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings(UNMASKED)  # the weakest of the grid
@each("method", METHODS)
def test_paired_says_whether_a_row_has_to_do_with_its_record(method):
    """Else what compares row by row is left out without need, or measured without sense."""
    given = {p.name: ("x1",) for p in method.parameters if p.kind is tuple}
    weak = {p.name: p.kind(p.grid[0]) for p in method.parameters if p.grid} | small(method) | given
    values = np.column_stack([data(400)[:, 0], shuffled(data(400, seed=3))[:, 0]])
    assert needed(method, strong(method), 2) <= 400
    masked = sdc.mask(values, method.name, rng=3, **weak)
    together = np.corrcoef(values[:, 0], masked[:, 0])[0, 1]
    pairs = method.keeps_pairing(method.defaults() | weak)
    assert (together > 0.5) if pairs else (abs(together) < 0.2)


# --- what is said beside a masking ---


def notes_of(table, method, by=None, na=None, **parameters):
    return mask_prepared(PreparedTable.of(table, by=by, na=na), method, parameters=parameters).notes


def test_notes_name_their_stratum():
    table = frame(60).with_columns(region=pl.Series(["small"] * 30 + ["large"] * 30))
    table = pl.concat([table, *[table.filter(region="large")] * 3])
    sentence = "a tail has fewer than 3 values, so its mean discloses single values; raise tails"
    assert notes_of(table, "rank_swap", by="region", tails=0.05) == [f"{sentence} (strata: 'small')"]
    assert notes_of(table.filter(region="small").drop("region"), "rank_swap", tails=0.05) == [sentence]
    assert notes_of(table.drop("region"), "rank_swap", tails=0.05) == []


def test_masked_cells_that_fall_on_a_missing_code_are_counted():
    table = pl.DataFrame({"age": [20.0, 30.0, 40.0, 50.0, 99.0]})
    with pytest.warns(UserWarning, match=r"^1 masked cell fell on a code of missing cells and will"):
        masked = sdc.Microdata(table.with_columns(pl.col("age").replace(50, 99.5)), na=99).mask(
            "round_to", base=1.5
        )
    assert masked["age"].to_list()[3:] == [99.0, 99.0]
