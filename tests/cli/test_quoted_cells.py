"""Errors on hostile files quote cells, and none where they are hidden, as the page hides them."""

from decimal import Decimal

import polars as pl
import pytest

from command import put, run_here

STRATA = ["Zulu-Canary", "Yankee-Canary", "Xray-Canary"]
ODD = "77412x5"
LONG = "1234567890123456.789"
N = 60
SECRETS = (*STRATA, "Canary", ODD, LONG, "1234567890", "Person-")
ROLES = ["--key", "name"]
MASK = ["mask", "data.csv", "-o", "out.csv", *ROLES, "--columns", "income,savings"]
NOISE = [*MASK, "--method", "noise", "--drop", "region,code"]
UNTOUCHED = [*MASK, "--method", "noise", "--untouched", "region", "--drop", "code"]
BY = [*MASK, "--method", "mdav", "--by", "region", "--drop", "code"]


def table():
    """A name, two numbers, a stratum (one of them of a single record) and numbers with a word among them."""
    numbers = [7 * i % N + i / 8 for i in range(N)]
    return pl.DataFrame(
        {
            "name": [f"Person-{i:03d}" for i in range(N)],
            "income": [918273.25 + 100 * value for value in numbers],
            "savings": [645546.5 + value * value for value in numbers],
            "region": [STRATA[2] if i == 50 else STRATA[i % 2] for i in range(N)],
            "code": [ODD if i == 45 else str(3 + i % 4) for i in range(N)],
        }
    )


@pytest.fixture
def folder(tmp_path):
    """A folder with hostile files."""
    frame = table()
    put(tmp_path, "data.csv", frame.write_csv())
    put(tmp_path, "other.csv", frame.with_columns(name=pl.lit("Person-0")).write_csv())
    put(tmp_path, "fewer.csv", frame.head(30).write_csv())
    put(tmp_path, "ragged.csv", f"{frame.write_csv()}Person-999,{ODD},{LONG},1,2,3,4\n")
    put(tmp_path, "latin.csv", frame.write_csv().encode() + b"Person-\xff,1,2,3,4\n")
    frame.write_parquet(tmp_path / "data.parquet")
    cells = [Decimal(LONG) + i for i in range(N)]
    frame.with_columns(income=pl.Series(cells, dtype=pl.Decimal(22, 3))).write_parquet(
        tmp_path / "long.parquet"
    )
    return tmp_path


def secrets(text):
    """Secrets that a text holds: those of the files, and cells of the numbers."""
    frame = table()
    cells = [str(value) for name in ("income", "savings") for value in frame[name]]
    return [one for one in (*SECRETS, *cells) if one in text]


def on(data, *words):
    """The same command on another file."""
    return [data if word == "data.csv" else word for word in words]


def in_blocks(data, *words):
    """The same command on a Parquet file that is read in blocks."""
    return [*on(data, *words)[:3], "out.parquet", *words[4:], "--engine", "local", "--no-measure"]


FAILING = {
    "odd column": [*MASK[:-1], "income,code", "--method", "noise"],
    "decimals": on("long.parquet", *NOISE),
    "decimals in blocks": in_blocks("long.parquet", *NOISE),
    "unknown stratum": [*BY, "--set", f"k={STRATA[0]}:2,North-Canary:3"],
    "stratum without value": [*BY, "--set", f"k={STRATA[0]}:2"],
    "small stratum": [*BY, "--set", "k=3"],
    "small stratum in blocks": in_blocks("data.parquet", *BY, "--set", "k=3"),
    "no strata": [*NOISE, "--set", f"percent={STRATA[0]}:2"],
    "bad value of a stratum": [*BY, "--set", f"k={STRATA[0]}:two"],
    "twice": [*BY, "--set", f"k={STRATA[0]}:2,{STRATA[0]}:3"],
    "repeated key": on("other.csv", *NOISE),
    "other key": ["evaluate", "data.csv", "fewer.csv", *ROLES, "--columns", "income"],
    "ragged": on("ragged.csv", *NOISE),
    "not in this encoding": on("latin.csv", *NOISE),
    "decimal comma": [*NOISE, "--decimal-comma"],
    "delimiter": [*NOISE, "--delimiter", ";"],
    "recoding": [*MASK, "--method", "noise", "--untouched", "region", "--recode", "code=5"],
    "recoding by year": [*MASK, "--method", "noise", "--untouched", "code", "--recode", "region=year"],
    "rule": [*NOISE, "--rule", "code >= 0"],
    "total of one record": [*UNTOUCHED, "--release", "--calibrate", "total(income) by region"],
}
QUOTING = ["odd column", "decimals", "unknown stratum", "stratum without value", "small stratum", "no strata"]
QUOTING += ["small stratum in blocks", "twice"]


def test_cells_are_quoted_unless_they_are_hidden(folder):
    for case, words in FAILING.items():
        if case in QUOTING:
            done = run_here(folder, *words)
            assert (case, done.returncode) == (case, 2)
            assert secrets(done.stderr), case
        hidden = run_here(folder, *words, SDCKIT_QUOTE_CELLS="never")
        assert (case, hidden.returncode) == (case, 2)
        assert ("(not shown)" in hidden.stderr) >= (case in QUOTING)
        assert (case, secrets(hidden.stderr)) == (case, [])


def test_the_option_log_is_refused_in_one_line(folder):
    for words in (["--log", "work.log"], ["--log=work.log"]):
        done = run_here(folder, *NOISE, *words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith("error: --log is gone: no log is kept; write `2> FILE`")
