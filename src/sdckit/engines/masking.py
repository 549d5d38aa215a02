"""Mask Parquet files that do not fit into memory: `mask_files`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks, randomness, registry, settings
from sdckit.core.decimals import fewest_decimals
from sdckit.core.disclosure import Disclosure
from sdckit.core.registry import METHODS
from sdckit.core.roles import resolve_roles
from sdckit.core.table import Table
from sdckit.core.undecided import warn_of_masked_weights, warn_of_undecided
from sdckit.engines.finishing import Finish, FinishCounts
from sdckit.engines.mask_job import MaskJob
from sdckit.engines.parquet_output import Output, PartWriter, published_type, required_schema
from sdckit.engines.rule_scan import count_broken, declared_rules, rule_columns
from sdckit.engines.source import Source
from sdckit.engines.whole_columns import count_columns
from sdckit.kernels.draws import CellDraws, entropy_bytes
from sdckit.masking.group_means import note_on_gaps
from sdckit.masking.mask_matrix import warn_of_unmasked
from sdckit.masking.mask_table import NO_RULE, notes_by_stratum, warn_of_codes_hit
from sdckit.progress import track
from sdckit.rules.rules import Edits, repair_notes, warn_of_broken_rules, warn_of_values_brought_back

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.registry import Method
    from sdckit.core.roles import Roles
    from sdckit.engines.transport import Transport
    from sdckit.engines.whole_columns import Counts
    from sdckit.rules.rules import Rules

COUNTING = 0.2  # share of the progress at which masking begins
LOOK = 100_000  # rows from which the roles of columns are guessed
IN_MEMORY = ("recode", "unit")  # roles that need all records at once


@dataclass(frozen=True)
class FileMasking:
    """Path of a masked file or folder, notes on the masking, and its disclosure record."""

    path: Path
    notes: list[str]
    disclosure: Disclosure


def mask_files(
    data: Any,
    method: str,
    *,
    transport: Callable[[Source], Transport],
    output: str | Path,
    overwrite: bool = False,
    rng: Any = None,
    decimals: int | str | None = None,
    rules: Any = None,
    roles: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    measure: Callable[[Path, Disclosure], None] | None = None,
) -> FileMasking:
    """Mask Parquet files block by block, and write the result as Parquet.

    The masked file does not depend on the engine, on the blocks or on the order in which they are masked.

    Parameters
    ----------
    data
        A Parquet file, a folder of them, a list of paths, or a `Source`.
    method
        A name of `sdc.METHODS` that masks in blocks; others are refused by name.
    transport
        What makes the engine of a source.
    output
        A path that ends in .parquet for one file; any other is a folder of part files.
    overwrite
        Replace an output that exists.
    rng
        None draws a fresh key from the operating system; a whole number or a numpy Generator fixes it.
    decimals
        As for `mask`.
    rules
        Edit rules as for `mask`, written out.
    roles
        Roles of columns, as for `mask`: columns, key, weights, by, na, untouched, drop and others.
    parameters
        Parameters of the method.
    measure
        Called with a folder of the finished part files and the disclosure record before the output gets its
        name; after an error there is no output.

    Returns
    -------
    FileMasking

    Raises
    ------
    OSError
        The output exists or cannot be written.
    ValueError
        Method, parameters, columns or rules cannot be used; see the text.
    """
    record = registry.method_named(method)
    _require_in_blocks(record)
    settings.check_parameters(record, parameters or {})
    digits = checks.checked_decimals(decimals)
    draws = cell_draws(rng)
    given = {name: value for name, value in (roles or {}).items() if value is not None}
    _refuse_memory_roles(given)
    target = Output(Path(output), overwrite)
    source, found = _source_with_roles(data, given)
    target.check(source.original.paths)
    job = _job(record, source, found, dict(parameters or {}), transport(source), draws)
    made = declared_rules(rules, source.original.table, found.variables)
    known = None if made is None else made.within(found.variables)
    disclosure = Disclosure.of(
        record.name, dict(parameters or {}), by=found.by, rules=known, columns=found.variables
    )

    def check(folder: Path) -> None:
        """Raise ValueError if the original changed meanwhile; then measure the part files if asked for."""
        source.require_unchanged()
        if measure is not None:
            measure(folder, disclosure)

    with track("masking", 1.0) as report:
        report(0.0, COUNTING)
        counts = count_columns(
            job.transport,
            job.names,
            len(job.strata),
            nonzero=job.plan.nonzero,
            decimals=digits == "original",
        )
        job.check_sizes(counts)
        places = _decimals(counts, digits)
        report(COUNTING, 1.0 - COUNTING)
        notes = _mask_and_write(job, source, found, counts, places, made, target, check)
    notes += [] if rules is None or made is not None else [NO_RULE]
    return FileMasking(target.path, notes, disclosure)


def cell_draws(rng: Any) -> CellDraws:
    """Return draws of cells from a seed or a Generator, or from fresh entropy for None."""
    if rng is None:
        return CellDraws.of(entropy_bytes(None))
    generator = randomness.generator(rng)
    if isinstance(rng, np.random.Generator):
        return CellDraws.of(generator.bytes(32))
    return CellDraws.of(entropy_bytes(int(rng)))


def _require_in_blocks(method: Method) -> None:
    """Raise ValueError for a method that needs the whole file at once, with those that do not."""
    if method.in_blocks is None:
        able = ", ".join(one.name for one in METHODS.values() if one.in_blocks is not None)
        raise ValueError(f"{method.name} needs the whole file in memory; methods that do not: {able}")


def _refuse_memory_roles(given: Mapping[str, Any]) -> None:
    """Raise ValueError for a role that only works in memory."""
    for role in IN_MEMORY:
        if role in given:
            raise ValueError(f"{role} works in memory only; leave it out, or mask a file that fits there")


def _source_with_roles(data: Any, given: Mapping[str, Any]) -> tuple[Source, Roles]:
    """Return the source of data and the roles of its columns, which are guessed from a part of the rows."""
    source = data if isinstance(data, Source) else Source.of(data)
    table = Table(source.sample(LOOK))
    found = resolve_roles(table, **given)
    warn_of_undecided(found.undecided)
    if "columns" not in given:
        warn_of_masked_weights(found.variables)
    return source.with_roles(by=found.by, na=list(found.na) or None), found


def _job(
    method: Method,
    source: Source,
    roles: Roles,
    parameters: dict[str, Any],
    transport: Transport,
    draws: CellDraws,
) -> MaskJob:
    """Return the job of a request after checking the parameters of each stratum."""
    strata = source.strata_names or ("all",)
    options = settings.parameters_by_stratum(method, parameters, strata, grouped=bool(roles.by))
    job = MaskJob(transport, method, roles.variables, strata, tuple(options), draws, bool(roles.by))
    for chosen in job.function_options():
        refused = job.plan.refused(chosen)
        if refused is not None:
            raise ValueError(f"{method.name} takes {refused} in memory only; leave it out for larger files")
    return job


def _decimals(counts: Sequence[Counts], digits: int | str | None) -> tuple[int, ...] | None:
    """Return the number of decimals of each masked column; None without rounding."""
    if digits is None:
        return None
    if digits != "original":
        return (int(digits),) * len(counts[0].fits)
    fits = np.bitwise_and.reduce([found.fits for found in counts], axis=0)
    return tuple(fewest_decimals(int(one)) for one in fits)


def _mask_and_write(
    job: MaskJob,
    source: Source,
    roles: Roles,
    counts: Sequence[Counts],
    decimals: tuple[int, ...] | None,
    rules: Rules | None,
    target: Output,
    check: Callable[[Path], None],
) -> list[str]:
    """Mask and write the file, warn of what should not be published so, and return notes."""
    whole = None
    if rules is not None:
        Edits(rules, job.names, np.empty((0, len(rules.columns)))).refuse_split_groups(job.method)
        warn_of_broken_rules(rules, count_broken(job.transport, rules))
        whole = rule_columns(job.transport, rules, len(job.strata))
    columns = job.whole_columns(counts)
    writer, schema = _writer(source, roles, decimals, keeps_missing=not job.alike)
    with target.parts(schema) as folder:
        finish = Finish(source, job.method.name, job.names, decimals, writer(folder), rules, whole)
        done, by_stratum = job.run(columns, finish)
        check(folder)
    _warn(job, done, rules)
    notes = notes_by_stratum(zip(job.strata, by_stratum, strict=True), len(job.strata))
    if job.alike:
        changes = done.by_stratum.values()
        notes[:0] = note_on_gaps(sum(one.filled for one in changes), sum(one.suppressed for one in changes))
    return notes + ([] if rules is None else repair_notes(rules, done.repair))


def _writer(
    source: Source, roles: Roles, decimals: tuple[int, ...] | None, *, keeps_missing: bool
) -> tuple[Callable[[Path], PartWriter], Any]:
    """Return what makes the writer of parts in a folder, and the Arrow schema of the output or None."""
    places = dict(zip(roles.variables, decimals or (), strict=False))
    types = {name: published_type(source.original.schema[name], places.get(name)) for name in roles.variables}
    published = {
        name: types.get(name, kind) for name, kind in source.original.schema.items() if name not in roles.drop
    }
    schema = required_schema(source.original, published, roles.variables)
    return lambda folder: PartWriter(
        source.original, str(folder), tuple(published), types, places, schema, keeps_missing
    ), schema


def _warn(job: MaskJob, done: FinishCounts, rules: Rules | None) -> None:
    """Warn of columns that masking left or the rules brought back as they were, and of cells on a code."""
    idle = all(int(changes.changed.sum()) == 0 for changes in done.by_stratum.values())
    if not (idle and all(job.method.changes_nothing(chosen) for chosen in job.options)):
        unchanged = [(job.strata[number], one.unchanged) for number, one in sorted(done.by_stratum.items())]
        warn_of_unmasked(unchanged, job.names, kept=(), stratified=job.stratified)
    if rules is not None:
        before = np.sum([one.changed for one in done.by_stratum.values()], axis=0)
        warn_of_values_brought_back(job.names, done.repaired.unchanged & (before > 0))
    warn_of_codes_hit(done.codes_hit)
