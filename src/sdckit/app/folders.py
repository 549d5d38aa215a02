"""Paths that the page may touch: those below the start folder, links followed."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from sdckit.core.text import printable
from sdckit.io.files import explain_read_errors
from sdckit.io.formats import READABLE, suffix_of

LONGEST = 4096  # characters of a path
SHOWN = 80  # characters of a path in an error


@dataclass(frozen=True)
class Entry:
    """A sub-folder or a file that can be read.

    Attributes
    ----------
    name
        Its name, safe to show.
    path
        Its path below the start folder with slashes, as `confined` takes it; None if its name has characters
        that `confined` refuses.
    is_folder
        True for a folder.
    size
        Bytes of a file; 0 for a folder.
    """

    name: str
    path: str | None
    is_folder: bool
    size: int


def start_folder(data: Path | None) -> Path:
    """Return the folder that the page works in: the working directory, or that of a file from elsewhere.

    Parameters
    ----------
    data
        The file that the page opens first, if any.

    Returns
    -------
    pathlib.Path
        The folder, links resolved.
    """
    here = Path.cwd().resolve()
    if data is None or data.resolve().is_relative_to(here):
        return here
    return data.resolve().parent


def confined(start: Path, text: str) -> Path:
    """Return the path that a text names, if it lies in the start folder after all links were followed.

    Parameters
    ----------
    start
        The start folder.
    text
        A path, relative to the start folder or absolute; what it names need not exist.

    Returns
    -------
    pathlib.Path
        The absolute path, links resolved.

    Raises
    ------
    ValueError
        The path lies elsewhere, is too long, or has control characters.
    """
    if len(text) > LONGEST:
        raise ValueError(f"the path has {len(text)} characters; give one of at most {LONGEST}")
    shown = repr(printable(text[:SHOWN]) + ("..." if len(text) > SHOWN else ""))
    if _is_odd(text):
        raise ValueError(f"the path {shown} has control characters; rename the file")
    try:
        found = Path(start, text).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # such as links in a circle
        raise ValueError(f"the path {shown} cannot be followed; check its links") from error
    if not found.is_relative_to(start.resolve()):
        raise ValueError(f"the path {shown} lies outside of the start folder; give one below it")
    return found


def list_folder(start: Path, folder: Path) -> list[Entry]:
    """Return the sub-folders of a folder, then the files in it that can be read, each in the order of names.

    Hidden ones are left out, and so are links to what lies outside of the start folder.

    Parameters
    ----------
    start
        The start folder.
    folder
        A folder in it.

    Returns
    -------
    list
        The entries.

    Raises
    ------
    OSError
        There is no such folder, or it cannot be read.
    ValueError
        The folder lies outside of the start folder.
    """
    here = confined(start, str(folder))
    with explain_read_errors(here), os.scandir(here) as found:
        entries = [entry for one in found if (entry := _entry(start, one)) is not None]
    return sorted(entries, key=lambda entry: (not entry.is_folder, entry.name.casefold(), entry.name))


def _entry(start: Path, found: os.DirEntry[str]) -> Entry | None:
    """Return what is shown of one name in a folder; None if nothing is."""
    target = Path(found.path)
    readable = suffix_of(target) in READABLE
    try:
        is_folder, is_file = found.is_dir(), found.is_file()
        if found.name.startswith(".") or not (is_folder or (is_file and readable)):
            return None
        if found.is_symlink() and not target.resolve().is_relative_to(start.resolve()):
            return None
        size = 0 if is_folder else found.stat().st_size
    except (OSError, RuntimeError):  # deleted by now, or a link to itself
        return None
    path = target.relative_to(start.resolve()).as_posix()
    return Entry(printable(found.name), None if _is_odd(path) else path, is_folder, size)


def _is_odd(text: str) -> bool:
    """Return True if a text has control characters, or halves of characters, which no form can send."""
    return any(unicodedata.category(character) in {"Cc", "Cs"} for character in text)
