"""Output folders of commands, which replace only files of their own and only after success."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sdckit.io.drafts import draft_folder, sweep_drafts, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


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
