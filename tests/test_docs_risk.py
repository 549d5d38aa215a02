"""The page on risk is true: its examples run, and it names every role and risk."""

import doctest
import re
from pathlib import Path

import sdckit as sdc
from cases import each
from sdckit.core.roles import OPTIONS

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "explanation" / "risk.md").read_text(encoding="utf-8")


def test_the_examples_run():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testfile(
        str(DOCS / "explanation" / "risk.md"), module_relative=False, optionflags=flags
    )
    assert failed == 0
    assert tried >= 30


@each("name", [name for name in OPTIONS if name not in {"na", "recode"}])
def test_every_role_has_a_row(name):
    assert re.search(rf"^\| [^|]*`{name}`[^|]* \|", PAGE, re.MULTILINE)


@each("name", [name for name, metric in sdc.METRICS.items() if metric.family == "risk"])
def test_every_risk_is_explained(name):
    assert f"`{name}`" in PAGE
