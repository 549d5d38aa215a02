"""What the page knows of an open file: kept on disk with the first step, and prepared once for each state."""

import pytest

import loops
from sdckit.app.session import JOB, Session
from sdckit.app.state import State
from sweeps import frame


@pytest.fixture
def session(tmp_path):
    frame(60).write_csv(tmp_path / "data.csv")
    return opened_in(tmp_path)


def opened_in(folder):
    async def opened():
        found = Session(folder)
        found.open("data.csv", {})
        return found

    return loops.run(opened())


def other_roles(session):
    """The job with the last column left as it is."""
    *masked, last = session.file.source.frame.columns
    return {**session.file.state.job, "roles": {"columns": masked, "untouched": [last]}}


def test_a_proposal_that_is_kept_unchanged_is_stored(session):
    session.file.change(dict(session.file.state.job), session.file.history.version)
    assert (session.file.work.path / JOB).exists()
    again = opened_in(session.start)
    assert again.file.state == session.file.state
    session.file.move(forward=False)  # at the end of the states nothing happens


def test_nothing_is_written_by_opening_a_file(session):
    assert [path.name for path in session.start.iterdir()] == ["data.csv"]


def test_a_job_file_that_a_kill_left_behind_its_history_is_written_again(session):
    session.file.keep()
    job = session.file.work.path / JOB
    before = job.read_text()
    session.file.change(other_roles(session), session.file.history.version)
    after = job.read_text()
    assert before != after
    job.write_text(before)  # as after a kill between the two files
    opened_in(session.start)
    assert job.read_text() == after


def test_the_job_is_read_once_for_each_state_and_each_search_made_once(session):
    first, search = session.opened(), session.current_search()
    assert session.opened() is first
    assert session.current_search() is search
    options = first.search_options()
    options.clear()
    assert first.search_options()
    other = State({**session.file.state.job, "output": {"output": "other.csv"}})
    session.file.become(other, session.file.history.version)
    assert session.opened().given.output.name == "other.csv"
    assert session.current_search() is search
    session.file.change(other_roles(session), session.file.history.version)
    assert session.current_search() is not search
    assert session.current_search().task.original is session.original()
