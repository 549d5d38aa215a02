"""Folders and files that their owner alone can read, from the moment they exist, under every umask."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sdckit.io.digest import sha256_of
from sdckit.io.drafts import BINARY, PRIVATE
from sdckit.io.files import explain_read_errors

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = 0o700  # mode of a folder that its owner alone can enter
BLOCK = 1 << 20  # bytes that are copied at once


def make_folder(folder: Path) -> None:
    """Create a folder, and those above it that are missing, for its owner alone; or close an open one."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):  # other systems refuse `mkdir` of a drive or of / in other ways
        with suppress(FileExistsError):
            path.mkdir(mode=FOLDER)
            path.chmod(FOLDER)  # a umask may have taken even the owner's rights
    if folder.stat().st_mode & 0o777 != FOLDER:
        folder.chmod(FOLDER)


def write_private(path: Path, content: bytes) -> None:
    """Write a new file for its owner alone, and wait until it is on the disk."""
    with open_private(path) as handle:
        _write_all(handle, content)


def copy_private(source: Path, path: Path) -> str:
    """Copy a file to a new one for its owner alone; return the SHA-256 digest of what was copied."""
    digest = hashlib.sha256()
    with source.open("rb") as content, open_private(path) as handle:
        while block := content.read(BLOCK):
            digest.update(block)
            _write_all(handle, block)
    return digest.hexdigest()


@contextmanager
def open_private(path: Path) -> Iterator[int]:
    """Yield the descriptor of a new file for its owner alone; sync it at the end. Links are not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | BINARY
    handle = os.open(path, flags, PRIVATE)
    try:
        _close_to_others(handle)
        yield handle
        os.fsync(handle)
    finally:
        os.close(handle)


def _close_to_others(handle: int) -> None:
    """Let the owner alone read and write a file that is open; a umask may have taken even his rights."""
    with suppress(AttributeError):  # Windows
        os.fchmod(handle, PRIVATE)


def _write_all(handle: int, content: bytes) -> None:
    """Write all bytes to a descriptor, however few of them the system takes at once."""
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


def replace_private(path: Path, draft: Path, content: bytes) -> None:
    """Write a file for its owner alone under the name `draft`, then rename it over `path`."""
    try:
        write_private(draft, content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Wait for the lock on a file, which is created; yield True while it is held, False without locks."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), PRIVATE)
    try:
        _close_to_others(handle)
        held = False
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
                held = True
        yield held
    finally:
        os.close(handle)


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 digest of a file; of a folder, that of the names and digests of its files."""
    with explain_read_errors(path):
        return sha256_of(path)
