"""Masking methods; importing this package registers all of them."""

from __future__ import annotations

from sdckit.core.registry import METHODS, import_modules
from sdckit.masking.mask_table import (
    Masking,
    apply,
    column_steps,
    mask_prepared,
    mask_rows,
    rounded,
)

__all__ = [
    "METHODS",
    "Masking",
    "apply",
    "column_steps",
    "mask_prepared",
    "mask_rows",
    "rounded",
]

import_modules(__name__)
