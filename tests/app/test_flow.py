"""From a file to a release in a real browser: the whole flow, on the sample and on a file with everything."""

import hashlib
import json
import re
import shlex
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe

from app_page import WAIT, Command, visited

SCREENS = ["open", "roles", "rules", "goal", "search", "map", "release"]
FINISHED = "The search is finished."


def survey(records=300):
    """A survey with names, codes, households, weights, missing cells and a sum."""
    rng = np.random.default_rng(5)
    household = np.arange(records) // 3
    wages = np.round(rng.lognormal(7, 0.6, records), 0)
    rent = np.round(rng.lognormal(5, 0.5, records), 0)
    table = {
        "name": [f"Person {i:04d}" for i in rng.permutation(records)],
        "hhid": household,
        "region": rng.choice(["N", "S", "W"], records),
        "occupation": rng.choice([101, 205, 333], records),
        "wages": wages,
        "rent": rent,
        "total": wages + rent,
        "savings": np.where(rng.random(records) < 0.1, None, np.round(rng.lognormal(4, 1, records), 1)),
        "weight": rng.choice([1.5, 2.0, 2.5], records),
    }
    return pl.DataFrame(table, strict=False)


def run(folder, *words):
    return subprocess.run(
        [sys.executable, "-m", "sdckit.cli", *words], cwd=folder, capture_output=True, text=True, check=False
    )


def no_barrier(here):
    """No serious or critical finding of axe-core on the screen as it is."""
    found = Axe().run(here.page).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in {"serious", "critical"}]


def fits(here):
    return (
        here.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    )


def search_to_its_end(here):
    here.page.click("#start")
    here.page.get_by_text(FINISHED).wait_for(timeout=WAIT)


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
        barriers = {}

        def look(screen):
            here.ready(screen)
            barriers[screen] = no_barrier(here)
            assert fits(here)

        page.get_by_role("button", name="Try the bundled sample").click()
        page.wait_for_selector("table.preview")
        look("open")
        assert page.locator("table.preview tbody tr").count() == 20
        here.go("roles")
        look("roles")
        page.select_option('tr:has(th:text-is("firm")) select >> nth=0', "key")
        page.select_option('tr:has(th:text-is("weight")) select >> nth=0', "weights")
        page.select_option('tr:has(th:text-is("weight")) select >> nth=1', "unknown")
        page.select_option('tr:has(th:text-is("sector")) select >> nth=0', "by")
        page.get_by_text(re.compile("^0 records are unique")).wait_for()
        page.get_by_role("button", name="go on to the rules").click()
        look("rules")
        page.get_by_label(re.compile("turnover = domestic_sales")).check()
        page.get_by_role("button", name="go on to the goal").click()
        look("goal")
        for method in ("individual_ranking", "noise", "correlated_noise"):
            page.locator(f'input[name="method"][value="{method}"]').uncheck()
        assert "10 of 100" in page.locator("#words-linkage").inner_text()
        page.get_by_role("button", name="go on to the search").click()
        here.ready("search")
        search_to_its_end(here)
        look("search")
        here.go("map")
        page.wait_for_selector("#map svg .points_marks path")
        page.locator("#points tr.chosen button").click()
        page.wait_for_selector("#panel .chart svg")
        look("map")
        recommended = page.locator(".choice p").first.inner_text()
        here.go("release")
        look("release")
        command_line = here.copied("command")
        page.get_by_role("button", name="Write the release").click()
        page.wait_for_selector("#done-head", timeout=WAIT)
        shown = dict(
            zip(
                page.locator("#measures tbody tr").evaluate_all("rows => rows.map(r => r.dataset.metric)"),
                page.locator("#measures tbody .value").all_inner_texts(),
                strict=True,
            )
        )
        notes = page.locator(".done li").all_inner_texts()
        assert barriers == {screen: [] for screen in SCREENS}
        assert here.complaints == []
    assert_repeatable(sample.folder, "sample", notes)
    assert_report_has(sample.folder / "sample-report.html", shown)
    assert_same_job_and_choice(sample.folder, command_line, "sample", recommended)


def assert_repeatable(folder, name, notes):
    """`sdckit replay` makes the released file again."""
    found = [re.search(r"recorded as release (\S+)", note) for note in notes]
    number = next(one[1] for one in found if one)
    done = run(folder, "replay", number, f"{name}.csv", "-o", "again.csv")
    assert done.returncode == 0, done.stderr
    digests = [
        hashlib.sha256((folder / file).read_bytes()).digest() for file in (f"{name}-masked.csv", "again.csv")
    ]
    assert digests[0] == digests[1]


def assert_report_has(path, shown):
    """Every number on the page is in the report."""
    text = path.read_text(encoding="utf-8")
    assert shown
    assert [value for value in shown.values() if value not in text] == []


def assert_same_job_and_choice(folder, command_line, name, recommended):
    """The copied command writes the same job file and chooses the same setting."""
    words = shlex.split(command_line)[1:]
    output = words.index("-o") + 1
    words[output] = "other.csv"
    done = run(folder, *words, "--save-job", "other.toml", "--json", "--overwrite")
    assert done.returncode in {0, 1}, done.stderr  # 1: missed together with the release before
    choice = json.loads(done.stdout)["choice"]
    ours = (folder / f"{name}-job.toml").read_text()
    assert (folder / "other.toml").read_text().replace("other.csv", f"{name}-masked.csv") == ours
    assert str(next(iter(choice["parameters"].values()))) in recommended
