"""Run `sdckit paper`: read its options, reproduce the study and print its summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit import progress
from sdckit.cli import parsing, terminal
from sdckit.core import checks, randomness
from sdckit.paper import command

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def run_study(output: Path, given: Mapping[str, Any]) -> None:
    """Write the study to a folder as the command's options say, and print its summary unless quiet."""
    progress.show_progress(not given["quiet"])
    randomness.generator(given["seed"])
    with terminal.resumable(output / command.PRIVATE):
        lines = command.run(
            output,
            data=parsing.parse_names(given["data"]) or [],
            replications=checks.checked_count("replications", given["replications"]),
            formats=parsing.parse_names(given["formats"]) or [],
            seed=given["seed"],
            workers=given["workers"] and checks.checked_count("workers", given["workers"]),
            overwrite=given["overwrite"],
        )
    for line in lines if not given["quiet"] else ():
        terminal.print_note(line)
