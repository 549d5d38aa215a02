"""Facts: for each published record, the originals that it may stand for, from all that a release discloses.

`facts_of(pair)` returns the `Facts` of a pair of files, computed once. `facts.sides(direction)` are the facts
about targets and about queries as `kernels.candidates` takes them: a target is a candidate of a query if both
have the same block number and their intervals overlap in every dimension. `facts.candidates(direction)`
counts each query's candidates and marks equal sets of them by equal numbers. What is not certain is no fact:
the law of the masking (see `law`) takes it. `facts.cases` has the case of each known column that was not
masked (see `UntouchedColumn`); `facts.failed` names relations that the method states and a true pair breaks:
they are left out. `facts.tie_rows` is False where no fact excludes any pair. `facts.take(rows)` restricts
them to a stratum.

A relation is a fact only if it holds for every true pair, so the true record is always inside. Facts are:

- known columns published unmasked: the same cell, or the cell that it maps to;
- places of missing cells, per variable: missing stays missing, observed stays observed, or both;
- zeros that the method keeps;
- windows of ranks, per stratum where masked so, and the order that a method keeps (a window of 0);
- half a base around a rounded value;
- a deterministic method run again: records published alike in all known variables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core.cells import cell_numbers, class_numbers, converted_numbers, number_values, polars_column
from sdckit.core.checks import NotApplicable
from sdckit.kernels.candidates import Records, Side, count_candidates, take
from sdckit.risk import distances
from sdckit.risk.distances import TieBlocks, kept, once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sdckit.arrays import Bools, Floats, Ints, UInt64s
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair

TO_ORIGINAL, TO_MASKED = DIRECTIONS = ("masked_to_original", "original_to_masked")
ROUNDING = 1e-9  # relative widening of half a base, for what floating point makes of halves

Sides = tuple[Side, Side]  # of originals and of published records, or of targets and of queries


@dataclass(frozen=True)
class Facts:
    """Candidates of every record of a pair of files; see the module for its use."""

    ours: Side
    theirs: Side
    cases: Mapping[str, str] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    blocks: Ints | None = None  # classes by untouched columns of cases a and b; None without any
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    run_again: bool = False  # the method draws nothing, and the intruder knows all that it reads

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.ours.blocks)

    @property
    def tie_rows(self) -> bool:
        """True if some fact excludes some pair of records."""
        sides = (self.ours, self.theirs)
        return not self.equalities or any(bool((side.blocks != side.blocks[0]).any()) for side in sides)

    @property
    def equalities(self) -> bool:
        """True if all facts are equalities: no interval is needed."""
        return not self.ours.low.shape[1]

    def sides(self, direction: str = TO_ORIGINAL) -> Sides:
        """Return the facts about the targets and about the queries of an attack."""
        return (self.ours, self.theirs) if direction == TO_ORIGINAL else (self.theirs, self.ours)

    def candidates(self, direction: str, rows: Ints | None = None) -> tuple[Ints, UInt64s]:
        """Return each query's number of candidates, and a mark that is equal for equal sets of them.

        Of some rows only, marks are comparable within one answer.
        """
        few = rows is not None and 2 * len(rows) <= self.n
        if few and direction not in self.cache and not self.equalities:
            targets, queries = self.sides(direction)
            if (direction, "records") not in self.cache:
                self.cache[direction, "records"] = Records(targets)
            return self.cache[direction, "records"].count(take(queries, rows))  # type: ignore[arg-type]
        if direction not in self.cache:
            self.cache[direction] = count_by_kind(*self.sides(direction))
        counts, marks = self.cache[direction]
        return (counts, marks) if rows is None else (counts[rows], marks[rows])

    def take(self, rows: Ints) -> Facts:
        """Return the facts about some records, among these records only."""
        blocks = None if self.blocks is None else self.blocks[rows]
        ours, theirs = take(self.ours, rows), take(self.theirs, rows)
        return Facts(ours, theirs, self.cases, self.failed, blocks, run_again=self.run_again)


@once
def facts_of(pair: Pair) -> Facts:
    """Return the facts of a pair of files, computed once; those of a stratum are a part of the file's."""
    if pair.whole is not None and pair.rows is not None:
        return facts_of(pair.whole).take(pair.rows)
    return _Collection(pair).facts()


def require_tied_rows(
    pair: Pair, name: str, what: str = "nothing ties published rows to original ones"
) -> None:
    """Raise NotApplicable for a metric of rows where nothing ties published rows to original ones."""
    if not (pair.disclosure.paired or facts_of(pair).tie_rows):
        raise NotApplicable(f"{name} has no value where {what}; use a metric such as ks")


def fits(ours: Side, theirs: Side, i: Any = slice(None), u: Any = slice(None)) -> Bools:
    """Return True where the facts in two files agree: of the same records, or of the i-th with the u-th.

    Numbers of rows and of columns give a matrix.
    """
    found = np.asarray(ours.blocks[i] == theirs.blocks[u])
    for j in range(ours.low.shape[1]):
        found &= ours.low[i, j] <= theirs.high[u, j]
        found &= theirs.low[u, j] <= ours.high[i, j]
    return found


def count_by_kind(targets: Side, queries: Side) -> tuple[Ints, UInt64s]:
    """Return the number of candidates of each query and a mark of their set; equal queries are asked once."""
    if not targets.low.shape[1]:
        sizes = np.bincount(targets.blocks, minlength=int(queries.blocks.max()) + 1)
        return sizes[queries.blocks], distances.row_marks(queries.blocks)
    kinds = distances.RecordClasses(distances.row_marks(*queries))
    counts, marks = count_candidates(targets, take(queries, kinds.firsts))
    return counts[kinds.numbers], marks[kinds.numbers]


# --- relations -------------------------------------------------------------------------------------------


class Relation(NamedTuple):
    """Ends of the intervals of original and of published records, one number each per record.

    A published record may stand for an original one where the two overlap. A record that a relation says
    nothing of has the interval -inf to inf.
    """

    low: Floats
    high: Floats
    published_low: Floats
    published_high: Floats

    @property
    def holds(self) -> bool:
        """True if the intervals of every true pair overlap."""
        return bool(((self.low <= self.published_high) & (self.published_low <= self.high)).all())

    @property
    def excludes(self) -> bool:
        """True if some pair of records is excluded."""
        return bool(self.low.max() > self.published_high.min() or self.published_low.max() > self.high.min())


def relation(original: Floats, published: Floats) -> Relation:
    """Return the relation of equal numbers, NaN fitting everything."""
    sides, ends = (original, published), (-np.inf, np.inf)
    return Relation(*(np.where(np.isnan(values), end, values) for values in sides for end in ends))


def place_facts(x: Ints, y: Ints) -> tuple[Ints | None, list[Relation]]:
    """Return what the places of missing cells tell: a class equal in all true pairs, or relations.

    `x` and `y` are 0 where a cell is observed, and else the number of its missing code. Missing stays
    missing (suppression), observed stays observed (imputation), or both; with the codes if these stay, too.
    """
    if not (x.any() or y.any()):
        return None, []
    ways = ((x, y), ((x > 0).astype(np.int64), (y > 0).astype(np.int64)))  # with the codes, and without
    for ours, theirs in ways:
        if (ours == theirs).all():
            return theirs, []
    missing = [relation(np.where(a > 0, a, np.nan), b.astype(float)) for a, b in ways]
    observed = [relation(a.astype(float), np.where(b > 0, b, np.nan)) for a, b in ways]
    return None, [one for stays in (missing, observed) for one in [one for one in stays if one.holds][:1]]


def zero_relations(x: Floats, y: Floats) -> tuple[Relation, Relation, Relation]:
    """Return the relations that 0 stays 0, that only 0 becomes 0, and both in one; a missing cell fits."""
    ours = np.where(np.isnan(x), np.nan, x == 0)
    theirs = np.where(np.isnan(y), np.nan, y == 0)
    kept = relation(np.where(ours == 1, 1.0, np.nan), theirs)
    converse = relation(ours, np.where(theirs == 1, 1.0, np.nan))
    return kept, converse, relation(ours, theirs)


def base_relation(x: Floats, y: Floats, half: Floats) -> Relation:
    """Return the relation of a variable rounded to a base: at most half of it away; a missing cell fits."""
    low, high, first, last = relation(x, y)
    own, slack = ROUNDING * np.abs(np.nan_to_num(x)), half + ROUNDING * np.fmax(half, np.abs(y))
    return Relation(low - own, high + own, first - slack, last + slack)


def window_relation(ours: TieBlocks, theirs: TieBlocks, j: int, width: float) -> Relation:
    """Return the facts of a rank window: tied originals' ranks overlap the published ones, widened by it."""
    first, last = relation(ours.first[:, j], theirs.first[:, j]), relation(ours.last[:, j], theirs.last[:, j])
    return Relation(first.low, last.high, first.published_low - width, last.published_high + width)


def sides_of_relations(blocks: Ints, relations: Sequence[Relation]) -> Sides:
    """Return the facts about originals and published records: equal blocks, and these relations."""
    n = len(blocks)
    used = [one for one in relations if one.excludes]
    ends = [np.ascontiguousarray(np.array(end).reshape(-1, n).T) for end in zip(*used, strict=True)]
    ends = ends or [np.empty((n, 0)) for _ in range(4)]
    return Side(blocks, ends[0], ends[1]), Side(blocks, ends[2], ends[3])


# --- facts of a pair -------------------------------------------------------------------------------------


class _Collection:
    """Facts of a pair while they are collected: classes equal on both sides, and relations."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.labels: list[Ints] = []
        self.relations: list[Relation] = []
        self.failed: list[str] = []

    def facts(self) -> Facts:
        """Return all facts of the pair."""
        n, columns = self.pair.original.n, self.add_untouched()
        blocks = class_numbers(self.labels, n) if self.labels else None
        self.add_cells()
        run_again = False
        if self.pair.disclosure.paired:
            self.add_windows(blocks)
            self.add_bases()
            run_again = self.add_run_again()
        ours, theirs = sides_of_relations(class_numbers(self.labels, n), self.relations)
        cases = {column.name: column.case for column in columns}
        return Facts(ours, theirs, cases, tuple(self.failed), blocks, run_again=run_again)

    def add_label(self, label: Ints | None) -> None:
        """Add classes that are equal for every true pair, unless all records are in one."""
        if label is not None and (label != label[0]).any():
            self.labels.append(label - min(int(label.min()), 0))

    def add_stated(self, what: str, j: int, relations: Sequence[Relation]) -> None:
        """Add what the method states together about variable j; if a true pair breaks it, note its name.

        Of columns under edit rules it is no fact, since repair may have moved the values.
        """
        name, rules = self.pair.columns[j], self.pair.rules
        if rules is not None and name in rules.columns:
            return
        if all(one.holds for one in relations):
            self.relations += relations
        else:
            self.failed.append(f"{what} of {name}")

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

    def add_cells(self) -> None:
        """Add places of missing cells and kept zeros."""
        pair = self.pair
        x, y = missing_places(pair)
        for j in pair.known_variables:
            label, relations = (None, []) if x is None or y is None else place_facts(x[:, j], y[:, j])
            self.add_label(label)
            self.relations += relations
            if not (pair.disclosure.keeps_zeros and pair.disclosure.paired):
                continue
            kept, converse, both = zero_relations(pair.original.values[:, j], pair.masked[:, j])
            if not (kept.holds and converse.holds):
                self.relations += [one for one in (kept, converse) if one.holds]
                self.failed += [] if kept.holds else [f"zeros of {pair.columns[j]} kept"]
            elif not relations and (x is None or label is not None):  # missing cells fit missing ones only
                self.add_label(np.where(pair.missing[:, j], 2, pair.masked[:, j] == 0).astype(np.int64))
            else:
                self.relations.append(both)

    def add_windows(self, blocks: Ints | None) -> None:
        """Add windows of ranks of the known variables, within strata that were masked separately."""
        pair, n = self.pair, self.pair.original.n
        parts = list(self.windows())
        labels = np.zeros(n, np.int64)
        for number, (rows, *_) in enumerate(parts):
            labels[rows] = number
        blocks = np.zeros(n, np.int64) if blocks is None else blocks
        stratum = np.full(int(blocks.max()) + 1, -1)
        stratum[blocks] = labels
        # Pairs across strata are not judged, unless the blocks of other facts separate strata.
        apart = len(parts) > 1 and not (stratum[blocks] == labels).all()
        for j in pair.known_variables if parts else ():
            if all(width[j] >= len(rows) for rows, width, _, _ in parts):
                continue
            nothing = np.array([-np.inf, np.inf, -np.inf, np.inf])[:, None]
            found = np.tile(nothing, (len(parts) if apart else 1, 1, n))
            for number, (rows, width, ours, theirs) in enumerate(parts):
                found[number if apart else 0][:, rows] = window_relation(ours, theirs, j, width[j])
            self.add_stated("window", j, [Relation(*ends) for ends in found])

    def windows(self) -> Iterator[tuple[Ints, Floats, TieBlocks, TieBlocks]]:
        """Yield rows, largest moves in ranks by variable, and ranks, of the file or of each stratum."""
        pair = self.pair
        if not pair.strata:
            if pair.window is not None:
                width = np.broadcast_to(np.asarray(pair.window, float), pair.p)
                yield np.arange(pair.original.n), width, *distances.tie_blocks_of_files(pair)
        elif set(pair.disclosure.by) <= pair.known_names:  # else the intruder does not know the strata
            for name, rows in pair.strata:
                ours = pair.original.values[rows]
                found = pair.disclosure.width(name, ours, pair.columns)
                if found is not None:
                    width = np.broadcast_to(np.asarray(found, float), pair.p)
                    yield rows, width, distances.tie_blocks(ours), distances.tie_blocks(pair.masked[rows])

    def add_bases(self) -> None:
        """Add the half bases of rounded variables, columns under edit rules excepted."""
        pair = self.pair
        half = np.full((pair.original.n, pair.p), np.nan)
        for name, rows in pair.strata or [("all", np.arange(pair.original.n))]:
            width = pair.disclosure.half_width(name, pair.original.values[rows], pair.columns)
            if width is None:
                return
            half[rows] = width
        for j in pair.known_variables:
            found = base_relation(pair.original.values[:, j], pair.masked[:, j], half[:, j])
            self.add_stated("base", j, [found])

    def add_run_again(self) -> bool:
        """Add the classes of records published alike and return True, if the method can be run again."""
        pair, disclosure = self.pair, self.pair.disclosure
        reads = {*disclosure.by, *(() if disclosure.one_by_one else disclosure.columns or pair.columns)}
        if not (disclosure.deterministic and pair.known_variables and reads <= pair.known_names):
            return False
        _, places = missing_places(pair)
        codes = [] if places is None else [np.ascontiguousarray(places[:, pair.known_variables])]
        self.add_label(number_values(distances.row_marks(distances.known_columns(pair, pair.masked), *codes)))
        return True


@once
def missing_places(pair: Pair) -> tuple[Ints | None, Ints | None]:
    """Return, for original and published cells, 0 if observed, else the number of the missing code.

    1 stands for a cell that is empty; codes that stand for missing cells (`na`) are numbered from 2, and
    what else a file shows in missing cells, such as NA or .a, after them.
    (None, None) where no cell is missing in either file.
    """
    if pair.complete:
        return None, None
    original, na = pair.original, pair.original.roles.na
    ours, theirs = original.missing.astype(np.int64), pair.missing.astype(np.int64)
    for j, codes in enumerate(original.codes):
        ours[original.missing[:, j], j] = _code_numbers(codes, na)
    if na and pair.table is None and not pair.disclosure.alike:  # masking puts the codes back
        theirs = np.where(pair.missing & (ours > 0), ours, theirs)
    elif na and pair.table is not None:
        raw = pair.table.floats(list(pair.columns))
        raw = raw if pair.places is None else raw[pair.places]
        theirs = np.where(pair.missing, _code_numbers(raw, na), 0)
    if pair.marks is None and pair.disclosure.alike:  # the published file shows no marks
        return ours, theirs
    for j, name in enumerate(pair.columns):
        x, y = marks_of(pair, name)
        if x is None or y is None:
            continue
        words = np.unique(np.concatenate([[0], x, y]))
        for places, marks in ((ours[:, j], x), (theirs[:, j], y)):
            shown = (places == 1) & (marks > 0)
            places[shown] = len(na) + 2 + np.searchsorted(words, marks[shown])
    return ours, theirs


def _code_numbers(cells: Floats, codes: Sequence[float]) -> Ints:
    """Return 2 and up for the code that stands in each cell; 1 for any other cell."""
    found = np.ones(cells.shape, np.int64)
    for number, code in enumerate(codes):
        found[cells == code] = number + 2
    return found


# --- columns that were not masked ------------------------------------------------------------------------


class UntouchedColumn(NamedTuple):
    """A published column that was not masked: its case, and the number of each cell in both files.

    Numbers are positions among the sorted distinct cells of both files; -1 stands for a missing cell. Cells
    are compared after one conversion: 1, 1.0 and "1" are equal, dates and texts in ISO form are dates, all
    else is text. The case says how published cells follow from the original ones:

    a   equal in all records
    b   a function of the original, such as a recoding, bands or rounding
    c   equal or missing
    d   equal in at least half of the records: no fact, but likely
    e   none of these: no fact

    A missing cell is a value like any other in cases a, b and d. A one-to-one change of distinct cells that
    does not follow their order is a fresh numbering, which tells nothing (d or e).
    """

    name: str
    case: str
    original: Ints
    published: Ints


def column_case(x: Ints, y: Ints) -> str:
    """Return the case of a column, "a" to "e", from the numbers of its original and published cells."""
    same = x == y
    if same.all():
        return "a"
    image = np.empty(int(x.max()) + 2, np.int64)
    image[x + 1] = y
    if (image[x + 1] == y).all() and not is_renumbering(x, y):
        return "b"
    if (same | (y == -1)).all():
        return "c"
    return "d" if 2 * np.count_nonzero(same) >= len(same) else "e"


def is_renumbering(x: Ints, y: Ints) -> bool:
    """Return True if all cells of both columns are distinct and neither rise nor fall together."""
    if min(x.min(), y.min()) < 0 or np.bincount(x).max() > 1 or np.bincount(y).max() > 1:
        return False
    steps = np.diff(y[np.argsort(x)])
    return not ((steps > 0).all() or (steps < 0).all())


@once
def untouched_of(pair: Pair) -> list[UntouchedColumn]:
    """Return case and cells of the known columns that a masked table has unmasked, read once."""
    ours, theirs = pair.original.table, pair.table
    if ours is None or theirs is None or theirs.frame is None:
        return []
    found = []
    for name in untouched_names(pair.original, theirs.names, pair.disclosure.columns):
        x, y = polars_column(ours.column(name)), polars_column(aligned_column(pair, name))
        same = x.dtype == y.dtype and x.equals(y)
        before, after = converted_numbers(x) * 2 if same else converted_numbers(x, y)
        found.append(UntouchedColumn(name, "a" if same else column_case(before, after), before, after))
    return found


def aligned_column(pair: Pair, name: str) -> Any:
    """Return a column of the masked table, its cells in the order of the original records."""
    assert pair.table is not None  # noqa: S101 - callers have looked
    column = pair.table.column(name)
    return column if pair.places is None else column[pair.places.tolist()]


def marks_of(pair: Pair, name: str) -> tuple[Ints | None, Ints | None]:
    """Return what a column's missing cells show in both files, as numbers; None where they show nothing.

    A released file shows in a cell that is still missing what the original shows there.
    """
    ours = pair.original.kept.get("marks", {}).get(name)
    if pair.marks is None:
        return ours, ours
    theirs = pair.marks.get(name)
    if ours is None and theirs is None:
        return None, None
    none = np.zeros(pair.original.n, np.int64)
    theirs = none if theirs is None else theirs if pair.places is None else theirs[pair.places]
    return none if ours is None else ours, theirs


def published_classes(pair: Pair, cases: str = "abcde") -> Ints:
    """Return the class of each record by its cells in the known columns that are published unmasked.

    Columns of other `cases` are left out: those of d and e hold cells that are not the original ones.
    """
    if pair.whole is not None and pair.rows is not None:
        return published_classes(pair.whole, cases)[pair.rows]
    if pair.table is None:
        blocks = blocks_of_original(pair.original)
        return class_numbers([], pair.original.n) if blocks is None else blocks
    chosen = [column.published + 1 for column in untouched_of(pair) if column.case in cases]
    return class_numbers(chosen, pair.original.n)


def known_unmasked(pair: Pair) -> list[str]:
    """Return the names of the known columns that are published unmasked."""
    whole = pair.whole or pair
    names = whole.published
    return untouched_names(whole.original, names, whole.disclosure.columns)


def untouched_names(original: Original, published: Iterable[str], masked: Iterable[str] = ()) -> list[str]:
    """Return the published columns that the intruder knows and that no method changed."""
    others = {*original.columns, *masked}
    ours = () if original.table is None or original.table.frame is None else original.table.names
    return [n for n in original.roles.known_columns(published) if n not in others and n in ours]


@kept
def blocks_of_original(original: Original) -> Ints | None:
    """Return the class of each original by its known untouched columns, computed once; None without any.

    For releases that publish these columns as they are or recoded, as those of sweeps and searches do. The
    classes are kept where the table is not (`Original.without_table`).
    """
    names = [] if original.table is None else untouched_names(original, original.table.names)
    numbers = [cell_numbers(original.published_column(name)) for name in names]
    marks = original.kept.get("marks", {})
    numbers += [number_values(marks[n]) for n in names if n in marks and n not in original.recoded]
    classes = class_numbers(numbers, original.n)
    return classes if classes.any() else None


@kept
def unknown_of_original(original: Original) -> dict[str, Floats]:
    """Return the columns that he does not know, published unmasked, as numbers; kept without the table."""
    table, roles = original.table, original.roles
    published = [] if table is None else roles.published(table.names)
    others = {*original.columns, *roles.columns_with("unit"), *roles.known_columns(published)}
    return {n: column_numbers(original.published_column(n)) for n in published if n not in others}


def unmasked_unknown(pair: Pair) -> dict[str, Floats]:
    """Return the columns that he does not know, published unmasked, as numbers, NaN where missing."""
    found = unknown_of_original(pair.original)
    if pair.table is None:
        return found
    names = [name for name in found if name in pair.table.names]
    return {name: column_numbers(aligned_column(pair, name)) for name in names}


def hidden_columns(pair: Pair) -> dict[str, Ints]:
    """Return the original columns that are not published, each cell as a number, equal for equal cells."""
    return (
        hidden_of_original(pair.original) if pair.table is None else _hidden(pair.original, pair.table.names)
    )


@kept
def hidden_of_original(original: Original) -> dict[str, Ints]:
    """Return the columns that releases do not publish as numbers; kept without the table."""
    return _hidden(original, original.roles.published(original.table_names))


def _hidden(original: Original, published: Iterable[str]) -> dict[str, Ints]:
    """Return the columns that are neither published nor variables, if a cell repeats, as numbers."""
    table, others = original.table, {*published, *original.columns}
    if table is None:
        return {}
    found = {name: cell_numbers(table.column(name)) for name in table.names if name not in others}
    return {name: cells for name, cells in found.items() if np.bincount(cells).max() > 1}


def column_numbers(column: Any) -> Floats:
    """Return the numbers of a column, or those of its sorted texts; NaN where a cell is missing."""
    cells = polars_column(column)
    if cells.dtype.is_numeric():
        return cells.cast(float).fill_null(float("nan")).to_numpy()
    codes = converted_numbers(cells)[0]
    return np.where(codes == -1, np.nan, codes)


@kept
def units_of_original(original: Original) -> Ints | None:
    """Return the number of each record's unit, read once and kept without the table; None without units."""
    return original.units
