"""Messages on their way to buckets: in memory up to a limit, beyond it in files of a folder that vanishes."""

from __future__ import annotations

import errno
import shutil
import signal
import sys
import tempfile
import threading
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sdckit.engines.packing import Letter, messages_in_order, pack, unpack
from sdckit.engines.sizes import return_freed_memory
from sdckit.io.memory import memory_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sdckit.engines.transport import Message
    from sdckit.io.atomic import AnyPath

WRITE_BYTES = 1 << 20  # smaller messages are written together
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


class SpillFolder:
    """A private folder inside `scratch`, made when it is first needed and removed after the `with` block."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self._made: Path | None = None
        self._lock = threading.Lock()

    @property
    def path(self) -> Path:
        """The folder, which is made now if it does not exist."""
        with self._lock:
            if self._made is None:
                self._made = Path(tempfile.mkdtemp(prefix="sdckit-", dir=self.scratch))
        return self._made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)


class MessageStore:
    """Messages for the buckets of one stage, added by any thread and taken bucket by bucket.

    Messages are held in memory up to `limit` bytes; then all of them are appended to one file a bucket.
    """

    def __init__(self, folder: SpillFolder, name: str, limit: int) -> None:
        self.folder, self.name, self.limit = folder, name, limit
        self.sizes: dict[int, int] = defaultdict(int)  # bytes of each bucket's messages
        self.rows: dict[int, int] = defaultdict(int)  # length of the longest array of each message, added up
        self.senders, self.finished = 1, 0  # blocks or buckets that add messages; those that did
        self._held: dict[int, list[bytearray]] = defaultdict(list)
        self._held_bytes = 0
        self.written: bool = False  # whether messages were written to files
        self._lock = threading.Lock()

    @property
    def buckets(self) -> list[int]:
        """Numbers of the buckets that messages were added for."""
        return sorted(self.sizes)

    def add(self, origin: int, messages: Iterable[Message]) -> None:
        """Add the messages of a block or bucket."""
        for place, message in enumerate(messages):
            packed = pack(Letter(origin, place, message))
            with self._lock:
                self.sizes[message.bucket] += len(packed)
                self.rows[message.bucket] += max((len(array) for array in message.arrays), default=0)
                self._held[message.bucket].append(packed)
                self._held_bytes += len(packed)
                if self._held_bytes > self.limit:
                    self._write()
        with self._lock:
            self.finished += 1

    def take(self, bucket: int) -> list[Message]:
        """Return the messages of a bucket in the order of their origin, and forget them."""
        with self._lock:
            held = self._held.pop(bucket, [])
            self._held_bytes -= sum(map(len, held))
        letters = [letter for packed in held for letter in unpack(packed)]
        file = self._file(bucket) if self.written else None
        if file is not None and file.exists():
            letters += unpack(np.fromfile(file, np.uint8))
            file.unlink()  # its space is needed by the next stage
        return messages_in_order(letters)

    def _file(self, bucket: int) -> Path:
        """Return the path of the file of a bucket."""
        return self.folder.path / f"{self.name}-{bucket}"

    def _write(self) -> None:
        """Append all messages that are held in memory to the files of their buckets."""
        self.written = True
        try:
            for bucket, packed in self._held.items():
                with self._file(bucket).open("ab", buffering=WRITE_BYTES) as file:
                    file.writelines(packed)
        except OSError as error:
            raise self._write_error(error) from error
        self._held.clear()
        self._held_bytes = 0
        return_freed_memory()  # else stages would come on top of it

    def _write_error(self, error: OSError) -> OSError:
        """Return a one-line error for a full disk, with the space that is needed; other errors unchanged."""
        if error.errno not in FULL:
            return error
        needed = sum(self.sizes.values()) * self.senders / max(self.finished, 1)
        reason = (error.strerror or "no space left").lower()
        return OSError(
            f"could not write intermediate files to '{self.folder.scratch}': {reason}; about "
            f"{memory_text(needed)} are needed: free some space or name another folder with scratch="
        )


def checked_scratch(scratch: AnyPath | None) -> Path:
    """Return the folder for intermediate files, the system's by default; raise OSError if unusable."""
    folder = Path(tempfile.gettempdir() if scratch is None else scratch)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"no folder '{folder}' for intermediate files; create it or name another with scratch="
        )
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise type(error)(
            f"cannot write to the folder '{folder}' for intermediate files: {reason}; "
            "name another with scratch="
        ) from error
    return folder


@contextmanager
def exit_when_terminated() -> Iterator[None]:
    """Let SIGTERM end the program as Ctrl-C does inside the `with`, so that files are removed.

    Handlers that the program has set itself stay, and only the main thread can set one.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def leave(number: int, _frame: Any) -> None:
        """End the program with the exit code of a signal."""
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
