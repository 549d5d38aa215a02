"""Warnings of a command: held back until its input has passed all checks, then printed, each once."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sdckit.cli.terminal import print_to_stderr

if TYPE_CHECKING:
    from collections.abc import Iterator


class Warnings:
    """Collected warnings of a command, each printed once, and not before the input has passed all checks."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.held: bool = True

    def add(self, text: str) -> None:
        """Record a warning; print it at once if warnings are no longer held back."""
        if text not in self.seen:
            self.seen.append(text)
            if not self.held:
                print_to_stderr("warning", text)

    def show(self) -> None:
        """Print the warnings held back so far; later ones are printed at once."""
        if self.held:
            self.held = False
            for text in self.seen:
                print_to_stderr("warning", text)


def print_held_warnings() -> None:
    """Print all warnings held back so far, and let later ones be printed at once."""
    click.get_current_context().obj.show()


@contextmanager
def warnings_named_after(file: str) -> Iterator[None]:
    """Begin the errors and warnings that are raised in a `with` block with the name of a file."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            yield
        except (ValueError, TypeError) as error:
            raise ValueError(f"'{file}': {error}") from error
    for entry in seen:
        warnings.warn(f"'{file}': {entry.message}", stacklevel=2)
