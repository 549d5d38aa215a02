"""All tests on Spark run in one process with one cluster, whatever number of workers pytest has.

The first worker of pytest-xdist to begin starts another pytest for all of them, beside its own tests. Workers
come to the tests on Spark last, wait for the end of that pytest, and report what it found.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

REPORTS, ALIVE = "SDCKIT_SPARK_REPORTS", "SDCKIT_SPARK_ALIVE"
HANGING = 900  # seconds


class Once:
    """Replays the reports of the pytest that ran all tests on Spark; in a worker of pytest-xdist."""

    @staticmethod
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(items):
        items.sort(key=on_spark)  # waited for at the end only

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        if not on_spark(item):
            return None
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in found_elsewhere(item):
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        # Fixtures that the test before left for this one, which is not run here, are in the way of the next.
        item.session._setupstate.teardown_exact(nextitem)  # noqa: SLF001 - as pytest does after each test
        return True


class Recorder:
    """Writes all reports to a file, and ends this pytest with the one that started it."""

    def __init__(self, config):
        self.config, self.path = config, Path(os.environ.pop(REPORTS))
        threading.Thread(target=self.follow, args=(int(os.environ.pop(ALIVE)),), daemon=True).start()

    @staticmethod
    def follow(pipe):
        os.read(pipe, 1)  # returns when the other end closes
        os._exit(1)

    def pytest_runtest_logreport(self, report):
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        with self.path.open("a") as file:
            file.write(json.dumps(data) + "\n")


def on_spark(item):
    """Return True for a test that needs the cluster."""
    return item.get_closest_marker("spark") is not None


def place_of(session):
    """Return the folder of the tests on Spark, the same for all workers."""
    return Path(session.config.option.basetemp).parent / "spark"


def begin(session):
    """Start the tests on Spark of this session in the background, unless another worker has done so."""
    files = sorted({str(item.path) for item in session.items if on_spark(item)})
    if not files:
        return
    place = place_of(session)
    try:
        place.mkdir()
    except FileExistsError:
        return
    (place / "reports").touch()
    alive, theirs = os.pipe()[::-1]
    started = start(session.config.rootpath, place, files, theirs)  # here, as tests change the environment
    os.close(theirs)
    threading.Thread(target=finish, args=(started, place, alive), daemon=True).start()


def start(root, place, files, pipe):
    """Start a pytest of the tests on Spark in some files; it ends when the other end of a pipe closes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-n", "0", "-m", "spark", "--basetemp", place / "own", *files],
        cwd=root,
        env=kept | {REPORTS: str(place / "reports"), ALIVE: str(pipe)},
        pass_fds=[pipe],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(started, place, alive):
    """Wait for a pytest and write what it printed to the file `done`."""
    try:
        printed, _ = started.communicate(timeout=HANGING)
    except subprocess.TimeoutExpired as error:
        started.kill()
        printed = f"it hangs:\n{error.stdout}"
    os.close(alive)
    (place / "draft").write_text(printed)
    (place / "draft").rename(place / "done")


def found_elsewhere(item):
    """The reports of a test, made by the pytest that runs all tests on Spark."""
    begin(item.session)
    place = place_of(item.session)
    done, deadline = place / "done", time.monotonic() + HANGING
    while not done.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    reports = [json.loads(line) for line in (place / "reports").read_text().splitlines()]
    own = [one for one in reports if one["nodeid"] == item.nodeid]
    if not own:
        why = done.read_text() if done.exists() else "the worker that started it is gone"
        where = (item.nodeid, item.location, {}, "failed", f"it did not run:\n{why}", "call")
        return [pytest.TestReport(*where)]
    hook = item.config.hook.pytest_report_from_serializable
    return [hook(config=item.config, data=one) for one in own]
