"""Hold back what compiled libraries write to standard error while they read a file."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ERRORS = 2  # handle of standard error
PANIC = "PanicException"  # of which every compiled library has a class of its own


@contextmanager
def without_panic_messages() -> Iterator[None]:
    """Show what libraries wrote to standard error after the `with`; drop it if they panicked in it.

    A library that panics prints its stack before Python knows; the error that is raised says it in one line.
    """
    try:
        kept = os.dup(ERRORS)
    except OSError:  # closed
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), ERRORS)
        try:
            yield
        except BaseException as error:
            if type(error).__name__ == PANIC:
                held.truncate(0)
            raise
        finally:
            with suppress(AttributeError, OSError, ValueError):
                sys.stderr.flush()
            os.dup2(kept, ERRORS)
            os.close(kept)
            held.seek(0)
            with suppress(OSError):
                os.write(ERRORS, held.read())
