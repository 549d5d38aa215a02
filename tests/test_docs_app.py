"""The page on the page in the browser is true: its options, screens, buttons, files, pictures."""

import re
from pathlib import Path

from sdckit.app import session
from sdckit.app.screen import STEPS
from sdckit.app.state import HISTORY, MOST_STATES, SUFFIX
from sdckit.cli import app

HERE = Path(__file__).parent.parent
PAGE = (HERE / "docs" / "reference" / "app.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())
SCREENS = [path.read_text(encoding="utf-8") for path in (HERE / "src/sdckit/app/templates").glob("*.html")]


def test_every_option_is_explained():
    named = [option for one in app.params for option in one.opts if option.startswith("--")]
    assert [option for option in named if f"`{option}" not in PAGE and f" {option}" not in PAGE] == []


def test_every_screen_is_explained_in_its_order():
    headings = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)
    assert headings == list(STEPS.values())


def test_buttons_that_are_named_are_there():
    named = re.findall(r"`([A-Z][a-z]+(?: [A-Za-z]+)*)`", PAGE)
    shown = "\n".join([*SCREENS, *(path.read_text() for path in (HERE / "src/sdckit/app").glob("*.py"))])
    assert len(named) > 8
    assert [button for button in named if button not in shown] == []


def test_files_and_numbers_are_those_of_the_program():
    for name in (HISTORY, session.JOB, f"survey{SUFFIX}"):
        assert f"`{name}`" in PAGE
    idle = next(one.default for one in app.params if one.name == "idle")
    assert f"after {idle} minutes" in FLAT
    assert f"last {MOST_STATES} states" in FLAT
