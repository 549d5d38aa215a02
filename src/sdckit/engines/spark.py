"""Tasks on a Spark cluster."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
import warnings
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit import progress
from sdckit.engines import spark_worker
from sdckit.engines.files import find_files, require_packages
from sdckit.engines.source import Source
from sdckit.engines.spark_worker import RESULTS, SQL_SCHEMA, InWorker, error_in, facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark import SparkContext, StatusTracker
    from pyspark.sql import Column, DataFrame, SparkSession

    from sdckit.engines.transport import Block, First, Last, Reads, Stage


LOOKED = 0.2  # seconds between two looks at the job
WATCHED = 1.0  # seconds between two questions to Spark, which cost it time
CANCELLED = 150  # looks until a job that does not end is left alone
IDLE = 100  # looks until it is said that nothing runs


class Job:
    """Collects small results in a thread, so that it can be watched and cancelled.

    `tasks` is the number of its tasks; without it, those that Spark knows of.
    """

    def __init__(self, context: SparkContext, collect: Callable[[], list[Any]], tasks: int = 0) -> None:
        self.context, self.collect, self.tasks = context, collect, tasks
        self.group: str = f"sdckit-{uuid.uuid4()}"
        self.rows: list[Any] = []
        self.error: Exception | None = None
        self.done: float = 0.0  # share of the tasks
        self.busy: bool = False

    def run(self, step: str) -> list[Any]:
        """Return what is collected and show how many tasks are done; cancel the job at Ctrl-C."""
        from pyspark import InheritableThread  # noqa: PLC0415 - an optional package

        job = InheritableThread(target=self._collect, daemon=True)
        watch = InheritableThread(target=self._watch, args=(job,), daemon=True)
        job.start()
        watch.start()
        try:
            with progress.track(step, 1.0) as report:
                for look in count():
                    job.join(LOOKED)
                    report(self.done)
                    if not job.is_alive():
                        break
                    if look == IDLE and not self.busy:
                        progress.print_notice("waiting for Spark: no worker has a free core so far")
        except BaseException:
            self._cancel(job)
            raise
        watch.join()
        if self.error is not None:
            raise _described(self.error) from self.error
        return self.rows

    def _collect(self) -> None:
        """Run the job and keep its rows or its error."""
        try:
            self.context.setJobGroup(self.group, "sdckit", interruptOnCancel=True)
            self.rows = self.collect()
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits
            self.error = error

    def _watch(self, job: Any) -> None:
        """Keep the share of tasks done, which never falls: tasks of a lost worker run once more."""
        with suppress(Exception):  # without a connection to Java, the job says why
            while job.is_alive():
                self._look(self.context.statusTracker())
                job.join(WATCHED)

    def _look(self, tracker: StatusTracker) -> None:
        """Look once at the tasks that run and those that are done."""
        jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(self.group)))
        stages = {stage for found in jobs for stage in found.stageIds}
        known = list(filter(None, map(tracker.getStageInfo, stages)))
        total = self.tasks or sum(stage.numTasks for stage in known)
        done = sum(stage.numCompletedTasks for stage in known)
        self.busy = self.busy or done > 0 or any(stage.numActiveTasks for stage in known)
        self.done = max(self.done, min(done / max(total, 1), 1.0))

    def _cancel(self, job: Any) -> None:
        """Cancel the job; from another thread, as this one may be in the middle of a call to Java."""
        from pyspark import InheritableThread  # noqa: PLC0415 - an optional package

        def ask() -> None:
            for _ in range(CANCELLED):  # more than once: a job may not have begun when it is cancelled
                self.context.cancelJobGroup(self.group)
                job.join(LOOKED)
                if not job.is_alive():
                    return

        asking = InheritableThread(target=ask, daemon=True)
        asking.start()
        asking.join()


def _described(error: Exception) -> Exception:
    """Return the error that a worker raised; else Spark's own, in one line."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return error_in(text) or RuntimeError(f"the Spark job failed: {lines[0] if lines else type(error)}")


JAVA = 17  # the lowest version that Spark 4 runs on
REACHED = 5.0  # seconds within which a master must answer
LOOPBACK = "127.0.0.1"
TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
MASTERS = r"local(\[[^]]+\])?|spark://.+|yarn|k8s://.+"

_checked: set[str] = set()  # applications whose workers have what they need


@contextmanager
def quiet() -> Iterator[None]:
    """Silence pyspark's one warning about new versions of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


@quiet()
def spark_session(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the active Spark session, or start one.

    Parameters
    ----------
    master
        Address of a cluster, such as `spark://host:7077`; without it, all cores of this machine.
    settings
        More of Spark's own settings for a session that is started here.

    Raises
    ------
    ImportError
        pyspark, pyarrow or pandas is not installed.
    OSError
        There is no Java, or the master cannot be reached.
    ValueError
        The master's address cannot be read, or a session with another master is running.
    """
    require_packages()
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an optional package

    running = SparkSession.getActiveSession()
    if running is not None:
        found = context_of(running).master
        if master not in {None, found}:
            raise ValueError(f"a Spark session with master {found} is running, not {master}; stop it first")
        return running
    master = master or "local[*]"
    _require_java()
    _require_master(master)
    return SparkSession(_start(master, settings or {}))


@quiet()
def own_session(session: SparkSession) -> SparkSession:
    """Return a session with SQL settings of its own, on the same workers, that leaves partitions alone."""
    own = session.newSession()
    own.conf.set("spark.sql.adaptive.enabled", "false")  # else it may merge partitions
    own.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    own.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(64 << 20))
    return own


def context_of(session: SparkSession) -> SparkContext:
    """Return the context of a session; raise TypeError for a session of Spark Connect, which has none."""
    try:
        return session.sparkContext
    except Exception as error:
        raise TypeError("sessions of Spark Connect cannot be used; give one with a master") from error


def require_workers(context: SparkContext) -> None:
    """Raise RuntimeError if a worker lacks this package or has other versions; asks once a session."""
    if context.applicationId in _checked:
        return
    count = max(context.defaultParallelism, 2)
    try:
        asked = context.parallelize(range(count), count).map(facts)
        found = set(Job(context, asked.collect).run("asking workers"))
    except RuntimeError as error:
        raise RuntimeError(_no_python(str(error.__cause__), context)) from error
    _, _, version, numpy = facts(None)
    remedy = f'install sdckit {version} there (pip install "sdckit[spark]") or set PYSPARK_PYTHON'
    for host, python, theirs, numpys in sorted(found, key=str):
        if theirs is None:
            raise RuntimeError(f"the worker's Python {python} at {host} has no sdckit; {remedy}")
        if (theirs, numpys) != (version, numpy):
            have, need = f"sdckit {theirs} and numpy {numpys}", f"sdckit {version} and numpy {numpy}"
            raise RuntimeError(f"the worker's Python {python} at {host} has {have}, not {need}; {remedy}")
    _checked.add(context.applicationId)


def _no_python(text: str, context: SparkContext) -> str:
    """Return one line about workers that ran no Python, from Spark's text about the failed job."""
    python = context.pythonExec
    versions = re.search(r"worker has different version: (\S+) than that in driver: ([\d.]+)", text)
    if versions:
        why = f"is version {versions[1]}, this one is {versions[2]}"
    elif "Cannot run program" in text:
        why = "cannot be started"
    else:
        lines = [line.strip() for line in text.splitlines() if re.match(r"\s*\w+(Error|Exception)\b", line)]
        why = f"fails ({lines[-1] if lines else text.splitlines()[0]})"
    return f"the workers' Python {python} {why}; set PYSPARK_PYTHON to one that has sdckit on every worker"


def _require_java() -> None:
    """Raise OSError if there is no Java, or one that is too old for Spark."""
    remedy = f"install Java {JAVA}, e.g. Debian's openjdk-{JAVA}-jre-headless"
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if path is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise OSError(f"Spark needs Java, and there is none {where}; {remedy}")
    said = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    found = re.search(r'version "(\d+)', said.stderr)
    if found is None or int(found[1]) < JAVA:
        have = f"is version {found[1]}" if found else "does not run"
        raise OSError(f"Spark needs Java {JAVA}, and {path} {have}; {remedy}")


def _require_master(master: str) -> None:
    """Raise an error if a master's address cannot be read or does not answer."""
    if not re.fullmatch(MASTERS, master):
        raise ValueError(f"master is {master!r}; give local[*], spark://host:port, yarn or k8s://...")
    if not master.startswith("spark://"):
        return
    failed = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        if not (host and port.isdigit()):
            raise ValueError(f"master is {master!r}; give spark://host:port")
        try:
            socket.create_connection((host, int(port)), REACHED).close()
        except (OSError, OverflowError) as error:
            failed.append(str(error))
        else:
            return
    raise OSError(f"no Spark master answers at {master} ({failed[0]}); check the address or start it")


def _start(master: str, settings: Mapping[str, str]) -> SparkContext:
    """Return a new context; what Spark says while it starts is shown only if it fails."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - an optional package
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    conf = SparkConf().setMaster(master).setAppName("sdckit")
    conf.setAll([*_settings(master).items(), *settings.items()])
    before = signal.getsignal(signal.SIGINT)
    with tempfile.TemporaryFile() as log, _spark_variables(master):
        try:
            gateway = launch_gateway(conf, {"stderr": log})  # type: ignore[no-untyped-call]
            context = SparkContext(conf=conf, gateway=gateway)
        except Exception as error:
            log.seek(0)
            raise OSError(f"Spark does not start: {_reason(error, log.read())}") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)  # jobs are cancelled where they are waited for
    context.setLogLevel("ERROR")
    return context


def _reason(error: Exception, log: bytes) -> str:
    """Return in one line why Spark did not start, from its error or else from what it said last."""
    java = getattr(error, "java_exception", None)
    if java is not None:
        return str(java.getMessage()).splitlines()[0]
    said = [
        line for line in log.decode(errors="replace").splitlines() if "rror" in line or "xception" in line
    ]
    return said[-1].strip() if said else str(error).splitlines()[0]


def _settings(master: str) -> dict[str, str]:
    """Return the settings of a session that is started here."""
    found = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.python.worker.reuse": "true",
        "spark.executorEnv.POLARS_MAX_THREADS": "1",  # a task has one core
    }
    if _on_loopback(master):
        found |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return found


def _on_loopback(master: str) -> bool:
    """Return True for a master within this machine."""
    return bool(re.match(r"local\b|spark://(127\.\d+\.\d+\.\d+|localhost)\b", master))


@contextmanager
def _spark_variables(master: str) -> Iterator[None]:
    """Set variables that Spark reads, where the user has not, while the `with` block runs."""
    wanted: dict[str, Any] = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if _on_loopback(master):
        wanted["SPARK_LOCAL_IP"] = LOOPBACK
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def aligned_source(
    original: DataFrame, masked: DataFrame | None, key: str | None, scratch: str | Path
) -> Source:
    """Write DataFrames as Parquet files whose rows correspond, and return their source.

    Parameters
    ----------
    original, masked
        The data, and optionally their masked version, joined by the key.
    key
        Column that names each record; needed with two DataFrames, whose rows have no order.
    scratch
        Folder that this machine and all workers find under the same path; the caller removes it.

    Raises
    ------
    ValueError
        There is no key, it does not name records one by one, or there are no rows.
    OSError
        A worker cannot write to the folder, or this machine cannot see what it wrote.
    """
    if "://" in str(scratch):
        raise ValueError(f"scratch is {scratch}; name a folder that all workers see, such as /mnt/shared/tmp")
    if masked is not None and key is None:
        raise ValueError("rows of two Spark DataFrames have no order; name the column of records with key=")
    require_workers(context_of(original.sparkSession))
    frames = (original,) if masked is None or key is None else _joined(original, masked, key)
    folders = [Path(scratch, side) for side in ("original", "masked")]
    for frame, folder in zip(frames, folders, strict=False):
        _write(frame, folder)
    return Source.of(folders[0], None if masked is None else folders[1])


@quiet()
def _write(frame: DataFrame, folder: Path) -> None:
    """Write a frame as a folder of Parquet files; raise an error if it is empty or out of sight."""
    from pyspark.sql import Observation  # noqa: PLC0415 - an optional package
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    counted, settings = Observation(), frame.sparkSession.conf
    observed = frame.observe(counted, F.count(F.lit(1)).alias("rows"))
    kind = settings.get(TIMESTAMPS)

    def write() -> list[Any]:
        """Write the frame; nothing is collected."""
        observed.write.parquet(folder.absolute().as_uri())
        return []

    settings.set(TIMESTAMPS, "TIMESTAMP_MICROS")  # not of 96 bits, which Parquet no longer has
    try:
        Job(context_of(frame.sparkSession), write).run("writing Parquet files")
    finally:
        settings.set(TIMESTAMPS, str(kind))
    rows = counted.get["rows"]
    seen = find_files(folder).rows if any(folder.glob("*.parquet")) else 0
    if not rows:
        raise ValueError("the Spark DataFrame has no rows")
    if seen != rows:
        raise OSError(
            f"workers wrote {rows:,} rows into '{folder}', and {seen:,} are seen from here; "
            "name a folder that all share"
        )


def frame_of(session: SparkSession, folder: str | Path) -> DataFrame:
    """Return the Parquet files of a folder as a Spark DataFrame."""
    return session.read.parquet(Path(folder).absolute().as_uri())


def _joined(original: DataFrame, masked: DataFrame, key: str) -> tuple[DataFrame, DataFrame]:
    """Return both frames with corresponding rows, in an order that a second run finds as well."""
    for name, frame in (("original", original), ("masked", masked)):
        if key not in frame.columns:
            raise ValueError(f"the {name} DataFrame has no column {key!r}; name one that both have with key=")
    # Columns are named by place, since both frames have the same names.
    left, right = (
        frame.toDF(*(f"{letter}{place}" for place in range(len(frame.columns))))
        for letter, frame in (("o", original), ("m", masked))
    )
    ours = left[f"o{original.columns.index(key)}"]
    theirs = right[f"m{masked.columns.index(key)}"]
    _require_keys(left.select(ours.alias("key")), right.select(theirs.alias("key")), key)
    count = int(str(original.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    # A number of partitions that is asked for is kept by Spark, also where it adapts plans to sizes.
    left, right = left.repartition(count, ours), right.repartition(count, theirs)
    both = left.join(right, ours == theirs).sortWithinPartitions(ours)
    return (
        both.select(*left.columns).toDF(*original.columns),
        both.select(*right.columns).toDF(*masked.columns),
    )


def _require_keys(ours: DataFrame, theirs: DataFrame, key: str) -> None:
    """Raise ValueError if a key is missing, stands in several records, or in one of the frames only."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - an optional package

    kinds = [frame.schema["key"].dataType.simpleString() for frame in (ours, theirs)]
    if kinds[0] != kinds[1]:
        raise ValueError(f"key {key!r} is {kinds[0]} in the original and {kinds[1]} in the masked data")

    def side(frame: DataFrame, of_ours: int) -> DataFrame:
        """Return keys with the number of records they stand for on each side."""
        return frame.select("key", F.lit(of_ours).alias("ours"), F.lit(1 - of_ours).alias("theirs"))

    def count(what: Column) -> Column:
        """Return the number of keys for which something is true."""
        return F.coalesce(F.sum(what.cast("long")), F.lit(0))

    keys = side(ours, 1).unionAll(side(theirs, 0)).groupBy("key").agg(F.sum("ours"), F.sum("theirs"))
    keys = keys.toDF("key", "ours", "theirs")
    present = keys["key"].isNotNull()
    facts = {
        "records without a key": F.coalesce(F.sum(F.when(~present, keys["ours"] + keys["theirs"])), F.lit(0)),
        "keys of several records": count(present & ((keys["ours"] > 1) | (keys["theirs"] > 1))),
        "keys in the original only": count(present & (keys["theirs"] == 0)),
        "keys in the masked data only": count(present & (keys["ours"] == 0)),
    }
    (found,) = Job(context_of(ours.sparkSession), keys.agg(*facts.values()).collect).run("matching keys")
    wrong = [f"{number} {fact}" for fact, number in zip(facts, found, strict=True) if number]
    if wrong:
        raise ValueError(f"key {key!r} does not match records one by one: {', '.join(wrong)}; correct them")


BYTES_A_ROW = 256  # of a bucket: messages, the same joined, sort keys, ranks and the next messages
WORKER_BYTES = 600 << 20  # that a bucket may take of a Python worker's 1 GB; the rest are code and batches
SMALL_BUCKET = 100_000  # rows below which a block or bucket is not worth a task
TASKS_A_CORE = 4
SCAN_TASKS = 64  # into which a scan is cut if there are so many blocks, even on few cores
MOST_PARTITIONS = 4096


class SparkTransport:
    """Scans and exchanges on the workers of a Spark cluster.

    Parameters
    ----------
    source
        The aligned Parquet files, on paths that every worker can read.
    session
        A Spark session to use as it is. Without it, the active one, or one that is started.
    master
        Address of the cluster for a session that is started: `spark://host:7077`; all cores of this
        machine without it.
    partitions
        Number of partitions of an exchange; chosen by size without it.
    """

    together = True

    def __init__(
        self,
        source: Source,
        session: SparkSession | None = None,
        master: str | None = None,
        *,
        partitions: int | None = None,
    ) -> None:
        shared = session or spark_session(master)
        self.context: Any = context_of(shared)
        require_workers(self.context)
        self.rows, self.partitions = source.rows, partitions
        self.session: Any = own_session(shared)
        self.cores: int = max(self.context.defaultParallelism, 1)
        fair = self.rows // (self.cores * TASKS_A_CORE)  # so that all cores have work
        worthwhile = max(fair, SMALL_BUCKET)
        self.bucket_rows: int = min(WORKER_BYTES // BYTES_A_ROW, worthwhile)
        self.source: Source = replace(source, block_rows=min(source.block_rows, worthwhile))

    def scan(self, task: Callable[[Block], Any], reads: Reads, *, step: str) -> list[Any]:
        """Return the result of the task on each block of rows, in the order of the blocks."""
        with quiet():
            frame = self._blocks().mapInArrow(
                InWorker(partial(spark_worker.scan, self.source, reads, task)), RESULTS
            )
        results = self._results(frame, self._block_partitions, step)
        return [results[number] for number in range(len(self.source.blocks))]

    def exchange(
        self, first: First, reads: Reads, stages: Sequence[Stage], last: Last, *, step: str
    ) -> dict[int, Any]:
        """Return the result of the last stage for each bucket that got messages, by its number."""
        partitions = self.partitions or self._partitions(reads)
        with quiet():
            send = InWorker(partial(spark_worker.send_blocks, self.source, reads, first))
            frame = self._blocks().mapInArrow(send, SQL_SCHEMA)
            for stage in stages:
                send = InWorker(partial(spark_worker.send_buckets, stage))
                frame = _shuffled(frame, partitions).mapInArrow(send, SQL_SCHEMA)
            finish = InWorker(partial(spark_worker.finish, last))
            frame = _shuffled(frame, partitions).mapInArrow(finish, RESULTS)
        tasks = self._block_partitions + partitions * (len(stages) + 1)
        return dict(sorted(self._results(frame, tasks, step).items()))

    @property
    def _block_partitions(self) -> int:
        """Number of tasks that a scan of all blocks is cut into."""
        return max(1, min(len(self.source.blocks), max(SCAN_TASKS, self.cores * TASKS_A_CORE)))

    def _blocks(self) -> DataFrame:
        """Return the numbers of all blocks as a frame."""
        return self.session.range(0, len(self.source.blocks), 1, self._block_partitions)

    def _partitions(self, reads: Reads) -> int:
        """Return the number of partitions for the buckets of some columns: one bucket in each, about.

        It is a prime number: buckets that are numbered in steps, such as even numbers only, still reach all.
        """
        columns = max(len(reads.original), len(reads.masked), 1)
        buckets = columns * -(-self.rows // self.bucket_rows)
        return _prime_from(max(1, min(buckets, MOST_PARTITIONS)))

    def _results(self, frame: DataFrame, tasks: int, step: str) -> dict[int, Any]:
        """Return the results of blocks or buckets by number; raise the error that a worker raised."""
        rows = Job(self.context, frame.collect, tasks).run(step)
        self.source.require_unchanged()
        # Unpickled is only what our own tasks have pickled.
        return {row.place: pickle.loads(bytes(row.result)) for row in rows}  # noqa: S301


def _shuffled(frame: DataFrame, partitions: int) -> DataFrame:
    """Return messages with those of a bucket together, in the order of their origin."""
    return frame.repartitionById(partitions, "bucket").sortWithinPartitions(*spark_worker.ORDER)


def _prime_from(number: int) -> int:
    """Return the smallest prime number that is not below a number, or 1."""
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number += 1
    return number
