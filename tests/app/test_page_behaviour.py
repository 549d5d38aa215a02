"""The page used in odd ways: two tabs, Back, double clicks, other data, undo, stops and restarts."""

import re

import psutil
import pytest

from app_flow import CHOOSE, FINISHED, SCREENS, go_on, show_another, try_only
from app_page import WAIT
from app_small import EVIL, NAME, REGION, small_file

OLD = "The job was changed in another tab; nothing of this form was kept. This is the job as it is now."
ELSEWHERE = "The job was changed in another tab. Reload this page to see it as it is now."
UNDECIDED = "Choose a role for: name. The search needs all of them."
FETCH = """async ([path, fields]) => {
    const address = document.body.dataset.root + path, body = new URLSearchParams(fields);
    const answer = await fetch(address, {method: "POST", body});
    return [answer.status, await answer.text()];
}"""


@pytest.fixture
def here(small):
    """A tab; the test leaves no line on the console, and the job is as before after it."""
    found = small.tab()
    yield found
    found.page.close()
    assert [one for one in found.complaints if "status of 422" not in one] == []
    small.undo_all()


def set_limit(here, limit):
    here.go("goal")
    here.page.fill("#risk-linkage", limit)
    go_on(here, "search")


def limit_of(here):
    return here.page.locator("#risk-linkage").input_value()


def test_a_form_made_before_a_change_in_another_tab_is_refused(small, here):
    other = small.tab("goal")
    set_limit(here, "0.35")
    other.page.get_by_text(ELSEWHERE).wait_for()
    job = small.job()
    other.page.fill("#risk-linkage", "0.2")
    go_on(other, "goal")
    assert OLD in other.messages()
    assert limit_of(other) == "0.35"
    assert small.job() == job
    other.page.close()


@pytest.mark.parametrize(
    "path", ["open", "roles", "rules", "goal", "search/start", "map/pick", "release", "undo", "redo"]
)
def test_no_address_takes_a_form_of_an_old_version(small, here, path):
    before = small.history(), sorted(small.folder.rglob("*"))
    fields = {"version": "1.0", "data": NAME, "screen": "open", "output": "new.csv", "method": "mdav"}
    status, text = here.page.evaluate(FETCH, [f"/{path}", fields])
    assert status == 200
    assert OLD in text
    assert (small.history(), sorted(small.folder.rglob("*"))) == before


def test_back_shows_the_job_as_it_is_and_goes_on_from_there(here):
    set_limit(here, "0.35")
    here.page.go_back()
    here.ready("goal")
    assert limit_of(here) == "0.35"
    here.page.fill("#risk-linkage", "0.36")
    go_on(here, "search")
    assert here.messages() == []
    assert "linkage=0.36" in here.copied("command")


def test_a_double_click_keeps_once(small, here):
    here.go("goal")
    states = len(small.history()["states"])
    here.page.fill("#risk-linkage", "0.35")
    here.page.locator("main .next button.main").dblclick()
    here.ready("search")
    assert here.messages() == []
    assert len(small.history()["states"]) <= states + 1
    assert "linkage=0.35" in here.copied("command")


def searches(small):
    children = psutil.Process(small.command.process.pid).children()
    return [one for one in children if "sdckit.app.child" in one.cmdline()]


def start_long_search(here):
    here.go("goal")
    try_only(here, "mdav", "noise", "correlated_noise", "rank_noise", "individual_ranking", "vmdav")
    here.page.fill("#risk-linkage", "0.05")
    go_on(here, "search")
    here.page.locator("#start").dblclick()
    here.page.locator("#stop:not([disabled])").wait_for(timeout=WAIT)


def shown_points(here):
    return set(here.page.locator("#points tbody tr").evaluate_all("rows => rows.map(row => row.dataset.id)"))


def test_stop_keeps_what_is_measured_and_go_on_continues(small, here):
    start_long_search(here)
    assert len(searches(small)) <= 1
    before = int(here.page.locator("#map").get_attribute("data-count") or 0)
    here.page.locator(f'#map[data-count]:not([data-count="{before}"])').wait_for(timeout=WAIT)
    here.page.reload()
    here.ready("search")
    here.page.click("#stop")
    here.page.get_by_text("The search was stopped; what it measured is kept.").wait_for(timeout=WAIT)
    assert searches(small) == []
    here.go("map")
    kept = shown_points(here)
    assert len(kept) > before
    here.go("search")
    here.page.get_by_role("button", name="Go on", exact=True).click()
    here.page.get_by_text(FINISHED).wait_for(timeout=WAIT)
    here.go("map")
    assert shown_points(here) > kept


def test_a_search_for_another_job_does_not_pass_for_one_of_this(here):
    here.go("search")
    assert here.page.get_by_text(FINISHED).is_visible()
    set_limit(here, "0.001")
    assert not here.page.get_by_text(FINISHED).is_visible()


def test_a_double_click_writes_one_release(small, here):
    here.go("release")
    here.page.fill("#private", "record")
    here.page.locator("#write").dblclick()
    here.page.wait_for_selector("#done-head", timeout=WAIT)
    assert len(list((small.folder / "record").glob("2*"))) == 1
    files = {f"{EVIL}-masked.csv", f"{EVIL}-report.html", f"{EVIL}-job.toml"}
    assert files <= {path.name for path in small.folder.iterdir()}
    version = here.page.get_attribute("body", "data-version")
    fields = {"version": version, "output": "a.csv", "private": "record", "overwrite": "on"}
    twice = f"fields => Promise.all([1, 2].map(() => ({FETCH})(['/release', fields])))"
    here.page.evaluate(twice, fields)
    here.page.locator("#release-text").filter(has_text="Writing").wait_for(state="detached", timeout=WAIT)
    here.page.wait_for_selector("#write:not([disabled])", timeout=WAIT)
    assert len(list((small.folder / "record").glob("2*"))) <= 2


@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_changes_while_open_stops_everything_until_it_is_read_again(small, here, gone):
    content, aside = small.data.read_bytes(), small.folder / "aside"
    small.data.rename(aside)
    if not gone:
        small_file(small.data, seed=4)
    fact = "is not there any more" if gone else "was changed on disk after it was opened"
    before = small.history()
    for screen in SCREENS:
        here.go(screen)
        assert f"{NAME} {fact}" in here.page.locator("#messages").inner_text()
    here.go("goal")
    here.page.fill("#risk-linkage", "0.35")
    here.press("Keep this goal and go on to the search")
    assert re.search(f"{re.escape(NAME)} {fact}.*nothing was done", here.messages()[0])
    here.press("Undo")
    assert small.history() == before
    if gone:
        here.press("Read the file again")
        assert here.messages()[0].startswith("No file")
        aside.rename(small.data)
        here.go("goal")
        assert here.messages() == []
        return
    here.press("Read the file again")
    assert here.messages() == ["The file was read again; check the roles of its columns."]
    here.go("search")
    assert not here.page.get_by_text(FINISHED).is_visible()
    small.data.write_bytes(content)
    here.go("open")
    here.press("Read the file again")
    here.go("search")
    assert here.page.get_by_text(FINISHED).is_visible()
    aside.unlink()


def test_undo_and_redo_go_over_all_screens_across_a_reload_and_a_restart(small, here):
    jobs = [small.job()]
    here.go("map")
    show_another(here)
    here.press(CHOOSE)
    jobs.append(small.job())
    here.go("roles")
    here.page.get_by_label("What the intruder knows of rent").select_option("unknown")
    for screen in ("rules", "goal", "search"):
        if screen == "goal":
            here.page.get_by_label(re.compile("rent >= 0")).check()
        if screen == "search":
            here.page.fill("#risk-linkage", "0.4")
        go_on(here, screen)
        jobs.append(small.job())
    assert len(set(jobs)) == 5
    for job in jobs[-2::-1]:
        here.press("Undo")
        assert small.job() == job
        here.page.reload()
        here.ready("search")
    assert here.page.get_by_text(FINISHED).is_visible()
    small.stop()
    small.start(NAME)
    again = small.first
    for job in jobs[1:]:
        again.press("Redo")
        assert small.job() == job
    assert not again.page.get_by_role("button", name="Redo").is_enabled()
    assert "linkage=0.4" in again.copied("command")
    assert again.complaints == []


def test_no_record_is_shown_without_the_preview(small):
    small.stop()
    small.start(NAME, "--no-preview")
    here = small.first
    for screen in SCREENS:
        here.go(screen)
        assert "Person 0" not in here.page.content()
    assert here.page.locator("table.preview").count() == 0
    here.go("open")
    assert "The preview is switched off" in here.page.locator("main").inner_text()
    assert here.complaints == []


def test_nothing_goes_on_while_a_column_needs_a_decision(small, here):
    here.go("roles")
    here.page.get_by_label("Role of name").select_option("")
    here.page.get_by_text(UNDECIDED).wait_for()
    go_on(here, "roles")
    assert UNDECIDED in here.messages()
    here.go("search")
    here.press("Start the search" if here.page.get_by_text("Start the search").is_visible() else "Go on")
    assert here.page.url.endswith("/roles")
    assert searches(small) == []
    give = here.page.get_by_label(f"Role of {REGION}")
    assert give.input_value() == "by"
