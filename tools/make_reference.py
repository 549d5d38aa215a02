"""Write docs/reference.md from the registry and the commands: `python tools/make_reference.py`."""

from __future__ import annotations

from pathlib import Path

import click

from sdckit import METHODS, METRICS
from sdckit.cli import sdckit as commands

TARGET = Path(__file__).parent.parent / "docs" / "reference.md"
PLANS = """\
## Plans

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

A metric may settle its own options wherever metrics are named, as in `il1:zeros=drop`."""


def metrics(family: str) -> str:
    return table(
        ["metric", "what it measures", "range", "options", "reference"],
        [
            [
                f"`{metric.name}`" + ("" if metric.standing == "default" else f" ({metric.standing})"),
                metric.summary,
                metric.span,
                ", ".join(f"`{parameter.name}`" for parameter in metric.parameters),
                metric.reference,
            ]
            for metric in METRICS.values()
            if metric.family == family
        ],
    )


def reference() -> str:
    parts = ["# Reference", "Made by `tools/make_reference.py` from the program itself."]
    parts += ["## Losses", metrics("loss"), "## Risks", metrics("risk")]
    parts.append("## Methods")
    parts.append(
        table(
            ["method", "what it does", "keeps", "parameters", "reference"],
            [
                [
                    f"`{method.name}`" + ("" if method.standing == "default" else f" ({method.standing})"),
                    method.summary + ("" if method.paired else ". Rows stand for no original record"),
                    "; ".join(method.keeps),
                    "<br>".join(f"`{p.name}={_shown(p.default)}` {p.text}" for p in method.parameters),
                    method.reference,
                ]
                for method in METHODS.values()
            ],
        )
    )
    parts.append(PLANS)
    parts.append("## Commands")
    for name, command in commands.commands.items():
        context = click.Context(
            command, info_name=f"sdckit {name}", terminal_width=100, **commands.context_settings
        )
        parts.append(f"### `sdckit {name}`")
        parts.append(f"```text\n{command.get_help(context)}\n```")
    return "\n\n".join(parts) + "\n"


def _shown(default: object) -> object:
    return default if default not in ((), {}) else "none"


def table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(reference(), encoding="utf-8")
