"""What differs on Windows and macOS, shown here by taking away what only Linux has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sdckit.app.running import Running
from sdckit.io import atomic, memory
from sdckit.io import atomic as drafts
from sdckit.record import store as private_files
from sdckit.selection import runner

IMPORT_ALL = """
import importlib, pkgutil, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
import sdckit
for found in pkgutil.walk_packages(sdckit.__path__, "sdckit."):
    if "spark" not in found.name and not found.name.endswith("__main__"):
        importlib.import_module(found.name)
print(len(sys.modules))
"""


@pytest.fixture
def windows(monkeypatch):
    """Take away the modules that Windows lacks."""
    for module in (drafts, private_files, runner):
        monkeypatch.setattr(module, "fcntl", None)
    monkeypatch.setattr(memory, "resource", None)


def open_files():
    """Return the files that this process has open."""
    folder = Path("/proc/self/fd")
    return {str(one.readlink()) for one in folder.iterdir() if one.exists()} if folder.is_dir() else set()


@pytest.mark.long
def test_every_module_is_imported_without_the_modules_of_unix():
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 400


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.usefixtures("windows")
def test_a_file_is_closed_before_it_is_renamed(tmp_path, monkeypatch, overwrite):
    def checked(name, usual):
        def moved(path, other):
            assert not {str(path), str(other)} & open_files()  # Windows refuses to rename these
            return usual(path, other)

        monkeypatch.setattr(Path, name, moved)

    checked("replace", Path.replace)
    checked("hardlink_to", Path.hardlink_to)
    target = tmp_path / "out.csv"
    with atomic.atomic(target, overwrite=overwrite) as draft:
        draft.write_text("a\n1\n", encoding="utf-8")
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.usefixtures("windows")
def test_folders_of_drafts_and_sweeps_work_without_locks(tmp_path):
    with drafts.draft_folder(tmp_path) as folder:
        (folder / "part").touch()
    drafts.sweep_drafts(tmp_path)
    assert not list(tmp_path.iterdir())
    folder = tmp_path / "sweep"
    with runner.opened(runner.SWEEP, folder, {"plan": 1}, 5, 2) as (entropy, _finished):
        assert entropy == 5
        assert not runner.in_use(folder)


@pytest.mark.usefixtures("windows")
def test_the_private_record_says_that_it_has_no_lock(tmp_path):
    with private_files.locked(tmp_path / ".lock") as held:
        assert not held


def test_bytes_of_private_files_are_written_as_they_are(tmp_path, monkeypatch):
    asked = []
    usual = os.open
    monkeypatch.setattr(private_files, "BINARY", os.O_SYNC)  # any flag stands for that of Windows
    monkeypatch.setattr(
        os, "open", lambda path, flags, *more: asked.append(flags) or usual(path, flags, *more)
    )
    private_files.write_private(tmp_path / "a", b"\n")
    assert asked[0] & os.O_SYNC == os.O_SYNC


def test_folders_that_exist_are_not_made_again(tmp_path, monkeypatch):
    usual = Path.mkdir

    def mkdir(path, mode=0o777, **options):
        if path.exists():
            raise PermissionError("access is denied")  # as for C: on Windows; macOS has another error for /
        usual(path, mode, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    private_files.make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.usefixtures("windows")
def test_memory_has_a_usual_size_where_the_system_says_nothing(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    assert memory.memory_at_hand(tmp_path) == memory.UNKNOWN_MEMORY


def test_a_release_is_ended_where_no_interrupt_can_be_sent(tmp_path):
    class Process:
        returncode = None
        ended = False

        def send_signal(self, number):
            raise ValueError(f"unsupported signal: {number}")

        def terminate(self):
            self.ended = True

    run = Running(tmp_path, "release")
    run._process = Process()  # noqa: SLF001 - no other way to end one
    run.interrupt()
    assert run._process.ended  # noqa: SLF001
