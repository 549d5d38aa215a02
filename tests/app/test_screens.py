"""Screens without a browser: what a new user runs into, and forms that must not pass."""

import re
from urllib.parse import urlencode

import click
import numpy as np
import polars as pl
import pytest

from page_client import Direct
from sdckit.app.pages import Session, make_app
from sdckit.app.running import RunState
from sdckit.app.screen import message_of


class Screens:
    """The page on a folder, asked without a server and without its guards."""

    def __init__(self, folder):
        self.session = Session(folder)
        self.direct = Direct(make_app(self.session))

    def ask(self, method, path, /, **fields):
        """Return status, address to go on to, and text of an answer."""
        got = self.direct.ask(method, path, urlencode(fields).encode())
        return got.status, dict(got.headers).get("location", ""), got.text

    def roles(self):
        """Return the form of the screen of roles as it stands."""
        text = self.ask("GET", "/roles")[2]
        rows = re.findall(r'<select name="([^"]*)"(.*?)</select>', text, re.DOTALL)
        chosen = {name: re.search(r'value="([^"]*)" selected', part) for name, part in rows}
        version = re.search(r'name="version" value="([^"]*)"', text)[1]
        return {name: found[1] if found else "" for name, found in chosen.items()} | {"version": version}


@pytest.fixture
def screens(tmp_path):
    rng = np.random.default_rng(3)
    table = pl.DataFrame({name: rng.lognormal(5, 1, 60).round(2) for name in "abc"})
    table.write_csv(tmp_path / "amounts.csv")
    found = Screens(tmp_path)
    found.session.open("amounts.csv")
    return found


def test_a_file_that_is_gone_is_named_in_one_line(screens):
    version = screens.roles()["version"]
    status, _, text = screens.ask("POST", "/open", data="gone.csv", version=version)
    assert status == 422
    assert "gone.csv&#39;; check its name and folder" in text


def test_proposed_roles_can_be_kept_as_they_are_and_the_file_opened_again(screens):
    assert screens.ask("POST", "/roles", **screens.roles())[:2] == (303, "/rules")
    work = screens.session.file.work.path
    assert {path.name for path in work.iterdir()} == {"history.json", "job.toml"}
    screens.session.open("amounts.csv")
    assert screens.roles()["role-0"] == "columns"


def test_a_column_without_a_role_is_not_published_by_default(screens):
    form = screens.roles() | {"role-0": ""}
    assert screens.ask("POST", "/roles", **form)[:2] == (303, "/roles")
    assert "Choose a role for: a." in screens.ask("GET", "/roles")[2]
    version = screens.roles()["version"]
    assert screens.ask("POST", "/search/start", version=version)[:2] == (303, "/roles")
    assert not screens.session.busy()


def test_roles_that_cannot_be_written_are_shown_again(screens, monkeypatch):
    def full(_job, _seen):
        raise OSError("no space left on device; free some space")

    monkeypatch.setattr(screens.session.file, "change", full)
    status, _, text = screens.ask("POST", "/roles", **screens.roles() | {"role-1": "drop"})
    assert status == 422
    assert "No space left on device" in text
    assert re.search(r'name="role-1".*?value="drop" selected', text, re.DOTALL)


def test_a_record_that_breaks_two_parts_of_a_rule_is_counted_once(screens):
    frame = screens.session.file.source.frame
    broken = frame.filter((pl.col("a") > pl.col("b")) | (pl.col("b") > pl.col("c"))).height
    text = screens.ask("POST", "/rules/check", own="a <= b <= c")[2]
    assert f"{broken} records break it of 60" in text


def test_a_goal_without_a_number_as_limit_is_refused_in_words(screens):
    version = screens.roles()["version"]
    for given, said in (("", "No risk has a limit"), ("=1", "The limit of linkage is &#39;=1&#39;")):
        fields = {"risk-linkage": given, "method": "mdav", "version": version}
        status, _, text = screens.ask("POST", "/goal", **fields)
        assert (status, said in text) == (422, True)


def words_of(text, risk):
    """What the screen of the goal says on the limit of a risk."""
    return re.search(f'id="words-{risk}"[^>]*>([^<]*)<', text)[1]


def test_the_goal_shows_the_default_limit_on_sure_links_and_takes_another(screens):
    version, shown = screens.roles()["version"], screens.ask("GET", "/goal")[2]
    assert "default: a tenth of the limit on linkage" in words_of(shown, "linkage_sure")
    assert words_of(shown, "linkage_sure").endswith("1 of 100 records")  # 10 of 100 for linkage
    assert screens.session.limits()["linkage_sure"] == 0.01
    fields = {"risk-linkage": "0.3", "risk-linkage_sure": "0,02", "method": "mdav", "version": version}
    assert screens.ask("POST", "/goal", **fields)[:2] == (303, "/search")
    assert screens.session.limits() == {"linkage": 0.3, "linkage_sure": 0.02}
    shown = screens.ask("GET", "/goal")[2]
    assert 'name="risk-linkage_sure" inputmode="decimal" value="0.02"' in shown
    assert "default" not in words_of(shown, "linkage_sure")


def test_a_release_that_was_written_says_how_many_records_are_exposed(screens):
    file = screens.session.file
    found = {
        "n": 60,
        "masked": ["m.csv"],
        "parts": {"linkage_sure": {"exposed": 2, "exposed above 0.9": 1, "claimed": 3.0}},
        "table": [],
        "meaning": {},
        "notes": [],
        "summary": {"sha256": "0", "method": "noise"},
        "choice": {"sentences": ["It loses least."]},
    }
    screens.session.release.state = RunState(outcome="done", result=found)
    screens.session.release.about = file.path, file.state
    text = screens.ask("GET", "/release")[2]
    line = re.search(r'<p id="exposed"><b>([^<]*)<', text)[1]
    assert line.startswith("2 of 60 records are exposed")
    assert line.endswith("(above 0.9: 1).")


def test_an_error_of_the_command_line_becomes_a_line_on_the_page():
    assert message_of(click.UsageError("no such option")).text == "No such option; see sdckit --help"


def test_a_file_of_many_columns_opens_whatever_the_floors_of_the_first_hundred(tmp_path):
    rng = np.random.default_rng(4)
    amounts = {f"v{i}": rng.lognormal(5, 1, 30).round(2) for i in range(120)}
    pl.DataFrame(amounts | {"sex": rng.choice(["f", "m"], 30)}).write_csv(tmp_path / "wide.csv")
    found = Screens(tmp_path)
    found.session.open("wide.csv")
    status, _, text = found.ask("GET", "/roles")
    assert (status, text.count("<tr data-column=")) == (200, 121)
