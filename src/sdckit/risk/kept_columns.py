"""What sweeps and searches read of columns that are not masked, and keep where the table itself is not."""

from __future__ import annotations

import hashlib
import pickle
from typing import TYPE_CHECKING

from sdckit.risk.confidential_cells import confidential_of_original
from sdckit.risk.unit_points import units_of_original
from sdckit.risk.untouched import blocks_of_original

if TYPE_CHECKING:
    from sdckit.metrics.original import Original


def keep_columns(original: Original) -> None:
    """Read all that risks need of a table's other columns, to be kept without the table."""
    blocks_of_original(original)
    confidential_of_original(original)
    units_of_original(original)


def digest_of_columns(original: Original) -> bytes:
    """Return a digest of what risks read of columns that are not masked."""
    blocks, cells = blocks_of_original(original), confidential_of_original(original)
    units = units_of_original(original)
    digest = hashlib.sha256(b"" if blocks is None else blocks.tobytes())
    digest.update(b"" if units is None else units.tobytes())
    digest.update(pickle.dumps(cells) if cells else b"")
    return digest.digest()
