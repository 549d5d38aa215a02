"""A standalone Spark cluster of this machine alone: a master and two workers, each a process of its own.

Run as a script, it keeps the cluster until its standard input closes, that is, also if pytest is killed.
"""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

WORKERS = 2
STARTED = 120  # seconds until a cluster is taken not to start
LIGHT = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # of processes that live for seconds
LOOPBACK = "127.0.0.1"
SETTINGS = {
    "spark.executor.memory": "1g",
    "spark.executor.extraJavaOptions": LIGHT,
    "spark.driver.extraJavaOptions": LIGHT,
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.sql.shuffle.partitions": "3",  # of DataFrames; each task takes its time to start
    "spark.python.daemon.module": "spark_daemon",
}


@contextmanager
def running(folder, *paths):
    """A cluster whose Python finds modules in some paths; yields the address of its master."""
    command = [sys.executable, __file__, str(folder), *map(str, paths)]
    keeper = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield waited_for(folder / "address", keeper)
    finally:
        keeper.stdin.close()
        keeper.wait()
        assert of_session(keeper.pid) == []


def waited_for(path, process):
    """The text of a file that a process writes."""
    deadline = time.monotonic() + STARTED
    while not path.exists():
        assert process.poll() is None, "the cluster did not start"
        assert time.monotonic() < deadline, "the cluster takes too long to start"
        time.sleep(0.1)
    return path.read_text()


def keep(folder, *paths):
    """Start the cluster, write its address, wait for the end of the input, and end all its processes."""
    import pyspark

    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = os.environ | {
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": LIGHT,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYTHONPATH": os.pathsep.join(paths),
    }

    def start(name, kind, *words):
        command = [script, f"org.apache.spark.deploy.{kind}", "--host", LOOPBACK, "--webui-port", "0"]
        with (folder / f"{name}.log").open("w") as log:
            return subprocess.Popen([*command, *words], env=environment, stdout=log, stderr=log)

    try:
        master = start("master", "master.Master", "--port", "0")
        address = said(folder / "master.log", r"spark://[\d.]+:\d+", master)
        workers = []
        for number in range(WORKERS):
            work = ("--cores", "1", "--memory", "2g", "--work-dir", str(folder / f"work{number}"), address)
            workers.append(start(f"worker{number}", "worker.Worker", *work))
        for number, worker in enumerate(workers):
            said(folder / f"worker{number}.log", "Successfully registered with master", worker)
        draft = folder / "address.part"
        draft.write_text(address)
        draft.rename(folder / "address")
        sys.stdin.read()
    finally:
        end_session()


def said(log, pattern, process):
    """Wait until the log of a process contains a pattern; return what matches."""
    while not (found := re.search(pattern, log.read_text())):
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    return found[0]


def of_session(session):
    """All processes of a session, whatever their groups."""
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(process.pid) == session:
                found.append(process)
    return found


def end_session():
    """Kill all other processes of this session: workers, executors and their Python."""
    while others := [one for one in of_session(os.getsid(0)) if one.pid != os.getpid()]:
        for process in others:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(others, timeout=5)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep(Path(sys.argv[1]), *sys.argv[2:])
