"""Run a case of the fuzzer within this process, and say which promises it broke."""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
import traceback
import warnings
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from sdckit.cli import main
from sdckit.progress import show_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fuzz_cases import Case

CODES = {0, 1, 2, 130}
ENDS = re.compile("^(error|not met|stopped): ", re.MULTILINE)
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def broken_promises(case: Case, folder: Path) -> tuple[object, list[str]]:
    """Run a case in an empty folder; return its exit code and a line for each promise that it broke."""
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    with printed_by_libraries() as printed:
        code, output, errors = run(folder, case.words)
    errors += printed.getvalue()
    found = []
    if code not in CODES:
        found.append(f"ended with {code}: {errors.strip()[-3000:]}")
    if "Traceback" in errors or "panicked" in errors:
        found.append(f"printed a traceback: {errors.strip()[-3000:]}")
    if len(ENDS.findall(errors)) != (code != 0):
        found.append(f"ended with {code} and not with one line: {errors.strip()[-500:]}")
    if seen := UNSEEN.findall(output + errors):
        found.append(f"printed {seen[0]!a}")
    return code, found + broken_files(case, folder, code)


def run(folder: Path, words: list[str]) -> tuple[object, str, str]:
    """Run a command in a folder; return its exit code or error, and what it printed."""
    output, errors = io.StringIO(), io.StringIO()
    code: object = None
    with (
        chdir(folder),
        redirect_stdout(output),
        redirect_stderr(errors),
        warnings.catch_warnings(action="always"),
    ):
        try:
            main(words)
        except SystemExit as stop:
            code = stop.code or 0
        except BaseException as error:  # noqa: BLE001 - that it is raised at all is the finding
            code = type(error).__name__
            errors.write(traceback.format_exc())
    show_progress(False)
    return code, output.getvalue(), errors.getvalue()


@contextmanager
def printed_by_libraries() -> Iterator[io.StringIO]:
    """Yield a text that holds, after the `with`, what compiled libraries wrote to standard error."""
    found, kept = io.StringIO(), os.dup(2)
    with tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        os.dup2(file.fileno(), 2)
        try:
            yield found
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            found.write(file.read().decode(errors="replace"))


def broken_files(case: Case, folder: Path, code: object) -> list[str]:
    """Return a line for each input that was changed, draft that was left, and file of a failed run."""
    there = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    allowed = "--overwrite" in case.words  # as an output, the option names it
    changed = [
        name
        for name, data in case.files.items()
        if (name not in there or there[name].read_bytes() != data)
        and not (allowed and name in case.words[2:])
    ]
    drafts = [str(path.relative_to(folder)) for path in folder.rglob(".sdckit-*")]
    left = [name for name in there if name not in case.files and "private/" not in name]
    found = [f"changed the input {name}" for name in changed]
    found += [f"left the draft {name}" for name in drafts]
    return found + [f"ended with {code} and left {name}" for name in left if code == 2]
