"""The page on estimates is true: examples run, commands print what it shows, figures are measured."""

import doctest
import shlex
from contextlib import chdir
from pathlib import Path

import pytest

from command import run_here
from estimates_coverage import ESTIMATES, coverage, markdown
from run_page import BLOCK, assert_printed
from sdckit.estimation.parse import parse_estimates

FILE = Path(__file__).parent.parent / "docs" / "explanation" / "estimates.md"
PAGE = FILE.read_text(encoding="utf-8")
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder in which the examples of the page ran, with the file that they write."""
    place = tmp_path_factory.mktemp("estimates")
    with chdir(place):
        failed, tried = doctest.testfile(str(FILE), module_relative=False, optionflags=FLAGS)
    assert failed == 0
    assert tried >= 20
    return place


@pytest.mark.long
def test_the_command_and_its_job_file_are_as_shown(folder):
    (command,) = (text for kind, _, text in BLOCK.findall(PAGE) if kind == "console")
    first, *shown = command.replace("\\\n", "").splitlines()
    done = run_here(folder, *shlex.split(first.removeprefix("$ sdckit ")))
    assert done.returncode == 0, done.stderr
    assert_printed(shown, done.stdout + done.stderr)
    (job,) = (text for kind, _, text in BLOCK.findall(PAGE) if kind == "toml")
    assert_printed(job.splitlines(), (folder / "job.toml").read_text(encoding="utf-8"))


def test_estimates_of_the_table_can_be_read():
    rows = PAGE.split("| estimate | example |")[1].split("\n\n")[0]
    texts = [part for part in rows.split("`") if "(" in part and "|" not in part]
    assert len(parse_estimates(texts)) == len(texts) >= 10


def test_the_coverage_on_the_page_is_of_the_simulation():
    """Few samples give other shares; estimates, maskings and the form of the table are the same."""
    found = coverage(2, 20)
    (head, _, *rows), shown = markdown(found).splitlines(), PAGE.splitlines()
    assert head in shown
    assert [row.split("|")[1] for row in rows] == [
        line.split("|")[1] for line in shown if "→" in line and line.startswith("|")
    ]
    assert len(rows) == len(ESTIMATES)
    assert found["unmasked"].is_between(0, 1).all()
