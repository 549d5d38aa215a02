"""The private folder of a sweep: its finished runs and its seed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sdckit.core import randomness
from sdckit.io import atomic
from sdckit.selection.checkpoint import Checkpoint

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from types import TracebackType

PLAN, CELLS, README = "sweep.json", "cells.bin", "private.txt"
WARNING = """\
Private: sweep.json holds the seed of this sweep, and with a seed a masking can be undone.
cells.bin holds the measured cells, so that the same command goes on where it was stopped.
Delete this folder when the sweep is done, and publish neither file.
"""


class SweepFolder:
    """Open a new folder, or resume the same sweep in one; `overwrite` starts it anew."""

    def __init__(
        self,
        folder: atomic.AnyPath,
        identity: dict[str, Any],
        rng: Any,
        length: int,
        *,
        overwrite: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self._check()
        randomness.generator(rng)
        with atomic.explain_write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.folder)
        try:
            goes_on = (self.folder / PLAN).exists() and not overwrite
            self.entropy = self._go_on(identity, rng) if goes_on else self._begin(identity, rng)
            self.checkpoint = Checkpoint(self.folder / CELLS, length)
        except BaseException:
            _unlock(self._lock)
            raise

    def _check(self) -> None:
        """Accept a new folder, that of a sweep, or what a kill left of a sweep's first steps."""
        if self.folder.exists() and not self.folder.is_dir():
            raise FileExistsError(f"'{self.folder}' is a file; name a folder for the sweep")
        known = (self.folder / PLAN).exists() or not self.folder.is_dir()
        if not known and any(
            not file.name.startswith((README, ".sdckit-")) for file in self.folder.iterdir()
        ):
            raise FileExistsError(f"folder '{self.folder}' holds other files; choose another one")

    def _begin(self, identity: dict[str, Any], rng: Any) -> int:
        entropy = randomness.entropy_of(rng)
        content = {"identity": identity, "entropy": str(entropy)}
        with atomic.explain_write_errors(self.folder):
            self.folder.chmod(0o700)
            (self.folder / CELLS).unlink(missing_ok=True)
        for name, text in ((README, WARNING), (PLAN, json.dumps(content, indent=1))):
            with atomic.atomic(self.folder / name, overwrite=True) as draft:
                draft.write_text(text, encoding="utf-8")
            (self.folder / name).chmod(0o600)
        return entropy

    def _go_on(self, identity: dict[str, Any], rng: Any) -> int:
        try:
            content = json.loads((self.folder / PLAN).read_text(encoding="utf-8"))
            before, entropy = {**content["identity"]}, int(content["entropy"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"'{self.folder / PLAN}' is damaged; choose another folder") from error
        other = [name for name in identity if before.get(name) != identity[name]]
        if rng is not None and randomness.entropy_of(rng) != entropy:
            other.append("seed")
        if other:
            raise ValueError(
                f"folder '{self.folder}' holds another sweep (different: {', '.join(other)}); "
                "choose another folder or overwrite it (overwrite=True)"
            )
        return entropy

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.checkpoint.__exit__(kind, error, trace)
        _unlock(self._lock)


def _locked(folder: Path) -> int | None:
    """Lock the folder against other sweeps until this one ends; None where locks are not supported."""
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise FileExistsError(
            f"another sweep is running in folder '{folder}'; wait for it or choose another folder"
        ) from error
    except OSError:  # a file system without locks
        os.close(handle)
        return None
    return handle


def _unlock(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)
