"""The HTML page: template, embedded scripts, and a policy that lets nothing else run or load."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sdckit.core.scenarios import default_note
from sdckit.report import distributions, headlines, measures, risk_map, signing
from sdckit.report.environment import json_text, page_environment
from sdckit.report.estimates import estimates_part
from sdckit.report.privacy import THRESHOLD, guarded_evaluation, public_facts, require_enough_records
from sdckit.report.vega_bundle import bundle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.knowledge import Knowledge
    from sdckit.metrics.pair import Pair
    from sdckit.report.charts import Spec
    from sdckit.report.distributions import Panel
    from sdckit.report.risk_map import Points
    from sdckit.selection.summary import Summary

NONE: Mapping[str, str] = MappingProxyType({})
NO_LIMITS: Mapping[str, float] = MappingProxyType({})


def report(
    *,
    title: str,
    done: Sequence[str],
    points: Points | None = None,
    evaluation: Evaluation | None = None,
    pair: Pair | None = None,
    knowledge: Knowledge | None = None,
    choice: Sequence[str] = (),
    limits: Mapping[str, float] = NO_LIMITS,
    notes: Sequence[str] = (),
    facts: Mapping[str, str] = NONE,
    summary: Summary | None = None,
    job: str | None = None,
) -> str:
    """Return a report as one HTML page that needs no other file and no network.

    Sections whose argument is not given are left out; data of fewer than 10 records are refused. The page
    holds no original record, no smallest or largest original value, no bin with few records, no stratum
    and no seed; all code that reads original records is in `sdckit.report.privacy`.

    Parameters
    ----------
    title : str
        The headline.
    done : list of str
        Sentences on what was done.
    points : Points, optional
        The risk-utility map.
    evaluation : Evaluation, optional
        Measures of the released file; if it has `records`, a histogram of their risks is shown.
    pair : Pair, optional
        Original and released data, for the distributions of each variable.
    knowledge : Knowledge, optional
        What the intruder is assumed to know, and the columns published unmasked; that of the evaluation by
        default.
    choice : list of str
        Sentences on the recommendation.
    limits : dict of float
        Limits on risks and losses, of a page without a map; those of the map by default.
    notes : list of str
        Remarks on the numbers; those of the evaluation are added.
    facts : dict of str
        Versions and parameters, by name; a seed is left out.
    summary : Summary, optional
        What is signed: facts of the file, statistics before and after, rules, what was not measured. One with
        exact statistics makes a private report, which says so on every page.
    job : str, optional
        Text of a job file that repeats the work, without private paths.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from sdckit.report import report
    >>> page = report(title="A release", done=["Three files were compared."])
    >>> "Three files were compared." in page
    True
    """
    require_enough_records(pair, evaluation)
    if evaluation is not None:
        evaluation = guarded_evaluation(evaluation)
    private = summary is not None and summary.private
    specs: dict[str, Spec] = {}
    limits = limits if points is None else points.limits

    def add_spec(name: str, panel: Panel) -> dict[str, Any]:
        """Add a panel's chart to the page's specifications; return the panel and its chart's name or None."""
        if panel.spec is not None:
            specs[name] = panel.spec
        return {"name": name if panel.spec is not None else None, "panel": panel}

    drawn = points if points is not None and points.drawn.height else None
    if drawn is not None:
        specs["map"] = risk_map.risk_map(drawn)
    at_risk = None if evaluation is None else distributions.risk_panel_of(evaluation)
    risks = None if at_risk is None else add_spec("at-risk", at_risk)
    variables = [] if pair is None else distributions.distribution_panels(pair)
    own = evaluation.notes if evaluation is not None else ()
    style = _file_text("page.css").strip() + shade_styles() + signing.margin_style(title, summary)
    script = _file_text("page.js").strip()
    return (
        page_environment("sdckit.report")
        .get_template("page.html")
        .render(
            title=title,
            done=done,
            choice=choice,
            exposed=headlines.exposed_sentence(evaluation, None if pair is None else pair.original.n),
            headlines=headlines.headlines(evaluation, points, limits),
            estimates=None if evaluation is None else estimates_part(evaluation.estimates, private=private),
            knowledge=evaluation.knowledge if evaluation is not None and knowledge is None else knowledge,
            scenarios=_scenarios(evaluation, limits, summary),
            summary=summary,
            signed=_signed_parts(summary),
            job=job,
            **_map_parts(points, drawn),
            families=measures.metric_groups(evaluation) if evaluation is not None else (),
            attacks=measures.attack_rows(evaluation) if evaluation is not None else (),
            heat=measures.heat_map(evaluation) if evaluation is not None else None,
            risks=risks,
            panels=[add_spec(f"variable-{place}", panel) for place, panel in enumerate(variables, 1)],
            threshold=THRESHOLD,
            notes=list(dict.fromkeys([*notes, *own])),
            facts=public_facts(facts),
            specs=json_text(specs) if specs else None,
            style=style,
            script=script,
            bundle=bundle() if specs else None,
            policy=_policy(style, [script, bundle()] if specs else []),
        )
    )


def _map_parts(points: Points | None, drawn: Points | None) -> dict[str, Any]:
    """Return the parts of the map and its table; `drawn` are the points if any of them can be drawn."""
    limits = {} if points is None else points.limits
    return {
        "points": drawn,
        "chosen": drawn and drawn.chosen,
        "left_out": 0 if points is None else points.table.height - points.drawn.height,
        "groups": () if drawn is None else risk_map.map_groups(drawn),
        "rows": () if drawn is None else risk_map.point_rows(drawn),
        "left_marks": 0 if drawn is None else drawn.marked.count(False),
        "notes_on_limits": {name: default_note(name, limits) for name in limits},
        "other_limits": {
            name: limit for name, limit in limits.items() if points is None or name != points.risk
        },
    }


def _scenarios(
    evaluation: Evaluation | None, limits: Mapping[str, float], summary: Summary | None
) -> list[dict[str, Any]]:
    """Return the rows of the scenario table; that of the main intruder only where the page is signed."""
    if evaluation is None:
        return []
    if summary is not None:
        return signing.scenario_rows(evaluation, limits)
    return [] if evaluation.scenarios is None else evaluation.scenarios.rows(named=True)


def _signed_parts(summary: Summary | None) -> dict[str, Any]:
    """Return the texts of the parts that are signed; nothing without a summary."""
    if summary is None:
        return {}
    return {
        "facts": signing.fact_rows(summary),
        **signing.statistics_parts(summary.statistics, summary.suppressed),
        "mark": signing.MARK,
    }


@cache
def _file_text(name: str) -> str:
    """Return the text of a file in this package, such as page.css."""
    return (resources.files("sdckit.report") / name).read_text(encoding="utf-8")


def shade_styles() -> str:
    """Return the CSS rules of the heat map's colours, white to dark blue, with readable text colours."""
    rules = []
    for step in range(measures.SHADES + 1):
        share = step / measures.SHADES
        ends = zip((255, 255, 255), (8, 62, 110), strict=True)
        colour = "".join(f"{round(light + share * (dark - light)):02x}" for light, dark in ends)
        rules.append(f".s{step}{{background:#{colour};color:{'#fff' if share > 0.65 else '#000'}}}")
    return "\n" + "\n".join(rules)


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Return a content security policy that allows only this page's style and scripts, by their hashes."""
    run = " ".join(map(_csp_hash, scripts)) or "'none'"
    rules = ["default-src 'none'", f"script-src {run}", f"style-src {_csp_hash(style)}"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _csp_hash(text: str) -> str:
    """Return the SHA-256 hash of a script or style as a content security policy spells it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
