"""File of finished runs: records of equal length; records already appended survive a kill."""

from __future__ import annotations

import os
import zlib
from threading import Lock
from typing import TYPE_CHECKING, Self

import numpy as np

from sdckit.io import atomic

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from sdckit.kernels.jit import Floats


class Checkpoint:
    """Arrays of one length by 64-bit key; with `append`, existing records are not read.

    Each is appended by one call to the system, so that records already appended survive a kill. A check
    sum finds records that a full disk or a flipped bit has damaged; the others count.
    """

    def __init__(self, path: Path, length: int, *, append: bool = False) -> None:
        self.path = path
        self.kind = np.dtype([("key", "<u8"), ("values", "<f8", (length,)), ("check", "<u4")])
        self.kept: dict[int, Floats] = {}
        self._lock = Lock()
        with atomic.explain_write_errors(path):
            binary = getattr(os, "O_BINARY", 0)  # where line ends are translated otherwise
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | binary, 0o600)
            if not append:
                self._read()

    def _read(self) -> None:
        """Read every complete record, wherever it begins; cut off an incomplete last one."""
        data, size = self.path.read_bytes(), self.kind.itemsize
        place = end = 0
        while place + size <= len(data):
            record = np.frombuffer(data, self.kind, count=1, offset=place)[0]
            if record["check"] == _check(int(record["key"]), record["values"]):
                self.kept[int(record["key"])] = record["values"]
                place = end = place + size
            else:
                place += 1
        if end < len(data):
            os.ftruncate(self._file, end)

    def add(self, key: int, values: Floats) -> None:
        """Append one array; safe in threads."""
        record = np.zeros((), self.kind)
        record["key"], record["values"], record["check"] = key, values, _check(key, values)
        data = record.tobytes()
        with self._lock, atomic.explain_write_errors(self.path):
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
