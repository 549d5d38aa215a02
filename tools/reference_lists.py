"""The pages of the reference on metrics and methods, plans, job files and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reference_text import MADE, page, plain, table
from sdckit.core.registry import range_text
from sdckit.masking import METHODS
from sdckit.metrics import METRICS
from sdckit.request.options import JOB_OPTIONS, KINDS, SECTIONS
from sdckit.request.results import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.core.registry import Method, Metric, Parameter

ABOUT_LISTS = """\
A metric or method without a mark is computed or tried by default; one "on request" when it is named. What
they mean: [metrics](../explanation/metrics.md), [risk](../explanation/risk.md),
[methods](../explanation/methods.md). As functions of Python: [metrics in Python](python-metrics.md)."""
PLANS = """\
What `sdckit sweep` tries, as words or as a file. `--grid mdav.k=2:30` counts from 2 to 30, both included;
`rank_swap.p=0.001:0.3:0.001` has a step, `noise.percent=10,20,50` is a list; `--grid mdav` alone takes the
method's usual grid. Grids of several parameters of one method are combined. The same in a TOML file, for
`--plan`; a method in double brackets may come several times, and the command line has the last word on the
first three lines:

```toml
replications = 30
draws = "fresh"
metrics = ["brmae", "brmae:ties=expected", "il1:zeros=drop"]

[mdav]
k = "2:30"

[[rank_swap]]
p = "0.001:0.3:0.001"

[[rank_swap]]
p = "0.001:0.3:0.001"
tails = 0.05
bound = "exclusive"
start = "highest"
```

A metric's name may fix its options wherever metrics are named, as in `il1:zeros=drop`. Methods, their
parameters and the options of metrics: [metrics and methods](metrics-and-methods.md)."""
JOBS = """\
What `sdckit run` takes, and what `sdckit describe -o` and `--save-job` write: a TOML file with these
sections and keys, each for the commands that have the option of that name. `command`, before the first
section, names the command; without it, a job with `[search] max_risk` is for `recommend`, one with
`[masking] method` for `mask --release`, one with `[input] masked` for `evaluate`. Paths are relative to
the folder of the file. Grids are as in [plans](plans.md), with lists of values, too:
`grid = { mdav = { k = [3, 5, 10] }, noise = { percent = "10:100:10" } }`. Left out of jobs: `--seed`, and
`--overwrite`, `--quiet`, `--json` and `--csv`, which `sdckit run` takes itself. `sdckit schema job`
prints the [JSON schema](json.md); the [tutorial](../tutorial.md) shows a whole job."""
JSON = """\
What `--json` prints, key by key. `sdckit schema NAME` prints the JSON schema of each, and `sdckit schema job`
that of [job files](job-file.md), for programs that check or read them. `[]` stands for every entry of a
list, `*` for every name of an object. Numbers that do not exist are null; infinite ones are texts."""
ANY = {"object": "object", "array": "list", "string": "text", "integer": "whole number", "null": "null"}


def metrics_and_methods() -> str:
    """Return the page with all metrics and methods and their parameters."""
    parts = ["# Metrics and methods", MADE, ABOUT_LISTS]
    for title, family in (("Losses", "loss"), ("Risks", "risk")):
        own = [metric for metric in METRICS.values() if metric.family == family]
        parts += [f"## {title}", _overview(own), *(_metric(metric) for metric in own)]
    parts += ["## Methods", _overview(METHODS.values()), *(_method(method) for method in METHODS.values())]
    return page(*parts)


def _overview(records: Sequence[Metric | Method]) -> str:
    """Return the table of the names of metrics or methods, with links to what is said of each."""
    rows = [[f"[`{one.name}`](#{one.name})" + _mark(one), plain(one.summary)] for one in records]
    return table(
        ["name", "what it measures" if hasattr(next(iter(records)), "family") else "what it does"], rows
    )


def _capital(text: str) -> str:
    """Return text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def _mark(one: Metric | Method) -> str:
    """Return in parentheses when a metric or method is used, if not by default."""
    return "" if one.status == "default" else f" ({one.status})"


def _metric(metric: Metric) -> str:
    """Return the section on one metric."""
    aliases = f" Also called {', '.join(f'`{name}`' for name in metric.aliases)}." if metric.aliases else ""
    facts = f"{_capital(metric.title)}: {metric.range_text}.{aliases} Source: {plain(metric.reference)}."
    return page(f"### `{metric.name}`", plain(metric.summary) + ".", facts, _parameters(metric.parameters))


def _method(method: Method) -> str:
    """Return the section on one method."""
    rows = "" if method.paired else " Rows stand for no original record."
    keeps = f"Keeps: {plain('; '.join(method.keeps))}." if method.keeps else ""
    facts = f"{_capital(method.title)}. {keeps} Source: {plain(method.reference)}."
    head = plain(method.summary) + "." + rows
    return page(f"### `{method.name}`", head, facts, _parameters(method.parameters))


def _parameters(parameters: Sequence[Parameter]) -> str:
    """Return the table of parameters, or nothing if there are none."""
    rows = [
        [
            f"`{one.name}`",
            plain(one.text),
            _allowed(one),
            "none" if one.default in ((), {}) else f"`{one.default}`",
        ]
        for one in parameters
    ]
    return table(["parameter", "what it is", "give", "default"], rows) if rows else ""


def _allowed(parameter: Parameter) -> str:
    """Return what a parameter may be, and what a sweep tries of it by default."""
    if parameter.choices:
        return ", ".join(f"`{word}`" for word in parameter.choices)
    words = {tuple: "names of columns", dict: "a number by column", int: "a whole number", float: "a number"}
    grid = parameter.grid
    tried = f"; a sweep tries {len(grid)} from {grid[0]:g} to {grid[-1]:g}" if len(grid) else ""
    return words.get(parameter.kind, "a text") + range_text(parameter) + tried


def plans() -> str:
    """Return the page on plans of sweeps."""
    return page("# Plans", PLANS)


def job_file() -> str:
    """Return the page on the keys of job files, a table a section."""
    parts = ["# Job files", MADE, JOBS]
    for section, text in SECTIONS.items():
        rows = [
            [f"`{one.path}`", one.text, KINDS[one.kind][0].replace("|", "or"), ", ".join(one.jobs)]
            for one in JOB_OPTIONS
            if one.section == section
        ]
        parts += [f"## {section}", _capital(text) + ".", table(["key", "what it is", "give", "for"], rows)]
    return page(*parts)


def json() -> str:
    """Return the page on the JSON that commands print."""
    parts = ["# JSON", MADE, JSON]
    for name, schema in schemas().items():
        if name != "job":
            rows = {path: (said, kind) for path, said, kind in keys(schema)}
            cells = [[f"`{path}`", plain(said), kind] for path, (said, kind) in rows.items()]
            parts += [
                f"## {name}",
                f"What `sdckit {name} --json` prints.",
                table(["key", "what it is", "type"], cells),
            ]
    return page(*parts)


def keys(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield path, description and type of each key of a schema, those of nested objects after their own."""
    for name, own in schema.get("properties", {}).items():
        full = f"{path}.{name}".lstrip(".")
        yield full, own.get("description", ""), _kind(own)
        yield from keys(own, full)
    for word, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(word), dict):
            yield from keys(schema[word], path + mark)
    for one in schema.get("anyOf", ()):
        yield from keys(one, path)


def _kind(schema: dict[str, Any]) -> str:
    """Return the type of a value in words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(one) for one in schema["anyOf"]))
    kinds = schema.get("type", "object")
    named = [kinds] if isinstance(kinds, str) else kinds
    if set(named) == {"number", "null", "string"}:
        return "number or null"
    return " or ".join(ANY.get(kind, "true or false" if kind == "boolean" else kind) for kind in named)
