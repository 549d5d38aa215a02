"""Find text columns that hold numbers, which would otherwise be published unmasked without notice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from sdckit.core.cells import MARKED, OTHERWISE, are_numbers, is_mostly_numbers
from sdckit.core.checks import cells_are_quoted, shown
from sdckit.core.text import plural

if TYPE_CHECKING:
    from collections.abc import Collection

    from sdckit.io.files import Source

COMMA = r"^-?[0-9]+,[0-9]+$"
OWN_CODES = "declare the codes of missing cells, or correct the file"
FEW = 3  # different words that are taken for missing codes at most


def find_text_numbers(source: Source, *, skip: Collection[str] = ()) -> dict[str, tuple[str, str]]:
    """Return, for each mostly numeric text column, why it was read as text and a remedy."""
    found = {}
    for column in source.frame:
        if column.dtype == pl.String and column.name not in skip:
            doubt = _reason_and_remedy(column, source)
            if doubt is not None:
                found[column.name] = doubt
    return found


def _reason_and_remedy(column: pl.Series, source: Source) -> tuple[str, str] | None:
    """Return why a column of numbers was read as text, and a remedy; None for a true text column."""
    comma = source.dialect.decimal_comma
    cells = column.alias("cell").drop_nulls().str.strip_chars()
    cells = cells.filter(~cells.is_in(["", *source.dialect.missing]))
    if not is_mostly_numbers(cells, decimal_comma=comma):
        return None
    if source.text is None:
        return "the file stores it so", "store it as numbers first"
    odd = cells.filter(~are_numbers(cells, decimal_comma=comma)[0])
    if len(odd):
        return _reason_of_odd_cells(odd, comma=comma)
    if comma and cells.str.contains(".", literal=True).any():
        return "of the points in its numbers", "write plain numbers"
    return "of integers with more than 18 digits", "name it as key= or drop it"


def _reason_of_odd_cells(odd: pl.Series, *, comma: bool) -> tuple[str, str]:
    """Return the reason and the remedy for a column of numbers with cells that are no plain number."""
    words = odd.value_counts(name="n").sort(["n", "cell"], descending=[True, False])
    names, counts = words["cell"].to_list(), words["n"].to_list()
    like = f"of {_in_marks(names[0])} and the like in {len(odd)} {plural(len(odd), 'cell')}"
    if not comma and odd.str.contains(COMMA).all():
        return like, "set decimal_comma=True or write plain numbers"
    marked = odd.str.contains(MARKED)
    if marked.all():
        return like, "write plain numbers"
    if marked.any() or odd.str.contains(OTHERWISE).any() or len(names) > FEW:
        return like, "write plain numbers, or declare missing codes with na="
    listed = " and ".join(
        f"{_in_marks(name)} in {count} {plural(count, 'cell')}"
        for name, count in zip(names, counts, strict=True)
    )
    return f"of {listed}", f"declare it with na={names!r}" if cells_are_quoted() else OWN_CODES


def _in_marks(cell: str) -> str:
    """Return a cell in single quotation marks, or a remark in its place."""
    return shown(f"'{cell}'")
