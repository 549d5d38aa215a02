"""Write TOML: strings, numbers, booleans, lists and tables, with quoted keys where names are odd."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

WIDTH = 100  # characters of a line up to which a list stays on it
BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(content: Mapping[str, Any]) -> str:
    """Return a dict as TOML: plain values first, then a section for each dict, alone or in a list."""
    plain = [f"{key_text(key)} = {value_text(value)}" for key, value in content.items() if not _nested(value)]
    parts = ["\n".join(plain)] if plain else []
    for key, value in content.items():
        if isinstance(value, dict):
            parts.append(section_text(f"[{key_text(key)}]", value))
        elif _nested(value):
            parts += [section_text(f"[[{key_text(key)}]]", entry) for entry in value]
    return "\n\n".join(parts) + "\n"


def section_text(head: str, entries: Mapping[str, Any]) -> str:
    """Return a section: its head, then a line for each entry."""
    return "\n".join([head, *(entry_text(key, value) for key, value in entries.items())])


def entry_text(key: str, value: Any) -> str:
    """Return a key and its value as a line; a long list has a line for each of its values."""
    line = f"{key_text(key)} = {value_text(value)}"
    if isinstance(value, list) and len(line) > WIDTH:
        return "\n".join([f"{key_text(key)} = [", *(f"    {value_text(one)}," for one in value), "]"])
    return line


def key_text(key: str) -> str:
    """Return a key, in quotation marks unless it has letters, digits, dashes and underscores only."""
    return key if BARE.fullmatch(key) and key.isascii() else string_text(key)


def value_text(value: Any) -> str:
    """Return a value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        inner = ", ".join(f"{key_text(key)} = {value_text(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(value_text, value))}]"
    return string_text(str(value))


def string_text(text: str) -> str:
    """Return a string in quotation marks; what cannot be printed, such as a mark of direction, is escaped."""
    return f'"{"".join(map(_letter_text, text))}"'


def _letter_text(letter: str) -> str:
    """Return a character as a TOML string has it."""
    if letter in '"\\':
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    code = ord(letter)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"a name has the byte {code & 0xFF:#04x}, which is no UTF-8 text; rename it")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _nested(value: Any) -> bool:
    """Return True for a dict, and for a list of dicts."""
    return isinstance(value, dict) or (isinstance(value, list) and value != [] and isinstance(value[0], dict))
