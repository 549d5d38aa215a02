"""The report of `sdckit demo` in a real browser without a network: its map is the sweep, point by point."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sdckit as sdc
from browser import PHONE, cells, opened
from calls import called
from read_page import Read
from sdckit.cli.demo import ENTROPY, LIMITS, PLAN, ROLES

POINTS = ".points_marks path"


@pytest.fixture(scope="module")
def settings(demo):
    """The settings of sweep.csv with their loss and risk, as the page writes them."""
    table = pl.read_csv(demo[0] / "sweep.csv")
    wide = table.filter(variable="all", stratum="all").pivot(
        "metric", index=["method", "parameters"], values="value"
    )
    return {
        (sdc.METHODS[method].title, parameters, f"{loss:.4f}", f"{risk:.4f}")
        for method, parameters, loss, risk in wide.select("method", "parameters", "brmae", "linkage").rows()
    }


def chosen_setting(done):
    """Method and parameters that the demo recommends, from what it printed."""
    chosen = done.stdout.split(" loses least")[0].splitlines()[-1]
    return chosen.removesuffix(")").split(" (")


def written(rows):
    """Rows of the page with figures of four decimals."""
    return {(method, text, f"{float(loss):.4f}", f"{float(risk):.4f}") for method, text, loss, risk in rows}


def test_the_demo_leaves_what_it_says(demo, settings):
    folder, done = demo
    assert str(folder.relative_to(folder.parent) / "report.html") in done.stdout
    assert len(settings) == sum(len(values) for grid in PLAN.values() for values in grid.values())
    original, masked = (pl.read_csv(folder / f"{name}.csv") for name in ("original", "masked"))
    method, parameters = chosen_setting(done)
    name, _, value = parameters.partition("=")
    again = called(
        "release", original, method, **ROLES, entropy=ENTROPY, max_risk=LIMITS, **{name: float(value)}
    )
    assert all(round(again.evaluation[risk], 12) <= limit for risk, limit in LIMITS.items())
    assert_frame_equal(masked, again.data, check_dtypes=False)
    assert "firm" not in masked.columns
    for beside in ("sector", "weight"):  # published as they were, in another order
        assert sorted(masked[beside]) == sorted(original[beside])
        assert masked[beside].to_list() != original[beside].to_list()
    page = Read((folder / "report.html").read_text())
    for limit in LIMITS.values():
        assert f"limit {limit:g}: met" in page.text
    for said in ("knows: all 12 published columns.", "ublished unmasked: sector, weight."):
        assert said in page.text
        assert said in done.stdout


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 900}, PHONE], ids=["desktop", "phone"])
def test_the_map_has_the_settings_of_the_sweep_and_nothing_is_said_on_the_console(
    demo, browser, settings, viewport
):
    with opened(browser, demo[0] / "report.html", viewport) as here:
        assert here.page.locator(POINTS).count() == len(settings)
        here.page.locator("#points summary").click()
        rows = cells(here.page, "#points tbody tr")
        assert len(rows) == len(settings)
        assert written(row[:4] for row in rows) == settings
        assert here.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert here.complaints == []
