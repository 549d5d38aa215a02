"""Check the header of an SPSS file before pyreadstat reads it: damage there could crash the process."""

import struct

_HEADER = 176  # bytes before the first record
_END = 999
_MISSING = {-3, -2, 0, 1, 2, 3}  # how many missing values a variable declares; a range is negative


def is_sound(data: bytes) -> bool:
    """Return True if the header's records follow each other and refer to variables that exist."""
    if data[:4] not in {b"$FL2", b"$FL3"}:
        return False
    try:
        widths = _widths(data)
    except (struct.error, KeyError, ValueError):  # it ends within a record, or is none
        return False
    return bool(widths) and _long_texts_are_whole(widths)


def count_parts(data: bytes) -> int:
    """Return the number of 8-byte parts of a record, for a file whose header is sound."""
    return len(_widths(data))


def is_little_endian(data: bytes) -> bool:
    """Return True if the numbers of an SPSS file begin with their lowest byte."""
    return data[64:68] in {b"\2\0\0\0", b"\3\0\0\0"}


def _widths(data: bytes) -> list[int]:
    """Return the width of each variable record, -1 for those that continue a long text."""
    walk = _RecordWalker(data)
    while (kind := walk.read_number()) != _END:
        walk.steps[kind]()
    return walk.widths


class _RecordWalker:
    """Cursor in the bytes of an SPSS file that moves from record to record by their stated lengths."""

    def __init__(self, data: bytes) -> None:
        self.data, self.form, self.place = data, "<i" if is_little_endian(data) else ">i", _HEADER
        self.widths: list[int] = []
        self.steps = {
            2: self.pass_variable,
            3: self.pass_labels,
            4: self.pass_labelled_variables,
            6: self.pass_document,
            7: self.pass_extension,
        }

    def read_number(self) -> int:
        """Return the 4-byte integer at the cursor and move the cursor past it."""
        (found,) = struct.unpack_from(self.form, self.data, self.place)
        self.place += 4
        return int(found)

    def read_count(self) -> int:
        """Return the 4-byte count at the cursor; raise ValueError if it is larger than the file."""
        found = self.read_number()
        if not 0 <= found <= len(self.data):
            raise ValueError
        return found

    def pass_variable(self) -> None:
        """Move the cursor past a variable record and note its width; ValueError if damaged."""
        width, labelled, missing = self.read_number(), self.read_number(), self.read_number()
        if not (-1 <= width <= 255 and labelled in {0, 1} and missing in _MISSING):
            raise ValueError
        self.widths.append(width)
        self.place += 16  # two formats and a name
        if labelled:
            length = self.read_count()
            self.place += -(-length // 4) * 4
        self.place += 8 * abs(missing)

    def pass_labels(self) -> None:
        """Move the cursor past a record of value labels."""
        for _ in range(self.read_count()):
            (length,) = struct.unpack_from("B", self.data, self.place + 8)
            self.place += 8 + (length + 8) // 8 * 8

    def pass_labelled_variables(self) -> None:
        """Move the cursor past a list of labelled variables; ValueError if one is unknown."""
        for _ in range(self.read_count()):
            number = self.read_number()
            if not 1 <= number <= len(self.widths) or self.widths[number - 1] < 0:
                raise ValueError

    def pass_document(self) -> None:
        """Move the cursor past a record of document lines of 80 bytes."""
        lines = self.read_count()
        self.place += 80 * lines

    def pass_extension(self) -> None:
        """Move the cursor past an extension record of `count` items of `size` bytes."""
        self.read_number()
        size, count = self.read_count(), self.read_count()
        self.place += size * count


def _long_texts_are_whole(widths: list[int]) -> bool:
    """Return True if each text wider than 8 bytes is followed by its entries of width -1, and only these."""
    due = 0
    for width in widths:
        if (width == -1) != (due > 0):
            return False
        due = due - 1 if width == -1 else max(-(-width // 8) - 1, 0)
    return due == 0
