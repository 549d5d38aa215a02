"""All that commands print fits on a screen of 60 characters, and no number is broken."""

import re

import polars as pl
import pytest

import sdckit as sdc
from command import forget_releases, good, put_survey, run_here
from sdckit.cli import registered, sdckit, sweep_output, tables, terminal
from sdckit.core.registry import method_named, metrics_named
from sdckit.selection.plan import plan_of_words

NUMBER = re.compile(r"(?<![\w.,])-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?%?(?![\w.]*\w)")
DROPPED = ["--drop", "grade,region,rooms,weight"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("narrow")
    put_survey(place)
    forget_releases()
    words = ["mask", "data.csv", "-o", "m.csv", "--method", "mdav", "--key", "id", *DROPPED, "--release"]
    good(place, *words, "--metrics", "brmae", "--private", "record")
    good(place, "mask", "data.csv", "-o", "noisy.csv", "--method", "noise", "--key", "id", "--no-measure")
    return place


def width(done):
    return max(map(len, done.stdout.splitlines()))


COMMANDS = [
    ["describe", "data.csv"],
    [
        "mask",
        "data.csv",
        "-o",
        "o.csv",
        "--method",
        "mdav",
        "--key",
        "id",
        "--overwrite",
        "--estimate",
        "total(income) by region",
    ],
    [
        "evaluate",
        "data.csv",
        "noisy.csv",
        "--key",
        "id",
        "--variables",
        "--by",
        "region",
        "--scenario",
        "neighbour=age:linkage=1",
    ],
    ["evaluate", "data.csv", "noisy.csv", "o.csv", "data.csv", "--key", "id"],
    ["releases", "--private", "record"],
    ["check", "m.csv", "--private", "record"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:4]))
def test_output_fits_and_has_the_same_numbers(folder, words):
    wide = good(folder, *words, COLUMNS="250").stdout
    done = good(folder, *words, COLUMNS="60")
    assert width(done) <= 60
    assert set(NUMBER.findall(wide)) <= set(NUMBER.findall(done.stdout))
    assert len(set(NUMBER.findall(wide))) > 1 or "release" in wide


def test_the_overview_of_a_sweep_fits(folder, monkeypatch, capsys):
    plan = {"mdav": {"k": [2, 3]}, "individual_ranking": {"k": [2]}}
    data = pl.read_csv(folder / "data.csv", null_values="")
    found = sdc.sweep(data, plan, key="id", columns=["income", "age"], estimates="total(income)", workers=1)
    printed = {}
    for columns in (60, 250):
        monkeypatch.setenv("COLUMNS", str(columns))
        terminal.print_tables(sweep_output.overview_tables(found))
        printed[columns] = capsys.readouterr().out
    assert max(map(len, printed[60].splitlines())) <= 60
    assert set(NUMBER.findall(printed[250])) <= set(NUMBER.findall(printed[60]))
    assert "estimates_worst" in printed[250]
    assert re.search(r"estimates_ *\n.* worst", printed[60])


def test_a_search_fits(folder):
    words = ["recommend", "data.csv", "-o", "r.csv", "--max-risk", "linkage=1", "--key", "id", *DROPPED]
    done = good(folder, *words, "--grid", "mdav.k=2,3", "--private", "record", COLUMNS="60")
    assert width(done) <= 60
    assert "what it means" in done.stdout


@pytest.mark.parametrize("name", ["", *sdckit.commands])
def test_help_fits(tmp_path, name):
    done = good(tmp_path, *name.split(), "--help", COLUMNS="60")
    assert width(done) <= 60


def test_an_example_that_goes_on_is_the_same_command(tmp_path):
    narrow, wide = (good(tmp_path, "mask", "--help", COLUMNS=str(n)).stdout for n in (60, 80))
    examples = [re.sub(r" \\\n\s+", " ", text.partition("Examples:")[2]) for text in (narrow, wide)]
    assert examples[0] == examples[1]
    assert narrow.count("\\\n") > wide.count("\\\n") > 0


# lists, and one in full


@pytest.mark.parametrize(("name", "records"), [("methods", sdc.METHODS), ("metrics", sdc.METRICS)])
def test_lists_have_one_line_for_each(tmp_path, name, records):
    for columns in (80, 120):
        lines = good(tmp_path, name, COLUMNS=str(columns)).stdout.splitlines()
        assert [line.split()[0] for line in lines[:-2]] == list(records)
        assert lines[-2:] == ["", f"sdckit {name} NAME shows one in full"]
        assert max(map(len, lines)) <= columns
    assert width(good(tmp_path, name, COLUMNS="60")) <= 60


def test_one_in_full(tmp_path):
    method, metric = sdc.METHODS["rank_swap"], sdc.METRICS["il1"]
    shown = " ".join(good(tmp_path, "methods", "rank_swap").stdout.split())
    for text in (method.title, method.summary, method.reference, *method.keeps, *method.defaults()):
        assert text in shown
    shown = " ".join(good(tmp_path, "metrics", "il1").stdout.split())
    for text in (metric.title, metric.summary, metric.reference, "zeros=keep", "il1:zeros=drop"):
        assert text in shown


@pytest.mark.parametrize(
    ("name", "wrong", "meant"), [("methods", "mdaw", "mdav"), ("metrics", "linkag", "linkage")]
)
def test_an_unknown_name_is_one_line(tmp_path, name, wrong, meant):
    done = run_here(tmp_path, name, wrong)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert f"unknown {name[:-1]} '{wrong}' (did you mean '{meant}'?)" in done.stderr


def test_every_example_is_valid_and_fits(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    for metric in sdc.METRICS.values():
        card = registered.metric_card(metric)
        assert max(map(len, terminal.card_text(metric.title, card).splitlines())) <= 60
        for example in card["example"]:
            metrics_named(re.search(r"--metrics (\S+)", example)[1])
    for method in sdc.METHODS.values():
        card = registered.method_card(method)
        assert max(map(len, terminal.card_text(method.title, card).splitlines())) <= 60
        assert method_named(re.search(r"--method (\S+)", card["example"][0])[1]) is method
        for example in card["example"][1:]:
            assert list(plan_of_words([example.partition("--grid ")[2]])) == [method.name]


# tables


def test_what_has_no_room_goes_into_another_table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    heads = ["name", *(f"long_name_of_{i}" for i in range(6)), "why"]
    found = tables.fitting_tables(
        heads, [["a", *["1.229e+06"] * 6, "because it is so, and for no reason"]], left=1
    )
    assert len(found) > 1
    screen = tables.console()
    with screen.capture() as printed:
        for table in found:
            screen.print(table)
    lines = printed.get().splitlines()
    assert max(map(len, lines)) <= 40
    assert printed.get().count("1.229e+06") == 6
    assert all(table.columns[0].header == "name" for table in found)
