"""The HTML page: template, embedded scripts, and a policy that lets nothing else run or load."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sdckit.core.text import number
from sdckit.report import distributions, headlines, measures, risk_map
from sdckit.report.privacy import THRESHOLD, public_facts, refuse_few, without_thin_losses
from sdckit.report.vega_bundle import bundle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import jinja2

    from sdckit.metrics.evaluation import Evaluation
    from sdckit.metrics.pair import Pair
    from sdckit.report.charts import Spec
    from sdckit.report.distributions import Panel
    from sdckit.report.risk_map import Points

NONE: Mapping[str, str] = MappingProxyType({})


def report(
    *,
    title: str,
    done: Sequence[str],
    points: Points | None = None,
    evaluation: Evaluation | None = None,
    pair: Pair | None = None,
    choice: Sequence[str] = (),
    notes: Sequence[str] = (),
    facts: Mapping[str, str] = NONE,
) -> str:
    """Write a report as one HTML page that needs no other file and no network.

    Whatever is not given does not appear; data of fewer than 10 records are refused. The page holds no
    original record, no smallest or largest original value, no bin with few records, no stratum and no
    seed; `sdckit.report.privacy` has all that looks at original records.

    Parameters
    ----------
    title : str
        The headline.
    done : list of str
        Sentences on what was done.
    points : Points, optional
        The risk-utility map.
    evaluation : Evaluation, optional
        Measures of the released file; with its `records`, also how many are at risk.
    pair : Pair, optional
        Original and released data, for the distributions of each variable.
    choice : list of str
        Sentences on the recommendation.
    notes : list of str
        What a reader must know beside the numbers; those of the evaluation come with it.
    facts : dict of str
        Versions and parameters, by name; a seed is left out.

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
    refuse_few(pair, evaluation)
    if evaluation is not None:
        evaluation = without_thin_losses(evaluation)
    specs: dict[str, Spec] = {}

    def placed(name: str, panel: Panel) -> dict[str, Any]:
        if panel.spec is not None:
            specs[name] = panel.spec
        return {"name": name if panel.spec is not None else None, "panel": panel}

    drawn = points if points is not None and points.drawn.height else None
    if drawn is not None:
        specs["map"] = risk_map.risk_map(drawn)
    risks = None
    if evaluation is not None and evaluation.records is not None and "linkage" in evaluation.records.columns:
        risks = placed("at-risk", distributions.at_risk(evaluation.records["linkage"].to_numpy()))
    variables = [] if pair is None else distributions.distributions(pair)
    own = evaluation.notes if evaluation is not None else ()
    style, script = _part("page.css").strip() + _shades(), _part("page.js").strip()
    return _template().render(
        title=title,
        done=done,
        choice=choice,
        headlines=headlines.headlines(evaluation, points),
        points=drawn,
        chosen=drawn and drawn.chosen,
        left_out=0 if points is None else points.table.height - points.drawn.height,
        groups=risk_map.groups(drawn) if drawn is not None else (),
        rows=risk_map.point_rows(drawn) if drawn is not None else (),
        other_limits={name: value for name, value in points.limits.items() if name != points.risk}
        if points is not None
        else {},
        families=measures.metric_groups(evaluation) if evaluation is not None else (),
        attacks=measures.attacks(evaluation) if evaluation is not None else (),
        heat=measures.heat_map(evaluation) if evaluation is not None else None,
        risks=risks,
        panels=[placed(f"variable-{place}", panel) for place, panel in enumerate(variables, 1)],
        threshold=THRESHOLD,
        notes=list(dict.fromkeys([*notes, *own])),
        facts=public_facts(facts),
        specs=_as_json(specs) if specs else None,
        style=style,
        script=script,
        bundle=bundle() if specs else None,
        policy=_policy(style, [script, bundle()] if specs else []),
    )


@cache
def _template() -> jinja2.Template:
    import jinja2  # noqa: PLC0415 - slow to import, and only for pages

    room = jinja2.Environment(
        loader=jinja2.PackageLoader("sdckit.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    room.filters |= {"number": number, "plain": measures.plain, "label": measures.label}
    return room.get_template("page.html")


@cache
def _part(name: str) -> str:
    return (resources.files("sdckit.report") / name).read_text(encoding="utf-8")


def _shades() -> str:
    """Return the heat map's colours, white to dark blue, with readable text colours."""
    rules = []
    for step in range(measures.SHADES + 1):
        share = step / measures.SHADES
        ends = zip((255, 255, 255), (8, 62, 110), strict=True)
        colour = "".join(f"{round(light + share * (dark - light)):02x}" for light, dark in ends)
        rules.append(f".s{step}{{background:#{colour};color:{'#fff' if share > 0.5 else '#222'}}}")
    return "\n" + "\n".join(rules)


def _as_json(specs: Mapping[str, Spec]) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(specs, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Return a content security policy that allows only this page's style and scripts, by hash."""
    run = " ".join(map(_hashed, scripts)) or "'none'"
    rules = ["default-src 'none'", f"script-src {run}", f"style-src {_hashed(style)}"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
