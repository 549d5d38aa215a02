"""HTML by which results show themselves in notebooks: the sentences and tables that `print` shows, escaped.

Colours are those of the notebook, so that light and dark ones show the same. There is no script and no style
sheet: notebooks that are not trusted drop both.
"""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sdckit.core.text import number, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

Record = TypeVar("Record")

_LEFT = "text-align:left;vertical-align:top;white-space:normal;padding:2px 8px"
_RIGHT = "text-align:right;vertical-align:top;white-space:nowrap;padding:2px 8px"
_LINE = ";border-bottom:1px solid currentColor"
_FRAME = "width:100%;height:640px;border:1px solid currentColor"


def escaped(text: object) -> str:
    """Return text for HTML, in which no tag, no quote and no unseen character is left."""
    return html.escape(printable(str(text), lines=True))


def block(*parts: str) -> str:
    """Return parts of HTML as what a notebook shows of one object."""
    return f'<div class="sdckit">{"".join(parts)}</div>'


def paragraphs(texts: Iterable[str]) -> str:
    """Return texts as paragraphs."""
    return "".join(f'<p style="margin:4px 0">{escaped(text)}</p>' for text in texts)


def table(names: Sequence[str], rows: Iterable[Sequence[object]], *, right: Iterable[str] = ()) -> str:
    """Return rows of texts below the names of the columns as a table; columns in `right` hold numbers."""
    styles = [_RIGHT if name in set(right) else _LEFT for name in names]
    head = _row("th", names, [style + _LINE for style in styles])
    body = "".join(_row("td", row, styles) for row in rows)
    return f'<table style="border-collapse:collapse"><thead>{head}</thead><tbody>{body}</tbody></table>'


def frame_table(frame: pl.DataFrame) -> str:
    """Return all rows of a frame as a table, its numbers as they are printed."""
    right = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    return table(frame.columns, ([_cell(value) for value in row] for row in frame.rows()), right=right)


def _cell(value: object) -> str:
    """Return a cell of a frame as text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else str(value)


def _row(tag: str, cells: Sequence[object], styles: Sequence[str]) -> str:
    """Return the cells of a row in the given tags and styles."""
    inner = (
        f'<{tag} style="{style}">{escaped(cell)}</{tag}>' for cell, style in zip(cells, styles, strict=True)
    )
    return f"<tr>{''.join(inner)}</tr>"


class ShownRecords(dict[str, Record]):
    """Records by name, which a notebook shows as a table of some of their properties."""

    def __init__(self, *properties: str) -> None:
        super().__init__()
        self.properties = properties

    def __repr__(self) -> str:
        """Return a line for each record."""
        return "\n".join(f"{name}: {'; '.join(more)}" for name, *more in self._rows())

    def _repr_html_(self) -> str:
        """Return a row for each record, for notebooks."""
        return block(table([name.removesuffix("_text") for name in self.properties], self._rows()))

    def _rows(self) -> list[list[str]]:
        """Return the properties of each record as texts."""
        return [[_property(record, name) for name in self.properties] for record in self.values()]


def _property(record: object, name: str) -> str:
    """Return a property of a record as text; of several parts their names."""
    value: Any = getattr(record, name)
    return ", ".join(part.name for part in value) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class WrittenReport(os.PathLike[str]):
    """A report that was written to the file `path`; as the last line of a cell, the notebook shows it.

    It can be given wherever Python takes a path.
    """

    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"wrote {self.path}"

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, without rights on the notebook; a sentence if it is gone.

        The page is part of the notebook then: an address of the file would depend on the notebook's server.
        """
        said = paragraphs([repr(self)])
        try:
            page = self.path.read_text(encoding="utf-8")
        except OSError:
            return block(said)
        apart = f'sandbox="allow-scripts" title="report" style="{_FRAME}"'
        return block(said, f'<iframe {apart} srcdoc="{html.escape(page)}"></iframe>')
