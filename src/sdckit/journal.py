"""Finished work, kept as it goes: a file of equal records, each complete or not there."""

from __future__ import annotations

import os
import zlib
from threading import Lock
from typing import TYPE_CHECKING, Self

import numpy as np

from sdckit import outputs

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from sdckit.compiled import Floats


class Journal:
    """Arrays of one length under 64-bit keys; with `append`, what is there is not read.

    Each is appended by one call to the system: whoever stops this process, however rudely, loses
    none that was added. A record torn by a full disk is found by its check sum and cut off.
    """

    def __init__(self, path: Path, length: int, *, append: bool = False) -> None:
        self.path = path
        self.kind = np.dtype([("key", "<u8"), ("values", "<f8", (length,)), ("check", "<u4")])
        self.found: dict[int, Floats] = {}
        self._lock = Lock()
        with outputs.refusals(path):
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            if not append:
                self._read()

    def _read(self) -> None:
        """Take what is there, up to the first record that is not whole; cut off the rest."""
        data = self.path.read_bytes()
        whole = 0
        for record in np.frombuffer(data, self.kind, count=len(data) // self.kind.itemsize):
            if record["check"] != _check(int(record["key"]), record["values"]):
                break
            self.found[int(record["key"])] = record["values"]
            whole += 1
        if whole * self.kind.itemsize < len(data):
            os.ftruncate(self._file, whole * self.kind.itemsize)

    def add(self, key: int, values: Floats) -> None:
        """Keep one array; safe in threads."""
        record = np.zeros((), self.kind)
        record["key"], record["values"], record["check"] = key, values, _check(key, values)
        data = record.tobytes()
        with self._lock, outputs.refusals(self.path):
            if os.write(self._file, data) < len(data):
                raise OSError(f"could not write '{self.path}': no space left; free some and continue")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)


def _check(key: int, values: Floats) -> int:
    return zlib.crc32(key.to_bytes(8, "little") + np.ascontiguousarray(values, "<f8").tobytes())
