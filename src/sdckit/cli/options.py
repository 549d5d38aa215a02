"""Command-line options that several commands share, as click decorators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

Command = Any  # click's decorators hide the type of what they decorate


def _combine_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator that adds several options to a command."""

    def apply(command: Command) -> Command:
        """Return the command with all options added, shown in the given order."""
        for option in reversed(options):
            command = option(command)
        return command

    return apply


def _names_option(name: str, text: str) -> Callable[[Command], Command]:
    """Return a repeatable option that names columns, with its help text."""
    return click.option(name, multiple=True, metavar="A,B", help=text)


def _column_option(name: str, text: str) -> Callable[[Command], Command]:
    """Return an option that names one column, with its help text."""
    return click.option(name, metavar="A", help=text)


def _role_options(strata: str) -> Callable[[Command], Command]:
    """Return the options that name columns; `strata` is what --by does with each stratum."""
    return _combine_options(
        _names_option(
            "--columns",
            "Variables; by default all numeric columns without another role, less those that look like codes "
            "or identifiers; repeatable.",
        ),
        click.option(
            "--key",
            multiple=True,
            metavar="A",
            help="Column that identifies records, a direct identifier and no key variable "
            "(quasi-identifier); never masked; several (A,B or repeated) identify together.",
        ),
        _column_option("--weights", "Column of survey weights; never masked."),
        click.option(
            "--by",
            multiple=True,
            metavar="A",
            help=f"Column whose values form strata, each {strata}; repeatable.",
        ),
        _names_option("--untouched", "Columns published as they are; repeatable."),
        _names_option(
            "--known",
            "What the intruder knows; repeatable.  [default: all published columns but --unknown ones]",
        ),
        _names_option("--unknown", "Published columns unknown to the intruder, as weights; repeatable."),
        _names_option("--confidential", "Columns that the intruder wants to learn; repeatable."),
        _column_option("--unit", "Column of households, firms or persons; its values repeat."),
        _names_option("--drop", "Columns that are not published; repeatable."),
        click.option(
            "--na", multiple=True, metavar="X", help="Code of a missing cell, such as -999 or NA; repeatable."
        ),
    )


recode_option = click.option(
    "--recode",
    "recode",
    multiple=True,
    metavar="A=HOW",
    help="Coarsen a column that is not masked: age=5 (bands), income=round:100, town=rare:20 (merge rare "
    "categories), born=year, year:10, quarter or month; repeatable.",
)
described_roles = _combine_options(_role_options("masked and measured by itself"), recode_option)
estimate_option = click.option(
    "--estimate",
    "estimates",
    multiple=True,
    metavar="TEXT",
    help='What users of the file compute, such as "total(turnover) by sector" or "model: y ~ log(x)": its '
    "loss is measured, too; repeatable.",
)
calibrate_option = click.option(
    "--calibrate",
    multiple=True,
    metavar="TEXT",
    help='Change masked cells as little as possible so that a total of the original holds, such as "total('
    'turnover) by sector"; repeatable.',
)
roles = _combine_options(described_roles, estimate_option)
measured_roles = _combine_options(
    _role_options("measured by itself, and with --made-by also masked by itself"), estimate_option
)
dialect_options = _combine_options(
    click.option(
        "--delimiter",
        metavar="C",
        help="Character between cells of CSV files.  [default: , or ; with --decimal-comma, a tab in .tsv]",
    ),
    click.option("--decimal-comma", is_flag=True, help="Numbers look like 1,5."),
    click.option(
        "--encoding", metavar="NAME", default="utf-8", show_default=True, help="Encoding of CSV files."
    ),
    click.option(
        "--table",
        metavar="NAME",
        help="Sheet of an Excel file or data frame of an R file to read, if several.",
    ),
)
listing = _combine_options(
    click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    click.option("--csv", "as_csv", is_flag=True, help="Print CSV."),
)
outputs = _combine_options(
    listing, click.option("--quiet", "-q", is_flag=True, help="Print no progress and no table.")
)
_ties_option = click.option(
    "--ties",
    metavar="RULE",
    default="average",
    show_default=True,
    help="How equal values are ranked: average, expected, random, first, last, min or max.",
)


def _missing_option(default: str) -> Callable[[Command], Command]:
    """Return the option --missing, None if it is not given; the help names the default."""
    return click.option(
        "--missing",
        metavar="RULE",
        help="Missing cells: pairwise leaves them out, penalise counts a suppressed one as a loss "
        f"(bounded metrics only).  [default: {default}]",
    )


ruling = _combine_options(_ties_option, _missing_option("pairwise"))
search_ruling = _combine_options(_ties_option, _missing_option("penalise"))
seed_option = click.option(
    "--seed",
    type=int,
    help="Seed of random draws, for work that must repeat; what is masked with it is not for publication.",
)
no_seed_option = click.option("--seed", hidden=True)  # refused with the reason
ties_seed_option = click.option("--seed", type=int, help="Seed for --ties random.")
metrics_option = click.option(
    "--metrics",
    multiple=True,
    metavar="A,B",
    help="Metrics, all default ones if not given; see `sdckit metrics`; repeatable.",
)
sample_option = click.option(
    "--sample-queries",
    metavar="N",
    help="Estimate linkage on N records drawn at random, each looked up among all others, with a 95 % "
    "interval.  [default: all records]",
)
search_sample_option = click.option(
    "--sample-queries",
    metavar="N",
    help="Judge settings by linkage estimated on N records at first, then on more until an interval settles "
    "the question; 0 looks up all. The file itself is measured in full.  [default: 2048 of files above "
    "20000]",
)
measuring = _combine_options(metrics_option, ruling, seed_option)
search_measuring = _combine_options(metrics_option, search_ruling, seed_option)
grid_option = click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="METHOD.PARAMETER=VALUES",
    help="Values to try: 2:30, 0.01:0.3:0.01 or 3,5,10; repeatable. A method alone has its default grid; "
    "without --grid and --method, the default methods are tried (see sdckit methods).",
)
decimals_option = click.option(
    "--decimals",
    metavar="N",
    default="original",
    show_default=True,
    help="Decimals of masked cells: a number, original for the usual step of the column (100 for a column of "
    "hundreds), or none to leave them unrounded.",
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Parameter of the method; with --by also one for each stratum, k=north:5,south:3; repeatable.",
)
method_option = click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    help="A method to try with its default grid, or all for every method; repeatable.",
)
RULE = (
    'Rule of the records, such as "total = wages + other", "total = a + b +- 2" or "age >= 0"; discover '
    "finds exact totals and columns without negative values"
)
rule_option = click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="TEXT",
    help=f"{RULE}. Masked records are corrected to satisfy it; repeatable.",
)
scenario_option = click.option(
    "--scenario",
    multiple=True,
    metavar="NAME=A,B:RISK=LIMIT",
    help="Another intruder who knows A and B only, and limits for him; repeatable.",
)


def limit_options(*, required: bool) -> Callable[[Command], Command]:
    """Return the options that limit risks and losses; with `required`, a limit on a risk must be given."""
    default = " Unless given, linkage_sure is a tenth of linkage; linkage_sure=1 allows all."
    more = default if required else " The exit code is 1 where it is exceeded."
    return _combine_options(
        click.option(
            "--max-risk",
            "limits",
            multiple=True,
            required=required,
            metavar="RISK=LIMIT",
            help=f"Largest risk allowed, such as linkage=0.1; repeatable.{more}",
        ),
        click.option(
            "--max-loss",
            "loss_limits",
            multiple=True,
            metavar="LOSS=LIMIT",
            help=f"Largest loss allowed, such as suppressed=0.01; repeatable.{more}",
        ),
    )


known_rule_option = click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="TEXT",
    help=f"{RULE}. The attacks use it, and masked records that break it are counted; repeatable.",
)
folder_option = click.option(
    "--folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Store finished runs: after Ctrl-C or a crash the same command resumes. Keep DIR secret: it holds "
    "the seed.",
)
numbered_option = click.option(
    "--numbered",
    metavar="NAME",
    help="Add a column of this name with fresh numbers of the records, in an order that tells nothing.",
)
no_measure_option = click.option(
    "--no-measure", is_flag=True, help="Only mask: print no loss and no risk; not with --release or --report."
)
keep_order_option = click.option(
    "--keep-order",
    is_flag=True,
    help="Leave the rows of the release in the order of the original; the figures count what that tells.",
)
crosswalk_option = click.option(
    "--crosswalk",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the original row of each row of the release to a file for you alone; keep it secret.",
)
known_crosswalk_option = click.option(
    "--crosswalk",
    "crosswalks",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The original row of each row of a shuffled release, as recommend and mask write it; one for each "
    "masked file.",
)
private_option = click.option(
    "--private",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of the private record of releases; keep it secret.  [default: in your state directory]",
)
report_option = click.option(
    "--report",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a report: one HTML file that needs no network.",
)
private_report_option = click.option(
    "--private-report",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the report with exact statistics of the original and its hash, marked PRIVATE on every page; "
    "keep it secret.",
)
engine_options = _combine_options(
    click.option(
        "--engine",
        metavar="NAME",
        help="memory; local: Parquet files or folders in blocks of rows; spark: the same on a cluster. Risks "
        "take both files into memory.  [default: memory, or local for Parquet that does not fit there]",
    ),
    click.option(
        "--memory", metavar="SIZE", help="Limit for --engine local, such as 4GB.  [default: what is at hand]"
    ),
    click.option(
        "--master",
        metavar="ADDRESS",
        help="Spark cluster, such as spark://host:7077.  [default: on this machine]",
    ),
    click.option(
        "--scratch",
        metavar="DIR",
        help="Folder for intermediate files, which are removed; on Spark one that all workers see.  "
        "[default: the system's]",
    ),
)
known_share_option = click.option(
    "--known-share",
    metavar="SHARE",
    help="Also tell how many persons are found by an intruder who holds the originals of this share of them "
    "only, such as 0.75; in files of at most 3,000 records.",
)
made_by_options = _combine_options(
    click.option(
        "--made-by",
        metavar="METHOD",
        help="Method that masked the file, with --set for its parameters; attacks use what it discloses.",
    ),
    click.option(
        "--made-by-command",
        metavar="TEXT",
        help="In place of a method, a command of your own that masks {input} and writes {output}, with "
        '{seed} for its draws, such as "Rscript {here}/mask.R {input} {output} {seed}"; {here} is here. '
        "The intruder runs it up to 80 times, without a shell, in a private folder; its output is discarded.",
    ),
    click.option(
        "--made-by-seconds",
        metavar="N",
        help="Seconds that a run of --made-by-command may take.  [default: 60]",
    ),
    set_option,
    click.option(
        "--window",
        metavar="SHARE",
        help="Largest move in ranks, a share of the records, if the method is not one of `sdckit methods`.",
    ),
    click.option(
        "--stratified",
        is_flag=True,
        help="Each stratum of --by was masked by itself, so that the window counts ranks within it; default "
        "with --made-by.",
    ),
    click.option(
        "--unstratified",
        is_flag=True,
        help="The file was masked as a whole, and strata of --by are only measured; default with --window.",
    ),
    click.option(
        "--unpaired",
        is_flag=True,
        help="Rows stand for no original record, as in synthetic data; measures that compare rows are left "
        "out.",
    ),
)
save_job_option = click.option(
    "--save-job",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write these options to a job file (.toml), for sdckit run.",
)
