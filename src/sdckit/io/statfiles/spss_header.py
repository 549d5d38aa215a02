"""Check the header of an SPSS file before pyreadstat reads it: damage there could crash the process."""

import struct

_HEADER = 176  # bytes before the first record
_END = 999
_MISSING = {-3, -2, 0, 1, 2, 3}  # how many missing values a variable declares; a range is negative


def is_sound(data: bytes) -> bool:
    """Return True if the variable records follow each other and name variables that exist."""
    if data[:4] not in {b"$FL2", b"$FL3"}:
        return False
    try:
        walk = _Walk(data)
        while (kind := walk.number()) != _END:
            walk.steps[kind]()
    except (struct.error, KeyError, ValueError):  # it ends within a record, or is none
        return False
    return bool(walk.widths) and _texts_fit(walk.widths)


class _Walk:
    """A cursor that moves from record to record by the length each record states."""

    def __init__(self, data: bytes) -> None:
        little = data[64:68] in {b"\2\0\0\0", b"\3\0\0\0"}
        self.data, self.form, self.place = data, "<i" if little else ">i", _HEADER
        self.widths: list[int] = []
        self.steps = {
            2: self.variable,
            3: self.labels,
            4: self.labelled,
            6: self.document,
            7: self.extension,
        }

    def number(self) -> int:
        (found,) = struct.unpack_from(self.form, self.data, self.place)
        self.place += 4
        return int(found)

    def count(self) -> int:
        found = self.number()
        if not 0 <= found <= len(self.data):
            raise ValueError
        return found

    def variable(self) -> None:
        width, labelled, missing = self.number(), self.number(), self.number()
        if not (-1 <= width <= 255 and labelled in {0, 1} and missing in _MISSING):
            raise ValueError
        self.widths.append(width)
        self.place += 16  # two formats and a name
        if labelled:
            length = self.count()
            self.place += -(-length // 4) * 4
        self.place += 8 * abs(missing)

    def labels(self) -> None:
        for _ in range(self.count()):
            (length,) = struct.unpack_from("B", self.data, self.place + 8)
            self.place += 8 + (length + 8) // 8 * 8

    def labelled(self) -> None:
        for _ in range(self.count()):
            number = self.number()
            if not 1 <= number <= len(self.widths) or self.widths[number - 1] < 0:
                raise ValueError

    def document(self) -> None:
        lines = self.count()
        self.place += 80 * lines

    def extension(self) -> None:
        self.number()
        size, count = self.count(), self.count()
        self.place += size * count


def _texts_fit(widths: list[int]) -> bool:
    """Return True if each text of more than eight bytes has an entry for each further eight."""
    due = 0
    for width in widths:
        if (width == -1) != (due > 0):
            return False
        due = due - 1 if width == -1 else max(-(-width // 8) - 1, 0)
    return due == 0
