"""The folder of the private record."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit.io.atomic import BINARY, PRIVATE, explain_write_errors, sha256_of, sync_folder
from sdckit.io.files import explain_read_errors
from sdckit.record.entry import DamagedRecord, Entry, damaged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


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


if TYPE_CHECKING:
    EntryOf = Callable[[str, dict[str, str]], Entry]

ID = re.compile(r"\d{8}-[0-9a-f]{8,64}(-\d+)?")
ENTRY, CROSSWALK, FINGERPRINTS, ORIGINALS, PUBLISHED = (
    *("release.json", "crosswalk.parquet", "fingerprints.parquet", "originals.parquet"),
    "published",  # and the suffix of the file
)
KEY, LOCK, PART = ".key", ".lock", ".part-"
INDEX = ".index.json"  # version 0.1 kept one in the folder
KEY_SIZE = 32  # bytes of the key of fingerprints
LARGEST_ENTRY = 1 << 26  # bytes of a release.json; none that was written is longer


@dataclass(frozen=True)
class Store:
    """The private record in one folder; `default_folder` is the one that a user has."""

    folder: Path

    @classmethod
    def at(cls, private: Path | str | None = None) -> Store:
        """Return the record in a folder, by default that in the user's state directory."""
        return cls(default_folder() if private is None else Path(private).expanduser().resolve())

    def check(self) -> None:
        """Create the folder if it is missing; raise an error, before any work, if it could not be used."""
        self._require_own_folder()
        with self._explained():
            make_folder(self.folder)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        with self.lock(), self._explained():
            if not (self.folder / KEY).exists() and not self.ids():
                replace_private(self.folder / KEY, self._part(), secrets.token_bytes(KEY_SIZE))
        self.secret()

    def _require_own_folder(self) -> None:
        """Raise FileExistsError for a file, or a folder with files of others."""
        if self.folder.exists() and not self.folder.is_dir():
            raise FileExistsError(f"'{self.folder}' is a file; name a folder for the private record")
        if not self.folder.is_dir() or (self.folder / KEY).exists():
            return
        with self._explained():
            others = [path.name for path in self.folder.iterdir() if path.name not in {LOCK, INDEX}]
        if any(not ID.fullmatch(name) and not name.startswith(PART) for name in others):
            raise FileExistsError(
                f"folder '{self.folder}' holds other files; name a folder of its own for the private record"
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of the system into one line that names the folder and how to choose another."""
        try:
            with explain_write_errors(self.folder):
                yield
        except OSError as error:
            fact = str(error).split(";")[0]
            raise OSError(f"{fact}; name another folder for the private record (private=)") from error

    def secret(self) -> bytes:
        """Return the key of fingerprints, 32 random bytes, which was made with the folder."""
        path = self.folder / KEY
        _require_plain_file(path)
        found = path.read_bytes()
        if len(found) != KEY_SIZE:
            raise damaged(str(path))
        return found

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let no other process write into the folder meanwhile; delete what killed ones left unfinished."""
        with ExitStack() as held:
            with self._explained():
                alone = held.enter_context(locked(self.folder / LOCK))
            if alone:
                self._sweep()
            yield

    def _sweep(self) -> None:
        """Delete unfinished files and folders; call it with the lock held, so that none is in work."""
        for path in self.folder.glob(f"{PART}*"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def _part(self) -> Path:
        """Return a new name for something unfinished."""
        return self.folder / f"{PART}{secrets.token_hex(8)}"

    def ids(self) -> list[str]:
        """Return the IDs of all releases, in the order of their days."""
        if not self.folder.is_dir():
            return []
        with self._explained():
            found = sorted(path for path in self.folder.iterdir() if ID.fullmatch(path.name))
        return [path.name for path in found if path.is_dir() and not path.is_symlink()]

    def path(self, one: str, name: str) -> Path:
        """Return the path of a file of a release; raise an error if the ID is unknown or the file missing."""
        if not ID.fullmatch(one) or one not in self.ids():
            raise ValueError(f"no release {one!r} in '{self.folder}'; sdckit releases lists those it has")
        path = self.folder / one / name
        _require_plain_file(path)
        return path

    def read(self, one: str) -> Entry:
        """Return the entry of a release; raise `DamagedRecord` unless it is as it was written."""
        path = self.path(one, ENTRY)
        if path.stat().st_size > LARGEST_ENTRY:
            raise damaged(str(path))
        entry = Entry.from_json(path.read_bytes(), str(path))
        if entry.id != one:
            raise damaged(str(path))
        return entry

    def verified(self, entry: Entry, name: str, digest: str) -> Path:
        """Return the path of a file of a release; raise `DamagedRecord` unless it has the digest."""
        path = self.path(entry.id, name)
        if digest_of_file(path) != digest:
            raise damaged(str(path))
        return path

    def crosswalk(self, entry: Entry) -> Path:
        """Return the path of the crosswalk of a release, which is as it was written."""
        return self.verified(entry, CROSSWALK, entry.crosswalk["sha256"])

    def fingerprints(self, entry: Entry) -> Path:
        """Return the path of the fingerprints of a release, which are as they were written."""
        return self.verified(entry, FINGERPRINTS, entry.fingerprints["sha256"])

    def originals(self, entry: Entry) -> Path | None:
        """Return the path of the original values of a release, as they were written; None if it has none.

        Records of version 0.1 have none.
        """
        digest = entry.originals.get("sha256")
        return None if digest is None else self.verified(entry, ORIGINALS, digest)

    def published(self, entry: Entry) -> Path:
        """Return the path of the copy of a published file, which is as it was written."""
        return self.verified(entry, PUBLISHED + entry.output["suffix"], entry.output["sha256"])

    def entries(self) -> tuple[list[Entry], list[str]]:
        """Return the entries of all releases, and the IDs of those whose entry is damaged."""
        found, broken = [], []
        for one in self.ids():
            try:
                found.append(self.read(one))
            except (DamagedRecord, OSError):
                broken.append(one)
        return sorted(found, key=lambda entry: (entry.time, entry.id)), broken

    def find(self, digest: str) -> Entry | None:
        """Return the entry of the last release whose file has this SHA-256 digest; None without one."""
        found = [entry for entry in self.entries()[0] if entry.output["sha256"] == digest]
        return found[-1] if found else None

    def add(self, digest: str, contents: Mapping[str, bytes | Path], entry_of: EntryOf) -> Entry:
        """Write the record of a release whole or not at all, with the lock held; return its entry.

        `digest` is that of the published file; `contents` has the files of the record by name, as bytes or as
        files to copy, and `entry_of(ID, digests)` then returns the entry.
        """
        part = self._part()
        digests: dict[str, str] = {}
        with self._explained():
            try:
                make_folder(part)
                for name, content in contents.items():
                    if isinstance(content, Path):
                        digests[name] = copy_private(content, part / name)
                    else:
                        write_private(part / name, content)
                        digests[name] = hashlib.sha256(content).hexdigest()
                entry = entry_of(self._fresh_id(digest), digests)
                write_private(part / ENTRY, entry.to_json())
                sync_folder(part)
                part.rename(self.folder / entry.id)
                sync_folder(self.folder)
            except BaseException:
                shutil.rmtree(part, ignore_errors=True)
                raise
        return entry

    def remove(self, one: str) -> None:
        """Delete the record of a release that was not published after all."""
        part = self._part()
        with suppress(OSError):
            (self.folder / one).rename(part)
            shutil.rmtree(part, ignore_errors=True)

    def _fresh_id(self, digest: str) -> str:
        """Return the day and the first 8 digits of a digest, more of them if another release has these."""
        day = f"{datetime.now(UTC):%Y%m%d}"
        taken = {path.name for path in self.folder.iterdir()}
        names = [f"{day}-{digest[:size]}" for size in range(8, len(digest) + 1)]
        names += [f"{day}-{digest[:8]}-{number}" for number in range(2, len(taken) + 3)]
        return next(name for name in names if name not in taken)


def _require_plain_file(path: Path) -> None:
    """Raise `DamagedRecord` unless the path is a file, and no link to one elsewhere."""
    if path.is_symlink() or not path.is_file():
        raise DamagedRecord(f"'{path}' is missing or no plain file; restore it from a copy")


def default_folder() -> Path:
    """Return the folder of the private record in the user's state directory."""
    import platformdirs  # noqa: PLC0415 - only for releases

    return Path(platformdirs.user_state_dir("sdckit", appauthor=False), "releases").resolve()


def require_apart(store: Store, *published: Path | None) -> None:
    """Raise ValueError if a file that is handed out would lie in the folder of the private record."""
    for path in (path for path in published if path is not None):
        if store.folder in (path.resolve(), *path.resolve().parents):
            raise ValueError(
                f"'{path}' would lie in the private record '{store.folder}'; choose another place"
            )


def utc_now() -> str:
    """Return the time in UTC in ISO form, to the second."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def read_table(path: Path) -> Any:
    """Return the table of a Parquet file of the record; raise `DamagedRecord` if it is none."""
    from sdckit.io import files  # noqa: PLC0415 - only where a release is looked up

    try:
        return files.read(path).frame
    except ValueError as error:
        raise damaged(str(path)) from error
