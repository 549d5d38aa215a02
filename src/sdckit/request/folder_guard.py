"""Wait until the program that started this one has ended; then end what it left running and its folder.

Run by its path, with the folder as its argument. On standard input it gets a line for each process group that
is started, and 0 when that has ended. The end of the input is the end of the program, whatever killed it.
"""

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

TRIES = 50  # to remove the folder, while what was killed may still write there
PAUSE = 0.1  # seconds between them


def main(folder: Path) -> None:
    """Wait for the end of the input; then kill the process group that is running, and remove the folder."""
    group = 0
    for line in sys.stdin:
        group = int(line)
    if group:
        with suppress(AttributeError, OSError):  # Windows; or it has just ended
            os.killpg(group, signal.SIGKILL)
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(PAUSE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
