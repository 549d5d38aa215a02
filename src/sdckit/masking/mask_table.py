"""Mask a table: strata, rounding, edit rules, missing codes, warnings and notes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks, randomness, registry, settings
from sdckit.core.decimals import decimals_of_steps
from sdckit.core.disclosure import Disclosure
from sdckit.core.quoting import cells_are_quoted, quoted
from sdckit.core.settings import function_options
from sdckit.core.table import Table, keeps_type
from sdckit.core.text import plural, shortened
from sdckit.core.warning_texts import warn
from sdckit.masking.group_means import note_on_gaps
from sdckit.masking.mask_matrix import (
    column_steps,
    enough_records,
    groups_of,
    kept_columns,
    rounded,
    warn_of_originals,
)
from sdckit.masking.mask_units import (
    mask_rows,
    require_units,
    require_whole_units,
    unit_groups,
    warn_of_split_units,
)
from sdckit.progress import each, track
from sdckit.rules.rules import edits_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sdckit.core.decimals import Step
    from sdckit.core.prepared import PreparedTable
    from sdckit.core.registry import Method
    from sdckit.kernels.jit import Floats, Ints
    from sdckit.rules.rules import Edits

MASKING = 0.8  # share of the work that is shown as done before edit rules are applied
NO_RULE = "no edit rule names a masked column, so that no cell was changed to satisfy one"


@dataclass(frozen=True)
class Masking:
    """A masked table, notes on it, and the disclosure record: method, parameters, strata, rules, columns.

    `uncalibrated` is the masking from which this one was calibrated; None without calibration.
    """

    data: Any
    notes: list[str]
    disclosure: Disclosure
    uncalibrated: Masking | None = None


@dataclass(frozen=True)
class Job:
    """A requested masking: method, prepared data, parameters of each stratum, rounding and edit rules."""

    method: Method
    data: PreparedTable
    options: list[dict[str, Any]]  # of each stratum
    steps: tuple[Step, ...] | None  # between the published values of each column; None does not round
    edits: Edits | None

    @property
    def table(self) -> Table:
        """The table to mask; ValueError if the prepared data hold no table."""
        if self.data.table is None:
            raise ValueError("the prepared data have no table to mask; prepare the table anew")
        return self.data.table

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns to mask."""
        return self.data.columns

    @property
    def values(self) -> Floats:
        """Original values of the columns to mask, one row per record."""
        return self.data.values

    @property
    def strata(self) -> list[tuple[str, Ints]]:
        """Name and row numbers of each stratum; strata are masked separately."""
        return self.data.strata

    @cached_property
    def rounded_original(self) -> Floats:
        """Original values of the columns to mask, rounded to the published steps."""
        return self.rounded(self.values)

    @cached_property
    def stratified(self) -> bool:
        """True if the table is masked by strata."""
        return bool(self.data.roles.by)

    @cached_property
    def paired(self) -> bool:
        """True if each masked row stands for the original record in the same row."""
        return all(self.method.keeps_pairing(chosen) for chosen in self.options)

    @cached_property
    def kept(self) -> list[str]:
        """Names of the columns that the method's parameters keep unmasked."""
        return [name for chosen in self.options for name in kept_columns(self.method, chosen)]

    @cached_property
    def alike(self) -> bool:
        """True if the records of each group are published alike, without codes in missing cells."""
        applies = self.method.alike
        return applies is not None and any(applies(chosen) for chosen in self.options)

    def rounded(self, values: Floats) -> Floats:
        """Return values rounded to the published steps; unchanged if no rounding was asked for."""
        return values if self.steps is None else rounded(values, self.steps)

    def masked(self, rng: np.random.Generator, *, numbered: bool) -> tuple[Floats, Ints]:
        """Return the masked matrix and, if `numbered`, each record's group number, unique over all strata."""
        masked = np.empty_like(self.values)
        numbers = np.full(len(self.values), -1)
        for (stratum, rows), chosen in each("masking", list(zip(self.strata, self.options, strict=True))):
            part = np.asfortranarray(self.values[rows])
            what = f"stratum {quoted(stratum)}" if self.stratified else "the file"
            enough_records(self.method, part, chosen, what)
            units = None if self.data.units is None else self.data.units[rows]
            groups = None
            if units is not None:
                require_units(self.method, part, chosen, what, units)
            if numbered:
                groups = self.groups(part, chosen, units)
                numbers[rows] = np.where(groups < 0, -1, groups + numbers.max() + 1)
            masked[rows] = mask_rows(
                self.method, part, chosen, rng, names=self.names, units=units, groups=groups
            )
        checks.require_representable(masked, self.names, self.method.name)
        return masked, numbers

    def groups(self, values: Floats, options: dict[str, Any], units: Ints | None) -> Ints:
        """Return the number of each record's group, formed so that no unit dominates one."""
        if units is None:
            return groups_of(self.method, values, options, self.names)
        return unit_groups(self.method, values, options, self.names, units)

    def notes(self, masked: Floats) -> list[str]:
        """Return notes on filled cells, and the method's own, each with the strata that it concerns."""
        gone, missing = np.isnan(masked), np.isnan(self.values)
        counts = int((missing & ~gone).sum()), int((gone & ~missing).sum())
        on_gaps = note_on_gaps(*counts) if self.alike else []
        if self.method.release_notes is None:
            return on_gaps
        found = []
        for (stratum, rows), chosen in zip(self.strata, self.options, strict=True):
            options = function_options(self.method, chosen, self.names)
            found.append((stratum, self.method.release_notes(self.values[rows], options)))
        return on_gaps + notes_by_stratum(found, len(self.strata))

    def warn_of_originals(self, masked: Floats) -> None:
        """Warn of columns that masking left unchanged, and of original columns beside synthetic rows."""
        idle = np.array_equal(self.rounded_original, masked, equal_nan=True)
        if self.paired and not (idle and all(self.method.changes_nothing(o) for o in self.options)):
            warn_of_originals(
                self.rounded_original,
                masked,
                self.names,
                self.strata,
                kept=self.kept,
                stratified=self.stratified,
            )
        gone = {*self.names, *self.data.roles.by, *self.data.roles.drop}
        others = [name for name in self.table.names if name not in gone]
        if others and not self.paired:
            fact = f"rows of {self.method.name} stand for no original record"
            beside = f"columns beside them are original: {', '.join(map(repr, others))}"
            warn(f"{fact}, and {beside}; drop them")

    def repaired(self, masked: Floats) -> tuple[Floats, list[str]]:
        """Return the masked columns repaired to satisfy the edit rules, and notes on the repair."""
        if self.edits is None:
            return masked, []
        after = self.edits.repaired(masked, decimals_of_steps(self.steps))
        self.edits.warn_of_originals(self.rounded_original, masked, after)
        if self.paired:
            warn_of_split_units(self.data, after)
        return after, self.edits.notes(masked, after)

    def with_codes(self, masked: Floats) -> Floats:
        """Return the masked matrix with the codes of missing values put back into missing cells.

        Where the records of a group are published alike they would tell them apart: cells stay empty there.
        """
        hit = int(np.isin(masked, self.data.roles.na).sum())
        warn_of_codes_hit(hit)
        if self.alike:
            return masked
        result = masked.copy(order="F")
        for column, values, codes in zip(result.T, self.values.T, self.data.codes, strict=True):
            rows = np.isnan(values if self.paired else column)
            column[rows] = codes if self.paired or not codes.size else np.resize(codes, int(rows.sum()))
        return result


def warn_of_codes_hit(hit: int) -> None:
    """Warn of the number of masked cells that have the value of a missing code, if there are any."""
    if hit:
        fact = f"{hit} masked {plural(hit, 'cell')} fell on a code of missing cells"
        warn(f"{fact} and will be read as missing; use another code")


def notes_by_stratum(found: Iterable[tuple[str, Sequence[str]]], strata: int) -> list[str]:
    """Return each note once, with the names of the strata that it concerns unless these are all."""
    where: dict[str, list[str]] = {}
    for stratum, notes in found:
        for text in notes:
            where.setdefault(text, []).append(quoted(stratum))
    return [
        text if len(names) == strata else f"{text} ({_strata_text(names, strata)})"
        for text, names in where.items()
    ]


def _strata_text(names: Sequence[str], strata: int) -> str:
    """Return which strata a note concerns, or how many where they must not be named."""
    return f"strata: {shortened(names)}" if cells_are_quoted() else f"in {len(names)} of {strata} strata"


def mask_prepared(
    data: PreparedTable,
    method: str,
    *,
    rng: Any = None,
    decimals: int | str | None = None,
    rules: Any = None,
    groups: str | None = None,
    parameters: dict[str, Any],
) -> Masking:
    """Mask prepared data as `mask` does; return the masked table with notes and disclosure record."""
    record = registry.method_named(method)
    settings.check_parameters(record, parameters)
    digits = checks.checked_decimals(decimals)
    generator = randomness.generator(rng)
    job = _job(record, data, parameters, digits, rules)
    if groups is not None:
        settings.check_group_column(record, groups, job.table.names)
    with track("masking", 1.0) as report:
        report(0.0, MASKING)
        masked, numbers = job.masked(generator, numbered=groups is not None)
        report(MASKING)
        masked = job.rounded(masked)
        job.warn_of_originals(masked)
        notes = job.notes(masked)
        notes += [] if groups is None else [f"the column {groups!r} numbers the groups of records"]
        masked, on_repair = job.repaired(masked)
    notes += on_repair or ([] if rules is None else [NO_RULE])
    if data.roles.na:
        masked = job.with_codes(masked)
    places = {name: step.decimals for name, step in zip(job.names, job.steps or (), strict=False)}
    more = {} if groups is None else {groups: numbers + 1}  # 0 for a record without any value
    made = job.table.with_values(job.names, masked, decimals=places, more=more, recoded=data.recoded.values())
    notes += _type_notes(job.table, Table(made), places)
    if data.roles.drop:
        found = Table(made)
        made = found.take([name for name in found.names if name not in data.roles.drop])
    known = None if job.edits is None else job.edits.public_rules
    disclosure = Disclosure.of(
        record.name, parameters, by=data.roles.by, rules=known, columns=data.roles.variables
    )
    return Masking(made, notes, disclosure)


def _type_notes(before: Table, after: Table, decimals: Mapping[str, int]) -> list[str]:
    """Return a note for each rounded column whose type could not hold its masked cells."""
    if before.frame is None:
        return []
    kinds = {name: (before.column(name).dtype, after.column(name).dtype) for name in decimals}
    return [
        f"column {name!r} is {new}, since {old} cannot hold its masked cells"
        for name, (old, new) in kinds.items()
        if keeps_type(old, decimals[name]) and old != new
    ]


def _job(
    method: Method, data: PreparedTable, parameters: dict[str, Any], digits: int | str | None, rules: Any
) -> Job:
    """Return the `Job` for a request after checking its parameters and edit rules against the data."""
    strata = [name for name, _ in data.strata]
    options = settings.parameters_by_stratum(method, parameters, strata, grouped=bool(data.roles.by))
    require_whole_units(data)
    edits = edits_of(rules, data)
    ruled = () if edits is None else edits.rules.columns
    steps = None if digits is None else column_steps(data.values, data.columns, digits, ruled)
    job = Job(method, data, options, steps, None)
    if edits is None:
        return job
    edits = edits.keeping(job.kept)
    edits.refuse_split_groups(method)
    return replace(job, edits=edits)
