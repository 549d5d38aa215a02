"""Where results find what draws their charts and builds their reports, which is loaded when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def page_builder() -> ModuleType:
    """Return the module that builds reports and charts; it is above this package, and slow to import."""
    from sdckit.report import build  # noqa: PLC0415 - see above

    return build
