"""Mask a table: strata, rounding, edit rules, missing codes, warnings and notes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks, randomness, registry, settings
from sdckit.core.disclosure import Disclosure
from sdckit.core.settings import placed
from sdckit.core.text import plural, shortened
from sdckit.masking.mask_matrix import (
    apply,
    asks_for_nothing,
    enough_records,
    groups_of,
    kept_columns,
    places_of,
    rounded,
    warn_of_originals,
)
from sdckit.rules.edits import edits_of

if TYPE_CHECKING:
    from sdckit.core.prepared import PreparedTable
    from sdckit.core.registry import Method
    from sdckit.core.table import Table
    from sdckit.kernels.jit import Floats, Ints
    from sdckit.rules.edits import Edits

NO_RULE = "there is no edit rule for a masked column, so that no cell was changed for any"
DEPTH = 4  # a warning points at the line that calls `mask`


@dataclass(frozen=True)
class Masking:
    """A masked table, notes on it, and the disclosure record of its masking."""

    data: Any
    notes: list[str]
    disclosure: Disclosure


@dataclass(frozen=True)
class Job:
    """A method, its parameters for each stratum, and the columns to mask."""

    method: Method
    data: PreparedTable
    options: list[dict[str, Any]]  # of each stratum
    places: list[int] | None  # decimals of each column; None leaves them unrounded
    edits: Edits | None

    @property
    def table(self) -> Table:
        """The table that is masked."""
        if self.data.table is None:
            raise ValueError("the prepared data have no table to mask; prepare the table anew")
        return self.data.table

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are masked."""
        return self.data.columns

    @property
    def values(self) -> Floats:
        """Their original values."""
        return self.data.values

    @property
    def strata(self) -> list[tuple[str, Ints]]:
        """Names and rows of what is masked apart."""
        return self.data.strata

    @cached_property
    def plain(self) -> Floats:
        """Original values, rounded as they would be published."""
        return self.rounded(self.values)

    @cached_property
    def grouped(self) -> bool:
        """True where the table is masked by strata."""
        return bool(self.data.roles.by)

    @cached_property
    def paired(self) -> bool:
        """True where each masked row stands for the original record in the same place."""
        return all(self.method.pairs(chosen) for chosen in self.options)

    @cached_property
    def kept(self) -> list[str]:
        """Columns that the parameters keep unmasked."""
        return [name for chosen in self.options for name in kept_columns(self.method, chosen)]

    def rounded(self, values: Floats) -> Floats:
        """Round values to the published decimals."""
        return values if self.places is None else rounded(values, self.places)

    def masked(self, rng: np.random.Generator, *, numbered: bool) -> tuple[Floats, Ints]:
        """Return the masked matrix and each record's group, numbered through all strata."""
        masked = np.empty_like(self.values)
        numbers = np.full(len(self.values), -1)
        for (stratum, rows), chosen in zip(self.strata, self.options, strict=True):
            part = np.asfortranarray(self.values[rows])
            what = f"stratum {stratum!r}" if self.grouped else "the file"
            enough_records(self.method, part, chosen, what)
            groups = groups_of(self.method, part, chosen, self.names) if numbered else None
            if groups is not None:
                numbers[rows] = np.where(groups < 0, -1, groups + numbers.max() + 1)
            masked[rows] = apply(self.method, part, chosen, rng, names=self.names, groups=groups)
        checks.representable(masked, self.names, self.method.name)
        return masked, numbers

    def told(self) -> list[str]:
        """Return the method's notes on this release, with the strata that each concerns."""
        if self.method.release_notes is None:
            return []
        found: dict[str, list[str]] = {}
        for (stratum, rows), chosen in zip(self.strata, self.options, strict=True):
            options = placed(self.method, chosen, self.names)
            for text in self.method.release_notes(self.values[rows], options):
                found.setdefault(text, []).append(repr(stratum))
        return [
            text if len(where) == len(self.strata) else f"{text} (strata: {shortened(where)})"
            for text, where in found.items()
        ]

    def warn(self, masked: Floats) -> None:
        """Warn of columns published unmasked, and of original columns beside synthetic rows."""
        idle = np.array_equal(self.plain, masked, equal_nan=True)
        if self.paired and not (idle and all(asks_for_nothing(self.method, o) for o in self.options)):
            warn_of_originals(
                self.plain, masked, self.names, self.strata, kept=self.kept, grouped=self.grouped
            )
        others = [name for name in self.table.names if name not in {*self.names, *self.data.roles.by}]
        if others and not self.paired:
            fact = f"rows of {self.method.name} stand for no original record"
            beside = f"columns beside them are as they were: {shortened([repr(name) for name in others])}"
            warnings.warn(f"{fact}, and {beside}; drop them", stacklevel=DEPTH)

    def repaired(self, masked: Floats) -> tuple[Floats, list[str]]:
        """Return the masked columns repaired to satisfy the edit rules, and notes on the repair."""
        if self.edits is None:
            return masked, []
        after = self.edits.repaired(masked, self.places)
        self.edits.warn_of_originals(self.plain, masked, after)
        return after, self.edits.told(masked, after)

    def with_codes(self, masked: Floats) -> Floats:
        """Put missing codes back where they were; into any missing cell where rows are synthetic."""
        hit = int(np.isin(masked, self.data.roles.na).sum())
        if hit:
            fact = f"{hit} masked {plural(hit, 'cell')} fell on a code of missing cells"
            warnings.warn(f"{fact} and will be read as missing; use another code", stacklevel=DEPTH)
        result = masked.copy(order="F")
        for column, values, codes in zip(result.T, self.values.T, self.data.codes, strict=True):
            rows = np.isnan(values if self.paired else column)
            column[rows] = codes if self.paired or not codes.size else np.resize(codes, int(rows.sum()))
        return result


def perform(
    data: PreparedTable,
    method: str,
    *,
    rng: Any = None,
    decimals: int | str | None = None,
    rules: Any = None,
    groups: str | None = None,
    parameters: dict[str, Any],
) -> Masking:
    """Mask as `mask` does; return the masked table with its notes and its disclosure."""
    record = registry.method_named(method)
    settings.parameters_known(record, parameters)
    digits = checks.rounding(decimals)
    generator = randomness.generator(rng)
    job = _job(record, data, parameters, digits, rules)
    if groups is not None:
        settings.numbered(record, groups, job.table.names)
    masked, numbers = job.masked(generator, numbered=groups is not None)
    masked = job.rounded(masked)
    job.warn(masked)
    notes = job.told()
    notes += [] if groups is None else [f"the column {groups!r} numbers the groups of records"]
    masked, said = job.repaired(masked)
    notes += said or ([] if rules is None else [NO_RULE])
    if data.roles.na:
        masked = job.with_codes(masked)
    whole = [name for name, d in zip(job.names, job.places or (), strict=False) if d == 0]
    more = {} if groups is None else {groups: numbers + 1}  # 0 for a record without any value
    made = job.table.with_values(job.names, masked, whole=whole, more=more)
    known = None if job.edits is None else job.edits.known
    return Masking(made, notes, Disclosure.of(record.name, parameters, by=data.roles.by, rules=known))


def _job(
    method: Method, data: PreparedTable, parameters: dict[str, Any], digits: int | str | None, rules: Any
) -> Job:
    """Check the request against the table and build the `Job`."""
    strata = [name for name, _ in data.strata]
    options = settings.parameters_by_stratum(method, parameters, strata, grouped=bool(data.roles.by))
    places = None if digits is None else places_of(data.values, digits)
    job = Job(method, data, options, places, None)
    edits = edits_of(rules, data)
    if edits is None:
        return job
    edits = edits.keeping(job.kept)
    edits.allow(method)
    return replace(job, edits=edits)
