"""What `sdckit metrics` and `sdckit methods` print: a list of all that are registered, or one in full."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from sdckit import terminal
from sdckit.core.registry import MISSING_RULE, method_named, metrics_named, range_text
from sdckit.masking import METHODS
from sdckit.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sdckit.core.registry import Method, Metric, Parameter

    Card = dict[str, list[str]]

NEEDED = {  # options without which a metric about these columns has nothing to measure
    "untouched": " --untouched town",
    "confidential": " --confidential income",
    "unit": " --unit household",
    "estimates": " --estimate 'total(income)'",
}


def show_metrics(name: str | None, *, as_json: bool, as_csv: bool) -> None:
    """Print one metric in full, or a line for each; as JSON or CSV the same rows either way."""
    chosen = METRICS if name is None else {one.name: one for one in metrics_named(name)[:1]}
    rows = [metric_row(one) for one in chosen.values()]
    if not terminal.show_rows(rows, as_json=as_json, as_csv=as_csv):
        _print("metrics", chosen, None if name is None else metric_card)


def show_methods(name: str | None, *, as_json: bool, as_csv: bool) -> None:
    """Print one method in full, or a line for each; as JSON or CSV the same rows either way."""
    chosen = METHODS if name is None else {name: method_named(name)}
    rows = [method_row(one) for one in chosen.values()]
    if not terminal.show_rows(rows, as_json=as_json, as_csv=as_csv):
        _print("methods", chosen, None if name is None else method_card)


def _print(command: str, chosen: Mapping[str, Any], card: Callable[[Any], Card] | None) -> None:
    """Print the card of the only one, or a line for each: summaries if all fit on the screen, else titles."""
    if card is not None:
        (one,) = chosen.values()
        terminal.print_line(terminal.card_text(f"{one.name} - {one.title}", card(one)))
        return
    summaries = {name: one.summary.partition(";")[0] for name, one in chosen.items()}
    titles = {name: one.title for name, one in chosen.items()}
    terminal.print_line(terminal.list_text(summaries, titles))
    terminal.print_line(f"\nsdckit {command} NAME shows one in full")


def metric_card(metric: Metric) -> Card:
    """Return all that is to be said about a metric: lines of text by label."""
    example = f"sdckit evaluate data.csv masked.csv --metrics {metric.name}"
    card: Card = {
        "measures": [metric.summary, *_explanation(metric.function)],
        "family": [metric.family],
        "range": [metric.range_text],
        "measured": [metric.status],
        "options": [parameter_text(parameter) for parameter in metric.parameters],
        "rows": [] if metric.paired else ["need not be paired"],
        "needs": [f'pip install "sdckit[{metric.extra}]"'] if metric.extra else [],
        "reference": [metric.reference],
        "example": [f"{example}{NEEDED.get(metric.role or '', '')}"],
    }
    words = [one for one in metric.parameters if len(one.choices) > 1 and one is not MISSING_RULE]
    for one in words[:1]:
        other = next(word for word in one.choices if word != one.default)
        card["example"].append(f"{example}:{one.name}={other}")
    return card


def method_card(method: Method) -> Card:
    """Return all that is to be said about a method: lines of text by label."""
    grids = [one for one in method.parameters if one.grid]
    setting = "".join(f" --set {one.name}={_plain(one.default)}" for one in grids[:1] if one.default != ())
    return {
        "does": [method.summary, *_explanation(method.function)],
        "parameters": [parameter_text(parameter) for parameter in method.parameters],
        "keeps": list(method.keeps),
        "rows": [rows_text(method)],
        "tried": [method.status],
        "reference": [method.reference],
        "example": [f"sdckit mask data.csv -o masked.csv --method {method.name}{setting}"]
        + [f"sdckit sweep data.csv -o sweep/ --grid {method.name}.{_values(one)}" for one in grids[:1]],
    }


def _explanation(function: Callable[..., object]) -> list[str]:
    """Return the paragraphs between the first line of a docstring and its first section, each as a line."""
    _, _, rest = (inspect.getdoc(function) or "").partition("\n\n")
    text = rest.partition("\nParameters\n---")[0]
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n") if paragraph.strip()]


def _plain(value: object) -> str:
    """Return a number or word as it is written on the command line."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _values(parameter: Parameter) -> str:
    """Return a parameter with a few values of its grid, as `--grid` takes them."""
    grid = [_plain(value) for value in parameter.grid]
    few = [grid[place] for place in sorted({0, len(grid) // 2, len(grid) - 1})]
    return f"{parameter.name}={','.join(few)}"


def metric_row(metric: Metric) -> dict[str, str]:
    """Return name, meaning, range, options and reference of a metric, as texts."""
    return {
        "metric": metric.name,
        "title": metric.title,
        "measures": metric.summary,
        "family": metric.family,
        "range": metric.range_text,
        "measured": metric.status,
        "options": ", ".join(parameter.name for parameter in metric.parameters),
        "reference": metric.reference,
    }


def method_row(method: Method) -> dict[str, str]:
    """Return name, effect, parameters, what is kept and reference of a masking method, as texts."""
    return {
        "method": method.name,
        "title": method.title,
        "does": method.summary,
        "parameters": "; ".join(parameter_text(parameter) for parameter in method.parameters),
        "keeps": "; ".join(method.keeps),
        "rows": rows_text(method),
        "tried": method.status,
        "reference": method.reference,
    }


def parameter_text(parameter: Parameter) -> str:
    """Return a parameter of a method with its default and range, as text."""
    span = f",{range_text(parameter)}" if parameter.low is not None else ""
    choices = f": {' or '.join(parameter.choices)}" if parameter.choices else span
    default = f"{parameter.default:g}" if isinstance(parameter.default, float) else parameter.default
    default = "none" if default in ((), {}) else default
    return f"{parameter.name}={default} ({parameter.text}{choices})"


def rows_text(method: Method) -> str:
    """Return, as text, whether the masked rows of a method stand for original records."""
    if method.paired:
        return "paired"
    unless = f" unless {method.paired_by} is set" if method.paired_by else ""
    return f"stand for no original record{unless}"
