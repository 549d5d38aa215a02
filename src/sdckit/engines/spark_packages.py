"""The packages of the extra `spark`; this module needs none of them."""

from __future__ import annotations

from importlib.util import find_spec


def require_packages() -> None:
    """Raise ImportError if a package that Spark needs is missing."""
    for name in ("pyspark", "pyarrow", "pandas"):
        if find_spec(name) is None:
            raise ImportError(f'there is no {name}; run pip install "sdckit[spark]"')
