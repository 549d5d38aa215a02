"""The tutorial is true: its commands run in its order, and print what it shows."""

from pathlib import Path

import pytest

from run_page import BLOCK, assert_printed, run_page
from sdckit.request.toml import read_job

FILE = Path(__file__).parent.parent / "docs" / "tutorial.md"
PAGE = FILE.read_text(encoding="utf-8")


@pytest.mark.long
def test_the_tutorial_runs(tmp_path):
    run_page(FILE, tmp_path)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "survey-masked.csv").read_bytes()
    first_lines = next(text for kind, _, text in BLOCK.findall(PAGE) if kind == "text")
    assert (tmp_path / "survey.csv").read_text(encoding="utf-8").startswith(first_lines)
    public = (tmp_path / "survey-report.html").read_text(encoding="utf-8")
    for part in (
        "How to repeat this",
        "What was not measured",
        "SHA-256 of the file",
        "Approved for publication by",
    ):
        assert part in public
    assert "PRIVATE" not in public
    assert "PRIVATE" in (tmp_path / "private" / "survey-private.html").read_text(encoding="utf-8")


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
