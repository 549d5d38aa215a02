"""Mask a table: strata, units, rounding and rules, and the method on a matrix."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks, randomness, registry
from sdckit.core.cells import number_values
from sdckit.core.checks import cells_are_quoted, quoted, warn
from sdckit.core.table import (
    Step,
    Table,
    decimals_of,
    decimals_of_steps,
    keeps_type,
    unchanged_columns,
    usual_step,
)
from sdckit.core.text import plural, shortened
from sdckit.kernels.jit import count_special
from sdckit.kernels.sums import standardise
from sdckit.masking.disclosure import Disclosure
from sdckit.masking.microaggregation import FEWEST, centroids, note_on_gaps, publish, unit_values
from sdckit.progress import track
from sdckit.rules.rules import edits_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.core.prepared import PreparedTable
    from sdckit.core.registry import Method
    from sdckit.rules.rules import Edits


def apply(
    method: Method,
    values: Floats,
    options: dict[str, Any],
    rng: np.random.Generator,
    *,
    names: Sequence[str],
    basis: Any = None,
    groups: Ints | None = None,
) -> Floats:
    """Return the matrix masked with a method and its parameters; cells that overflow become infinite."""
    extra: dict[str, Any] = {"rng": rng} if method.random else {}
    if basis is not None:
        extra["basis"] = basis
    if groups is not None:
        extra["groups"] = groups
    with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses cells that overflow
        masked: Floats = np.asfortranarray(
            method.function(values, **registry.function_options(method, options, names), **extra)
        )
    if method.group_size is None and method.keeps_pairing(options) and count_special(masked.T.ravel())[0]:
        # Only methods with groups suppress cells; otherwise a new NaN is inf - inf.
        masked[np.isnan(masked) & ~np.isnan(values)] = np.inf
    return masked


def enough_records(method: Method, values: Floats, options: dict[str, Any], what: str) -> None:
    """Raise ValueError if the file or a stratum has fewer records than the method needs."""
    present = int((~np.isnan(values)).any(axis=1).sum())  # a record without any value is in no group
    enough_present(method, present, values.shape[1], options, what)


def enough_present(method: Method, present: int, p: int, options: Mapping[str, Any], what: str) -> None:
    """Raise ValueError if there are fewer records with a value, in p columns, than the method needs."""
    if method.group_size is not None:
        needed = options[method.group_size]
        if present < needed:
            fact = (
                f"{what} has {present} {plural(present, 'record')}, fewer than {method.group_size} = {needed}"
            )
            merge = " or merge strata" if what.startswith("stratum") else ""
            raise ValueError(f"{fact} of {method.name}; lower {method.group_size}{merge}")
    if method.records is not None:
        needed = method.records(dict(options), p)
        checks.require_records(present, needed, what=what, method=method.name)


def column_steps(
    values: Floats, names: Sequence[str], decimals: int | str, ruled: Collection[str] = ()
) -> tuple[Step, ...]:
    """Return the step that the masked values of each column are multiples of.

    With "original" it is the usual one of the column's values; or one number of decimals is given for all.
    The columns that edit rules name, `ruled`, keep all decimals that their values show: on grids of different
    steps a sum may have no solution.
    """
    if decimals != "original":
        return (Step(int(decimals)),) * len(names)
    return tuple(
        Step(decimals_of(column)) if name in ruled else usual_step(column)
        for name, column in zip(names, values.T, strict=True)
    )


def rounded(values: Floats, steps: Sequence[Step]) -> Floats:
    """Return the matrix with each column rounded to multiples of its own step."""
    return np.column_stack([step.rounded(column) for column, step in zip(values.T, steps, strict=True)])


def kept_columns(method: Method, options: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the columns that the parameters of a method keep unmasked."""
    return tuple(name for p in method.parameters if p.kind is tuple for name in options[p.name])


def warn_of_unmasked(
    idle: Iterable[tuple[str, Bools]], names: Sequence[str], *, kept: Sequence[str], stratified: bool
) -> None:
    """Warn of columns that are unchanged in the file or a stratum, less those in `kept`, so by intent."""
    found = [
        f"{name!r} in stratum {quoted(stratum)}" if stratified else repr(name)
        for stratum, unchanged in idle
        for name, same in zip(names, unchanged, strict=True)
        if same and name not in kept
    ]
    if found:
        remedy = "raise the parameter, merge strata" if stratified else "raise the parameter"
        warn(
            f"not masked, every value is as in the original: {', '.join(found)}; "
            f"{remedy} or leave the column out"
        )


def constant_within(values: Floats, units: Ints) -> Bools:
    """Return True for each column that has one value, or none, in the rows of every unit."""
    first = np.zeros(int(units.max()) + 1, np.int64)
    first[units[::-1]] = np.arange(len(units))[::-1]
    same = values[first[units]]
    return np.asarray(((values == same) | (np.isnan(values) & np.isnan(same))).all(axis=0))


def require_whole_units(data: PreparedTable) -> None:
    """Raise ValueError if units lie in several strata, and so would not stay constant in what they share."""
    if data.units is None or len(data.strata) < 2:
        return
    stratum = np.zeros((len(data.units), 1))
    for number, (_, rows) in enumerate(data.strata):
        stratum[rows] = number
    once = constant_within(data.values, data.units)
    if once.any() and not constant_within(stratum, data.units).all():
        name = data.columns[int(np.argmax(once))]
        raise ValueError(
            f"column {name!r} is constant within units, and units that lie in several strata would get "
            "several values; take strata of whole units or leave out the unit"
        )


def warn_of_split_units(data: PreparedTable, masked: Floats) -> None:
    """Warn of columns that were constant within units and are not so after the repair by edit rules."""
    if data.units is None:
        return
    split = constant_within(data.values, data.units) & ~constant_within(masked, data.units)
    if split.any():
        names = ", ".join(repr(name) for name, one in zip(data.columns, split, strict=True) if one)
        warn(f"edit rules changed what was constant within units: {names}; drop rules that also name others")


def require_units(method: Method, values: Floats, options: dict[str, Any], what: str, units: Ints) -> None:
    """Raise ValueError if there are too few units, or one unit is too large for the groups of a method."""
    units = number_values(units)
    if constant_within(values, units).any():
        enough_records(method, unit_values(values, units), options, f"{what}, counted in units,")
    if method.group_size is None:
        return
    k, largest, n = options[method.group_size], int(np.bincount(units).max()), len(units)
    if k > 1 and largest * k > n:
        raise ValueError(
            f"{what} has {n} records and one unit holds {largest} of them, more than 1/{method.group_size} = "
            f"1/{k}, so that no group can hide it; lower {method.group_size} or leave the unit out"
        )


def mask_rows(
    method: Method,
    values: Floats,
    options: dict[str, Any],
    rng: np.random.Generator,
    *,
    names: Sequence[str],
    units: Ints | None = None,
    basis: Any = None,
    groups: Ints | None = None,
) -> Floats:
    """Return the matrix masked with a method and its parameters.

    With units, variables that are constant within units stay so, and units are hidden.
    """
    if units is None:
        return apply(method, values, options, rng, names=names, basis=basis, groups=groups)
    units = number_values(units)
    if method.groups is not None:
        formed = groups_of(method, values, options, names, units) if groups is None else groups
        masked = apply(method, values, options, rng, names=names, groups=formed)
        if method.alike is not None and method.alike(options):
            suppress_few_units(masked, values, formed, units, options[method.group_size or "k"])
        return masked
    once = constant_within(values, units)
    masked = np.empty_like(values)
    for chosen, rows in ((~once, False), (once, True)):
        if chosen.any():
            part = np.asfortranarray(unit_values(values, units) if rows else values)[:, chosen]
            these = [name for name, used in zip(names, chosen, strict=True) if used]
            mine = registry.options_of_columns(method, options, these)
            found = apply(method, part, mine, rng, names=these)
            masked[:, chosen] = found[units] if rows else found
    return masked if method.group_size is None else without_dominated(values, masked, units, options)


def suppress_few_units(masked: Floats, values: Floats, groups: Ints, units: Ints, k: int) -> None:
    """Suppress a variable in groups with a missing cell in which fewer than max(k, 3) units have a value."""
    for j in np.flatnonzero(np.isnan(values).any(axis=0)):
        seen = ~np.isnan(values[:, j])
        holders = np.unique(np.stack([groups[seen], units[seen]]), axis=1)[0]
        few = np.bincount(holders, minlength=groups.max() + 1) < max(k, FEWEST)
        few &= np.bincount(groups[~seen], minlength=len(few)) > 0
        masked[few[groups], j] = np.nan


def without_dominated(values: Floats, masked: Floats, units: Ints, options: dict[str, Any]) -> Floats:
    """Return columns masked in groups of their own, these merged until no unit holds more than 1/k of one."""
    k, found = options["k"], masked.copy(order="F")
    for j in range(values.shape[1] if k > 1 else 0):
        seen = ~np.isnan(masked[:, j])
        groups = np.full(len(units), -1)
        groups[seen] = number_values(masked[seen, j])  # the values of a group are published alike
        merged = merge_dominated(values[:, [j]], groups, units, k)
        if merged.max() < groups.max():
            found[:, j] = publish(values[:, [j]], merged, k, options.get("aggregate", "mean"))[:, 0]
    return found


def groups_of(
    method: Method, values: Floats, options: dict[str, Any], names: Sequence[str], units: Ints | None
) -> Ints:
    """Return the number of each record's group as the method forms them; -1 for a record in no group.

    No unit holds more than 1/k of a group.
    """
    assert method.groups is not None  # noqa: S101 - checked with the other options
    given = registry.function_options(method, options, names)
    if units is None:
        return np.asarray(method.groups(values, **given))
    units, k = number_values(units), options[method.group_size or "k"]
    if constant_within(values, units).any():
        groups = method.groups(np.asfortranarray(unit_values(values, units)), **given)[units]
    else:
        groups = method.groups(values, **given)
    return groups if k == 1 else merge_dominated(values, groups, units, k)


def merge_dominated(values: Floats, groups: Ints, units: Ints, k: int) -> Ints:
    """Return the groups after merging those of which a unit holds more than 1/k with the nearest ones.

    Groups are taken in the order of their numbers, and each is merged with the group that has the nearest
    centroid until no unit holds more than 1/k of its records. If there is no other group left, it stays.
    """
    rows = np.flatnonzero(groups >= 0)
    numbers = number_values(groups[rows])
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    members = [Counter(part.tolist()) for part in np.split(units[rows][order], starts[1:])]
    sizes = np.diff(starts, append=len(rows)).astype(float)
    centres = centroids(standardise(values[rows], ddof=0), order, starts)
    merged, alive = np.arange(len(starts)), np.ones(len(starts), np.bool_)
    for group in range(len(starts)):
        while alive[group] and max(members[group].values()) * k > sizes[group] and alive.sum() > 1:
            gaps = np.where(alive, ((centres - centres[group]) ** 2).sum(axis=1), np.inf)
            gaps[group] = np.inf
            other = int(np.argmin(gaps))
            weights = sizes[[group, other]] / (sizes[group] + sizes[other])
            centres[group] = weights @ centres[[group, other]]
            sizes[group] += sizes[other]
            members[group].update(members[other])
            alive[other] = False
            merged[merged == other] = group
    found = np.full(len(groups), -1)
    found[rows] = number_values(merged[numbers])
    return found


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
    bases: dict[tuple[str, str], Any] | None = None  # what methods need of originals, for further maskings

    @property
    def table(self) -> Table:
        """The table to mask; ValueError if the prepared data hold no table."""
        if self.data.table is None:
            raise ValueError("the prepared data have no table to mask; prepare the table anew")
        return self.data.table

    @cached_property
    def rounded_original(self) -> Floats:
        """Original values of the columns to mask, rounded to the published steps."""
        return self.rounded(self.data.values)

    @property
    def stratified(self) -> bool:
        """True if the table is masked by strata."""
        return bool(self.data.roles.by)

    @cached_property
    def paired(self) -> bool:
        """True if each masked row stands for the original record in the same row."""
        return all(self.method.keeps_pairing(chosen) for chosen in self.options)

    @cached_property
    def alike(self) -> bool:
        """True if the records of each group are published alike, without codes in missing cells."""
        applies = self.method.alike
        return applies is not None and any(applies(chosen) for chosen in self.options)

    def rounded(self, values: Floats) -> Floats:
        """Return values rounded to the published steps; unchanged if no rounding was asked for."""
        return values if self.steps is None else rounded(values, self.steps)

    def require_records(self, stratum: str, values: Floats, options: dict[str, Any], units: Any) -> None:
        """Raise ValueError if a stratum, or the file, has fewer records or units than the method needs."""
        what = f"stratum {quoted(stratum)}" if self.stratified else "the file"
        enough_records(self.method, values, options, what)
        if units is not None:
            require_units(self.method, values, options, what, units)

    def masked(self, rng: np.random.Generator, *, numbered: bool = False) -> tuple[Floats, Ints]:
        """Return the masked matrix and, if `numbered`, each record's group number, unique over all strata."""
        values, names, all_units = self.data.values, self.data.columns, self.data.units
        masked = np.empty_like(values)
        numbers = np.full(len(values), -1)
        with track("masking", len(self.data.strata)) as report:
            parts = zip(self.data.strata, self.options, strict=True)
            for place, ((stratum, found), chosen) in enumerate(parts):
                report(place)
                rows = found if self.stratified else slice(None)
                part = np.asfortranarray(values[rows])
                units = None if all_units is None else all_units[rows]
                self.require_records(stratum, part, chosen, units)
                groups = None
                if numbered:
                    groups = groups_of(self.method, part, chosen, names, units)
                    numbers[rows] = np.where(groups < 0, -1, groups + numbers.max() + 1)
                basis = self._basis(stratum, part) if units is None else None
                masked[rows] = mask_rows(
                    self.method, part, chosen, rng, names=names, units=units, basis=basis, groups=groups
                )
        checks.require_representable(masked, names, self.method.name)
        return masked, numbers

    def _basis(self, stratum: str, values: Floats) -> Any:
        """Return what the method computes of the originals of a stratum alone; once, if `bases` is kept."""
        if self.bases is None or self.method.basis is None:
            return None
        if (self.method.name, stratum) not in self.bases:
            self.bases[self.method.name, stratum] = self.method.basis(values)
        return self.bases[self.method.name, stratum]

    def released(self, rng: np.random.Generator) -> Floats:
        """Return the matrix masked, rounded and repaired as a release has it, without warnings and notes."""
        masked = np.asfortranarray(self.rounded(self.masked(rng)[0]))
        return masked if self.edits is None else self.edits.repaired(masked, decimals_of_steps(self.steps))

    def notes(self, masked: Floats) -> list[str]:
        """Return notes on filled cells, and the method's own, each with the strata that it concerns."""
        gone, missing = np.isnan(masked), np.isnan(self.data.values)
        counts = int((missing & ~gone).sum()), int((gone & ~missing).sum())
        on_gaps = note_on_gaps(*counts) if self.alike else []
        if self.method.release_notes is None:
            return on_gaps
        found = []
        for (stratum, rows), chosen in zip(self.data.strata, self.options, strict=True):
            options = registry.function_options(self.method, chosen, self.data.columns)
            found.append((stratum, self.method.release_notes(self.data.values[rows], options)))
        return on_gaps + notes_by_stratum(found, len(self.options))

    def warn_of_originals(self, masked: Floats) -> None:
        """Warn of columns that masking left unchanged, and of original columns beside synthetic rows."""
        original, names = self.rounded_original, self.data.columns
        same = np.array_equal(original, masked, equal_nan=True)
        if self.paired and not (same and all(self.method.changes_nothing(o) for o in self.options)):
            idle = [
                (name, unchanged_columns(original[rows], masked[rows])) for name, rows in self.data.strata
            ]
            kept = [name for chosen in self.options for name in kept_columns(self.method, chosen)]
            warn_of_unmasked(idle, names, kept=kept, stratified=self.stratified)
        gone = {*names, *self.data.roles.by, *self.data.roles.drop}
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
        for column, values, codes in zip(result.T, self.data.values.T, self.data.codes, strict=True):
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
    digits = checks.checked_decimals(decimals)
    generator = randomness.generator(rng)
    job = _job(record, data, parameters, digits, rules)
    if groups is not None:
        registry.check_group_column(record, groups, job.table.names)
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
    places = {name: step.decimals for name, step in zip(data.columns, job.steps or (), strict=False)}
    more = {} if groups is None else {groups: numbers + 1}  # 0 for a record without any value
    made = job.table.with_values(
        data.columns, masked, decimals=places, more=more, recoded=data.recoded.values()
    )
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
    options = registry.parameters_by_stratum(method, parameters, strata, grouped=bool(data.roles.by))
    require_whole_units(data)
    edits = edits_of(rules, data)
    ruled = () if edits is None else edits.rules.columns
    steps = None if digits is None else column_steps(data.values, data.columns, digits, ruled)
    if edits is not None:
        edits = edits.keeping([name for chosen in options for name in kept_columns(method, chosen)])
        edits.refuse_split_groups(method)
    return Job(method, data, options, steps, edits)
