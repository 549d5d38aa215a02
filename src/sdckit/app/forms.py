"""Forms as they are sent: fields by name, texts without surrounding spaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

FIELDS = 20_000  # most fields of a form: some for each column of a wide file


@dataclass(frozen=True)
class Form:
    """Fields of a form by name, each with all its values."""

    fields: Mapping[str, list[str]]

    def text(self, name: str) -> str:
        """Return the first value of a field, an empty text without one."""
        return self.fields.get(name, [""])[0].strip()

    def texts(self, name: str) -> list[str]:
        """Return all values of a field, as of boxes that are ticked."""
        return [value.strip() for value in self.fields.get(name, [])]

    def ticked(self, name: str) -> bool:
        """Return True if a box is ticked."""
        return name in self.fields

    def names_with(self, start: str) -> list[str]:
        """Return what follows in the names of the fields that begin so, in the order of the form."""
        return [name.removeprefix(start) for name in self.fields if name.startswith(start)]


async def read_form(request: Request) -> Form:
    """Return the form that a request carries; raise ValueError if it is none."""
    body = await request.body()
    try:
        return Form(
            parse_qs(
                body.decode(),
                keep_blank_values=True,
                strict_parsing=bool(body),
                errors="strict",
                max_num_fields=FIELDS,
            )
        )
    except ValueError as error:
        raise ValueError("the form could not be read; send it again") from error
