"""File of finished runs: records of equal length, each of which survives a kill once appended."""

from __future__ import annotations

import os
import time
import zlib
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Self

import numpy as np

from sdckit.io import atomic
from sdckit.io.atomic import BINARY, sync_folder

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from sdckit.arrays import Floats

SYNC_AFTER = 1.0  # seconds from one sync of the file to the next


class Checkpoint:
    """File of arrays of one length, each under a 64-bit key; with `append`, its records are not read.

    Each array is appended by one system call, so that it survives a kill. Records whose checksum is wrong,
    after a full disk or a flipped bit, are ignored. The file is synced when it is opened and closed, and by
    an array that is added a second or more after the last sync, so that a power cut costs a second's work.
    """

    def __init__(self, path: Path, length: int, *, append: bool = False) -> None:
        self.path = path
        self.kind: np.dtype[np.void] = _record_type(length)
        self.records: dict[int, Floats] = {}
        self._lock = Lock()
        with atomic.explain_write_errors(path):
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | BINARY, 0o600)
            if not append:
                self._read_records()
            self._sync()
            sync_folder(path.parent)

    def _sync(self) -> None:
        """Let the file survive a power cut; costs 5 ms on a common disk, hence not for every array."""
        os.fsync(self._file)
        self._synced = time.monotonic()

    def _read_records(self) -> None:
        """Read every complete record of the file into `records`; cut off an incomplete last one."""
        data = self.path.read_bytes()
        self.records, end = _records_in(data, self.kind)
        if end < len(data):
            os.ftruncate(self._file, end)

    def add(self, key: int, values: Floats) -> None:
        """Append one array under its key to the file; safe in threads."""
        record = np.zeros((), self.kind)
        record["key"], record["values"], record["check"] = key, values, _checksum(key, values)
        data = record.tobytes()
        with self._lock, atomic.explain_write_errors(self.path):
            if os.write(self._file, data) < len(data):
                raise OSError(f"could not write '{self.path}': no space left; free some and continue")
            if time.monotonic() - self._synced >= SYNC_AFTER:
                self._sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._sync()
        os.close(self._file)


def read_records(path: Path, length: int) -> dict[int, Floats]:
    """Return the arrays of a file by key, which another process may be appending to; none without a file."""
    try:
        return _records_in(path.read_bytes(), _record_type(length))[0]
    except FileNotFoundError:
        return {}


def _record_type(length: int) -> np.dtype[np.void]:
    """Return the type of a record: key, values and checksum."""
    return np.dtype([("key", "<u8"), ("values", "<f8", (length,)), ("check", "<u4")])


def _records_in(data: bytes, kind: np.dtype[np.void]) -> tuple[dict[int, Floats], int]:
    """Return the values of all complete records by key, and the place where the last of them ends."""
    found: dict[int, Floats] = {}
    place = end = 0
    while place + kind.itemsize <= len(data):
        record = np.frombuffer(data, kind, count=1, offset=place)[0]
        if record["check"] == _checksum(int(record["key"]), record["values"]):
            found[int(record["key"])] = record["values"]
            place = end = place + kind.itemsize
        else:
            place += 1
    return found, end


def _checksum(key: int, values: Floats) -> int:
    """Return the CRC-32 of a record's key and values."""
    return zlib.crc32(key.to_bytes(8, "little") + np.ascontiguousarray(values, "<f8").tobytes())
