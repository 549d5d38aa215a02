"""What cells of text hold: dates and numbers."""

from __future__ import annotations

import polars as pl

PLAIN = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
OTHERWISE = r"^[+-]?([0-9]{1,3}([,. '][0-9]{3})+|[0-9]+)([.,][0-9]+)?$"  # 1,234.5 or 1.234,5 or 1,5 or +5
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
DATES = {  # day before month before year; months first only where no day fits
    "%Y-%m-%d": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "%Y-%m-%d %H:%M:%S": r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$",
    "%Y-%m-%dT%H:%M:%S": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$",
    "%Y/%m/%d": r"^[0-9]{4}/[0-9]{2}/[0-9]{2}$",
    "%d.%m.%Y": r"^[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}$",
    "%d/%m/%Y": r"^[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}$",
    "%m/%d/%Y": r"^[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}$",
    "%d-%m-%Y": r"^[0-9]{1,2}-[0-9]{1,2}-[0-9]{4}$",
}


def date_format(cells: pl.Series) -> str | None:
    """Return the format in which all text cells are dates, such as "%Y-%m-%d"; None if there is none."""
    for form, pattern in DATES.items():
        if cells.str.contains(pattern).all():
            kind = pl.Datetime if "%H" in form else pl.Date
            if not cells.str.strptime(kind, form, strict=False).null_count():
                return form
    return None


def are_numbers(cells: pl.Series, *, decimal_comma: bool = False) -> tuple[pl.Series, pl.Series]:
    """Return for text cells whether each is a plain number, and whether it is one with marks or grouping."""
    plain = cells.str.replace(",", ".", literal=True) if decimal_comma else cells
    return plain.str.contains(PLAIN), cells.str.contains(OTHERWISE) | cells.str.contains(MARKED)


def is_mostly_numbers(cells: pl.Series, *, decimal_comma: bool = False) -> bool:
    """Return True if at least half of the text cells are numbers, and none is a code such as 007."""
    plain, marked = are_numbers(cells, decimal_comma=decimal_comma)
    numbers = int((plain | marked).sum())
    return len(cells) > 0 and 2 * numbers >= len(cells) and not cells.str.contains(CODE).any()
