"""How pages are written: templates whose texts are escaped, and charts as JSON that is safe in a page."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from sdckit.core.text import number, printable, printable_content
from sdckit.report import measures

if TYPE_CHECKING:
    import jinja2


@cache
def page_environment(*folders: str) -> jinja2.Environment:
    """Return the jinja2 environment of pages whose templates lie in these packages, the first one first.

    A folder of templates inside a package is named after a slash, as in "sdckit.app/templates".
    """
    import jinja2  # noqa: PLC0415 - slow to import, and only for pages

    places = [folder.partition("/") for folder in folders]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name, path or ".") for name, _, path in places]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
    )
    environment.filters |= {"number": number, "plain": measures.limit_text, "label": measures.label}
    return environment


def _shown(value: Any) -> Any:
    """Return a text without characters that turn it round or cannot be seen; all else as it is."""
    plain = isinstance(value, str) and not hasattr(value, "__html__")  # the page's own scripts are not names
    return printable(value, lines=True) if plain else value


def json_text(content: Any) -> str:
    """Return chart specifications as JSON that is safe inside a script element."""
    text = json.dumps(printable_content(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")
