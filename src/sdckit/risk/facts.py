"""Facts: for each published record, the originals that it may stand for, from all that a release discloses.

`facts_of(pair)` returns the `Facts` of a pair of files, computed once. `facts.sides(direction, run)` are the
facts about targets and about queries as `kernels.candidates` takes them: a target is a candidate of a query
if both have the same block number and their intervals overlap in every dimension.
`facts.candidates(direction, run)` counts each query's candidates and marks equal sets of them by equal
numbers. What is not certain is no fact: the law of the masking (see `law`) takes it. `facts.cases` has the
case of each known column that was not masked (see `untouched`); `facts.failed` names relations that the
method states and a true pair breaks: they are left out. `facts.tie_rows` is False where no fact excludes any
pair. `facts.take(rows)` restricts them to a stratum.

A relation is a fact only if it holds for every true pair, so the true record is always inside. Facts are:

- known columns published unmasked: the same cell, or the cell that it maps to;
- places of missing cells, per variable: missing stays missing, observed stays observed, or both;
- zeros that the method keeps;
- windows of ranks, per stratum where masked so, and the order that a method keeps (a window of 0);
- half a base around a rounded value;
- a deterministic method run again: records published alike in all known variables.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.classes import class_numbers, number_values
from sdckit.kernels.candidates import Records, Side, take
from sdckit.risk.candidate_counts import count_by_kind
from sdckit.risk.distances import (
    TieBlocks,
    cached_value,
    known_columns,
    tie_blocks_of_files,
    tie_blocks_of_values,
)
from sdckit.risk.equal_records import row_marks
from sdckit.risk.fact_relations import (
    Relation,
    base_relation,
    place_facts,
    relation,
    same_stratum_in_blocks,
    spread_over_strata,
    stratum_numbers,
    window_relation,
    zero_facts,
)
from sdckit.risk.kept_originals import keep_side
from sdckit.risk.untouched import (
    UntouchedColumn,
    blocks_of_original,
    marks_of,
    untouched_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sdckit.kernels.jit import Floats, Ints, UInt64s
    from sdckit.metrics.pair import Pair

TO_ORIGINAL, TO_MASKED = DIRECTIONS = ("masked_to_original", "original_to_masked")
CERTAIN = "certain"

Sides = tuple[Side, Side]  # of originals and of published records


@dataclass(frozen=True)
class Facts:
    """Candidates of every record of a pair of files; see the module for its use."""

    runs: Mapping[str, Sides]  # facts about originals and published records, by run
    cases: Mapping[str, str] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    blocks: Ints | None = None  # classes by untouched columns of cases a and b; None without any
    places: tuple[Ints, Ints] | None = None  # classes by places of missing cells in both files, if any
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    run_again: bool = False  # the method draws nothing, and the intruder knows all that it reads
    kept: dict[str, Any] | None = None  # searches among originals that the next masked file needs, too

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.runs[CERTAIN][0].blocks)

    @property
    def tie_rows(self) -> bool:
        """True if some fact excludes some pair of records."""
        return any(_excludes(side) for sides in self.runs.values() for side in sides)

    def ties(self, run: str = CERTAIN) -> bool:
        """Return True if some fact of a run excludes some pair of records."""
        return any(_excludes(side) for side in self.runs[run])

    def equalities(self, run: str = CERTAIN) -> bool:
        """Return True if all facts of a run are equalities: no interval is needed."""
        return run == CERTAIN and not self.runs[run][0].low.shape[1]

    def sides(self, direction: str, run: str = CERTAIN) -> Sides:
        """Return the facts about the targets and about the queries of an attack."""
        original, published = self.runs[run]
        return (original, published) if direction == TO_ORIGINAL else (published, original)

    def candidates(self, direction: str, run: str = CERTAIN) -> tuple[Ints, UInt64s]:
        """Return each query's number of candidates, and a mark that is equal for equal sets of them."""
        if (direction, run) not in self.cache:
            self.cache[direction, run] = count_by_kind(*self.sides(direction, run))
        found: tuple[Ints, UInt64s] = self.cache[direction, run]
        return found

    def candidates_of(self, direction: str, run: str, rows: Ints) -> tuple[Ints, UInt64s]:
        """Return the same for some of the queries; marks are comparable within one answer only."""
        targets, queries = self.sides(direction, run)
        if (direction, run) in self.cache or self.equalities(run) or 2 * len(rows) > self.n:
            counts, marks = self.candidates(direction, run)
            return counts[rows], marks[rows]
        if (direction, run, "records") not in self.cache:
            self.cache[direction, run, "records"] = Records(targets)
        found: tuple[Ints, UInt64s] = self.cache[direction, run, "records"].count(take(queries, rows))
        return found

    def contain_truth(self, run: str, truth: Ints) -> Any:
        """Return True for each published record i if original truth[i] is one of its candidates."""
        ours, theirs = take(self.runs[run][0], truth), self.runs[run][1]
        overlap = (ours.low <= theirs.high) & (theirs.low <= ours.high)
        return (ours.blocks == theirs.blocks) & overlap.all(axis=1)

    def take(self, rows: Ints) -> Facts:
        """Return the facts about some records, among these records only."""
        runs = {run: (take(a, rows), take(b, rows)) for run, (a, b) in self.runs.items()}
        blocks = None if self.blocks is None else self.blocks[rows]
        places = None if self.places is None else (self.places[0][rows], self.places[1][rows])
        return Facts(runs, self.cases, self.failed, blocks, places, run_again=self.run_again)


def _excludes(side: Side) -> bool:
    """Return True if the facts about the records of a file exclude some record of the other file."""
    return bool(side.low.shape[1]) or bool((side.blocks != side.blocks[0]).any())


def facts_of(pair: Pair) -> Facts:
    """Return the facts of a pair of files, computed once; those of a stratum are a part of the file's."""

    def compute() -> Facts:
        """Return the facts of the pair."""
        if pair.whole is not None and pair.rows is not None:
            return facts_of(pair.whole).take(pair.rows)
        found = _Collection(pair).facts()
        return found if pair.sample is None or found.equalities() else _with_kept_originals(found, pair)

    found: Facts = cached_value(pair.cache, "facts", compute)
    return found


def _with_kept_originals(facts: Facts, pair: Pair) -> Facts:
    """Return the same facts with those about originals, and the trees of these, kept for other files."""
    ours, theirs = facts.runs[CERTAIN]
    ours, kept = keep_side(pair.original, ours)
    cache = {(TO_ORIGINAL, CERTAIN, "records"): cached_value(kept, "records", lambda: Records(ours))}
    return replace(facts, runs={**facts.runs, CERTAIN: (ours, theirs)}, cache=cache, kept=kept)


class _Collection:
    """Facts of a pair while they are collected: classes equal on both sides, and relations."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.labels: list[Ints] = []
        self.relations: list[Relation] = []
        self.failed: list[str] = []
        self.run_again = False

    def facts(self) -> Facts:
        """Return all facts of the pair."""
        columns = self.add_untouched()
        blocks = class_numbers(self.labels, self.pair.original.n) if self.labels else None
        places = self.add_cells()
        if self.pair.disclosure.paired:
            self.add_windows(blocks)
            self.add_bases()
            self.add_run_again()
        certain = self.sides()
        runs = {CERTAIN: certain}
        cases = {column.name: column.case for column in columns}
        return Facts(runs, cases, tuple(self.failed), blocks, places, run_again=self.run_again)

    def sides(self) -> Sides:
        """Return the facts collected so far about originals and about published records."""
        n = self.pair.original.n
        blocks = class_numbers(self.labels, n)
        used = [one for one in self.relations if one.excludes]
        ends = [np.ascontiguousarray(np.array(end).reshape(-1, n).T) for end in zip(*used, strict=True)]
        ends = ends or [np.empty((n, 0)) for _ in range(4)]
        return Side(blocks, ends[0], ends[1]), Side(blocks, ends[2], ends[3])

    def add_label(self, label: Ints) -> None:
        """Add classes that are equal for every true pair, unless all records are in one."""
        if (label != label[0]).any():
            self.labels.append(label - min(int(label.min()), 0))

    def add_stated(self, name: str, relations: Sequence[Relation], *, ruled: bool = False) -> None:
        """Add relations that the method states together; if a true pair breaks one, note their name.

        Of columns under edit rules (`ruled`) they are no facts, since repair may have moved the values.
        """
        if ruled:
            return
        if all(one.holds for one in relations):
            self.relations += relations
        else:
            self.failed.append(name)

    def add_untouched(self) -> list[UntouchedColumn]:
        """Add the known columns that were not masked; return them with their cases."""
        if self.pair.table is None:
            blocks = blocks_of_original(self.pair.original)
            self.labels += [] if blocks is None else [blocks]
            return []
        columns = untouched_of(self.pair)
        for column in columns:
            if column.case in "ab":
                self.add_label(column.published)
                x, y = marks_of(self.pair, column.name) if column.case == "a" else (None, None)
                if x is not None and y is not None and np.array_equal(x, y):
                    self.add_label(number_values(x))
            elif column.case == "c":
                published = np.where(column.published == -1, np.nan, column.published)
                self.relations.append(relation(column.original.astype(float), published))
        return columns

    def add_cells(self) -> tuple[Ints, Ints] | None:
        """Add places of missing cells and kept zeros; return classes of records by all their places."""
        pair = self.pair
        x, y = missing_places(pair)
        for j in pair.known_variables:
            label, relations = (None, []) if x is None or y is None else place_facts(x[:, j], y[:, j])
            if label is not None:
                self.add_label(label)
            self.relations += relations
            if pair.disclosure.keeps_zeros and pair.disclosure.paired:
                self.add_zeros(j, equal_places=not relations and (x is None or label is not None))
        if x is None or y is None:
            return None
        both = np.concatenate([x[:, pair.known_variables], y[:, pair.known_variables]])
        first, second = np.split(number_values(row_marks(both)), 2)
        return first, second

    def add_zeros(self, j: int, *, equal_places: bool) -> None:
        """Add what kept zeros of variable j tell."""
        pair = self.pair
        label, relations, broken = zero_facts(
            pair.original.values[:, j], pair.masked[:, j], equal_places=equal_places
        )
        if label is not None:
            self.add_label(label)
        self.relations += relations
        self.failed += [f"zeros of {pair.columns[j]} kept"] if broken else []

    def add_windows(self, blocks: Ints | None) -> None:
        """Add windows of ranks of the known variables, within strata that were masked separately."""
        pair = self.pair
        ruled = () if pair.rules is None else pair.rules.columns
        parts = [(rows, width, *self.tie_blocks(rows)) for rows, width in self.windows()]
        apart = len(parts) > 1 and not same_stratum_in_blocks(stratum_numbers(parts, pair.original.n), blocks)
        for j in pair.known_variables if parts else ():
            if all(w[j] >= len(rows) for rows, w, _, _ in parts):
                continue
            found = [(rows, window_relation(ours, theirs, j, w[j])) for rows, w, ours, theirs in parts]
            self.add_stated(
                f"window of {pair.columns[j]}",
                spread_over_strata(found, pair.original.n, apart=apart),
                ruled=pair.columns[j] in ruled,
            )

    def windows(self) -> Iterator[tuple[Any, Floats]]:
        """Yield rows and largest moves in ranks, one per variable, of the file or of each stratum."""
        pair = self.pair
        if not pair.strata:
            if pair.window is not None:
                yield np.arange(pair.original.n), np.broadcast_to(np.asarray(pair.window, float), pair.p)
            return
        for name, rows in pair.strata if self.knows_strata else ():
            width = pair.disclosure.width(name, pair.original.values[rows], pair.columns)
            if width is not None:
                yield rows, np.broadcast_to(np.asarray(width, float), pair.p)

    def tie_blocks(self, rows: Ints) -> tuple[TieBlocks, TieBlocks]:
        """Return the blocks of ties among some rows, in original and published file."""
        if not self.pair.strata:
            return tie_blocks_of_files(self.pair)
        files = (self.pair.original.values, self.pair.masked)
        ours, theirs = (tie_blocks_of_values(values[rows]) for values in files)
        return ours, theirs

    @property
    def knows_strata(self) -> bool:
        """True if the intruder knows the columns within whose values the file was masked."""
        return set(self.pair.disclosure.by) <= self.pair.known_names

    def add_bases(self) -> None:
        """Add the half bases of rounded variables, columns under edit rules excepted."""
        pair = self.pair
        half = np.full((pair.original.n, pair.p), np.nan)
        for name, rows in pair.strata or [("all", np.arange(pair.original.n))]:
            width = pair.disclosure.half_width(name, pair.original.values[rows], pair.columns)
            if width is None:
                return
            half[rows] = width
        ruled = () if pair.rules is None else pair.rules.columns
        for j in pair.known_variables:
            found = base_relation(pair.original.values[:, j], pair.masked[:, j], half[:, j])
            self.add_stated(f"base of {pair.columns[j]}", [found], ruled=pair.columns[j] in ruled)

    def add_run_again(self) -> None:
        """Add the classes of records published alike, if the intruder can run the method again."""
        pair, disclosure = self.pair, self.pair.disclosure
        reads = {*disclosure.by, *(() if disclosure.one_by_one else disclosure.columns or pair.columns)}
        if not (disclosure.deterministic and pair.known_variables and reads <= pair.known_names):
            return
        self.run_again = True
        cells = known_columns(pair, pair.masked)
        _, places = missing_places(pair)
        codes = [] if places is None else [np.ascontiguousarray(places[:, pair.known_variables])]
        self.add_label(number_values(row_marks(cells, *codes)))


def missing_places(pair: Pair) -> tuple[Ints | None, Ints | None]:
    """Return, for original and published cells, 0 if observed, else the number of the missing code.

    1 stands for a cell that is empty; codes that stand for missing cells (`na`) are numbered from 2, and
    what else a file shows in missing cells, such as NA or .a, after them.
    (None, None) where no cell is missing in either file.
    """

    def compute() -> tuple[Ints | None, Ints | None]:
        """Return the numbers of both files."""
        if pair.complete:
            return None, None
        ours = pair.original.missing.astype(np.int64)
        for j, codes in enumerate(pair.original.codes):
            ours[pair.original.missing[:, j], j] = _code_numbers(codes, pair.original.roles.na)
        theirs = pair.missing.astype(np.int64)
        if (
            pair.original.roles.na and pair.table is None and not pair.disclosure.alike
        ):  # masking puts the codes back, see `mask_table`
            theirs = np.where(pair.missing & (ours > 0), ours, theirs)
        elif pair.original.roles.na and pair.table is not None:
            raw = pair.table.floats(list(pair.columns))
            raw = raw if pair.places is None else raw[pair.places]
            theirs = np.where(pair.missing, _code_numbers(raw, pair.original.roles.na), 0)
        _add_marks(pair, ours, theirs)
        return ours, theirs

    found: tuple[Ints | None, Ints | None] = cached_value(pair.cache, "places", compute)
    return found


def _add_marks(pair: Pair, ours: Ints, theirs: Ints) -> None:
    """Number in place the plain missing cells of both files by the marks that the files show in them."""
    if pair.marks is None and pair.disclosure.alike:  # the published file shows none
        return
    first = len(pair.original.roles.na) + 2
    for j, name in enumerate(pair.columns):
        x, y = marks_of(pair, name)
        if x is None or y is None:
            continue
        words = np.unique(np.concatenate([[0], x, y]))
        for places, marks in ((ours[:, j], x), (theirs[:, j], y)):
            shown = (places == 1) & (marks > 0)
            places[shown] = first + np.searchsorted(words, marks[shown])


def _code_numbers(cells: Floats, codes: Sequence[float]) -> Ints:
    """Return 1 for each empty cell, and from 2 on the position of the code that stands in it."""
    found = np.ones(cells.shape, np.int64)
    for number, code in enumerate(codes):
        found[cells == code] = number + 2
    return found
