"""Commands that are killed or interrupted: wait for the moment, and look for processes left behind."""

import os
import time
from pathlib import Path

MARK = "SDCKIT_TEST_MARK"  # variable of the environment by which processes of a test are found


def wait_until(condition, process):
    while process.poll() is None and not condition():
        time.sleep(0.002)


def left_over(folder):
    """Processes that a command of ours has left behind."""
    marks = f"{MARK}={folder}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if marks in path.read_bytes().split(b"\0") and path.parent.name != str(os.getpid()):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def assert_no_process_left(folder):
    deadline = time.monotonic() + 60
    while left_over(folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left_over(folder) == []
