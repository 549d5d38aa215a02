"""Markdown of the reference: tables, blocks of code, and docstrings in numpydoc's form."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MADE = "Made by `tools/make_reference.py` from the program itself."
UNDERLINE = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)
CODE = re.compile(r"(`[^`]*`)")


def page(*parts: str) -> str:
    """Return the text of a page from its parts, one empty line between them."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a line end in a cell is kept as a break."""
    lines = [columns, ["---"] * len(columns), *([_cell(text) for text in row] for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def plain(text: str) -> str:
    """Return text in which only backquotes have a meaning in Markdown."""
    parts = CODE.split(text)
    return "".join(
        part if place % 2 else re.sub(r"([*<])", r"\\\1", part) for place, part in enumerate(parts)
    )


def block(text: str, language: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text}\n```"


def docstring(text: str) -> str:
    """Return a docstring in numpydoc's form as Markdown: items of sections as a list, examples as code."""
    head, *rest = UNDERLINE.split(text)
    sections = zip(rest[::2], rest[1::2], strict=True)
    return page(plain(head), *(_section(title, body.strip("\n")) for title, body in sections))


def _section(title: str, body: str) -> str:
    """Return one section of a docstring."""
    if title == "Examples":
        return page(f"**{title}**", block(body, "python"))
    if title in {"Notes", "References"}:
        return page(f"**{title}**", plain(body))
    return page(f"**{title}**", "\n".join(_items(body)))


def _items(body: str) -> Iterable[str]:
    """Yield the items of a section: a name and its type in a line, the text below it indented."""
    for item in re.split(r"\n(?=\S)", body):
        head, _, text = item.partition("\n")
        names, _, kind = head.partition(" : ")
        named = ", ".join(f"`{name.strip()}`" for name in names.split(","))
        said = " ".join(textwrap.dedent(text).split())
        yield "- " + named + (f" ({plain(kind)})" if kind else "") + (f": {plain(said)}" if said else "")


def _cell(text: str) -> str:
    """Return the text of a cell of a table."""
    return text.replace("|", "\\|").replace("\n", "<br>")
