"""Run a request on an engine for files larger than memory, and refuse what that engine has not."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from sdckit import progress
from sdckit.core.table import names_of
from sdckit.engines.evaluation import check_measuring, evaluate_files
from sdckit.engines.files import find_files
from sdckit.engines.masking import mask_on_engine
from sdckit.engines.opening import Settings, require_parquet
from sdckit.evaluation.measure import privacy_notes
from sdckit.io.memory import memory_at_hand, memory_text
from sdckit.request import limits
from sdckit.request.checks import decimals_of, notes_with_flags, warnings_named_after
from sdckit.request.options import options_of
from sdckit.request.release import columns_note, keep_job
from sdckit.request.results import Result, file_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sdckit.evaluation.result import Evaluation
    from sdckit.masking.disclosure import Disclosure
    from sdckit.request.checks import Checked
    from sdckit.request.options import Request
    from sdckit.request.results import Listener

MASKING_SHARE = 0.6  # share of the progress of `mask` at which measuring begins


def engine_for(request: Request, listener: Listener) -> Settings:
    """Return where a request is run; raise ValueError for an option that is not to be had there."""
    asked = Settings.of(request.engine, memory=request.memory, master=request.master, scratch=request.scratch)
    if request.command == "mask":
        where = asked.for_output(request.data, request.output)
    else:
        where = asked.for_data(request.data, *request.masked)
    if where.engine == "memory":
        return where
    for option in options_of(request.command):
        if request.command in option.in_memory and getattr(request, option.name):
            raise ValueError(
                f"{option.flag} needs all records in memory and the engine is {where.engine}; "
                "drop it or use --engine memory"
            )
    if asked.engine is None and where.engine == "local":
        limit = memory_text(memory_at_hand() if where.memory is None else where.memory)
        listener.note(
            f"reading '{request.data}' in blocks of rows on this machine, within {limit} (--engine local)"
        )
    return where


def evaluate(
    where: Settings, request: Request, checked: Checked, limited: Mapping[str, float], listener: Listener
) -> Result:
    """Compare one masked file, or several, with the original."""
    columns = _columns(request.data)
    checked = checked.with_columns_of(request, columns)
    keep_job(request, columns, listener)
    options = _roles(checked) | {"method": checked.method, "sample_queries": request.sample_queries}
    results = {}
    with _errors_of_spark():
        for path in progress.each("measuring", request.masked):
            with warnings_named_after(str(path)) if len(request.masked) > 1 else nullcontext():
                results[str(path)] = _measure(where, request.data, path, checked, **options)
    listener.ready()
    if len(results) > 1:
        notes = [f"{name}: {note}" for name, result in results.items() for note in result.notes]
    else:
        notes = [note for one in results.values() for note in privacy_notes(one.table, per_record=False)]
    about = file_facts(find_files(request.data).rows, request.data, *request.masked)
    return limits.judged(Result(request, about, results, notes), limited, checked)


def mask(where: Settings, request: Request, checked: Checked, listener: Listener) -> Result:
    """Mask Parquet files, and measure the masked ones unless told otherwise."""
    if not request.no_measure:
        check_measuring(str(where.engine), checked.metrics, request.ties)
    columns = _columns(request.data)
    checked = checked.with_columns_of(request, columns)
    keep_job(request, columns, listener)
    options = _roles(checked) | (request.settings or {})
    options |= {"rng": request.seed, "rules": checked.rules, "decimals": decimals_of(request)}
    found: list[Evaluation] = []
    with _errors_of_spark(), progress.track("masking", 1.0) as report:
        report(0.0, 1.0 if request.no_measure else MASKING_SHARE)

        def measure(folder: Path, disclosure: Disclosure) -> None:
            """Measure the part files of the masked data."""
            report(MASKING_SHARE, 1.0 - MASKING_SHARE, "measuring")
            released = _released(checked)
            found.append(_measure(where, request.data, folder, checked, disclosure=disclosure, **released))

        made = mask_on_engine(
            where,
            request.data,
            request.method,
            request.output,
            options,
            overwrite=request.overwrite,
            measure=None if request.no_measure else measure,
        )
    listener.ready()
    published = [name for name in columns if name not in checked.drop]
    changed = columns_note(made.disclosure.columns, columns, published, whole=request.as_json)
    notes = [*made.notes, changed]
    if not found:
        unmeasured = f"nothing was measured; sdckit evaluate --engine {where.engine} measures the file"
        return Result(request, notes=[*notes, f"wrote {made.path}", unmeasured])
    notes += [*privacy_notes(found[0].table, per_record=False), f"wrote {made.path}"]
    about = file_facts(find_files(request.data).rows, request.data, request.output)
    return Result(request, about, {str(request.output): found[0]}, notes)


def _columns(data: Path) -> list[str]:
    """Return the names of the columns of Parquet files; raise ValueError for a file of another format."""
    require_parquet(data)
    return list(find_files(data).schema)


def _roles(checked: Checked) -> dict[str, Any]:
    """Return the roles of columns that are given, by argument name."""
    return {name: value for name, value in checked.roles.items() if value}


def _released(checked: Checked) -> dict[str, Any]:
    """Return the roles for measuring what `mask` has written: rows are in order, and the key is no fact."""
    roles = {
        name: value for name, value in _roles(checked).items() if name not in {"key", "columns", "by", "drop"}
    }
    if checked.roles.get("key"):
        roles["unknown"] = [*names_of(roles.get("unknown") or ()), *names_of(checked.roles["key"])]
    return roles


def _measure(where: Settings, original: Path, masked: Path, checked: Checked, **options: Any) -> Evaluation:
    """Return the losses of masked files on an engine, with notes that name options."""
    result = evaluate_files(where, original, masked, options | checked.measuring_options)
    return notes_with_flags(result)


@contextmanager
def _errors_of_spark() -> Iterator[None]:
    """Let errors on missing packages and unfit workers end the command in one line, as bad input does."""
    try:
        yield
    except (ImportError, RuntimeError) as error:
        raise ValueError(str(error)) from error
