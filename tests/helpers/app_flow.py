"""The way from a file to a release in the page: steps that tests share, and what must hold at its end."""

import hashlib
import json
import re
import shlex

import numpy as np
import polars as pl
from axe_playwright_python.sync_playwright import Axe

from app_page import WAIT
from browser import DESKTOP
from command import run_here
from read_page import Read
from sdckit.metrics import METRICS

SCREENS = ["open", "roles", "rules", "goal", "search", "map", "release"]
FINISHED = "The search is finished."
CHOOSE = "Choose this setting for the release"


def survey(records=300):
    """A survey with names, codes, households, weights, missing cells and a sum."""
    rng = np.random.default_rng(5)
    household = np.arange(records) // 3
    wages = np.round(rng.lognormal(7, 0.6, records), 0)
    rent = np.round(rng.lognormal(5, 0.5, records), 0)
    missing, savings = rng.random(records) < 0.1, np.round(rng.lognormal(4, 1, records), 1)
    table = {
        "name": [f"Person {i:04d}" for i in rng.permutation(records)],
        "hhid": household,
        "region": rng.choice(["N", "S", "W"], records),
        "occupation": rng.choice([101, 205, 333], records),
        "wages": wages,
        "rent": rent,
        "total": wages + rent,
        "savings": [None if lost else value for lost, value in zip(missing, savings, strict=True)],
        "weight": rng.choice([1.5, 2.0, 2.5], records),
    }
    return pl.DataFrame(table)


def barriers(here, *looks):
    """Findings of axe-core on the screen as it is, and parts that are cut off, in each width and scheme."""
    found = []
    for viewport, scheme in looks:
        here.page.set_viewport_size(viewport)
        here.page.emulate_media(color_scheme=scheme)
        found += [
            (scheme, viewport["width"], one["id"], one["nodes"][0]["html"])
            for one in Axe().run(here.page).response["violations"]
            if one["impact"] in {"serious", "critical"}
        ]
        if here.page.evaluate("document.documentElement.scrollWidth - innerWidth") > 0:
            found.append((scheme, viewport["width"], "wider than the window", ""))
    here.page.set_viewport_size(DESKTOP)
    here.page.emulate_media(color_scheme="light")
    return found


def row_of(here, column):
    """The row of a column on the screen of roles."""
    return here.page.get_by_role("row").filter(
        has=here.page.get_by_role("rowheader", name=column, exact=True)
    )


def give_role(here, column, role, knows=None):
    """Choose the role of a column, and what the intruder knows of it."""
    row = row_of(here, column)
    row.locator("select").first.select_option(role)
    if knows:
        row.locator("select").last.select_option(knows)


def go_on(here, screen):
    """Send the form of a screen and wait for the next one."""
    here.page.locator("main .next button.main").click()
    here.ready(screen)


def try_only(here, *methods):
    """Tick these methods and no others."""
    for box in here.page.locator('input[name="method"]').all():
        box.set_checked(box.get_attribute("value") in methods)


def search_to_its_end(here):
    """Start the search and wait until it is finished."""
    here.page.click("#start")
    here.page.get_by_text(FINISHED).wait_for(timeout=WAIT)


def show_another(here):
    """Show a safe setting that is not the recommended one; return its name."""
    here.page.wait_for_selector("#map svg .points_marks path")
    safe = here.page.locator("#points tbody tr", has_text="met").filter(has_not_text="recommended").last
    safe.get_by_role("button").click()
    here.page.wait_for_selector("#panel .chart svg", timeout=WAIT)
    return safe.get_by_role("rowheader").inner_text()


def write_release(here):
    """Write the release; return its measures by name as shown, and the notes on it."""
    here.page.get_by_role("button", name="Write the release").click()
    here.page.wait_for_selector("#done-head", timeout=WAIT)
    rows = here.page.locator("#measures tbody tr")
    names = rows.evaluate_all("rows => rows.map(r => r.dataset.metric)")
    shown = dict(zip(names, here.page.locator("#measures tbody .value").all_inner_texts(), strict=True))
    return shown, here.page.locator(".done li").all_inner_texts()


def assert_repeatable(folder, name, notes):
    """`sdckit replay` makes the released file again."""
    found = [re.search(r"recorded as release (\S+)", note) for note in notes]
    number = next(one[1] for one in found if one)
    done = run_here(folder, "replay", number, f"{name}.csv", "-o", "again.csv")
    assert done.returncode == 0, done.stderr
    digests = [
        hashlib.sha256((folder / file).read_bytes()).digest() for file in (f"{name}-masked.csv", "again.csv")
    ]
    assert digests[0] == digests[1]


def assert_report_has(path, shown):
    """Every number on the page is in the report, for the same measure and the same intruder."""
    rows = Read(path.read_text(encoding="utf-8")).rows
    reported = {
        name: row[1] for row in rows for name, one in METRICS.items() if row[0].startswith(one.title + name)
    }
    reported |= {f"{row[2]} ({row[0]})": row[3] for row in rows if len(row) > 3 and row[2] in METRICS}
    assert shown
    assert {name: reported.get(name) for name in shown} == shown


def assert_same_job_and_choice(folder, command_line, name, chosen):
    """The copied command writes the same job file and chooses the same setting."""
    words = shlex.split(command_line)[1:]
    output = words.index("-o") + 1
    words[output] = "other.csv"
    done = run_here(folder, *words, "--save-job", "other.toml", "--json", "--overwrite")
    assert done.returncode in {0, 1}, done.stderr  # 1: missed together with the release before
    choice = json.loads(done.stdout)["choice"]
    ours = (folder / f"{name}-job.toml").read_text()
    assert (folder / "other.toml").read_text().replace("other.csv", f"{name}-masked.csv") == ours
    assert str(next(iter(choice["parameters"].values()))) in chosen
