"""The command line: one function per command, whose imports wait until it runs, so that help is fast."""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sdckit import terminal
from sdckit.cli.options import CommandGroup, parameters
from sdckit.core.version import VERSION
from sdckit.terminal import EXPECTED, Warnings, error_text

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES = ("starlette", "uvicorn")  # that the page needs
SHOW = "SDCKIT_TRACEBACK"  # environment variable that shows where a fault lies


def main(words: Sequence[str] | None = None) -> None:
    """Run a command of the command line; wrong input prints one line and exits with code 2.

    A fault of this package, too, prints one line, without texts of errors, which may hold cells.
    """
    code: int | str | None = 0
    held_warnings = Warnings()
    warnings.showwarning = lambda message, *_rest, **_more: held_warnings.add(str(message))
    try:
        terminal.prepare_streams()
        terminal.exit_on_signals()
        sdckit.main(words, prog_name="sdckit", standalone_mode=False, obj=held_warnings)
        held_warnings.show()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, closed the pipe
        terminal.discard_output("stdout")
    except (KeyboardInterrupt, click.Abort, terminal.Ended) as stop:
        code = 130
        told = stop.__cause__ if isinstance(stop, click.Abort) else stop
        said = [*getattr(told, "__notes__", ()), *(told.args if isinstance(told, KeyboardInterrupt) else ())]
        if isinstance(stop, terminal.Ended):
            code = stop.code
        terminal.print_to_stderr("stopped", str([*said, "interrupted; no unfinished file is left"][0]))
    except SystemExit as stop:  # 1 is how click and rich answer a broken pipe
        code = 0 if stop.code == 1 else stop.code
    except EXPECTED as error:
        wrong = isinstance(error, click.ClickException)
        code = 2 if wrong else getattr(error, "exit_code", 2)  # 1 if limits could not be met
        terminal.print_to_stderr("error" if code == 2 else "not met", error_text(error))
    except BaseException as error:
        if os.environ.get(SHOW):
            raise
        code = 70
        text = terminal.fault_text(error)
        terminal.print_to_stderr("internal error", f"{text}; report it, with what {SHOW}=1 shows")
    terminal.finish(code)


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(VERSION, "--version", "-V", message="sdckit %(version)s")
@click.pass_context
def sdckit(context: click.Context) -> None:
    """Mask numeric microdata and measure information loss and disclosure risk.

    Only numeric variables are masked; text columns are written unchanged. Files are CSV (also .gz, .bz2, .xz,
    .zst), Parquet, Arrow, Stata, SPSS or SAS; Excel and R files are read only. Start with `sdckit demo`.

    Examples
    --------
    sdckit demo
    sdckit describe data.csv
    sdckit mask data.csv -o masked.csv --method mdav --set k=5
    sdckit evaluate data.csv masked.csv --key id
    sdckit sweep data.csv -o sweep/ --grid mdav.k=2:30
    sdckit recommend data.csv --max-risk linkage=0.1 -o masked.csv
    sdckit run job.toml
    sdckit app data.csv
    sdckit replay 20260131-0123abcd data.csv -o again.csv
    sdckit paper -o paper/
    """
    if context.invoked_subcommand is None:
        terminal.print_line(context.get_help())


@sdckit.command()
@click.option(
    "-o", "--output", metavar="FOLDER", default="sdckit-demo", show_default=True, help="Folder to write."
)
@click.option("--quiet", "-q", is_flag=True, help="Print no table.")
def demo(output: str, quiet: bool, **_given: Any) -> None:  # noqa: FBT001 - a command's flag
    """Mask a bundled sample with 20 settings, choose one and report.

    The settings are five of each of four methods.

    Examples
    --------
    sdckit demo
    sdckit demo -o somewhere/else
    """
    from sdckit import progress
    from sdckit.cli.demo import run_demo

    progress.show_notices(not quiet)
    run_demo(Path(output), quiet=quiet)


@sdckit.command(params=parameters("describe"))
def describe(**given: Any) -> None:
    """Show each column, its role, and recodings worth trying.

    Below the table stands what the columns that are not masked give away by themselves; no value of any cell
    is printed. With -o, a job file is started: it holds the roles, and as comments what is to be decided.

    Examples
    --------
    sdckit describe data.csv
    sdckit describe data.csv --key id --weights weight --recode age=10 --drop name
    sdckit describe data.csv -o job.toml
    """
    from sdckit.cli.describe import run_describe
    from sdckit.request.words import request_of_words

    run_describe(request_of_words("describe", given))


@sdckit.command(params=parameters("mask"))
def mask(**given: Any) -> None:
    """Mask a file; print information loss and disclosure risk.

    Every figure is measured on the file as written. Rows and key stay as they are, for work on the
    file; --release makes one that can be handed out.

    Examples
    --------
    sdckit mask data.csv -o masked.csv --method mdav --set k=5
    sdckit mask data.csv -o masked.parquet --method noise --set percent=20 --by region --key id
    sdckit mask data.csv -o masked.csv --method rank_noise --rule 'total = wages + other'
    sdckit mask data.csv -o masked.csv --method mdav --set k=5 --key id --release --crosswalk order.csv
    """
    from sdckit.cli.show import run_words

    run_words("mask", given)


@sdckit.command(params=parameters("evaluate"))
def evaluate(**given: Any) -> None:
    """Measure information loss and disclosure risk of a masked file.

    Several masked files of one original are compared in one table; with --report, on one map. With
    --together they are releases of the same records that an intruder combines. With limits on risk or loss,
    those of scenarios too, the exit code is 1 if a file misses one.

    Examples
    --------
    sdckit evaluate data.csv masked.csv
    sdckit evaluate data.csv masked.csv --key id --by region --json
    sdckit evaluate data.csv masked.csv --made-by noise --set percent=20
    sdckit evaluate data.csv masked.csv --crosswalk order.csv
    sdckit evaluate data.csv masked.csv --max-risk linkage=0.1 --max-loss brmae=0.3
    sdckit evaluate data.csv a.csv b.csv c.csv --report map.html
    """
    from sdckit.cli.show import run_words

    run_words("evaluate", given)


@sdckit.command(params=parameters("sweep"))
def sweep(**given: Any) -> None:
    """Mask a file with many settings and measure each result.

    Finished runs are stored: after Ctrl-C or a crash the same command resumes where it stopped, and a
    larger plan measures only what is new. FOLDER/private holds the seed: keep it secret.

    Examples
    --------
    sdckit sweep data.csv -o sweep/ --grid mdav.k=2:30
    sdckit sweep data.csv -o sweep/ --grid noise.percent=10:300:10 --grid rank_noise --replications 30
    sdckit sweep data.csv -o sweep/ --method all --report map.html
    sdckit sweep data.csv -o sweep/ --plan plan.toml --format csv
    """
    from sdckit.cli.show import run_words

    run_words("sweep", given)


@sdckit.command(params=parameters("recommend"))
def recommend(**given: Any) -> None:
    r"""Find the masking of least loss within limits on risk and loss.

    For each method the weakest safe setting is found by bisection; the one with the least loss is applied,
    and the file is measured as written. Its rows are shuffled, and it has neither key nor dropped columns. A
    random masking is drawn again if the file misses a limit; a file that misses one is never left. Exit code
    1 means that no setting meets the limits.

    Examples
    --------
    sdckit recommend data.csv --max-risk linkage=0.1 -o masked.csv
    sdckit recommend data.csv --max-risk linkage=0.1 --max-risk linkage_outliers=0.3 \
        --minimise brmae -o masked.csv --report report.html
    """
    from sdckit.cli.show import run_words

    run_words("recommend", given)


@sdckit.command(params=parameters("run"))
@click.argument("job", type=click.Path(path_type=Path))
def run(job: Path, **given: Any) -> None:
    """Do what a job file says: search and mask, mask, or evaluate.

    `sdckit describe data.csv -o job.toml` starts one, and --save-job of the other commands writes their
    options to one. Its paths are relative to its folder.

    Examples
    --------
    sdckit run job.toml
    sdckit run job.toml --overwrite --json
    """
    from sdckit.cli.show import run_job

    run_job(job, given)


@sdckit.command()
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

    Examples
    --------
    sdckit app
    sdckit app data.csv
    sdckit app data.csv --no-preview --port 8765 --no-browser
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


@sdckit.command(params=parameters("replay"))
@click.argument("release", metavar="ID")
@click.argument("data", type=click.Path(path_type=Path))
def replay(release: str, data: Path, **given: Any) -> None:
    """Make the file of a release again, byte for byte.

    ID is that of the private record, and DATA the original file, unchanged. If the file made now differs
    from the published one, nothing is written and the exit code is 1.

    Examples
    --------
    sdckit releases
    sdckit replay 20260131-0123abcd data.csv -o again.csv
    sdckit replay 20260131-0123abcd data.csv -o again.csv --private record/
    """
    from sdckit.cli import records

    records.run_replay(release, data, **given)


@sdckit.command(params=parameters("releases"))
def releases(**given: Any) -> None:
    """List the releases of the private record.

    Examples
    --------
    sdckit releases
    sdckit releases --private record/ --json
    """
    from sdckit.cli import records

    records.run_releases(**given)


@sdckit.command(params=parameters("check"))
@click.argument("masked", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path), required=False)
def check(masked: Path, data: Path | None, **given: Any) -> None:
    """Check a published file against the private record.

    With DATA, the original file, unchanged, its risks are measured again with the attacks of today, and what
    changed is printed. Exit code 1 means that it is none of the releases, byte for byte, or that one of its
    limits is not met.

    Examples
    --------
    sdckit check masked.csv
    sdckit check masked.csv --private record/
    sdckit check masked.csv data.csv
    """
    from sdckit.cli import records

    records.run_check(masked, data, **given)


@sdckit.command()
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

    Examples
    --------
    sdckit paper -o paper/
    sdckit paper -o paper/ --data sample --replications 3
    """
    from sdckit import progress
    from sdckit.core import checks, randomness
    from sdckit.paper import command
    from sdckit.request.run import resumable
    from sdckit.request.words import parse_names

    progress.show_progress(not given["quiet"])
    randomness.generator(given["seed"])
    with resumable(output / command.PRIVATE):
        lines = command.run(
            output,
            data=parse_names(given["data"]),
            replications=checks.checked_count("replications", given["replications"]),
            formats=parse_names(given["formats"]),
            seed=given["seed"],
            workers=given["workers"] and checks.checked_count("workers", given["workers"]),
            overwrite=given["overwrite"],
        )
    for line in lines if not given["quiet"] else ():
        terminal.print_note(line)


@sdckit.command(params=parameters("metrics"))
@click.argument("name", metavar="[NAME]", required=False)
def metrics(name: str | None, **given: bool) -> None:
    """List the metrics, or show one: its range, options and source.

    Examples
    --------
    sdckit metrics
    sdckit metrics brmae
    sdckit metrics --json
    """
    from sdckit.cli import registered

    registered.show_metrics(name, **given)


@sdckit.command(params=parameters("methods"))
@click.argument("name", metavar="[NAME]", required=False)
def methods(name: str | None, **given: bool) -> None:
    """List the masking methods, or show one with its parameters.

    Examples
    --------
    sdckit methods
    sdckit methods mdav
    sdckit methods --csv
    """
    from sdckit.cli import registered

    registered.show_methods(name, **given)


@sdckit.command()
@click.argument("name", metavar="NAME")
def schema(name: str) -> None:
    """Print the JSON schema of a job file or of what --json prints.

    NAME is job, or a command: describe, mask, evaluate or recommend.

    Examples
    --------
    sdckit schema job
    sdckit schema evaluate
    """
    from sdckit.request.results import schema_text

    terminal.print_line(schema_text(name))
