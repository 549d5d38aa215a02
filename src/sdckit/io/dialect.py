"""How a file is read: delimiter, decimal mark, encoding and missing codes of text; which table of several."""

from dataclasses import dataclass
from pathlib import Path

from sdckit.io.suffixes import suffix_of


@dataclass(frozen=True)
class Dialect:
    r"""How a file is read: delimiter, decimal mark, encoding and missing codes; which table of several.

    Parameters
    ----------
    delimiter
        One character; `\t`, as typed in a shell, means a tab. Without one it is a comma, a
        semicolon where decimals have a comma, or a tab in a `.tsv` file.
    decimal_comma
        Numbers look like `1,5`.
    encoding
        Any text encoding that Python supports; a byte-order mark at the start is skipped.
    missing
        Texts that stand for a missing number, such as NA; an empty cell always does.
    table
        The sheet of an Excel file or the data frame of an R file that is read; other files hold one table.
        Without a name it is the only one there.

    Examples
    --------
    >>> Dialect(delimiter="::")
    Traceback (most recent call last):
    ValueError: delimiter '::' cannot be used; give one character, such as ',' or '\t'
    """

    delimiter: str | None = None
    decimal_comma: bool = False
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()
    table: str | None = None

    def __post_init__(self) -> None:
        try:
            "".encode(self.encoding)
            b"".decode(self.encoding)
        except (LookupError, ValueError) as error:
            remedy = "use one that Python supports, such as utf-8, latin-1 or cp1252"
            raise ValueError(f"unknown encoding {self.encoding!r}; {remedy}") from error
        mark = self.delimiter
        if mark is None:
            return
        mark = "\t" if mark == "\\t" else mark
        if len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in '"\r\n.+-\0':
            raise ValueError(f"delimiter {mark!r} cannot be used; give one character, such as ',' or '\\t'")
        if mark == "," and self.decimal_comma:
            raise ValueError("delimiter ',' cannot go with a decimal comma; give another, such as ';'")
        object.__setattr__(self, "delimiter", mark)

    def separator(self, path: Path) -> str:
        """Return the delimiter of the file at `path`: the given one, or that of its suffix."""
        if self.delimiter is not None:
            return self.delimiter
        if suffix_of(path).startswith(".tsv"):
            return "\t"
        return ";" if self.decimal_comma else ","


DEFAULT = Dialect()
