"""Tables of results in the dataframe type of the caller."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sdckit.core import checks

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl

KINDS = ("polars", "pandas", "pyarrow")
USUAL = "polars"


def kind_of(frame: nw.DataFrame[Any] | None) -> str:
    """Return the kind of a caller's dataframe; polars for arrays and for types that are not in `KINDS`."""
    if frame is None:
        return USUAL
    if frame.implementation.is_pandas_like():
        return "pandas"
    return "pyarrow" if frame.implementation.is_pyarrow() else USUAL


def converted(table: pl.DataFrame, kind: str | None, usual: str) -> Any:
    """Return a table as "polars", "pandas" or "pyarrow"; as `usual` for None.

    Raises
    ------
    ValueError
        The kind is unknown, or its package is not installed.
    """
    wanted = checks.one_of("kind of dataframe", usual if kind is None else kind, KINDS)
    if wanted == "polars":
        return table
    package = _package(wanted)
    if wanted == "pyarrow":
        return table.to_arrow()
    return package.DataFrame(
        {column.name: column.to_numpy() for column in table}
    )  # polars' own needs pyarrow


def _package(name: str) -> Any:
    """Return an imported package; raise ValueError if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ValueError(f"kind={name!r} needs the package {name}; pip install {name}") from error
