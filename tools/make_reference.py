"""Write docs/reference.md from the registry and the commands: `python tools/make_reference.py`."""

from __future__ import annotations

from pathlib import Path

import click

from sdckit import METHODS, METRICS
from sdckit.cli import sdckit as commands

TARGET = Path(__file__).parent.parent / "docs" / "reference.md"


def reference() -> str:
    parts = ["# Reference", "Made by `tools/make_reference.py` from the program itself.", "## Metrics"]
    parts.append(
        table(
            ["metric", "what it measures", "range", "options", "reference"],
            [
                [
                    f"`{metric.name}`" + ("" if metric.default else " (on request)"),
                    metric.summary,
                    "0 to 1" if metric.bounded else "0 and up",
                    ", ".join(f"`{parameter.name}`" for parameter in metric.parameters),
                    metric.reference,
                ]
                for metric in METRICS.values()
            ],
        )
    )
    parts.append("## Methods")
    parts.append(
        table(
            ["method", "what it does", "keeps", "parameters", "reference"],
            [
                [
                    f"`{method.name}`",
                    method.summary,
                    "; ".join(method.keeps),
                    "<br>".join(f"`{p.name}={p.default}` {p.text}" for p in method.parameters),
                    method.reference,
                ]
                for method in METHODS.values()
            ],
        )
    )
    parts.append("## Commands")
    for name, command in commands.commands.items():
        context = click.Context(
            command, info_name=f"sdckit {name}", terminal_width=100, **commands.context_settings
        )
        parts.append(f"### `sdckit {name}`")
        parts.append(f"```text\n{command.get_help(context)}\n```")
    return "\n\n".join(parts) + "\n"


def table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(reference(), encoding="utf-8")
