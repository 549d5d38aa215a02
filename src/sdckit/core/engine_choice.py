"""Data that are not tables in memory, which an engine works on: paths of files, and Spark frames."""

from __future__ import annotations

from os import PathLike

ENGINES = ("memory", "local", "spark")


def is_path(data: object) -> bool:
    """Return True for the path of a file or folder, or a list of such paths."""
    if isinstance(data, (list, tuple)):
        return bool(data) and all(isinstance(one, (str, PathLike)) for one in data)
    return isinstance(data, (str, PathLike))


def is_spark_frame(data: object) -> bool:
    """Return True for a Spark DataFrame; Spark is not imported for the question."""
    kind = type(data)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.")
