"""Compress and decompress text files, the same bytes to the same bytes at any time."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from sdckit.io.formats import PACKED_SUFFIXES
from sdckit.io.memory import BEYOND_MEMORY, require_memory

if TYPE_CHECKING:
    from pathlib import Path

PIECE = 1 << 24  # bytes that are decompressed between two looks at the memory
GZIP_LEVEL = 6  # as the command gzip


def is_packed(path: Path) -> bool:
    """Return True for the name of a compressed file."""
    return path.suffix.lower() in PACKED_SUFFIXES


def unpacked(path: Path, data: bytes) -> bytes:
    """Return the decompressed content of a file.

    Parameters
    ----------
    path, data
        The file, whose last suffix says how it is compressed, and its bytes.

    Returns
    -------
    bytes
        The content.

    Raises
    ------
    ValueError
        The file is cut off, damaged or not compressed so, or its content takes more memory than there is.
    """
    module = _module_of(path)
    errors = (
        EOFError,
        OSError,
        ValueError,
        zlib.error,
        lzma.LZMAError,
        getattr(module, "ZstdError", OSError),
    )
    content = bytearray()
    with module.open(io.BytesIO(data)) as file:
        while True:
            try:
                piece = file.read(PIECE)
            except errors as error:
                fact = f"'{path}' is no whole {path.suffix.lower()} file (cut off, damaged or not compressed)"
                raise ValueError(f"{fact}; copy it again") from error
            if not piece:
                return bytes(content)
            content += piece
            require_memory(f"'{path}' without compression", len(piece), BEYOND_MEMORY)


def packed(path: Path, content: bytes) -> bytes:
    """Return content compressed as the last suffix of a file says, without time or name of the file."""
    module = _module_of(path)
    if module is gzip:
        return gzip.compress(content, GZIP_LEVEL, mtime=0)
    return cast("bytes", module.compress(content))


def _module_of(path: Path) -> Any:
    """Return the module of Python that compresses and decompresses files with this last suffix."""
    return {".gz": gzip, ".bz2": bz2, ".xz": lzma}.get(path.suffix.lower()) or import_zstd()


def import_zstd() -> Any:
    """Return Python's module for Zstandard, or its backport; ValueError with the remedy without both."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ValueError(
        '.zst files need Python 3.14 or the package backports.zstd; pip install "sdckit[formats]"'
    )
