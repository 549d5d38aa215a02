"""Announce records that were released before, and judge a new release together with the earlier ones."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.core.disclosure import Disclosure
from sdckit.core.scenarios import meets_limit, risk_of
from sdckit.core.text import listed, plural, shortened
from sdckit.core.warning_texts import warn
from sdckit.io import crosswalk, files
from sdckit.metrics.evaluation import evaluate_releases
from sdckit.metrics.measuring import Measuring
from sdckit.metrics.pair import Pair
from sdckit.metrics.scenario_risks import original_in
from sdckit.record.entry import DamagedRecord
from sdckit.record.overlap import Overlap, find_overlaps
from sdckit.record.store import read_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import polars as pl

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.original import Original
    from sdckit.record.entry import Entry
    from sdckit.record.store import Store
    from sdckit.selection.release_plan import ReleasePlan

LINKAGE = "linkage"
UNKNOWN = Disclosure()  # where the records of two releases differ, the facts of the earlier one do not hold


class TogetherMissed(ValueError):  # noqa: N818 - not a fault of the input
    """Error raised if a release meets its limits alone and misses one together with earlier releases."""

    exit_code = 1


@dataclass(frozen=True)
class Joint:
    """A risk of the new release together with earlier ones: its name, its value, and their IDs."""

    metric: str
    value: float
    releases: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as JSON has it."""
        value = None if math.isnan(self.value) else self.value
        return {"metric": self.metric, "value": value, "together_with": list(self.releases)}


def earlier_releases(store: Store, original: Original, *, limited: bool) -> list[Overlap]:
    """Return the earlier releases that share records with the original; warn of them, and of lost ones.

    For a release with limits on its risks, a lost one is an error: whether they are met cannot be said.
    """
    entries, broken = store.entries()
    overlaps, lost = find_overlaps(store, original, store.secret(), entries)
    if missing := [*broken, *lost]:
        one = len(missing) == 1
        fact = (
            f"the {'record' if one else 'records'} of {plural(len(missing), 'release')} "
            f"{shortened(missing)} {'is' if one else 'are'} damaged"
        )
        remedy = f"restore {'it' if one else 'them'} from a copy"
        if limited:
            raise DamagedRecord(f"{fact}, so that limits cannot be judged together with it; {remedy}")
        warn(f"{fact} and not counted among earlier releases; {remedy}")
    if unlike := [entry.id for entry in entries if _is_unlike(entry, original.table_names)]:
        names = f"{plural(len(unlike), 'release')} {shortened(unlike)}"
        warn(
            f"not compared with {names}, which masked columns that these data lack; if the records are the "
            "same, they are judged together only with those columns"
        )
    if overlaps:
        unjudged = "; changed records are not judged together" if any(one.changed for one in overlaps) else ""
        warn(f"released before: {shortened([str(one) for one in overlaps], mark='; ')}{unjudged}")
    return overlaps


def _is_unlike(entry: Entry, names: Collection[str]) -> bool:
    """Return True if data with these columns share some that were masked, and can be compared by none."""
    comparable = set(entry.variables) <= set(names) or (entry.key and set(entry.key) <= set(names))
    return not comparable and not set(names).isdisjoint(entry.variables)


def judge_together(
    store: Store, plan: ReleasePlan, pair: Pair, disclosure: Disclosure, overlaps: Sequence[Overlap]
) -> list[Joint]:
    """Return what `measure_together` does; raise `TogetherMissed` if a limit on linkage is missed."""
    found = measure_together(store, plan, pair, disclosure, overlaps)
    for joint in found:
        limit = plan.limits.get(joint.metric)
        if limit is not None and not meets_limit(joint.value, limit):
            raise TogetherMissed(_missed_text(joint, limit))
    return found


def measure_together(
    store: Store, plan: ReleasePlan, pair: Pair, disclosure: Disclosure, overlaps: Sequence[Overlap]
) -> list[Joint]:
    """Return the linkage of a release together with earlier ones of unchanged records, in each scenario.

    Each set of unchanged records is judged with all earlier releases that hold all of it, among all records
    of the new file.
    """
    if not disclosure.paired:
        return []
    known = {one.entry.id: _EarlierFile.read(store, one, pair) for one in overlaps if one.entry.paired}
    shared = [one for one in overlaps if len(one.rows) and known.get(one.entry.id) is not None]
    if apart := [name for name, one in known.items() if one is None]:
        names = f"{plural(len(apart), 'release')} {shortened(apart)}"
        warn(f"not judged together with {names}: no column in common")
    found: list[Joint] = []
    for group in _groups(shared):
        earlier = [one for each in group if (one := known[each.entry.id]) is not None]
        found += _joint_figures(plan, pair, disclosure, earlier)
    return found


def _missed_text(joint: Joint, limit: float) -> str:
    """Return the text of the error for a limit that is missed together with earlier releases."""
    names = f"{plural(len(joint.releases), 'release')} {shortened(joint.releases)}"
    return (
        f"together with the earlier {names}, {joint.metric} is {joint.value:.4f}, above {limit:g}, so "
        "nothing is released; mask more strongly, allow more risk, or hand out the earlier file again"
    )


def together_note(joints: Iterable[Joint]) -> list[str]:
    """Return a note on the largest figure of each risk together with earlier releases."""
    worst: dict[str, Joint] = {}
    for joint in joints:
        if joint.metric not in worst or joint.value > worst[joint.metric].value:
            worst[joint.metric] = joint
    return [
        f"{one.metric} is {one.value:.4f} for an intruder who also has "
        f"{plural(len(one.releases), 'release')} {listed(one.releases)}"
        for one in worst.values()
    ]


def _groups(overlaps: Sequence[Overlap]) -> list[list[Overlap]]:
    """Return, for each set of unchanged records, the releases that hold all of it; each list once."""
    shared = [np.isin(np.arange(one.n), one.rows) for one in overlaps]
    groups = {tuple(not (ours & ~theirs).any() for theirs in shared) for ours in shared}
    return [list(compress(overlaps, group)) for group in sorted(groups)]


@dataclass(frozen=True)
class _EarlierFile:
    """Masked values of an earlier release beside the records of the new one, and what it discloses."""

    id: str
    rows: Ints
    masked: Floats
    disclosure: Disclosure

    @classmethod
    def read(cls, store: Store, overlap: Overlap, pair: Pair) -> _EarlierFile | None:
        """Read a published file for the records that it shares; None if no column is shared."""
        entry = overlap.entry
        try:
            columns, masked = _published_values(store, entry, pair.columns)
        except (DamagedRecord, OSError) as error:
            raise DamagedRecord(
                f"the new release cannot be judged together with release {entry.id}: {error}"
            ) from error
        if not columns:
            return None
        values = pair.masked.copy(
            order="F"
        )  # where nothing is known from the earlier release, nothing is new
        theirs = masked[overlap.earlier]
        for j, name in enumerate(columns):
            place, seen = pair.columns.index(name), ~np.isnan(theirs[:, j])
            values[overlap.rows[seen], place] = theirs[seen, j]
        same = overlap.complete and entry.variables == pair.columns
        same = same and tuple(entry.roles["by"]) == pair.original.roles.by
        known = disclosure_of(entry) if same else UNKNOWN
        return cls(entry.id, overlap.rows, values, known)


def _published_values(store: Store, entry: Entry, columns: Sequence[str]) -> tuple[list[str], Floats]:
    """Return those of the columns that an earlier release holds, masked or not, and its values of them.

    The values are in the order of its original.
    """
    source = files.read(store.published(entry), entry.read_dialect()).frame
    fresh = {entry.roles["unit"], entry.groups, entry.numbered}  # numbers of their own
    shared = [name for name in columns if name in source.columns and name not in fresh]
    shared = [name for name in shared if source[name].dtype.is_numeric()]
    rows = read_table(store.crosswalk(entry))[crosswalk.ORIGINAL].to_numpy() - 1
    values = np.full((len(rows), len(shared)), np.nan)
    for j, name in enumerate(shared):
        values[rows, j] = numbers_in(source[name], entry.na)
    return shared, values


def numbers_in(column: pl.Series, na: Sequence[float]) -> Floats:
    """Return a column of numbers, NaN where a cell is missing or a code for that."""
    cells = column.cast(float).fill_null(np.nan).to_numpy()
    return np.where(np.isin(cells, na), np.nan, cells)


def disclosure_of(entry: Entry) -> Disclosure:
    """Return what an earlier release published about its masking; calibration rounds cells at random."""
    found = Disclosure.of(
        entry.method,
        entry.parameters,
        by=entry.roles["by"],
        rules=entry.rules_in_full or None,
        columns=entry.variables,
    )
    totals = tuple(entry.calibrate)
    return replace(found, deterministic=False, calibrated=totals) if totals else found


def _joint_figures(
    plan: ReleasePlan, pair: Pair, disclosure: Disclosure, earlier: Sequence[_EarlierFile]
) -> list[Joint]:
    """Return the linkage of a release together with earlier ones, also for each scenario that limits it."""
    names = tuple(one.id for one in earlier)
    found = []
    limited = [scenario for scenario in plan.scenarios if LINKAGE in scenario.limits]
    others = [(scenario.label(LINKAGE), original_in(pair.original, scenario)) for scenario in limited]
    for label, original in [(LINKAGE, pair.original), *others]:
        pairs = [_pair_with(pair, original, masked) for masked in (pair.masked, *(e.masked for e in earlier))]
        how = Measuring.of([risk_of(label)], disclosure, ties=plan.ties, missing=plan.missing)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # given for the release alone
            try:
                result = evaluate_releases(pairs, [disclosure, *(e.disclosure for e in earlier)], how)
            except checks.NotApplicable:
                continue
        found.append(Joint(label, result[LINKAGE], names))
    return found


def _pair_with(pair: Pair, original: Original, masked: Floats) -> Pair:
    """Return a pair of the same files with other masked values, for an intruder with other knowledge."""
    same = {name: getattr(pair, name) for name in ("table", "by_position", "places", "marks")}
    return Pair(original, masked, **same)
