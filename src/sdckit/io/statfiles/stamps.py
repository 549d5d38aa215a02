"""Times of writing in the headers of Stata, SPSS and SAS files, set to one date, so that bytes repeat."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HEADER = 2048  # bytes of a file within which the times stand
_STATA, _STATA_TIME = rb"(<timestamp>\x11)\d\d \w{3} \d{4} \d\d:\d\d", rb"\g<1>01 Jan 1980 00:00"
_SAS, _SAS_TIME = rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d", b"01JAN80:00:00:00"
_SPSS, _SPSS_TIME = rb"(?s)\A(.{92})\d\d \w{3} \d\d\d\d:\d\d:\d\d", rb"\g<1>01 Jan 8000:00:00"
STAMPS = {
    ".dta": (_STATA, _STATA_TIME),
    ".xpt": (_SAS, _SAS_TIME),
    ".sav": (_SPSS, _SPSS_TIME),
    ".zsav": (_SPSS, _SPSS_TIME),
}
XPT_TIMES = (144, 160, 464, 480)  # where a SAS transport file has its times; text of labels is left alone


def clear_times(draft: Path, suffix: str) -> None:
    """Replace the times of writing in a file by one date, so that the same table gives the same bytes."""
    pattern, fixed = STAMPS[suffix]
    with draft.open("rb+") as handle:
        header = handle.read(HEADER)
        if suffix == ".xpt":
            changed = bytearray(header)
            for start in XPT_TIMES:
                here = slice(start, start + len(fixed))
                if re.fullmatch(pattern, header[here]):
                    changed[here] = fixed
        else:
            changed = bytearray(re.sub(pattern, fixed, header, count=1))
        handle.seek(0)
        handle.write(changed)
