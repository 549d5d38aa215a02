"""`mask` and `evaluate` on files read in blocks: as in memory, and bad input leaves one line and no trace."""

import json
import os
import re
import signal

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import command
from bad_input_engines import ENGINE_CASES, FILES, MASKED, RECORDS, evaluate, mask
from full_disk import full_disk
from sdckit.engines import local, opening
from sdckit.engines.source import Source

LOSSES = "brmae,brmse,suppressed,mae,il1s,mse_permutation,ks,ci_overlap"
FULL = 2000  # bytes that a file may have on a full disk


@pytest.fixture
def folder(tmp_path):
    for name, content in FILES.items():
        command.put(tmp_path, name, content)
    return tmp_path


def values(done):
    """Metric, variable, stratum and value of each row that was printed as JSON."""
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)["table"]
    return {(row["metric"], row["variable"], row["stratum"]): row["value"] for row in table}


def assert_one_line(folder, before, done, text, code=2):
    assert done.returncode == code, done.stderr
    (line,) = done.stderr.splitlines()
    assert re.search(text, line), line
    assert done.stdout == ""
    assert command.contents(folder) == before


@pytest.mark.long
@pytest.mark.parametrize("case", ENGINE_CASES)
def test_one_line_exit_code_2_and_no_trace(folder, case):
    *files, words, text = ENGINE_CASES[case]
    for name, content in (files[0] if files else {}).items():
        command.put(folder, name, content)
    before = command.contents(folder)
    done = command.run_here(folder, *words)
    assert_one_line(folder, before, done, f"^error: .*{text}")
    assert "; " in done.stderr, "no remedy"


@pytest.mark.long
def test_no_java(folder):
    before = command.contents(folder)
    done = command.run(folder, *evaluate(where="--engine spark"), PATH=str(folder), JAVA_HOME="")
    text = r"^error: Spark needs Java, and there is none on the PATH; install Java 17"
    assert_one_line(folder, before, done, text)


def test_evaluate_prints_what_it_prints_in_memory(folder):
    more = f"--by region --metrics {LOSSES} --json --private-output"
    ours = values(command.run_here(folder, *evaluate(more, data="parts")))
    theirs = values(command.run_here(folder, *evaluate(more, where="--engine memory")))
    assert ours == pytest.approx(theirs, rel=1e-12)


def test_evaluate_aligns_by_key(folder):
    command.put(folder, "parts/b.parquet", FILES["parts/a.parquet"])
    command.put(folder, "parts/a.parquet", FILES["parts/b.parquet"])
    more = "--metrics brmae --columns income --json"
    found = [
        values(command.run_here(folder, *evaluate(more + key, data="parts"))) for key in ("", " --key id")
    ]
    wanted = values(command.run_here(folder, *evaluate(more)))
    assert found[1] == wanted != found[0]


def test_evaluate_leaves_nothing_out_shows_variables_and_strata_and_warns_as_memory(folder):
    done = command.good(folder, *evaluate("--variables --by region"))
    assert "left out" not in done.stdout
    assert all(f"\n {word} " in done.stdout for word in ("brmae", "income", "north", "linkage"))
    assert done.stderr == command.good(folder, *evaluate("--by region", where="--engine memory")).stderr


def test_evaluate_compares_several_files(folder):
    command.put(folder, "other.parquet", FILES["data.parquet"])
    done = command.good(folder, *evaluate("other.parquet --metrics mae --csv"))
    found = pl.read_csv(done.stdout.encode()).filter(variable="all")
    assert dict(found.select("file", "value").rows()) == {"masked.parquet": 0.375, "other.parquet": 0.0}


def test_mask_writes_a_file_or_a_folder_with_the_same_cells_and_measures_it(folder):
    whole = values(command.run_here(folder, *mask("--seed 3 --json")))
    parts = values(command.run_here(folder, *mask("--seed 3 --json", data="parts", output="out")))
    assert whole == parts
    written = pl.read_parquet(folder / "out.parquet")
    assert_frame_equal(written, pl.read_parquet(folder / "out"))
    assert_frame_equal(written.drop("income", "age"), RECORDS.drop("income", "age"))
    more = "--columns income,age --key id --made-by noise --json"  # what `mask` knows of it
    again = values(command.run_here(folder, *evaluate(more, masked="out.parquet")))
    assert whole == again
    assert 0 < whole["brmae", "all", "all"] < 0.5


def test_mask_overwrites_if_asked(folder):
    done = command.good(folder, *mask("--overwrite --no-measure --drop region", output="masked.parquet"))
    assert done.stdout.splitlines() == [
        "note: masked: income, age; not masked: id; not published: region",
        "note: wrote masked.parquet",
        "note: nothing was measured; sdckit evaluate --engine local measures the file",
    ]
    assert pl.read_parquet(folder / "masked.parquet").columns == ["id", "income", "age"]


def test_a_small_file_stays_in_memory_and_a_large_one_says_how_it_is_read(folder, monkeypatch):
    assert "linkage" in command.good(folder, *evaluate("--metrics linkage", where="")).stdout
    monkeypatch.setattr(opening, "memory_at_hand", lambda: 1000)
    done = command.good(folder, *evaluate("--metrics brmae", where=""))
    line = r"^note: reading 'data.parquet' in blocks of rows on this machine, within .* \(--engine local\)\n$"
    assert re.search(line, done.stderr)
    assert command.good(folder, *evaluate("--metrics brmae --quiet", where="")).stderr == ""
    before = command.contents(folder)
    done = command.run_here(folder, *evaluate("--report r.html", where=""))
    assert_one_line(folder, before, done, "--report needs all records in memory and the engine is local")


def test_folders_of_parquet_in_memory(folder):
    more = "--metrics brmae,linkage --json"
    found = values(command.run_here(folder, *evaluate(more, data="parts", where="")))
    assert found == values(command.run_here(folder, *evaluate(more, where="")))
    done = command.good(folder, *mask(data="parts", output="out", where="--no-measure"))
    assert "reading 'parts' in blocks" in done.stderr  # since only blocks are written as a folder
    assert len(list((folder / "out").iterdir())) == 1


def at_read(monkeypatch, number, action):
    """Do something when a block is read for the time of this number."""
    read, count = Source.read, []

    def counted(source, *given):
        count.append(1)
        if len(count) == number:
            action()
        return read(source, *given)

    monkeypatch.setattr(Source, "read", counted)


@pytest.mark.parametrize(
    "words", [evaluate(), mask(), mask("--no-measure")], ids=["evaluate", "mask", "only mask"]
)
@pytest.mark.parametrize("number", [1, 2])
def test_a_file_that_changes_while_it_is_read(folder, monkeypatch, words, number):
    changed = folder / "data.parquet"

    def change():
        RECORDS.with_columns(pl.col("age") * 1000).write_parquet(changed)

    at_read(monkeypatch, number, change)
    before = command.contents(folder)
    done = command.run_here(folder, *words)
    before["data.parquet"] = changed.read_bytes()
    assert_one_line(folder, before, done, "^error: 'data.parquet' changed while it was read; start again")


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    "words", [evaluate("--key id"), mask(), mask(output="out")], ids=["evaluate", "file", "folder"]
)
def test_ctrl_c_leaves_nothing(folder, monkeypatch, words, number):
    at_read(monkeypatch, number, lambda: os.kill(os.getpid(), signal.SIGINT))
    before = command.contents(folder)
    with command.interruptible():
        done = command.run_here(folder, *words)
    assert_one_line(folder, before, done, "^stopped: interrupted; no unfinished file is left", 130)


def put_more(folder):
    """Enough records that what is written exceeds the limit."""
    more = [pl.concat([frame] * 20).with_columns(id=pl.int_range(60 * 20)) for frame in (RECORDS, MASKED)]
    for name, frame in zip(("data", "masked"), more, strict=True):
        frame.write_parquet(folder / f"{name}.parquet")


@pytest.mark.long
def test_a_full_disk_in_the_scratch_folder(folder, monkeypatch):
    put_more(folder)
    monkeypatch.setattr(local, "HELD", 0.0)
    assert command.good(folder, *evaluate()).stdout  # which also compiles what a full disk has no room for
    before = command.contents(folder)
    with full_disk(FULL):
        done = command.run_here(folder, *evaluate())
    text = (
        "^error: could not write intermediate files to '.*': file too large; about .* are needed: free some"
    )
    assert_one_line(folder, before, done, text)


def test_a_full_disk_for_the_output(folder):
    put_more(folder)
    assert command.good(folder, *mask("--no-measure", output="first")).stdout
    before = command.contents(folder)
    with full_disk(FULL):
        done = command.run_here(folder, *mask("--no-measure", output="out"))
    assert_one_line(folder, before, done, "^error: could not write to '.*': no space left, or .*; free some")


def test_the_key_is_no_fact_when_mask_measures(folder):
    more = "--seed 3 --set percent=300 --untouched region --metrics linkage --json"
    found = values(command.run_here(folder, *mask(more)))
    assert found["linkage", "all", "all"] < 1  # with the key every record would be found


def test_engines_warn_of_an_unmasked_file_and_refuse_what_is_not_published(folder):
    same = command.run_here(folder, *evaluate("--metrics linkage", masked="data.parquet"))
    assert "identical to the original" in same.stderr
    absent = command.run_here(folder, *evaluate("--metrics linkage --known region,shoes"))
    assert absent.returncode == 2
