"""How the page starts Python in a process of its own."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SAFE_PATH = "-P"  # import nothing from the start folder, in which other people's files may lie


def child_environment() -> dict[str, str]:
    """Return the environment of a process that works in another folder and finds the same modules."""
    places = [str(Path(path).absolute()) for path in sys.path if path]
    # Windows would print to pipes in the encoding of its language.
    return os.environ | {"PYTHONPATH": os.pathsep.join(places), "PYTHONIOENCODING": "utf-8"}


@contextmanager
def importing() -> Iterator[None]:
    """Collect no garbage while modules are imported: there is hardly any, and looking costs a tenth."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
