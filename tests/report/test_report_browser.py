"""The report in a real browser, with the network off."""

import numpy as np
import pytest

import reports
from browser import DESKTOP, PHONE, cells, opened
from pictures import pixels

POINTS = ".points_marks path"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(reports.full(), encoding="utf-8")
    return path


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_it_opens_without_a_word_on_the_console_and_without_a_request(browser, page_file, viewport):
    with opened(browser, page_file, viewport) as here:
        charts = here.page.locator(".chart")
        assert charts.count() == 2 + len(reports.VARIABLES)
        assert here.page.locator(".chart svg").count() == charts.count()
        assert here.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        picture = pixels(here.page.screenshot())
        assert picture.shape == (viewport["height"], viewport["width"], 3)
        assert np.unique(picture.reshape(-1, 3), axis=0).shape[0] > 20
        assert here.complaints == []


def test_the_policy_keeps_other_scripts_out(browser, page_file):
    with opened(browser, page_file) as here:
        here.page.evaluate(
            """() => { const s = document.createElement("script"); s.textContent = "window.sneaked = 1";
                       document.body.append(s);
                       const i = new Image(); i.src = "https://a.test/a.png"; document.body.append(i); }"""
        )
        for _ in range(300):  # a busy browser complains later
            here.page.wait_for_timeout(100)
            if here.complaints:
                break
        assert here.page.evaluate("window.sneaked === undefined")
        assert here.complaints
        assert all("Content Security Policy" in line for line in here.complaints)


def test_hovering_shows_what_the_table_says(browser, page_file):
    with opened(browser, page_file) as here:
        page = here.page
        page.locator("#points summary").click()
        names = page.locator("#points thead th").all_inner_texts()[:4]
        rows = [row[:4] for row in cells(page, "#points tbody tr")]
        seen = []
        marks = page.locator(POINTS)
        for place in range(marks.count()):
            page.mouse.move(5, 5)
            page.wait_for_function("!document.querySelector('#vg-tooltip-element.visible')")
            marks.nth(place).scroll_into_view_if_needed()
            box = marks.nth(place).bounding_box()
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            page.locator("#vg-tooltip-element.visible").wait_for()
            words = cells(page, "#vg-tooltip-element tr")
            assert [name for name, _ in words] == names
            seen.append([text for _, text in words])
        assert all(row in rows for row in seen)
        covered = [row for row in rows if row not in seen]
        assert len(covered) <= 2, "marks may hide under others, but not many"
        assert here.complaints == []


def test_filtering_by_a_method_hides_the_others(browser, page_file):
    with opened(browser, page_file) as here:
        page = here.page
        page.get_by_text("rank swapping", exact=True).first.click()
        page.wait_for_function(f"document.querySelectorAll('{POINTS}').length === 4")
        page.locator("#points summary").click()
        shown = page.locator("#points tbody tr:visible")
        assert {row[0] for row in cells(page, "#points tbody tr:visible")} == {"rank swapping"}
        assert shown.count() == 4
        page.get_by_text("all methods").click()
        page.wait_for_function(f"document.querySelectorAll('{POINTS}').length === 16")
        assert here.complaints == []


def test_the_keyboard_can_filter(browser, page_file):
    with opened(browser, page_file) as here:
        here.page.locator("input[name=shown]:checked").focus()
        here.page.keyboard.press("ArrowRight")
        here.page.wait_for_function(f"document.querySelectorAll('{POINTS}').length === 4")
        assert here.complaints == []


def test_limit_frontier_random_level_and_choice_are_drawn(browser, page_file):
    near = reports.mapped(reports.points().table.drop("frontier", "chosen"), random=0.4)
    path = page_file.with_name("near.html")
    path.write_text(reports.full(points=near), encoding="utf-8")
    with opened(browser, path) as here:
        for name in ("limit", "random", "frontier", "chosen"):
            assert here.page.locator(f".{name}_marks").locator("line, path").count() >= 1, name
        words = here.page.locator("#chart-map svg text").all_text_contents()
        assert {"limit 0.1", "unrelated order 0.4000", "chosen"} <= set(words)


def test_it_prints_with_the_table_open(browser, page_file):
    with opened(browser, page_file) as here:
        note = "document.title = String(document.querySelector('details').open)"
        seen = f"window.addEventListener('beforeprint', () => {{ {note} }})"
        here.page.evaluate(seen)
        printed = here.page.pdf(prefer_css_page_size=True)
        assert printed.startswith(b"%PDF-")
        assert b"%%EOF" in printed[-1024:]
        assert here.page.title() == "true"
        assert not here.page.locator("#points").evaluate("part => part.open")
        here.page.emulate_media(media="print")
        here.page.set_viewport_size({"width": 680, "height": 1000})
        assert here.page.evaluate("document.documentElement.scrollWidth") <= 680
        assert here.complaints == []


def test_many_metrics_fit_on_the_screen_and_on_paper(browser, tmp_path):
    path = tmp_path / "many.html"
    path.write_text(reports.full(evaluation=reports.many()), encoding="utf-8")
    cut = """() => [...document.querySelectorAll(".scroll, table, th, td")]
        .filter(part => part.getBoundingClientRect().right > innerWidth + .5
            || getComputedStyle(part).overflowX !== "visible" && part.scrollWidth > part.clientWidth)
        .map(part => part.outerHTML.slice(0, 80))"""
    with opened(browser, path) as here:
        here.page.locator("#points summary").click()
        assert here.page.locator(".heat thead th").count() == 11
        assert here.page.evaluate(cut) == []
        here.page.emulate_media(media="print")
        here.page.set_viewport_size({"width": 680, "height": 1000})
        assert (
            here.page.evaluate("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
        )
        assert here.page.evaluate(cut) == []
        height = "() => document.querySelector('.heat thead').getBoundingClientRect().height"
        assert here.page.evaluate(height) < 40, "words of headings are not broken"
        assert here.page.evaluate("document.documentElement.scrollWidth") <= 680
        assert here.complaints == []


def test_wild_names_stay_text(browser, tmp_path):
    name = "</script><script>window.bad = 1</script> \"'[/b]"
    table = (
        reports.points()
        .table.head(3)
        .with_columns(method=reports.pl.lit(name), parameters=reports.pl.lit("<b>k=1</b>"))
    )
    data = reports.original().select(reports.VARIABLES).rename({"turnover": name})
    masked = reports.masked().select(reports.VARIABLES).rename({"turnover": name})
    path = tmp_path / "wild.html"
    page = reports.full(
        points=reports.mapped(table.drop("frontier", "chosen")),
        pair=reports.pair_of(data, masked),
        evaluation=reports.sdc.evaluate(data, masked, metrics=["brmae"]),
    )
    path.write_text(page, encoding="utf-8")
    with opened(browser, path, PHONE) as here:
        assert here.page.evaluate("window.bad === undefined")
        assert name in here.page.locator(".panel figcaption").first.inner_text()
        mark = here.page.locator(POINTS).last
        mark.scroll_into_view_if_needed()
        mark.hover()
        here.page.locator("#vg-tooltip-element.visible").wait_for()
        shown = [text for _, text in cells(here.page, "#vg-tooltip-element tr")]
        assert shown[:2] == [name, "<b>k=1</b>"]
        assert here.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert here.complaints == []
