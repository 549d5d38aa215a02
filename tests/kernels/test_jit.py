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
    with (tmp_path / "sdckit" / "kernels" / "tie_rules.py").open("a") as file:
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
