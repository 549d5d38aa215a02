"""The roles of columns: strata, keys that pair records, and columns that look like one of these."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from sdckit.core import checks
from sdckit.core.table import is_missing, is_number, names_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from sdckit.core.table import Table
    from sdckit.kernels.jit import Bools, Floats, Ints

IDENTIFIER = re.compile(  # "firm_id", "record no", "personId", but not "paid" or "valid"
    r"(?i:(^|[_. ])(id|ids|key|nr|no|number|record|row|index)([_. ]|$))|[a-z]I[dD]$"
)


def strata_of(table: Table, by: str | Sequence[str] | None) -> list[tuple[str, Ints]]:
    """Names and rows of the strata, in order of first appearance; one stratum "all" without `by`."""
    names = names_of(by)
    if not names:
        return [("all", np.arange(table.n))]
    columns = [[_level(cell) for cell in table.column(name).to_list()] for name in names]
    rows: dict[tuple[Hashable, ...], list[int]] = {}
    for i, levels in enumerate(zip(*columns, strict=True)):
        rows.setdefault(levels, []).append(i)
    labels: dict[str, Ints] = {}
    for levels, found in rows.items():
        label = ", ".join(_shown(level, alone=len(names) == 1) for level in levels)
        if label in labels:  # 1 and "1" in a column of objects
            label = ", ".join("(missing)" if level is None else repr(level) for level in levels)
        labels[label] = np.array(found)
    return list(labels.items())


def _level(cell: Any) -> Hashable:
    if is_missing(cell):
        return None
    try:
        hash(cell)
    except TypeError:  # a list, say
        return repr(cell)
    return cell


def _shown(level: Hashable, *, alone: bool) -> str:
    """The level as text, in quotation marks where it could be taken for something else."""
    if level is None:
        return "(missing)"
    text = str(level)
    unclear = text == "all" if alone else "," in text  # tables use all for the file
    return repr(text) if unclear or text == "(missing)" or text.startswith(("'", '"')) else text


def keys_of(table: Table, key: str | Sequence[str], file: str) -> list[tuple[Any, ...]]:
    """The key of each record; refused where it is missing or names two records of the file."""
    names = names_of(key)
    columns = [table.column(name) for name in names]
    label = ", ".join(names)
    gaps = np.logical_or.reduce([_gaps(column) for column in columns])
    checks.no_missing_keys(gaps, label, file)
    keys = list(zip(*(column.to_list() for column in columns), strict=True))
    checks.unique_keys(len(set(keys)), len(keys), label, file)
    return keys


def _gaps(column: nw.Series[Any]) -> Bools:
    """Which cells are missing: null, and NaN in a column of floats."""
    gaps: Bools = column.is_null().to_numpy().astype(np.bool_)
    return gaps | np.isnan(column.to_numpy()) if column.dtype.is_float() else gaps


def match_keys(original: Table, masked: Table, key: str | Sequence[str]) -> Ints:
    """Row of `masked` for each row of `original` with the same key."""
    ours, theirs = keys_of(original, key, "original"), keys_of(masked, key, "masked")
    place = {value: i for i, value in enumerate(theirs)}
    absent = [value for value in ours if value not in place]
    if absent or len(ours) != len(theirs):
        raise ValueError(
            f"key {', '.join(names_of(key))!r} does not match: {len(absent)} of {len(ours)} original records "
            f"are not among the {len(theirs)} masked ones; compare files with the same records"
        )
    return np.array([place[value] for value in ours])


def warn_about_roles(table: Table, columns: Sequence[str], values: Floats, depth: int = 3) -> None:
    """Name columns that look like identifiers or survey weights: they are rarely meant."""
    for j, name in enumerate(columns):
        if _looks_like_identifier(name, values[:, j]) and table.frame is not None:
            warnings.warn(
                f"column {name!r} looks like an identifier; leave it out with columns or name it as key",
                stacklevel=depth,
            )
        elif name.lower() in {"weight", "weights"}:
            warnings.warn(
                f"column {name!r} looks like a survey weight; leave it out with columns or name it weights",
                stacklevel=depth,
            )


def warn_about_objects(table: Table, leave_out: Sequence[str] = (), depth: int = 3) -> None:
    """Name the columns that hold nothing but numbers, yet in a type that is not numeric."""
    for name in table.names if table.frame is not None else ():
        column = table.column(name)
        if name in leave_out or column.dtype not in {nw.Object, nw.Unknown}:
            continue
        cells = [cell for cell in column.to_list() if not is_missing(cell)]
        if cells and all(is_number(cell) for cell in cells):
            warnings.warn(
                f"column {name!r} looks like numbers stored as objects and is left as it is; "
                "convert it to a numeric type or drop it",
                stacklevel=depth,
            )


def _looks_like_identifier(name: str, values: Floats) -> bool:
    if values.size < 3 or np.isnan(values).any() or (values != np.floor(values)).any():
        return False
    ordered = np.sort(values)
    if not (ordered[1:] > ordered[:-1]).all():
        return False
    return bool(IDENTIFIER.search(name)) or bool(ordered[-1] == ordered[0] + values.size - 1)
