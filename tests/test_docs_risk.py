"""The pages on risk and on roles are true: their examples run, and they name every role and risk."""

import doctest
import re
from pathlib import Path

import sdckit as sdc
from cases import each
from sdckit.core.roles import OPTIONS

DOCS = Path(__file__).parent.parent / "docs"
RISK, ROLES = (DOCS / "explanation" / name for name in ("risk.md", "choosing.md"))


@each("page", [RISK, ROLES])
def test_the_examples_run(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert failed == 0
    assert tried >= 10


@each("name", [name for name in OPTIONS if name not in {"na", "recode"}])
def test_every_role_has_a_row(name):
    assert re.search(rf"^\| [^|]*`{name}`[^|]* \|", ROLES.read_text(encoding="utf-8"), re.MULTILINE)


@each("name", [name for name, metric in sdc.METRICS.items() if metric.family == "risk"])
def test_every_risk_is_explained(name):
    assert f"`{name}`" in RISK.read_text(encoding="utf-8")
