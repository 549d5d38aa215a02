"""Drafts: for their owner alone, never left behind, and swept only where no process works on them."""

import os
import signal
import stat
import threading
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from sdckit.io import files
from sdckit.io.atomic import (
    atomic,
    check_folder,
    check_target,
    draft_file,
    draft_folder,
    fcntl,
    fill_folder,
    sweep_drafts,
    usual_folder_mode,
)

LEFT = ".sdckit-0123456789abcdef.part"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows knows neither modes nor these locks")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def umask(value):
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize(("mask", "usual"), [(0o000, 0o666), (0o022, 0o644), (0o077, 0o600), (0o777, 0)])
def test_a_draft_is_private_under_every_umask_and_the_file_gets_the_usual_mode(tmp_path, mask, usual):
    with umask(mask):
        with atomic(tmp_path / "public.csv") as draft:
            assert mode(draft) == 0o600
            draft.write_text("x")
            assert mode(draft) == 0o600
        with atomic(tmp_path / "private.csv", private=True) as draft:
            assert mode(draft) == 0o600
    assert mode(tmp_path / "public.csv") == usual
    assert mode(tmp_path / "private.csv") == 0o600
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(("mask", "usual"), [(0o000, 0o777), (0o027, 0o750), (0o077, 0o700)])
def test_a_folder_of_drafts_is_private_under_every_umask(tmp_path, mask, usual):
    with umask(mask):
        with draft_folder(tmp_path) as folder:
            assert mode(folder) == 0o700
        assert usual_folder_mode(tmp_path) == usual
    assert list(tmp_path.iterdir()) == []


def leave_behind(folder):
    """Write a draft of a file and one of a folder in another process that is killed."""
    child = os.fork()
    if child == 0:
        with draft_file(folder) as file, draft_folder(folder) as parts:
            file.write_text("original values")
            (parts / "part-0.parquet").write_text("original values")
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(
    "start",
    [
        lambda folder: check_target(folder / "x.csv", False),
        lambda folder: files.write(folder / "x.csv", pl.DataFrame({"a": [1]})),
        lambda folder: check_folder(folder, "mark"),
        sweep_drafts,
    ],
)
def test_the_next_start_sweeps_what_a_killed_process_left(tmp_path, start):
    leave_behind(tmp_path)
    start(tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.name != "x.csv"]


def test_drafts_of_running_processes_are_not_swept(tmp_path):
    with draft_file(tmp_path) as file, draft_folder(tmp_path) as folder:
        child = os.fork()
        if child == 0:
            sweep_drafts(tmp_path)
            os._exit(0)
        os.waitpid(child, 0)
        sweep_drafts(tmp_path)
        assert file.exists()
        assert folder.exists()


def test_only_drafts_are_swept_and_no_link_is_followed(tmp_path):
    (tmp_path / "below").mkdir()
    precious = [
        tmp_path / name for name in ("x.part", ".sdckit-x.part", f"{LEFT}.csv", f"below/{LEFT}", "thesis")
    ]
    for path in precious:
        path.write_text("precious")
    (tmp_path / LEFT).symlink_to(tmp_path / "thesis")
    sweep_drafts(tmp_path)
    assert [path.read_text() for path in precious] == ["precious"] * len(precious)


def test_without_locks_nothing_is_swept_and_files_are_written_all_the_same(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError("no locks")

    (tmp_path / LEFT).write_text("perhaps in use")
    monkeypatch.setattr(fcntl, "flock", unsupported)
    files.write(tmp_path / "x.csv", pl.DataFrame({"a": [1]}))
    assert sorted(path.name for path in tmp_path.iterdir()) == [LEFT, "x.csv"]


@pytest.mark.long
def test_writers_and_sweepers_at_once_lose_no_draft(tmp_path):
    stop, failures = threading.Event(), []

    def sweep():
        while not stop.is_set():
            sweep_drafts(tmp_path)

    def write(name):
        try:
            for number in range(100):
                with atomic(tmp_path / f"{name}{number}") as draft:
                    draft.write_text(name)
        except OSError as error:
            failures.append(error)

    sweeper = threading.Thread(target=sweep)
    writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in (sweeper, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    sweeper.join()
    assert failures == []
    assert len(list(tmp_path.iterdir())) == 200
    assert all(path.read_text() == path.name[0] for path in tmp_path.iterdir())


def synced_paths(monkeypatch):
    """Record what is synced: the paths of files and folders."""
    seen, sync = [], os.fsync

    def fsync(handle):
        seen.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        sync(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


@pytest.mark.parametrize("overwrite", [False, True])
def test_file_and_folder_are_synced_the_folder_after_the_rename(tmp_path, monkeypatch, overwrite):
    seen = synced_paths(monkeypatch)
    with atomic(tmp_path / "x.csv", overwrite) as draft:
        draft.write_text("x")
    assert seen == [str(draft), str(tmp_path)]


def test_a_filled_folder_is_synced_and_its_draft_was_private(tmp_path, monkeypatch):
    seen = synced_paths(monkeypatch)
    with fill_folder(tmp_path / "new", "mark", "text") as draft:
        assert mode(draft) == 0o700
        (draft / "page.html").write_text("x")
    assert str(tmp_path / "new") in seen
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["mark", "page.html"]
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
