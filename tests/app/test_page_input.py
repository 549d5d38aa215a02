"""What is typed into the page: wrong input, rules, names with HTML, the keyboard alone, and texts to copy."""

import re

import pytest

from app_flow import FINISHED, SCREENS
from app_page import WAIT
from app_small import EVIL, NAME, PAY

OUTLINE = (
    "document.activeElement.matches('body') ? 'body' : getComputedStyle(document.activeElement).outlineStyle"
)


@pytest.fixture
def here(small):
    """A tab; a test in it changes nothing of the job, and leaves no line on the console but of refusals."""
    found = small.tab()
    yield found
    found.page.close()
    assert [one for one in found.complaints if "status of 422" not in one] == []
    assert small.job() == small.begin


def refused(here):
    """Send the form of the screen; return the one line that says what is wrong."""
    with here.page.expect_navigation():
        here.page.locator("main form button.main").last.click()
    here.page.wait_for_selector('body[data-ready="yes"]')
    lines = here.page.locator("#messages .message.error").all_inner_texts()
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("#data", "nowhere.csv", "nowhere.csv"),
        ("#data", "../outside.csv", "outside.csv"),
        ("#encoding", "klingon", "klingon"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(here, field, typed, said):
    here.page.fill("#na", "-9 -8")
    here.page.fill(field, typed)
    assert said in refused(here)
    assert here.page.locator(field).input_value() == typed
    assert here.page.locator("#na").input_value() == "-9 -8"


def test_a_role_that_cannot_be_is_named_and_what_was_chosen_stays(here):
    here.go("roles")
    page = here.page
    page.get_by_label("Role of rent").select_option("weights")
    page.get_by_label("Role of total").select_option("weights")
    page.get_by_label("What the intruder knows of rent").select_option("unknown")
    assert refused(here) == "'rent' and 'total' are both the weights; choose one of them"
    assert page.get_by_label("Role of total").input_value() == "weights"
    assert page.get_by_label("What the intruder knows of rent").input_value() == "unknown"
    page.get_by_label("Role of total").select_option("recode")
    page.get_by_label("How total is coarsened").fill("often")
    assert "often" in refused(here)
    assert page.get_by_label("How total is coarsened").input_value() == "often"


def test_a_wrong_rule_is_said_as_one_types_and_again_when_it_is_kept(here):
    here.go("rules")
    box = here.page.get_by_label("Your own rules")
    box.press_sequentially("rent <= nowhere")
    here.page.locator("#rule-errors .error", has_text="nowhere").wait_for()
    box.fill("rent <= total")
    here.page.get_by_text("rent <= total: all 200 records obey it").wait_for()
    box.fill("rent <= nowhere")
    here.page.get_by_label(re.compile("rent >= 0")).check()
    assert "nowhere" in refused(here)
    assert box.input_value() == "rent <= nowhere"
    assert here.page.get_by_label(re.compile("rent >= 0")).is_checked()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"#risk-linkage": "2"}, "2"),
        ({"#risk-linkage": "few"}, "few"),
        ({"#name-0": "press", "#limit-0": "0.2"}, "Intruder 'press' knows no column; tick one that he knows"),
        ({"#limit-0": "0.2"}, "no name"),
        ({"#suppressed": "7"}, "7"),
    ],
)
def test_a_goal_that_cannot_be_is_named_and_what_was_typed_stays(here, fields, said):
    here.go("goal")
    for field, typed in fields.items():
        here.page.fill(field, typed)
    here.page.locator('input[name="method"][value="noise"]').check()
    assert said in refused(here)
    assert {field: here.page.locator(field).input_value() for field in fields} == fields
    assert here.page.locator('input[name="method"][value="noise"]').is_checked()


def test_a_goal_without_a_method_is_refused(here):
    here.go("goal")
    here.page.locator('input[name="method"][value="mdav"]').uncheck()
    assert refused(here) == "No method is ticked; tick at least one"
    assert here.page.locator('input[name="method"]:checked').count() == 0


@pytest.mark.parametrize("field", ["output", "report", "save_job", "private_report", "private"])
def test_no_path_of_a_release_leads_out_of_the_folder(small, here, field):
    before = sorted(small.folder.parent.rglob("*"))
    here.go("release")
    here.page.fill(f"#{field}", "../outside.csv")
    assert "../outside.csv" in refused(here)
    assert here.page.locator(f"#{field}").input_value() == "../outside.csv"
    assert sorted(small.folder.parent.rglob("*")) == before


def test_names_with_html_are_shown_as_text_on_every_screen(here):
    for screen in SCREENS:
        here.go(screen)
        assert EVIL in here.page.locator("header").inner_text()
        assert here.page.locator(".evil").count() == 0
    here.go("roles")
    assert PAY in here.page.locator("table.roles").inner_text()
    here.go("map")
    here.page.wait_for_selector("#map svg .points_marks path", timeout=WAIT)  # else the button moves
    here.page.locator("#points tr.chosen button").click()
    here.page.wait_for_selector("#panel .chart svg", timeout=WAIT)
    assert PAY in here.page.locator("#panel").inner_text()
    assert here.page.locator(".evil").count() == 0


@pytest.mark.parametrize("name", ["command", "python"])
def test_a_text_is_copied_as_it_is_shown(here, name):
    here.go("goal")
    here.page.locator(
        "summary", has_text=f"Copy as {name.capitalize() if name == 'python' else name}"
    ).click()
    here.page.locator(f'button[data-copy="copy-{name}"]').click()
    here.page.get_by_role("button", name="Copied").wait_for()
    copied = here.page.evaluate("navigator.clipboard.readText()")
    assert copied == here.copied(name)
    assert NAME in copied


def tab_to(here, target):
    """Press Tab until an element has the focus, which can be seen all the way."""
    for _ in range(150):
        here.page.keyboard.press("Tab")
        assert here.page.evaluate(OUTLINE) != "none"
        if target.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError("Tab does not reach it")


def by_key(here, target, screen, key="Enter"):
    """Go to a button or link by Tab, press it, and wait for a screen."""
    tab_to(here, target)
    here.page.keyboard.press(key)
    here.ready(screen)


def test_the_keyboard_alone_leads_from_the_first_screen_to_a_finished_search(small):
    here = small.tab()
    page = here.page
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    assert skip.evaluate("one => one === document.activeElement")
    assert skip.bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    with page.expect_navigation():
        tab_to(here, page.get_by_role("button", name=NAME, exact=True))
        page.keyboard.press("Enter")
    here.ready("open")
    by_key(here, page.get_by_role("link", name="Go on to the roles of the columns"), "roles")
    tab_to(here, page.get_by_label("What the intruder knows of rent"))
    page.keyboard.press("w")  # wants to learn it
    by_key(here, page.locator("main .next button"), "rules", "Space")
    tab_to(here, page.get_by_label(re.compile("rent >= 0")))
    page.keyboard.press("Space")
    by_key(here, page.locator("main .next button"), "goal")
    tab_to(here, page.locator("#risk-linkage"))
    page.keyboard.type("0.4")
    by_key(here, page.locator("main .next button"), "search")
    tab_to(here, page.locator("#start"))
    page.keyboard.press("Enter")
    page.get_by_text(FINISHED).wait_for(timeout=WAIT)
    by_key(here, page.get_by_role("link", name="Go on to the map"), "map")
    tab_to(here, page.locator("#points tr.chosen button"))
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel .chart svg", timeout=WAIT)
    assert page.evaluate("document.activeElement.id") == "panel-head"
    assert 'confidential = ["rent"]' in small.job()
    assert here.complaints == []
    page.close()
    small.undo_all()
