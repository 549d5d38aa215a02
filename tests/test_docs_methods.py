"""The page on methods is true: its examples run, and it knows every method."""

import doctest
import re
from pathlib import Path

import sdckit as sdc
from cases import each

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "explanation" / "methods.md").read_text(encoding="utf-8")


def test_the_examples_run():
    failed, tried = doctest.testfile(
        str(DOCS / "explanation" / "methods.md"),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE,
    )
    assert failed == 0
    assert tried >= 10


@each("name", sdc.METHODS)
def test_every_method_is_listed_with_its_status(name):
    line = next(line for line in PAGE.splitlines() if f"`{name}`" in line)
    experimental = "(experimental)" in line or f"`{name}` (experimental)" in PAGE
    assert experimental == sdc.METHODS[name].experimental


def test_unpaired_methods_are_named_as_such():
    named = re.search(r"Rows of (.*) stand for no original record", PAGE)[1]
    unpaired = {name: method for name, method in sdc.METHODS.items() if not method.paired}
    assert set(re.findall(r"`(\w+)`", named)) == {*unpaired, "given"}
    assert {method.paired_by for method in unpaired.values()} == {None, "given"}
