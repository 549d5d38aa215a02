"""Drafts: files and folders under a temporary name, for their owner alone, deleted when work on them ends.

A draft is locked while its process works on it, so that those which a killed process left are known by their
missing lock and deleted at the next start.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PRIVATE = 0o600  # mode of a file that its owner alone reads and writes
PRIVATE_FOLDER = 0o700
PREFIX = ".sdckit-"
_DRAFT = re.compile(r"\.sdckit-[0-9a-f]{16}\.parts?")
BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate line ends
_AS_IT_IS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # no link, no waiting for a pipe


@contextmanager
def draft_file(folder: Path, mode: int = PRIVATE) -> Iterator[Path]:
    """Yield the path of a new empty file in a folder; delete it after the `with`, unless it was renamed."""
    path, handle = _new_file(folder, mode)
    try:
        yield path
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def _new_file(folder: Path, mode: int) -> tuple[Path, int | None]:
    """Create and lock a draft; return its path and the handle of the lock, None on Windows."""
    while True:
        path = folder / f"{PREFIX}{secrets.token_hex(8)}.part"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | BINARY, mode)
        if mode == PRIVATE:
            with suppress(FileNotFoundError):  # deleted already, as below
                path.chmod(PRIVATE)  # a umask may have taken even the owner's rights
        if fcntl is None:  # Windows neither renames nor deletes a file that is open
            os.close(handle)
            return path, None
        if _lock(handle) is not False and path.exists():
            return path, handle
        os.close(handle)  # another process has just taken it for one that was left behind


@contextmanager
def draft_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder in a folder; delete it after the `with`, unless it was renamed."""
    path, handle = _new_folder(folder)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _new_folder(folder: Path) -> tuple[Path, int | None]:
    """Create and lock a folder for drafts; return its path and the handle of the lock, None on Windows."""
    while True:
        path = folder / f"{PREFIX}{secrets.token_hex(8)}.parts"
        path.mkdir(mode=PRIVATE_FOLDER)
        with suppress(FileNotFoundError):
            path.chmod(PRIVATE_FOLDER)
            if fcntl is None:
                return path, None
            handle = os.open(path, os.O_RDONLY)
            if _lock(handle) is not False and path.exists():
                return path, handle
            os.close(handle)


def _lock(handle: int) -> bool | None:
    """Lock an open file; return False if another process has locked it, None where locks are unsupported."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def sweep_drafts(folder: Path) -> None:
    """Delete the drafts that killed processes of this user left in a folder, and no one else's."""
    if fcntl is None or not folder.is_dir():
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for path in [folder / entry.name for entry in entries if _DRAFT.fullmatch(entry.name)]:
            with suppress(OSError):
                _delete_if_left(path)


def _delete_if_left(path: Path) -> None:
    """Delete a draft of this user that no process has locked."""
    handle = os.open(path, os.O_RDONLY | _AS_IT_IS)
    try:
        found = os.fstat(handle)
        if found.st_uid != os.getuid() or not _lock(handle):
            return
        if stat.S_ISDIR(found.st_mode):
            shutil.rmtree(path, ignore_errors=True)
        elif stat.S_ISREG(found.st_mode):
            path.unlink()
    finally:
        os.close(handle)


def usual_mode(folder: Path) -> int:
    """Return the mode that new files in a folder get, as seen on an empty one; safe in threads."""
    with draft_file(folder, 0o666) as probe:
        return stat.S_IMODE(probe.stat().st_mode)


def usual_folder_mode(folder: Path) -> int:
    """Return the mode of new folders in a folder: that of files, and readers may enter."""
    mode = usual_mode(folder)
    return mode | (mode & 0o444) >> 2


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last through a power cut, where the system supports it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
