"""The JavaScript that draws charts in a browser: Vega, Vega-Lite and Vega-Embed joined in one text."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from importlib.metadata import version

from sdckit.io import atomic
from sdckit.io.datasets import cache_folder


@cache
def bundle() -> str:
    """Return the joined JavaScript, as text, from vl-convert; a copy is cached on disk: joining takes 2 s."""
    cached = cache_folder() / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError, UnicodeError):
        digest, _, text = cached.read_text(encoding="utf-8").partition("\n")
        if digest == _digest(text):  # a damaged copy is not used
            return text
    import vl_convert  # noqa: PLC0415 - slow to import

    text = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).strip()
    text = text.replace("\r\n", "\n")  # browsers hash scripts with these line ends
    if "</script" in text.lower() or "<!--" in text:
        raise RuntimeError(
            "the scripts of the charts contain HTML tags; install another version of vl-convert-python"
        )
    with suppress(OSError):  # the page does not need the cached copy
        cached.parent.mkdir(parents=True, exist_ok=True)
        with atomic.atomic(cached, overwrite=True) as temporary:
            temporary.write_text(f"{_digest(text)}\n{text}", encoding="utf-8")
    return text


def _digest(text: str) -> str:
    """Return the SHA-256 digest of a text, as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()
