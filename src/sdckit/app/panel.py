"""What a click on the map shows: a setting, masked once as a release would be, in public figures alone."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sdckit.core import randomness, registry
from sdckit.core.registry import parameters_text, title_of
from sdckit.core.text import number
from sdckit.metrics.publishable import statistics_of
from sdckit.report import distributions, measures, signing
from sdckit.report.build import main_risk
from sdckit.report.estimates import EstimatesPart, estimates_part
from sdckit.report.measures import FAMILIES, metric_of
from sdckit.report.page import exposed_sentence, json_text, measured_headlines, page_environment
from sdckit.report.privacy import THRESHOLD, guarded_evaluation
from sdckit.report.signing import method_sentence, suppressed_cells
from sdckit.selection.limits import SAMPLED_FROM
from sdckit.selection.points import Conditions
from sdckit.selection.release import make_release, plan_of_search

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.app.job import OpenedJob
    from sdckit.arrays import Floats
    from sdckit.evaluation.result import Knowledge
    from sdckit.metrics.original import Original
    from sdckit.report.page import Headline
    from sdckit.selection.release import Release, ReleasePlan


FOLDERS = ("sdckit.app/templates", "sdckit.report")  # of templates
ONE_DRAW = (
    "These are figures of one table that was drawn with this setting. The map shows the median of several "
    "draws, and a release is drawn anew, so that their figures differ a little."
)
SAMPLED = "The map shows risks that are estimated on some of the records; these are measured on all of them."


class Chart(NamedTuple):
    """A chart as JSON for the browser and in words; without JSON, the words say why there is none."""

    title: str
    spec: str | None
    description: str

    @classmethod
    def of(cls, panel: distributions.Panel) -> Chart:
        """Return a chart of the report as the browser gets it."""
        return cls(panel.variable, None if panel.spec is None else json_text(panel.spec), panel.description)


@dataclass(frozen=True)
class PanelContent:
    """What the panel of a setting shows: texts, rows of tables and charts, as in the public report.

    `refusal` says why there is no figure; all that follows is then empty. `exposed` is a sentence on exposed
    records. `values` has the figures of the whole file by metric, None where one is withheld. `figures` has
    statistics and correlations before and after masking, `estimates` what may be told of declared estimates.
    """

    title: str
    sentence: str
    remarks: tuple[str, ...] = ()
    refusal: str = ""
    exposed: str = ""
    headlines: tuple[Headline, ...] = ()
    knowledge: Knowledge | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    families: tuple[dict[str, Any], ...] = ()
    heat: dict[str, Any] | None = None
    scenarios: tuple[dict[str, Any], ...] = ()
    attacks: tuple[dict[str, Any], ...] = ()
    at_risk: Chart | None = None
    distributions: tuple[Chart, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    estimates: EstimatesPart | None = None
    variables: int = 0
    notes: tuple[str, ...] = ()
    threshold: int = THRESHOLD

    def to_html(self) -> str:
        """Return the panel as a fragment of a page."""
        return page_environment(*FOLDERS).get_template("panel.html").render(panel=self)


def make_panel(
    opened: OpenedJob,
    original: Original,
    method: str,
    parameters: Mapping[str, Any],
    secret: bytes,
    edges: dict[str, Floats] | None = None,
) -> PanelContent:
    """Mask the data once with a setting, as a release would, measure it, and return what may be shown.

    Nothing is written, and no limit refuses the table. All that is random follows from the secret and the
    setting, so that the same click shows the same figures.

    Parameters
    ----------
    opened : OpenedJob
        The job, with its rules, limits, scenarios and rounding.
    original : Original
        Its data, prepared; what does not depend on the setting is kept there for the next call.
    method : str
        A name from `sdc.METHODS`.
    parameters : dict
        Parameters of the method, such as `{"k": 10}`.
    secret : bytes
        At least 32 secret bytes.
    edges : dict, optional
        The edges of histograms that other panels of the same data have, by variable, as their counts must
        not be compared with those between other edges; it gets the edges that are chosen here.

    Returns
    -------
    PanelContent
        Without figures, but with the reason, for data of so few records that any would disclose some.
    """
    record = registry.method_named(method)
    shown = parameters_text(parameters)
    title = f"{title_of(record.name)}{f', {shown}' if shown else ''}"
    if original.n < THRESHOLD:
        reason = f"the data have {original.n} records, and figures of fewer than {THRESHOLD} disclose records"
        return PanelContent(title, record.summary, refusal=reason)
    plan, minimise = plan_of_panel(opened, original, record.name, parameters)
    entropy = randomness.derived(randomness.checked_entropy(secret), f"panel of {plan}")
    with warnings.catch_warnings(action="ignore"):  # notes say the same, and they may end up in a log
        made: Release[Any] = make_release(replace(plan, limits={}), original, entropy=entropy)
    assert made.made_from is not None  # noqa: S101 - it was just made
    pair = made.made_from.pair
    remarks = (ONE_DRAW if record.random else "", SAMPLED if original.n > SAMPLED_FROM else "")
    evaluation = guarded_evaluation(made.evaluation)
    charts = distributions.distribution_panels(pair, {} if edges is None else edges)
    at_risk = distributions.risk_panel_of(evaluation)
    axes = [minimise, main_risk(plan.limits)]  # of the map
    return PanelContent(
        title,
        method_sentence(made.disclosure),
        remarks=tuple(filter(None, remarks)),
        exposed=exposed_sentence(evaluation, original.n),
        headlines=tuple(measured_headlines(evaluation, axes, plan.limits)),
        knowledge=evaluation.knowledge,
        values=dict(evaluation.summary.select("metric", "value").rows()),
        families=tuple(measures.metric_groups(evaluation)),
        heat=measures.heat_map(evaluation),
        scenarios=tuple(signing.scenario_rows(evaluation, plan.limits)),
        attacks=tuple(measures.attack_rows(evaluation)),
        at_risk=None if at_risk is None else Chart.of(at_risk),
        distributions=tuple(map(Chart.of, charts)),
        figures=signing.statistics_parts(statistics_of(pair), suppressed_cells(pair)),
        estimates=estimates_part(evaluation.estimates, private=False),
        variables=pair.p,
        notes=tuple(dict.fromkeys(evaluation.notes)),
    )


def plan_of_panel(
    opened: OpenedJob, original: Original, method: str, parameters: Mapping[str, Any]
) -> tuple[ReleasePlan, str]:
    """Return the plan by which a job would release a setting, with its limits, and the loss to keep small."""
    options = opened.search_options()
    names = ("rules", "ties", "missing", "decimals")
    conditions = Conditions(original, scenarios=opened.intruders(), **{name: options[name] for name in names})
    minimise = registry.current_name(options["minimise"])
    plan = plan_of_search(
        conditions,
        method,
        parameters,
        minimise=minimise,
        limits=opened.limits(),
        per_record=True,
        keep_order=opened.given.keep_order,
        numbered=opened.given.numbered,
    )
    return plan, minimise


NAMES = ("A", "B")


@dataclass(frozen=True)
class Comparison:
    """The panels of two settings, and the rows of the tables that compare them."""

    sides: tuple[tuple[str, PanelContent], ...]
    measures: tuple[dict[str, Any], ...] = ()
    figures: dict[str, Any] | None = None
    heat: dict[str, Any] | None = None

    @property
    def refusal(self) -> str:
        """Why there is no figure to compare; empty where there are figures."""
        return next((panel.refusal for _, panel in self.sides if panel.refusal), "")

    def to_html(self) -> str:
        """Return the comparison as a fragment of a page."""
        return page_environment(*FOLDERS).get_template("compare.html").render(comparison=self)


def compare_panels(first: PanelContent, second: PanelContent) -> Comparison:
    """Return two settings side by side; of data with too few records, only why nothing is shown."""
    sides = tuple(zip(NAMES, (first, second), strict=True))
    if first.refusal or second.refusal:
        return Comparison(sides)
    return Comparison(sides, _measure_groups(first, second), _figures(first, second), _heat(first, second))


def _measure_groups(first: PanelContent, second: PanelContent) -> tuple[dict[str, Any], ...]:
    """Return losses, then risks, each with the measures of both settings, their difference and the better."""
    titles: dict[str, dict[str, dict[str, str]]] = {family: {} for family in FAMILIES}
    for panel in (first, second):
        for group in panel.families:
            titles[group["family"]] |= {row["name"]: row for row in group["rows"]}
    return tuple(
        {
            "title": title,
            "rows": [
                {"name": name, "title": row["title"], "scale": row["scale"]}
                | _compared(name, first.values.get(name), second.values.get(name))
                for name, row in titles[family].items()
            ],
        }
        for family, title in FAMILIES.items()
        if titles[family]
    )


def _compared(name: str, one: float | None, other: float | None) -> dict[str, Any]:
    """Return two values of a metric as texts, their difference, and the name of the better; "-" for none."""
    texts = [number(one), number(other)]
    if one is None or other is None:
        return {"values": texts, "difference": "-", "better": "-"}
    metric = metric_of(name)
    best = 0.0 if metric is None else metric.best
    if texts[0] == texts[1]:
        return {"values": texts, "difference": "0", "better": "equal"}
    better = NAMES[abs(other - best) < abs(one - best)]
    return {"values": texts, "difference": number(other - one), "better": better}


def _figures(first: PanelContent, second: PanelContent) -> dict[str, Any]:
    """Return the statistics of the original and of both masked files, a line for each."""
    rows = []
    for one, other in zip(first.figures["statistics"], second.figures["statistics"], strict=True):
        before, after = one["lines"]
        masked = [line | {"file": name} for name, line in zip(NAMES, (after, other["lines"][1]), strict=True)]
        rows.append({"variable": one["variable"], "lines": [before, *masked]})
    return {"titles": first.figures["titles"], "statistics": rows}


def _heat(first: PanelContent, second: PanelContent) -> dict[str, Any] | None:
    """Return the losses of each variable, a line for each setting that has any; None without any."""
    found = {name: panel.heat for name, panel in zip(NAMES, (first, second), strict=True) if panel.heat}
    metrics = {one["full"]: one for heat in found.values() for one in heat["metrics"]}
    lines: dict[str | None, list[dict[str, Any]]] = {}  # None: the whole file, the first row
    for name, heat in found.items():
        for place, (variable, cells) in enumerate(heat["rows"]):
            line = {"setting": name, "cells": _aligned(heat, cells, metrics)}
            lines.setdefault(variable if place else None, []).append(line)
    if not found:
        return None
    return {
        "metrics": list(metrics.values()),
        "hidden": any(heat["hidden"] for heat in found.values()),
        "rows": list(lines.items()),
    }


def _aligned(heat: Mapping[str, Any], cells: list[Any], metrics: Mapping[str, Any]) -> list[Any]:
    """Return the cells of a variable in the order of these metrics, empty where one was not measured."""
    own = {one["full"]: cell for one, cell in zip(heat["metrics"], cells, strict=True)}
    return [own.get(full, {"text": "-", "shade": None}) for full in metrics]
