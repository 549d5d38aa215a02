"""What `sdckit metrics` and `sdckit methods` print: a list of all that are registered, or one in full."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from sdckit import terminal
from sdckit.core.registry import MISSING_RULE, method_named, metrics_named, range_text
from sdckit.masking import METHODS
from sdckit.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sdckit.core.registry import Method, Metric, Parameter

NEEDED = {  # options without which a metric about these columns has nothing to measure
    "untouched": " --untouched town",
    "confidential": " --confidential income",
    "unit": " --unit household",
    "estimates": " --estimate 'total(income)'",
}


def show_metrics(name: str | None, *, as_json: bool, as_csv: bool) -> None:
    """Print one metric in full, or a line for each; as JSON or CSV the same rows either way."""
    chosen = metrics_named(name)[0] if name else None
    rows = [row for row in metric_rows() if chosen is None or row["metric"] == chosen.name]
    if terminal.show_rows(rows, as_json=as_json, as_csv=as_csv):
        return
    if chosen is None:
        summaries = {one.name: (one.summary, one.title) for one in METRICS.values()}
        _print_list(summaries, "sdckit metrics NAME shows one in full")
    else:
        terminal.print_line(terminal.card_text(f"{chosen.name} - {chosen.title}", metric_card(chosen)))


def show_methods(name: str | None, *, as_json: bool, as_csv: bool) -> None:
    """Print one method in full, or a line for each; as JSON or CSV the same rows either way."""
    chosen = method_named(name) if name else None
    rows = [row for row in method_rows() if chosen is None or row["method"] == chosen.name]
    if terminal.show_rows(rows, as_json=as_json, as_csv=as_csv):
        return
    if chosen is None:
        summaries = {one.name: (one.summary, one.title) for one in METHODS.values()}
        _print_list(summaries, "sdckit methods NAME shows one in full")
    else:
        terminal.print_line(terminal.card_text(f"{chosen.name} - {chosen.title}", method_card(chosen)))


def _print_list(entries: Mapping[str, tuple[str, str]], last: str) -> None:
    """Print a line for each name: its summary if all of them fit on the screen, else its title."""
    summaries = {name: summary.partition(";")[0] for name, (summary, _) in entries.items()}
    titles = {name: title for name, (_, title) in entries.items()}
    terminal.print_line(terminal.list_text(summaries, titles))
    terminal.print_line(f"\n{last}")


def metric_card(metric: Metric) -> dict[str, list[str]]:
    """Return all that is to be said about a metric: lines of text by label."""
    example = f"sdckit evaluate data.csv masked.csv --metrics {metric.name}"
    card: dict[str, list[str]] = {
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
    chosen = next(iter(words), None)
    if chosen is not None:
        card["example"].append(f"{example}:{chosen.name}={_other_choice(chosen)}")
    return card


def method_card(method: Method) -> dict[str, list[str]]:
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


def _other_choice(parameter: Parameter) -> str:
    """Return the first word that a parameter takes besides its default."""
    return next(word for word in parameter.choices if word != parameter.default)


def _plain(value: object) -> str:
    """Return a number or word as it is written on the command line."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _values(parameter: Parameter) -> str:
    """Return a parameter with a few values of its grid, as `--grid` takes them."""
    grid = [_plain(value) for value in parameter.grid]
    few = [grid[place] for place in sorted({0, len(grid) // 2, len(grid) - 1})]
    return f"{parameter.name}={','.join(few)}"


def metric_rows() -> list[dict[str, str]]:
    """Return name, meaning, range, options and reference of each metric, as texts."""
    return [
        {
            "metric": metric.name,
            "title": metric.title,
            "measures": metric.summary,
            "family": metric.family,
            "range": metric.range_text,
            "measured": metric.status,
            "options": ", ".join(parameter.name for parameter in metric.parameters),
            "reference": metric.reference,
        }
        for metric in METRICS.values()
    ]


def method_rows() -> list[dict[str, str]]:
    """Return name, effect, parameters, what is kept and reference of each masking method, as texts."""
    return [
        {
            "method": method.name,
            "title": method.title,
            "does": method.summary,
            "parameters": "; ".join(parameter_text(parameter) for parameter in method.parameters),
            "keeps": "; ".join(method.keeps),
            "rows": rows_text(method),
            "tried": method.status,
            "reference": method.reference,
        }
        for method in METHODS.values()
    ]


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
