"""The JavaScript that draws charts in a browser: Vega, Vega-Lite and Vega-Embed joined in one text."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from types import MappingProxyType

from sdckit.io import atomic
from sdckit.io.datasets import cache_folder
from sdckit.io.drafts import sweep_drafts

# SHA-256 digest of the joined text, by version of vl-convert-python. A copy with another digest is not used,
# so that nobody who can write into the cache can put a script into reports.
DIGESTS = MappingProxyType(
    {
        "1.7.0": "b632ae0b65aa27fc22d8045458c2c0fe06694dc252b134fa415b52ef8a7a7220",
        "1.8.0": "b66996bb5822b536e6808945330c26223bf890967feb4a7e681b432d3563ea8a",
        "1.9.0": "373b1f84072b31010f15ceb787be6b415c53936411aae267c8c2b2b6ccde46e7",
        "1.9.0.post1": "373b1f84072b31010f15ceb787be6b415c53936411aae267c8c2b2b6ccde46e7",
    }
)


@cache
def bundle() -> str:
    """Return the joined JavaScript, as text, from vl-convert; a copy is cached on disk: joining takes 2 s.

    Versions whose digest is not known here are joined each time.
    """
    installed = version("vl-convert-python")
    cached, digest = cache_folder() / f"vega-{installed}.js", DIGESTS.get(installed)
    with suppress(OSError, UnicodeError):
        text = cached.read_bytes().decode()
        if _digest(text) == digest:
            return text
    text = _joined()
    if _digest(text) == digest:
        with suppress(OSError):  # the page does not need the cached copy
            cached.parent.mkdir(parents=True, exist_ok=True)
            sweep_drafts(cached.parent)
            with atomic.atomic(cached, overwrite=True) as draft:
                draft.write_bytes(text.encode())
    return text


def _joined() -> str:
    """Return the scripts of the installed vl-convert joined in one text; RuntimeError if they hold HTML."""
    import vl_convert  # noqa: PLC0415 - slow to import

    text = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).strip()
    text = text.replace("\r\n", "\n")  # browsers hash scripts with these line ends
    if "</script" in text.lower() or "<!--" in text:
        raise RuntimeError(
            "the scripts of the charts contain HTML tags; install another version of vl-convert-python"
        )
    return text


def _digest(text: str) -> str:
    """Return the SHA-256 digest of a text, as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()
