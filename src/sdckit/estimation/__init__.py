"""Estimates that users of a file compute, in both files: parsed, measured, compared, guarded in public."""

import sdckit.metrics  # noqa: F401 - first, as its losses import modules of this package
