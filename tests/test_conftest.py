import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest


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


@pytest.mark.parametrize(("forbidden", "code"), [("", 0), ("1", 1)])
def test_a_skipped_test_fails_the_session_only_where_skips_are_forbidden(tmp_path, forbidden, code):
    text = "import pytest\ndef test_done(): pass\ndef test_left(): pytest.skip('no reason')\n"
    done = run(tmp_path, text, SDCKIT_FORBID_SKIPS=forbidden)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("skipped: test_it.py::test_left" in done.stdout) == bool(forbidden)


DRAWN = """
from hypothesis import given, settings, strategies as st
seen = {"own": [], "usual": []}
@settings(max_examples=7)
@given(st.integers())
def test_own(number): seen["own"].append(number)
@given(st.integers())
def test_usual(number): seen["usual"].append(number)
def test_counts():
    print("\\ncounts", *(len(numbers) for numbers in seen.values()), hash((*seen["own"], *seen["usual"])))
"""


def drawn(folder, *words):
    done = run(folder, DRAWN, "-s", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("counts "))


def test_examples_are_the_same_at_every_run_and_ten_times_as_many_by_hand(tmp_path):
    first, again = (drawn(tmp_path) for _ in range(2))
    assert first == again
    assert first[:2] == ["7", "30"]
    assert drawn(tmp_path, "--hypothesis-profile=long")[:2] == ["70", "300"]


def test_draws_without_a_seed_are_the_same_at_every_run():
    drawn = [np.random.default_rng().random() for _ in range(2)]
    assert drawn == [np.random.default_rng(seed).random() for seed in (1_000_000, 1_000_001)]
