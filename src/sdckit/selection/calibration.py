"""`calibrate`: a masked file changed as little as possible so that declared totals of the original hold.

Published totals are exact: those from which the value of a record would follow are refused. An intruder may
undo a calibration: he knows the totals, the method and, in the worst case, the originals, so that the factor
by which the cells of a domain were multiplied can be found by trying. Each risk of a calibrated release is
the larger one of the file itself and of the masked file before calibration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import notebook, randomness, registry
from sdckit.core.cells import number_values
from sdckit.core.checks import FEWEST_REPORTED, quoted
from sdckit.core.table import Table, decimals_of, names_of, usual_step
from sdckit.core.text import listed, plural
from sdckit.estimation.compare import published_survey, require_readable, survey_options
from sdckit.estimation.parse import parse_estimates
from sdckit.estimation.survey_file import SurveyFile, survey_files
from sdckit.evaluation.measure import NOT_UNDONE
from sdckit.masking.mask_table import warn_of_codes_hit, warn_of_split_units
from sdckit.metrics.publishable import tells_a_record
from sdckit.rules.calibrate import Problem, Totals, calibrated, exact_total, rows_by_domain
from sdckit.rules.rules import Rules, asks_to_discover, named_columns, rules_of

if TYPE_CHECKING:
    from sdckit.arrays import Floats, Ints
    from sdckit.estimation.parse import Request
    from sdckit.evaluation.result import Evaluation
    from sdckit.masking import Masking
    from sdckit.metrics.original import Original
    from sdckit.rules.calibrate import Calibrated

UNDONE = "if the calibration is undone: "
KNOWN = (
    "calibration publishes exact totals of the original: at least ten records contribute to each, and none "
    "of them dominates; risks count an intruder who undoes it"
)
REASON = f"fewer than {FEWEST_REPORTED} records contribute to it or one of them dominates it"
REMEDY = "take larger domains or drop this total"

Division = tuple[str, ...]  # the columns whose values form domains


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
        pandas, polars or pyarrow; `original` may be a `Microdata`. Rows need not be in the same order.
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
    >>> data = sdc.Microdata(original, key="firm", weights="weight")
    >>> masked = data.mask("mdav", k=10, decimals="original")
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
        rows_of_domains = rows_by_domain(ours.numbers, ours.count)
        targets = [exact_total(column[rows], weights[rows]) for rows in rows_of_domains]
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


# --- totals from which the value of a record would follow ---


def require_safe(
    file: SurveyFile, requests: Sequence[Request], rules: Rules | None, masked: Iterable[str]
) -> None:
    """Raise ValueError if published exact totals of the original would give the value of a record away.

    An intruder who knows the total of a domain and all records but one computes that one; the second largest
    contributor computes the largest one, nearly, where it dominates. So at least ten records must contribute
    to each total and none may dominate it (half of the sum, or the p % rule with p = 10). The same holds for
    what totals of one column over several divisions have in common, since differences of totals tell it,
    and for totals that follow from others by an edit rule. The records of a unit count as one.

    Parameters
    ----------
    file
        The original.
    requests
        The totals.
    rules
        Edit rules, which everybody knows, or None.
    masked
        The masked columns; the totals of others follow from the published file.
    """
    for one in requests:
        _require_safe_sums(file, _parts(file, one.columns[0]), one.by, one.text)
    for column in dict.fromkeys(one.columns[0] for one in requests):
        same = [one for one in requests if one.columns[0] == column]
        if len(same) > 1:
            _require_safe_together(file, column, same)
    if rules is None:
        return
    for by in dict.fromkeys(one.by for one in requests):
        known = {one.columns[0] for one in requests if one.by == by}
        _require_safe_rests(file, rules, by, known, set(masked))


def _parts(file: SurveyFile, column: str) -> Floats:
    """Return what each record contributes to the weighted total of a column; 0 for a missing cell."""
    cells = np.nan_to_num(file.numbers(column))
    return cells if file.weights is None else cells * file.weights


def _tells(file: SurveyFile, parts: Floats, rows: Ints) -> bool:
    """Return True if the sum of some records' contributions gives a record, or a unit of several, away."""
    chosen = parts[rows]
    if file.design.unit is not None:
        chosen = np.asarray(np.bincount(number_values(file.design.unit[rows]), chosen), np.float64)
    return tells_a_record(chosen)


def _require_safe_sums(file: SurveyFile, parts: Floats, by: Division, text: str) -> None:
    """Raise ValueError if the sum of the contributions in a domain gives a record away."""
    domains = file.domains(by)
    for label, rows in zip(domains.labels, rows_by_domain(domains.numbers, domains.count), strict=True):
        if _tells(file, parts, rows):
            where = f" in the domain {quoted(label)}" if by else ""
            raise ValueError(f"{text}{where} would give a record away: {REASON}; {REMEDY}")


def _require_safe_together(file: SurveyFile, column: str, requests: Sequence[Request]) -> None:
    """Raise ValueError if totals of one column tell, by differences, the total of records that they share."""
    divisions = np.stack([file.domains(one.by).numbers for one in requests])
    inside: Ints = np.flatnonzero((divisions >= 0).any(axis=0))
    _, classes = np.unique(divisions[:, inside], axis=1, return_inverse=True)
    parts = _parts(file, column)
    for number in range(int(classes.max(initial=-1)) + 1):
        if _tells(file, parts, inside[classes == number]):
            texts = listed([one.text for one in requests])
            raise ValueError(
                f"{texts} together would give a record away by their differences: fewer than "
                f"{FEWEST_REPORTED} records are in the same domains of all, or one of them dominates; "
                "drop one of these totals"
            )


def _require_safe_rests(
    file: SurveyFile, rules: Rules, by: Division, known: set[str], masked: set[str]
) -> None:
    """Raise ValueError if rules and the totals of the columns `known` tell an unsafe total of others.

    A column whose total follows is known then, so that more may follow from it by another rule.
    """
    left = [rule for rule in rules.rules if rule.equality]
    while True:
        useful = [rule for rule in left if known.intersection(rule.columns)]
        if not useful:
            return
        rule = min(useful, key=lambda one: len(masked.intersection(one.columns) - known))
        left.remove(rule)
        others = [name for name in rule.columns if name in masked and name not in known]
        if others:
            factors = dict(rule.terms)
            parts = sum((factors[name] * _parts(file, name) for name in others), np.zeros(file.n))
            named = f"the total of {listed(others)}, which follows by the rule {rule.text},"
            _require_safe_sums(file, parts, by, named)
        known = known.union(others) if len(others) == 1 else known


# --- releases ---


def calibration_task(texts: Sequence[str], rules: Any, original: Original) -> CalibrationTask:
    """Return how maskings of prepared data are calibrated; raise ValueError for totals that are not safe."""
    requests = parse_totals(texts)
    words = {"all_need": "calibration needs", "each": "a total to calibrate"}
    file = published_survey(original, requests, **words)
    return CalibrationTask(file, requests, rules, original.columns)


def calibrate_masking(
    made: Masking, task: CalibrationTask, original: Original, rng: np.random.Generator
) -> Masking:
    """Return a masking with its cells calibrated, and with the one before it."""
    masked = SurveyFile(Table(made.data), "masked", survey_options(original))
    found = task.calibrated(masked, rng)
    if made.disclosure.paired:
        warn_of_split_units(original, Table(found.data).floats(original.columns, original.roles.na))
    # Which cells are rounded up is random: the published cells do not follow from the originals.
    totals = tuple(one.text for one in task.requests)
    disclosure = replace(made.disclosure, deterministic=False, calibrated=totals)
    return replace(
        made,
        data=found.data,
        notes=[*made.notes, *found.notes, KNOWN],
        disclosure=disclosure,
        uncalibrated=made,
    )


def with_larger_risks(result: Evaluation, undone: Evaluation) -> Evaluation:
    """Return the evaluation of a calibrated file, with those risks that are larger before calibration.

    Parameters
    ----------
    result
        The evaluation of the calibrated file.
    undone
        The risks of the masked file before calibration.

    Returns
    -------
    Evaluation
        All figures of such a risk, by variable and stratum too, are those before calibration.
    """
    names = [name for name in undone.meaning if name in result.meaning and _is_larger(undone, result, name)]
    table, meaning, parts, records = result.table, dict(result.meaning), dict(result.parts), result.records
    for name in names:
        here = pl.col("metric") == name
        place = int(table.select(here.arg_max()).item())
        before, after = table[:place].filter(~here), table[place:].filter(~here)
        table = pl.concat([before, undone.table.filter(here), after])
        meaning[name] = UNDONE + undone.meaning[name]
        parts[name] = undone.parts.get(name, {})
        if records is not None and undone.records is not None and name in undone.records.columns:
            records = records.with_columns(undone.records[name])
    return replace(
        result,
        table=table,
        meaning=meaning,
        notes=tuple(note for note in result.notes if note != NOT_UNDONE),
        parts=parts,
        records=records,
        scenarios=_larger_scenarios(result.scenarios, undone.scenarios),
    )


def _is_larger(undone: Evaluation, result: Evaluation, name: str) -> bool:
    """Return True if a risk is larger before calibration than after it."""
    return registry.METRICS[name].family == "risk" and undone.upper_end(name) > result.upper_end(name)


def _larger_scenarios(result: pl.DataFrame | None, undone: pl.DataFrame | None) -> pl.DataFrame | None:
    """Return the risks in scenarios, each row from the table in which it is larger."""
    if result is None or undone is None:
        return result
    end = pl.coalesce("ci_high", "value").fill_null(-np.inf)
    larger = undone.select(end).to_series() > result.select(end).to_series()
    return pl.concat([(undone if one else result)[i : i + 1] for i, one in enumerate(larger)])
