"""The roles of columns: variables, key, weights and strata, resolved and checked in one place."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from sdckit.core import checks
from sdckit.core.table import is_missing, is_number, names_of
from sdckit.core.warned import warn

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from sdckit.core.table import Table
    from sdckit.kernels.jit import Bools, Floats, Ints

IDENTIFIER = re.compile(  # "firm_id", "record no", "personId", but not "paid" or "valid"
    r"(?i:(^|[_. ])(id|ids|key|nr|no|number|record|row|index)([_. ]|$))|[a-z]I[dD]$"
)


@dataclass(frozen=True)
class Roles:
    """Which column of a table plays which role.

    `variables` are masked and measured; the columns of `key` identify a record together, the values of those
    of `by` form strata; `weights` is the column of survey weights, None without one or where weights were
    given as numbers. `na` are the numbers that stand for a missing cell.
    """

    variables: tuple[str, ...]
    key: tuple[str, ...] = ()
    weights: str | None = None
    by: tuple[str, ...] = ()
    na: tuple[float, ...] = ()

    @property
    def others(self) -> list[str]:
        """The columns that are no variables because they have another role."""
        return [*self.key, *self.by, *([] if self.weights is None else [self.weights])]

    def check(self, table: Table | None) -> None:
        """Refuse columns that the table does not have, and variables that have another role."""
        if table is None:
            raise ValueError("the prepared data have no table to read roles from; prepare the table anew")
        checks.known_columns(self.others, table.names)
        checks.apart(self.variables, self.others)


def resolve(
    table: Table,
    *,
    columns: Any = None,
    key: Any = None,
    weights: Any = None,
    by: Any = None,
    na: Any = None,
    leave_out: Iterable[str] = (),
) -> Roles:
    """Return the roles that a user asked for, after every check; see `Roles`.

    Without `columns`, all numeric columns without another role are variables, those in `leave_out` excepted.
    """
    checks.at_least_two(table.n)
    asked = Roles(
        variables=tuple(names_of(columns)),
        key=tuple(dict.fromkeys(names_of(key))),
        weights=str(weights) if isinstance(weights, (str, int)) else None,
        by=tuple(dict.fromkeys(names_of(by))),
        na=tuple(checks.declared_missing(na)),
    )
    asked.check(table)
    variables = table.numeric(columns, leave_out=[*asked.others, *leave_out])
    return replace(asked, variables=tuple(variables))


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


def warn_about_roles(table: Table, columns: Sequence[str], values: Floats) -> None:
    """Name columns that look like identifiers or survey weights: they are rarely meant."""
    for j, name in enumerate(columns):
        if _looks_like_identifier(name, values[:, j]) and table.frame is not None:
            warn(f"column {name!r} looks like an identifier; leave it out with columns or name it as key")
        elif name.lower() in {"weight", "weights"}:
            warn(f"column {name!r} looks like a survey weight; leave it out with columns or name it weights")


def warn_about_objects(table: Table, leave_out: Sequence[str] = ()) -> None:
    """Name the columns that hold nothing but numbers, yet in a type that is not numeric."""
    for name in table.names if table.frame is not None else ():
        column = table.column(name)
        if name in leave_out or column.dtype not in {nw.Object, nw.Unknown}:
            continue
        cells = [cell for cell in column.to_list() if not is_missing(cell)]
        if cells and all(is_number(cell) for cell in cells):
            warn(
                f"column {name!r} looks like numbers stored as objects and is left as it is; "
                "convert it to a numeric type or drop it"
            )


def _looks_like_identifier(name: str, values: Floats) -> bool:
    if values.size < 3 or np.isnan(values).any() or (values != np.floor(values)).any():
        return False
    if not IDENTIFIER.search(name) and values.max() != values.min() + values.size - 1:
        return False  # before the sort, which takes longer
    ordered = np.sort(values)
    return bool((ordered[1:] > ordered[:-1]).all())
