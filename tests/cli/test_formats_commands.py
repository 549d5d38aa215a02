"""The commands on files of every format: what is not masked is equal to the letter, and inputs stay."""

import json

import polars as pl
import pytest

from cases import few
from command import contents, good
from foreign_files import stored
from sdckit.io import packing
from sdckit.io.files import read, write
from sdckit.io.formats import Dialect
from stat_data import MAKERS
from workbooks import ods, xlsx

N = 12
FRAME = pl.DataFrame(
    {
        "id": [f"{i:03d}" for i in range(N)],
        "income": [round(100.25 * (i % 5 + 1) + i, 2) for i in range(N)],
        "remark": ['say "so", or not', "two\nlines", "", "NA"] * 3,
    }
)
ROWS = [FRAME.columns, *map(list, FRAME.rows())]
MASK = ["--method", "noise", "--seed", "1", "--columns", "income", "--key", "id", "--untouched", "remark"]
RELEASE = ["--method", "rank_swap", "--columns", "income", "--drop", "id,remark", "--release"]
RELEASE += ["--private", "record"]


def put(folder, suffix):
    """A file of a format with the table, and its path."""
    path = folder / f"data{suffix}"
    if suffix == ".xlsx":
        path.write_bytes(xlsx(Notes=[["read me"]], Data=ROWS))
    elif suffix == ".ods":
        path.write_bytes(ods(Notes=[["read me"]], Data=ROWS))
    elif suffix in MAKERS:
        MAKERS[suffix](path)
    else:
        write(path, FRAME.with_columns(pl.col("income").cast(pl.Decimal(9, 2))))
    return path


@pytest.mark.parametrize(
    ("given", "made"),
    few(
        [
            (".csv.gz", ".csv.zst"),
            (".tsv.xz", ".txt.bz2"),
            (".csv", ".feather"),
            (".arrow", ".arrow"),
            (".arrow", ".parquet"),
            (".xlsx", ".csv"),
            (".xlsx", ".csv.gz"),
            (".ods", ".arrow"),
        ],
        3,
    ),
)
def test_masking_leaves_all_else_to_the_letter(tmp_path, given, made):
    path = put(tmp_path, given)
    before = contents(tmp_path)
    table = ["--table", "Data"] if given in {".xlsx", ".ods"} else []
    good(tmp_path, "mask", path.name, "-o", f"out{made}", *MASK, *table)
    source, found = read(path, Dialect(table="Data")), read(tmp_path / f"out{made}")
    assert found.frame.select("id", "remark").fill_null("").equals(FRAME.select("id", "remark"))
    assert found.frame["income"].to_list() != source.frame["income"].to_list()
    if given == ".arrow":
        assert found.frame.schema == source.frame.schema
    assert {name: data for name, data in contents(tmp_path).items() if name in before} == before
    done = good(
        tmp_path, "evaluate", path.name, f"out{made}", "--columns", "income", "--key", "id", *table, "--json"
    )
    assert json.loads(done.stdout)["table"]


def test_decimals_stay_decimals_in_a_release(tmp_path):
    put(tmp_path, ".arrow")
    good(tmp_path, "mask", "data.arrow", "-o", "out.arrow", *RELEASE)
    assert read(tmp_path / "out.arrow").frame.schema == {"income": pl.Decimal(9, 2)}


def test_a_sheet_is_kept_in_job_and_record(tmp_path):
    put(tmp_path, ".xlsx")
    good(
        tmp_path,
        *("mask", "data.xlsx", "-o", "out.csv.gz"),
        *RELEASE,
        *("--table", "Data", "--save-job", "job.toml"),
    )
    assert 'table = "Data"' in (tmp_path / "job.toml").read_text()
    (entry,) = (tmp_path / "record").glob("*/release.json")
    good(tmp_path, "replay", entry.parent.name, "data.xlsx", "-o", "again.csv.gz", "--private", "record")
    assert (tmp_path / "again.csv.gz").read_bytes() == (tmp_path / "out.csv.gz").read_bytes()
    assert packing.unpacked(tmp_path / "x.gz", (entry.parent / "published.csv.gz").read_bytes()).startswith(
        b"income\n"
    )
    good(tmp_path, "check", "out.csv.gz", "--private", "record")


def test_a_draft_of_a_job_names_files_by_the_whole_suffix(tmp_path):
    put(tmp_path, ".csv.gz")
    good(tmp_path, "describe", "data.csv.gz", "-o", "job.toml")
    assert 'output = "data-masked.csv.gz"' in (tmp_path / "job.toml").read_text()
    (tmp_path / "one.rda").write_bytes(stored("one.rda"))
    good(tmp_path, "describe", "one.rda", "-o", "r.toml")
    assert 'output = "one-masked.parquet"' in (tmp_path / "r.toml").read_text()
