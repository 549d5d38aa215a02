"""The private folder of a sweep or a search: its seed and its finished runs, so that it can be resumed."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sdckit.core import randomness
from sdckit.io import atomic, digest, drafts
from sdckit.selection.checkpoint import Checkpoint, read_records

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from sdckit.kernels.jit import Floats

PLAN, CELLS, README = "sweep.json", "cells.bin", "private.txt"
SEARCH_PLAN = "search.json"
WARNING = """\
Private: the .json file holds the seed of the draws, and with a seed a masking can be undone.
cells.bin holds the measured values, so that the same command resumes where it was stopped.
Delete this folder when the work is done, and publish none of its files.
"""


class SweepFolder:
    """Create the folder of a sweep, or open it to resume the same sweep; `overwrite` starts it anew."""

    work: ClassVar[str] = "sweep"
    plan: ClassVar[str] = PLAN  # name of the file that holds seed and identity
    remedy: ClassVar[str] = "overwrite it (overwrite=True)"

    def __init__(
        self,
        folder: atomic.AnyPath,
        identity: dict[str, Any],
        rng: Any,
        length: int,
        *,
        overwrite: bool = False,
    ) -> None:
        self.folder: Path = Path(folder)
        self._check_folder()
        randomness.generator(rng)
        with atomic.explain_write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _lock_folder(self.folder, self.work)
        drafts.sweep_drafts(self.folder)
        try:
            resumes = (self.folder / self.plan).exists() and not overwrite
            self.entropy: int = (
                self._stored_seed(self.folder, identity, rng) if resumes else self._begin(identity, rng)
            )
            self.checkpoint: Checkpoint = Checkpoint(self.folder / CELLS, length)
        except BaseException:
            _unlock_folder(self._lock)
            raise

    def _check_folder(self) -> None:
        """Raise FileExistsError if the path is a file or a folder that holds other files."""
        if self.folder.exists() and not self.folder.is_dir():
            raise FileExistsError(f"'{self.folder}' is a file; name a folder for the {self.work}")
        known = (self.folder / self.plan).exists() or not self.folder.is_dir()
        if not known and any(
            not file.name.startswith((README, ".sdckit-")) for file in self.folder.iterdir()
        ):
            raise FileExistsError(f"folder '{self.folder}' holds other files; choose another one")

    def _begin(self, identity: dict[str, Any], rng: Any) -> int:
        """Write the seed and the identity of the work into the folder, delete old runs; return the seed."""
        entropy = randomness.entropy_of(rng)
        content = {"identity": identity, "entropy": str(entropy)}
        content["checksum"] = digest.checksum(content)
        with atomic.explain_write_errors(self.folder):
            self.folder.chmod(0o700)
            (self.folder / CELLS).unlink(missing_ok=True)
        for name, text in ((README, WARNING), (self.plan, json.dumps(content, indent=1))):
            with atomic.atomic(self.folder / name, overwrite=True, private=True) as draft:
                draft.write_text(text, encoding="utf-8")
        return entropy

    @classmethod
    def read_records(cls, folder: atomic.AnyPath, identity: dict[str, Any], length: int) -> dict[int, Floats]:
        """Return the finished runs of the work by key; the folder is neither locked nor changed.

        There are none before the folder is; ValueError is raised if it holds other work.
        """
        if not (Path(folder) / cls.plan).exists():
            return {}
        cls._stored_seed(Path(folder), identity, None)
        return read_records(Path(folder) / CELLS, length)

    @classmethod
    def _stored_seed(cls, folder: Path, identity: dict[str, Any], rng: Any) -> int:
        """Return the stored seed; raise ValueError if the folder holds other work."""
        try:
            content = json.loads((folder / cls.plan).read_text(encoding="utf-8"))
            checksum = content.pop("checksum")
            before, entropy = {**content["identity"]}, int(content["entropy"])
            if checksum != digest.checksum(content):
                raise ValueError("wrong checksum")  # noqa: TRY301 - as for other damage
        except (AttributeError, RecursionError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"'{folder / cls.plan}' is damaged; choose another folder") from error
        other = [name for name in before | identity if before.get(name) != identity.get(name)]
        if rng is not None and randomness.entropy_of(rng) != entropy:
            other.append("seed")
        if other:
            raise ValueError(
                f"folder '{folder}' holds another {cls.work} (different: {', '.join(other)}); "
                f"choose another folder or {cls.remedy}"
            )
        return entropy

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.checkpoint.__exit__(kind, error, trace)
        _unlock_folder(self._lock)


class SearchFolder(SweepFolder):
    """Create the folder of a search for a recommendation, or open it to resume the same search."""

    work = "search"
    plan = SEARCH_PLAN
    remedy = "delete this one"


@contextmanager
def opened(
    kind: type[SweepFolder],
    folder: atomic.AnyPath | None,
    identity: dict[str, Any],
    rng: Any,
    length: int,
    *,
    overwrite: bool = False,
) -> Iterator[tuple[int, Checkpoint | None]]:
    """Yield the seed of a sweep or search and its finished runs; without a folder, none are kept."""
    if folder is None:
        yield randomness.entropy_of(rng), None
        return
    with kind(folder, identity, rng, length, overwrite=overwrite) as place:
        yield place.entropy, place.checkpoint


def _lock_folder(folder: Path, work: str) -> int | None:
    """Lock the folder against other processes; return the lock's handle, None where locks are unsupported."""
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise FileExistsError(
            f"another {work} is running in folder '{folder}'; wait for it or choose another folder"
        ) from error
    except OSError:  # a file system without locks
        os.close(handle)
        return None
    return handle


def in_use(folder: Path) -> bool:
    """Return True if another process works in a folder and has locked it."""
    try:
        _unlock_folder(_lock_folder(folder, "work"))
    except FileExistsError:
        return True
    except OSError:  # no such folder
        return False
    return False


def _unlock_folder(handle: int | None) -> None:
    """Release the lock of a folder by closing its handle; do nothing for None."""
    if handle is not None:
        os.close(handle)
