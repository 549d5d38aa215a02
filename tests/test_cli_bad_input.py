"""Bad input: one line that says what is wrong and what to do, exit code 2, and no trace in the folder."""

import re
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

import command
from bad_input import CASES, FULL_DISK, MASKED, PEOPLE, text


@pytest.fixture(scope="session")
def answers(tmp_path_factory):
    """Every case, run in its own folder."""
    jobs = [(case, what, False) for case, what in CASES.items()]
    jobs += [(case, what, True) for case, what in FULL_DISK.items()]

    def answer(job):
        case, (files, words, _), full_disk = job
        folder = tmp_path_factory.mktemp("case")
        rows = 100 if full_disk else 1  # enough to exceed what the disk takes
        start = {"data.csv": text(pl.concat([PEOPLE] * rows)), "masked.csv": text(MASKED)}
        for name, content in (start | files).items():
            command.put(folder, name, content)
        before = command.contents(folder)
        done = command.run(folder, *words, full_disk=full_disk)
        return case, (done, before, command.contents(folder))

    with ThreadPoolExecutor(4) as pool:
        return dict(pool.map(answer, jobs))


@pytest.mark.parametrize("case", [*CASES, *FULL_DISK])
def test_one_line_exit_code_2_and_no_trace(answers, case):
    done, before, after = answers[case]
    lines = done.stderr.splitlines()
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    assert "; " in lines[0], "no remedy"
    assert re.search((CASES | FULL_DISK)[case][2], lines[0]), lines[0]
    assert done.stdout == ""
    assert after == before


def test_messages_tell_cases_apart(answers):
    lines = {answers[case][0].stderr for case in CASES | FULL_DISK}
    assert len(CASES | FULL_DISK) >= 35
    assert len(lines) >= 30
