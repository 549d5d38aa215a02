"""Choose the engine of a command by its options and the size of its files, and refuse what it has not."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from sdckit import progress
from sdckit.cli import gate, json_output, parsing, request, terminal
from sdckit.cli.describing import keep_job
from sdckit.cli.release_output import columns_note
from sdckit.cli.terminal import print_held_warnings, warnings_named_after
from sdckit.core.table import names_of
from sdckit.engines.evaluation import check_measuring, evaluate_files
from sdckit.engines.files import find_files, read_folder
from sdckit.engines.masking import mask_on_engine
from sdckit.engines.opening import Settings, require_parquet
from sdckit.io import files
from sdckit.io.memory import memory_at_hand, memory_text
from sdckit.metrics.evaluation import privacy_notes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from sdckit.cli.request import CheckedOptions
    from sdckit.core.disclosure import Disclosure
    from sdckit.io.files import Source
    from sdckit.io.formats import Dialect
    from sdckit.metrics.evaluation_result import Evaluation


# Options that need all records in memory.
EVALUATING = (
    "report",
    "private_report",
    "records",
    "together",
    "scenario",
    "crosswalks",
    "unpaired",
    "unit",
    "rules",
    "estimates",
    "made_by_command",
    "known_share",
)
ONLY_MASKING = (
    "report",
    "private_report",
    "release",
    "keep_order",
    "crosswalk",
    "numbered",
    "groups",
    "recode",
    "unit",
    "estimates",
    "calibrate",
)
SINGULAR = {"crosswalks": "crosswalk", "rules": "rule", "estimates": "estimate"}  # flags of repeated options


def engine_for_evaluating(given: dict[str, Any], original: Path, masked: Sequence[Path]) -> Settings:
    """Return where `evaluate` works; raise ValueError for an option that is not to be had there."""
    asked = _settings(given)
    where = asked.for_data(original, *masked)
    _refuse(where, EVALUATING, given)
    _print_choice(asked, where, original, given)
    return where


def engine_for_masking(given: dict[str, Any], data: Path, output: Path) -> Settings:
    """Return where `mask` works; raise ValueError for an option that is not to be had there."""
    asked = _settings(given)
    where = asked.for_output(data, output)
    _refuse(where, ONLY_MASKING, given)
    _print_choice(asked, where, data, given)
    return where


def read_data(path: Path, dialect: Dialect) -> Source:
    """Return the table of a file, or of all Parquet files in a folder, in memory."""
    return read_folder(path, dialect) if path.is_dir() else files.read(path, dialect)


def _settings(given: dict[str, Any]) -> Settings:
    """Return the engine and what belongs to it as the command line gives them, checked."""
    return Settings.of(
        given["engine"], memory=given["memory"], master=given["master"], scratch=given["scratch"]
    )


def _refuse(where: Settings, options: Sequence[str], given: dict[str, Any]) -> None:
    """Raise ValueError for an option that only the engine memory has, if the engine is another one."""
    if where.engine == "memory":
        return
    for name in options:
        if given[name]:
            flag = SINGULAR.get(name, name.replace("_", "-"))
            raise ValueError(
                f"--{flag} needs all records in memory and the engine is {where.engine}; "
                "drop it or use --engine memory"
            )


def _print_choice(asked: Settings, where: Settings, data: Path, given: dict[str, Any]) -> None:
    """Say in one line on standard error that files are read in blocks, if that was not asked for."""
    if asked.engine is None and where.engine == "local" and not given["quiet"]:
        limit = memory_text(memory_at_hand() if where.memory is None else where.memory)
        terminal.print_to_stderr(
            "note", f"reading '{data}' in blocks of rows on this machine, within {limit} (--engine local)"
        )


MASKING_SHARE = 0.6  # share of the progress of `mask` at which measuring begins


def evaluate(
    where: Settings,
    original: Path,
    masked: Sequence[Path],
    checked: CheckedOptions,
    given: dict[str, Any],
    limits: Mapping[str, float],
) -> None:
    """Compare one masked file, or several, with the original; print measures and limits met or missed."""
    columns = _columns(original)
    checked = checked.with_columns_of(given, columns)
    keep_job(given, columns)
    options = _roles(checked) | {"method": checked.method, "sample_queries": given["sample_queries"]}
    results = {}
    with _errors_of_spark():
        for path in progress.each("measuring", masked):
            with warnings_named_after(str(path)) if len(masked) > 1 else nullcontext():
                results[str(path)] = _measure(where, original, path, checked, **options)
    print_held_warnings()
    about = json_output.file_facts(find_files(original).rows, original, *masked)
    if len(results) > 1:
        notes = [f"{name}: {note}" for name, result in results.items() for note in result.notes]
        verdicts = gate.verdicts_on_files(results, limits, checked)
        terminal.show_results(results, given, notes=notes, about=about, verdicts=verdicts)
    else:
        (result,) = results.values()
        notes = privacy_notes(result.table, per_record=False)
        verdicts = gate.verdicts_on(result, limits, checked)
        tables = terminal.detail_tables(result, given)
        terminal.show_result(result, given, extra=tables, notes=notes, about=about, verdicts=verdicts)
    gate.require_met(verdicts)


def mask(where: Settings, data: Path, output: Path, checked: CheckedOptions, given: dict[str, Any]) -> None:
    """Mask Parquet files, measure the masked ones unless told otherwise, and print measures and notes."""
    if not given["no_measure"]:
        check_measuring(str(where.engine), checked.metrics, checked.ties)
    columns = _columns(data)
    checked = checked.with_columns_of(given, columns)
    keep_job(given, columns)
    options = _roles(checked) | parsing.parse_settings(given["settings"])
    options |= {"rng": checked.seed, "rules": checked.rules, "decimals": request.check_decimals(given)}
    found: list[Evaluation] = []
    with _errors_of_spark(), progress.track("masking", 1.0) as report:
        report(0.0, 1.0 if given["no_measure"] else MASKING_SHARE)

        def measure(folder: Path, disclosure: Disclosure) -> None:
            """Measure the part files of the masked data."""
            report(MASKING_SHARE, 1.0 - MASKING_SHARE, "measuring")
            found.append(_measure(where, data, folder, checked, disclosure=disclosure, **_released(checked)))

        made = mask_on_engine(
            where,
            data,
            given["method"],
            output,
            options,
            overwrite=given["overwrite"],
            measure=None if given["no_measure"] else measure,
        )
    print_held_warnings()
    published = [name for name in columns if name not in checked.drop]
    changed = columns_note(made.disclosure.columns, columns, published, whole=given["as_json"])
    notes = [*made.notes, changed]
    if not found:
        unmeasured = f"nothing was measured; sdckit evaluate --engine {where.engine} measures the file"
        terminal.print_notes([*notes, f"wrote {made.path}", unmeasured], given)
        return
    notes += [*privacy_notes(found[0].table, per_record=False), f"wrote {made.path}"]
    about = json_output.file_facts(find_files(data).rows, data, output)
    terminal.show_result(found[0], given, notes=notes, about=about)


def _columns(data: Path) -> list[str]:
    """Return the names of the columns of Parquet files; raise ValueError for a file of another format."""
    require_parquet(data)
    return list(find_files(data).schema)


def _roles(checked: CheckedOptions) -> dict[str, Any]:
    """Return the roles of columns that are given, by argument name."""
    return {name: value for name, value in checked.roles.items() if value}


def _released(checked: CheckedOptions) -> dict[str, Any]:
    """Return the roles for measuring what `mask` has written: rows are in order, and the key is no fact."""
    roles = {
        name: value for name, value in _roles(checked).items() if name not in {"key", "columns", "by", "drop"}
    }
    if checked.roles.get("key"):
        roles["unknown"] = [*names_of(roles.get("unknown") or ()), *names_of(checked.roles["key"])]
    return roles


def _measure(
    where: Settings, original: Path, masked: Path, checked: CheckedOptions, **options: Any
) -> Evaluation:
    """Return the losses of masked files on an engine, with notes that name options."""
    result = evaluate_files(where, original, masked, options | checked.measuring_options)
    return request.result_with_options(result)


@contextmanager
def _errors_of_spark() -> Iterator[None]:
    """Let errors on missing packages and unfit workers end the command in one line, as bad input does."""
    try:
        yield
    except (ImportError, RuntimeError) as error:
        raise ValueError(str(error)) from error
