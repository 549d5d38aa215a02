"""A script that runs several commands one after another, to load everything heavy only once.

It reads folders and words from stdin and prints, for each command, its exit code, stdout and stderr.
"""

import json
import os
import sys
import tempfile
import traceback

from sdckit import cli, progress


def answer(folder, words):
    """Exit code, stdout and stderr of a command, whose streams are files as a shell would set them."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.chdir(folder)
        for file, number in ((out, 1), (err, 2)):
            os.dup2(file.fileno(), number)
        code = exit_code(words)
        sys.stdout.flush()
        sys.stderr.flush()
        return code, *(os.pread(file.fileno(), 2**20, 0).decode() for file in (out, err))


def exit_code(words):
    try:
        cli.main(words)
    except SystemExit as stop:
        return stop.code
    except BaseException:  # noqa: BLE001 - printed like any uncaught error
        traceback.print_exc()
    finally:
        progress.show_progress(False)
    return 1


if __name__ == "__main__":
    answers = os.dup(1)
    found = [answer(folder, words) for folder, words in json.load(sys.stdin)]
    os.write(answers, json.dumps(found).encode())
