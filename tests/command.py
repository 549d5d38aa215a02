"""The command line as a user runs it: another process, its folder, what it printed and what it left."""

import os
import subprocess
import sys
from pathlib import Path

import sdckit

LIMITED = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
runpy.run_module("sdckit.cli", run_name="__main__", alter_sys=True)
"""


def environment(**more):
    return os.environ | {"PYTHONPATH": str(Path(sdckit.__file__).parents[1]), "COLUMNS": "120"} | more


def arguments(words, *, full_disk=False):
    return [sys.executable, *(["-c", LIMITED] if full_disk else ["-m", "sdckit.cli"]), *map(str, words)]


def run(folder, *words, full_disk=False, **more):
    return subprocess.run(
        arguments(words, full_disk=full_disk),
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


def good(folder, *words, **more):
    done = run(folder, *words, **more)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done


def contents(folder):
    """Every path below a folder with its bytes; None for a folder."""
    found = sorted(Path(folder).rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in found}


def put(folder, name, content):
    path = Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
