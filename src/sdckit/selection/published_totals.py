"""Exact totals as an intruder's knowledge: those from which the value of a record would follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.checks import FEWEST_REPORTED
from sdckit.core.classes import number_values
from sdckit.core.quoting import quoted
from sdckit.core.text import listed
from sdckit.metrics.guarded_figures import tells_a_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.estimates.parse import Request
    from sdckit.metrics.estimates.survey_file import SurveyFile
    from sdckit.rules.rules import Rules

REASON = f"fewer than {FEWEST_REPORTED} records contribute to it or one of them dominates it"
REMEDY = "take larger domains or drop this total"

Division = tuple[str, ...]  # the columns whose values form domains


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
    order = np.argsort(domains.numbers, kind="stable")
    edges = np.searchsorted(domains.numbers[order], np.arange(domains.count + 1))
    for label, first, last in zip(domains.labels, edges[:-1], edges[1:], strict=True):
        if _tells(file, parts, order[first:last]):
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
