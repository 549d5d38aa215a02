"""Tables break no number on any screen; methods and metrics are listed on one line each, or one in full."""

import re

import pytest

import sdckit as sdc
from command import good, put_survey, run_here
from sdckit import terminal
from sdckit.cli import registered
from sdckit.core.registry import method_named, metrics_named
from sdckit.selection.plan import plan_of_words

NUMBER = re.compile(r"(?<![\w.,])-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?%?(?![\w.]*\w)")


def width(done):
    return max(map(len, done.stdout.splitlines()))


def test_tables_have_the_same_numbers_on_a_narrow_screen(tmp_path):
    put_survey(tmp_path)
    good(tmp_path, "mask", "data.csv", "-o", "noisy.csv", "--method", "noise", "--key", "id", "--no-measure")
    scenario = ["--scenario", "neighbour=age:linkage=1", "--estimate", "total(income) by region"]
    for words in (
        ["describe", "data.csv"],
        ["evaluate", "data.csv", "noisy.csv", "--key", "id", "--variables", "--by", "region", *scenario],
        ["evaluate", "data.csv", "noisy.csv", "data.csv", "--key", "id"],
    ):
        wide, narrow = (good(tmp_path, *words, COLUMNS=str(columns)).stdout for columns in (250, 60))
        assert set(NUMBER.findall(wide)) <= set(NUMBER.findall(narrow))
        assert len(set(NUMBER.findall(wide))) > 1


def test_text_is_wrapped_and_numbers_are_whole(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    heads = ["name", *(f"long_name_of_{i}" for i in range(6)), "why"]
    rows = [["a", *["1.229e+06"] * 6, "because it is so, and for no reason"]]
    terminal.print_tables([terminal.table_of(heads, rows, left=1)])
    shown = capsys.readouterr().out
    assert shown.count("1.229e+06") == 6
    assert "it is so, and for no" not in shown
    assert "for no reason" in shown


@pytest.mark.parametrize(("name", "records"), [("methods", sdc.METHODS), ("metrics", sdc.METRICS)])
def test_lists_have_one_line_for_each(tmp_path, name, records):
    for columns in (80, 120):
        lines = good(tmp_path, name, COLUMNS=str(columns)).stdout.splitlines()
        assert [line.split()[0] for line in lines[:-2]] == list(records)
        assert lines[-2:] == ["", f"sdckit {name} NAME shows one in full"]
        assert max(map(len, lines)) <= columns
    assert width(good(tmp_path, name, COLUMNS="60")) <= 60


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
