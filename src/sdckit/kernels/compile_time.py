"""The time that this process spends on compiling kernels, which is long at the first start only."""

from __future__ import annotations

import gc
from time import process_time
from typing import TYPE_CHECKING

from numba.core import event

from sdckit import progress

if TYPE_CHECKING:
    from numba.core.event import Event

NOTICE_AFTER = 1.0  # seconds of compiling before the notice: a single kernel takes less
NOTICE = "compiling kernels for this computer: some 10 to 20 seconds, at the first start only"


class CompileClock(event.Listener):
    """Listener to numba's events that sums the seconds of compiling and announces long compiling once."""

    def __init__(self) -> None:
        self.depth: int = 0  # kernels being compiled, each for the one before
        self.begun: float = 0.0
        self.finished: float = 0.0
        self.noticed: bool = False
        self.collects: bool = False

    @property
    def seconds(self) -> float:
        """Seconds spent on compiling so far, including the kernel that is being compiled."""
        return self.finished + (process_time() - self.begun if self.depth else 0.0)

    def on_start(self, event: Event) -> None:  # noqa: ARG002 - numba's signature
        """Start the clock when numba begins to compile a kernel, and switch garbage collection off.

        Kernels that are compiled for another one do not start it again. Garbage collection would examine
        all objects of numba again and again, and free little.
        """
        if self.seconds > NOTICE_AFTER and not self.noticed:
            self.noticed = True
            progress.print_notice(NOTICE)
        if self.depth == 0:
            self.begun, self.collects = process_time(), gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Event) -> None:  # noqa: ARG002
        """Stop the clock when the outermost kernel is compiled, and switch garbage collection on again."""
        if self.depth == 1:
            self.finished = self.seconds
            if self.collects:
                gc.enable()
        self.depth -= 1


CLOCK = CompileClock()
event.register("numba:compile", CLOCK)  # type: ignore[no-untyped-call]
