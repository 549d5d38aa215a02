"""Compiled code is never older than the sources it was made from."""

import copy
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import numba.core.dispatcher
import pytest

import sdckit
from sdckit.kernels import jit

PACKAGE = Path(sdckit.__file__).parent


CALLER = """
from sdckit.kernels.jit import kernel
from sdckit.kernels.ranks import mean_gap

@kernel
def gap(a):
    return mean_gap(a, a, a + 3, a + 3)
"""
QUESTION = """
from sdckit.kernels.caller import gap

print(int(gap(1)), sum(gap.stats.cache_hits.values()))
"""


@pytest.mark.long
def test_a_change_in_one_module_reaches_the_kernels_of_another(tmp_path):
    copy = tmp_path / "sdckit"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "kernels" / "caller.py").write_text(CALLER)

    def answer():
        """Return the distance of two ranks, and how many kernels came from the cache."""
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-c", QUESTION], env=environment, capture_output=True, text=True, check=True
        )
        return [int(number) for number in done.stdout.split()]

    assert answer() == [3, 0]
    assert answer() == [3, 1]
    file = copy / "kernels" / "ranks.py"
    honest = "        return abs((a + b) - (c + d)) / 2.0"
    assert honest in file.read_text()
    file.write_text(file.read_text().replace(honest, honest.replace("abs", "-abs")))
    assert answer() == [-3, 0]


def test_the_digest_follows_the_sources_of_kernels_only(tmp_path, monkeypatch):
    shutil.copytree(PACKAGE, tmp_path / "sdckit", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "sdckit" / "kernels" / "jit.py"))
    before = jit.digest_of_kernels()
    (tmp_path / "sdckit" / "cli" / "__init__.py").write_text("")
    assert jit.digest_of_kernels() == before
    with (tmp_path / "sdckit" / "kernels" / "ranks.py").open("a") as file:
        file.write("\n")
    assert jit.digest_of_kernels() != before


def test_an_index_of_older_sources_may_name_classes_that_are_gone(tmp_path):
    file = copy.copy(jit.count_special._cache._cache_file)  # noqa: SLF001 - numba offers no other way
    file._index_path = tmp_path / "old.nbi"  # noqa: SLF001
    file._index_path.write_bytes(pickle.dumps(numba.__version__) + b"csdckit.kernels.jit\nGone\n.")  # noqa: SLF001
    assert file._load_index() == {}  # noqa: SLF001


def test_kernels_work_without_a_folder_for_the_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def nowhere(*_):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr("numba.core.dispatcher.FunctionCache", nowhere)

    @jit.kernel
    def double(value):
        return 2 * value

    assert double(21) == 42


@pytest.fixture
def no_home(monkeypatch, tmp_path):
    """Neither the package nor a home can be written to, as on many workers of clusters."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")

    def only_where_set(function):
        if not numba.config.CACHE_DIR:
            raise RuntimeError("cannot cache function: no locator available")
        return cache(function)

    cache = numba.core.dispatcher.FunctionCache
    monkeypatch.setattr("numba.core.dispatcher.FunctionCache", only_where_set)


def triple(value):
    return 3 * value


@pytest.mark.usefixtures("no_home")
def test_kernels_are_kept_in_a_temporary_folder_where_nothing_else_can_be_written(tmp_path):
    assert jit.kernel(triple)(14) == 42
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.rglob("*.nbi"))


@pytest.mark.usefixtures("no_home")
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path):
    folder = Path(jit._temporary_folder())  # noqa: SLF001
    folder.chmod(0o777)
    assert jit.kernel(triple)(14) == 42
    assert list(folder.iterdir()) == []
    assert numba.config.CACHE_DIR == ""
    assert list(tmp_path.iterdir()) == [folder]


STEPPED = """
import numpy as np
from sdckit.kernels import candidates, draws, ranks
from sdckit.kernels.mdav import groups

rng = np.random.default_rng(1)
x, y, ranks.SMALL = rng.normal(size=100), np.round(rng.normal(size=100), 1), 0
found = [*ranks.average_distance(ranks.OrderedColumn(x), y)]
for sums in ranks.ColumnStack(x[None]).distances(ranks.ColumnStack(y[None]), "expected")[1:]:
    found += sums.tolist()
points, facts = groups.mdav_points(rng.normal(size=(40, 3))), candidates.no_facts(40)
for groups.SMALL in (100, 0):
    found += groups.mdav_groups(points, 3, points).tolist()
gaps = np.where(rng.random(points.shape) < 0.1, np.nan, points)
found += groups.mdav_groups(gaps, 3, gaps).tolist()
for target in (points, gaps):
    counts = candidates.count_closer(target, points + 0.3, np.arange(40), (facts, facts), 1e-9, 3)
    found += counts.ravel().tolist()
found += draws.normals(np.random.default_rng(3), (40,)).tolist()
print(found)
"""


def test_kernels_that_are_not_compiled_give_the_same_results():
    """A newcomer can step through every kernel with NUMBA_DISABLE_JIT=1."""
    answers = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", STEPPED],
            env=os.environ | {"NUMBA_DISABLE_JIT": switch},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for switch in "01"
    ]
    assert answers[0] == answers[1] != ""
