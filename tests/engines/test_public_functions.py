"""`evaluate` and `mask` of `Microdata` on files, tables and Spark frames: what goes in, what comes out."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import sdckit as sdc
from bad_input_engines import MASKED, RECORDS
from calls import called

NOISE = {"method": "noise", "key": "id", "rng": 5, "percent": 30, "decimals": "original"}
VARIABLES = ["income", "age"]
LOSSES = ["brmae", "brmse", "mae", "ks"]


@pytest.fixture
def paths(tmp_path):
    """The original and the masked data as one file each."""
    found = tmp_path / "original.parquet", tmp_path / "masked.parquet"
    for path, frame in zip(found, (RECORDS, MASKED), strict=True):
        frame.write_parquet(path)
    return found


def table(evaluation):
    return evaluation.table.select("metric", "variable", "stratum", "value")


@pytest.mark.parametrize("engine", [None, "memory", "local"])
def test_evaluate_takes_paths(paths, engine):
    wanted = sdc.Microdata(RECORDS, key="id", by="region").evaluate(MASKED, metrics=LOSSES)
    found = called("evaluate", *map(str, paths), key="id", by="region", metrics=LOSSES, engine=engine)
    assert_frame_equal(table(found), table(wanted), rel_tol=1e-12, abs_tol=0)
    named = sdc.Microdata(paths[0], key="id", engine=engine).evaluate([paths[1]], metrics="mae")
    assert named["mae"] == sdc.mae(RECORDS[VARIABLES], MASKED[VARIABLES])


def test_evaluate_takes_tables_on_an_engine():
    found = sdc.Microdata(RECORDS.to_pandas(), key="id", engine=sdc.Local(memory="8GB")).evaluate(
        MASKED, metrics=LOSSES
    )
    assert_frame_equal(table(found), table(sdc.Microdata(RECORDS, key="id").evaluate(MASKED, metrics=LOSSES)))


def test_evaluate_takes_csv_in_memory(tmp_path):
    for name, frame in (("a.csv", RECORDS), ("b.csv", MASKED)):
        frame.write_csv(tmp_path / name)
    found = sdc.Microdata(tmp_path / "a.csv", key="id").evaluate(
        tmp_path / "b.csv", metrics=["brmae", "linkage"]
    )
    assert table(found).equals(
        table(sdc.Microdata(RECORDS, key="id").evaluate(MASKED, metrics=["brmae", "linkage"]))
    )


def test_mask_gives_the_path_of_what_it_wrote(paths):
    folder = paths[0].parent
    file = called("mask", paths[0], output=folder / "out.parquet", engine="local", **NOISE)
    parts = called("mask", str(paths[0]), output=str(folder / "out"), **NOISE)
    assert (file, parts) == (folder / "out.parquet", folder / "out")
    assert_frame_equal(pl.read_parquet(file), pl.read_parquet(parts))
    text = called("mask", paths[0], output=folder / "out.csv", **NOISE)
    assert_frame_equal(pl.read_csv(text), called("mask", RECORDS, **NOISE))
    again = called("mask", RECORDS, output=text, overwrite=True, **NOISE)
    assert_frame_equal(pl.read_csv(again), called("mask", RECORDS, **NOISE))


def test_mask_gives_a_table_of_the_same_type(paths):
    file = called("mask", paths[0], output=paths[0].with_name("out.parquet"), engine="local", **NOISE)
    wanted = pl.read_parquet(file)
    assert_frame_equal(called("mask", RECORDS, engine="local", **NOISE), wanted)
    assert_frame_equal(pl.from_pandas(called("mask", RECORDS.to_pandas(), engine="local", **NOISE)), wanted)
    arrow = called("mask", RECORDS.to_arrow(), engine="local", drop="region", **NOISE)
    assert isinstance(arrow, pa.Table)
    assert_frame_equal(pl.from_arrow(arrow), wanted.drop("region"))
    array = sdc.Microdata(np.arange(50.0), engine="local").mask("noise", rng=1)
    assert array.shape == (50,)
    assert not np.allclose(array, np.arange(50.0))
    wanted = sdc.brmae(np.arange(50.0), array)
    assert sdc.Microdata(np.arange(50.0), engine="local").evaluate(array, metrics="brmae")["brmae"] == wanted


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda p: sdc.Microdata(p, engine="local").mask("noise"),
            ValueError,
            "the data are a file and there is no output; name the fi",
        ),
        (lambda p: sdc.mask(p, "mdav", output=p.with_name("a.doc")), ValueError, "by its suffix; use one of"),
        (lambda p: sdc.mask(p, "mdav", output=p), FileExistsError, "exists already; choose another name"),
        (
            lambda _: sdc.Microdata(RECORDS, engine="local").mask("mdav", groups="g"),
            ValueError,
            "the engine local numbers no groups; leave groups= out",
        ),
        (
            lambda _: sdc.Microdata(sdc.Microdata(RECORDS, key="id"), engine="local"),
            TypeError,
            "the data are a Microdata, which has its roles; call its own method",
        ),
        (
            lambda p: sdc.Microdata(p, engine="local").evaluate(p, kye="id"),
            TypeError,
            "unexpected keyword .*'kye'",
        ),
        (
            lambda p: sdc.Microdata(p, engine="local").evaluate(p, per_record=True),
            ValueError,
            "the engine local reads blocks of rows and takes no per_record; leave it out or use engine=",
        ),
        (
            lambda p: sdc.Microdata(p, weights=[1.0], engine="local").evaluate(p),
            TypeError,
            "of files are a column; give",
        ),
        (
            lambda p: sdc.Microdata(p, engine=sdc.Local(scratch=p.parent / "no")).evaluate(p),
            OSError,
            "no folder '.*no' for",
        ),
    ],
)
def test_one_clear_error(paths, call, error, text):
    before = sorted(paths[0].parent.iterdir())
    with pytest.raises(error, match=text):
        call(paths[0])
    assert sorted(paths[0].parent.iterdir()) == before


def test_spark_frames_in_and_out(spark, tmp_path):
    frames = [
        spark.createDataFrame(frame.rows(), frame.columns).repartition(3) for frame in (RECORDS, MASKED)
    ]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = sdc.Microdata(frames[0], key="id", by="region", engine=sdc.Spark(scratch=scratch)).evaluate(
        frames[1], metrics=LOSSES
    )
    wanted = sdc.Microdata(RECORDS, key="id", by="region").evaluate(MASKED, metrics=LOSSES)
    assert_frame_equal(table(found), table(wanted), check_row_order=False, rel_tol=1e-12, abs_tol=0)
    assert list(scratch.iterdir()) == []
    masked = called("mask", frames[0], engine=sdc.Spark(scratch=scratch), **NOISE)
    assert type(masked).__module__.startswith("pyspark.")
    here = pl.DataFrame([row.asDict() for row in masked.collect()]).sort("id")
    assert_frame_equal(here.drop("income", "age"), RECORDS.drop("income", "age"))
    assert 0 < sdc.brmae(RECORDS[VARIABLES], here[VARIABLES]) < 0.5


@pytest.mark.usefixtures("spark")
def test_files_are_masked_on_spark_as_on_one_machine(paths):
    outputs = [paths[0].with_name(f"{engine}.parquet") for engine in ("spark", "local")]
    for output in outputs:
        called("mask", paths[0], output=output, engine=output.stem, by="region", **NOISE)
    assert_frame_equal(*map(pl.read_parquet, outputs))


def test_progress_of_an_evaluation_rises_over_all_steps(paths):
    seen = []
    sdc.Microdata(paths[0], key="id", engine="local").evaluate(
        paths[1], progress=lambda *now: seen.append(now)
    )
    steps, shares = list(dict.fromkeys(step for step, _ in seen)), [share for _, share in seen]
    assert steps == ["reading", "aligning rows", "ranking", "measuring"]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert {share for step, share in seen if step == "ranking"} - {min(shares), max(shares)}


def test_a_window_that_is_a_function_is_refused_on_engines(paths):
    for window in (lambda _values: 50, {"north": lambda _values: 50}):
        with pytest.raises(ValueError, match="the engine local takes no function as window; name the method"):
            called("evaluate", *paths, metrics="linkage", window=window, engine="local")


def test_columns_of_a_disclosure_are_measured_on_engines_though_they_look_like_codes():
    values = np.arange(300)
    original = pl.DataFrame({"grade": values % 5, "size": values * 1.5})
    masked = original.with_columns(pl.col("grade") + values // 150)
    disclosure = sdc.Disclosure(method="noise", parameters={"percent": 50}, columns=("grade", "size"))
    given = {"metrics": ["mae"], "disclosure": disclosure}
    ours, theirs = (
        called("evaluate", original, masked, **given, **more) for more in ({}, {"engine": "local"})
    )
    assert set(theirs.table["variable"]) == {"all", "grade", "size"}
    assert ours["mae"] == theirs["mae"]
