"""The screen of the goal: limits on risks, other intruders, estimates to protect, the loss, the methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit.app.job import open_job
from sdckit.app.screen import Form, Page, kept, shown
from sdckit.core.scenarios import DEFAULT_SURE, SURE, default_sure_limit
from sdckit.core.text import listed, shortened
from sdckit.estimation.compare import declared_of
from sdckit.masking import METHODS
from sdckit.metrics import METRICS
from sdckit.request.toml import Job
from sdckit.selection.limits import SUPPRESSED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.responses import Response

    from sdckit.app.session import OpenFile

EMPTY = 1  # scenarios without content that are shown
MOST = 20  # scenarios
ESTIMATES = "estimates"  # the key of a job, the role of losses, and the name of a field
LIMITED_LOSSES = (SUPPRESSED, "estimates_worst")


async def show(page: Page) -> Response:
    """Show the goal of the job, or what a refused form says."""
    file = page.file
    job, known = file.state.job, _published(file)
    if page.refused:
        job = with_goal(job, goal_of_form(page.form, known))
    search = job.get("search", {})
    tried = search.get("methods", [name for name, one in METHODS.items() if one.default])
    return page.render(
        "goal",
        risks=[
            _risk(name, metric.limit_words, search.get("max_risk", {}))
            for name, metric in METRICS.items()
            if metric.limit_words and _fits(name, job)
        ],
        known=listed(known) if len(known) <= 8 else f"all {len(known)} published columns",
        scenarios=_scenarios(job, known),
        losses=[
            (name, one.title)
            for name, one in METRICS.items()
            if one.family == "loss" and one.bounded and (one.paired or one.role == ESTIMATES)
        ],
        estimates="\n".join(job.get("measures", {}).get(ESTIMATES, ())),
        minimise=search.get("minimise", "brmae"),
        largest={name: search.get("max_loss", {}).get(name, "") for name in LIMITED_LOSSES},
        methods=[
            {"name": name, "title": one.title, "about": one.summary, "ticked": name in tried}
            for name, one in METHODS.items()
            if one.paired and not one.experimental
        ],
    )


def _fits(risk: str, job: Mapping[str, Any]) -> bool:
    """Return True for a risk that the roles of the job give a meaning to."""
    role = METRICS[risk].role
    return role in (None, "untouched") or bool(job.get("roles", {}).get(role))


def _risk(name: str, words: str, limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field of a limit on a risk."""
    limit = limits.get(name, "")
    metric, tenth_of = METRICS[name], "linkage" if name == SURE else ""
    return {
        "name": name,
        "title": metric.title,
        "about": metric.summary,
        "limit": limit,
        "words": words,
        "in_words": _in_words(words, limit, limits.get(tenth_of, "")),
        "tenth_of": tenth_of,
        "default": DEFAULT_SURE,
        "needed": name == "linkage",
    }


def _in_words(words: str, limit: Any, other: Any) -> str:
    """Return what a limit allows; one that is not set is a tenth of the other limit, if there is one."""
    if limit == "" and other == "":
        return "no limit"
    if limit == "" and _is_share(other):
        tenth = words.replace("#", f"{100 * default_sure_limit(float(other)):g}")
        return f"{DEFAULT_SURE}: {tenth}"
    return words.replace("#", f"{100 * float(limit):g}") if _is_share(limit) else "a number from 0 to 1"


def _is_share(limit: Any) -> bool:
    """Return True for a number, or a text that spells one, from 0 to 1."""
    try:
        return 0 <= float(limit) <= 1
    except ValueError:
        return False


def _published(file: OpenFile) -> list[str]:
    """Return the columns that are published and not unknown to the intruder of the roles."""
    roles = file.state.job.get("roles", {})
    gone = {name for role in ("key", "drop", "unknown", "confidential") for name in roles.get(role, ())}
    gone.add(roles.get("unit", ""))
    known = roles.get("known") or file.source.frame.columns
    return [name for name in known if name not in gone]


def _scenarios(job: Mapping[str, Any], known: Sequence[str]) -> list[dict[str, Any]]:
    """Return the fields of the intruders of a job, and of one more."""
    given = [*job.get("scenario", ()), *[{"name": "", "known": []}] * EMPTY]
    return [
        {
            "name": one["name"],
            "limit": one.get("max_risk", {}).get("linkage", ""),
            "columns": [(name, name in one["known"]) for name in known],
        }
        for one in given
    ]


def goal_of_form(form: Form, known: Sequence[str]) -> dict[str, Any]:
    """Return the sections on search, scenarios and estimates that a form gives, with unchecked values."""
    risks = {name: form.text(f"risk-{name}") for name in form.names_with("risk-")}
    limits = {name: _plain(text) for name, text in risks.items() if text}
    search: dict[str, Any] = {"max_risk": limits, "minimise": form.text("minimise") or "brmae"}
    losses = {name: _plain(form.text(name)) for name in LIMITED_LOSSES if form.text(name)}
    search |= {"max_loss": losses} if losses else {}
    methods = form.texts("method")
    if set(methods) != {name for name, one in METHODS.items() if one.default}:
        search["methods"] = methods
    scenarios = [one for place in range(MOST) if (one := _scenario(form, place, known))]
    estimates = form.lines(ESTIMATES)
    goal = {"search": search} | ({"scenario": scenarios} if scenarios else {})
    return goal | ({"measures": {ESTIMATES: list(dict.fromkeys(estimates))}} if estimates else {})


def _scenario(form: Form, place: int, known: Sequence[str]) -> dict[str, Any] | None:
    """Return one intruder of a form; None for one of whom nothing is said."""
    name, limit = form.text(f"scenario-{place}"), form.text(f"scenario-limit-{place}")
    ticked = [int(text) for text in form.texts(f"scenario-known-{place}") if text.isdecimal()]
    columns = [known[one] for one in ticked if one < len(known)]
    if not (name or columns or limit):
        return None
    return {"name": name, "known": columns, "max_risk": {"linkage": _plain(limit)}}


def require_complete(goal: Mapping[str, Any]) -> None:
    """Raise ValueError for a goal without a limit or a method, or an intruder described in part."""
    limits = goal["search"]["max_risk"]
    if not limits:
        raise ValueError("no risk has a limit; give one to the linkage risk, such as 0.1")
    if odd := [(name, limit) for name, limit in limits.items() if isinstance(limit, str)]:
        raise ValueError(f"the limit of {odd[0][0]} is {odd[0][1]!r}; give a share from 0 to 1, such as 0.05")
    if goal["search"].get("methods") == []:
        raise ValueError("no method is ticked; tick at least one")
    for one in goal.get("scenario", ()):
        if not one["name"]:
            raise ValueError(f"the intruder who knows {shortened(one['known'])} has no name; give one")
        if not one["known"]:
            raise ValueError(f"intruder {one['name']!r} knows no column; tick one that he knows")
        if one["max_risk"]["linkage"] == "":
            raise ValueError(f"intruder {one['name']!r} has no limit; give the largest linkage risk")


def _plain(text: str) -> int | float | str:
    """Return a number as typed, also with a decimal comma; other text unchanged, to be refused later."""
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def with_goal(job: Mapping[str, Any], goal: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job with another goal; what it says on measures is kept, but for the estimates."""
    measures = {key: value for key, value in job.get("measures", {}).items() if key != ESTIMATES}
    measures |= goal.get("measures", {})
    others = {name: part for name, part in job.items() if name not in ("search", "scenario", "measures")}
    return others | dict(goal) | ({"measures": measures} if measures else {})


async def keep(page: Page) -> Response:
    """Keep the goal of the form, checked as `sdckit recommend` checks its options."""
    file = page.file
    goal = goal_of_form(page.form, _published(file))
    require_complete(goal)
    job = with_goal(file.state.job, goal)
    await page.work(_check, page.session.start, file, job)
    return await page.keep(job, "search")


def _check(start: Any, file: OpenFile, job: Mapping[str, Any]) -> None:
    """Raise an error for a goal that the command line would refuse, also for estimates of the data."""
    opened = open_job(Job("recommend", job, start), file.source)
    opened.search_options()
    if job.get("measures", {}).get(ESTIMATES):
        declared_of(opened.prepare())


ROUTES = [shown("/goal", show), kept("/goal", keep, show)]
