"""Mask files larger than memory."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks, randomness, registry
from sdckit.core.checks import quoted
from sdckit.core.registry import METHODS, check_parameters, function_options, parameters_by_stratum
from sdckit.core.roles import OPTIONS, resolve_roles, warn_of_masked_weights, warn_of_undecided
from sdckit.core.table import Table, fewest_decimals, is_path, is_spark_frame
from sdckit.core.text import plural
from sdckit.engines import row_parts
from sdckit.engines.files import Output, PartWriter, published_type, required_schema
from sdckit.engines.group_masking import RankMasking, Runs, Swap, find_blocks, find_buckets, with_codes
from sdckit.engines.opening import aligned_files, require_unique_key, transport_on, with_columns_of_array
from sdckit.engines.source import Source
from sdckit.engines.transport import matrix_of, merged, strata_in
from sdckit.kernels.draws import CellDraws, entropy_bytes
from sdckit.masking import mask_table
from sdckit.masking.disclosure import Disclosure
from sdckit.masking.microaggregation import note_on_gaps
from sdckit.masking.swapping import swap_parameters
from sdckit.progress import track
from sdckit.rules.rules import Edits, repair_notes, warn_of_broken_rules, warn_of_values_brought_back

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.registry import InBlocks, Method, WholeColumns
    from sdckit.core.roles import Roles
    from sdckit.engines.opening import Settings
    from sdckit.engines.transport import Block, Transport
    from sdckit.rules.rules import Rules


ROOM = 2 / 3  # share of a bucket's rows that are used: a row with its number and partner takes more memory
CUTTING = 0.2  # share of the progress of masking by ranks at which values are sent
FIRST_STRATUM = 1  # stream of draws of the first stratum; stream 0 is that of cells


@dataclass(frozen=True)
class MaskBlock:
    """Task: mask a block of rows with the method's own function, stratum by stratum, finish and write it."""

    method: Method
    names: tuple[str, ...]
    options: tuple[Mapping[str, Any], ...]
    bases: tuple[Any, ...]
    draws: CellDraws
    finish: row_parts.Finish

    def __call__(self, block: Block) -> row_parts.FinishCounts:
        """Return what was counted while the block was finished."""
        values = matrix_of(block, self.names)
        masked = np.empty_like(values)
        for stratum, rows in strata_in(block):
            draws: Any = self.draws.at(block.first + rows)
            masked[rows] = mask_table.apply(
                self.method,
                np.asfortranarray(values[rows]),
                dict(self.options[stratum]),
                draws,
                names=self.names,
                basis=self.bases[stratum],
            )
        return self.finish(block, masked)


@dataclass(frozen=True)
class MaskJob:
    """A masking of files: method, roles of columns, options of the strata, source of randomness."""

    transport: Transport
    source: Source
    roles: Roles
    method: Method
    options: tuple[Mapping[str, Any], ...]  # of each stratum
    draws: CellDraws

    @property
    def names(self) -> tuple[str, ...]:
        """Columns to mask."""
        return self.roles.variables

    @property
    def strata(self) -> tuple[str, ...]:
        """Names of the strata; of the whole file without any."""
        return self.source.strata_names or ("all",)

    @property
    def plan(self) -> InBlocks:
        """How the method masks files in blocks."""
        assert self.method.in_blocks is not None  # noqa: S101 - checked before
        return self.method.in_blocks

    @property
    def alike(self) -> bool:
        """True if the records of each group are published alike, without codes in missing cells."""
        applies = self.method.alike
        return applies is not None and any(applies(chosen) for chosen in self.options)

    def function_options(self) -> list[dict[str, Any]]:
        """Return the options of each stratum as the method's function takes them."""
        return [function_options(self.method, chosen, self.names) for chosen in self.options]

    def check_sizes(self, counts: Sequence[row_parts.Counts]) -> None:
        """Raise ValueError if the file or a stratum has fewer records than the method needs."""
        for name, found, chosen in zip(self.strata, counts, self.options, strict=True):
            what = f"stratum {quoted(name)}" if self.roles.by else "the file"
            mask_table.enough_present(self.method, found.present, len(self.names), chosen, what)
            empty = found.records - found.present
            if self.method.alike is not None and self.method.alike(chosen) and 0 < empty < chosen["k"]:
                raise ValueError(
                    f"{what} has {empty} {plural(empty, 'record')} without any value, too few for a group of "
                    f"k = {chosen['k']}; leave them out, or use engine='memory'"
                )

    def whole_columns(self, counts: Sequence[row_parts.Counts]) -> list[WholeColumns]:
        """Return the facts on each stratum that the method needs, by further scans."""
        columns = [found.whole(nonzero=self.plan.nonzero) for found in counts]
        if self.plan.needs in ("squares", "products"):
            return row_parts.with_products(
                self.transport, self.names, columns, full=self.plan.needs == "products"
            )
        if self.plan.needs == "codes":
            return with_codes(self.transport, self.names, columns, self.function_options())
        return columns

    def run(
        self, columns: Sequence[WholeColumns], finish: row_parts.Finish
    ) -> tuple[row_parts.FinishCounts, list[list[str]]]:
        """Mask, finish and write all rows; return what was counted, and notes for each stratum."""
        notes = [*map(self.plan.notes, columns, self.function_options())]
        if self.plan.how == "cells":
            bases = tuple(map(self.plan.basis, columns, self.options))
            task = MaskBlock(self.method, self.names, self.options, bases, self.draws, finish)
            return reduce(merged, self.transport.scan(task, finish.reads, step="masking")), notes
        p, largest = len(self.names), self.transport.bucket_rows
        parts = row_parts.RowParts.of(self.transport.rows, p, largest)
        last = row_parts.FinishPart(finish, parts)
        if self.plan.how == "groups":
            groups, more = find_blocks(self.transport, self.names, columns, self.method, self.options)
            done = row_parts.finish_parts(self.transport, groups.send, [partial(groups.group, parts)], last)
            return done, [a + b for a, b in zip(notes, more, strict=True)]
        sizes = [int(n) for one in columns for n in one.seen]
        with track("masking", 1.0) as report:
            report(0.0, CUTTING)
            buckets = find_buckets(self.transport, self.names, sizes, max(1, int(ROOM * largest)))
            pieces = {piece: self._by_ranks(n, *divmod(piece, p)) for piece, n in enumerate(sizes)}
            enough = {piece: one for piece, one in pieces.items() if isinstance(one, Swap) or one.n >= one.k}
            ranks = RankMasking(self.names, buckets, parts, enough)
            report(CUTTING, 1.0 - CUTTING)
            return row_parts.finish_parts(self.transport, ranks.send_values, ranks.stages, last), notes

    def _by_ranks(self, n: int, stratum: int, column: int) -> Swap | Runs:
        """Return how n values of a column within a stratum are masked by their ranks."""
        options = self.options[stratum]
        if not self.method.random:
            return Runs(n, options["k"], options["aggregate"])
        chosen = swap_parameters(**options)
        draws = self.draws.in_stream(FIRST_STRATUM + stratum).of_column(column)
        return Swap(n, chosen.window(n)[1], chosen.downwards, draws)

    def write(
        self,
        counts: Sequence[row_parts.Counts],
        digits: int | str | None,
        rules: Rules | None,
        target: Output,
        check: Callable[[Path], None],
    ) -> list[str]:
        """Mask and write the file, warn of what should not be published so, and return notes."""
        decimals, whole = _decimals(counts, digits), None
        if rules is not None:
            Edits(rules, self.names, np.empty((0, len(rules.columns)))).refuse_split_groups(self.method)
            warn_of_broken_rules(rules, row_parts.count_broken(self.transport, rules))
            whole = row_parts.rule_columns(self.transport, rules, len(self.strata))
        columns = self.whole_columns(counts)
        writer = self._writer(decimals)
        with target.parts(writer.schema) as folder:
            writer = replace(writer, folder=str(folder))
            finish = row_parts.Finish(
                self.source, self.method.name, self.names, decimals, writer, rules, whole
            )
            done, by_stratum = self.run(columns, finish)
            check(folder)
        self._warn(done, rules)
        notes = mask_table.notes_by_stratum(zip(self.strata, by_stratum, strict=True), len(self.strata))
        if self.alike:
            changes = done.by_stratum.values()
            gaps = note_on_gaps(sum(one.filled for one in changes), sum(one.suppressed for one in changes))
            notes[:0] = gaps
        return notes + ([] if rules is None else repair_notes(rules, done.repair))

    def _writer(self, decimals: tuple[int, ...] | None) -> PartWriter:
        """Return the writer of parts of the output, whose folder is still to be told."""
        files, places = self.source.original, dict(zip(self.names, decimals or (), strict=False))
        types = {name: published_type(files.schema[name], places.get(name)) for name in self.names}
        dropped = self.roles.drop
        kinds = {name: types.get(name, kind) for name, kind in files.schema.items() if name not in dropped}
        schema = required_schema(files, kinds, self.names)
        return PartWriter(files, "", tuple(kinds), types, places, schema, keeps_missing=not self.alike)

    def _warn(self, done: row_parts.FinishCounts, rules: Rules | None) -> None:
        """Warn of columns that masking left or rules brought back as they were, and of cells on a code."""
        changes = sorted(done.by_stratum.items())
        before = np.sum([one.changed for _, one in changes], axis=0)
        if before.any() or not all(map(self.method.changes_nothing, self.options)):
            unchanged = [(self.strata[number], one.unchanged) for number, one in changes]
            mask_table.warn_of_unmasked(unchanged, self.names, kept=(), stratified=bool(self.roles.by))
        if rules is not None:
            warn_of_values_brought_back(self.names, done.repaired.unchanged & (before > 0))
        mask_table.warn_of_codes_hit(done.codes_hit)


def _decimals(counts: Sequence[row_parts.Counts], digits: int | str | None) -> tuple[int, ...] | None:
    """Return the number of decimals of each masked column; None without rounding."""
    if digits is None:
        return None
    if digits != "original":
        return (int(digits),) * len(counts[0].fits)
    fits = np.bitwise_and.reduce([found.fits for found in counts], axis=0)
    return tuple(fewest_decimals(int(one)) for one in fits)


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
    if record.in_blocks is None:
        able = ", ".join(one.name for one in METHODS.values() if one.in_blocks is not None)
        raise ValueError(f"{record.name} needs the whole file in memory; methods that do not: {able}")
    check_parameters(record, parameters or {})
    digits = checks.checked_decimals(decimals)
    draws = cell_draws(rng)
    given = {name: value for name, value in (roles or {}).items() if value is not None}
    for role in IN_MEMORY:
        if role in given:
            raise ValueError(f"{role} works in memory only; leave it out, or mask a file that fits there")
    target = Output(Path(output), overwrite)
    source = data if isinstance(data, Source) else Source.of(data)
    found = resolve_roles(Table(source.original.sample(LOOK)), **given)
    warn_of_undecided(found.undecided)
    if "columns" not in given:
        warn_of_masked_weights(found.variables)
    source = source.with_roles(by=found.by, na=list(found.na) or None)
    target.check(source.original.paths)
    strata = source.strata_names or ("all",)
    options = parameters_by_stratum(record, dict(parameters or {}), strata, grouped=bool(found.by))
    job = MaskJob(transport(source), source, found, record, tuple(options), draws)
    for chosen in job.function_options():
        refused = job.plan.refused(chosen)
        if refused is not None:
            raise ValueError(f"{record.name} takes {refused} in memory only; leave it out for larger files")
    made = row_parts.declared_rules(rules, source.original.table, found.variables)
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
        counts = row_parts.count_columns(
            job.transport, job.names, len(job.strata), nonzero=job.plan.nonzero, decimals=digits == "original"
        )
        job.check_sizes(counts)
        report(COUNTING, 1.0 - COUNTING)
        notes = job.write(counts, digits, made, target, check)
    notes += [] if rules is None or made is not None else [mask_table.NO_RULE]
    return FileMasking(target.path, notes, disclosure)


def cell_draws(rng: Any) -> CellDraws:
    """Return draws of cells from a seed or a Generator, or from fresh entropy for None."""
    if rng is None:
        return CellDraws.of(entropy_bytes(None))
    generator = randomness.generator(rng)
    if isinstance(rng, np.random.Generator):
        return CellDraws.of(generator.bytes(32))
    return CellDraws.of(entropy_bytes(int(rng)))


CHECKING = 0.1  # share of the progress at which keys are checked
HOW = ("rng", "decimals", "rules")  # options of `mask` besides roles of columns and parameters


def mask_data(
    settings: Settings,
    data: Any,
    method: str,
    options: Mapping[str, Any],
    *,
    output: Any = None,
    overwrite: bool = False,
) -> Any:
    """Return data masked on the engine local or spark, or the path of the output; `options` are `mask`'s."""
    if output is not None:
        return mask_on_engine(settings, data, method, output, options, overwrite=overwrite).path
    if is_path(data):
        raise ValueError("the data are a file and there is no output; name the file to write with output=")
    if is_spark_frame(data):
        return _masked_frame(settings, data, method, options)
    with settings.folder() as folder:
        made = mask_on_engine(settings, data, method, folder / "masked", options)
        return _like_original(Table(data), pl.read_parquet(made.path), made.disclosure.columns)


def mask_on_engine(
    settings: Settings,
    data: Any,
    method: str,
    output: Any,
    options: Mapping[str, Any],
    *,
    overwrite: bool = False,
    measure: Callable[[Path, Disclosure], None] | None = None,
) -> FileMasking:
    """Mask data on the engine local or spark, and write them; `options` are those of `mask`.

    `measure` is called with a folder of the finished part files before the output gets its name.
    """
    options = with_columns_of_array(data, options)
    given = {name: value for name, value in options.items() if value is not None}
    if "groups" in given:
        raise ValueError(f"the engine {settings.engine} numbers no groups; leave groups= out")
    checking = 0.0 if "key" not in given else CHECKING
    with settings.folder() as scratch, track("masking", 1.0) as report:
        report(0.0, checking)

        def transport(source: Source) -> Transport:
            """Return the engine of a source, once its key is known to be unique."""
            if checking:
                require_unique_key(source.original, options["key"], scratch, memory=settings.memory)
            report(checking, 1.0 - checking, "masking")
            return transport_on(settings, source, scratch)

        return mask_files(
            aligned_files(settings, data, None, None, scratch),
            method,
            transport=transport,
            output=output,
            overwrite=overwrite,
            roles={name: given.pop(name) for name in OPTIONS if name in given},
            **{name: given.pop(name) for name in HOW if name in given},
            parameters=given,
            measure=measure,
        )


def _masked_frame(settings: Settings, data: Any, method: str, options: Mapping[str, Any]) -> Any:
    """Return a masked Spark frame, which reads files that are removed when Python ends."""
    from sdckit.engines.spark import frame_of  # noqa: PLC0415 - an optional package

    folder = tempfile.mkdtemp(prefix="sdckit-masked-", dir=settings.scratch)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = mask_on_engine(settings, data, method, Path(folder) / "masked", options)
    return frame_of(data.sparkSession, made.path)


def _like_original(original: Table, masked: pl.DataFrame, columns: tuple[str, ...]) -> Any:
    """Return a masked table in the type of the original, without the columns that are not published."""
    kept = [name for name in columns if name in masked.columns]
    kinds = {name: masked.schema[name] for name in kept}
    decimals = {name: getattr(kind, "scale", 0) for name, kind in kinds.items() if not kind.is_float()}
    made = original.with_values(kept, Table(masked).floats(kept), decimals=decimals)
    return made if original.frame is None else Table(made).take(masked.columns)
