"""Disclosure risk of a masked file: one public function for each risk metric."""

from sdckit.core.registry import functions_of, import_modules

import_modules(__name__)
globals().update(functions_of("risk"))
__all__ = sorted(functions_of("risk"))  # noqa: PLE0605 - one name for each metric found
