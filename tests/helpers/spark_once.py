"""All tests on Spark run in one process with one cluster, whatever number of workers pytest has.

A worker of pytest-xdist that comes to such a test runs all of them in another pytest, unless another worker
has done so already, and reports what that one found.
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

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        if item.get_closest_marker("spark") is None:
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


def found_elsewhere(item):
    """The reports of a test, made by the pytest that runs all tests on Spark."""
    place = Path(item.config.option.basetemp).parent / "spark"
    done = place / "done"
    try:
        place.mkdir()
    except FileExistsError:
        deadline = time.monotonic() + HANGING
        while not done.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
    else:
        (place / "draft").write_text(run_all(item.session, place))
        (place / "draft").rename(done)
    reports = [json.loads(line) for line in (place / "reports").read_text().splitlines()]
    own = [one for one in reports if one["nodeid"] == item.nodeid]
    if not own:
        where = (item.nodeid, item.location, {}, "failed", f"it did not run:\n{done.read_text()}", "call")
        return [pytest.TestReport(*where)]
    hook = item.config.hook.pytest_report_from_serializable
    return [hook(config=item.config, data=one) for one in own]


def run_all(session, place):
    """Run the tests on Spark of this session; return what that pytest printed."""
    tests = [item for item in session.items if item.get_closest_marker("spark")]
    files = sorted({str(item.path) for item in tests})
    (place / "reports").touch()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ours, theirs = os.pipe()[::-1]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-n", "0", "-m", "spark", "--basetemp", place / "own", *files],
            cwd=session.config.rootpath,
            env=kept | {REPORTS: str(place / "reports"), ALIVE: str(theirs)},
            pass_fds=[theirs],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=HANGING,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    return done.stdout
