"""The commands. Each imports what it needs when it runs, so that `--help` answers at once."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sdckit import __version__, terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from sdckit.evaluation import Evaluation
    from sdckit.files import Dialect

Command = Any  # click's decorators hide the type of what they decorate

EXAMPLES = """\b
Examples:
  sdckit demo
  sdckit mask data.csv -o masked.csv --method mdav --set k=5
  sdckit evaluate data.csv masked.csv --key id
  sdckit methods
"""


def main() -> None:
    """Run a command; bad input ends in one line and exit code 2."""
    warnings.showwarning = lambda message, *_rest, **_more: terminal.complain("warning", str(message))
    try:
        code = sdckit.main(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        terminal.say(error.ctx.get_help() if error.ctx else "")
        code = 0
    except click.ClickException as error:
        terminal.complain("error", f"{error.format_message().rstrip('.')}; see --help")
        code = 2
    except (KeyboardInterrupt, click.Abort):
        terminal.complain("stopped", "no output was written")
        code = 130
    except MemoryError:
        terminal.complain("error", "not enough memory for these data; use fewer columns or a larger machine")
        code = 2
    except (ValueError, TypeError, OSError) as error:
        terminal.complain("error", str(error))
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


@click.group(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", "-V", message="sdckit %(version)s")
def sdckit() -> None:
    """Mask numeric microdata and measure what the masking cost, from 0 to 1.

    Numeric variables only: text columns pass through untouched.
    """


# Options that several commands share.


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def apply(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


roles = _options(
    click.option(
        "--columns", metavar="A,B", help="Variables; by default all numeric columns without another role."
    ),
    click.option("--key", metavar="A", help="Column that identifies records; never masked."),
    click.option("--weights", metavar="A", help="Column of survey weights; never masked."),
    click.option("--by", metavar="A", help="Column whose values form strata."),
    click.option(
        "--na", multiple=True, metavar="X", help="Code of a missing cell, such as -999 or NA; repeatable."
    ),
)
dialect_options = _options(
    click.option("--delimiter", metavar="C", help="What separates cells in CSV files [default: ,]."),
    click.option("--decimal-comma", is_flag=True, help="Numbers look like 1,5."),
    click.option("--encoding", default="utf-8", show_default=True, help="Encoding of CSV files."),
)
outputs = _options(
    click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    click.option("--csv", "as_csv", is_flag=True, help="Print CSV."),
    click.option("--quiet", "-q", is_flag=True, help="No progress, no table."),
)
measuring = _options(
    click.option("--metrics", metavar="A,B", help="Metrics; see `sdckit metrics`."),
    click.option("--ties", default="average", show_default=True, help="How equal values are ranked."),
    click.option(
        "--missing", default="pairwise", show_default=True, help="pairwise, or penalise for bounded losses."
    ),
    click.option("--seed", type=int, help="Seed of random draws. Keep it secret: it undoes a masking."),
)


@sdckit.command(epilog="\b\nExamples:\n  sdckit demo\n  sdckit demo -o somewhere/else")
@click.option("-o", "--output", default="sdckit-demo", show_default=True, help="Folder for the files.")
@click.option("--quiet", "-q", is_flag=True, help="No table.")
def demo(output: str, quiet: bool) -> None:  # noqa: FBT001 - a command's flag
    """Mask the bundled sample with four methods and show what each cost."""
    from sdckit.demo import run

    run(Path(output), quiet=quiet)


@sdckit.command(
    epilog="\b\nExamples:\n  sdckit mask data.csv -o masked.csv --method mdav --set k=5\n"
    "  sdckit mask data.csv -o masked.parquet --method noise --set percent=20 --by region --key id"
)
@click.argument("data", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="File to write.")
@click.option("--method", required=True, help="How to mask; see `sdckit methods`.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Parameter of the method; repeatable."
)
@click.option(
    "--decimals", default="original", show_default=True, help="original, none or a number of decimals."
)
@click.option("--overwrite", is_flag=True, help="Replace the output file if it exists.")
@roles
@measuring
@dialect_options
@outputs
def mask(data: Path, output: Path, **given: Any) -> None:
    """Mask a file and print what it cost, measured on the file as written."""
    from sdckit import checks, files, masking, progress

    progress.show_progress(not given["quiet"])
    method = checks.method_named(given["method"])
    parameters = checks.parameters_of(method, _settings(given["settings"]))
    decimals = checks.rounding(None if given["decimals"] == "none" else given["decimals"])
    checks.metrics_named(_list(given["metrics"]))
    _check_output(data, output, overwrite=given["overwrite"])
    dialect = _dialect(given)
    source = files.read(data, dialect)
    role = _roles(given)
    masked = masking.mask(
        source.frame,
        method.name,
        **{name: role[name] for name in ("columns", "key", "weights", "by", "na")},
        rng=given["seed"],
        decimals=decimals,
        **parameters,
    )
    files.write(output, masked, source=source, dialect=dialect, overwrite=given["overwrite"])
    written = files.read(output, dialect).frame
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said once already
        result = _evaluate(source.frame, written, given)
    changed = [name for name in source.frame.columns if not source.frame[name].equals(masked[name])]
    _print_result(result, given, notes=[_unchanged(source.frame, written, changed), f"wrote {output}"])


@sdckit.command(
    epilog="\b\nExamples:\n  sdckit evaluate data.csv masked.csv\n"
    "  sdckit evaluate data.csv masked.csv --key id --by region --json"
)
@click.argument("original", type=click.Path(path_type=Path))
@click.argument("masked", type=click.Path(path_type=Path))
@click.option("--variables", is_flag=True, help="Also show every variable.")
@click.option("--ranks", is_flag=True, help="Also show all about ranks: means, maxima, tie range.")
@click.option(
    "--records", type=click.Path(path_type=Path), help="Write each record's share of the losses to a file."
)
@click.option("--overwrite", is_flag=True, help="Replace that file if it exists.")
@roles
@measuring
@dialect_options
@outputs
def evaluate(original: Path, masked: Path, **given: Any) -> None:
    """Measure what a masking cost: information loss of a masked file."""
    from sdckit import files, outputs, progress, rank_table

    progress.show_progress(not given["quiet"])
    if given["records"]:
        outputs.check_target(given["records"], given["overwrite"])
    dialect = _dialect(given)
    ours, theirs = files.read(original, dialect).frame, files.read(masked, dialect).frame
    result = _evaluate(ours, theirs, given, per_record=given["records"] is not None)
    if given["records"] and result.records is not None:
        files.write(given["records"], result.records, overwrite=given["overwrite"])
    extra = []
    if given["variables"]:
        extra.append(terminal.crossed(result, "variable"))
    if given["by"]:
        extra.append(terminal.crossed(result, "stratum"))
    if given["ranks"]:
        role = _roles(given)
        columns = result.table["variable"].unique(maintain_order=True).to_list()[1:]
        ranks = rank_table(ours, theirs, columns=columns, key=role["key"], na=role["na"])
        shown = ["variable", "n", "rmae", "rmae_max", "rmse", "rmse_max", "brmae_min", "brmae_average"]
        extra.append(terminal.frame_table(ranks, [*shown, "brmae_expected", "brmae_max", "brmse_tie_sd"]))
    _print_result(result, given, extra=extra)


@sdckit.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def metrics(as_json: bool, as_csv: bool) -> None:  # noqa: FBT001 - a command's flags
    """List the metrics: what each measures and where it comes from."""
    from sdckit import METRICS

    rows = [
        {
            "metric": metric.name,
            "title": metric.title,
            "family": metric.family,
            "range": "0 to 1" if metric.bounded else "0 and up",
            "default": "yes" if metric.default else "on request",
            "parameters": ", ".join(parameter.name for parameter in metric.parameters),
            "reference": metric.reference,
        }
        for metric in METRICS.values()
    ]
    _print_rows(rows, as_json=as_json, as_csv=as_csv)


@sdckit.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def methods(as_json: bool, as_csv: bool) -> None:  # noqa: FBT001 - a command's flags
    """List the masking methods: what each does, keeps and takes."""
    from sdckit import METHODS

    rows = [
        {
            "method": method.name,
            "title": method.title,
            "what it does": method.summary,
            "parameters": ", ".join(f"{p.name}={p.default} ({p.text})" for p in method.parameters),
            "keeps": "; ".join(method.keeps),
            "reference": method.reference,
        }
        for method in METHODS.values()
    ]
    _print_rows(rows, as_json=as_json, as_csv=as_csv)


# From the words of a command line to the arguments of the library.


def _list(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _settings(settings: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise ValueError(f"--set {setting!r} has no name or no value; write NAME=VALUE, such as k=5")
        if name.strip() in found:
            raise ValueError(f"--set gives {name.strip()!r} twice; give it once")
        found[name.strip()] = value.strip()
    return found


def _dialect(given: dict[str, Any]) -> Dialect:
    from sdckit.files import Dialect

    return Dialect(given["delimiter"], given["decimal_comma"], given["encoding"], missing=tuple(given["na"]))


def _roles(given: dict[str, Any]) -> dict[str, Any]:
    codes = [code for code in given["na"] if _is_number(code)]
    return {
        "columns": _list(given["columns"]),
        "key": _single(_list(given["key"])),
        "weights": given["weights"],
        "by": _single(_list(given["by"])),
        "na": codes or None,
    }


def _single(names: list[str] | None) -> str | list[str] | None:
    return names[0] if names and len(names) == 1 else names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_output(data: Path, output: Path, *, overwrite: bool) -> None:
    from sdckit import outputs

    if data.exists() and output.exists() and data.samefile(output):
        raise ValueError(f"'{output}' is the input file, which is never changed; choose another output")
    outputs.check_target(output, overwrite)


def _evaluate(ours: pl.DataFrame, theirs: pl.DataFrame, given: dict[str, Any], **options: Any) -> Evaluation:
    from sdckit import evaluate as measure

    return measure(
        ours,
        theirs,
        metrics=_list(given["metrics"]),
        ties=given["ties"],
        missing=given["missing"],
        rng=given["seed"],
        **_roles(given),
        **options,
    )


def _unchanged(ours: pl.DataFrame, theirs: pl.DataFrame, changed: list[str]) -> str:
    same = sum(int((ours[name] == theirs[name]).sum()) for name in changed)
    cells = sum(ours.height - ours[name].null_count() for name in changed)
    return f"{same} of {cells} cells in {len(changed)} masked columns are as in the original"


def _print_result(
    result: Evaluation, given: dict[str, Any], *, extra: Sequence[Any] = (), notes: Sequence[str] = ()
) -> None:
    everything = [*result.notes, *notes]
    if given["as_json"]:
        rows = list(result.table.iter_rows(named=True))
        terminal.say(terminal.as_json({"table": rows, "meaning": result.meaning, "notes": everything}))
    elif given["as_csv"]:
        terminal.say(result.table.write_csv().rstrip("\n"))
    elif not given["quiet"]:
        screen = terminal.console()
        screen.print(terminal.evaluation_table(result))
        for table in extra:
            screen.print(table)
        for note in everything:
            screen.print(f"note: {note}", markup=False)


def _print_rows(rows: list[dict[str, str]], *, as_json: bool, as_csv: bool) -> None:
    if as_json:
        terminal.say(terminal.as_json(rows))
    elif as_csv:
        import polars as pl

        terminal.say(pl.DataFrame(rows).write_csv().rstrip("\n"))
    else:
        columns = [name for name in rows[0] if name != "title"]
        table = terminal.grid(columns, [[row[name] for name in columns] for row in rows], right=len(columns))
        terminal.console().print(table)


if __name__ == "__main__":
    main()
