"""Hand calls on data that are not tables in memory to the engine that can work on them.

`evaluate` and `mask` take tables in memory. Paths of files and Spark frames, and calls that name an engine,
go to the function of the same name in `sdckit.engines`, which is imported only then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from os import PathLike
from typing import Any, TypeVar, cast

ENGINES = ("memory", "local", "spark")
SETTINGS = ("engine", "memory", "master", "scratch")  # options that say where and how to work

Function = TypeVar("Function", bound=Callable[..., object])


def is_path(data: object) -> bool:
    """Return True for the path of a file or folder, or a list of such paths."""
    if isinstance(data, (list, tuple)):
        return bool(data) and all(isinstance(one, (str, PathLike)) for one in data)
    return isinstance(data, (str, PathLike))


def is_spark_frame(data: object) -> bool:
    """Return True for a Spark DataFrame; Spark is not imported for the question."""
    kind = type(data)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.")


def on_engines(module: str) -> Callable[[Function], Function]:
    """Return a decorator for a public function that an engine offers, too, in `sdckit.engines.<module>`.

    That function has the same name and gets the one for tables in memory as its first argument.
    """

    def decorate(function: Function) -> Function:
        """Return the function with calls on files, Spark frames or a named engine handed to an engine."""

        @wraps(function)
        def call(*data: Any, **options: Any) -> object:
            """Call the function itself, or that of the engines."""
            settings = {name: options.pop(name, None) for name in SETTINGS}
            given = [name for name, value in settings.items() if value is not None]
            if not given and not any(is_path(one) or is_spark_frame(one) for one in data[:2]):
                return function(*data, **options)
            run = getattr(import_module(f"sdckit.engines.{module}"), function.__name__)
            return run(function, *data, **settings, **options)

        return cast("Function", call)

    return decorate
