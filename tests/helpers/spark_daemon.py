"""Spark's daemon of Python workers, which imports other packages once for all workers that it forks.

Tests start dozens of workers, as each task that fails or is killed ends one. Modules of this package are
imported by every worker, as with Spark's own daemon; a Python that lacks the others gives the same errors.
"""

from contextlib import suppress

from pyspark.daemon import manager

with suppress(ImportError):
    import pandas as pd  # noqa: F401
    import polars as pl  # noqa: F401
    from numba.core.registry import cpu_target

    cpu_target.target_context.refresh()  # fills tables, which takes a worker as long as an import

if __name__ == "__main__":
    manager()
