"""Compress and decompress text files, the same bytes to the same bytes at any time."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, cast

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
    suffix = path.suffix.lower()
    errors: tuple[Any, ...] = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)
    if suffix == ".zst":
        errors = (*errors, import_zstd().ZstdError)
    content = bytearray()
    with content_of(path, io.BytesIO(data)) as file:
        while True:
            try:
                piece = file.read(PIECE)
            except errors as error:
                raise ValueError(
                    f"'{path}' is no whole {suffix} file (cut off, damaged or not compressed); copy it again"
                ) from error
            if not piece:
                return bytes(content)
            content += piece
            require_memory(f"'{path}' without compression", len(piece), BEYOND_MEMORY)


def content_of(path: Path, raw: BinaryIO) -> BinaryIO:
    """Return the open compressed file of a path as an open file of its content."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast("BinaryIO", gzip.GzipFile(fileobj=raw))
    if suffix == ".bz2":
        return cast("BinaryIO", bz2.BZ2File(raw))
    if suffix == ".xz":
        return cast("BinaryIO", lzma.LZMAFile(raw))
    return cast("BinaryIO", import_zstd().ZstdFile(raw))


def packed(path: Path, content: bytes) -> bytes:
    """Return content compressed as the last suffix of a file says, without time or name of the file."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.compress(content, GZIP_LEVEL, mtime=0)
    if suffix == ".bz2":
        return bz2.compress(content)
    if suffix == ".xz":
        return lzma.compress(content)
    return cast("bytes", import_zstd().compress(content))


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
