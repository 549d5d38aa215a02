"""From a survey with everything to a release in a real browser, by another setting than recommended."""

import re

import polars as pl
import pytest

from app_flow import (
    CHOOSE,
    SCREENS,
    assert_repeatable,
    assert_report_has,
    assert_same_job_and_choice,
    barriers,
    give_role,
    go_on,
    search_to_its_end,
    show_another,
    survey,
    try_only,
    write_release,
)
from app_page import Command, visited
from browser import PHONE

ESTIMATES = ["mean(wages) by region", "model: total ~ wages + region"]
LOOK = (PHONE, "dark")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("survey") / "work"
    folder.mkdir()
    survey().write_csv(folder / "survey.csv")
    command = Command(folder, "survey.csv")
    yield command
    assert command.stop() == "stopped: the page is closed; finished runs of a search are kept\n"


def decide(here):
    """Give every column that needs one a role; nothing goes on before."""
    here.go("roles")
    undecided = re.search(
        r"Choose a role for: (.*)\. The search", here.page.locator("#undecided").inner_text()
    )[1]
    roles = {"name": "key", "hhid": "drop", "region": "untouched", "occupation": "drop", "weight": "weights"}
    assert {"hhid", "weight"} <= set(undecided.split(", ")) <= set(roles)
    for column, role in roles.items():
        give_role(here, column, role, "unknown" if column == "weight" else None)
    here.page.locator("#undecided").filter(has_not_text="Choose").wait_for(state="attached")


def set_goal(here):
    """A limit that can be met, a second intruder with another one, and estimates to protect."""
    page = here.page
    page.fill("#estimates", "\n".join(ESTIMATES))
    page.select_option("#minimise", "estimates")
    page.fill("#risk-linkage", "0.3")
    page.get_by_text("at most 30 of 100 records").wait_for()
    page.fill("#name-0", "press")
    page.fill("#limit-0", "0,4")
    page.locator(".scenario").get_by_label("wages").check()
    try_only(here, "mdav")


def test_a_survey_from_open_to_a_release(browser, served, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(served.folder.parent / "state"))
    found = {}
    with visited(browser, served) as here:

        def look(screen):
            here.ready(screen)
            found[screen] = barriers(here, LOOK)

        look("open")
        decide(here)
        look("roles")
        go_on(here, "rules")
        here.page.get_by_label(re.compile("total = wages")).check()
        look("rules")
        go_on(here, "goal")
        set_goal(here)
        look("goal")
        go_on(here, "search")
        search_to_its_end(here)
        look("search")
        here.go("map")
        picked = show_another(here)
        here.page.get_by_role("heading", name="What users of the file compute").wait_for()
        look("map")
        here.page.get_by_role("button", name=CHOOSE).click()
        look("release")
        value = re.search(r"k=(\d+)", picked)[0]
        assert value in here.page.locator("main").inner_text()
        command_line = here.copied("command")
        shown, notes = write_release(here)
        assert found == {screen: [] for screen in SCREENS}
        assert here.complaints == []
    assert all(f"--estimate '{text}'" in command_line for text in ESTIMATES)
    assert_released(served.folder, shown)
    assert_repeatable(served.folder, "survey", notes)
    assert_report_has(served.folder / "survey-report.html", shown)
    assert_same_job_and_choice(served.folder, command_line, "survey", picked)


def assert_released(folder, shown):
    """The file has no name and no household, the sum, and risks within the limits."""
    released = pl.read_csv(folder / "survey-masked.csv")
    assert not {"name", "occupation", "hhid"} & set(released.columns)
    assert (released["total"] - released["wages"] - released["rent"]).abs().max() < 1e-6
    assert float(shown["linkage"]) <= 0.3
    assert float(shown["linkage (press)"]) <= 0.4
