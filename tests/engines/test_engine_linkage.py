"""Linkage on an engine, with all records looked up, equals that of memory; a sample lies in its interval."""

from functools import cache

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from sdckit.engines import opening

N = 240
DISTANCES = ["dbrl", "dbrl_mahalanobis", "dbrl_rank"]
BOTH = [*DISTANCES, *(f"{name}:direction=original_to_masked" for name in DISTANCES)]
LITERATURE = "linkage:attacks=nearest"  # on engines, linkage knows no law
TRIED = {"dbrl", "dbrl_mahalanobis", "dbrl_rank", "guess"}


def original_table():
    """Return a table with skewed, tied and correlated variables and two columns that are not masked."""
    rng = np.random.default_rng(5)
    a = np.exp(rng.normal(size=N))
    b = np.round(a + rng.normal(size=N), 1)
    c = rng.integers(0, 6, N).astype(float)
    towns = [("north", "south", "1", None)[number] for number in rng.integers(0, 4, N)]
    return pl.DataFrame({"a": a, "b": b, "c": c, "town": towns, "size": rng.integers(1, 4, N)})


ORIGINAL = original_table()
VARIABLES = ["a", "b", "c"]
UNMASKED = ["town", "size"]


def holes(table, seed, share=0.15):
    """Return the table with missing cells in its variables."""
    rng = np.random.default_rng(seed)
    return table.with_columns(
        pl.when(pl.Series(rng.random(N) < share)).then(None).otherwise(pl.col(name)).alias(name)
        for name in VARIABLES
    )


GAPS = holes(ORIGINAL, 1)
ZEROS = ORIGINAL.with_columns(pl.when(pl.col("c") == 0).then(0.0).otherwise(pl.col("a")).alias("a"))


def masked_by(method, table=ORIGINAL, **parameters):
    """Return the table, masked by a method, and how."""
    release = sdc.mask(table, method, columns=VARIABLES, untouched=UNMASKED, rng=3, **parameters)
    return table, release, {"method": method, "parameters": parameters}


@cache
def noisy():
    """Return the table with noise, and how it was masked."""
    return masked_by("noise", percent=40.0)


def changed(*columns):
    """Return the noisy table with some columns changed after masking."""
    return ORIGINAL, noisy()[1].with_columns(*columns), noisy()[2]


def not_told(original, release, _):
    """Return the tables without what the method says of itself."""
    return original, release, {}


NINES = pl.when(pl.int_range(pl.len()) % 5 == 0).then(9).otherwise(pl.col("size")).alias("size")
CASES = {  # each returns original, masked table and options
    "noise": lambda: (*(one.drop("town", "size") for one in noisy()[:2]), {}),
    "noise, unmasked columns": noisy,
    "noise, text for numbers": lambda: changed(pl.col("size").cast(pl.String)),
    "recoded": lambda: changed(pl.col("size").replace(3, 2)),
    "suppressed": lambda: changed(pl.col("town").replace("1", None)),
    "unknown columns": lambda: (*noisy()[:2], noisy()[2] | {"unknown": ["town", "b"]}),
    "groups": lambda: masked_by("mdav", k=3),
    "groups, method not told": lambda: not_told(*masked_by("mdav", k=3)),
    "rounded": lambda: masked_by("round_to", percent=150.0),
    "rounded, method not told": lambda: not_told(*masked_by("round_to", percent=150.0)),
    "ranks swapped": lambda: masked_by("rank_swap", p=0.1),
    "ranks swapped, missing": lambda: masked_by("rank_swap", GAPS, p=0.1),
    "order kept": lambda: masked_by("individual_ranking", k=4),
    "window given": lambda: (*masked_by("rank_swap", p=0.1)[:2], {"window": 0.12}),
    "window too small": lambda: (*masked_by("rank_swap", p=0.3)[:2], {"window": 0.01}),
    "missing kept": lambda: masked_by("noise", GAPS, percent=30.0),
    "missing added": lambda: (ORIGINAL, holes(noisy()[1], 2), noisy()[2]),
    "missing filled": lambda: (GAPS, noisy()[1], noisy()[2]),
    "missing differ": lambda: (GAPS, holes(noisy()[1], 2), noisy()[2]),
    "zeros kept": lambda: masked_by("zero_preserving_noise", ZEROS, percent=30.0),
}


def on_engine(folder, original, masked, **options):
    """Return the evaluation on the engine local."""
    paths = folder / "original.parquet", folder / "masked.parquet"
    for path, table in zip(paths, (original, masked), strict=True):
        table.write_parquet(path)
    return sdc.evaluate(*paths, engine="local", columns=VARIABLES, **options)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_all_records_looked_up_equal_memory(name, tmp_path, monkeypatch):
    original, masked, told = CASES[name]()
    monkeypatch.setattr(opening, "BLOCK_ROWS", 50 + 7 * len(name))
    named = ["uniques", *BOTH]
    expected = sdc.evaluate(original, masked, columns=VARIABLES, metrics=[*named, LITERATURE], **told)
    found = on_engine(tmp_path, original, masked, metrics=[*named, "linkage"], **told)
    assert found.parts["uniques"] == pytest.approx(expected.parts["uniques"])
    for one in BOTH:
        assert found[one] == pytest.approx(expected[one], abs=1e-9), one
    parts = {part: value for part, value in expected.parts[LITERATURE].items() if part in TRIED}
    assert found.parts["linkage"] == pytest.approx(parts, abs=1e-9)
    assert found["linkage"] == pytest.approx(max(parts.values()), abs=1e-9)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_columns_that_differ_in_some_records_are_tried(tmp_path):
    original, masked, told = changed(NINES)
    expected = sdc.evaluate(original, masked, columns=VARIABLES, metrics=LITERATURE, **told)
    found = on_engine(tmp_path, original, masked, metrics="linkage", **told)
    assert found["linkage"] > expected[LITERATURE]
    assert any(note.startswith("unmasked columns that differ") for note in found.notes)


def test_a_sample_says_so_and_its_interval_holds_the_value_of_all(tmp_path):
    table, release, told = noisy()
    options = {"metrics": ["linkage", "dbrl"], "sample_queries": 100} | told
    found = on_engine(tmp_path, table, release, **options)
    options |= {"untouched": UNMASKED, "sample_queries": None}
    whole = sdc.evaluate(table, release, columns=VARIABLES, **options)
    rows = found.table.filter(pl.col("variable") == "all")
    for name, low, high in rows.select("metric", "ci_low", "ci_high").iter_rows():
        assert 0 < low < found[name] < high < 1
        assert low < whole[name] < high
        assert "estimated on 100 of 240 records" in found.meaning[name]


def test_samples_of_the_same_size_do_not_depend_on_blocks(tmp_path, monkeypatch):
    table, release, told = CASES["missing differ"]()
    values = set()
    for rows in (17, 1_000):
        monkeypatch.setattr(opening, "BLOCK_ROWS", rows)
        found = on_engine(tmp_path, table, release, metrics=["linkage"], sample_queries=60, **told)
        values.add(round(found["linkage"], 12))
    assert len(values) == 1


def test_what_linkage_leaves_out_is_said(tmp_path):
    table = ORIGINAL.sort("a")
    release = table.with_columns(pl.col("a", "b") + 0.01, size=pl.col("size").reverse() + 5)
    options = {"metrics": ["linkage"], "method": "noise"}
    found = on_engine(tmp_path, table, release, untouched=UNMASKED, **options)
    text = " ".join(found.notes)
    for words in ("not tried: the order of rows", "sorted by a", "size, which differ"):
        assert words in text
    assert "town" in found.knowledge.unmasked


def test_default_metrics_include_linkage_of_the_file_but_not_of_strata(tmp_path):
    table, release, _ = noisy()
    found = on_engine(tmp_path, table, release, by="size")
    strata = found.table.filter(pl.col("metric") == "linkage")["stratum"].to_list()
    assert strata == ["all"]
    assert any("of single strata" in note for note in found.notes)


@pytest.mark.spark
def test_spark_gives_the_same_linkage(tmp_path, spark):
    assert spark
    table, release, told = CASES["ranks swapped, missing"]()
    options = {"metrics": ["linkage", "uniques"], "sample_queries": 100} | told
    found = on_engine(tmp_path, table, release, **options)
    paths = tmp_path / "original.parquet", tmp_path / "masked.parquet"
    other = sdc.evaluate(*paths, engine="spark", columns=VARIABLES, **options)
    for name, parts in found.parts.items():
        assert other.parts[name] == pytest.approx(parts)
