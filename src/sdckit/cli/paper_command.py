"""The command that reproduces the study; its imports wait until it runs, so that help is fast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sdckit.cli import examples
from sdckit.cli.parsing import SingleValueCommand


@click.command(cls=SingleValueCommand, epilog=examples.PAPER)
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder for the results."
)
@click.option(
    "--data",
    multiple=True,
    metavar="A,B",
    default=["tarragona,census"],
    show_default=True,
    help="Data sets: tarragona, census, eia; or sample, which is bundled; repeatable.",
)
@click.option(
    "--replications", metavar="N", default=30, show_default=True, help="Runs of each random masking."
)
@click.option(
    "--formats",
    multiple=True,
    metavar="A,B",
    default=["svg"],
    show_default=True,
    help="Of the figures: svg, pdf, png; repeatable.",
)
@click.option("--seed", type=int, help="Another seed than the study's own.")
@click.option("--workers", metavar="N", help="Cores to use.  [default: all]")
@click.option(
    "--overwrite", is_flag=True, help="Delete what an earlier study left in the folder and start again."
)
@click.option("--quiet", "-q", is_flag=True, help="Print no progress and no summary.")
def paper(output: Path, **given: Any) -> None:
    """Reproduce all tables and figures of the note behind brMAE.

    Writes a folder with the numbers, the figures, a comparison with R's sdcMicro, a verdict on each claim
    and one page, index.html, that holds all of it. After Ctrl-C the same command resumes.
    """
    from sdckit.cli.study import run_study

    run_study(output, given)
