"""Dates and times in Stata, SPSS and SAS files, which are numbers with a date format."""

import re
from typing import Literal

import polars as pl

Family = Literal["stata", "spss", "sas"]
Unit = Literal["date", "datetime", "time", "week", "month", "quarter", "half"]

_DAY = 86_400
_DAYS_TO_1970 = {"stata": 3_653, "sas": 3_653, "spss": 141_428}  # from the day that counts as 0
_MOST_MONTHS = 12 * 8_000  # up to the year 9999, as far as calendars go
_MOST_SECONDS = 10_000 * 366 * _DAY
_MONTHS = {"month": 1, "quarter": 3, "half": 6}

_STATA: dict[str, Unit] = {"w": "week", "m": "month", "q": "quarter", "h": "half", "d": "date"}
_STATA |= {"c": "datetime", "C": "datetime"}
_SPSS: dict[str, Unit] = {
    **dict.fromkeys(["DATE", "ADATE", "EDATE", "JDATE", "SDATE", "QYR", "MOYR", "WKYR"], "date"),
    **dict.fromkeys(["DATETIME", "YMDHMS"], "datetime"),
    **dict.fromkeys(["TIME", "DTIME", "MTIME"], "time"),
}
_SAS: tuple[tuple[str, Unit], ...] = (  # the first that fits; a format may end in the mark between its parts
    (r"DATETIME|DATEAMPM|MDYAMPM|DT(DATE|MONYY|WKDATX|YEAR|YYQC)|(IS|E|B)8601(DT|DZ|DN|DX|LX)", "datetime"),
    (r"TIME|TIMEAMPM|TOD|HHMM|HOUR|MMSS|(IS|E|B)8601(TM|TZ|LZ)", "time"),
    (
        r"DATE|(WEEK|WORD)DAT[EX]|JULIAN|MONYY|YYMON|(IS|E|B)8601DA|(MMDDYY|DDMMYY|YYMMDD|MMYY|YYMM|YYQR?)[BCDNPS]?",
        "date",
    ),
)
FORMATS: dict[Family, dict[str, str]] = {
    "stata": {"date": "%td", "datetime": "%tc", "time": "%tcHH:MM:SS"},
    "spss": {"date": "SDATE10", "datetime": "DATETIME22.2", "time": "TIME11.2"},
    "sas": {"date": "DATE9.", "datetime": "DATETIME20.", "time": "TIME8."},
}


def unit_of(family: Family, form: str | None) -> Unit | None:
    """Return what a column's numbers count ("date", "month" ...) by its format; None for plain numbers."""
    if not form:
        return None
    if family == "stata":
        if re.match(r"%-?t[cC]H", form):  # shows the time of a day, and no day
            return "time"
        found = re.match(r"%-?(?:t([cCdwmqh])|(d))", form)
        return _STATA[found[1] or found[2]] if found else None
    found = re.match(r"([A-Z]\w*?)\d*(\.\d*)?$", form.upper())
    if not found:
        return None
    if family == "spss":
        return _SPSS.get(found[1])
    return next((unit for pattern, unit in _SAS if re.fullmatch(pattern, found[1])), None)


def to_dates(numbers: pl.Series, family: Family, unit: Unit) -> pl.Series:
    """Return the stored numbers of a column as dates or times; null for dates out of range."""
    values = numbers.cast(pl.Float64)
    if unit == "week":  # fifty-two in each year, the last of eight or nine days
        year = _first_days_of_months(values // 52 * 12)
        return (year.cast(pl.Int32) + (values % 52 * 7).cast(pl.Int32)).cast(pl.Date)
    if unit in _MONTHS:
        return _first_days_of_months(values * _MONTHS[unit])
    if unit == "date":
        days = values / _DAY if family == "spss" else values
        return (days.floor() - _DAYS_TO_1970[family]).cast(pl.Int32, strict=False).cast(pl.Date)
    values = values / 1_000 if family == "stata" else values
    if unit == "time":
        whole = _microseconds(values, 0)
        if values.drop_nulls().is_between(0, _DAY, closed="left").all():
            return (whole * 1_000).cast(pl.Time)
        return whole.cast(pl.Duration("us"))
    fine = 10 if family == "spss" else 1  # a float of seconds since 1582 does not hold single microseconds
    return _microseconds(values, _DAYS_TO_1970[family] * _DAY, fine).cast(pl.Datetime("us"))


def _microseconds(seconds: pl.Series, before: int, fine: int = 1) -> pl.Series:
    """Return seconds as whole microseconds since 1970, or since midnight, in steps of `fine`."""
    seconds = _null_beyond(seconds, _MOST_SECONDS)
    whole = seconds.floor()
    parts = ((seconds - whole) * (1_000_000 // fine)).round().cast(pl.Int64) * fine
    return (whole.cast(pl.Int64) - before) * 1_000_000 + parts


def _null_beyond(values: pl.Series, most: float) -> pl.Series:
    """Return the values with null where their absolute size exceeds `most`."""
    return values.set(values.abs() > most, None)


def _first_days_of_months(since: pl.Series) -> pl.Series:
    """Return the first days of months counted from January 1960."""
    name = since.name
    month = _null_beyond(since.floor(), _MOST_MONTHS).cast(pl.Int64).alias("m")
    return month.to_frame().select(pl.date(1960 + pl.col("m") // 12, pl.col("m") % 12 + 1, 1).alias(name))[
        name
    ]


def to_numbers(column: pl.Series, family: Family) -> tuple[pl.Series, str]:
    """Return dates or times as the numbers that the program stores, and their format."""
    kind = column.dtype
    if kind == pl.Date:
        days = column.cast(pl.Int32).cast(pl.Float64) + _DAYS_TO_1970[family]
        return days * (_DAY if family == "spss" else 1), FORMATS[family]["date"]
    size = 1_000 if family == "stata" else 1_000_000
    if kind == pl.Time:
        return column.cast(pl.Int64).cast(pl.Float64) / (1_000 * size), FORMATS[family]["time"]
    if kind == pl.Duration:
        return column.dt.total_microseconds().cast(pl.Float64) / size, FORMATS[family]["time"]
    plain = column.dt.replace_time_zone(None).dt.cast_time_unit("us").cast(pl.Int64)
    since = (plain + _DAYS_TO_1970[family] * _DAY * 1_000_000).cast(pl.Float64)
    return since / size, FORMATS[family]["datetime"]
