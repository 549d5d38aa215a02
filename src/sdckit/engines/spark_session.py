"""Sessions of Spark: started with settings that suit packed messages, or refused in one line."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit.engines.spark_job import Job
from sdckit.engines.spark_packages import require_packages
from sdckit.engines.spark_worker import facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

JAVA = 17  # the lowest version that Spark 4 runs on
REACHED = 5.0  # seconds within which a master must answer
LOOPBACK = "127.0.0.1"
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
    with tempfile.TemporaryFile() as log, _environment(master):
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
def _environment(master: str) -> Iterator[None]:
    """Set the variables that Spark reads as it starts, where the user has not set them."""
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
