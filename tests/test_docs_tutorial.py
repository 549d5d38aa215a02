"""The tutorial is true: its commands run in its order, and print what it shows."""

import json
import re
import shlex
from contextlib import chdir
from pathlib import Path

import pytest

from command import run_here
from sdckit.job.read import read_job
from transcripts import BLOCK, assert_printed

PAGE = (Path(__file__).parent.parent / "docs" / "tutorial.md").read_text(encoding="utf-8")
EXAMPLE = "20260131-0123abcd"  # ID of a release, in place of the real one


def run_transcript(text, folder):
    """Run the commands of a transcript; standard error comes after standard output."""
    found = json.loads(run_here(folder, "releases", "--json").stdout)
    if found:  # else nothing has been released so far
        (release,) = (row["id"] for row in found if row["file"] == "sample-masked.csv")
        text = text.replace(EXAMPLE, release)
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        first, *shown = part.splitlines()
        program, *words = shlex.split(first)
        assert program == "sdckit"
        done = run_here(folder, *words)
        failing = any(line.startswith(("error:", "not met:")) for line in shown)
        assert (done.returncode != 0) == failing, done.stderr
        assert_printed(shown, done.stdout + done.stderr)


def test_the_tutorial_runs(tmp_path):
    for kind, file, text in BLOCK.findall(PAGE):
        if kind == "console":
            run_transcript(text, tmp_path)
        elif kind == "python":
            with chdir(tmp_path):
                exec(text, {})  # noqa: S102 - our own page
        elif file:
            (tmp_path / file).write_text(text, encoding="utf-8")
        else:
            assert_printed(text.splitlines(), (tmp_path / "job.toml").read_text(encoding="utf-8"))
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "sample-masked.csv").read_bytes()
    assert "How to repeat this" in (tmp_path / "sample-report.html").read_text(encoding="utf-8")


def test_the_slip_of_the_pen_is_answered_as_the_page_says(tmp_path):
    job = next(text for kind, file, text in BLOCK.findall(PAGE) if file == "job.toml")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(job.replace("[search]", '[search]\nminimize = "brmae"'), encoding="utf-8")
    with pytest.raises(ValueError, match=r"minimize") as error:
        read_job(wrong)
    assert "unknown key [search] minimize (did you mean [search] minimise?)" in str(error.value)
    assert "unknown key [search] minimize (did you mean [search] minimise?)" in " ".join(PAGE.split())


def test_transcripts_can_be_wrong():
    assert_printed(["a ... c", "...", "e"], "a b c\nd\ne\n")
    for shown in (["a ... d"], ["e", "a b c"]):
        with pytest.raises(AssertionError):
            assert_printed(shown, "a b c\nd\ne\n")
