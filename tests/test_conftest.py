import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np


def run(folder, text, *words, **variables):
    """Run pytest on a file beside a copy of our conftest.py."""
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "test_it.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, str(folder)],
        env={**os.environ, **variables, "PYTHONPATH": str(Path(__file__).with_name("helpers"))},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


TESTS = """
import pytest
from hypothesis import given, settings, strategies as st
seen = {"own": [], "usual": []}
@settings(max_examples=7)
@given(st.integers())
def test_own(number): seen["own"].append(number)
@given(st.integers())
def test_usual(number): seen["usual"].append(number)
def test_counts():
    print("\\ncounts", *(len(numbers) for numbers in seen.values()), hash((*seen["own"], *seen["usual"])))
def test_left(): pytest.skip('no reason')
"""


def test_skips_fail_where_they_are_forbidden_and_examples_are_the_same_at_every_run(tmp_path):
    done = run(tmp_path, TESTS, "-s", SDCKIT_FORBID_SKIPS="")
    forbidden = run(tmp_path, TESTS, "-s", SDCKIT_FORBID_SKIPS="1")
    longer = run(tmp_path, TESTS, "-s", "--hypothesis-profile=long", SDCKIT_FORBID_SKIPS="")
    assert [one.returncode for one in (done, forbidden, longer)] == [0, 1, 0], done.stdout + done.stderr
    assert "skipped: test_it.py::test_left" in forbidden.stdout
    assert "skipped: " not in done.stdout
    counts = [
        re.search(r"^counts (\d+) (\d+) (.*)$", one.stdout, re.MULTILINE) for one in (done, forbidden, longer)
    ]
    assert counts[0].groups() == counts[1].groups()
    assert [one.groups()[:2] for one in counts] == [("7", "30"), ("7", "30"), ("70", "300")]


def test_draws_without_a_seed_are_the_same_at_every_run():
    drawn = [np.random.default_rng().random() for _ in range(2)]
    assert drawn == [np.random.default_rng(seed).random() for seed in (1_000_000, 1_000_001)]
