"""Bad input: one line that says what is wrong and what to do, exit code 2, and no trace in the folder."""

import re
import traceback
from contextlib import nullcontext
from types import SimpleNamespace

import polars as pl
import pytest

import command
from bad_input import CASES, FULL_DISK, MASKED, PEOPLE, text
from bad_input_files import FILE_CASES
from bad_input_masking import MASKING_CASES
from bad_input_recode import RECODE_CASES
from bad_input_recommend import RECOMMEND_CASES
from bad_input_roles import ROLE_CASES
from bad_input_sweep import SWEEP_CASES
from cases import each
from full_disk import full_disk

GROUPS = (CASES, FILE_CASES, MASKING_CASES, SWEEP_CASES, RECOMMEND_CASES, RECODE_CASES, ROLE_CASES, FULL_DISK)
EVERY = {name: case if len(case) == 3 else ({}, *case) for group in GROUPS for name, case in group.items()}
# Outside this process, whose streams and warnings pytest replaces; the others in this one, to save time.
APART = [
    *list(CASES)[::2],
    *list(MASKING_CASES)[::16],
    *list(SWEEP_CASES)[::16],
    *list(RECOMMEND_CASES)[::16],
    *list(FULL_DISK)[:1],
]
ALONE = [*list(CASES)[::60], *list(FULL_DISK)[:1]]  # those with a process each


def here(case, folder):
    """The command in this process; what it does not catch is an answer like that of a process of its own."""
    try:
        with full_disk() if case in FULL_DISK else nullcontext():
            return command.run_here(folder, *EVERY[case][1])
    except Exception:  # noqa: BLE001 - the test of this very case tells
        return SimpleNamespace(returncode=1, stdout="", stderr=traceback.format_exc())


def put_files(folder, case):
    rows = 100 if case in FULL_DISK else 1  # enough to exceed what the disk takes
    start = {"data.csv": text(pl.concat([PEOPLE] * rows)), "masked.csv": text(MASKED)}
    for name, content in (start | EVERY[case][0]).items():
        command.put(folder, name, content)
    return command.contents(folder)


def run_all(folders):
    """What each case answers, run where it belongs."""
    words = {case: EVERY[case][1] for case in EVERY}
    together = [case for case in APART if case not in ALONE]
    found = command.run_together([(folders[case], words[case]) for case in together])
    return (
        dict(zip(together, found, strict=True))
        | {case: command.run(folders[case], *words[case], full_disk=case in FULL_DISK) for case in ALONE}
        | {case: here(case, folders[case]) for case in EVERY if case not in APART}
    )


@pytest.fixture(scope="session")
def answers(tmp_path_factory, demo):
    """Every case, run in its own folder; after a demo, so that a full disk holds no compiled code up."""
    assert demo
    folders = {case: tmp_path_factory.mktemp("case") for case in EVERY}
    before = {case: put_files(folders[case], case) for case in EVERY}
    done = run_all(folders)
    return {case: (done[case], before[case], command.contents(folders[case])) for case in EVERY}


@each("case", EVERY)
def test_one_line_exit_code_2_and_no_trace(answers, case):
    done, before, after = answers[case]
    lines = done.stderr.splitlines()
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    assert "; " in lines[0], "no remedy"
    assert re.search(EVERY[case][2], lines[0]), lines[0]
    assert done.stdout == ""
    assert after == before


def test_messages_tell_cases_apart(answers):
    lines = {answers[case][0].stderr for case in APART}
    assert len(APART) >= 40
    assert len(lines) >= 40
    assert len({done.stderr for done, _, _ in answers.values()}) >= 80
