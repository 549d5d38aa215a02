"""Evaluate as the driver of a cluster does, all tasks in another process; print the heavy modules loaded.

Run as a script with the paths of an original and a masked file.
"""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import sdckit as sdc

BUCKET_ROWS = 300
# What a driver needs none of; the last one is loaded with the first kernel that a process runs.
HEAVY = ("pandas", "altair", "scipy.linalg", "scipy.sparse", "scipy.stats", "sklearn", "numba.np.linalg")


def work(scratch, source, name, arguments, step):
    """The results of a scan or an exchange, in the process of a worker."""
    from sdckit.engines.local import LocalTransport

    return getattr(LocalTransport(source, scratch=scratch), name)(*arguments, step=step)


class Elsewhere:
    """A transport whose tasks run in a process of their own."""

    together, bucket_rows = True, BUCKET_ROWS

    def __init__(self, pool, source, scratch):
        self.pool, self.source, self.scratch, self.rows = pool, source, scratch, source.rows

    def scan(self, *arguments, step):
        return self.pool.submit(work, self.scratch, self.source, "scan", arguments, step).result()

    def exchange(self, *arguments, step):
        return self.pool.submit(work, self.scratch, self.source, "exchange", arguments, step).result()


def main(original, masked):
    """Evaluate all losses of ranks and cells; print the number of values and the heavy modules."""
    from sdckit.engines import opening

    losses = [one for one in sdc.METRICS.values() if one.family == "loss" and one.in_blocks]
    chosen = [one.name for one in losses if one.needs in {"ranks", "cells"}]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        opening.transport_on = lambda _, source, scratch: Elsewhere(pool, source, scratch)
        found = sdc.Microdata(Path(original), engine="spark").evaluate(Path(masked), metrics=chosen)
    print(found.table.height, *(name for name in HEAVY if name in sys.modules))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
