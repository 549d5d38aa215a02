"""Write files and folders whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.io.formats import READ_ONLY, STAT_SUFFIXES, SUFFIXES, suffix_of, suffixes_text

if TYPE_CHECKING:
    from collections.abc import Mapping


def sha256_of(path: AnyPath) -> str:
    """Return the SHA-256 of a file in hexadecimal digits; of a folder, that of its files' names and sums."""
    path = Path(path)
    if path.is_dir():
        parts = sorted(file for file in path.rglob("*") if file.is_file())
        lines = [f"{file.relative_to(path).as_posix()} {sha256_of(file)}\n" for file in parts]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of JSON content in one canonical form, as 64 hexadecimal digits."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


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


AnyPath = str | os.PathLike[str]

PAGE_SUFFIXES = (".html", ".htm")

_BY_SYSTEM = re.compile(r"([^:\n]+?)\.? \(os error (\d+)\)")  # an operating-system error in polars' words
POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
_REMEDIES = {
    errno.ENOSPC: "free some space or choose another folder",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f) or choose another folder",
    getattr(errno, "EDQUOT", errno.ENOSPC): "free some space or choose another folder",
}


def check_target(
    path: AnyPath,
    overwrite: bool,  # noqa: FBT001 - the flag of the same name
    suffixes: Sequence[str] = SUFFIXES,
) -> None:
    """Raise an error, before any work, for an output path that could not be written afterwards.

    Parameters
    ----------
    path, overwrite
        The file to be written, and whether it may replace one that exists.
    suffixes
        Those that its format goes by.

    Raises
    ------
    OSError
        It exists, is a folder, or its folder is missing or not writable.
    ValueError
        Its suffix names no format we write.
    """
    path = Path(path)
    folder = path.parent
    with explain_write_errors(path):
        if path.is_dir():
            raise IsADirectoryError(f"'{path}' is a folder; name a file in it")
        _check_suffix(path, suffixes)
        if path.exists() and not path.is_file():
            raise FileExistsError(f"'{path}' is a device, not a file; choose another name")
        if path.exists() and not overwrite:
            raise _exists_error(path)
        if not folder.is_dir():
            raise FileNotFoundError(f"no folder '{folder}' to write '{path.name}' into; create it first")
        sweep_drafts(Path(os.path.realpath(path)).parent)
        with tempfile.TemporaryFile(dir=folder):
            pass


def _check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Raise ValueError if the suffix of the path is not one of `suffixes`, or needs a missing package."""
    suffix = suffix_of(path)
    if suffix in suffixes:
        if suffix in STAT_SUFFIXES:
            from sdckit.io.statfiles import import_pyreadstat  # noqa: PLC0415 - only for these formats

            import_pyreadstat()
        elif suffix.endswith(".zst"):
            from sdckit.io.packing import import_zstd  # noqa: PLC0415 - only for this format

            import_zstd()
        return
    if suffix in READ_ONLY and suffixes == SUFFIXES:
        raise ValueError(
            f"cannot write '{path}': {suffix} is for reading only; use {READ_ONLY[suffix]} instead"
        )
    raise ValueError(f"cannot write '{path}' by its suffix; use one of: {suffixes_text(suffixes)}")


def _exists_error(path: Path) -> FileExistsError:
    """Return the error for an output file that exists already."""
    return FileExistsError(f"'{path}' exists already; choose another name or overwrite it (overwrite=True)")


def _write_error(path: Path, error: BaseException) -> OSError | None:
    """Return a one-line OSError for what the operating system refused; None for any other error."""
    if isinstance(error, OSError) and error.errno is not None:
        code, reason = error.errno, error.strerror or "unknown reason"
    elif found := _BY_SYSTEM.search(str(error)):
        code, reason = int(found[2]), found[1].strip()
    else:
        return None
    remedy = _REMEDIES.get(code, "choose another folder or name")
    return OSError(f"could not write '{path}': {reason.lower()}; {remedy}")


@contextmanager
def explain_write_errors(path: AnyPath) -> Iterator[None]:
    """Turn an OSError raised in a `with` block into one line with the path and a remedy."""
    try:
        yield
    except OSError as error:
        raise _write_error(Path(path), error) or error from error


@contextmanager
def atomic(
    path: AnyPath,
    overwrite: bool = False,  # noqa: FBT001, FBT002 - the flag of the same name
    *,
    private: bool = False,
) -> Iterator[Path]:
    """Yield the path of a temporary file; rename it to `path` if the `with` block raises no error.

    After any error, Ctrl-C included, the temporary file is deleted and `path` is unchanged. No other user can
    read the temporary file, whose content has not yet passed its checks.

    Parameters
    ----------
    path, overwrite
        The file to be written, and whether it may replace one that exists.
    private
        Let no other user read the file, at any time (mode 0600); by default its mode is that of new files, or
        of the file that it replaces.

    Yields
    ------
    pathlib.Path
        The file to write into.

    Raises
    ------
    OSError
        The file exists, or the system refused to write it.
    """
    target = Path(os.path.realpath(path))
    try:
        with draft_file(target.parent) as temporary:
            yield temporary
            with temporary.open("rb+") as handle:
                if not private:
                    temporary.chmod(_mode_for(target))
                os.fsync(handle.fileno())
            _move_to_target(temporary, target, Path(path), overwrite=overwrite)
        sync_folder(target.parent)
    except (OSError, *POLARS_ERRORS) as error:
        refusal = _write_error(Path(path), error) if _is_about(error, target) else None
        if refusal is None:
            raise
        raise refusal from error


def _mode_for(target: Path) -> int:
    """Return the mode of the file that is to be replaced; of new files in its folder if there is none."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        return usual_mode(target.parent)


def _is_about(error: BaseException, target: Path) -> bool:
    """Return True if an error names no file, or the target or a draft of it."""
    name = getattr(error, "filename", None)
    return name in (None, str(target)) or Path(str(name)).name.startswith(PREFIX)


def _move_to_target(temporary: Path, target: Path, path: Path, *, overwrite: bool) -> None:
    """Rename the finished file to its target; never replace a file unless `overwrite` is set."""
    if overwrite:
        temporary.replace(target)
        return
    try:
        try:
            target.hardlink_to(temporary)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: create the empty target, then replace it
            target.touch(exist_ok=False)
            try:
                temporary.replace(target)
            except BaseException:
                target.unlink()
                raise
    except FileExistsError as error:
        raise _exists_error(path) from error


def check_folder(folder: Path, mark: str) -> None:
    """Raise FileExistsError if the folder has files but not the command's marker file `mark`; sweep it."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"'{folder}' is a file; choose another folder")
    sweep_drafts(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / mark).exists():
        raise FileExistsError(f"folder '{folder}' holds other files; choose another one")


@contextmanager
def fill_folder(folder: Path, mark: str, text: str) -> Iterator[Path]:
    """Yield a temporary folder; move its files to `folder` if the `with` block raises no error.

    The marker file `mark` lists them after the line `text`, so that a later run can delete those that it does
    not write again.
    """
    home = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        sweep_drafts(home)
        with draft_folder(home) as draft:
            yield draft
            fresh = sorted(file.name for file in draft.iterdir())
            (draft / mark).write_text("\n".join([text, *fresh, ""]), encoding="utf-8")
            folder.mkdir(parents=True, exist_ok=True)
            for name in _files_of_earlier_run(folder / mark) - {*fresh, mark}:
                (folder / name).unlink(missing_ok=True)
            for name in [*fresh, mark]:
                (draft / name).replace(folder / name)
            sync_folder(folder)
    except OSError as error:
        reason = str(error).split(": ")[-1] if error.errno is None else (error.strerror or "").lower()
        reason = reason.split(";")[0]
        raise OSError(f"could not fill folder '{folder}': {reason}; choose another one") from error


def _files_of_earlier_run(mark: Path) -> set[str]:
    """Return the names of the files that an earlier run wrote, as its marker file lists them."""
    if not mark.exists():
        return set()
    return {name for name in mark.read_text(encoding="utf-8").splitlines()[1:] if Path(name).name == name}
