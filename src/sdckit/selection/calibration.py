"""`calibrate`: a masked file changed as little as possible so that declared totals of the original hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import notebook, randomness
from sdckit.core.decimals import usual_step
from sdckit.core.quoting import quoted
from sdckit.core.table import Table, decimals_of, names_of
from sdckit.core.text import plural
from sdckit.masking.mask_table import warn_of_codes_hit
from sdckit.metrics.estimates.measuring import require_readable
from sdckit.metrics.estimates.parse import parse_estimates
from sdckit.metrics.estimates.survey_file import survey_files
from sdckit.rules.calibration import Problem, Totals, calibrated, exact_total
from sdckit.rules.rules import Rules, asks_to_discover, named_columns, rules_of
from sdckit.selection.published_totals import require_safe

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.estimates.parse import Request
    from sdckit.metrics.estimates.survey_file import SurveyFile
    from sdckit.rules.calibration import Calibrated


@dataclass(frozen=True)
class Calibration:
    """A calibrated file, its totals before and after, and notes on the change.

    Attributes
    ----------
    data
        The masked table with changed cells, of the type of the masked one.
    table
        A row for each total and domain: `estimate`, `domain`, `original`, `masked` (before calibration),
        `calibrated` and `missed` (calibrated minus original, computed without rounding).
    notes
        Sentences on how many cells changed, by how much, and which totals are missed.
    """

    data: Any
    table: pl.DataFrame
    notes: tuple[str, ...]

    def _repr_html_(self) -> str:
        """Return totals and notes, for notebooks; `data` shows itself."""
        return notebook.block(notebook.frame_table(self.table), notebook.paragraphs(self.notes))


def calibrate(
    original: Any,
    masked: Any,
    totals: str | Iterable[str],
    *,
    weights: Any = None,
    by: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    rules: Any = None,
    unit: str | None = None,
    na: Any = None,
    rng: Any = None,
) -> Calibration:
    """Change a masked file as little as possible so that declared totals are those of the original.

    Totals that are held exactly are known exactly: they are refused where fewer than ten records contribute
    or one dominates, and the calibrated file, not the masked one, is what must be evaluated.

    Parameters
    ----------
    original, masked : table
        pandas, polars or pyarrow; `original` may be prepared. Rows need not be in the same order.
    totals : str or list of str
        Such as `total(turnover) by sector`, as `estimates` takes them.
    weights : str or array, optional
        Survey weights: a column of both files, or one number per record in the order of both.
    by : str or list of str, optional
        Columns whose values form the domains of totals without a `by` of their own.
    columns : str or list of str, optional
        The masked columns, which may change; by default those with totals and those in rules.
    rules : optional
        Edit rules that hold in the masked file and shall hold in the calibrated one, as `mask` takes them.
    unit : str, optional
        Column of units with several records, such as firms or households: ten of them must contribute to a
        total, and none may dominate it.
    na : number or list of numbers, optional
        Values that stand for a missing cell. Missing cells stay missing.
    rng : int or numpy.random.Generator, optional
        Decides which of equally near cells are rounded up.

    Returns
    -------
    Calibration
        With `data`, `table` and `notes`.

    Notes
    -----
    The sum over cells of weight * change² / (|value| * mean |value| of the column) is least: without limits,
    all cells of a domain are multiplied by one factor. Cells of 0 stay 0, no cell changes its sign or leaves
    the range of its masked column, and edit rules hold; columns that share a rule are calibrated together.
    Cells are then rounded to the grid of the masked column (its decimals, or the usual step of the original
    column where all masked cells share it), each to a neighbour. Totals without weights hold to the last
    digit of the grid; a total with weights, or one that is no multiple of the step, cannot always be met, and
    `missed` says by how much it is not.

    References
    ----------
    Deville & Särndal 1992, Calibration estimators in survey sampling, JASA 87.

    Examples
    --------
    >>> import sdckit as sdc
    >>> original = sdc.load_sample()
    >>> masked = sdc.mask(original, "mdav", k=10, key="firm", weights="weight", decimals="original")
    >>> found = sdc.calibrate(original, masked, "total(turnover)", rng=1)
    >>> found.table["missed"].to_list()
    [0.0]
    """
    requests = parse_totals(totals, tuple(names_of(by)))
    ours, (theirs,) = survey_files(original, [masked], weights=weights, strata=None, unit=unit, na=na)
    task = CalibrationTask(ours, requests, rules, None if columns is None else names_of(columns))
    return task.calibrated(theirs, randomness.generator(rng))


def parse_totals(texts: str | Iterable[str], by: tuple[str, ...] = ()) -> list[Request]:
    """Return the totals in one text or several; raise ValueError for an estimate of another kind."""
    requests = parse_estimates(texts, by)
    for one in requests:
        if one.kind != "total":
            raise ValueError(
                f"{one.text!r} is no total; calibrate takes totals such as total(turnover) by sector"
            )
    return requests


class CalibrationTask:
    """An original with declared totals and edit rules, all checked, to which masked files are calibrated.

    `columns` are the masked columns, which may change; None for all that have totals or share rules with
    those.
    """

    def __init__(
        self, original: SurveyFile, requests: Sequence[Request], rules: Any, columns: Sequence[str] | None
    ) -> None:
        self.original = original
        self.requests = requests
        require_readable(original, requests)
        self.rules: Rules | None = _read_rules(rules, original, requests)
        named = dict.fromkeys(one.columns[0] for one in requests)
        self.names: tuple[str, ...] = tuple(
            {**named, **dict.fromkeys(() if self.rules is None else self.rules.columns)}
        )
        self.masked: tuple[str, ...] = self.names if columns is None else tuple(columns)
        for name in named:
            if name not in self.masked:
                raise ValueError(
                    f"column {name!r} has a declared total and is not masked; mask it or drop the total"
                )
        require_safe(original, requests, self.rules, self.masked)

    def calibrated(self, masked: SurveyFile, rng: np.random.Generator) -> Calibration:
        """Return a masked file with the least change that makes the totals hold."""
        masked.require(self.names)
        require_readable(masked, self.requests)
        problem = self._problem(masked)
        found = calibrated(problem, rng)
        notes = tuple(_notes(problem, found))
        return Calibration(self._written(masked, problem, found), _table(problem, found), notes)

    def _problem(self, masked: SurveyFile) -> Problem:
        """Return what is to be calibrated."""
        values = np.column_stack([masked.numbers(name) for name in self.names])
        weights = np.ones(masked.n) if masked.weights is None else masked.weights
        free = np.array([name in self.masked for name in self.names])
        totals = tuple(self._totals(masked, one) for one in self.requests)
        before = {name: self.original.numbers(name) for name in self.names}
        return Problem(
            self.names,
            np.asfortranarray(values),
            weights,
            totals,
            self.rules,
            free,
            usual={name: usual_step(column) for name, column in before.items()},
            decimals={name: decimals_of(column) for name, column in before.items()},
        )

    def _totals(self, masked: SurveyFile, request: Request) -> Totals:
        """Return the original's totals for the domains of the masked file, which must be the same."""
        ours, theirs = self.original.domains(request.by), masked.domains(request.by)
        for label in set(ours.labels) ^ set(theirs.labels):
            which = "masked" if label in ours.labels else "original"
            raise ValueError(
                f"{request.text}: the {which} data have no domain {quoted(label)}; "
                "recode both files alike or drop this total"
            )
        places = np.array([*(ours.labels.index(label) for label in theirs.labels), -1])
        column = self.original.numbers(request.columns[0])
        weights = np.ones(self.original.n) if self.original.weights is None else self.original.weights
        empty = Totals(request.text, 0, ours.numbers, ours.labels, ())
        targets = [exact_total(column[rows], weights[rows]) for rows in empty.rows_of_domains()]
        place = self.names.index(request.columns[0])
        return Totals(request.text, place, places[theirs.numbers], ours.labels, targets)

    def _written(self, masked: SurveyFile, problem: Problem, found: Calibrated) -> Any:
        """Return the masked table with the calibrated cells, codes of missing cells as they were."""
        table: Table = masked.table
        codes = np.isin(found.values, masked.options.na)
        warn_of_codes_hit(int(codes.sum()))
        names = [name for name in self.names if name in self.masked]
        places = [self.names.index(name) for name in names]
        cells = found.values[:, places]
        cells = np.where(np.isnan(cells), table.floats(names), cells)
        decimals = {
            name: step.decimals
            for name, place in zip(names, places, strict=True)
            if (step := problem.steps[place]) is not None
        }
        return table.with_values(names, cells, decimals=decimals)


def _read_rules(given: Any, file: SurveyFile, requests: Sequence[Request]) -> Rules | None:
    """Return the edit rules that connect columns with totals to others, or bound them; None without any."""
    if given is None:
        return None
    texts = given if isinstance(given, (list, tuple)) else [given]
    names = (
        file.table.numeric_names if any(map(asks_to_discover, texts)) else named_columns(given, file.table)
    )
    wanted = {one.columns[0] for one in requests}
    names = [name for name in file.table.names if name in {*names, *wanted}]
    values = np.column_stack([file.numbers(name) for name in names])
    found = rules_of(given, names, values)
    if found is None:
        return None
    while True:  # columns that share a rule with one that is calibrated are calibrated, too
        more = {name for rule in found.rules if wanted & set(rule.columns) for name in rule.columns}
        if more <= wanted:
            break
        wanted |= more
    return found.within(sorted(wanted))


def _table(problem: Problem, found: Calibrated) -> pl.DataFrame:
    """Return the totals of the original, of the masked file and after calibration."""
    rows = []
    for one, misses in zip(problem.totals, found.misses, strict=True):
        for domain, members in enumerate(one.rows_of_domains()):
            target, missed = one.targets[domain], misses[domain]
            before = exact_total(problem.values[members, one.column], problem.weights[members])
            figures = (float(target), float(before), float(target + missed), float(missed))
            rows.append((one.text, one.labels[domain], *figures))
    names = ("estimate", "domain", "original", "masked", "calibrated", "missed")
    kinds = [pl.String, pl.String, *([pl.Float64] * 4)]
    return pl.DataFrame(rows, dict(zip(names, kinds, strict=True)), orient="row")


def _notes(problem: Problem, found: Calibrated) -> list[str]:
    """Return sentences on the changed cells and on the totals that are missed."""
    texts = "; ".join(one.text for one in problem.totals)
    before, after = problem.values[:, problem.free], found.values[:, problem.free]
    seen, moved = ~np.isnan(before), (before != after) & ~np.isnan(before)
    notes = [f"declared totals hold ({texts}): {moved.sum()} of {seen.sum()} masked cells were changed"]
    if moved.any():
        notes[0] += f", by {_usual_change(before[moved], after[moved]):.2g} % in the median"
    missed = [
        abs(miss)
        for one, misses in zip(problem.totals, found.misses, strict=True)
        for miss in misses
        if miss and problem.steps[one.column] is not None  # else by the rounding of floats
    ]
    if missed:
        notes.append(
            f"{len(missed)} declared {plural(len(missed), 'total')} could not be met exactly on the grid; "
            f"the largest difference is {float(max(missed)):.3g}"
        )
    return notes


def _usual_change(before: Floats, after: Floats) -> float:
    """Return the median change of cells that are not 0, in percent of their size."""
    return float(np.median(np.abs(after - before) / np.abs(before)) * 100)
