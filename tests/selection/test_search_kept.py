"""What the folder of a search holds: read as it is, at any moment, and never changed by reading."""

import json
import math
import threading
from itertools import pairwise

import polars as pl
import pytest

import command
import sdckit as sdc
from sdckit.selection import search as searches
from sdckit.selection.runner import CELLS, README, SEARCH, SEARCH_PLAN, Checkpoint, opened
from sdckit.selection.search import Search
from sdckit.selection.task import Task
from sweeps import frame

PLAN = {"mdav": {"k": range(2, 20)}, "rank_noise": {"a": [0.02, 0.05, 0.1, 0.2, 0.3]}}
OPTIONS = {"max_risk": {"linkage": 0.3}, "plan": PLAN}
SEED = 3
OTHER = {"linkage": 0.15}  # other limits than those of the finished search


def search_of(**more):
    return Search.of(frame(), **OPTIONS | more)


@pytest.fixture(scope="module")
def search():
    return search_of()


@pytest.fixture(scope="module")
def finished(search, tmp_path_factory):
    """The folder of a finished search, its choice, and how far the methods were after each round."""
    folder, seen = tmp_path_factory.mktemp("finished") / "x", []
    choice = search.run(folder, SEED, observe=seen.append)
    return folder, choice, seen


@pytest.fixture
def copied(finished, tmp_path):
    """A function that makes a folder with the same plan and other runs."""

    def copy(cells=None):
        for file in finished[0].iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        if cells is not None:
            (tmp_path / CELLS).write_bytes(cells)
        return tmp_path

    return copy


# --- kept and measured ---


def test_what_is_kept_is_what_the_search_found(search, finished):
    folder, choice, _ = finished
    found = search.kept(folder)
    assert found.choice == choice == sdc.recommend(frame(), **OPTIONS, rng=SEED, workers=1)
    assert found.points == choice.points
    assert found.runs == choice.maskings
    assert search.kept(folder) == found
    assert search_of().kept(folder) == found, "it depends on what was read before"


def test_nothing_is_kept_before_the_folder_is_there(search, tmp_path):
    nothing = search.kept(tmp_path / "x")
    assert (nothing.points, nothing.choice, nothing.runs) == ((), None, 0)
    assert [(one.method, one.done, one.finished) for one in nothing.methods] == [
        ("mdav", 0, False),
        ("rank_noise", 0, False),
    ]
    (tmp_path / "x").mkdir()
    assert search.kept(tmp_path / "x") == nothing
    (tmp_path / "x" / README).write_text("as a kill at the first moment leaves it")
    assert search.kept(tmp_path / "x") == nothing
    assert command.contents(tmp_path / "x").keys() == {README}


def test_methods_are_followed_from_round_to_round(search, finished):
    folder, choice, seen = finished
    measured = [[one.done for one in methods] for methods in seen]
    assert measured[0] == [0, 0]
    for before, after in pairwise(measured):
        steps = [late - early for early, late in zip(before, after, strict=True)]
        assert set(steps) <= {0, 1}
        assert sum(steps) > 0
    assert sum(measured[-1]) == len(choice.points)
    for methods in seen[:-1]:
        assert not all(one.finished for one in methods)
        assert all(one.done <= one.expected for one in methods)
        assert all(one.finished == (one.done == one.expected) for one in methods)
    assert all(one.finished and one.done == one.expected for one in seen[-1])
    assert list(search.kept(folder).methods) == seen[-1]


def test_grids_of_one_method_count_together(tmp_path):
    plan = {"rank_swap": {"p": [0.05, 0.2], "tails": [0.0, 0.1]}}
    search, seen = search_of(plan=plan), []
    assert len(search.grids) == 2
    choice = search.run(tmp_path / "x", SEED, observe=seen.append)
    (last,) = seen[-1]
    assert last.done == last.expected == len(choice.points)
    assert last.finished


# --- other limits ---


def test_after_other_limits_the_choice_is_that_of_the_same_command(search, finished, copied):
    folder, other = copied(), search_of(max_risk=OTHER)
    before = other.kept(folder)
    assert before.choice is None
    assert before.points == finished[1].points
    expected = sdc.recommend(frame(), **OPTIONS | {"max_risk": OTHER}, rng=SEED, workers=1, folder=folder)
    after = other.kept(folder)
    assert after.choice == expected
    assert set(map(str, expected.points)) < set(map(str, after.points))
    values = {str(point): point.values for point in (*finished[1].points, *expected.points)}
    assert {str(point): point.values for point in after.points} == values
    again = search.kept(folder)
    assert again.choice == finished[1]
    assert again.points == after.points


def test_points_stand_in_the_order_of_their_grids(finished, copied):
    folder, other = copied(), search_of(max_risk=OTHER)
    other.run(folder)
    order = [str(setting) for grid in other.grids for setting in grid]
    points = [order.index(str(point)) for point in other.kept(folder).points]
    assert points == sorted(points)
    assert len(points) > len(finished[1].points)


def test_limits_that_untouched_columns_exceed_give_no_choice(tmp_path):
    data = frame().with_columns(g=pl.Series(range(60)).cast(pl.String))
    options = OPTIONS | {"columns": ["a", "b", "c"], "untouched": "g"}
    wide = Search.of(data, **options | {"max_risk": {"linkage": 1.0}})
    wide.run(tmp_path / "x", SEED)
    assert wide.kept(tmp_path / "x").choice is not None
    narrow = Search.of(data, **options)
    with pytest.raises(sdc.LimitsMissed):
        narrow.run(tmp_path / "x")
    assert narrow.kept(tmp_path / "x").choice is None
    assert narrow.kept(tmp_path / "x").points == wide.kept(tmp_path / "x").points


def test_a_metric_without_a_value_gives_no_choice(search, finished, copied):
    folder = copied()
    with Checkpoint(folder / CELLS, search.task.length) as cells:
        for key, values in list(cells.records.items()):
            cells.add(key, values * math.nan)
    found = search.kept(folder)
    assert found.choice is None
    assert len(found.points) == len(finished[1].points)


# --- at any moment ---


def test_a_folder_is_read_while_it_is_filled(tmp_path, monkeypatch):
    search, reader, counts = search_of(), search_of(), []
    measure = Task.measure_and_record

    def watched(task, run, entropy, checkpoint):
        values = measure(task, run, entropy, checkpoint)
        found = reader.kept(tmp_path / "x")
        counts.append((found.runs, len(found.points), found.choice))
        return values

    monkeypatch.setattr(Task, "measure_and_record", watched)
    choice = search.run(tmp_path / "x", SEED)
    assert [runs for runs, _, _ in counts] == list(range(1, choice.maskings + 1))
    points = [count for _, count, _ in counts]
    assert points == sorted(points)
    assert [chosen for _, _, chosen in counts] == [None] * (choice.maskings - 1) + [choice]


def test_a_last_record_torn_at_any_byte_is_ignored(search, finished, copied):
    data = (finished[0] / CELLS).read_bytes()
    record = len(data) // finished[1].maskings
    expected = search.kept(copied(data[:-record]))
    assert (expected.choice, expected.runs) == (None, finished[1].maskings - 1)
    folder = copied()
    for cut in range(1, record):
        (folder / CELLS).write_bytes(data[:-cut])
        assert search.kept(folder) == expected
        assert (folder / CELLS).read_bytes() == data[:-cut]
    assert search.kept(copied(data)).choice == finished[1]


def test_any_part_of_the_runs_gives_a_part_of_the_points(search, finished, copied):
    folder, choice, _ = finished
    data = (folder / CELLS).read_bytes()
    record = len(data) // choice.maskings
    values = {str(point): point for point in choice.points}
    for runs in range(choice.maskings):
        found = search.kept(copied(data[: runs * record]))
        assert found.runs == runs
        assert found.choice is None
        assert all(values[str(point)] == point for point in found.points)


def test_reading_changes_nothing_and_needs_no_lock(search, finished, copied):
    folder = copied()

    def state():
        return command.contents(folder), [path.stat().st_mtime_ns for path in (folder, *folder.iterdir())]

    with opened(SEARCH, folder, search.task.identity, None, search.task.length):  # as a running search
        before = state()
        assert search.kept(folder).choice == finished[1]
        assert state() == before


def test_nothing_is_measured_and_no_thread_started(search, finished, monkeypatch):
    for where, name in ((Task, "measure"), (searches, "require_values"), (searches, "run_all")):
        monkeypatch.setattr(where, name, lambda *_: pytest.fail("worked"))
    threads = threading.active_count()
    assert search.kept(finished[0]).choice == finished[1]
    assert threading.active_count() == threads


# --- refused ---


@pytest.mark.parametrize(
    ("change", "text"), [({"minimise": "mae"}, "metrics"), ({"decimals": 1}, "steps"), ({}, "data")]
)
def test_another_search_is_refused_by_what_differs(copied, change, text):
    folder = copied()
    before = command.contents(folder)
    other = search_of(**change) if change else Search.of(frame(61), **OPTIONS)
    match = rf"^folder '.*' holds another search \(different: {text}\); choose another folder or delete"
    with pytest.raises(ValueError, match=match):
        other.kept(folder)
    assert command.contents(folder) == before


def test_runs_of_another_seed_are_not_taken_for_those_read_before(search, finished, copied):
    search.kept(finished[0])
    folder = copied(b"")
    (folder / SEARCH_PLAN).unlink()
    (folder / CELLS).unlink()
    other = search.run(folder, SEED + 1)
    assert json.loads((folder / SEARCH_PLAN).read_text())["entropy"] == str(SEED + 1)
    assert search.kept(folder).choice == other != finished[1]
