"""Hand calls on data that are not tables in memory to the engine that can work on them.

`evaluate` and `mask` take tables in memory. Paths of files and Spark frames, and calls that name an engine,
go to the function of the same name in `sdckit.engines`, which is imported only then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import signature
from os import PathLike
from typing import Any, TypeVar, cast

ENGINES = ("memory", "local", "spark")
SETTINGS = ("engine", "memory", "master", "scratch")  # options that say where and how to work
OUTPUT = "output"  # of `mask`: with it the result is written, which engines do

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


def on_engines(module: str, *, tables: int) -> Callable[[Function], Function]:
    """Return a decorator for a public function that an engine offers, too, in `sdckit.engines.<module>`.

    That function has the same name and gets the one for tables in memory as its first argument. The first
    arguments, as many as `tables` says, are the data.
    """

    def decorate(function: Function) -> Function:
        """Return the function with calls on files, Spark frames or a named engine handed to an engine."""
        names = list(signature(function).parameters)[:tables]

        @wraps(function)
        def call(*given: Any, **options: Any) -> object:
            """Call the function itself, or that of the engines."""
            data = [*given[:tables], *(options[name] for name in names if name in options)]
            asked = any(options.get(name) is not None for name in (*SETTINGS, OUTPUT))
            if not asked and not any(is_path(one) or is_spark_frame(one) for one in data):
                return function(*given, **options)
            signature(function).bind(*given, **options)  # refuses a name that it does not have
            run = getattr(import_module(f"sdckit.engines.{module}"), function.__name__)
            return run(function, *given, **options)

        return cast("Function", call)

    return decorate
