"""Statistics of the original that are published tell no record, not even to who knows all the others."""

import json
import math
from itertools import combinations

import numpy as np
import polars as pl
import pytest

import naive_statistics as naive
from cases import each
from command import good
from sdckit.metrics.pair import pair_of
from sdckit.metrics.publishable import NAMES, PERCENT, round_step, statistics_of

NAMES_OF_COLUMNS = ("a", "b", "c")
GUESSES = np.arange(-60, 61) / 100  # changes of a value that the intruder tries


def file(seed, n, spread, columns=3):
    """A skewed file; its last column has losses, too, and holes."""
    rng = np.random.default_rng(seed)
    values = np.round(100 * rng.lognormal(sigma=spread, size=(n, columns)), 1)
    values[:, -1] *= rng.choice([-1, 1], size=n)
    values[rng.random(n) < 0.1, -1] = np.nan
    return pl.DataFrame(dict(zip(NAMES_OF_COLUMNS, values.T, strict=False)))


def public(frame):
    """The published figures of an original file."""
    return figures_of(statistics_of(pair_of(frame, frame, columns=frame.columns)))


def figures_of(found):
    """The published figures of an original and their steps: what the report and the JSON say.

    By variable and statistic, such as "sd" or "with profit".
    """
    rows = [*found.rows, *(one._replace(other=f"with {one.other}") for one in found.correlations)]
    return {tuple(row[:2]): (row.before, row.step) for row in rows if row.before is not None}


def told(columns, name, place, figures):
    """True if who knows all cells but this one learns it to within `PERCENT` %.

    He tries other values, and keeps those with which every figure would have been published as it was.
    """
    true = columns[name][place]
    about = {
        key: one
        for key, one in figures.items()
        if key[1] != "mean" and (key[0] == name or key[1] == f"with {name}")
    }

    def possible(guess):
        other = columns | {name: [*columns[name][:place], guess, *columns[name][place + 1 :]]}
        return all(
            abs(naive.figure(other, *key) - value) <= (step or 1e-9 * abs(value)) / 2 * (1 + 1e-9)
            for key, (value, step) in about.items()
        )

    far = [true * (1 + change) for change in GUESSES if abs(change) >= PERCENT / 100 - 1e-9]
    return possible(true) and not any(map(possible, sorted(far, key=lambda guess: abs(guess - true))))


def exposed(columns, name, most=4):
    """The places of a variable's largest values, and of those around its quartiles."""
    order = sorted(range(len(columns[name])), key=lambda i: -abs(np.nan_to_num(columns[name][i])))
    some = [*order[:most], order[len(order) // 4], order[len(order) // 2], order[3 * len(order) // 4]]
    return [i for i in some if columns[name][i] and not math.isnan(columns[name][i])]


@each("seed", range(24))
def test_who_knows_all_other_records_learns_none(seed):
    frame = file(seed, n=[10, 12, 25, 60][seed % 4], spread=[0.4, 1.0, 1.6][seed % 3])
    columns = {name: frame[name].to_list() for name in frame.columns}
    figures = public(frame)
    for name in columns:
        assert not any(told(columns, name, place, figures) for place in exposed(columns, name))


def test_the_attack_works_on_exact_figures():
    frame = file(3, n=25, spread=1.0)
    columns = {name: frame[name].to_list() for name in frame.columns}
    figures = figures_of(statistics_of(pair_of(frame, frame), exact=True))
    figures = {key: one for key, one in figures.items() if key[1] in ("total", "sd")}
    assert all(told(columns, "a", place, figures) for place in range(25))


def test_two_digits_without_the_attack_would_tell_records():
    found = 0
    for seed in range(6):
        frame = file(seed, n=12, spread=1.0)
        columns = {name: frame[name].to_list() for name in frame.columns}
        exact = figures_of(statistics_of(pair_of(frame, frame), exact=True))
        rounded = {}
        for key, (value, _) in exact.items():
            step = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
            if key[1] in ("total", "sd"):
                rounded[key] = (round(value / step) * step, step)
        found += sum(told(columns, "a", place, rounded) for place in exposed(columns, "a"))
    assert found >= 3


def test_a_firm_that_dominates_is_in_no_figure():
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({"a": np.append(rng.uniform(1, 2, 99), 1000.0), "b": rng.uniform(1, 2, 100)})
    found = public(frame)
    assert not {("a", "total"), ("a", "mean"), ("a", "sd"), ("a", "with b")} & found.keys()
    assert {("a", "median"), ("b", "total"), ("b", "sd")} <= found.keys()


@pytest.mark.parametrize("largest", [400.0, 1000.0, 1e5])
def test_a_withheld_total_does_not_follow_from_the_others_of_its_sum(largest):
    rng = np.random.default_rng(6)
    parts = {"wages": rng.uniform(50, 90, 100), "other": np.append(rng.uniform(0, 1, 99), largest)}
    frame = pl.DataFrame({name: np.round(one, 2) for name, one in parts.items()})
    frame = frame.with_columns(
        total=pl.sum_horizontal("wages", "other"), apart=pl.Series(rng.uniform(1, 2, 100))
    )
    found = public(frame)
    alone = public(frame.drop("other"))
    assert (("total", "total") in alone) == (largest < 1e4)
    assert not {("other", "total"), ("total", "total"), ("total", "mean")} & found.keys()
    assert ("apart", "total") in found
    assert (("wages", "total") in found) == (largest > 1e4)  # alone it tells nothing of the others


def test_variables_may_be_named_like_statistics():
    frame = file(2, n=60, spread=0.5)
    odd = dict(zip("abc", ("total", "mean", "sd"), strict=True))
    found, renamed = (statistics_of(pair_of(one, one)) for one in (frame, frame.rename(odd)))
    for ours, theirs in zip(found.rows, renamed.rows, strict=True):
        assert (odd[ours.variable], *ours[1:]) == theirs
    assert [one[2:] for one in found.correlations] == [one[2:] for one in renamed.correlations]


def test_no_figure_of_few_records():
    nine = [float(i) for i in range(1, 10)]
    few = pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, 5.0] * 10, "b": [None] * 41 + nine})
    found = public(few)
    assert {name for name, _ in found} == {"a"}
    assert not public(few.head(9))
    zeros = pl.DataFrame({"a": [0.0] * 91 + nine})
    assert not public(zeros)
    assert {what for _, what in public(few.select("a").head(39))} == {"mean", "sd", "total"}


def test_a_file_of_five_prints_no_statistic_of_the_original(tmp_path):
    pl.DataFrame({"a": [1.0, 2.0, 30.0, 31.0, 47.0]}).write_csv(tmp_path / "data.csv")
    done = good(tmp_path, "mask", "data.csv", "-o", "m.csv", "--method", "mdav", "--set", "k=2", "--json")
    rows = json.loads(done.stdout)["statistics"]["variables"]
    assert [row["before"] for row in rows] == [None] * len(NAMES)
    assert all(row["after"] is not None for row in rows)


@pytest.mark.parametrize("seed", range(6))
def test_figures_are_those_of_the_definitions(seed):
    frame = file(seed, n=80, spread=0.5)
    columns = {name: frame[name].to_list() for name in frame.columns}
    pair = pair_of(frame, frame)
    for (name, what), (value, step) in figures_of(statistics_of(pair)).items():
        near = step if what != "mean" else step + 0.1 * abs(value)
        assert abs(value - naive.figure(columns, name, what)) <= near / 2 * (1 + 1e-9)
    exact = statistics_of(pair, exact=True)
    assert all(row.before == row.after for row in [*exact.rows, *exact.correlations])
    for (name, what), (value, _) in figures_of(exact).items():
        if what not in naive.QUARTERS:
            assert value == pytest.approx(naive.figure(columns, name, what))
    assert [one[:2] for one in exact.correlations] == list(combinations(NAMES_OF_COLUMNS, 2))


def test_figures_below_all_exact_numbers_are_withheld():
    assert round_step(5e-324) == round_step(1e-310) == math.inf
    assert round_step(1.5e-300) == 2e-300
