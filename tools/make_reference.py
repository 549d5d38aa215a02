"""Write what follows from the program itself: `python tools/make_reference.py`.

From the registry and the commands, `docs/reference.md`; from the tables of their entries, the JSON schemas of
job files and outputs; from the registry and the list of public names, `__init__.pyi` of the package and of
the two families of metrics, which tell type checkers and editors what Python finds when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import sdckit
from sdckit.cli import json_schemas
from sdckit.cli import sdckit as commands
from sdckit.core.registry import functions_of
from sdckit.job.fields import FIELDS, KINDS
from sdckit.masking import METHODS
from sdckit.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent.parent
TARGET = HERE / "docs" / "reference.md"
PACKAGE = HERE / "src" / "sdckit"
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

A metric's name may fix its options wherever metrics are named, as in `il1:zeros=drop`."""
EXITS = """\
## How commands end

| exit code | when |
| --- | --- |
| 0 | all went well; also if the reader of a pipe, such as `head`, left early, or standard output is closed |
| 1 | a limit is not met |
| 2 | input, options or files are wrong, or the system refused something, such as text on a full disk |
| 130 | Ctrl-C, also inside compiled code, which is left at the next point where it can be stopped |
| 143, 129 | the system asked the process to end (SIGTERM, SIGHUP) |

A command that does not end with 0 prints one line that says why and what to do. It changes no input and
leaves no half-written file: a file is written under a temporary name, `.sdckit-*.part`, that its owner alone
can read, and renamed when it is whole and within its limits. What a killed process left under such a name is
deleted by the next command that writes into that folder. Finished runs of a sweep or search survive; the same
command resumes.

Characters of names and cells that a terminal would obey or that turn text round are printed as `\\u202e`; in
JSON they stand for the same text."""

JOBS = """\
## Job files

What `sdckit run` takes, and what `sdckit describe -o` and `--save-job` write: a TOML file with these
sections and keys, each for the commands that have the option of that name. `command`, before the first
section, names the command; without it, a job with `[search] max_risk` is for `recommend`, one with
`[masking] method` for `mask --release`, one with `[input] masked` for `evaluate`. Paths are relative to
the folder of the file. Grids are as in plans, with lists of values, too: `grid = { mdav = { k = [3, 5,
10] }, noise = { percent = "10:100:10" } }`. Left out of jobs: `--seed`, and `--overwrite`, `--quiet`,
`--json` and `--csv`, which `sdckit run` takes itself. `sdckit schema job` prints the JSON schema,
`sdckit schema evaluate` and others those of what `--json` prints; the [tutorial](tutorial.md) shows a
whole job."""


def metrics(family: str) -> str:
    return table(
        ["metric", "what it measures", "range", "options", "reference"],
        [
            [
                f"`{metric.name}`" + ("" if metric.status == "default" else f" ({metric.status})"),
                metric.summary,
                metric.range_text,
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
                    f"`{method.name}`" + ("" if method.status == "default" else f" ({method.status})"),
                    method.summary + ("" if method.paired else ". Rows stand for no original record"),
                    "; ".join(method.keeps),
                    "<br>".join(f"`{p.name}={_shown(p.default)}` {p.text}" for p in method.parameters),
                    method.reference,
                ]
                for method in METHODS.values()
            ],
        )
    )
    parts += [PLANS, JOBS, job_keys(), EXITS, "## Commands"]
    for name, command in commands.commands.items():
        context = click.Context(
            command, info_name=f"sdckit {name}", terminal_width=100, **commands.context_settings
        )
        parts.append(f"### `sdckit {name}`")
        parts.append(f"```text\n{command.get_help(context)}\n```")
    return "\n\n".join(parts) + "\n"


def job_keys() -> str:
    """Return the table of the keys of job files."""
    rows = [
        [f"`{field.path}`", field.text, KINDS[field.kind][0].replace("|", "or"), ", ".join(field.commands)]
        for field in FIELDS
    ]
    return table(["key", "what it is", "give", "for"], rows)


def stubs() -> dict[Path, str]:
    """Return the stubs: the names of each family, and all public names."""
    families = {family: functions_of(family) for family in ("loss", "risk")}
    public = {name: f"sdckit.{home}" for name, home in sdckit._MODULES.items()}  # noqa: SLF001 - our own
    metrics = {name: one for own in families.values() for name, one in own.items() if name not in public}
    return {
        PACKAGE / "__init__.pyi": stub(public, metrics, "__version__: str"),
        **{PACKAGE / "metrics" / name / "__init__.pyi": stub({}, own) for name, own in families.items()},
    }


def schemas() -> dict[Path, str]:
    """Return the JSON schemas of jobs and of outputs, by the files they are shipped in."""
    folder = PACKAGE / "cli" / json_schemas.FOLDER
    return {
        folder / f"{name}.json": json_schemas.text_of(schema)
        for name, schema in json_schemas.schemas().items()
    }


def stub(homes: dict[str, str], functions: dict[str, Callable[..., float]], *more: str) -> str:
    """Return the text of a stub: an import of each name from its home, then the aliases."""
    named = {name: function.__name__ for name, function in functions.items()}
    homes = homes | {function.__name__: function.__module__ for function in functions.values()}
    imports = sorted(f"from {home} import {name} as {name}" for name, home in homes.items())
    aliases = [f"{alias} = {name}" for alias, name in named.items() if alias != name]
    lines = [
        "# Made by tools/make_reference.py.",
        *imports,
        *([""] if aliases or more else []),
        *aliases,
        *more,
    ]
    return "\n".join(lines) + "\n"


def _shown(default: object) -> object:
    return default if default not in ((), {}) else "none"


def table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


if __name__ == "__main__":
    for path, text in {TARGET: reference(), **stubs(), **schemas()}.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
