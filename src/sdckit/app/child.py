"""How the page starts Python in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SAFE_PATH = "-P"  # import nothing from the start folder, in which other people's files may lie


def child_environment() -> dict[str, str]:
    """Return the environment of a process that works in another folder and finds the same modules."""
    places = [str(Path(path).absolute()) for path in sys.path if path]
    return os.environ | {"PYTHONPATH": os.pathsep.join(places)}
