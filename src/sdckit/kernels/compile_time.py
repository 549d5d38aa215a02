"""The time that this process spends on compiling kernels, which is long at the first start only."""

from __future__ import annotations

import gc
from time import monotonic
from typing import TYPE_CHECKING

from numba.core import event

from sdckit import progress

if TYPE_CHECKING:
    from numba.core.event import Event

PATIENCE = 1.0  # seconds of compiling before a word about it: a single kernel is not worth one
NOTICE = "compiling kernels for this computer: some 10 to 20 seconds, at the first start only"


class Clock(event.Listener):
    """Adds up the seconds; numba compiles one kernel at a time, and those that it calls within it."""

    def __init__(self) -> None:
        self.depth = 0  # kernels being compiled, each for the one before
        self.begun = self.finished = 0.0
        self.noticed = self.collects = False

    @property
    def seconds(self) -> float:
        """Seconds spent on compiling so far, those of the kernel at hand included."""
        return self.finished + (monotonic() - self.begun if self.depth else 0.0)

    def on_start(self, event: Event) -> None:  # noqa: ARG002 - numba's signature
        """Begin to count, unless this kernel is compiled for another.

        Python's search for garbage would go through all that numba keeps, again and again, and find little.
        """
        if self.seconds > PATIENCE and not self.noticed:
            self.noticed = True
            progress.print_notice(NOTICE)
        if self.depth == 0:
            self.begun, self.collects = monotonic(), gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Event) -> None:  # noqa: ARG002
        """End the count with the outermost kernel."""
        if self.depth == 1:
            self.finished = self.seconds
            if self.collects:
                gc.enable()
        self.depth -= 1


CLOCK = Clock()
event.register("numba:compile", CLOCK)  # type: ignore[no-untyped-call]
