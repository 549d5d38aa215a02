"""`sdckit mask --calibrate` and job files with totals that hold in the file."""

import polars as pl
import pytest

import sdckit as sdc
from command import good, run_here, said

MASK = ["mask", "data.csv", "-o", "out.csv", "--method", "mdav", "--set", "k=5", "--release"]
ROLES = [
    *("--key", "firm", "--columns", "turnover,wages"),
    *("--untouched", "sector", "--metrics", "brmae,linkage"),
]


@pytest.fixture
def data(tmp_path):
    table = sdc.load_sample().select("firm", "sector", "turnover", "wages")[:300]
    table.write_csv(tmp_path / "data.csv")
    return table


def turnover(table):
    return dict(table.group_by("sector").agg(pl.sum("turnover")).rows())


def test_totals_hold_in_the_file_and_in_that_of_the_saved_job(tmp_path, data):
    totals = ["--calibrate", "total(turnover) by sector", "--calibrate", "total(turnover)"]
    done = good(tmp_path, *MASK, *ROLES, *totals, "--save-job", "job.toml")
    assert "declared totals hold (total(turnover) by sector; total(turnover))" in " ".join(
        done.stdout.split()
    )
    assert turnover(pl.read_csv(tmp_path / "out.csv")) == turnover(data)
    assert (
        'calibrate = ["total(turnover) by sector", "total(turnover)"]' in (tmp_path / "job.toml").read_text()
    )
    (tmp_path / "out.csv").unlink()
    good(tmp_path, "run", "job.toml")
    assert turnover(pl.read_csv(tmp_path / "out.csv")) == turnover(data)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("total", "message"),
    [
        ("median(turnover)", "error: 'median(turnover)' is no total"),
        (
            "total(turnover) by firm",
            "error: a total to calibrate needs column 'firm', which is not published",
        ),
        ("total(profit)", "error: estimate 'total(profit)': unknown column 'profit'"),
    ],
)
def test_bad_totals_are_refused_in_one_line_and_nothing_is_written(tmp_path, total, message):
    done = run_here(tmp_path, *MASK, *ROLES, "--calibrate", total)
    assert done.returncode == 2
    assert said(done).startswith(message)
    assert len(said(done).splitlines()) == 1
    assert not (tmp_path / "out.csv").exists()
