"""The pages of the reference on Python: functions, classes and metrics, from docstrings and signatures."""

from __future__ import annotations

import dataclasses
import inspect
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sdckit
from reference_text import MADE, block, docstring, page, plain, table
from reference_types import TYPES
from sdckit.core.registry import Method, Metric, functions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

WIDTH = 90  # of a signature on one line
IMPORT = "`import sdckit as sdc`; every name on this page is then one of `sdc`."
CONSTANTS = {
    "METRICS": ("Dictionary of all metrics by name: a `Metric` record each.", Metric),
    "METHODS": ("Dictionary of all masking methods by name: a `Method` record each.", Method),
}
NAMESPACES = {
    "loss": "The losses, each under its name: `sdc.loss.brmae` is `sdc.brmae`.",
    "risk": "The risks, each under its name: `sdc.risk.linkage` is `sdc.linkage`.",
}
RETURNED = re.compile(r"(\*\*Returns\*\*\n\n- )`(\w+)`")
Section = tuple[str, str, str]  # name, first sentence, text


def functions() -> str:
    """Return the page on functions and constants."""
    found = [
        (name, first_line(value), page(_signature(name, value), docstring(inspect.getdoc(value) or "")))
        for name, value in _public()
        if inspect.isfunction(value) and name not in _metrics()
    ]
    constants = [(name, text, page(text, _class_text(record))) for name, (text, record) in CONSTANTS.items()]
    own = "Results of these functions: [classes](python-classes.md); one function a metric: "
    intro = f"{IMPORT} {own}[metrics](python-metrics.md)."
    version = ("__version__", "Version of the package, a text.", "Version of the package, a text.")
    return _listed("Python: functions", intro, [*found, *constants, version])


def classes() -> str:
    """Return the page on classes: their fields, properties and methods."""
    found = [
        (name, first_line(value), _class(name, value)) for name, value in _public() if inspect.isclass(value)
    ]
    rows = [[f"`{name}`", text] for name, text in TYPES.items()]
    types = page("## Types in signatures", table(["name", "what it is"], rows))
    intro = f"{IMPORT} Functions return most of them. What other names in signatures stand for: [types]"
    return page(_listed("Python: classes", f"{intro}(#types-in-signatures).", found), types)


def metrics() -> str:
    """Return the page on the functions of metrics."""
    spaces = [(name, text, text) for name, text in NAMESPACES.items()]
    found = [
        (
            name,
            first_line(value),
            page(_signature(name, value), _alias(name, value), docstring(inspect.getdoc(value) or "")),
        )
        for name, value in sorted(_metrics().items())
    ]
    return _listed("Python: metrics", f"{IMPORT} Each metric returns a number.", [*spaces, *found])


def members(owner: type) -> dict[str, Any]:
    """Return the public properties and methods of a class that sdckit defines, fields apart."""
    names = [name for name in dir(owner) if name == "__getitem__" or not name.startswith("_")]
    found = {name: inspect.getattr_static(owner, name) for name in names}
    ours = {base for base in owner.__mro__ if base.__module__.startswith("sdckit")}
    own = {name for base in ours for name in vars(base)} - set(fields(owner))
    return {name: value for name, value in found.items() if name in own}


def fields(owner: type) -> dict[str, str]:
    """Return the fields of a class with their types."""
    known = dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ()
    return {field.name: str(field.type) for field in known if not field.name.startswith("_")}


def first_line(value: object) -> str:
    """Return the first sentence of a docstring."""
    return (inspect.getdoc(value) or "").partition("\n")[0]


def _public() -> list[tuple[str, Any]]:
    """Return all public names with what they stand for."""
    return [(name, getattr(sdckit, name)) for name in dir(sdckit)]


def _metrics() -> dict[str, Callable[..., float]]:
    """Return the functions of metrics by name and alias, with the family before a name that sdckit reuses."""
    found = {}
    for family in ("loss", "risk"):
        for name, function in functions_of(family).items():
            hidden = getattr(sdckit, name) is not function
            found[f"{family}.{name}" if hidden else name] = function
    return found


def _alias(name: str, value: Callable[..., float]) -> str:
    """Return a sentence if a name is another one for a function."""
    own = value.__name__
    return "" if name.rpartition(".")[2] == own else f"Another name for [`{own}`](#{own})."


def _listed(title: str, intro: str, sections: Iterable[Section]) -> str:
    """Return a page that begins with a table of its sections."""
    sections = list(sections)
    rows = [[f"[`{name}`](#{_anchor(name)})", plain(text)] for name, text, _ in sections]
    parts = [page(f"## `{name}`", text) for name, _, text in sections]
    text = page(f"# {title}", MADE, intro, table(["name", "what it is"], rows), *parts)
    return RETURNED.sub(_linked, text)


def _linked(found: re.Match[str]) -> str:
    """Return what a function returns, with a link if it is a class of this reference."""
    lead, name = found.groups()
    known = inspect.isclass(getattr(sdckit, name, None))
    return f"{lead}[`{name}`](python-classes.md#{_anchor(name)})" if known else found[0]


def _anchor(name: str) -> str:
    """Return the anchor of a heading that is a name."""
    return re.sub(r"[^\w-]", "", name.lower())


def _class(name: str, owner: type) -> str:
    """Return the section on a class."""
    parts = [_class_text(owner)]
    for own, value in members(owner).items():
        parts.append(f"### `{name}.{own}`")
        parts.append(_member(f"{name}.{own}", value, getattr(owner, own)))
    return page(*parts)


def _class_text(owner: type) -> str:
    """Return what a class says of itself, and its fields."""
    return page(docstring(inspect.getdoc(owner) or ""), _fields(owner))


def _fields(owner: type) -> str:
    """Return the table of the fields of a class and their types, or nothing if it has none."""
    rows = [[f"`{name}`", f"`{kind}`"] for name, kind in fields(owner).items()]
    return table(["field", "type"], rows) if rows else ""


def _member(name: str, value: Any, bound: Any) -> str:
    """Return the text on a property, a method or a plain attribute of a class."""
    if isinstance(value, (property, cached_property)):
        getter = value.fget if isinstance(value, property) else value.func
        kind = inspect.signature(getter).return_annotation
        shown = "" if kind is inspect.Signature.empty else f" Property, `{kind}`."
        return page(docstring(inspect.getdoc(getter) or "").rstrip("\n") + shown)
    if callable(bound):
        return page(_signature(name, bound), docstring(inspect.getdoc(bound) or ""))
    return page(f"Attribute, `{bound!r}`.")


def _signature(name: str, function: Callable[..., Any]) -> str:
    """Return the call of a function as a block of code, a parameter a line where it is long."""
    known = inspect.signature(function)
    words = list(_parameters([one for key, one in known.parameters.items() if key != "self"]))
    returned = "" if known.return_annotation is known.empty else f" -> {known.return_annotation}"
    line = f"{name}({', '.join(words)}){returned}"
    if len(line) > WIDTH:
        line = f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){returned}"
    return block(line, "python")


def _parameters(parameters: Iterable[inspect.Parameter]) -> Iterable[str]:
    """Yield the parameters of a function as they are written, with the star before those given by name."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    starred = False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or one.kind in {one.KEYWORD_ONLY, one.VAR_POSITIONAL}
        kind = "" if one.annotation is one.empty else f": {one.annotation}"
        default = "" if one.default is one.empty else f" = {one.default!r}"
        yield stars.get(one.kind, "") + one.name + kind + default
