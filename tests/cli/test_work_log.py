"""--log: what is appended, what is not, and that a log that cannot be written stops a command at once."""

import json
import os
import stat
from pathlib import Path

import pytest

from command import contents, good, put, put_survey, run_here

MASK = ["mask", "data.csv", "-o", "out.csv", "--method", "noise", "--key", "id", "--weights", "weight"]
MASK += ["--log", "work.log"]


@pytest.fixture
def survey(tmp_path):
    return put_survey(tmp_path)


def events(folder):
    return [json.loads(line) for line in (folder / "work.log").read_text(encoding="utf-8").splitlines()]


def test_a_log_says_what_was_done(tmp_path, survey):
    done = good(tmp_path, *MASK, "--seed", "987654321", "--metrics", "brmae", "--quiet")
    start, *between, end = events(tmp_path)
    assert list(start)[:2] == ["time", "event"]
    assert start["command"] == "sdckit mask"
    assert start["version"]
    assert start["options"]["--method"] == "noise"
    assert start["options"]["--quiet"] is True
    assert start["options"]["--seed"] == "(not logged)"
    assert start["files"] == {"data.csv": (tmp_path / "data.csv").stat().st_size}
    assert {event["event"] for event in between} == {"note", "warning"}
    assert {"event": "note", "text": "wrote out.csv"}.items() <= between[-1].items()
    assert done.stderr.count("warning: ") == sum(event["event"] == "warning" for event in between)
    assert (end["event"], end["result"], end["exit_code"]) == ("end", "done", 0)
    assert end["seconds"] >= 0
    assert end["files"] == {"out.csv": (tmp_path / "out.csv").stat().st_size}
    text = (tmp_path / "work.log").read_text(encoding="utf-8")
    assert "987654321" not in text
    assert not [value for value in survey["income"] if str(value) in text]
    assert stat.S_IMODE((tmp_path / "work.log").stat().st_mode) == 0o600


def test_a_second_command_is_appended_and_errors_are_logged(tmp_path, survey):
    assert survey.height
    good(tmp_path, *MASK, "--no-measure")
    first = (tmp_path / "work.log").read_bytes()
    done = run_here(tmp_path, *MASK)
    assert done.returncode == 2
    assert (tmp_path / "work.log").read_bytes().startswith(first)
    start, end = events(tmp_path)[-2:]
    assert start["event"] == "start"
    assert (end["result"], end["exit_code"], end["files"]) == ("not done", 2, {})
    assert done.stderr == f"error: {end['error']}\n"


def test_values_of_strata_are_not_logged(tmp_path, survey):
    assert survey.height
    strata = ["--by", "region", "--set", "percent=nord:5,süd:6,west:7"]
    good(tmp_path, *MASK, *strata, "--no-measure")
    assert events(tmp_path)[0]["options"]["--set"] == ["percent=(not logged)"]
    assert "nord" not in (tmp_path / "work.log").read_text(encoding="utf-8")


def test_limits_and_their_exit_code_are_logged(tmp_path, survey):
    assert survey.height
    words = ["evaluate", "data.csv", "data.csv", "--key", "id", "--metrics", "linkage", "--json"]
    done = run_here(tmp_path, *words, "--max-risk", "linkage=0.1", "--private", "hidden", "--log", "work.log")
    assert done.returncode == 1
    assert events(tmp_path)[0]["options"]["--private"] == "(not logged)"
    assert "hidden" not in (tmp_path / "work.log").read_text(encoding="utf-8")
    found = {event["event"]: event for event in events(tmp_path)}
    assert found["limit"]["text"].startswith("limit missed: linkage is")
    assert found["end"]["exit_code"] == 1


def test_a_job_is_logged_by_the_command_that_runs_it(tmp_path, survey):
    assert survey.height
    saved = good(tmp_path, *MASK, "--no-measure", "--save-job", "job.toml")
    assert "note: --log is not part of the job: give it to sdckit run\n" in saved.stderr
    assert "work.log" not in (tmp_path / "job.toml").read_text(encoding="utf-8")
    (tmp_path / "work.log").unlink()
    good(tmp_path, "run", "job.toml", "--overwrite", "--log", "work.log")
    found = events(tmp_path)
    assert [one["command"] for one in found if one["event"] == "start"] == ["sdckit run", "sdckit mask"]
    assert [one["event"] for one in found].count("end") == 1


def test_a_seed_of_0_is_an_option_that_was_given(tmp_path, survey):
    assert survey.height
    good(tmp_path, *MASK, "--seed", "0", "--no-measure")
    assert events(tmp_path)[0]["options"]["--seed"] == "(not logged)"


def test_a_long_log_is_not_read_and_lines_end_alike_on_all_systems(tmp_path, survey, monkeypatch):
    from sdckit.cli import work_log

    flags, real = [], os.open
    assert survey.height
    good(tmp_path, *MASK, "--no-measure")
    binary = 1 << 40  # what Windows has under this name; here it is taken off again
    monkeypatch.setattr(work_log, "BINARY", binary)
    monkeypatch.setattr(
        work_log.os, "open", lambda path, flag, *mode: flags.append(flag) or real(path, flag & ~binary, *mode)
    )
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read as a whole"))
    work_log.WorkLog(tmp_path / "work.log").write("note", text="more")
    assert events(tmp_path)[-1]["text"] == "more"
    assert flags
    assert all(flag & binary for flag in flags)


@pytest.mark.parametrize(
    ("log", "error"),
    [
        (
            "absent/work.log",
            "cannot write the log 'absent/work.log' (No such file or directory); choose another",
        ),
        (".", "cannot write the log '.' (Is a directory); choose another"),
        ("data.csv", "--log names the same file as DATA; choose another file with --log"),
        ("./out.csv", "--log names the same file as --output; choose another file with --log"),
        ("other.csv", "'other.csv' is no log of sdckit; choose another file with --log"),
    ],
)
def test_a_log_that_cannot_be_is_an_error_before_any_work(tmp_path, survey, log, error):
    assert survey.height
    put(tmp_path, "other.csv", "a,b\n1,2\n")
    before = contents(tmp_path)
    done = run_here(tmp_path, *MASK[:-1], log)
    assert done.returncode == 2
    assert done.stderr == f"error: {error}\n"
    assert contents(tmp_path) == before


def test_a_disk_that_fills_up_does_not_stop_the_work(tmp_path, survey, monkeypatch):
    from sdckit.cli import work_log

    def full(_handle, line):
        if line:
            raise OSError(28, "No space left on device")

    assert survey.height
    monkeypatch.setattr(work_log.os, "write", full)
    done = good(tmp_path, *MASK, "--no-measure")
    assert "warning: cannot write the log 'work.log' (No space left on device)" in done.stderr
    assert (tmp_path / "out.csv").exists()
