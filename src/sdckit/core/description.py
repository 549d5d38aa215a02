"""Describe a table before it is masked: its columns, their roles, uniques, and recodings worth trying."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from sdckit.core import cells, notebook
from sdckit.core.classes import cell_numbers
from sdckit.core.guesses import guess_columns
from sdckit.core.proposals import Proposal, propose_roles, roles_with
from sdckit.core.recode import recode_columns
from sdckit.core.recoding_trials import recodings_table, steps_down, try_recodings
from sdckit.core.roles import Roles, asked_roles
from sdckit.core.table import Table
from sdckit.core.uniques import Floor, floor_of, floor_text, known_untouched, others_of, weights_text

TYPES = {
    nw.Boolean: "true/false",
    nw.Date: "date",
    nw.Datetime: "date and time",
    nw.Time: "time",
    nw.Duration: "duration",
    nw.String: "text",
    nw.Object: "objects",
    nw.Unknown: "objects",
}
OPTIONS = ("key", "unit", "weights", "untouched", "drop")  # in the order of the line that accepts proposals
CAPTIONS = (  # of the columns, the recodings and the steps
    "columns; floor_alone: linkage that an untouched column gives by itself; floor_without: all other ones",
    "recodings of one column, and the uniques and the floor before and after each",
    "recode or drop one after the other, until the floor is low",
)


@dataclass(frozen=True)
class Description:
    """Columns of a table, the roles they would get, and what those published unmasked give away.

    `table` has one row per column: type, missing cells, distinct values, values that occur once, role,
    whether the role is decided (else somebody has to name it before a release), the reason, and, for known
    columns that are not masked, the floor of the risk by that column alone and without it. `recodings` has
    recodings worth trying, with uniques and floor of the file, and the floor by the column alone, before and
    after; `steps` has a way to a floor of 0.05 by recoding and dropping one column after the other.

    `uniques` is the share of the records that stand alone on the known untouched columns, `floor` the mean of
    1 / class size: no masking of the other columns brings the risk of linkage below it. `options` has the
    roles, given and proposed, by option, `notes` has sentences on all this. No cell is part of a description.
    """

    table: pl.DataFrame
    recodings: pl.DataFrame
    steps: pl.DataFrame
    uniques: float
    floor: float
    options: dict[str, list[str]]
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        """Return the tables and the notes as text."""
        with pl.Config(
            tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=80, tbl_width_chars=160, tbl_hide_dataframe_shape=True
        ):
            lines = [line for caption, table in self._tables() for line in (caption, str(table))]
            return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        """Return what `print` shows, for notebooks."""
        parts = [
            part
            for caption, table in self._tables()
            for part in (notebook.paragraphs([caption]), notebook.frame_table(table))
        ]
        return notebook.block(*parts, notebook.paragraphs(self.notes))

    def _tables(self) -> list[tuple[str, pl.DataFrame]]:
        """Return captions and tables: the columns and, where there are any, the recodings and the steps."""
        tables = zip(CAPTIONS, (self.table, self.recodings, self.steps), strict=True)
        return [(caption, table) for caption, table in tables if table.height]

    def to_dict(self) -> dict[str, Any]:
        """Return the description as a JSON-ready dict."""
        return {
            "columns": self.table.rows(named=True),
            "recodings": self.recodings.rows(named=True),
            "steps": self.steps.rows(named=True),
            "uniques": self.uniques,
            "floor": self.floor,
            "options": self.options,
            "notes": list(self.notes),
        }


def describe(
    data: Any,
    *,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: str | None = None,
    by: str | Sequence[str] | None = None,
    na: Any = None,
    untouched: str | Sequence[str] | None = None,
    known: str | Sequence[str] | None = None,
    unknown: str | Sequence[str] | None = None,
    confidential: str | Sequence[str] | None = None,
    unit: str | None = None,
    drop: str | Sequence[str] | None = None,
    recode: Mapping[str, Any] | None = None,
) -> Description:
    """Return what the columns of a table look like, the roles they would get, and recodings worth trying.

    Parameters
    ----------
    data : table
        pandas, polars or pyarrow.
    columns, key, weights, by, na, untouched, known, unknown, confidential, unit, drop, recode
        Roles that are decided, as for `prepare`; the other columns get a proposed one.

    Returns
    -------
    Description
        It has no value of any cell.

    Examples
    --------
    >>> import sdckit as sdc
    >>> found = sdc.describe(sdc.load_sample(), weights="weight")
    >>> found.table.filter(column="firm")["role"].item(), round(found.floor, 2)
    ('key', 0.01)
    """
    table = Table(data)
    asked = asked_roles(
        table,
        columns=columns,
        key=key,
        weights=weights,
        by=by,
        na=na,
        untouched=untouched,
        known=known,
        unknown=unknown,
        confidential=confidential,
        unit=unit,
        drop=drop,
        recode=recode,
    )
    return describe_table(table, asked)


def describe_table(table: Table, asked: Roles, labelled: Sequence[str] = ()) -> Description:
    """Return the description of a table; every value of a column in `labelled` has a label."""
    if table.frame is None:
        raise TypeError("an array has no named columns to describe; give a dataframe instead")
    guesses = guess_columns(table, labelled=labelled, na=asked.na)
    proposals = propose_roles(guesses, asked)
    roles = roles_with(asked, proposals)
    recoded = recode_columns(table, asked.recode, asked.na)
    numbers = {
        name: cell_numbers(recoded.get(name, table.column(name)))
        for name in known_untouched(table.names, roles)
    }
    others = others_of(list(numbers.values()), table.n)
    floor = floor_of(numbers, table.n, others)
    rest = dict(zip(numbers, others, strict=True))
    trials = try_recodings(table, guesses, roles, rest, floor)
    rows = [_row(table, name, proposals[name], floor, roles.na) for name in table.names]
    return Description(
        pl.DataFrame(rows, infer_schema_length=None),  # floors may begin late in a wide file
        recodings_table(trials, floor),
        steps_down(numbers, trials, floor, table.n),
        floor.share,
        floor.floor,
        _accepting_options(proposals, asked),
        tuple(_notes(floor, roles, proposals)),
    )


def _row(table: Table, name: str, proposal: Proposal, floor: Floor, na: Sequence[float]) -> dict[str, Any]:
    """Return the row of one column in the table of a description."""
    column = table.column(name)
    gaps = cells.missing_cells(column)
    if column.dtype.is_numeric() and na:
        gaps = gaps | np.isin(column.to_numpy(), na)
    counts = np.bincount(cell_numbers(column)[~gaps], minlength=1)
    known = name in floor.columns
    return {
        "column": name,
        "type": _type_word(column.dtype),
        "missing": int(gaps.sum()),
        "distinct": int((counts > 0).sum()),
        "unique": int((counts == 1).sum()),
        "role": proposal.role,
        "decided": proposal.decided,
        "reason": proposal.reason,
        "floor_alone": floor.alone[name].floor if known else None,
        "floor_without": floor.without[name].floor if known else None,
    }


def _type_word(kind: nw.dtypes.DType) -> str:
    """Return the type of a column in a word or two."""
    if kind.is_integer():
        return "whole numbers"
    if kind.is_numeric():
        return "numbers"
    return next(
        (word for one, word in TYPES.items() if kind == one), "nested" if kind.is_nested() else "categories"
    )


def _accepting_options(proposals: Mapping[str, Proposal], asked: Roles) -> dict[str, list[str]]:
    """Return the options that name all roles, given or proposed, for the next command."""
    variables = {"columns": list(asked.variables)} if asked.variables else {}
    names = {role: [name for name, one in proposals.items() if one.role == role] for role in OPTIONS}
    recoded = set(asked.columns_with("recode"))
    names["untouched"] = [name for name in names["untouched"] if name not in recoded]
    found = {role: listed for role, listed in names.items() if listed}
    more = {role: list(asked.columns_with(role)) for role in ("by", "known", "unknown", "confidential")}
    more["recode"] = [f"{one.column}={one}" for one in asked.recode]
    return variables | found | {role: listed for role, listed in more.items() if listed}


def _notes(floor: Floor, roles: Roles, proposals: Mapping[str, Proposal]) -> Iterator[str]:
    """Yield the sentences below the tables: what columns give away, and what is to be decided."""
    weights = weights_text(floor, roles.weights)
    if weights is not None:
        yield weights
    yield floor_text(floor.columns, floor.together, roles.variables)
    raising = [name for name in floor.raising(roles.weights) if floor.without[name].floor < floor.floor]
    if len(raising) > 1:
        listed = (f"{name} ({floor.without[name].floor:.2g} without it)" for name in raising)
        yield f"columns that raise the floor, most first: {', '.join(listed)}"
    undecided = [name for name, one in proposals.items() if not one.decided]
    if undecided:
        yield f"proposed, to be decided before a release: {', '.join(undecided)}"
