"""Declared estimates in the report: classes in public, exact intervals in private, on the first screen."""

import re

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from read_page import Read
from sdckit.core.text import figure_text, number
from sdckit.metrics.pair import pair_of
from sdckit.report.build import report_on_evaluation
from sdckit.report.signing import summary_of
from sdckit.request.results import evaluation_content

ESTIMATES = ["total(turnover) by state", "model: log(wages) ~ log(turnover)", "mean(wages) by state, month"]
ELASTICITY = "model: log(wages) ~ log(turnover) [log(turnover)]"


def panel(firms=90):
    """Months of firms: skewed, with a sum, and one state of two firms."""
    rng = np.random.default_rng(3)
    firm = np.repeat(np.arange(firms), 12)
    home = np.round(rng.lognormal(5, 1, firms)[firm] * rng.lognormal(0, 0.3, firm.size), 1)
    abroad = np.round(home * rng.uniform(0, 0.5, firm.size), 1)
    wages = np.round(0.3 * (home + abroad) ** 0.9 * rng.lognormal(0, 0.6, firm.size) + 0.1, 1)
    state = np.where(firm < 2, "DC", np.array(["NY", "CA", "TX"])[firm % 3])
    columns = {"firm": firm, "month": np.tile(np.arange(1, 13), firms), "state": state}
    return pl.DataFrame(
        {**columns, "turnover": home + abroad, "home": home, "abroad": abroad, "wages": wages}
    )


class Made:
    """The evaluation of a masked panel, and both reports on it."""

    def __init__(self):
        roles = {"columns": ["turnover", "home", "abroad", "wages"], "unit": "firm"}
        roles |= {"estimates": ESTIMATES, "untouched": ["state", "month"]}
        original = sdc.Microdata(panel(), **roles)
        ruled = sdc.Microdata(panel(), rules=["turnover = home + abroad"], **roles)
        masked = ruled.mask("mdav", k=10, rng=1)
        self.result = original.evaluate(masked, metrics=["brmae", "estimates", "estimates_worst", "sdid"])
        self.table = self.result.estimates.table
        pair = pair_of(original.original, masked)
        self.page, self.private = (
            report_on_evaluation(
                self.result,
                name="m.csv",
                pair=pair,
                summary=summary_of(pair, self.result, file="m.csv", sha256="1" * 64, original_sha256=hashed),
            )
            for hashed in (None, "2" * 64)
        )


@pytest.fixture(scope="module")
def made():
    return Made()


def test_the_first_sentences_name_what_moved(made):
    moved = made.table["change_in_se"].abs()
    far = made.table.filter(moved > 2)["estimate"].to_list()
    assert ELASTICITY in far
    for page in (made.page, made.private):
        head = Read(page.partition("</header>")[0]).text
        assert re.search(r"of (the )?\d+ declared estimates .*moved by less than half", head)
        assert ELASTICITY in head
        order = re.findall(r'<section (?:id|class)="([\w-]+)"', page)
        assert order[:3] == ["headlines", "estimates", "release"]


def test_exact_figures_of_the_original_are_in_the_private_report_only(made):
    public, private = Read(made.page).text, Read(made.private).text
    for row in made.table.iter_rows(named=True):
        assert figure_text(row["original"], 10) in private
        exact = {figure_text(row["original"], digits) for digits in (4, 6, 10)}
        exact |= {f"{abs(row['change']):.3g}", f"{abs(row['change']):.2f} %", number(row["overlap"])}
        exact |= {figure_text(row["se_original"], digits) for digits in (4, 6, 10)}
        own = {figure_text(row[name], 4) for name in ("masked", "se_masked")}
        words = set(re.split(r"[\s;:]+", public))
        told = {text for text in exact - own if len(text) > 5} & words
        assert not told, told


def test_each_row_says_its_class_or_why_it_is_withheld(made):
    body = made.page.partition('<table class="estimates">')[2].partition("</table>")[0]
    rows = {tuple(row[:2]): row[2:] for row in Read(body).rows}
    assert len(rows) == made.table.height + 1  # and the heads
    told = 0
    for row in made.table.iter_rows(named=True):
        shown = rows[row["estimate"], row["domain"]]
        assert shown[:2] == [figure_text(row["masked"], 4), figure_text(row["se_masked"], 4)]
        if row["domain"].startswith("DC"):
            few = "records" if "," in row["domain"] else "units"
            assert shown[2:] == ["-", "-", "-", "-", f"withheld: fewer than ten {few}"]
        elif shown[6]:
            assert shown[2:] == ["-", "-", "-", "-", "withheld: one record or unit dominates"]
        else:
            told += 1
            classes = [(shown[2], row["change"]), (shown[3], row["change_in_se"])]
            classes = [(ends(text), abs(moved)) for text, moved in classes if text != "-"]
            assert classes
            assert all(low <= moved <= high for (low, high), moved in classes)
    assert told > 30


def ends(text):
    """The ends of a class in words."""
    numbers = [float(one) for one in re.findall(r"\d+(?:\.\d+)?", text)]
    if text.startswith("above"):
        return numbers[0], np.inf
    return (0.0, numbers[0]) if text.startswith("below") else tuple(numbers)


def test_rows_of_the_plot_are_in_the_order_of_their_classes(made):
    body = made.page.partition('<table class="forest">')[2].partition("</table>")[0]
    places = [float(found) for found in re.findall(r'<rect class="(?:near|middle|far)" x="([\d.]+)"', body)]
    assert len(places) == 12
    assert places == sorted(places, reverse=True)
    assert "DC" not in Read(body).text
    exact = made.private.partition('<table class="forest exact">')[2].partition("</table>")[0]
    moved = [float(found) for found in re.findall(r"([+-][\d.]+) s\.e\.</td>", exact)]
    assert np.abs(moved).tolist() == sorted(np.abs(moved), reverse=True)
    assert max(np.abs(moved)) == pytest.approx(made.table["change_in_se"].abs().max(), abs=0.005)


def test_losses_of_single_estimates_are_not_published(made):
    public = made.result.public()
    assert public.estimates is None
    assert np.isnan(public["estimates_worst"])
    assert np.isnan(public["estimates"])  # as an estimate is withheld
    assert made.result["estimates_worst"] > 0
    assert number(made.result["estimates_worst"]) not in Read(made.page).text


def test_the_json_has_exact_figures_only_on_request(made):
    public, private = (
        evaluation_content(made.result, private=wanted)["estimates"] for wanted in (False, True)
    )
    assert private == made.table.rows(named=True)
    assert len(public) == len(private)
    assert not {"original", "se_original", "overlap", "records_original"} & public[0].keys()
    assert {row["change"] for row in public} <= {
        *(None, "below 1 %", "below 5 %", "below 10 %", "1 to 5 %", "5 to 10 %", "above 10 %")
    }


@pytest.mark.parametrize("width", [1280, 390])
def test_it_is_seen_at_once_and_nothing_is_cut(browser, made, tmp_path, width):
    from browser import opened

    path = tmp_path / "report.html"
    path.write_text(made.page, encoding="utf-8")
    with opened(browser, path, {"width": width, "height": 800}) as here:
        place = here.page.locator(".lead").bounding_box()
        assert place["y"] + place["height"] < 800
        if width == 1280:
            assert here.page.locator(".forest tbody tr").first.bounding_box()["y"] < 800
        assert here.page.evaluate("document.documentElement.scrollWidth") <= width
        outside = """() => [...document.querySelectorAll(".forest *")]
            .filter(part => part.getBoundingClientRect().right > innerWidth).length"""
        assert here.page.evaluate(outside) == 0
        assert here.complaints == []
