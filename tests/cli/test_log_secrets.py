"""The log of --log after commands on hostile files: no seed, no private place, no cell, no stratum."""

from decimal import Decimal

import polars as pl
import pytest

from command import put, run_here

SEED = "777777777"
PRIVATE = "privsecret"  # in the name of every private file and folder
STRATA = ["Zulu-Canary", "Yankee-Canary", "Xray-Canary"]
ODD = "77412x5"
LONG = "1234567890123456.789"
N = 60
SECRETS = (SEED, PRIVATE, *STRATA, "Canary", ODD, LONG, "1234567890", "Person-")
ROLES = ["--key", "name"]
MASK = ["mask", "data.csv", "-o", "out.csv", *ROLES, "--columns", "income,savings"]
NOISE = [*MASK, "--method", "noise", "--drop", "region,code"]
UNTOUCHED = [*MASK, "--method", "noise", "--untouched", "region", "--drop", "code"]
BY = [*MASK, "--method", "mdav", "--by", "region", "--drop", "code"]
RELEASE = [*NOISE, "--release", "--metrics", "brmae"]
EVALUATE = ["evaluate", "data.csv", "data.csv", *ROLES, "--columns", "income,savings", "--metrics", "brmae"]
JOB = """
[input]
data = "data.csv"
[roles]
columns = ["income", "savings"]
drop = ["name", "region", "code"]
[masking]
method = "mdav"
set = { k = 3 }
[output]
output = "out.csv"
"""


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
def folder(tmp_path, monkeypatch):
    """A folder with hostile files, where the user's own private record is a private place, too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"state-{PRIVATE}"))
    frame = table()
    put(tmp_path, "data.csv", frame.write_csv())
    put(tmp_path, "other.csv", frame.with_columns(name=pl.lit("Person-0")).write_csv())
    put(tmp_path, "fewer.csv", frame.head(30).write_csv())
    put(tmp_path, "ragged.csv", f"{frame.write_csv()}Person-999,{ODD},{LONG},1,2,3,4\n")
    put(tmp_path, "latin.csv", frame.write_csv().encode() + b"Person-\xff,1,2,3,4\n")
    put(tmp_path, f"file-{PRIVATE}", "no folder")
    put(tmp_path, f"full-{PRIVATE}/note.txt", "files of others")
    frame.write_parquet(tmp_path / "data.parquet")
    cells = [Decimal(LONG) + i for i in range(N)]
    frame.with_columns(income=pl.Series(cells, dtype=pl.Decimal(22, 3))).write_parquet(
        tmp_path / "long.parquet"
    )
    return tmp_path


def logged(folder, *words):
    """The exit code of a command, and what its log holds."""
    log = folder / "work.log"
    log.unlink(missing_ok=True)
    done = run_here(folder, *words, "--log", "work.log")
    return done, log.read_text(encoding="utf-8")


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


WORKING = {
    "release": [*RELEASE, "--private", PRIVATE, "--crosswalk", f"{PRIVATE}.csv"],
    "usual record": RELEASE,
    "private report": [*NOISE, "--private-report", f"{PRIVATE}.html", "--report", "report.html"],
    "kept place": [*RELEASE, "--private", f"./deep/../{PRIVATE}/"],
    "seed": [*NOISE, "--seed", SEED, "--no-measure"],
    "odd cells": [*MASK, "--method", "noise", "--untouched", "region,code", "--no-measure"],
    "strata": [*BY, "--set", f"k={STRATA[0]}:2,{STRATA[1]}:3,{STRATA[2]}:1", "--no-measure"],
    "records": [*EVALUATE, "--records", f"{PRIVATE}.csv", "--private", PRIVATE],
    "estimate": [*UNTOUCHED, "--estimate", "model: income ~ region + region:savings"],
    "describe": ["describe", "data.csv", "-o", "job.toml"],
}
FAILING = {
    "seed of a release": [*RELEASE, "--seed", SEED],
    "seed below 0": [*NOISE, f"--seed=-{SEED}"],
    "file as record": [*RELEASE, "--private", f"file-{PRIVATE}"],
    "record in a file": [*RELEASE, "--private", f"file-{PRIVATE}/{PRIVATE}"],
    "files of others": [*RELEASE, "--private", f"full-{PRIVATE}"],
    "output in the record": [*RELEASE, "--private", PRIVATE, "--report", f"{PRIVATE}/r.html"],
    "no folder for a crosswalk": [*RELEASE, "--crosswalk", f"absent-{PRIVATE}/{PRIVATE}.csv"],
    "crosswalk format": [*RELEASE, "--crosswalk", f"{PRIVATE}.docx"],
    "private report": [*NOISE, "--private-report", f"absent-{PRIVATE}/{PRIVATE}.html"],
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
    "crosswalk of others": [*EVALUATE, "--crosswalk", f"file-{PRIVATE}"],
    "no crosswalk": [*EVALUATE, "--crosswalk", f"absent-{PRIVATE}.csv"],
    "records": [*EVALUATE, "--records", f"absent-{PRIVATE}/{PRIVATE}.csv"],
    "replay": ["replay", "20260101-0123456789", "data.csv", "-o", "again.csv", "--private", PRIVATE],
    "check": ["check", "data.csv", "--private", f"file-{PRIVATE}"],
    "sweep": ["sweep", *MASK[1:], "--seed", SEED, "--by", "region", "--grid", "mdav.k=3"],
    "search folder": [
        *("recommend", *MASK[1:], "--drop", "region,code", "--max-risk", "linkage=0.9"),
        *("--method", "mdav", "--folder", f"file-{PRIVATE}"),
    ],
}
QUOTING = ["odd column", "decimals", "unknown stratum", "stratum without value", "small stratum", "no strata"]
QUOTING += ["small stratum in blocks", "twice"]


@pytest.mark.parametrize("case", WORKING)
def test_the_log_of_a_command_that_works_holds_no_secret(folder, case):
    done, log = logged(folder, *WORKING[case])
    assert done.returncode == 0, done.stderr
    assert '"event": "end"' in log
    assert secrets(log) == []


@pytest.mark.parametrize("case", FAILING)
def test_the_log_of_an_error_holds_no_secret(folder, case):
    done, log = logged(folder, *FAILING[case])
    assert done.returncode in (1, 2), done.stderr
    assert '"error": "' in log
    assert secrets(log) == []


@pytest.mark.parametrize(
    "private",
    [f"[private]\nprivate = 'deep/{PRIVATE}'", f"private = '{PRIVATE}'", f"private.private = ['{PRIVATE}']"],
)
def test_the_log_of_a_job_holds_no_private_place(folder, private):
    put(folder, "job.toml", f"{JOB}\n{private}" if "[private]" in private else f"{private}\n{JOB}")
    done, log = logged(folder, "run", "job.toml")
    assert done.returncode == (0 if "[private]" in private else 2), done.stderr
    assert secrets(log) == []


@pytest.mark.parametrize("case", QUOTING)
def test_cells_are_quoted_unless_they_are_hidden(folder, case):
    done = run_here(folder, *FAILING[case])
    assert done.returncode == 2
    assert secrets(done.stderr)
    hidden = run_here(folder, *FAILING[case], SDCKIT_QUOTE_CELLS="never")
    assert hidden.returncode == 2
    assert "(not shown)" in hidden.stderr
    assert secrets(hidden.stderr) == []


def test_words_that_a_private_place_is_named_by_stay_in_sentences(folder):
    done, log = logged(
        folder, *NOISE, "--release", "--metrics", "brmae", "--private", "record", "--seed", "1"
    )
    assert done.returncode == 2
    assert "the private record makes a release repeatable" in log
    done, log = logged(folder, *RELEASE, "--private", "out")
    assert done.returncode == 0, done.stderr
    assert "wrote out.csv" in log
    assert str(folder / "out") not in log
