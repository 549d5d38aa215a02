"""Characters that a terminal obeys, and marks that turn text round, are never printed as they are."""

import json
import re

import polars as pl
import pytest

from command import run_here
from sdckit.core.text import printable

UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
COLOUR, ROUND, BELL = "pay\x1b[31m\nerror: all is lost", "age\u202egnp.exe\u2066", "r\x9b2J\x07oom"
FILE = "da\x1b[2J\u202eta.csv"
METHOD = ["--method", "rank_swap", "--set", "p=0.1", "--seed", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("unseen")
    columns = {
        COLOUR: [float(i * i % 37) for i in range(40)],
        ROUND: [float(i * 7 % 40) for i in range(40)],
        BELL: ["north\u202e", "south\x1b[0m"] * 20,
    }
    pl.DataFrame(columns).write_csv(path / FILE)
    done = run_here(path, "mask", FILE, "-o", f"masked-{FILE}", *METHOD)
    assert done.returncode == 0, done.stderr
    assert_safe(done)
    return path


def assert_safe(done):
    for text in (done.stdout, done.stderr):
        assert not UNSEEN.findall(text), ascii(text)
        assert not re.search("^error: all is lost", text, re.MULTILINE)


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]])
@pytest.mark.parametrize(
    "words",
    [
        ["describe", FILE],
        ["evaluate", FILE, f"masked-{FILE}", "--variables", "--by", BELL],
        ["evaluate", FILE, f"masked-{FILE}", FILE],
    ],
)
def test_no_command_prints_them(folder, words, form):
    done = run_here(folder, *words, *form)
    assert done.returncode == 0, done.stderr
    assert_safe(done)
    assert "\\u202e" in done.stdout
    if form == ["--json"]:
        assert "\u202e" in json.dumps(json.loads(done.stdout), ensure_ascii=False)


@pytest.mark.parametrize(
    "words",
    [
        ["describe", f"no-{FILE}"],
        ["mask", FILE, "-o", f"masked-{FILE}", *METHOD],
        ["mask", FILE, "-o", f"x-{FILE}", *METHOD, "--columns", "\x1b]0;x\x07"],
        ["mask", FILE, "-o", f"x-{FILE}", *METHOD, "--columns", COLOUR, "--key", COLOUR],
        ["mask", FILE, "-o", "x.csv", "--method", "\u202epaws_knar"],
        ["mask", FILE, "-o", "x.csv", "--method", "rank_swap", "--set", "p\x1b[2J=5"],
        ["evaluate", FILE, f"masked-{FILE}", "--\x1b[31m"],
        ["evaluate", FILE, f"masked-{FILE}", "--metrics", "\x07"],
        ["\x1b[31m"],
    ],
)
def test_no_error_prints_them(folder, words):
    done = run_here(folder, *words)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert_safe(done)


def test_pages_show_them_escaped_in_text_and_charts(folder):
    done = run_here(folder, "evaluate", FILE, f"masked-{FILE}", "--report", "page.html", "--by", BELL)
    assert done.returncode == 0, done.stderr
    page = (folder / "page.html").read_text(encoding="utf-8")
    names = re.sub("<script>.*?</script>", "", page, flags=re.DOTALL)  # without Vega's own characters
    assert not UNSEEN.findall(names)
    assert "age\\u202egnp.exe\\u2066" in names
    charts = re.search('<script type="application/json"[^>]*>(.*?)</script>', page, flags=re.DOTALL)
    assert not UNSEEN.findall(json.dumps(json.loads(charts[1]), ensure_ascii=False))


def test_a_remedy_that_only_looks_like_an_argument_is_printed_as_it_is(folder):
    done = run_here(folder, "describe", "x; key='\\x' y.csv")
    assert done.returncode == 2
    assert "key='" in done.stderr


def test_other_scripts_and_joined_characters_stay_as_they_are():
    for text in ("größe", "می‌خواهم", "👩‍👧", "収入", "שלום"):
        assert printable(text) == text
    assert printable("\U000e0041\udc80") == "\\udb40\\udc41\\udc80"
