"""Run a request and show what it brought: tables and sentences, JSON or CSV."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from sdckit import progress, terminal
from sdckit.core.scenarios import exposed_of
from sdckit.core.text import as_sentence, draws_text, number, plural
from sdckit.request.options import OPTIONS
from sdckit.request.results import Listener, as_json
from sdckit.request.run import run
from sdckit.request.toml import read_job, request_of_job
from sdckit.request.words import request_of_words
from sdckit.selection.sweep_result import overview
from sdckit.terminal import print_csv, print_line, print_note, print_tables, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.table import Table

    from sdckit.evaluation.result import Evaluation, Knowledge
    from sdckit.request.options import Request
    from sdckit.request.results import Result

LEVEL = re.compile("unrelated|^guessing among|^ties leave")  # parts of explanations with levels
ESTIMATES = 12  # declared estimates in a table, those that changed most


def run_words(command: str, given: Mapping[str, Any]) -> None:
    """Run a command with the options that click found, and show what it brought."""
    run_request(request_of_words(command, given))


def run_job(path: Path, given: Mapping[str, Any]) -> None:
    """Read a job file, and run the request that it stands for; `given` are flags of `sdckit run`."""
    job = read_job(path)
    for option in (OPTIONS[name] for name, on in given.items() if on):
        if job.command not in option.commands:
            raise ValueError(f"no such option '{option.flag}'; see sdckit {job.command} --help")
    run_request(request_of_job(job, **given))


def run_request(request: Request) -> None:
    """Run a request and show what it brought; raise the error of limits that are not met."""
    progress.show_progress(not request.quiet)

    def note(text: str) -> None:
        """Say at once what happened, on standard error."""
        if not request.quiet:
            terminal.print_to_stderr("note", text)

    result = run(request, Listener(click.get_current_context().obj.show, note))
    if result.evaluations or not result.missed or request.as_json:
        show(result)
    if result.missed:
        raise result.missed


def show(result: Result) -> None:
    """Print what a request brought, as it asks for."""
    request, found = result.request, result.evaluations
    if request.as_json and (found or result.missed):
        print_line(as_json(result.to_dict()))
    elif request.as_csv and found:
        tables = result.public
        several = len(tables) > 1
        named = [
            one.table.select(pl.lit(name).alias("file"), pl.all()) if several else one.table
            for name, one in tables.items()
        ]
        print_csv(pl.concat(named))
    elif not request.quiet:
        for line in lines_before(result):
            print_note(line)
        print_tables(tables_of(result))
        for one in result.verdicts:
            print_note(one.line)
        for text in [*(result.alone.notes if len(found) == 1 else ()), *result.notes]:
            print_note(text if text.startswith("wrote ") and result.sweep else f"note: {text}")


def lines_before(result: Result) -> list[str]:
    """Return the sentences above the tables: why it was chosen, exposed records, what the intruder knows."""
    first, *others = [*result.choice.sentences, _tried(result)] if result.choice else [""]
    several = len(result.evaluations) > 1
    exposed = [
        f"{name}: {line}" if several else line
        for name, one in result.evaluations.items()
        for line in exposed_lines(one, result.about)
    ]
    known = [line for one in result.evaluations.values() for line in knowledge_lines(one.knowledge)]
    lines = [*filter(None, [first]), *exposed, *others, *dict.fromkeys(known)]
    return [*lines, *knowledge_lines(result.knowledge)]


def _tried(result: Result) -> str:
    """Return how many maskings a search measured, and how many draws the release took."""
    maskings = result.choice.maskings if result.choice else 0
    return f"{maskings} maskings were measured; the release took {draws_text(result.draws or 1)}."


def tables_of(result: Result) -> list[Table]:
    """Return the rich tables of what a request brought."""
    request, found = result.request, result.evaluations
    if result.sweep is not None:  # each method's measures at both ends of its grid: medians of replications
        names, rows = overview(result.sweep.summary)
        return [table_of(names, rows, right=2)]
    if not found:
        return []
    if len(found) == 1:
        one = result.alone
        asked = {"variable": request.variables, "stratum": request.by}
        alone = request.command == "evaluate" and not request.together
        details = [table_by(one, rows_by) for rows_by, wanted in asked.items() if wanted and alone]
        return [evaluation_table(one), *scenario_tables(one), *estimate_tables(one), *details]
    values = {name: dict(one.summary.select("metric", "value").rows()) for name, one in found.items()}
    metrics = list(dict.fromkeys(metric for one in values.values() for metric in one))
    rows = [[metric, *(number(one.get(metric)) for one in values.values())] for metric in metrics]
    return [table_of(["metric", *values], rows)]


def _without_levels(meaning: str) -> str:
    """Return the explanation of a value without the parts that other columns of the table have."""
    first, *rest = meaning.split("; ")
    return "; ".join([first, *(part for part in rest if not LEVEL.search(part))])


def evaluation_table(result: Evaluation) -> Table:
    """Return a rich table of an evaluation's whole-file values with their meaning."""
    tied = result.summary["tie_low"].is_not_null().any()
    rows = []
    for row in result.summary.iter_rows(named=True):
        ties = "-" if row["tie_low"] is None else f"{number(row['tie_low'])} to {number(row['tie_high'])}"
        meaning = _without_levels(result.meaning[row["metric"]])
        figures = [number(row["value"]), number(row["random"]), *([ties] if tied else [])]
        rows.append([row["metric"], *figures, meaning])
    columns = ["metric", "value", "by chance", *(["tie range"] if tied else []), "what it means"]
    table = table_of(columns, rows, left=1)
    table.columns[-1].ratio = 1
    table.expand = True
    return table


def table_by(result: Evaluation, rows_by: str) -> Table:
    """Return a rich table with one row per variable or stratum and one column per metric."""
    other = "stratum" if rows_by == "variable" else "variable"
    part = result.table.filter((pl.col(other) == "all") & (pl.col(rows_by) != "all"))
    metrics = part["metric"].unique(maintain_order=True).to_list()  # some have a value for the file only
    labels = part[rows_by].unique(maintain_order=True).to_list()
    values = {(row[rows_by], row["metric"]): row["value"] for row in part.iter_rows(named=True)}
    rows = [[label, *(number(values.get((label, name))) for name in metrics)] for label in labels]
    return table_of([rows_by, *metrics], rows)


def knowledge_lines(knowledge: Knowledge | None) -> list[str]:
    """Return two lines: what the risks assume the intruder to know, and the columns published unmasked."""
    if knowledge is None:
        return []
    return [f"Risk {knowledge.sentence}.", as_sentence(knowledge.unmasked_sentence)]


def exposed_lines(result: Evaluation, about: Mapping[str, Any]) -> list[str]:
    """Return a line on the exposed records of a file; `about` has the number of all. None if not measured."""
    found = exposed_of(result.parts)
    return [] if found is None else [as_sentence(found.sentence(about.get("n")))]


def scenario_tables(result: Evaluation) -> list[Table]:
    """Return a rich table of the scenarios: what is known, each risk, its limit, and whether it is met."""
    if result.scenarios is None:
        return []
    words = {True: "met", False: "not met", None: "-"}
    rows = [
        [name, known, risk, number(value), number(limit), words[met]]
        for name, known, risk, value, limit, met, *_ in result.scenarios.rows()
    ]
    heads = ["scenario", "intruder knows", "risk", "value", "limit", "limit is"]
    return [table_of(heads, rows, right=3, left=1)]


def estimate_tables(result: Evaluation) -> list[Table]:
    """Return a rich table of the declared estimates that changed most, with exact figures."""
    if result.estimates is None:
        return []
    found = result.estimates.table.sort("overlap", nulls_last=True, maintain_order=True)
    heads = {"original": "original", "masked": "masked", "change": "change, %", "change_in_se": "in s.e."}
    columns = [*heads, "overlap"]
    rows = [
        [row["estimate"], row["domain"], *(number(row[name]) for name in columns)]
        for row in found.head(ESTIMATES).iter_rows(named=True)
    ]
    names = ["estimate", "domain", *(heads.get(name, name) for name in columns)]
    table = table_of(names, rows, right=2)
    shown = f"{len(rows)} of {found.height}" if found.height > len(rows) else str(found.height)
    table.title = f"{shown} declared {plural(found.height, 'estimate')}, least overlap first; for you alone"
    table.title_justify, table.title_style = "left", ""
    return [table]
