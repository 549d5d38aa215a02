"""The report that an office signs: every number is in the JSON, exact ones are in the private report only."""

import hashlib
import json
import re
from itertools import pairwise

import polars as pl
import pytest

import sdckit as sdc
from command import forget_releases, good, run_here
from read_page import Read
from sdckit.core.text import figure_text, number
from sdckit.report.measures import limit_text
from sdckit.report.signing import MARK, margin_style

VARIABLES = ["turnover", "domestic_sales", "export_sales", "wages", "profit"]
RULES = ["turnover = domestic_sales + export_sales", "wages >= 0"]
ROLES = ["--columns", ",".join(VARIABLES), "--key", "firm", "--unknown", "weight,sector"]
SCENARIO = ["--scenario", "press=turnover,wages:linkage=0.4"]
REPORTS = ["--report", "report.html", "--private-report", "private.html"]
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")
COMMANDS = {
    "mask": ["mask", "data.csv", "-o", "masked.csv", "--method", "mdav", "--set", "k=5", "--release"],
    "recommend": ["recommend", "data.csv", "-o", "masked.csv", "--grid", "mdav.k=4:8:4", *SCENARIO],
    "evaluate": ["evaluate", "data.csv", "masked.csv", "--crosswalk", "order.csv", "--made-by", "mdav"],
}
COMMANDS["evaluate"] += SCENARIO
COMMANDS["mask"] += ["--crosswalk", "order.csv"]
COMMANDS["recommend"] += ["--max-risk", "linkage=0.5", "--max-risk", "linkage_outliers=0.6", "--workers", "1"]


def sample():
    return sdc.load_sample().head(300).select("firm", "sector", "weight", *VARIABLES)


class Made:
    """What one command printed and wrote: JSON, both reports, and its folder."""

    def __init__(self, folder, command):
        forget_releases()
        sample().write_csv(folder / "data.csv")
        rules = [word for rule in RULES for word in ("--rule", rule)]
        if command == "evaluate":
            good(folder, *COMMANDS["mask"], *ROLES, *rules, "-q")
        done = good(folder, *COMMANDS[command], *ROLES, *rules, *REPORTS, "--json")
        self.folder, self.said, self.json = folder, done.stderr, json.loads(done.stdout)
        self.page, self.private = ((folder / name).read_text() for name in ("report.html", "private.html"))


@pytest.fixture(scope="module", params=list(COMMANDS))
def made(request, tmp_path_factory):
    return Made(tmp_path_factory.mktemp(request.param), request.param)


def texts_of(content):
    """Every number of a JSON as the report may print it, and every number in its sentences."""
    if isinstance(content, dict):
        return set().union(*(texts_of(one) for pair in content.items() for one in pair))
    if isinstance(content, list):
        return set().union(*map(texts_of, content))
    if isinstance(content, str):
        return set(NUMBER.findall(content))
    if isinstance(content, bool) or content is None:
        return set()
    ways = [number(content), limit_text(content), f"{content:,}", f"{content:.2f}"]
    return {*ways, figure_text(content, 10), figure_text(content, 4)}


def test_every_number_on_the_page_is_in_the_json(made):
    words = Read(made.page).text.partition("Signature The undersigned")[0]
    found = [text for text in NUMBER.findall(words) if len(text.strip("-")) > 2]
    told = texts_of(made.json)
    cells = made.json["summary"]["records"] * made.json["summary"]["variables"]
    versions = Read(made.page).text.rpartition(" versions sdckit")[2]
    others = {f"{cells:,}", *NUMBER.findall(versions)}
    assert len(found) > 150
    assert sorted({text for text in found if text not in told | others}) == []


def test_statistics_and_correlations_stand_where_they_belong(made):
    rows = {tuple(row[:1]): row for row in Read(made.page).rows}
    listed = Read(made.page).rows
    for row in made.json["statistics"]["variables"]:
        at = next(i for i, line in enumerate(listed) if line[:2] == [row["variable"], "original"])
        place = ["mean", "sd", "q1", "median", "q3", "total"].index(row["statistic"])
        assert listed[at][2 + place] == figure_text(row["before"], 10)
        assert listed[at + 1][1 + place] == figure_text(row["after"], 4)
    for row in made.json["statistics"]["correlations"]:
        here, there = (VARIABLES.index(row[name]) + 1 for name in ("variable", "other"))
        shown = {name: rows[(f"{at} {name}",)] for at, name in enumerate(VARIABLES, 1)}
        before = "-" if row["before"] is None else f"{row['before']:.2f}"
        assert shown[row["variable"]][there] == before
        assert shown[row["other"]][here] == f"{row['after']:.2f}"


def test_facts_scenarios_rules_and_gaps_are_told(made):
    summary, text = made.json["summary"], Read(made.page).text
    assert (summary["records"], summary["variables"]) == (300, len(VARIABLES))
    assert summary["rules"] == RULES
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", summary["date"])
    assert summary["method"].startswith("MDAV microaggregation (k=")
    for said in [summary["method"], summary["date"], *RULES, *summary["not_measured"]]:
        assert said in text
    assert "unique in the population" in text
    assert "sector, weight are published as in the data" in text
    rows = [row for row in Read(made.page).rows if row[:1] in (["main"], ["press"])]
    measured = {row["metric"]: row["value"] for row in made.json["table"] if row["variable"] == "all"}
    assert rows[0][1:4] == [", ".join(VARIABLES), "linkage", number(measured["linkage"])]
    for row in made.json.get("scenarios", []):
        assert ["press", "turnover, wages", "linkage", number(row["value"]), "0.4", "met"] in rows


def test_the_hash_is_that_of_the_file_and_the_originals_is_private(made):
    ours, theirs = (
        hashlib.sha256((made.folder / name).read_bytes()).hexdigest() for name in ("masked.csv", "data.csv")
    )
    assert made.json["summary"]["sha256"] == ours
    assert ours in Read(made.page).text
    assert theirs in Read(made.private).text
    assert theirs not in made.page + json.dumps(made.json)


def test_exact_figures_are_in_the_private_report_only(made):
    frame = sample()
    told, private = Read(made.page).text, Read(made.private).text
    for name in VARIABLES:
        for value in (frame[name].std(), frame[name].quantile(0.75, "linear")):
            assert figure_text(value, 10) in private
            assert figure_text(value, 10) not in told
    assert (made.folder / "private.html").stat().st_mode & 0o777 == 0o600
    assert "keep it secret" in made.said
    assert MARK in private
    assert "PRIVATE" not in made.page
    assert "Approved for publication" not in private


def test_places_to_sign_stand_at_the_end(made):
    end = Read(made.page).text.partition("Signature The undersigned")[2]
    lines = "Name Role Date Signature"
    assert f"Prepared by {lines} Approved for publication by {lines}" in end


def test_exact_statistics_are_in_json_only_on_request(made):
    if made.folder.name.startswith("evaluate"):
        words = [*COMMANDS["evaluate"], *ROLES, "--json", "--private-output"]
        exact = json.loads(good(made.folder, *words).stdout)
        values = {(r["variable"], r["statistic"]): r["before"] for r in exact["statistics"]["variables"]}
        assert values["wages", "total"] == pytest.approx(sample()["wages"].sum())
        assert "original_sha256" in exact["summary"]
    assert made.json["statistics"]["exact"] is False
    assert "original_sha256" not in made.json["summary"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["mask", "data.csv", "-o", "m.csv", "--method", "mdav"], "another name"),
        (["evaluate", "data.csv", "a.csv", "b.csv"], "one by one"),
    ],
)
def test_private_reports_that_cannot_be_are_refused(tmp_path, words, error):
    for name in ("data.csv", "a.csv", "b.csv"):
        sample().write_csv(tmp_path / name)
    report = "p.html" if words[0] == "mask" else "r.html"
    done = run_here(tmp_path, *words, "--report", report, "--private-report", "p.html")
    assert done.returncode == 2
    assert error in done.stderr
    assert not list(tmp_path.glob("*.html"))


def test_names_cannot_leave_the_printed_margin():
    style = margin_style('a"; } </style> \\ é \n x', None)
    inside = re.search(r'content: "(.*?)"; font', style)[1]
    assert not re.search(r'["<>\n}]', inside)
    assert inside.startswith(r"a\000022; \00007d")


def test_it_prints_without_cut_tables_and_says_private_on_every_page(browser, tmp_path):
    from browser import opened

    frame = sample().rename({"profit": "profit_of_the_year_before_taxes_and_interest_in_thousands"})
    frame.with_columns(pl.col("turnover") * 1e5).write_csv(tmp_path / "data.csv")
    words = ["mask", "data.csv", "-o", "m.csv", "--method", "mdav", "--key", "firm"]
    words += ["--untouched", "sector,weight"]
    good(tmp_path, *words, *REPORTS, "-q", "--metrics", "brmae,linkage")
    cut = """() => [...document.querySelectorAll("table, th, td, dd")]
        .filter(part => part.getBoundingClientRect().right > innerWidth + .5)
        .map(part => part.outerHTML.slice(0, 80))"""
    rules = """() => [...document.styleSheets[0].cssRules].map(rule => rule.cssText).join(" ")"""
    for name, private in (("report.html", False), ("private.html", True)):
        with opened(browser, tmp_path / name) as here:
            here.page.emulate_media(media="print")
            here.page.set_viewport_size({"width": 680, "height": 1000})
            assert here.page.evaluate(cut) == []
            printed = here.page.evaluate(rules)
            assert "counter(pages)" in printed
            assert (f'content: "{MARK}"' in printed) == private
            said = here.page.locator("main").inner_text()  # of a working copy, as --release is not given
            assert "not for publication" in said
            assert "Approved" not in said
            mark = here.page.locator(".watermark")
            assert mark.count() == private
            assert not private or mark.evaluate("one => getComputedStyle(one).position") == "fixed"
            assert here.complaints == []


def test_pages_of_signed_reports_have_their_sections_in_order(made):
    names = re.findall(r'<section id="([\w-]+)"', made.page)
    wanted = ["release", "scenarios", "measures", "statistics", "distributions", "rules", "not-measured"]
    places = [names.index(name) for name in [*wanted, "facts", "signature"]]
    assert all(a < b for a, b in pairwise(places))
    assert names[-1] == "signature"
