"""Run settings on several processes, and keep what was measured."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
import zlib
from collections import deque
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from sdckit.core import randomness
from sdckit.core.process_group import NEW_GROUP
from sdckit.io import atomic
from sdckit.io.atomic import BINARY, checksum, sweep_drafts, sync_folder
from sdckit.kernels.jit import CLOCK
from sdckit.progress import STOPPING, track

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.arrays import Floats
    from sdckit.selection.plan import Run
    from sdckit.selection.task import Task


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


SYNC_AFTER = 1.0  # seconds from one sync of the file to the next
START = "from sdckit.selection.runner import serve; serve()"  # the script of the caller needs no guard
GONE = (EOFError, pickle.UnpicklingError)  # the parent process ended, perhaps while it was writing
DIED = (*GONE, BrokenPipeError)  # the other process ended
PLAN, CELLS, README = "sweep.json", "cells.bin", "private.txt"
SEARCH_PLAN = "search.json"
WARNING = """\
Private: the .json file holds the seed of the draws, and with a seed a masking can be undone.
cells.bin holds the measured values, so that the same command resumes where it was stopped.
Delete this folder when the work is done, and publish none of its files.
"""


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

    def __exit__(self, *error: object) -> None:
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


class Work(NamedTuple):
    """A kind of work that keeps its finished runs in a folder."""

    name: str
    plan: str  # name of the file that holds seed and identity
    remedy: str  # against the folder of other work


SWEEP = Work("sweep", PLAN, "overwrite it (overwrite=True)")
SEARCH = Work("search", SEARCH_PLAN, "delete this one")


@contextmanager
def opened(
    work: Work,
    place: atomic.AnyPath | None,
    identity: dict[str, Any],
    rng: Any,
    length: int,
    *,
    overwrite: bool = False,
) -> Iterator[tuple[int, Checkpoint | None]]:
    """Create the folder of a sweep or search, or open it to resume the same one; `overwrite` begins anew.

    Yield its seed and its finished runs; without a folder, none are kept.
    """
    if place is None:
        yield randomness.entropy_of(rng), None
        return
    folder = Path(place)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"'{folder}' is a file; name a folder for the {work.name}")
    others = () if not folder.is_dir() or (folder / work.plan).exists() else folder.iterdir()
    if any(not file.name.startswith((README, ".sdckit-")) for file in others):
        raise FileExistsError(f"folder '{folder}' holds other files; choose another one")
    randomness.generator(rng)  # raises an error for what is no seed, before anything is written
    with atomic.explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder, work.name):
        sweep_drafts(folder)
        resumes = (folder / work.plan).exists() and not overwrite
        entropy = (_stored_seed if resumes else _begin)(work, folder, identity, rng)
        with Checkpoint(folder / CELLS, length) as checkpoint:
            yield entropy, checkpoint


def _begin(work: Work, folder: Path, identity: dict[str, Any], rng: Any) -> int:
    """Write the seed and the identity of the work into the folder, delete old runs; return the seed."""
    entropy = randomness.entropy_of(rng)
    content = {"identity": identity, "entropy": str(entropy)}
    content["checksum"] = checksum(content)
    with atomic.explain_write_errors(folder):
        folder.chmod(0o700)
        (folder / CELLS).unlink(missing_ok=True)
    for name, text in ((README, WARNING), (work.plan, json.dumps(content, indent=1))):
        with atomic.atomic(folder / name, overwrite=True, private=True) as draft:
            draft.write_text(text, encoding="utf-8")
    return entropy


def _stored_seed(work: Work, folder: Path, identity: dict[str, Any], rng: Any) -> int:
    """Return the stored seed; raise ValueError if the folder holds other work."""
    try:
        content = json.loads((folder / work.plan).read_text(encoding="utf-8"))
        stated = content.pop("checksum")
        before, entropy = {**content["identity"]}, int(content["entropy"])
        if stated != checksum(content):
            raise ValueError("wrong checksum")  # noqa: TRY301 - as for other damage
    except (AttributeError, RecursionError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"'{folder / work.plan}' is damaged; choose another folder") from error
    other = [name for name in before | identity if before.get(name) != identity.get(name)]
    if rng is not None and randomness.entropy_of(rng) != entropy:
        other.append("seed")
    if other:
        raise ValueError(
            f"folder '{folder}' holds another {work.name} (different: {', '.join(other)}); "
            f"choose another folder or {work.remedy}"
        )
    return entropy


def kept_runs(work: Work, place: atomic.AnyPath, identity: dict[str, Any], length: int) -> dict[int, Floats]:
    """Return the finished runs of a folder by key, which another process may be adding to.

    The folder is neither locked nor changed. There are no runs before it is there; ValueError is raised if it
    holds other work.
    """
    folder = Path(place)
    if not (folder / work.plan).exists():
        return {}
    _stored_seed(work, folder, identity, None)
    return read_records(folder / CELLS, length)


@contextmanager
def _locked(folder: Path, work: str) -> Iterator[None]:
    """Lock the folder against other processes, where locks are supported."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FileExistsError(
                f"another {work} is running in folder '{folder}'; wait for it or choose another folder"
            ) from error
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(handle)


def in_use(folder: Path) -> bool:
    """Return True if another process works in a folder and has locked it."""
    try:
        with _locked(folder, "work"):
            return False
    except FileExistsError:
        return True
    except OSError:  # no such folder
        return False


class Worker:
    """Handle of a worker process: starts it, sends it runs through a pipe, and reads the measured numbers."""

    def __init__(self, task: Task, entropy: int, checkpoint: Path | None) -> None:
        paths = os.pathsep.join(path for path in sys.path if path)
        self.process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-P", "-c", START],  # -P: import nothing from here
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": paths},
            start_new_session=True,  # Ctrl-C reaches the caller only
            creationflags=NEW_GROUP,
        )
        self._unsent: list[object] = [(task.without_table(), entropy, checkpoint)]

    def measure(self, runs: Sequence[Run]) -> list[Floats]:
        """Send runs to the process; return one array of numbers per run, already added to the checkpoint."""
        questions, answers = self.process.stdin, self.process.stdout
        assert questions is not None and answers is not None  # noqa: S101, PT018 - they are pipes
        self._unsent.append(runs)
        while self._unsent:
            pickle.dump(self._unsent.pop(0), questions)
        questions.flush()
        answer = pickle.load(answers)  # noqa: S301 - our own process
        if isinstance(answer, Exception):
            raise answer
        found: list[Floats] = answer
        return found

    def end(self) -> None:
        """Close the input of the process, which ends it, and wait for that."""
        with suppress(OSError, ValueError):
            self.process.communicate()
        self.process.wait()


class WorkerPool:
    """Worker processes, kept for the next runs of the same task; all end with the `with` block."""

    def __init__(self) -> None:
        self.idle: list[Worker] = []
        self._all: list[Worker] = []

    def take(self, task: Task, entropy: int, checkpoint: Path | None) -> Worker | None:
        """Return an idle process, or a new one; None if the system starts no more processes."""
        with suppress(IndexError):
            return self.idle.pop()
        with suppress(OSError):
            worker = Worker(task, entropy, checkpoint)
            self._all.append(worker)
            return worker
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._all:
            worker.end()


def serve() -> None:
    """Run a worker process: read pickled runs from standard input and write their numbers until it ends."""
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # keep what libraries print out of the answers
    try:
        task, entropy, path = pickle.load(questions)  # noqa: S301 - from our parent process
    except GONE:
        return
    keep: Any = Checkpoint(path, task.length, append=True) if path else nullcontext()
    with keep as checkpoint:
        while True:
            try:
                runs = pickle.load(questions)  # noqa: S301
            except GONE:
                return
            answer: list[Floats] | Exception
            try:
                answer = [task.measure_and_record(run, entropy, checkpoint) for run in runs]
            except Exception as error:  # noqa: BLE001 - raised again by the caller
                answer = error
            with suppress(BrokenPipeError):
                pickle.dump(answer, answers)
                answers.flush()


PROGRESS_INTERVAL = 0.1  # seconds between two reports of progress
THREADS_FROM = 500_000  # cells of a file from which on threads are faster than processes
CELLS_AT_ONCE = 8_000_000  # of files measured at the same time: a million takes up to 0.6 GB of memory
WARM_UP = 0.5  # seconds of work before the first estimate of the seconds per run
WORKER_PAYS_FROM = 3.0  # seconds of work left that make a new process worth its start
BATCH_SECONDS = 0.05  # seconds of work that are sent to another process at a time


def run_all(
    task: Task,
    runs: Sequence[Run],
    entropy: int,
    workers: int,
    checkpoint: Checkpoint | None,
    pool: WorkerPool,
) -> Floats:
    """Measure all runs that the checkpoint does not hold; return one row of numbers per run.

    The random stream depends on the run alone, so that neither the order nor the number of workers changes
    a result. Worker processes come from a pool and stay in it.
    """
    found = np.empty((len(runs), task.length))
    known = {} if checkpoint is None else checkpoint.records
    pending = deque(place for place, run in enumerate(runs) if run.key not in known)
    for place, run in enumerate(runs):
        if run.key in known:
            found[place] = known[run.key]
    runner = Runner(task, runs, entropy, checkpoint, pending, found, pool)
    todo = len(pending)
    workers = min(workers, max(1, CELLS_AT_ONCE // max(task.original.values.size, 1)))
    # On large files compiled code, which releases Python's lock, takes most of the time: threads do.
    apart = task.original.values.size < THREADS_FROM
    with track("sweeping", todo) as report, _forgotten_stop(), ThreadPoolExecutor(workers) as threads:
        try:  # an interrupt while threads are started must stop them, too
            working = [threads.submit(runner.measure_here) for _ in range(1 if apart else workers)]
            while True:
                more = workers - len(working)
                more = more if runner.processes_pay() else min(more, len(pool.idle), len(pending))
                working += [threads.submit(runner.measure_in_worker) for _ in range(more)]
                if _all_done_or_failed(working):
                    break
                report(todo - len(pending))
            report(todo - len(pending))
        except KeyboardInterrupt:
            STOPPING.set()  # long runs stop before their next part
            raise
        finally:
            runner.stop.set()  # after Ctrl-C or an error each thread finishes its current run
        wait(working)
        for thread in working:
            thread.result()
    return found


@contextmanager
def _forgotten_stop() -> Iterator[None]:
    """Forget after the `with` block, when its threads have ended, that they were to leave their work."""
    try:
        yield
    finally:
        STOPPING.clear()


def _working_time() -> float:
    """Return the seconds of CPU that this process has used, compiling kernels left out.

    CPU seconds, since a second process does not pay off because others keep the machine busy.
    """
    return time.process_time() - CLOCK.seconds


@dataclass
class Runner:
    """Queue of pending runs, the array that takes their numbers, and the methods that measure them."""

    task: Task
    runs: Sequence[Run]
    entropy: int
    checkpoint: Checkpoint | None
    pending: deque[int]
    found: Floats
    pool: WorkerPool
    stop: Event = field(default_factory=Event)
    lock: Lock = field(default_factory=Lock)
    begun: float = field(default_factory=_working_time)
    compiled: float = field(default_factory=lambda: CLOCK.seconds)  # seconds of compiling before the start
    done: int = 0

    def take_pending(self, most: int) -> list[int]:
        """Remove and return the positions of the next pending runs; none once the sweep was stopped."""
        with self.lock:
            most = 0 if self.stop.is_set() else min(most, len(self.pending))
            return [self.pending.popleft() for _ in range(most)]

    def measure_here(self) -> None:
        """Measure pending runs one after the other in this process until none is left."""
        while positions := self.take_pending(1):
            run = self.runs[positions[0]]
            self.found[positions[0]] = self.task.measure_and_record(run, self.entropy, self.checkpoint)
            self.done += 1

    def measure_in_worker(self) -> None:
        """Measure pending runs in another process until none is left; here if that process ends too early."""
        positions: list[int] = []
        try:
            path = self.checkpoint.path if self.checkpoint else None
            worker = self.pool.take(self.task, self.entropy, path)
            if worker is None:
                return
            while positions := self.take_pending(
                max(1, int(BATCH_SECONDS / self.seconds_per_run())) if self.done else 1
            ):
                self.found[positions] = worker.measure([self.runs[place] for place in positions])
                self.done += len(positions)
            self.pool.idle.append(worker)
        except DIED:
            self.pending.extend(positions)
            self.measure_here()

    def processes_pay(self) -> bool:
        """Return True if so much work is left that new processes save time.

        If kernels had to be compiled so far, the next methods will need others, which a new process would
        compile as well: the time saved must be larger than that.
        """
        worth = WORKER_PAYS_FROM + CLOCK.seconds - self.compiled
        warm = _working_time() - self.begun >= WARM_UP and not CLOCK.depth  # nothing is being compiled
        return warm and len(self.pending) * self.seconds_per_run() >= worth

    def seconds_per_run(self) -> float:
        """Return the estimated seconds of work per run, compiling left out."""
        return max(_working_time() - self.begun, 1e-9) / max(self.done, 1)


def _all_done_or_failed(threads: list[Future[None]]) -> bool:
    """Wait a tenth of a second; return True if all threads are done or one has failed."""
    done, others = wait(threads, PROGRESS_INTERVAL, FIRST_EXCEPTION)
    return not others or any(thread.exception() for thread in done)
