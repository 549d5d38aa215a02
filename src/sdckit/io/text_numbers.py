"""Find text columns that hold numbers, which would otherwise be published unmasked without notice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from sdckit.core.text import plural

if TYPE_CHECKING:
    from collections.abc import Collection

    from sdckit.io.source import Source

PLAIN = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
OTHERWISE = r"^[+-]?([0-9]{1,3}([,. '][0-9]{3})+|[0-9]+)([.,][0-9]+)?$"  # 1,234.5 or 1.234,5 or 1,5 or +5
COMMA = r"^-?[0-9]+,[0-9]+$"
CURRENCY = (
    r"([A-Z]{0,3}\p{Sc}|(?i:AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|MXN|NOK|NZD|PLN|RON|SEK|TRY|USD|ZAR"
    r"|euros?|dollars?|pounds?|francs?|kr\.?|zł))"
)
FIGURE = r"([0-9]{1,3}([,. '\x{a0}\x{202f}][0-9]{3})+([.,][0-9]*)?|[0-9]+[.,]?[0-9]*|[.,][0-9]+)"
MARKED = (  # $5, -$5, 12 EUR, 5%
    rf"^[+-]?\s*{CURRENCY}\s*[+-]?{FIGURE}$"
    rf"|^[+-]?{FIGURE}\s*({CURRENCY}|[%‰]|(?i:percent|per cent|p\.?c\.?))$"
)
CODE = r"^-?0[0-9]"  # a cell such as 007 makes its column one of codes
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
    plain = (cells.str.replace(",", ".", literal=True) if comma else cells).str.contains(PLAIN)
    odd = cells.filter(~plain)
    numbers = len(cells) - len(odd) + len(odd.filter(odd.str.contains(OTHERWISE) | odd.str.contains(MARKED)))
    if not len(cells) or 2 * numbers < len(cells) or cells.str.contains(CODE).any():
        return None
    if source.text is None:
        return "the file stores it so", "store it as numbers first"
    if len(odd):
        return _reason_of_odd_cells(odd, comma=comma)
    if comma and cells.str.contains(".", literal=True).any():
        return "of the points in its numbers", "write plain numbers"
    return "of integers with more than 18 digits", "name it as key= or drop it"


def _reason_of_odd_cells(odd: pl.Series, *, comma: bool) -> tuple[str, str]:
    """Return the reason and the remedy for a column of numbers with cells that are no plain number."""
    words = odd.value_counts(name="n").sort(["n", "cell"], descending=[True, False])
    names, counts = words["cell"].to_list(), words["n"].to_list()
    like = f"of '{names[0]}' and the like in {len(odd)} cells"
    if not comma and odd.str.contains(COMMA).all():
        return like, "set decimal_comma=True or write plain numbers"
    marked = odd.str.contains(MARKED)
    if marked.all():
        return like, "write plain numbers"
    if marked.any() or odd.str.contains(OTHERWISE).any() or len(names) > FEW:
        return like, "write plain numbers, or declare missing codes with na="
    listed = " and ".join(
        f"'{name}' in {count} {plural(count, 'cell')}" for name, count in zip(names, counts, strict=True)
    )
    return f"of {listed}", f"declare it with na={names!r}"
