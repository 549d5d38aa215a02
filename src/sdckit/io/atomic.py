"""Check output paths before any work, and write files completely or not at all."""

import errno
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from sdckit.io.drafts import PREFIX, draft_file, sweep_drafts, sync_folder, usual_mode
from sdckit.io.suffixes import READ_ONLY, STAT_SUFFIXES, SUFFIXES, suffix_of, suffixes_text

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
    try:
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
    except OSError as error:
        raise _write_error(path, error) or error from error


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
