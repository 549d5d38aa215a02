"""Information loss of a masked file: one public function for each loss metric."""

from sdckit.core.registry import functions_of, import_modules

import_modules(__name__)
globals().update(functions_of("loss"))
__all__ = sorted(functions_of("loss"))  # noqa: PLE0605 - one name for each metric found
