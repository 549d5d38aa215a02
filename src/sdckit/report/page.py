"""The page of a report."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sdckit.core.registry import shown_metrics
from sdckit.core.scenarios import default_note, exposed_of, meets_limit
from sdckit.core.text import as_sentence, number, printable, printable_content
from sdckit.report import distributions, measures, risk_map, signing
from sdckit.report.charts import bundle
from sdckit.report.estimates import estimates_part
from sdckit.report.measures import LEVELS, is_bounded, is_share, label, limit_text
from sdckit.report.privacy import THRESHOLD, guarded_evaluation, public_facts, require_enough_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import jinja2

    from sdckit.evaluation.result import Evaluation, Knowledge
    from sdckit.metrics.pair import Pair
    from sdckit.report.charts import Spec
    from sdckit.report.distributions import Panel
    from sdckit.report.risk_map import Points
    from sdckit.report.signing import Summary


@cache
def page_environment(*folders: str) -> jinja2.Environment:
    """Return the jinja2 environment of pages whose templates lie in these packages, the first one first.

    A folder of templates inside a package is named after a slash, as in "sdckit.app/templates".
    """
    import jinja2  # noqa: PLC0415 - slow to import, and only for pages

    places = [folder.partition("/") for folder in folders]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name, path or ".") for name, _, path in places]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
    )
    environment.filters |= {"number": number, "plain": measures.limit_text, "label": measures.label}
    return environment


def _shown(value: Any) -> Any:
    """Return a text without characters that turn it round or cannot be seen; all else as it is."""
    plain = isinstance(value, str) and not hasattr(value, "__html__")  # the page's own scripts are not names
    return printable(value, lines=True) if plain else value


def json_text(content: Any) -> str:
    """Return chart specifications as JSON that is safe inside a script element."""
    text = json.dumps(printable_content(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


Found = tuple[str, str, float | None, float | None]  # family, metric, value, and value by chance
MAIN = 2  # the first headlines, the main loss and the main risk


@dataclass(frozen=True)
class Headline:
    """One measured loss or risk, shown at the top of the page on a scale from 0 to 1."""

    family: str
    title: str
    value: float
    text: str
    meaning: str
    bounded: bool
    level: float | None
    limit: float | None
    note: str = ""  # says that the limit is a default
    assumes: str = ""  # what the intruder is assumed to know, for a risk

    @property
    def marks(self) -> str:
        """Text on the marks of the scale: the value expected by chance, and the limit, met or not met."""
        words = []
        if self.level is not None:
            words.append(f"{LEVELS[self.family]} {number(self.level)}")
        if self.limit is not None:
            words.append(f"limit {limit_text(self.limit)}{self.note}: {self.verdict}")
        return ", ".join(words)

    @property
    def verdict(self) -> str:
        """Whether the limit is met, judged as a release is; empty without a limit."""
        if self.limit is None:
            return ""
        return "met" if meets_limit(self.value, self.limit) else "not met"


def exposed_sentence(evaluation: Evaluation | None, n: int | None) -> str:
    """Return a sentence on the exposed records of a file of n records; empty where they were not measured."""
    found = None if evaluation is None else exposed_of(evaluation.parts)
    return "" if found is None else as_sentence(found.sentence(n))


def headlines(
    evaluation: Evaluation | None, points: Points | None, limits: Mapping[str, float]
) -> list[Headline]:
    """Return the headlines of a page: those of what was measured, or else of the chosen point of its map."""
    if evaluation is not None:
        axes = [points.loss, points.risk] if points else []
        return measured_headlines(evaluation, axes, limits)
    if points is None or points.chosen is None:
        return []
    chosen = points.chosen
    found: list[Found] = [
        ("loss", points.loss, chosen["loss"], points.random),
        ("risk", points.risk, chosen["risk"], None),
    ]
    return _headlines_of(found, limits)


def measured_headlines(
    evaluation: Evaluation, axes: Sequence[str], limits: Mapping[str, float]
) -> list[Headline]:
    """Return the main loss and risk, those of the axes if any, suppressed cells, uniques, what is limited."""
    rows = {row["metric"]: row for row in evaluation.summary.iter_rows(named=True)}
    names = _headline_metrics(rows, axes)
    gone = [metric.name for metric in shown_metrics("headline") if metric.needs == "places"]
    suppressed = [name for name in gone if name in rows and rows[name]["value"]]
    # Unique records only where some column is known and published unmasked.
    uniques = ["uniques"] if evaluation.parts.get("uniques", {}).get("floor", 0.0) > 0 else []
    others = [*suppressed, *limits, *uniques]
    names += dict.fromkeys(name for name in others if name in rows and name not in names)
    found = [(rows[name]["family"], name, rows[name]["value"], rows[name]["random"]) for name in names]
    return _headlines_of(found, limits, evaluation)


def _headlines_of(
    found: Iterable[Found], limits: Mapping[str, float], evaluation: Evaluation | None = None
) -> list[Headline]:
    """Return the headlines of values of metrics; the evaluation, if any, has the sentences beside them."""
    meaning = evaluation.meaning if evaluation is not None else {}
    knowledge = evaluation.knowledge if evaluation is not None else None
    assumes = as_sentence(knowledge.sentence) if knowledge is not None else ""
    return [
        Headline(
            family=family,
            title=label(name),
            value=value,
            text=number(value),
            meaning=as_sentence(meaning.get(name, "")),
            bounded=is_bounded(name) or 0 <= value <= 1,
            level=level,
            limit=limits.get(name),
            note=default_note(name, limits),
            assumes=assumes if family == "risk" and place < MAIN else "",
        )
        for place, (family, name, value, level) in enumerate(found)
        if value is not None
    ]


def _headline_metrics(rows: Mapping[str, Any], axes: Sequence[str]) -> list[str]:
    """Return the names of the loss and risk on the chart's axes, else of the first measured from 0 to 1."""
    names = []
    for family in ("loss", "risk"):
        own = [name for name, row in rows.items() if row["family"] == family and row["value"] is not None]
        first = [*axes, *(["linkage"] if family == "risk" else []), *filter(is_share, own), *own]
        names += [name for name in first if name in own][:1]
    return names


NO_FACTS: Mapping[str, str] = MappingProxyType({})
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
    facts: Mapping[str, str] = NO_FACTS,
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
            exposed=exposed_sentence(evaluation, None if pair is None else pair.original.n),
            headlines=headlines(evaluation, points, limits),
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
