"""One person leaves or joins between two releases: what subtracting one file from the other tells of him."""

import json
import re
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest

from calls import called
from command import contents, run_here
from differencing import best_share, constant_share
from kept import put_people, raw_entry, store_in
from sdckit.io.atomic import checksum
from sdckit.record.ledger import Partition, Side, subtract
from secret_bytes import entropy

N = 600
COLUMNS = ["turnover", "wages", "rent", "food"]
KEEPING = {  # methods that keep totals, means or values
    "rank_swap": {"p": 0.3},
    "mdav": {"k": 5},
    "moment_preserving_noise": {"delta": 0.5},
    "romm": {"percent": 100},
}


def firms(seed, n=N):
    """Skewed, correlated values, to one decimal, and a name and a region for each firm."""
    rng = np.random.default_rng(seed)
    logs = 0.5 * (rng.normal(size=(n, 1)) + rng.normal(size=(n, 4))) + [7, 6, 8, 5]
    frame = pl.DataFrame(np.exp(logs).round(1), schema=COLUMNS)
    names = [f"F{seed}-{i}" for i in range(n)]
    return frame.with_columns(name=pl.Series(names), region=pl.Series(["north", "south"] * (n // 2)))


def without(frame, *rows):
    return frame.filter(~pl.int_range(pl.len()).is_in(rows))


def made(frame, method, draw=1, **more):
    """A release of the four variables, with the region beside them."""
    options = {"key": "name", "untouched": "region", "metrics": "brmae", "entropy": entropy(draw)} | more
    return called("release", frame, method, **options)


def values(release):
    return release.data.select(COLUMNS).to_numpy()


@pytest.mark.parametrize("method", KEEPING)
def test_who_leaves_follows_from_two_files_by_subtraction(method):
    """The attack by itself, on two files that no record compares."""
    found, guessed = [], []
    for seed in range(4):
        frame, row = firms(seed), 100 * seed + 17
        gone, new = frame[[row]].select(COLUMNS).to_numpy(), np.empty((0, 4))
        frames = (frame, without(frame, row))
        files = [values(made(one, method, draw, **KEEPING[method])) for draw, one in enumerate(frames)]
        found.append(best_share(*files, gone, new, within=0.01))
        guessed.append(constant_share(*files, gone, new, within=0.01))
    assert np.mean(found) >= 0.79
    assert np.mean(guessed) <= 0.2


def publish(folder, release, name):
    return release.publish(folder / name, folder / "record")


@pytest.fixture
def release_both(tmp_path):
    """A function that releases two files one after the other; a refusal leaves nothing behind."""

    def run(first, second, method, **parameters):
        one = publish(tmp_path, made(first, method, 1, **parameters), "first.csv")
        before = contents(tmp_path)
        try:
            return one, publish(tmp_path, made(second, method, 2, **parameters), "second.csv")
        except ValueError:
            assert contents(tmp_path).keys() == before.keys()
            raise

    return run


@pytest.mark.filterwarnings("ignore:released before")
@pytest.mark.parametrize("method", KEEPING)
def test_a_release_from_which_the_cells_of_one_who_left_follow_is_refused(release_both, method):
    frame = firms(5)
    said = r"1 record left, 0 joined and 0 changed since release .*; from both files 1\.00 of their cells"
    with pytest.raises(ValueError, match=f"{said}.*so nothing is released; mask with a noise method"):
        release_both(frame, without(frame, 17), method, **KEEPING[method])


@pytest.mark.filterwarnings("ignore:released before")
@pytest.mark.parametrize("key", ["name", None])
def test_so_it_is_for_one_who_joined_with_and_without_a_key(release_both, key):
    frame = firms(6) if key else firms(6).drop("name")
    with pytest.raises(ValueError, match="0 records left, 1 joined and 0 changed since"):
        release_both(without(frame, 3), frame.sample(fraction=1, shuffle=True, seed=1), "mdav", k=5, key=key)


@pytest.mark.filterwarnings("ignore:released before")
def test_so_it_is_for_one_whose_value_changed(release_both):
    frame = firms(7)
    changed = frame.with_columns(wages=pl.col("wages") + 555.0 * (pl.int_range(pl.len()) == 40))
    with pytest.raises(ValueError, match=r"0 joined and 1 changed since .* 2 follow exactly"):
        release_both(frame, changed, "rank_swap", p=0.3)


@pytest.mark.filterwarnings("ignore:released before")
def test_one_who_left_a_published_group_alone_is_told_among_many_who_left(release_both):
    frame = firms(8)
    gone = [*range(0, 80, 2), 101]  # 40 of the north and one of the south
    with pytest.raises(ValueError, match=r"41 records left, .* 4 follow exactly"):
        release_both(frame, without(frame, *gone), "rank_swap", p=0.3, by="region", untouched=None)


@pytest.mark.filterwarnings("ignore:released before")
def test_groups_are_crossed_and_a_missing_category_is_one_of_them(release_both):
    """Of 60 who left, one is of the south and without a size; no other column tells him apart."""
    size = [1.0, 2.0, None, 2.0] * (N // 4)
    frame = firms(15).with_columns(size=pl.Series(size), region=pl.Series(["north"] * 300 + ["south"] * 300))
    gone = [*range(0, 80, 2), *range(301, 339, 2), 402]
    parts = {"by": ["region", "size"], "untouched": None}
    later = without(frame.with_columns(pl.col("size").cast(pl.Int64)), *gone)  # numbers of another type
    with pytest.raises(ValueError, match=r"60 records left, .* 4 follow exactly"):
        release_both(frame, later, "rank_swap", p=0.3, **parts)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:released before")
@pytest.mark.parametrize(("method", "parameters"), [("noise", {"percent": 50}), ("mdav", {"k": 5})])
def test_plenty_of_changes_pass_and_are_counted_in_the_private_record(
    tmp_path, release_both, method, parameters
):
    frame = firms(9)
    one, two = release_both(
        without(frame, *range(50)), without(frame, *range(550, 600)), method, **parameters
    )
    (moved,) = store_in(tmp_path).read(two).moved
    assert (moved["release"], moved["left"], moved["joined"], moved["changed"]) == (one, 50, 50, 0)
    assert (moved["cells"], moved["exact"]) == (400, 0)
    assert moved["share"] <= moved["constant"] + 0.1


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:released before")
@pytest.mark.parametrize("method", KEEPING)
def test_the_same_persons_pass(tmp_path, release_both, method):
    frame = firms(10, n=200)
    _, two = release_both(frame, frame.reverse(), method, **KEEPING[method])
    assert store_in(tmp_path).read(two).moved == []


@pytest.mark.filterwarnings("ignore:released before")
def test_each_of_several_earlier_releases_counts(tmp_path, release_both):
    """The third file lacks one record of the first, and has 60 others than the second."""
    frame = firms(11)
    first = without(frame, *range(60))
    one, two = release_both(first, without(frame, *range(540, 600)), "rank_swap", p=0.3)
    with pytest.raises(ValueError, match=f"1 record left, 0 joined and 0 changed since release {one}"):
        publish(tmp_path, made(without(first, 200), "rank_swap", 3, p=0.3), "third.csv")
    last = publish(tmp_path, made(without(first, 200), "noise", 4, percent=50), "last.csv")
    assert {moved["release"] for moved in store_in(tmp_path).read(last).moved} == {one, two}


def test_the_command_refuses_with_exit_code_1_and_tells_who_left_on_the_terminal_alone(tmp_path):
    frame = firms(12, n=200)
    put_people(tmp_path, frame)
    put_people(tmp_path, without(frame, 5), "later.csv")
    given = ["-o", "out.csv", "--release", "--method", "mdav", "--key", "name", "--untouched", "region"]
    assert run_here(tmp_path, "mask", "data.csv", *given, "--quiet").returncode == 0
    before = contents(tmp_path)
    given[1] = "second.csv"
    done = run_here(tmp_path, "mask", "later.csv", *given, "--report", "second.html", "--quiet")
    assert done.returncode == 1
    (error,) = done.stderr.splitlines()
    assert error.startswith("not met: 1 record left, 0 joined and 0 changed since release")
    assert contents(tmp_path).keys() == before.keys()
    searched = [
        "recommend",
        "later.csv",
        "-o",
        "second.csv",
        "--max-risk",
        "linkage=0.9",
        "--grid",
        "mdav.k=5",
    ]
    done = run_here(tmp_path, *searched, "--key", "name", "--untouched", "region", "--json")
    assert done.returncode == 1
    warning, _ = done.stderr.splitlines()
    assert "199 of 199 records are unchanged and 0 changed since release" in warning
    assert warning.endswith(", 1 left and 0 joined")
    reason = json.loads(done.stdout)["choice"]["reason"]
    assert reason == "cells of single records would follow from this file and an earlier release"


def test_reports_and_json_do_not_tell_who_left(tmp_path):
    frame = firms(13, n=200)
    put_people(tmp_path, frame)
    put_people(tmp_path, without(frame, *range(37)), "later.csv")
    given = [
        "--release",
        "--method",
        "noise",
        "--set",
        "percent=100",
        "--key",
        "name",
        "--untouched",
        "region",
    ]
    assert run_here(tmp_path, "mask", "data.csv", "-o", "out.csv", *given, "--quiet").returncode == 0
    given += ["--report", "second.html", "--json"]
    done = run_here(tmp_path, "mask", "later.csv", "-o", "second.csv", *given)
    assert "37 left and 0 joined" in done.stderr
    page = (tmp_path / "second.html").read_text(encoding="utf-8")
    assert not re.search(r"\d+ (records? )?(left|joined)", page + done.stdout)


@pytest.mark.filterwarnings("ignore:released before")
@pytest.mark.parametrize(("method", "refused"), [("rank_swap", True), ("mdav", True), ("noise", False)])
def test_records_of_version_0_1_are_judged_by_published_values_and_a_warning_says_so(
    tmp_path, method, refused
):
    """Such a record has no original values of those who left."""
    frame = firms(14)
    parameters = KEEPING.get(method, {"percent": 50})
    one = publish(tmp_path, made(frame, method, 1, **parameters), "first.csv")
    store = store_in(tmp_path)
    (store.folder / one / "originals.parquet").unlink()
    content = {
        k: v
        for k, v in raw_entry(store, one).items()
        if k not in {"originals", "moved", "intruder", "checksum"}
    }
    content = {k: v for k, v in content.items() if k != "calibrate"} | {"format": 1}
    text = json.dumps(content | {"checksum": checksum(content)})
    (store.folder / one / "release.json").write_text(text)
    assert (store.read(one).intruder, store.read(one).originals) == (1, {})
    later = made(without(frame, 17), method, 2, **parameters)
    expected = (
        pytest.raises(ValueError, match=r"1 record left, .* follow exactly") if refused else nullcontext()
    )
    said = f"record of release {one} is of version 0.1, without original values"
    with pytest.warns(UserWarning, match=said), expected:
        publish(tmp_path, later, "second.csv")


def sides(rng, kind):
    """Two files of 60 records each, of which 3 left and 2 joined, in two groups; ties and gaps among them."""
    x = rng.integers(1, 400, (65, 3)).astype(float)
    x[rng.random(x.shape) < 0.02] = np.nan
    first, second = np.arange(62), np.arange(3, 65)
    masked = {
        "same values": lambda cells: rng.permuted(cells, axis=0),
        "noise": lambda cells: (cells + rng.normal(0, 60, cells.shape)).round(),
        "rounding": lambda cells: 50 * np.round(cells / 50),
    }[kind]
    groups = rng.integers(2, size=65)
    found = [Side(masked(x[rows]), x[rows], np.zeros((62, 3), bool)) for rows in (first, second)]
    found[0].apart[:3] = ~np.isnan(x[:3])
    found[1].apart[-2:] = ~np.isnan(x[-2:])
    return found, Partition(groups[first], groups[second])


@pytest.mark.parametrize("kind", ["same values", "noise", "rounding"])
def test_shares_are_those_of_the_slow_attack(kind):
    rng = np.random.default_rng(3)
    for _ in range(30):
        (before, after), partition = sides(rng, kind)
        if np.isnan(before.original[:3]).any() or np.isnan(after.original[-2:]).any():
            continue  # the slow attack knows no cells that were missing from the start
        gone, new = before.original[:3], after.original[-2:]
        labels = [partition.before, partition.after, partition.before[:3], partition.after[-2:]]
        given = before.published, after.published, gone, new
        found = subtract(before, after, [partition])
        assert found.cells == 15
        assert found.share == pytest.approx(best_share(*given, labels=labels))
        assert found.constant == pytest.approx(constant_share(*given, labels=labels))
