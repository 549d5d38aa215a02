"""The how-to page on notebooks, run as a notebook and looked at in a browser with the network off."""

import re
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest

from browser import opened
from notebooks import exported, notebook_of_page, run
from pictures import pixels
from shown import Shown

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "notebooks.md"
AT_ONCE = "from sdckit import progress\nprogress.SHOW_AFTER = 0.0"  # so that bars are shown
WIDTH = 1000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def executed(folder):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(folder / "jupyter"))  # leave nothing in the user's folders
        made = notebook_of_page(PAGE, AT_ONCE)
        run(made, folder)
    return made


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_every_cell_ends_with_what_it_shows(executed):
    cells = [cell for cell in executed.cells if cell.cell_type == "code"][1:]
    assert len(cells) == 10
    for cell in cells:
        shown = [output.output_type for output in cell.outputs]
        assert shown.count("execute_result") == 1, cell.source
        assert set(shown) <= {"execute_result", "display_data"}, cell.outputs  # nothing on stderr


def test_bars_were_shown_and_nothing_of_them_is_left(executed):
    bars = [output.data for output in outputs(executed) if output.output_type == "display_data"]
    assert len(bars) >= 2
    assert all(set(bar.values()) == {""} for bar in bars)


def test_a_notebook_is_small(executed):
    sizes = [sum(len(part) for part in output.data.values()) for output in outputs(executed)]
    assert sorted(sizes)[-2] < 60_000
    assert max(sizes) < 1_500_000  # the report, with the scripts of its charts


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_seen_without_a_network(browser, executed, folder, theme):
    path = folder / f"{theme}.html"
    path.write_text(exported(executed, theme), encoding="utf-8")
    with opened(browser, path, {"width": WIDTH, "height": 900}, drawn="iframe") as here:
        page = here.page
        report = page.frame_locator("iframe")
        report.locator("body[data-drawn=all]").wait_for()
        assert report.locator("h1").inner_text() == "Loss and risk of released.csv"
        assert report.locator(".chart svg").count() >= 10
        tables = page.locator(".sdckit table")
        assert tables.count() == 4
        for place in range(tables.count()):
            assert_read(tables.nth(place), theme)
        pictures = page.locator('img[src^="data:image/svg+xml"]').all()
        sources = [b64decode(picture.get_attribute("src").split(",")[1]).decode() for picture in pictures]
        assert [re.search(r"<title[^>]*>(\w+ of)", text)[1] for text in sources] == ["Map of", "Sweep of"]
        for picture in pictures:
            drawn = pixels(picture.screenshot())
            assert min(drawn.shape[:2]) > 200
            assert np.unique(drawn.reshape(-1, 3), axis=0).shape[0] > 20
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH
        assert here.complaints == []


def assert_read(table, theme):
    """Text stands out from what is behind it, in the colours of the theme."""
    assert table.is_visible()
    seen = pixels(table.screenshot()).mean(axis=2)
    behind = np.median(seen)
    assert (behind > 200) == (theme == "light")
    assert np.ptp(seen) > 150


def test_an_output_holds_no_script(executed):
    for output in outputs(executed):
        html = output.data.get("text/html", "")
        assert "script" not in Shown(html).tags
