"""The facts: for each published record i, the originals F(i) that every relation of the release allows.

A relation is an n x n matrix of booleans: row i is a published record, column j an original one. It is a
fact only if it holds for all true pairs, that is on the whole diagonal.
"""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from datetime import date, datetime

import numpy as np

from intruder_release import known_columns, known_masked, known_untouched, strata


@dataclass
class Facts:
    """The candidates, how each untouched column was used, the equality blocks, and relations that failed."""

    certain: np.ndarray  # n x n: every fact holds
    doubtful: np.ndarray | None = None  # certain and all columns of case (d); None without such a column
    cases: dict = field(default_factory=dict)  # untouched column: letter of its case, "a" to "e"
    blocks: list = field(default_factory=list)  # one label per record: its cells under equality facts
    failed: list = field(default_factory=list)  # stated relations that some true pair breaks: not used


def facts(original, published, release):
    """From both tables with aligned rows and the release, the Facts that tie published to originals."""
    size = len(original[release.masked[0]])
    found = Facts(certain=np.ones((size, size), bool), blocks=[()] * size)
    for column in known_untouched(release):
        use_column(found, column, original[column], published[column])
    for column in known_masked(release):
        for relation in missing_relations(original[column], published[column]):
            use_if_true(found, relation)
    if not release.re_paired:
        for name, relation in stated_relations(original, published, release):
            use_if_true(found, relation, name)
    if found.doubtful is not None:
        found.doubtful &= found.certain
    return found


def use_if_true(found, relation, name=None):
    """Take a relation into the facts if it holds for all true pairs; else note its name, if it was stated."""
    if relation.diagonal().all():
        found.certain &= relation
    elif name is not None:
        found.failed.append(name)


def pairs(rows, columns, holds):
    """From n published and n original cells and a test of two, the n x n matrix of its answers."""
    answers = {row: [holds(row, column) for column in columns] for row in set(rows)}
    return np.array([answers[row] for row in rows])


# --- untouched columns -------------------------------------------------------------------------------------


def converted(cell):
    """From a cell, None, (0, number), (1, day) or (2, text), so that 1, 1.0 and "1" are equal."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, datetime):
        return (1, cell.isoformat()) if cell.time() != datetime.min.time() else (1, cell.date().isoformat())
    if isinstance(cell, date):
        return (1, cell.isoformat())
    return converted_text(cell) if isinstance(cell, str) else (0, float(cell))


def converted_text(text):
    """From a text, (0, number) or (1, day) if it reads as one, else (2, text)."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return (0, number)
    try:
        return (1, date.fromisoformat(text).isoformat())
    except ValueError:
        return (2, text)


def use_column(found, column, original, published):
    """Find the case (a) to (e) of an untouched column, and take what it says into the facts."""
    x, y = [converted(cell) for cell in original], [converted(cell) for cell in published]
    case, relation = column_case(x, y)
    found.cases[column] = case
    if case in "abc":
        found.certain &= relation
    if case in "ab":  # published cells are equal exactly for the originals that they allow
        found.blocks = [(*block, cell) for block, cell in zip(found.blocks, y, strict=True)]
    if case == "d":
        found.doubtful = relation if found.doubtful is None else found.doubtful & relation


def column_case(x, y):
    """From the converted original and published cells, the letter of the case and its relation (e: None)."""
    agree = [a == b for a, b in zip(x, y, strict=True)]
    if all(agree):
        return "a", pairs(y, x, lambda b, a: a == b)
    if is_function(x, y) and not only_renumbered(x, y):
        image = dict(zip(x, y, strict=True))
        return "b", pairs(y, x, lambda b, a: image[a] == b)
    if all(same or b is None for same, b in zip(agree, y, strict=True)):
        return "c", pairs(y, x, lambda b, a: b is None or a == b)
    if 2 * sum(agree) >= len(agree):
        return "d", pairs(y, x, lambda b, a: a == b)
    return "e", None


def is_function(x, y):
    """From two lists, whether equal cells of the first always stand beside equal cells of the second."""
    return len(set(x)) == len(set(zip(x, y, strict=True)))


def only_renumbered(x, y):
    """From two lists, whether both hold distinct cells only, in unrelated orders: fresh numbers."""
    if not len(set(x)) == len(set(y)) == len(x) or None in x or None in y:
        return False
    along = [b for _, b in sorted(zip(x, y, strict=True))]
    return along not in (sorted(y), sorted(y, reverse=True))


# --- places of missing cells -------------------------------------------------------------------------------


def number(cell):
    """From a cell of a masked column, its number, or None when it is missing or a code of a missing cell."""
    if cell is None or isinstance(cell, str) or math.isnan(cell):
        return None
    return float(cell)


def place(cell, coded):
    """From a cell of a masked column, "observed", "missing" or (coded) the code that stands there."""
    if number(cell) is not None:
        return "observed"
    return cell if coded and isinstance(cell, str) else "missing"


def missing_relations(original, published):
    """From a column of both files, the relations between places if cells were suppressed or imputed.

    Missing in both or in neither is both relations together; with codes they also compare the codes.
    """
    for coded in (False, True):
        x, y = [place(cell, coded) for cell in original], [place(cell, coded) for cell in published]
        yield pairs(y, x, lambda b, a: a in ("observed", b))  # missing stays missing: suppression
        yield pairs(y, x, lambda b, a: b in ("observed", a))  # observed stays observed: imputation


# --- what the method says of itself ------------------------------------------------------------------------


def stated_relations(original, published, release):
    """From both tables and the release, pairs of name and relation: zeros, windows, bases and the re-run."""
    for column in known_masked(release):
        x = [number(cell) for cell in original[column]]
        y = [number(cell) for cell in published[column]]
        if column in release.zeros:
            a, b = [not_zero(cell) for cell in x], [not_zero(cell) for cell in y]
            yield f"zeros of {column} kept", pairs(b, a, zero_stays)
            yield None, pairs(b, a, lambda b, a: zero_stays(a, b))  # the converse: rounding makes new zeros
        if column in release.base and column not in release.ruled:
            half = release.base[column] / 2
            yield f"base of {column}", pairs(y, x, lambda b, a, half=half: within(a, b, half))
        if column in window_columns(release):
            yield (
                f"window of {column}",
                window_relation(x, y, release.window.get(column, 0), strata(original, release)),
            )
    if can_run_again(release):
        yield "run again", run_again(published, known_masked(release))


def not_zero(cell):
    """From a number or None, False for 0, True for another number and None for a missing cell."""
    return None if cell is None else cell != 0


def zero_stays(b, a):
    """From answers of not_zero, whether an original 0 is published as 0 (or not at all)."""
    return a is not False or b is not True


def within(a, b, half):
    """From two cells, whether they are at most this far apart, up to floating point; a missing one fits."""
    return a is None or b is None or abs(a - b) <= half + 1e-9 * max(half, abs(a), abs(b))


def window_columns(release):
    """From a release, the columns that have a window of ranks which the intruder can use."""
    if not set(release.by) <= known_columns(release):
        return set()
    return {*release.window, *release.ordered} - set(release.ruled)


def tie_blocks(values):
    """From a list with None for missing, the first and last rank of each value's ties (None for missing)."""
    observed = sorted(value for value in values if value is not None)
    ends = [None if v is None else (bisect_left(observed, v), bisect_right(observed, v) - 1) for v in values]
    return np.array([(math.nan, math.nan) if end is None else end for end in ends], float)


def window_relation(x, y, window, labels):
    """From a column of both files, windows and strata, where ranks within the stratum are close enough."""
    size = len(x)
    moves = window if isinstance(window, list) else [window] * size
    relation = np.ones((size, size), bool)  # pairs across strata are left to the facts on the strata
    for label in set(labels):
        rows = [i for i in range(size) if labels[i] == label]
        before, after = tie_blocks([x[i] for i in rows]), tie_blocks([y[i] for i in rows])
        for (low, high), i in zip(after, rows, strict=True):
            apart = (before[:, 0] > high + moves[i]) | (before[:, 1] < low - moves[i])  # False where missing
            relation[i, rows] = ~apart
    return relation


def can_run_again(release):
    """From a release, whether the intruder knows all that the method read and the method drew nothing."""
    reads = set(release.by) if release.one_by_one else {*release.masked, *release.by}
    return not release.draws and reads <= known_columns(release) and bool(known_masked(release))


def run_again(published, columns):
    """From the published table, which records are published alike: the true originals of a re-run."""
    cells = [[(place(cell, coded=True), number(cell)) for cell in published[column]] for column in columns]
    rows = list(zip(*cells, strict=True))
    return pairs(rows, rows, lambda a, b: a == b)
