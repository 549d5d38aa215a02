"""What the page must never send: cells below the preview, other files as a report, figures of one record."""

import os
import re

import numpy as np
import pytest

import app_server
from page_client import Client, Direct
from sdckit.app.pages import make_app
from sdckit.app.screen_release import unseen_choices
from sdckit.app.session import Session
from sdckit.app.state import Past, StaleError, State
from sdckit.core.checks import hidden_cells
from sdckit.report.privacy import THRESHOLD, count_by_bins, lasting_edges
from sdckit.request.toml import plain_value
from sdckit.selection.runner import Checkpoint, read_records

RECORDS = 60
GOAL = {"risk-linkage": "0.3", "minimise": "brmae", "method": ["mdav"]}
PREVIEWED = 20
HEADER = ["name", "income", "savings", "total", "region", "code"]
MASKED = ["income", "savings", "total"]
SPOILED, STRATUM, TYPED = 918273645, "Zulu-Canary", "77412x"  # in records 40, 50 and 45


def table():
    """Cells as text: a sum with one broken record, a stratum of one record, a word among numbers."""
    rng = np.random.default_rng(8)
    rows = []
    for i in range(RECORDS):
        income, savings = np.round(rng.lognormal(8, 0.6), 2), np.round(rng.lognormal(6, 0.6), 2)
        total = SPOILED if i == 40 else np.round(income + savings, 2)
        region, code = STRATUM if i == 50 else "NS"[i % 2], TYPED if i == 45 else str(3 + i % 4)
        rows.append([f"Person-{i:03d}", *map(str, (income, savings, total)), region, code])
    return rows


def secrets(first=PREVIEWED):
    """Cells below the preview that no text of the page holds by chance, and the gap of the broken sum."""
    rows = table()
    gap = SPOILED - float(rows[40][1]) - float(rows[40][2])
    long = [cell for row in rows[first:] for cell in row if len(cell) > 5]
    return [*long, f"{gap:,.15g}", f"{SPOILED:,}", "918,27"]


@pytest.fixture(params=[True, False], ids=["preview", "no preview"])
def direct(request, tmp_path):
    """The page in this process, its file open, with a goal that a stratum of one record makes impossible."""
    write_table(tmp_path)
    with hidden_cells():
        session = Session(tmp_path, tmp_path / "canary.csv", request.param)
        client = Client(Direct(make_app(session)))
        client.post("goal", **GOAL)
        yield client
        session.close()


def write_table(folder):
    """Write the file with cells to look for."""
    (folder / "canary.csv").write_text("\n".join([",".join(row) for row in [HEADER, *table()]] + [""]))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page without preview that was started with no mask of rights, and searched."""
    root = tmp_path_factory.mktemp("privacy")
    write_table(app_server.prepare(root))
    before = os.umask(0)
    try:
        with app_server.running(root, "canary.csv", "--no-browser", "--no-preview") as server:
            os.umask(before)
            client = Client(server)
            client.give_roles(HEADER, columns=MASKED, drop=["name", "region", "code"])
            client.post("rules", own="")
            client.post("goal", **GOAL)
            client.post("search/start")
            assert client.wait_for("search")["text"] == "The search is finished."
            yield client
    finally:
        os.umask(before)


def test_no_answer_holds_a_cell_below_the_preview(direct):
    for delimiter, codes in ((";", ""), ("|", "NA"), (",", ""), (" ", TYPED[:3])):
        direct.post(
            "open", data="canary.csv", encoding="utf-8", decimal_comma="on", delimiter=delimiter, na=codes
        )
        direct.get("roles")
    direct.post("open", data="canary.csv", encoding="utf-8", delimiter="", na="")
    direct.post("goal", **GOAL)
    found = ""
    for roles in (
        {"columns": [*MASKED, "code"], "drop": ["name", "region"]},  # a word among numbers
        {"columns": MASKED, "drop": ["name", "code"], "by": ["region"]},  # a stratum of one record
        {"columns": MASKED, "drop": ["code"], "by": ["name"], "untouched": ["region"]},
        {"columns": MASKED, "drop": ["name"], "weights": ["code"], "untouched": ["region"]},
        {"columns": MASKED, "drop": ["name"], "key": ["code"], "unit": ["region"]},
    ):
        direct.give_roles(HEADER, **roles)
        for screen in ("rules", "goal", "map", "release", "search"):
            found += direct.get(screen).text + direct.get("roles").text
    assert "because of (not shown)" in found
    assert "Stratum (not shown) has 1 record" in found
    direct.give_roles(HEADER, columns=MASKED, drop=["name", "region", "code"])
    for rule in ("income >= 1e400", "code >= 0", "total = income + savings", "name >= 1", "income", "1 <= 2"):
        direct.post("rules/check", own=rule)
        direct.post("rules", own=rule)
    for way in ("year", "rare:20", "1e400", "0", "month"):
        direct.post(
            "roles/check", **{"role-5": "recode", "recode-5": way, "role-4": "recode", "recode-4": way}
        )
    typed = direct.post("rules/check", own="total = income + savings").text
    assert "1 record breaks it of 60" in typed
    assert direct.sent(*secrets()) == []
    names = [direct.sent(row[0]) != [] for row in table()]
    shown = direct.server.app.state.session.preview
    assert names == [shown and place < PREVIEWED for place in range(RECORDS)]


def test_a_release_is_shown_as_it_was_written_and_nothing_else_is(page):
    for part in re.findall(r'data-show="(\w+)"', page.get("map").text):
        assert page.part(f"map/panel?id={part}").status == 200
    page.part("map/points")

    # A report that is not written yet is any file: here the data.
    _, ended = page.release(output="out.csv", report="canary.csv", private="record")
    assert "is the input file" in ended["text"]
    assert page.get("report").status == 404
    inside, _ = page.release(output="canary-sdckit/out.csv", private="record")
    assert inside.status == 422
    assert "own files" in inside.text

    page.release(output="out.csv", report="out.html", private="record")
    done = page.get("release")
    assert "The release is written" in done.text
    assert "changed after this release" not in done.text
    report = page.get("report")
    assert report.status == 200
    assert "sandbox" in report.one("content-security-policy")
    (page.server.root / "start/out.html").write_text("<script>fetch('/')</script>")
    assert page.get("report").status == 409

    page.post("goal", **GOAL | {"risk-linkage": "0.4"})
    assert "changed after this release" in page.get("release").text
    page.post("open", data="data.csv")
    assert "The release is written" not in page.get("release").text
    page.post("open", data="canary.csv")
    assert page.sent(*secrets(0)) == []
    assert page.server.printed("stderr") == ""
    private = [page.server.root / "start" / name for name in ("canary-sdckit", "record")]
    open_to_others = [
        path for folder in private for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077
    ]
    assert open_to_others == []


def test_a_forged_search_writes_nothing_that_misses_a_limit(page):
    folder = max(
        (page.server.root / "start/canary-sdckit").glob("search-*"), key=lambda path: path.stat().st_mtime
    )
    cells = folder / "cells.bin"
    length = next(n for n in range(1, 100) if read_records(cells, n))
    records = read_records(cells, length)
    cells.unlink()
    with Checkpoint(cells, length) as forged:
        for key, values in records.items():
            forged.add(key, np.where(np.isfinite(values) & (values > 0) & (values < 1), 1e-3, values))
    page.post("goal", **GOAL | {"risk-linkage": "0.02"})
    shown = page.get("map").text
    weakest = re.findall(r'data-show="(\w+)"', shown)[0]
    assert "met" in shown
    page.post("map/pick", id=weakest)
    _, ended = page.release(output="forged.csv", private="record")
    assert "missed linkage of at most 0.02" in ended["text"]
    assert not (page.server.root / "start/forged.csv").exists()


def test_choices_that_no_screen_shows_are_named():
    job = {
        "roles": {"known": ["a"], "columns": ["b"]},
        "measures": {"ties": "random"},
        "recode": {"known": 5},
    }
    assert unseen_choices(job) == ["[roles] known", "[measures] ties"]


def test_a_change_from_another_tab_is_not_overwritten(tmp_path):
    (tmp_path / "d.csv").write_text("a,b\n" + "\n".join(f"{i * 7 % 50},{i}" for i in range(50)))
    with hidden_cells():
        session = Session(tmp_path)
        session.open("d.csv")
    file = session.file
    seen, job = file.history.version, dict(file.state.job)
    file.change(job | {"roles": {"columns": ["a"], "drop": ["b"]}}, seen)
    with pytest.raises(StaleError):
        file.change(job, seen)
    with pytest.raises(StaleError):
        file.become(State(job), seen)
    session.close()


def test_many_panels_give_no_count_of_few_records():
    rng = np.random.default_rng(4)
    original = np.round(rng.normal(0, 1, 300) ** 2 * 100 - 50, 2)
    below, apart, edges = {}, {}, None
    for size in np.linspace(1, 60, 40):
        masked = original + rng.normal(0, size, original.size)
        edges = lasting_edges(original, masked) if edges is None else edges
        for counts, used in ((below, edges), (apart, None)):
            bins = count_by_bins(original, masked, used)
            counts |= dict(zip(bins.edges, np.cumsum(bins.original), strict=False))
    assert fewest_between(below) >= THRESHOLD
    assert fewest_between(apart) < THRESHOLD  # what edges of each file by itself would tell


def fewest_between(below):
    """The smallest number of records, but none, between two edges, given those below each edge."""
    between = np.diff([below[edge] for edge in sorted(below)])
    return min(between[between > 0])


def test_numbers_beyond_all_floating_ones_are_refused_in_words(direct):
    huge = {f"role-{i}": "drop" for i in range(len(HEADER))} | {"role-5": "recode", "recode-5": "9" * 400}
    assert direct.post("roles", **huge).status == 422
    assert plain_value("9" * 400) == "9" * 400
    with pytest.raises(ValueError, match="history is at state"):
        Past((direct.server.app.state.session.file.state,), 0.5)


@pytest.mark.long
def test_the_page_as_it_is_started_quotes_no_cell(page):
    page.give_roles(HEADER, columns=[*MASKED, "code"], drop=["name", "region"])  # a word among numbers
    shown = page.get("rules").text + page.get("roles").text
    page.give_roles(HEADER, columns=MASKED, drop=["name", "region", "code"])  # as the other tests have it
    assert "because of (not shown)" in shown
    assert TYPED not in shown
