"""Risks on an engine are those of memory, to the last bit; where the files do not fit, they are refused."""

import warnings
from functools import cache, partial

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from cases import few, later
from sdckit.engines import evaluation as risks
from sdckit.engines import opening
from sdckit.masking.disclosure import Disclosure
from sdckit.rules.rules import rules_of

N = 300
VARIABLES = ["a", "b", "c"]
UNMASKED = ["town", "size"]
LINKAGE = ["linkage", "linkage_sure", "linkage_outliers", "dbrl", "dbrl_mahalanobis", "dbrl_rank"]
UNTOLD = "not checked where files are read in blocks"


def original_table(n=N):
    """Return a table with skewed, tied and correlated variables and two columns that are not masked."""
    rng = np.random.default_rng(5)
    a = np.exp(rng.normal(size=n))
    b = np.round(a + rng.normal(size=n), 1)
    towns = [("north", "south", "1", None)[number] for number in rng.integers(0, 4, n)]
    more = {"c": rng.integers(0, 60, n).astype(float), "town": towns, "size": rng.integers(1, 4, n)}
    return pl.DataFrame({"id": rng.permutation(n), "a": a, "b": b, **more})


ORIGINAL = original_table()


def holes(table, seed, share=0.15):
    """Return the table with missing cells in its variables."""
    rng = np.random.default_rng(seed)
    return table.with_columns(
        pl.when(pl.Series(rng.random(len(table)) < share)).then(None).otherwise(pl.col(name)).alias(name)
        for name in VARIABLES
    )


GAPS = holes(ORIGINAL, 1)
CODED = GAPS.with_columns(pl.col(VARIABLES).fill_null(-9.0))
HOW = {"columns": VARIABLES, "drop": "id"}


def masked_by(method, table=ORIGINAL, *, by=None, rules=None, na=None, **parameters):
    """Return the table, masked by a method, and how."""
    kept = [name for name in UNMASKED if name != by]
    roles = HOW | {"by": by, "na": na, "untouched": kept}
    release = sdc.Microdata(table, rules=rules, **roles).mask(method, rng=3, **parameters)
    return table, release, roles | {"method": method, "parameters": parameters}


@cache
def noisy():
    """Return the table with noise, and how it was masked."""
    return masked_by("noise", percent=40.0)


def changed(*columns):
    """Return the noisy table with some columns changed after masking."""
    return ORIGINAL, noisy()[1].with_columns(*columns), noisy()[2]


def in_other_order():
    """Return the tables with the key in both, the masked rows in another order."""
    release = noisy()[1].with_columns(ORIGINAL["id"]).sample(fraction=1.0, shuffle=True, seed=4)
    return ORIGINAL, release, noisy()[2] | {"drop": None, "key": "id"}


def with_rules():
    """Return a table masked and repaired to a rule, with the disclosure that states it."""
    table = ORIGINAL.with_columns(b=pl.col("a") + pl.col("b").abs())
    rules, kept = rules_of("b >= a", VARIABLES, table[VARIABLES].to_numpy()), {"untouched": UNMASKED}
    release = called("mask", table, "noise", percent=30.0, rng=3, rules="b >= a", **kept, **HOW)
    told = Disclosure.of("noise", {"percent": 30.0}, rules=rules, columns=VARIABLES)
    return table, release, kept | HOW | {"disclosure": told}


NINES = pl.when(pl.int_range(pl.len()) % 5 == 0).then(9).otherwise(pl.col("size")).alias("size")
CASES = {  # each returns original, masked table and options
    "noise, unmasked columns": noisy,
    "nobody said how": lambda: (*noisy()[:2], {"columns": VARIABLES, "unknown": ["town", "b", "id"]}),
    "recoded": lambda: changed(pl.col("size").replace(3, 2).cast(pl.String)),
    "changed in some records": lambda: changed(NINES),
    "rounded": lambda: masked_by("round_to", percent=150.0),
    "groups": lambda: masked_by("mdav", GAPS, k=3),
    "ranks swapped, missing": lambda: masked_by("rank_swap", GAPS, p=0.1),
    "missing codes": lambda: masked_by("noise", CODED, na=-9, percent=30.0),
    "missing differ": lambda: (GAPS, holes(noisy()[1], 2), noisy()[2]),
    "strata": lambda: masked_by("rank_noise", by="size"),
    "sorted": lambda: masked_by("noise", ORIGINAL.sort("a"), percent=60.0),
    "rules": with_rules,
    "key in other order": in_other_order,
}


def on_engine(folder, original, masked, engine="local", memory=None, **options):
    """Return the evaluation on an engine."""
    paths = folder / "original.parquet", folder / "masked.parquet"
    for path, table in zip(paths, (original, masked), strict=True):
        table.write_parquet(path)
    if memory:
        engine = sdc.Local(memory=memory)
    return called("evaluate", *paths, engine=engine, **options)


def figures(evaluation):
    """Return all that an evaluation says of risks."""
    table = evaluation.table.filter(pl.col("family") == "risk")
    names = table["metric"].unique().to_list()
    told = [(evaluation.meaning[name], evaluation.parts[name]) for name in sorted(names)]
    return table.rows(), told, sorted(evaluation.notes), evaluation.knowledge


def both(folder, original, masked, **options):
    """Return figures and warnings of memory, and those of the engine local."""
    found = []
    for measure in (partial(called, "evaluate"), partial(on_engine, folder)):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            result = figures(measure(original, masked, **options))
        found.append((*result, [str(one.message) for one in heard]))
    return found


@pytest.mark.parametrize("name", few(CASES, 3))
def test_risks_are_those_of_memory(name, tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "BLOCK_ROWS", 50 + 7 * len(name))
    original, masked, told = CASES[name]()
    expected, found = both(tmp_path, original, masked, metrics=[*LINKAGE, "uniques"], **told)
    assert found == expected
    assert found[0]


@pytest.mark.long
@pytest.mark.parametrize(("n", "method"), [(3_000, "rank_noise"), later((30_000, "noise"))])
def test_longer_files_have_the_figures_of_memory(n, method, tmp_path):
    told = {
        "columns": VARIABLES[:2],
        "known": VARIABLES[:2],
        "metrics": ["mae", "linkage"],
        "sample_queries": 200,
    }
    table = original_table(n)
    masked = sdc.Microdata(table, columns=VARIABLES[:2], untouched=["c", *UNMASKED], drop="id").mask(
        method, rng=1
    )
    expected, found = both(tmp_path, table, masked, method=method, **told)
    assert found == expected
    assert 0 < found[0][0][4] < 1


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_default_metrics_have_all_risks_of_the_file_and_its_strata(tmp_path):
    table, release, told = masked_by("noise", by="size", percent=40.0)
    told |= {"confidential": "c"}
    expected, found = (
        called("evaluate", table, release, **told),
        on_engine(tmp_path, table, release, **told),
    )
    assert figures(found)[:2] == figures(expected)[:2]
    assert {"attribute", "sdid", "rid", "matching"} < set(found.parts)
    assert not any(note.startswith(UNTOLD) for note in found.notes)


def test_files_that_do_not_fit_are_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(risks, "SHADOW_BYTES", 10**8)
    table, release, told = noisy()
    text = (
        r"^measuring linkage of 300 records with 3 masked columns takes about 90\.\d GB of memory at once, "
        r"and [\d.]+ [GM]B are left; give memory 99\.\d GB, or name other metrics$"
    )
    for memory in (None, "20GB"):
        with pytest.raises(sdc.NotApplicable, match=text):
            on_engine(tmp_path, table, release, sdc.Local(memory=memory), metrics="linkage", **told)
    result = on_engine(tmp_path, table, release, **told)
    assert "uniques" in result.parts
    assert "linkage" not in result.parts
    assert any(note.startswith("left out: measuring linkage, ") for note in result.notes)
    assert any(note.startswith(UNTOLD) for note in result.notes)


@pytest.mark.parametrize("by", [None, "size"])
def test_unique_records_are_counted_in_blocks(by, tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "BLOCK_ROWS", 70)
    table, release, told = masked_by("noise", by=by, percent=40.0)
    expected = called("evaluate", table, release, metrics="uniques", **told)
    found = on_engine(tmp_path, table, release, metrics="uniques", **told)
    assert found.parts["uniques"] == pytest.approx(expected.parts["uniques"])
    assert any(note.startswith("of single strata") for note in found.notes) == (by is not None)


def test_spark_has_the_figures_of_memory(tmp_path, spark):
    assert spark
    original, masked, told = CASES["key in other order"]()
    expected = called("evaluate", original, masked, metrics=LINKAGE, **told)
    found = on_engine(tmp_path, original, masked, "spark", metrics=LINKAGE, **told)
    assert figures(found) == figures(expected)
