"""Estimates that the owner of a file declares: measured once in the original, and in each masked file."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core import checks, registry
from sdckit.core.table import Table
from sdckit.metrics.estimates.comparing import comparison_table, interval_overlap
from sdckit.metrics.estimates.domains import WHOLE
from sdckit.metrics.estimates.guards import Protection
from sdckit.metrics.estimates.measuring import ABSENT, measure, require_readable
from sdckit.metrics.estimates.models import Levels, levels_of, shared_levels
from sdckit.metrics.estimates.parse import parse_estimates
from sdckit.metrics.estimates.result import Estimates
from sdckit.metrics.estimates.survey_file import Options, SurveyFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.core.registry import Metric
    from sdckit.kernels.jit import Ints
    from sdckit.metrics.estimates.guards import Guards
    from sdckit.metrics.estimates.measuring import Rows
    from sdckit.metrics.estimates.parse import Request
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.rules.rules import Rules

KEPT = "estimates"  # under this name, prepared data and pairs keep what was measured


class Declared:
    """Declared estimates with their values in the original.

    Columns that are recoded are taken as they are published, in the original as well: users can ask about
    age groups only, if these are what they get.
    """

    def __init__(self, requests: Sequence[Request], file: SurveyFile) -> None:
        self.requests = requests
        self.file = file
        self.levels: Levels = levels_of(file, requests)
        self.rows: Rows = measure(file, requests, self.levels)
        self._protections: dict[tuple[tuple[str, ...], ...], Protection] = {}

    def rows_of(self, file: SurveyFile) -> Rows:
        """Return the estimates of a masked file."""
        require_readable(file, self.requests)
        return measure(file, self.requests, shared_levels(self.levels, levels_of(file, self.requests)))

    def overlaps(self, masked: Rows) -> dict[tuple[str, str], float]:
        """Return the overlap of the intervals of each estimate that has one in the original."""
        found = {key: interval_overlap(ours, masked.get(key, ABSENT)) for key, ours in self.rows.items()}
        return {key: value for key, value in found.items() if not np.isnan(value)}

    def comparison(self, masked: Rows, guards: Guards, *, computable: bool, kind: str) -> Estimates:
        """Return the exact figures of both files, which are for the owner alone."""
        return Estimates(comparison_table(self.rows, masked), guards, computable, kind)

    @property
    def beside(self) -> set[str]:
        """Columns of weights and units."""
        return {name for name in (self.file.options.weights, self.file.options.unit) if name is not None}

    def protection(self, rules: Rules | None) -> Protection:
        """Return what guards the estimates in public, found once for the columns that rules tie."""
        sums = () if rules is None else tuple(rule.columns for rule in rules.rules if rule.equality)
        if sums not in self._protections:
            found = Protection(self.file, self.requests, self.levels, self.rows, sums)
            self._protections[sums] = found
        return self._protections[sums]

    def may_publish_mean(self, rules: Rules | None) -> bool:
        """Return True if the mean loss is one of enough estimates of which the original withholds none."""
        count = sum(not np.isnan(row.low + row.high) for row in self.rows.values())
        guards = self.protection(rules).first.values()
        return count >= checks.FEWEST_REPORTED and not any(guard.reason for guard in guards)

    def take(self, rows: Ints) -> Declared:
        """Return the same estimates of some of the records."""
        table = Table(self.file.table.take(self.file.table.names, rows))
        return Declared(self.requests, SurveyFile(table, "original", self.file.options))

    @cached_property
    def digest(self) -> bytes:
        """Digest of the estimates, of the sampling, and of the columns that they are computed from."""
        found = hashlib.sha256(repr(([one.text for one in self.requests], self.file.options)).encode())
        for name in self.file.table.names:
            if self.file.is_number(name):
                found.update(name.encode() + self.file.numbers(name).tobytes())
                continue
            domains = self.file.domains([name])
            found.update(repr((name, domains.labels)).encode() + domains.numbers.tobytes())
        return found.digest()


def declared_of(original: Original) -> Declared | None:
    """Return the declared estimates of prepared data, measured once; None without any.

    Raises ValueError or TypeError for an estimate that the data or their roles do not allow.
    """
    if original.roles.estimates and KEPT not in original.kept:
        original.kept[KEPT] = _declared(original)
    found: Declared | None = original.kept.get(KEPT)
    return found


def _declared(original: Original) -> Declared:
    """Return the declared estimates of prepared data, with a table of the columns that they need."""
    requests, roles = parse_estimates(original.roles.estimates), original.roles
    file = published_survey(original, requests)
    needed = [*_columns_of(requests), *roles.columns_with("weights"), *roles.columns_with("unit")]
    kept = Table(file.table.take(list(dict.fromkeys(needed))))
    if file.table.frame is None:
        kept.names = list(dict.fromkeys(needed))  # an array's columns are numbered anew
    return Declared(requests, SurveyFile(kept, "original", file.options))


def published_survey(
    original: Original,
    requests: Sequence[Request],
    *,
    all_need: str = "estimates need",
    each: str = "estimate {!r}",
) -> SurveyFile:
    """Return prepared data as a survey, with recoded columns as they are published.

    Raises ValueError or TypeError for an estimate that the data or their roles do not allow; `all_need` and
    `each`, with the text of one put in, are the words for what asks.
    """
    roles, table = original.roles, original.table
    if table is None:
        raise ValueError("the prepared data have no table to read columns from; prepare the table anew")
    if original.weights is not None and roles.weights is None:
        raise ValueError(
            f"{all_need} the weights in a column and they are given as numbers; add a column and name it"
        )
    options = survey_options(original)
    require_readable(SurveyFile(table, "original", options), requests)
    for one in requests:
        hidden = [name for name in _columns_of([one]) if name not in roles.published(table.names)]
        if hidden:
            raise ValueError(
                f"{each.format(one.text)} needs column {hidden[0]!r}, which is not published; publish it or "
                "leave the estimate out"
            )
    if original.recoded:
        table = Table(table.with_columns(original.recoded.values()))
    return SurveyFile(table, "original", options)


def survey_options(original: Original) -> Options:
    """Return weights, unit and missing codes of prepared data."""
    return Options(weights=original.roles.weights, unit=original.roles.unit, na=original.roles.na)


def _columns_of(requests: Iterable[Request]) -> list[str]:
    """Return the columns that estimates name, each once."""
    return list(dict.fromkeys(name for one in requests for name in (*one.columns, *one.by)))


def masked_rows(pair: Pair, metric: str) -> tuple[Declared, Rows]:
    """Return the declared estimates of a pair and their values in its masked file, measured once.

    Raises NotApplicable, in the name of the metric that asks, where none are declared.
    """
    if KEPT not in pair.cache:
        declared = declared_of(pair.original if pair.whole is None else pair.whole.original)
        if declared is None:
            raise checks.NotApplicable(
                f"{metric} needs estimates that users of the file compute; name them with estimates="
            )
        if pair.rows is not None:
            declared = _of_stratum(declared, pair.original, pair.rows)
        pair.cache[KEPT] = declared, declared.rows_of(_masked_file(declared, pair))
    found: tuple[Declared, Rows] = pair.cache[KEPT]
    return found


def _of_stratum(declared: Declared, stratum: Original, rows: Ints) -> Declared:
    """Return the declared estimates of a stratum in its rows, measured once for all masked files."""
    if KEPT not in stratum.kept:
        stratum.kept[KEPT] = declared.take(rows)
    found: Declared = stratum.kept[KEPT]
    return found


def comparison_of(pair: Pair, metrics: Iterable[Metric]) -> Estimates | None:
    """Return the figures of both files where one of the metrics is about declared estimates, else None."""
    named = [one.name for one in metrics if one.role == KEPT]
    if not named:
        return None
    declared, masked = masked_rows(pair, named[0])
    kept = set(pair.original.roles.published(declared.beside))
    computable = not declared.beside or (declared.beside == kept and _named_table(pair, kept) is not None)
    totals = pair.disclosure.calibrated
    exact = parse_estimates(totals) if totals else ()
    guards = declared.protection(pair.rules).guards(masked, exact)
    return declared.comparison(masked, guards, computable=computable, kind=pair.original.kind)


def withheld_losses(original: Original, rules: Rules | None) -> frozenset[str]:
    """Return the losses over declared estimates that a map of settings does not publish; none without any.

    The largest loss is an exact figure of one estimate, the mean one of several.
    """
    declared = declared_of(original)
    if declared is None:
        return frozenset()
    names = registry.estimate_losses()
    return names - {KEPT} if declared.may_publish_mean(rules) else names


def withheld_rows_of_losses(
    found: Estimates | None, metrics: Iterable[Metric], groups: Iterable[str]
) -> frozenset[tuple[str, str, str]]:
    """Return metric, stratum and variable of the losses over estimates of a file that are not published.

    The mean loss is published if there are enough estimates and none is withheld. What may be published of
    strata is not looked into.
    """
    if found is None:
        return frozenset()
    names = [one.name for one in metrics if one.role == KEPT]
    enough = found.table["overlap"].count() >= checks.FEWEST_REPORTED
    mean = enough and not found.some_withheld
    return frozenset(
        (name, place, WHOLE)
        for name in names
        for place in groups
        if not (mean and name == KEPT and place == WHOLE)
    )


def _named_table(pair: Pair, names: set[str]) -> Table | None:
    """Return the masked file if its columns have names, these among them; else None."""
    table = pair.table
    return table if table is not None and table.frame is not None and names <= set(table.names) else None


def _masked_file(declared: Declared, pair: Pair) -> SurveyFile:
    """Return the masked file as a survey.

    All its columns count where it is whole. In a sweep, in a stratum, and where weights or units are not
    published, masked values stand beside the original's other columns.
    """
    if pair.rows is None and (table := _named_table(pair, declared.beside)) is not None:
        return SurveyFile(table, "masked", declared.file.options)
    known = set(declared.file.table.names)
    columns = [(j, name) for j, name in enumerate(pair.columns) if name in known]
    return declared.file.replaced({name: np.ascontiguousarray(pair.masked[:, j]) for j, name in columns})
