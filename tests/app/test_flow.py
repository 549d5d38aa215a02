"""From the sample to a release in a real browser: the whole flow, at both widths, light and dark."""

import re

import pytest

from app_flow import (
    SCREENS,
    assert_repeatable,
    assert_report_has,
    assert_same_job_and_choice,
    barriers,
    give_role,
    go_on,
    search_to_its_end,
    try_only,
    write_release,
)
from app_page import Command, visited
from browser import DESKTOP


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flow") / "work"
    folder.mkdir()
    command = Command(folder)
    yield command
    assert command.stop() == "stopped: the page is closed; finished runs of a search are kept\n"


def test_the_sample_from_open_to_a_release(browser, sample, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(sample.folder.parent / "state"))
    with visited(browser, sample) as here:
        page = here.page
        found = {}

        def look(screen):
            here.ready(screen)
            found[screen] = barriers(here, (DESKTOP, "light"))

        page.get_by_role("button", name="Try the bundled sample").click()
        page.wait_for_selector("table.preview")
        look("open")
        assert page.locator("table.preview tbody tr").count() == 20
        here.go("roles")
        look("roles")
        give_role(here, "firm", "key")
        give_role(here, "weight", "weights", "unknown")
        give_role(here, "sector", "by")
        page.get_by_text(re.compile("^0 records are unique")).wait_for()
        go_on(here, "rules")
        look("rules")
        page.get_by_label(re.compile("turnover = domestic_sales")).check()
        go_on(here, "goal")
        look("goal")
        try_only(here, "mdav")
        assert "10 of 100" in page.locator("#words-linkage").inner_text()
        go_on(here, "search")
        search_to_its_end(here)
        look("search")
        here.go("map")
        page.wait_for_selector("#map svg .points_marks path")
        page.locator("#points tr.chosen button").click()
        page.wait_for_selector("#panel .chart svg")
        look("map")
        recommended = page.locator(".choice p").first.inner_text()
        here.go("release")
        command_line = here.copied("command")
        shown, notes = write_release(here)
        look("release")
        assert found == {screen: [] for screen in SCREENS}
        assert here.complaints == []
    assert_repeatable(sample.folder, "sample", notes)
    assert_report_has(sample.folder / "sample-report.html", shown)
    assert_same_job_and_choice(sample.folder, command_line, "sample", recommended)
