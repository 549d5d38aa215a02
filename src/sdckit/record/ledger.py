"""What earlier releases share with a new one, and what their differences give away."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from sdckit.core import checks
from sdckit.core.cells import as_polars
from sdckit.core.checks import collect_warnings, warn
from sdckit.core.scenarios import meets_limit, risk_of
from sdckit.core.table import Table
from sdckit.core.text import listed, plural, shortened
from sdckit.evaluation.measure import Measuring, evaluate_releases, original_in
from sdckit.io import crosswalk, files
from sdckit.masking.disclosure import Disclosure
from sdckit.metrics.pair import Pair
from sdckit.record.entry import KEY, VALUES, DamagedRecord, fingerprints
from sdckit.record.store import read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from sdckit.arrays import Bools, Floats, Ints, UInt64s
    from sdckit.metrics.original import Original
    from sdckit.record.entry import Entry
    from sdckit.record.store import Store
    from sdckit.selection.release import Release, ReleasePlan


NEAR = 0.1  # a guess within this share of a cell tells it
ALLOWED = 0.1  # by how much the share of such guesses may exceed that of one guess for everybody
EXACT = 1e-6  # a guess within this share of a cell tells all of it
ROUNDING = 1e-12  # of a sum, relative to the sum of absolute values


class Side(NamedTuple):
    """One of two published files, in the order of its original: n records, p columns that both files have.

    `original` is NaN where it is missing or not known any more; `apart` marks cells that the original of the
    other file has not: of records that left or joined, and those that changed.
    """

    published: Floats
    original: Floats
    apart: Bools

    @property
    def known(self) -> Bools:
        """Cells that are apart and whose original is known."""
        return self.apart & ~np.isnan(self.original)


class Partition(NamedTuple):
    """Groups of the records of both files, by columns that both publish unmasked: a number each."""

    before: Ints
    after: Ints


@dataclass(frozen=True)
class Differences:
    """What subtracting two files tells of the cells that are in the original of one of them alone.

    `share` of the known cells are guessed within 10 %, `constant` by one guess for everybody; `exact` counts
    cells that follow to the last digit, without knowing any other record.
    """

    cells: int = 0
    share: float = 0.0
    constant: float = 0.0
    exact: int = 0

    @property
    def tell(self) -> bool:
        """True if the files tell more than a release may."""
        return self.exact > 0 or self.share - self.constant > ALLOWED

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return {"cells": self.cells, "share": self.share, "constant": self.constant, "exact": self.exact}


def subtract(
    before: Side, after: Side, partitions: Sequence[Partition], *, alike: bool = False
) -> Differences:
    """Guess the cells that are apart from the two published files alone, by every kind of difference.

    0 means that nothing follows, a share of 1 that every such cell is told within 10 %. Each kind of guess is
    made in the whole files and in each partition, and the best one counts; so does the best of the guesses
    that are the same for everybody. `alike` says that both files were masked by the same method: where the
    original of the earlier one is not known any more, it kept totals if the later one does.
    """
    exact = np.zeros(before.apart.shape, bool), np.zeros(after.apart.shape, bool)
    best = {"guess": 0.0, "constant": 0.0}
    whole = Partition(*(np.zeros(len(side.published), np.int64) for side in (before, after)))
    for partition in [whole, *partitions]:
        hits: dict[str, list[Bools]] = {name: [np.empty(0, bool)] for name in GUESSES | CONSTANTS}
        for cut in _cuts(before, after, partition):
            for found, told in zip(exact, _told(cut, alike=alike), strict=True):
                found[told, cut.column] = True
            for name, guess in (GUESSES | CONSTANTS).items():
                hits[name] += cut.hits(guess(cut))
        for name, parts in hits.items():
            of_kind, right = "guess" if name in GUESSES else "constant", np.concatenate(parts)
            best[of_kind] = max(best[of_kind], right.mean() if len(right) else 0.0)
    cells = int(before.known.sum() + after.known.sum())
    followed = int(exact[0].sum() + exact[1].sum())
    return Differences(cells, float(best["guess"]), float(best["constant"]), followed)


@dataclass(frozen=True)
class _Cut:
    """One column of both files in one group: published cells, and rows whose cells are apart."""

    column: int
    sides: tuple[Side, Side]
    rows: tuple[Ints, Ints]  # of the group
    apart: tuple[Ints, Ints]

    @cached_property
    def published(self) -> tuple[Floats, Floats]:
        """The published cells of the earlier and of the later file that are not missing."""
        cells = [side.published[rows, self.column] for side, rows in zip(self.sides, self.rows, strict=True)]
        return cells[0][~np.isnan(cells[0])], cells[1][~np.isnan(cells[1])]

    @cached_property
    def unmatched(self) -> tuple[Floats, Floats]:
        """The values that each file has more often than the other, as often as it has them more."""
        first, second = self.published
        values, places = np.unique(np.concatenate([first, second]), return_inverse=True)
        counts = [np.bincount(part, minlength=len(values)) for part in np.split(places, [len(first)])]
        more = counts[0] - counts[1]
        return np.repeat(values, np.maximum(more, 0)), np.repeat(values, np.maximum(-more, 0))

    @cached_property
    def slack(self) -> float:
        """What rounding errors of a sum amount to."""
        return ROUNDING * float(sum(np.abs(cells).sum() for cells in self.published))

    def truth(self, which: int) -> Floats:
        """Return the original cells that are apart; NaN where they are not known."""
        return self.sides[which].original[self.apart[which], self.column]

    def hits(self, guesses: tuple[float, float]) -> list[Bools]:
        """Return which of the known cells are guessed within 10 %, of both files."""
        found = []
        for which, guess in enumerate(guesses):
            truth = self.truth(which)
            truth = truth[~np.isnan(truth)]
            found.append(np.abs(guess - truth) <= NEAR * np.abs(truth) + self.slack)
        return found

    def total_error(self, which: int) -> float:
        """Return by how much a total differs from that of the original; NaN if that is not known."""
        cells = self.sides[which].original[self.rows[which], self.column]
        known = ~np.isnan(cells)
        if not known.any():
            return np.nan
        return abs(float(self.published[which].sum() - cells[known].sum()))


def _cuts(before: Side, after: Side, partition: Partition) -> Iterator[_Cut]:
    """Yield each column in each group that has cells apart."""
    groups = np.union1d(partition.before[before.apart.any(1)], partition.after[after.apart.any(1)])
    members = [_members(codes, groups) for codes in partition]
    for rows in zip(*members, strict=True):
        for j in range(before.published.shape[1]):
            apart = rows[0][before.apart[rows[0], j]], rows[1][after.apart[rows[1], j]]
            if len(apart[0]) or len(apart[1]):
                yield _Cut(j, (before, after), (rows[0], rows[1]), apart)


def _members(codes: Ints, groups: Ints) -> list[Ints]:
    """Return the rows of each of some groups."""
    order = np.argsort(codes, kind="stable")
    ends = [np.searchsorted(codes[order], groups, side) for side in ("left", "right")]
    return [order[start:end] for start, end in zip(*ends, strict=True)]


def _by_sums(cut: _Cut) -> tuple[float, float]:
    """Guess by the difference of sums, split equally; also of means times sizes, which are sums of groups.

    With leavers and joiners, each is taken for an average record, and what this leaves unexplained is split.
    """
    first, second = cut.published
    left, joined = (len(rows) for rows in cut.apart)
    if not len(first) + len(second):
        return np.nan, np.nan
    average = (first.sum() + second.sum()) / (len(first) + len(second))
    rest = (first.sum() - second.sum() - (left - joined) * average) / (left + joined)
    return average + rest, average - rest


def _by_values(cut: _Cut) -> tuple[float, float]:
    """Guess by the values that one file has more often than the other: the one with most of them near it."""
    return _crowded(cut.unmatched[0]), _crowded(cut.unmatched[1])


def _crowded(values: Floats) -> float:
    """Return the value that is a good guess for most of the values, the least of several; NaN without any."""
    if not len(values):
        return np.nan
    ordered = np.sort(values)
    ends = np.sort([ordered / (1 + NEAR), ordered / (1 - NEAR)], axis=0)
    near = np.searchsorted(ordered, ends[1], "right") - np.searchsorted(ordered, ends[0], "left")
    return float(ordered[np.argmax(near)])


def _most_frequent(values: Floats) -> float:
    """Return the most frequent value, the least of several; NaN without any."""
    if not len(values):
        return np.nan
    distinct, counts = np.unique(values, return_counts=True)
    return float(distinct[np.argmax(counts)])


def _median(values: Floats) -> float:
    """Return the median; NaN without values."""
    return float(np.median(values)) if len(values) else np.nan


def _of_each(constant: Callable[[Floats], float]) -> Callable[[_Cut], tuple[float, float]]:
    """Return a guess that is the same for everybody in a group, from the file that he is in."""
    return lambda cut: (constant(cut.published[0]), constant(cut.published[1]))


GUESSES = {"sums": _by_sums, "values": _by_values}
CONSTANTS = {
    one.__name__: _of_each(one) for one in (_median, _most_frequent, _crowded)
}  # what an intruder guesses who has no second file


def _told(cut: _Cut, *, alike: bool) -> tuple[Ints, Ints]:
    """Return the rows of both files whose cell follows to the last digit and alone.

    A single value that only one file has is that of the single record that is apart. A difference of totals
    is the cell of the only record that is apart, if both files keep their totals; if they do not, a guess
    that is right is so by chance.
    """
    none = cut.apart[0][:0]
    found = [none, none]
    values, sums = cut.unmatched, _by_sums(cut)
    for which in (0, 1):
        if len(cut.apart[which]) != 1:
            continue
        truth = float(cut.truth(which)[0])
        by_value = len(values[which]) == 1 and _same(float(values[which][0]), truth, cut.slack)
        only = not len(cut.apart[1 - which])
        if by_value or (only and _same(sums[which], truth, cut.slack) and _keeps_totals(cut, sums, alike)):
            found[which] = cut.apart[which]
    return found[0], found[1]


def _same(guess: float, truth: float, slack: float) -> bool:
    """Return True if a guess is a cell to the last digit, or nothing is known against it."""
    return not abs(guess - truth) > EXACT * abs(truth) + slack and not np.isnan(guess)


def _keeps_totals(cut: _Cut, sums: tuple[float, float], alike: bool) -> bool:  # noqa: FBT001 - passed on
    """Return True if both files have the totals of their originals."""
    errors = [cut.total_error(which) for which in (0, 1)]
    if not any(np.isnan(errors)):
        return max(errors) <= EXACT * abs(sums[0 if len(cut.apart[0]) else 1]) + cut.slack
    return alike and bool(np.nanmin(errors) <= NEAR * abs(sums[0]))


@dataclass(frozen=True)
class Overlap:
    """Records that a new original shares with an earlier release.

    `rows` are the rows of the new original whose values are unchanged, `earlier` the rows of the earlier one
    that hold them; `changed_rows` and `changed_earlier` are those with the same key and other values. `n`
    counts all new records, `n_earlier` the earlier ones.
    """

    entry: Entry
    rows: Ints
    earlier: Ints
    changed_rows: Ints
    changed_earlier: Ints
    n: int
    n_earlier: int

    @property
    def changed(self) -> int:
        """Number of records with the same key and other values."""
        return len(self.changed_rows)

    @property
    def left(self) -> Ints:
        """Rows of the earlier original whose records are not in the new one."""
        return np.setdiff1d(np.arange(self.n_earlier), np.union1d(self.earlier, self.changed_earlier))

    @property
    def joined(self) -> Ints:
        """Rows of the new original whose records are not in the earlier one."""
        return np.setdiff1d(np.arange(self.n), np.union1d(self.rows, self.changed_rows))

    @property
    def complete(self) -> bool:
        """True if both originals hold the same records, all of them unchanged."""
        return len(self.rows) == self.n == self.entry.input["rows"]

    def __str__(self) -> str:
        kept = len(self.rows)
        text = f"{kept} of {self.n} {plural(self.n, 'record')} {'is' if kept == 1 else 'are'} unchanged"
        text += f" and {self.changed} changed since release {self.entry.id}"
        left, joined = len(self.left), len(self.joined)
        return f"{text}, {left} left and {joined} joined" if left or joined else text


def fingerprint_table(original: Original, secret: bytes) -> pl.DataFrame:
    """Return the fingerprints of each record, of its key (null without a key) and of its values."""
    if original.table is None:
        raise ValueError("the prepared data have no table to take fingerprints of; prepare the table anew")
    columns = {KEY: original.roles.key, VALUES: original.columns}
    found = {what: fingerprints(original.table, names, secret, what) for what, names in columns.items()}
    empty = pl.Series([None] * original.n, dtype=pl.UInt64)
    return pl.DataFrame({what: empty if marks is None else marks for what, marks in found.items()})


def find_overlaps(
    store: Store, original: Original, secret: bytes, entries: Sequence[Entry]
) -> tuple[list[Overlap], list[str]]:
    """Return the overlaps with earlier releases, and the IDs of those whose fingerprints are damaged."""
    table = original.table if original.table is not None else Table(original.values)

    @cache
    def ours(what: str, columns: tuple[str, ...]) -> UInt64s | None:
        """Return the fingerprints of the new records by the columns of an earlier release."""
        return fingerprints(table, columns, secret, what)

    found, broken = [], []
    for entry in entries:
        try:
            theirs = read_table(store.fingerprints(entry))
        except (DamagedRecord, OSError):
            broken.append(entry.id)
            continue
        values = ours(VALUES, entry.variables)
        overlap = _overlap(entry, original.n, ours(KEY, entry.key), values, theirs)
        if len(overlap.rows) or overlap.changed:
            found.append(overlap)
    return found, broken


def _overlap(
    entry: Entry, n: int, keys: UInt64s | None, values: UInt64s | None, theirs: pl.DataFrame
) -> Overlap:
    """Return the records shared with an earlier release: by key and values, then the others by their values.

    A key may be given anew for each file, as a number of the row is: it is then that of another record.
    """
    their_values = theirs[VALUES].to_numpy()
    rows = earlier = np.empty(0, np.int64)
    if keys is not None:
        rows, earlier = matching_rows(keys, theirs[KEY].to_numpy())
    if values is None:
        return Overlap(entry, rows[:0], earlier[:0], rows, earlier, n, len(their_values))
    same = values[rows] == their_values[earlier]
    changed, of_changed = rows[~same], earlier[~same]
    rows, earlier = rows[same], earlier[same]
    ours_left = np.setdiff1d(np.arange(n), rows)
    theirs_left = np.setdiff1d(np.arange(len(their_values)), earlier)
    more, of_theirs = matching_rows(values[ours_left], their_values[theirs_left])
    found = np.concatenate([rows, ours_left[more]])
    order = np.argsort(found, kind="stable")
    earlier = np.concatenate([earlier, theirs_left[of_theirs]])[order]
    still = ~np.isin(changed, found) & ~np.isin(of_changed, earlier)
    changes = changed[still], of_changed[still]
    return Overlap(entry, found[order], earlier, *changes, n, len(their_values))


def matching_rows(ours: UInt64s, theirs: UInt64s) -> tuple[Ints, Ints]:
    """Return the rows of equal numbers in two lists; the k-th of several equal ones goes with the k-th."""
    left, right = (
        pl.DataFrame({"mark": marks})
        .with_row_index("row")
        .with_columns(count=pl.int_range(pl.len()).over("mark"))
        for marks in (ours, theirs)
    )
    both = left.join(right, on=["mark", "count"], how="inner").sort("row")
    return both["row"].cast(pl.Int64).to_numpy(), both["row_right"].cast(pl.Int64).to_numpy()


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


@dataclass(frozen=True)
class Earlier:
    """Risks of a release together with earlier ones, and who left, joined or changed since these."""

    joints: list[Joint]
    moved: list[Moved]


def judge(store: Store, release: Release[Any]) -> Earlier:
    """Judge a release together with earlier ones of the same records.

    Raise `TogetherMissed` if a limit is missed, or if cells of records that left or joined follow from two
    files. Warnings announce records that were released before; no note tells who left or joined.
    """
    assert release.made_from is not None  # noqa: S101 - it was just made
    plan, original, pair = release.made_from
    warned: list[str] = []
    with collect_warnings(warned):
        overlaps = earlier_releases(store, original, limited=bool(plan.limits))
    with collect_warnings(warned):
        moved = judge_moves(store, plan, original, release, overlaps)
    joints = measure_together(store, plan, pair, release.disclosure, overlaps)
    for joint in joints:
        limit = plan.limits.get(joint.metric)
        if limit is not None and not meets_limit(joint.value, limit):
            names = f"{plural(len(joint.releases), 'release')} {shortened(joint.releases)}"
            raise TogetherMissed(
                f"together with the earlier {names}, {joint.metric} is {joint.value:.4f}, above {limit:g}, "
                "so nothing is released; mask more strongly, allow more risk, or hand out the earlier file "
                "again"
            )
    return Earlier(joints, moved)


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
    masked: Floats
    disclosure: Disclosure

    @classmethod
    def read(cls, store: Store, overlap: Overlap, pair: Pair) -> _EarlierFile | None:
        """Read a published file for the records that it shares; None if no column is shared."""
        entry, values = overlap.entry, pair.masked.copy(order="F")  # where nothing is known, nothing is new
        try:
            published = _published_frame(store, entry)
        except (DamagedRecord, OSError) as error:
            raise DamagedRecord(
                f"the new release cannot be judged together with release {entry.id}: {error}"
            ) from error
        shared = [name for name in pair.columns if name in published.columns and name not in _fresh(entry)]
        shared = [name for name in shared if published[name].dtype.is_numeric()]
        if not shared:
            return None
        for name in shared:
            theirs = numbers_in(published[name], entry.na)[overlap.earlier]
            seen = ~np.isnan(theirs)
            values[overlap.rows[seen], pair.columns.index(name)] = theirs[seen]
        same = overlap.complete and entry.variables == pair.columns
        same = same and tuple(entry.roles["by"]) == pair.original.roles.by
        known = disclosure_of(entry) if same else UNKNOWN
        return cls(entry.id, values, known)


def _published_frame(store: Store, entry: Entry) -> pl.DataFrame:
    """Return the file of an earlier release with its rows in the order of its original."""
    source = files.read(store.published(entry), entry.read_dialect()).frame
    rows = read_table(store.crosswalk(entry))[crosswalk.ORIGINAL].to_numpy() - 1
    return source[np.argsort(rows)]


def _fresh(entry: Entry) -> frozenset[str | None]:
    """Return the columns of a release that have numbers of their own."""
    return frozenset({entry.roles["unit"], entry.groups, entry.numbered})


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


SMALL_GROUP = 10  # records a group on average: sums of smaller ones tell of a record as one file alone does
MOST_GROUPS = 1000


class CellsFollow(TogetherMissed):
    """Error raised if cells of records that left or joined follow from a release and an earlier one.

    `in_public` says so without the number of records, which is secret.
    """

    in_public = "cells of single records would follow from this file and an earlier release"


@dataclass(frozen=True)
class Moved:
    """Records that left, joined or changed since an earlier release, and what both files tell of them."""

    release: str
    left: int
    joined: int
    changed: int
    told: Differences

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and figures as the private record has them."""
        counts = {name: getattr(self, name) for name in ("release", "left", "joined", "changed")}
        return counts | self.told.to_dict()

    def __str__(self) -> str:
        """Return why a release is refused."""
        counts = f"{self.left} {plural(self.left, 'record')} left, {self.joined} joined and {self.changed}"
        told = self.told
        guessed = f"{told.share:.2f} of their cells are guessed within 10 %"
        facts = [f"{guessed}, {told.constant:.2f} by one guess for all"]
        if told.exact:
            facts.append(f"{told.exact} {'follows' if told.exact == 1 else 'follow'} exactly")
        return (
            f"{counts} changed since release {self.release}; from both files {' and '.join(facts)}, so "
            "nothing is released; mask with a noise method (draw again if it is one), wait until more "
            "records change, or hand out the earlier file again"
        )


def judge_moves(
    store: Store, plan: ReleasePlan, original: Original, made: Release[Any], overlaps: Sequence[Overlap]
) -> list[Moved]:
    """Return who left, joined or changed since each earlier release, and what both files tell of them.

    Raise `CellsFollow` if they tell too much. Every kind of difference is tried, whatever the methods are
    said to keep.
    """
    found, unknown = [], []
    ours = None
    for overlap in overlaps:
        if not (len(overlap.left) or len(overlap.joined) or overlap.changed):
            continue
        ours = _new_file(plan, original, made) if ours is None else ours
        try:
            theirs = _old_file(store, overlap.entry)
        except (DamagedRecord, OSError) as error:
            fact = f"the new release cannot be compared with release {overlap.entry.id}"
            raise DamagedRecord(f"{fact}: {error}") from error
        if theirs.originals is None and (len(overlap.left) or overlap.changed):
            unknown.append(overlap.entry.id)
        sides, partitions = _sides(overlap, theirs, ours)
        told = subtract(*sides, partitions, alike=overlap.entry.method == plan.method)
        counts = len(overlap.left), len(overlap.joined), overlap.changed
        found.append(Moved(overlap.entry.id, *counts, told))
    if unknown:
        names = f"{plural(len(unknown), 'release')} {shortened(unknown)}"
        warn(
            f"the record of {names} is of version 0.1, without original values: what follows of records that "
            "left or changed since is judged by the published values alone"
        )
    for one in found:
        if one.told.tell:
            raise CellsFollow(str(one))
    return found


@dataclass(frozen=True)
class _OneFile:
    """A published file in the order of its original, and the original values of its masked columns."""

    frame: pl.DataFrame
    masked: tuple[str, ...]
    fresh: frozenset[str | None]  # columns with numbers of their own
    na: Sequence[float]
    originals: pl.DataFrame | None

    def values(self, name: str) -> Floats:
        """Return the published numbers of a column, NaN where one is missing."""
        return numbers_in(self.frame[name], self.na)


def _old_file(store: Store, entry: Entry) -> _OneFile:
    """Read an earlier release from the private record; records of version 0.1 have no original values."""
    path = store.originals(entry)
    originals = None if path is None else read_table(path)
    return _OneFile(_published_frame(store, entry), entry.variables, _fresh(entry), entry.na, originals)


def _new_file(plan: ReleasePlan, original: Original, made: Release[Any]) -> _OneFile:
    """Return the file that is about to be named."""
    frame = as_polars(made.data)[np.argsort(made.rows)]
    fresh = frozenset({original.roles.unit, plan.groups, plan.numbered})
    return _OneFile(frame, original.columns, fresh, original.roles.na, original_values(original))


def original_values(original: Original) -> pl.DataFrame:
    """Return the original values of the masked columns, NaN where one is missing."""
    return pl.DataFrame({name: original.values[:, j] for j, name in enumerate(original.columns)})


def _sides(overlap: Overlap, theirs: _OneFile, ours: _OneFile) -> tuple[tuple[Side, Side], list[Partition]]:
    """Return both files in the columns that one masked and both publish, and groups of their records."""
    either = [name for name in dict.fromkeys([*theirs.masked, *ours.masked]) if _shared(name, theirs, ours)]
    names = [name for name in either if ours.frame[name].dtype.is_numeric()]
    names = [name for name in names if theirs.frame[name].dtype.is_numeric()]
    sides = _side(theirs, names, overlap.left), _side(ours, names, overlap.joined)
    changed = list(zip(sides, (overlap.changed_earlier, overlap.changed_rows), strict=True))
    for j, name in enumerate(names):
        if theirs.originals is not None and {name} <= set(theirs.masked) & set(ours.masked):
            old, new = (side.original[rows, j] for side, rows in changed)
            other = (old != new) & ~(np.isnan(old) & np.isnan(new))
            for side, rows in changed:
                side.apart[rows[other], j] = ~np.isnan(side.original[rows[other], j])
    return sides, _partitions(theirs, ours)


def _shared(name: str, theirs: _OneFile, ours: _OneFile) -> bool:
    """Return True if both files publish a column, and not with numbers of its own."""
    return all(name in one.frame.columns and name not in one.fresh for one in (theirs, ours))


def _side(file: _OneFile, names: Sequence[str], moved: Ints) -> Side:
    """Return one file in some columns; the masked cells of records that moved are apart."""
    shape = (file.frame.height, len(names))
    published, original, apart = np.empty(shape), np.full(shape, np.nan), np.zeros(shape, bool)
    for j, name in enumerate(names):
        published[:, j] = file.values(name)
        if name not in file.masked:
            continue
        if file.originals is not None:
            original[:, j] = file.originals[name].to_numpy()
        present = published if file.originals is None else original
        apart[moved, j] = ~np.isnan(present[moved, j])
    return Side(published, original, apart)


def _as_text(column: pl.Series) -> pl.Series:
    """Return the cells of a column as texts, equal for equal numbers of any type, empty where missing."""
    plain = column.cast(pl.Float64) if column.dtype.is_numeric() else column
    return plain.cast(pl.String).fill_null("")


def _partitions(theirs: _OneFile, ours: _OneFile) -> list[Partition]:
    """Return groups of records by each column that both files publish unmasked, and by all of them."""
    masked = {*theirs.masked, *ours.masked}
    names = [name for name in ours.frame.columns if name not in masked and _shared(name, theirs, ours)]
    names = [name for name in names if pl.Object not in {one.frame[name].dtype for one in (theirs, ours)}]
    both = pl.concat(
        [one.frame.select(_as_text(one.frame[name]) for name in names) for one in (theirs, ours)]
    )
    found = []
    for some in [*([name] for name in names), *([names] if len(names) > 1 else [])]:
        codes = both.select(pl.struct(some).rank("dense").cast(pl.Int64)).to_series().to_numpy()
        if 1 < codes.max(initial=0) <= min(len(codes) / (2 * SMALL_GROUP), MOST_GROUPS):
            found.append(Partition(*np.split(codes, [theirs.frame.height])))
    return found
