"""Choose the engine of a command by its options and the size of its files, and refuse what it has not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit.cli import terminal
from sdckit.engines.opening import Settings
from sdckit.engines.parquet_files import read_folder
from sdckit.io import files
from sdckit.io.memory import memory_at_hand, memory_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sdckit.io.dialect import Dialect
    from sdckit.io.source import Source

# Options that need all records in memory.
EVALUATING = (
    "report",
    "private_report",
    "records",
    "together",
    "scenario",
    "crosswalks",
    "unpaired",
    "unit",
    "rules",
    "estimates",
    "made_by_command",
    "known_share",
)
MASKING = (
    "report",
    "private_report",
    "release",
    "keep_order",
    "crosswalk",
    "numbered",
    "groups",
    "recode",
    "unit",
    "estimates",
    "calibrate",
)
SINGULAR = {"crosswalks": "crosswalk", "rules": "rule", "estimates": "estimate"}  # flags of repeated options


def engine_for_evaluating(given: dict[str, Any], original: Path, masked: Sequence[Path]) -> Settings:
    """Return where `evaluate` works; raise ValueError for an option that is not to be had there."""
    asked = _settings(given)
    where = asked.for_data(original, *masked)
    _refuse(where, EVALUATING, given)
    _print_choice(asked, where, original, given)
    return where


def engine_for_masking(given: dict[str, Any], data: Path, output: Path) -> Settings:
    """Return where `mask` works; raise ValueError for an option that is not to be had there."""
    asked = _settings(given)
    where = asked.for_output(data, output)
    _refuse(where, MASKING, given)
    _print_choice(asked, where, data, given)
    return where


def read_data(path: Path, dialect: Dialect) -> Source:
    """Return the table of a file, or of all Parquet files in a folder, in memory."""
    return read_folder(path, dialect) if path.is_dir() else files.read(path, dialect)


def _settings(given: dict[str, Any]) -> Settings:
    """Return the engine and what belongs to it as the command line gives them, checked."""
    return Settings.of(
        given["engine"], memory=given["memory"], master=given["master"], scratch=given["scratch"]
    )


def _refuse(where: Settings, options: Sequence[str], given: dict[str, Any]) -> None:
    """Raise ValueError for an option that only the engine memory has, if the engine is another one."""
    if where.engine == "memory":
        return
    for name in options:
        if given[name]:
            flag = SINGULAR.get(name, name.replace("_", "-"))
            raise ValueError(
                f"--{flag} needs all records in memory and the engine is {where.engine}; "
                "drop it or use --engine memory"
            )


def _print_choice(asked: Settings, where: Settings, data: Path, given: dict[str, Any]) -> None:
    """Say in one line on standard error that files are read in blocks, if that was not asked for."""
    if asked.engine is None and where.engine == "local" and not given["quiet"]:
        limit = memory_text(memory_at_hand() if where.memory is None else where.memory)
        terminal.print_to_stderr(
            "note", f"reading '{data}' in blocks of rows on this machine, within {limit} (--engine local)"
        )
