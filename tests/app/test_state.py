"""States of the page: what they hold, undo and redo; no damaged or stale history is taken for good."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import described_files
import sdckit as sdc
from cases import each
from command import environment
from sdckit.app import state as module
from sdckit.app.state import History, Past, Pick, StaleError, State, WorkFolder, first_state

JOB = {
    "command": "recommend",
    "input": {"data": "survey.csv"},
    "search": {"max_risk": {"linkage": 0.1}},
    "output": {"output": "out.csv"},
}


def state(number=0):
    return State(JOB | {"search": {"max_risk": {"linkage": number}}})


@pytest.fixture
def folder(tmp_path):
    tmp_path.joinpath("survey.csv").write_text("a,b\n1,2\n")
    return tmp_path


def history_in(folder, first=None):
    return WorkFolder(folder, "survey.csv").open_history(first or state())


@pytest.mark.parametrize("roles", [{}, {"untouched": ["region"], "recode": {"age": 5}, "unknown": "region"}])
def test_the_first_state_is_the_draft_of_describe(roles):
    data = described_files.households(300)
    found = sdc.Microdata(data, **roles).describe()
    source = {"data": "sub/survey.sas7bdat", "na": [-9]}
    first = first_state(found, source["data"], {"data": "elsewhere", "na": [-9]})
    assert first.job["input"] == source
    assert first.job["output"]["output"] == "survey-masked.xpt"
    assert first.pick is None
    undecided = found.table.filter(decided=False)["column"].to_list()
    assert undecided
    assert not [name for name in undecided if name in str(first.job["roles"])]


def test_a_state_is_a_copy_that_json_gives_back():
    content = json.loads(json.dumps(JOB))
    kept = State(content, Pick("mdav", {"k": 5}))
    content["search"]["max_risk"]["linkage"] = 0.9
    assert kept.job == JOB
    assert State.from_json(json.loads(json.dumps(kept.to_json()))) == kept
    kept.to_json()["job"]["search"].clear()
    assert kept.job == JOB


@each(
    "found",
    [
        None,
        [],
        {},
        {"job": None, "pick": None},
        {"job": {}, "pick": None},
        {"job": JOB | {"search": {}}, "pick": None},
        {"job": JOB | {"roles": {"columns": 3}}, "pick": None},
        {"job": JOB},
        {"job": JOB, "pick": 3},
        {"job": JOB, "pick": {"method": "mdav"}},
        {"job": JOB, "pick": {"method": 3, "parameters": {}}},
        {"job": JOB, "pick": {"method": "mdav", "parameters": [5]}},
    ],
)
def test_what_is_no_state_is_refused(found):
    with pytest.raises(ValueError, match=r"a stored state is damaged .*; start with a fresh one"):
        State.from_json(found)


def test_other_conditions_drop_the_chosen_setting_and_other_files_do_not():
    chosen = State(JOB, Pick("mdav", {"k": 5}))
    assert chosen.with_job(JOB | {"output": {"output": "b.csv"}}).pick == chosen.pick
    assert chosen.with_job(JOB) == chosen
    assert chosen.with_job(JOB | {"roles": {"columns": ["a"]}}).pick is None


@given(st.lists(st.one_of(st.integers(0, 3), st.sampled_from(["undo", "redo"])), max_size=40))
@settings(deadline=None, max_examples=30)
def test_history_does_what_a_list_does(steps):
    stored = []
    history = History(Past((state(0),)), stored.append)
    states, position, version = [0], 0, 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_STATES", 5)
        for step in steps:
            before = (list(states), position)
            if step == "undo":
                history.move(-1)
                position = max(position - 1, 0)
            elif step == "redo":
                history.move(1)
                position = min(position + 1, len(states) - 1)
            else:
                history.add(state(step))
                if step != states[position]:
                    states = [*states[: position + 1], step][-5:]
                    position = len(states) - 1
            version += before != (states, position)
            assert history.current == state(states[position])
            assert (history.can_undo, history.can_redo) == (position > 0, position + 1 < len(states))
            assert history.past.states == tuple(map(state, states))
            assert (history.version, len(stored)) == (version, version - 1)


def test_a_change_that_cannot_be_stored_is_none():
    def refuse(_past):
        raise OSError("disk full")

    history = History(Past((state(0), state(1))), refuse)
    for change in (lambda: history.add(state(2)), lambda: history.move(1)):
        with pytest.raises(OSError, match="disk full"):
            change()
    assert (history.current, history.version) == (state(0), 1)


def test_a_change_of_an_older_state_is_refused_also_from_two_threads():
    history = History(Past((state(0),)), lambda _past: time.sleep(0.001))
    seen, refused = history.version, []

    def change(number):
        try:
            history.add(state(number), seen)
        except StaleError as error:
            refused.append(str(error))

    threads = [Thread(target=change, args=(number,)) for number in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == ["the job was changed meanwhile, perhaps in another tab; reload this page"] * 4
    assert (history.version, len(history.past.states)) == (seen + 1, 2)
    for by in (-1, 1):
        with pytest.raises(StaleError):
            history.move(by, seen)
    history.move(-1, history.version)
    assert history.current == state(0)


def test_the_folder_is_made_at_the_first_change_and_read_again(folder):
    history = history_in(folder)
    assert not (folder / "survey-sdckit").exists()
    history.add(state(0.5))
    history.add(replace(state(0.7), pick=Pick("mdav", {"k": 5})))
    history.move(-1)
    assert [oct(path.stat().st_mode & 0o777) for path in (folder / "survey-sdckit", *folder.glob("*/*"))] == [
        "0o700",
        "0o600",
    ]
    again = history_in(folder, state(0.9))
    assert (again.past, again.message) == (history.past, None)
    again.move(1)
    assert again.current.pick == Pick("mdav", {"k": 5})


def test_a_history_follows_its_data_to_another_start_folder(folder):
    inner = folder / "inner"
    inner.mkdir()
    (folder / "survey.csv").rename(inner / "survey.csv")
    first = State(JOB | {"input": {"data": "inner/survey.csv"}, "private": {"private": "/record"}})
    WorkFolder(folder, "inner/survey.csv").open_history(first).add(
        first.with_job({**first.job, "output": {"output": "out.csv", "report": "inner/r.html"}})
    )
    job = history_in(inner).current.job
    assert job["input"] == {"data": "survey.csv"}
    assert job["output"] == {"output": "../out.csv", "report": "r.html"}
    assert job["private"] == {"private": "/record"}


def _damage(text, how):
    content = json.loads(text)
    if how == "position":
        content["position"] = 7
    return {
        "cut": text[: len(text) // 2],
        "other": text.replace("0.5", "0.6"),
        "list": "[]",
        "deep": "[" * 10**5,
    }.get(how, json.dumps(content))


@pytest.mark.parametrize("how", ["cut", "other", "list", "deep", "position"])
def test_a_damaged_history_is_set_aside_and_never_deleted(folder, how):
    history_in(folder).add(state(0.5))
    file = folder / "survey-sdckit" / "history.json"
    damaged = _damage(file.read_text(), how)
    for number in (1, 2):
        file.write_text(damaged)
        history = history_in(folder, state(0.9))
        assert history.current == state(0.9)
        assert history.message == (
            f"the history of 'survey.csv' was damaged; it is kept as 'history-damaged-{number}.json', "
            "and a new one begins"
        )
        assert file.with_name(f"history-damaged-{number}.json").read_text() == damaged
        assert history_in(folder).message is None
    history.add(state(0.8))
    assert history_in(folder).current == state(0.8)


@pytest.mark.parametrize("what", ["link", "file", "other", "linked history", "another file"])
def test_a_folder_that_is_not_ours_is_refused(folder, what):
    place = folder / "survey-sdckit"
    if what == "link":
        (folder / "elsewhere").mkdir()
        place.symlink_to(folder / "elsewhere")
    elif what == "file":
        place.write_text("")
    elif what == "another file":
        history_in(folder).add(state(0.5))
        (folder / "survey.csv").rename(folder / "survey.tsv")
    else:
        place.mkdir()
        (place / "notes.txt").write_text("mine")
    if what == "linked history":
        (place / "history.json").symlink_to(place / "notes.txt")
    with pytest.raises(FileExistsError, match=r"survey-sdckit.*; rename it, or the data file$"):
        WorkFolder(folder, "survey.tsv" if what == "another file" else "survey.csv")
    if what == "other":
        assert [path.name for path in place.iterdir()] == ["notes.txt"]


def test_a_folder_of_another_user_is_refused(folder, monkeypatch):
    (folder / "survey-sdckit").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(PermissionError, match="belongs to another user; rename it, or the data file"):
        WorkFolder(folder, "survey.csv")


def test_a_folder_that_turns_into_a_link_is_not_written_into(folder):
    history = history_in(folder)
    (folder / "elsewhere").mkdir()
    (folder / "survey-sdckit").symlink_to(folder / "elsewhere")
    with pytest.raises(FileExistsError, match="is a link"):
        history.add(state(0.5))
    assert not [*(folder / "elsewhere").iterdir()]


def test_two_servers_do_not_overwrite_each_other(folder):
    one, other = history_in(folder), history_in(folder)
    one.add(state(0.5))
    with pytest.raises(FileExistsError, match="changed by another sdckit app"):
        other.add(state(0.6))
    assert history_in(folder).current == state(0.5)


@pytest.mark.long
def test_a_changed_data_file_is_noticed_and_only_then_read(folder, monkeypatch):
    data, work = folder / "survey.csv", WorkFolder(folder, "survey.csv")
    history = work.open_history(state())
    history.add(state(0.5))
    with monkeypatch.context() as patch:
        patch.setattr("sdckit.app.state.sha256_of", None)
        assert not work.changed_on_disk()
    os.utime(data, ns=(1, 1))
    assert not work.changed_on_disk()
    data.write_text("a,b\n1,3\n")
    assert work.changed_on_disk()
    again = WorkFolder(folder, "survey.csv")
    history = again.open_history(state())
    assert again.changed_on_disk()
    again.accept_data(history)
    assert not again.changed_on_disk()
    last = WorkFolder(folder, "survey.csv")
    last.open_history(state())
    assert last.stamp == again.stamp
    data.unlink()
    assert last.changed_on_disk()


KILLED = """
import os, random, signal, sys, time, warnings
from pathlib import Path
from sdckit.app.state import State, WorkFolder

warnings.simplefilter("ignore")  # fork
folder, job = Path(sys.argv[1]), {job!r}

def state(number):
    return State(job | {{"search": {{"max_risk": {{"linkage": number}}}}}})

def history():
    return WorkFolder(folder, "survey.csv").open_history(state(0))

random.seed(1)
reached = 0
for _ in range(25):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        current = history()
        for number in range(reached + 1, reached + 10_000):
            current.add(state(number))
            os.write(write, number.to_bytes(4, "big"))
        os._exit(0)
    os.close(write)
    os.read(read, 4)
    time.sleep(random.random() * 0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read()[-4:]
    found = history()
    assert found.message is None, found.message
    number = found.current.job["search"]["max_risk"]["linkage"]
    last = int.from_bytes(told, "big") or reached + 1
    assert number in (last, last + 1), (number, last)
    reached = number
print(reached)
"""


@pytest.mark.long
def test_a_kill_while_the_history_is_written_leaves_the_old_or_the_new_one(folder):
    done = subprocess.run(
        [sys.executable, "-c", KILLED.format(job=JOB), str(folder)],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 25
    assert {path.name for path in (folder / "survey-sdckit").iterdir()} == {"history.json"}
