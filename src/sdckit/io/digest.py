"""SHA-256 of files and of JSON: the number by which content is known to be what was signed or stored."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.io.atomic import AnyPath


def sha256_of(path: AnyPath) -> str:
    """Return the SHA-256 of a file in hexadecimal digits; of a folder, that of its files' names and sums."""
    path = Path(path)
    if path.is_dir():
        parts = sorted(file for file in path.rglob("*") if file.is_file())
        lines = [f"{file.relative_to(path).as_posix()} {sha256_of(file)}\n" for file in parts]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of JSON content in one canonical form, as 64 hexadecimal digits."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
