"""Names by which headings of the documentation are linked to, as repositories on the web name them, too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def anchors(headings: Iterable[str]) -> list[str]:
    """Return a name for each heading of a page: its words in lower case; a number tells equal ones apart."""
    seen: dict[str, int] = {}
    found = []
    for heading in headings:
        name = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        count = seen[name] = seen.get(name, -1) + 1
        found.append(f"{name}-{count}" if count else name)
    return found
