"""The scripts that draw charts in a browser: Vega, Vega-Lite and Vega-Embed joined in one text."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from importlib.metadata import version

from sdckit.io import atomic
from sdckit.io.datasets import cache_folder


@cache
def bundle() -> str:
    """Return the joined scripts; a copy is cached, because joining them takes two seconds."""
    kept = cache_folder() / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError, UnicodeError):
        digest, _, text = kept.read_text(encoding="utf-8").partition("\n")
        if digest == _digest(text):  # a damaged copy counts as none
            return text
    import vl_convert  # noqa: PLC0415 - slow to import

    text = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).strip()
    text = text.replace("\r\n", "\n")  # as a browser reads it, or its hash would not be that of the page
    if "</script" in text.lower() or "<!--" in text:
        raise RuntimeError("the charts' scripts cannot stand inside a page; use another vl-convert-python")
    with suppress(OSError):  # no place for a copy is no reason to withhold the page
        kept.parent.mkdir(parents=True, exist_ok=True)
        with atomic.atomic(kept, overwrite=True) as temporary:
            temporary.write_text(f"{_digest(text)}\n{text}", encoding="utf-8")
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
