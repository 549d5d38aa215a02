"""The command line: one function per command, whose imports wait until it runs, so that help is fast."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sdckit.cli import examples, faults, parsing, streams, terminal
from sdckit.cli.groups import app, check, methods, metrics, paper, releases, replay, schema
from sdckit.cli.options import (
    calibrate_option,
    crosswalk_option,
    decimals_option,
    described_roles,
    dialect_options,
    engine_options,
    folder_option,
    grid_option,
    keep_order_option,
    known_crosswalk_option,
    known_rule_option,
    known_share_option,
    limit_options,
    listing,
    made_by_options,
    measured_roles,
    measuring,
    method_option,
    metrics_option,
    no_measure_option,
    no_seed_option,
    numbered_option,
    outputs,
    private_option,
    private_report_option,
    report_option,
    roles,
    rule_option,
    ruling,
    sample_option,
    save_job_option,
    scenario_option,
    search_measuring,
    search_ruling,
    search_sample_option,
    set_option,
    ties_seed_option,
)
from sdckit.cli.terminal import Warnings
from sdckit.core.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence


SHOW = "SDCKIT_TRACEBACK"  # environment variable that shows where a fault lies


def main(words: Sequence[str] | None = None) -> None:
    """Run a command of the command line; wrong input prints one line and exits with code 2.

    A fault of this package, too, prints one line, without texts of errors, which may hold cells.
    """
    code: int | str | None = 0
    held_warnings = Warnings()
    warnings.showwarning = lambda message, *_rest, **_more: held_warnings.add(str(message))
    try:
        streams.prepare_streams()
        streams.exit_on_signals()
        sdckit.main(words, prog_name="sdckit", standalone_mode=False, obj=held_warnings)
        held_warnings.show()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, closed the pipe
        streams.discard_output("stdout")
    except (KeyboardInterrupt, click.Abort, streams.Ended) as stop:
        code = 130
        told = stop.__cause__ if isinstance(stop, click.Abort) else stop
        said = [*getattr(told, "__notes__", ()), *(told.args if isinstance(told, KeyboardInterrupt) else ())]
        if isinstance(stop, streams.Ended):
            code = stop.code
        terminal.print_to_stderr("stopped", str([*said, "interrupted; no unfinished file is left"][0]))
    except SystemExit as stop:  # 1 is how click and rich answer a broken pipe
        code = 0 if stop.code == 1 else stop.code
    except parsing.EXPECTED as error:
        wrong = isinstance(error, click.ClickException)
        code = 2 if wrong else getattr(error, "exit_code", 2)  # 1 if limits could not be met
        terminal.print_to_stderr("error" if code == 2 else "not met", parsing.error_text(error))
    except BaseException as error:
        if os.environ.get(SHOW):
            raise
        code = 70
        text = faults.fault_text(error)
        terminal.print_to_stderr("internal error", f"{text}; report it, with what {SHOW}=1 shows")
    streams.finish(code)


@click.group(
    cls=parsing.CommandGroup,
    epilog=examples.ALL,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(VERSION, "--version", "-V", message="sdckit %(version)s")
@click.pass_context
def sdckit(context: click.Context) -> None:
    """Mask numeric microdata and measure information loss and disclosure risk.

    Only numeric variables are masked; text columns are written unchanged. Files are CSV (also .gz, .bz2, .xz,
    .zst), Parquet, Arrow, Stata, SPSS or SAS; Excel and R files are read only. Start with `sdckit demo`.
    """
    if context.invoked_subcommand is None:
        terminal.print_line(context.get_help())


@sdckit.command(epilog=examples.DEMO)
@click.option(
    "-o", "--output", metavar="FOLDER", default="sdckit-demo", show_default=True, help="Folder to write."
)
@click.option("--quiet", "-q", is_flag=True, help="Print no table.")
def demo(output: str, quiet: bool, **_given: Any) -> None:  # noqa: FBT001 - a command's flag
    """Mask a bundled sample with 20 settings, choose one and report.

    The settings are five of each of four methods.
    """
    from sdckit import progress
    from sdckit.cli.demo import run_demo

    progress.show_notices(not quiet)
    run_demo(Path(output), quiet=quiet)


@sdckit.command(epilog=examples.DESCRIBE)
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Start a job file (.toml)."
)
@click.option("--overwrite", is_flag=True, help="Replace a job file that exists.")
@described_roles
@dialect_options
@listing
def describe(data: Path, **given: Any) -> None:
    """Show each column, its role, and recodings worth trying.

    Below the table stands what the columns that are not masked give away by themselves; no value of any cell
    is printed. With -o, a job file is started: it holds the roles, and as comments what is to be decided.
    """
    from sdckit.cli import describing

    describing.run(data, given)


@sdckit.command(epilog=examples.MASK)
@click.argument("data", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="File to write.")
@click.option(
    "--method",
    metavar="NAME",
    required=True,
    help="How to mask; see `sdckit methods`.",
)
@set_option
@rule_option
@calibrate_option
@click.option(
    "--groups", metavar="NAME", help="Add a column with the number of each record's group, under this name."
)
@click.option(
    "--release",
    is_flag=True,
    help="Write a file that can be handed out: rows shuffled, no key, fresh numbers of units.",
)
@no_measure_option
@keep_order_option
@numbered_option
@crosswalk_option
@private_option
@decimals_option
@report_option
@private_report_option
@save_job_option
@click.option("--overwrite", is_flag=True, help="Replace output files that exist.")
@roles
@measuring
@engine_options
@dialect_options
@outputs
def mask(data: Path, output: Path, **given: Any) -> None:
    """Mask a file; print information loss and disclosure risk.

    Every figure is measured on the file as written. Rows and key stay as they are, for work on the
    file; --release makes one that can be handed out.
    """
    from sdckit.cli import commands

    commands.mask(data, output, given)


@sdckit.command(epilog=examples.EVALUATE)
@click.argument("original", type=click.Path(path_type=Path))
@click.argument("masked", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--variables", is_flag=True, help="Also show every variable.")
@click.option(
    "--records",
    type=click.Path(path_type=Path),
    help="Write each record's risk and share of the losses to a file for you alone; keep it secret.",
)
@made_by_options
@click.option(
    "--private-output",
    is_flag=True,
    help="With --json or --csv, also figures that one record dominates, from which its value follows; "
    "not for publication.",
)
@known_crosswalk_option
@private_option
@click.option(
    "--together",
    is_flag=True,
    help="Linkage of several releases together, for an intruder who can align their records.",
)
@limit_options(required=False)
@scenario_option
@known_rule_option
@report_option
@private_report_option
@save_job_option
@click.option("--overwrite", is_flag=True, help="Replace output files that exist.")
@measured_roles
@metrics_option
@ruling
@known_share_option
@sample_option
@ties_seed_option
@engine_options
@dialect_options
@outputs
def evaluate(original: Path, masked: tuple[Path, ...], **given: Any) -> None:
    """Measure information loss and disclosure risk of a masked file.

    Several masked files of one original are compared in one table; with --report, on one map. With
    --together they are releases of the same records that an intruder combines. With limits on risk or loss,
    those of scenarios too, the exit code is 1 if a file misses one.
    """
    from sdckit.cli import commands

    commands.evaluate(original, masked, given)


@sdckit.command(epilog=examples.SWEEP)
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder for the results."
)
@method_option
@grid_option
@click.option(
    "--plan", type=click.Path(path_type=Path), help="A TOML file with the grids; see the reference."
)
@click.option("--replications", metavar="N", help="Runs of each random masking.  [default: 1]")
@click.option(
    "--draws",
    metavar="RULE",
    help="common: a method's settings share random numbers; fresh: each has its own.  [default: common]",
)
@click.option("--variables", is_flag=True, help="Also a row for each variable.")
@click.option("--detail", is_flag=True, help="Also random-order levels and tie ranges; takes longer.")
@rule_option
@sample_option
@click.option("--workers", metavar="N", help="Cores to use.  [default: all]")
@click.option(
    "--format", "form", metavar="NAME", default="parquet", show_default=True, help="parquet or csv."
)
@report_option
@save_job_option
@click.option(
    "--overwrite", is_flag=True, help="Delete what an earlier sweep left in the folder and start again."
)
@roles
@search_measuring
@dialect_options
@click.option("--quiet", "-q", is_flag=True, help="Print no progress and no table.")
def sweep(data: Path, output: Path, **given: Any) -> None:
    """Mask a file with many settings and measure each result.

    Finished runs are stored: after Ctrl-C or a crash the same command resumes where it stopped, and a
    larger plan measures only what is new. FOLDER/private holds the seed: keep it secret.
    """
    from sdckit.cli import commands

    commands.sweep(data, output, given)


@sdckit.command(epilog=examples.RECOMMEND)
@click.argument("data", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="File to write.")
@limit_options(required=True)
@scenario_option
@click.option(
    "--minimise",
    metavar="LOSS",
    default="brmae",
    show_default=True,
    help="Loss to minimise.",
)
@method_option
@grid_option
@rule_option
@click.option(
    "--replications",
    metavar="N",
    help="Draws of each random masking; the median counts.  [default: 3; 1 above 20,000 records]",
)
@search_sample_option
@click.option("--workers", metavar="N", help="Cores to use.  [default: all]")
@folder_option
@keep_order_option
@numbered_option
@calibrate_option
@crosswalk_option
@private_option
@decimals_option
@report_option
@private_report_option
@save_job_option
@click.option("--overwrite", is_flag=True, help="Replace output files that exist.")
@roles
@search_ruling
@no_seed_option
@dialect_options
@outputs
def recommend(data: Path, output: Path, **given: Any) -> None:
    """Find the masking of least loss within limits on risk and loss.

    For each method the weakest safe setting is found by bisection; the one with the least loss is applied,
    and the file is measured as written. Its rows are shuffled, and it has neither key nor dropped columns. A
    random masking is drawn again if the file misses a limit; a file that misses one is never left. Exit code
    1 means that no setting meets the limits.
    """
    from sdckit.cli import commands

    commands.recommend(data, output, given)


@sdckit.command(epilog=examples.RUN)
@click.argument("job", type=click.Path(path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace output files that exist.")
@outputs
def run(job: Path, **given: Any) -> None:
    """Do what a job file says: search and mask, mask, or evaluate.

    `sdckit describe data.csv -o job.toml` starts one, and --save-job of the other commands writes their
    options to one. Its paths are relative to its folder.
    """
    from sdckit.cli.describing import run_job

    run_job(job, sdckit, given)


for _command in (app, replay, releases, check):
    sdckit.add_command(_command)


for command in (paper, metrics, methods, schema):
    sdckit.add_command(command)
