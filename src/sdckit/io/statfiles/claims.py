"""How many records the header of a Stata, SPSS or SAS file claims: more than its bytes can hold is damage.

The reading library sets aside memory for all that a header claims, before it reads a record.
"""

from __future__ import annotations

import re
import struct

from sdckit.io.statfiles import spss_header

_XML = re.compile(
    rb"<stata_dta><header><release>(117|118|119)</release><byteorder>(MSF|LSF)</byteorder>"
    rb"<K>(.{2,4}?)</K><N>(.{4,8}?)</N>",
    re.DOTALL,
)
_OLD_STATA = range(102, 116)  # releases whose number is the first byte
_MOST_PACKED = 1100  # bytes that one byte of a zlib stream becomes at most, about
_XPT_COUNT = re.compile(rb"HEADER RECORD\*{7}OBSV8   HEADER RECORD!{7} *(\d+) *")


def claimed_records(suffix: str, data: bytes) -> int | None:
    """Return the number of records that a file claims to have; None where it does not say.

    Parameters
    ----------
    suffix
        That of the file's format, such as ".dta".
    data
        The bytes of the file.

    Returns
    -------
    int or None
        The number.

    Raises
    ------
    ValueError
        So many records have no place in so many bytes.
    """
    try:
        found, least = _READERS[suffix](data) if suffix in _READERS else (None, 0.0)
    except struct.error as error:
        raise ValueError("the file ends within its header") from error
    if found is not None and found * least > len(data):
        raise ValueError(f"a file of {len(data)} bytes claims {found} records")
    return found


def _claimed_by_stata(data: bytes) -> tuple[int | None, float]:
    """Return the number of records of a Stata file, and the fewest bytes that one takes."""
    if found := _XML.match(data):
        order = "little" if found[2] == b"LSF" else "big"
        columns, rows = (int.from_bytes(found[place], order) for place in (3, 4))  # type: ignore[arg-type]
        return rows, max(columns, 1)
    if data[:1] and data[0] in _OLD_STATA:
        columns, rows = struct.unpack_from("<HI" if data[1:2] == b"\2" else ">HI", data, 4)
        return rows, max(columns, 1)
    return None, 0.0


def _claimed_by_spss(data: bytes) -> tuple[int | None, float]:
    """Return the number of records of an SPSS file, and the fewest bytes that one takes."""
    little = spss_header.is_little_endian(data)
    packed, rows = (struct.unpack_from("<i" if little else ">i", data, place)[0] for place in (72, 80))
    if rows < 0:  # written by a program that did not know it yet
        return None, 0.0
    parts = max(spss_header.count_parts(data), 1)
    return rows, {0: 8.0 * parts, 1: float(parts)}.get(packed, parts / _MOST_PACKED)


def _claimed_by_sas(data: bytes) -> tuple[int | None, float]:
    """Return the number of records of a SAS transport file, and the fewest bytes that one takes."""
    found = _XPT_COUNT.search(data)
    return (None, 0.0) if found is None else (int(found[1]), 1.0)


_READERS = {
    ".dta": _claimed_by_stata,
    ".sav": _claimed_by_spss,
    ".zsav": _claimed_by_spss,
    ".xpt": _claimed_by_sas,
}
