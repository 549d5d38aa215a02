"""What the page on large files says is there, is there, and its messages are those of the program."""

import re
from pathlib import Path

import pytest

import sdckit as sdc
from sdckit.cli import evaluate, mask
from sdckit.request.options import OPTIONS

HERE = Path(__file__).parent.parent
PAGE = (HERE / "docs" / "reference" / "large-files.md").read_text(encoding="utf-8")
OFFERED, REFUSED = PAGE.split("## What the engines")[1].split("## Memory")[0].split("Not there, and how")
SOURCE = "".join(path.read_text() for path in (HERE / "src" / "sdckit").rglob("*.py"))


@pytest.mark.parametrize("records", [sdc.METHODS, sdc.METRICS], ids=["methods", "metrics"])
def test_the_page_names_what_engines_have(records):
    named = set(re.findall(r"`(\w+)`", OFFERED)) & set(records)
    assert named == {record.name for record in records.values() if record.in_blocks}


def test_the_page_names_the_losses_and_options_that_engines_have_not():
    left_out = [
        metric.name for metric in sdc.METRICS.values() if not metric.in_blocks and metric.family == "loss"
    ]
    assert all(f"`{name}`" in REFUSED for name in left_out)
    given = {option.name: option.opts[0] for command in (evaluate, mask) for option in command.params}
    told_apart = {"keep_order", "crosswalk", "numbered"}  # of `mask`: only beside --release, which is named
    refused = {one.name for one in OPTIONS.values() if one.in_memory}
    assert all(f"`{given[name]}`" in REFUSED for name in refused - told_apart)


@pytest.mark.parametrize(
    "text",
    [
        "changed while it was read",
        "too little for this program and its rows",
        "is no whole ",
        "could not write intermediate files to '",
        "; give files with the same columns",
    ],
)
def test_messages_on_the_page_are_those_of_the_program(text):
    assert text in SOURCE
    assert text in PAGE
