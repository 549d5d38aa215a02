"""Groups of commands, which import what they need when they run."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from sdckit.cli import examples, terminal
from sdckit.cli.options import listing, private_option
from sdckit.cli.parsing import SingleValueCommand


@click.command(cls=SingleValueCommand, epilog=examples.METRICS)
@click.argument("name", metavar="[NAME]", required=False)
@listing
def metrics(name: str | None, **given: bool) -> None:
    """List the metrics, or show one: its range, options and source."""
    from sdckit.cli import registered

    registered.show_metrics(name, given)


@click.command(cls=SingleValueCommand, epilog=examples.METHODS)
@click.argument("name", metavar="[NAME]", required=False)
@listing
def methods(name: str | None, **given: bool) -> None:
    """List the masking methods, or show one with its parameters."""
    from sdckit.cli import registered

    registered.show_methods(name, given)


@click.command(cls=SingleValueCommand, epilog=examples.SCHEMA)
@click.argument("name", metavar="NAME")
def schema(name: str) -> None:
    """Print the JSON schema of a job file or of what --json prints.

    NAME is job, or a command: describe, mask, evaluate or recommend.
    """
    from sdckit.cli.json_output import read

    terminal.print_line(read(name))


@click.command(cls=SingleValueCommand, epilog=examples.REPLAY)
@click.argument("release", metavar="ID")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="File to write.")
@private_option
@click.option("--overwrite", is_flag=True, help="Replace an output file that exists.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing.")
def replay(release: str, data: Path, output: Path, **given: Any) -> None:
    """Make the file of a release again, byte for byte.

    ID is that of the private record, and DATA the original file, unchanged. If the file made now differs
    from the published one, nothing is written and the exit code is 1.
    """
    from sdckit.cli import record_commands

    record_commands.run_replay(release, data, output, given)


@click.command(cls=SingleValueCommand, epilog=examples.RELEASES)
@private_option
@listing
def releases(**given: Any) -> None:
    """List the releases of the private record."""
    from sdckit.cli import record_commands

    record_commands.run_releases(given)


@click.command(cls=SingleValueCommand, epilog=examples.CHECK)
@click.argument("masked", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path), required=False)
@private_option
@listing
def check(masked: Path, data: Path | None, **given: Any) -> None:
    """Check a published file against the private record.

    With DATA, the original file, unchanged, its risks are measured again with the attacks of today, and what
    changed is printed. Exit code 1 means that it is none of the releases, byte for byte, or that one of its
    limits is not met.
    """
    from sdckit.cli import record_commands

    record_commands.run_check(masked, data, given)


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


PACKAGES = ("starlette", "uvicorn")


@click.command(cls=SingleValueCommand, epilog=examples.APP)
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option("--port", metavar="N", type=int, help="Port of 127.0.0.1.  [default: a random free one]")
@click.option("--no-browser", is_flag=True, help="Only print the address; open no browser.")
@click.option("--no-preview", is_flag=True, help="Show no rows of the file.")
@click.option(
    "--idle",
    metavar="MINUTES",
    type=float,
    default=60,
    show_default=True,
    help="End after so long without a request and without running work.",
)
@click.option(
    "--finish", is_flag=True, help="At Ctrl-C, finish a running search or release instead of stopping it."
)
def app(data: Path | None, **given: Any) -> None:
    """Do the whole job in the browser, from a file to a release.

    Prints an address that works once, and opens it. The page is for this user on this machine alone, and sees
    files of the working directory and of folders in it, or of the folder of DATA if that lies elsewhere.
    Ctrl-C ends it; finished runs of a search are kept, and the same command goes on with them.
    """
    require_packages()
    from sdckit.app.launch import run_app

    run_app(
        data,
        port=given["port"],
        browser=not given["no_browser"],
        preview=not given["no_preview"],
        idle=given["idle"],
        finish=given["finish"],
    )


def require_packages() -> None:
    """Raise ValueError with the install command if a package that the page needs is missing."""
    try:
        for name in PACKAGES:
            import_module(name)
    except ImportError as error:
        raise ValueError('the page needs starlette and uvicorn; pip install "sdckit[app]"') from error
