"""The command line as a user runs it: another process, its folder, what it printed and what it left."""

import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import warnings
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import polars as pl
import pytest

import sdckit
from sdckit import progress
from sdckit.cli import main
from sdckit.progress import show_progress

HANGING = 900  # seconds after which a process is taken to hang, also on a busy machine that must compile
ROLES = ["--key", "id", "--weights", "weight"]
VARIABLES = ["income", "age", "rooms"]
LIMITED = """
import os, resource, runpy, sys
sys.dont_write_bytecode = True  # compiled modules would be cut off
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
runpy.run_module("sdckit.cli", run_name="__main__", alter_sys=True)
"""


@contextmanager
def interruptible():
    """Let Ctrl-C interrupt this process and those it starts, even where the shell said to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def environment(**more):
    return os.environ | {"PYTHONPATH": str(Path(sdckit.__file__).parents[1]), "COLUMNS": "120"} | more


def arguments(words, *, full_disk=False):
    return [sys.executable, *(["-c", LIMITED] if full_disk else ["-m", "sdckit.cli"]), *map(str, words)]


def said(done):
    """What was said on stderr, without the progress that a busy machine or the first compilation shows."""
    return re.sub(r"^[\w ]+: \d+%.*\n", "", done.stderr, flags=re.MULTILINE)


def run(folder, *words, full_disk=False, **more):
    """Run a command; its stderr is what it said besides progress, which depends on the machine."""
    done = subprocess.run(
        arguments(words, full_disk=full_disk),
        cwd=folder,
        # On a full disk Python would leave a module half compiled, which no later start can read.
        env=environment(**more) | ({"PYTHONDONTWRITEBYTECODE": "1"} if full_disk else {}),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=HANGING,
        check=False,
    )
    done.stderr = said(done)
    return done


def run_together(cases):
    """Run commands, each in its folder, one after another in one other process."""
    done = subprocess.run(
        [sys.executable, "-P", Path(__file__).with_name("together.py")],
        input=json.dumps([[str(folder), [str(word) for word in words]] for folder, words in cases]),
        env=environment(),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        timeout=HANGING,
        check=True,
    )
    names = ("returncode", "stdout", "stderr")
    found = [SimpleNamespace(**dict(zip(names, one, strict=True))) for one in json.loads(done.stdout)]
    for one in found:
        one.stderr = said(one)
    return found


def good(folder, *words, **more):
    """Run a command that must succeed."""
    done = run_here(folder, *words, **more)
    assert done.returncode == 0, done.stderr
    return done


def run_here(folder, *words, **more):
    """The same within this process, where everything heavy is loaded already."""
    out, err = io.StringIO(), io.StringIO()
    with (
        chdir(folder),
        mock.patch.dict(os.environ, {"COLUMNS": "120"} | more),
        mock.patch.object(progress, "SHOW_AFTER", math.inf),  # else a busy machine would show progress
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(action="always"),
        pytest.raises(SystemExit) as stop,
    ):
        main([str(word) for word in words])
    show_progress(False)
    return SimpleNamespace(returncode=stop.value.code, stdout=out.getvalue(), stderr=err.getvalue())


def forget_releases():
    """Delete the private record, so that the same data can be released again without a word on it."""
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)


def contents(folder):
    """Every path below a folder with its bytes; None for a folder."""
    found = sorted(Path(folder).rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in found}


def put(folder, name, content):
    path = Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def put_survey(folder):
    """Sixty records with a key, codes, strata, weights, missing cells and three variables."""
    rng = np.random.default_rng(7)
    n = 60
    frame = pl.DataFrame(
        {
            "id": [f"{i:03d}" for i in range(n)],
            "grade": ["1.50", "NA", "x"] * (n // 3),
            "region": ["nord", "süd", "west"] * (n // 3),
            "weight": rng.uniform(1, 9, n).round(1),
            "income": rng.lognormal(7, 1, n).round(2),
            "age": rng.integers(16, 90, n),
            "rooms": [None if i % 10 == 0 else int(v) for i, v in enumerate(rng.integers(1, 400, n))],
        }
    )
    put(folder, "data.csv", frame.write_csv())
    return frame
