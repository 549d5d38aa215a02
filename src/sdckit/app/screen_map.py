"""The screen of the map: every measured setting, what it does to the file, and which one is released."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from sdckit.app import panel
from sdckit.app.panel import compare_panels
from sdckit.app.screen import (
    OLD,
    REFUSALS,
    go_to,
    is_old,
    message_of,
    needs_file,
    read_form,
    render,
    root_of,
    seen_by,
    session_of,
    version_of,
)
from sdckit.app.screen_search import points_text
from sdckit.app.state import Pick, State
from sdckit.core.checks import number, printable_content
from sdckit.report.build import map_points
from sdckit.report.page import page_environment
from sdckit.report.risk_map import map_groups, risk_map
from sdckit.selection.points import limits_text, risks_text, setting_text, table_of_points, title_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from sdckit.app.session import Session
    from sdckit.report.risk_map import Points
    from sdckit.selection.points import Point
    from sdckit.selection.search import Kept


async def show(request: Request) -> Response:
    """Show the map of what is measured so far."""
    session = session_of(request)
    try:
        kept = await session.work(session.kept)
        limits = await session.work(session.limits)
    except REFUSALS as error:
        session.tell(message_of(error).text, "error")
        return go_to(request, "roles")
    drawn = await session.work(points_of, session, kept)
    return render(
        request,
        "map",
        title="Map of loss and risk",
        rows=[_row(session, one, kept, limits, drawn) for one in kept.points],
        sentences=_sentences(kept, limits),
        groups=map_groups(drawn) if drawn is not None and drawn.drawn.height else (),
        loss=title_of(drawn.loss) if drawn is not None else "loss",
        risk=title_of(drawn.risk) if drawn is not None else "risk",
    )


def _sentences(kept: Kept, limits: Mapping[str, float]) -> list[str]:
    """Return the recommendation in sentences, and the stronger settings that happen to lose less, if any."""
    if kept.choice is None:
        return ["The search is not finished; these settings are measured."]
    choice = kept.choice.public()
    found = choice.describe(title_of)
    if choice.point is None:
        return found
    loss, least = choice.minimise, choice.point.cost(choice.minimise)
    safe = [point.public() for point in kept.points if point.meets(limits)]
    if better := [point for point in safe if point.cost(loss) < least]:
        best = min(better, key=lambda point: point.cost(loss))
        name = setting_text(best, title_of)
        found.append(f"{WEAKEST} {name}, {title_of(loss)} {number(best.values[loss])}.")
    return found


def _row(
    session: Session, point: Point, kept: Kept, limits: Mapping[str, float], drawn: Points | None
) -> dict[str, Any]:
    """Return one measured setting as the table shows it."""
    shown = point.public()
    chosen = kept.choice.point if kept.choice else None
    pick = session.require_file().state.pick
    picked = pick is not None and is_pick(point, pick)
    recommended = chosen is not None and chosen.setting.identity == point.setting.identity
    return {
        "id": id_of(point),
        "title": point.setting.method.title,
        "parameters": point.parameters,
        "loss": number(shown.values.get(drawn.loss)) if drawn else "",
        "risk": number(shown.values.get(drawn.risk)) if drawn else "",
        "meets": point.meets(limits),
        "recommended": recommended,
        "picked": picked,
        "chosen": picked or (pick is None and recommended),
    }


def id_of(point: Point) -> str:
    """Return what stands for a setting in addresses: a digest, as parameters may hold odd names."""
    return hashlib.sha256(point.setting.identity.encode()).hexdigest()[:16]


def is_pick(point: Point, pick: Pick) -> bool:
    """Return True if a measured setting is the one that was chosen on the map."""
    return (point.method, point.setting.parameters) == (pick.method, dict(pick.parameters))


def points_of(session: Session, kept: Kept) -> Points | None:
    """Return the points of the map, the chosen one marked; None while nothing is measured."""
    if not kept.points:
        return None
    public = [point.public() for point in kept.points]
    found = map_points(
        table_of_points(public),
        records=session.original().n,
        own_settings=[point.setting for point in kept.points],
        choice=kept.choice and kept.choice.public(),
    )
    return found and replace(found, limits=dict(session.limits()))


async def points(request: Request) -> Response:
    """Answer the map as a specification of its chart, with the number of its points."""
    session = session_of(request)
    kept = await session.work(session.kept)
    found = await session.work(points_of, session, kept)
    spec = None if found is None or not found.drawn.height else risk_map(found)
    if spec is not None and found is not None:
        names = {(one.method, one.parameters): id_of(one) for one in kept.points}
        for row, drawn in zip(spec["data"]["values"], found.drawn.iter_rows(named=True), strict=True):
            row["id"] = names[drawn["method"], drawn["parameters"]]
    return JSONResponse(
        {
            "spec": printable_content(spec),
            "count": len(kept.points),
            "version": f"{version_of(session)} {kept.runs} {kept.choice is not None}",
            "text": points_text(len(kept.points)),
        }
    )


def point_named(kept: Kept, name: str) -> Point:
    """Return the measured setting with an identity; raise ValueError if there is none."""
    for point in kept.points:
        if id_of(point) == name:
            return point
    raise ValueError("this setting is not measured; reload the page")


def make_panel(session: Session, point: Point) -> Any:
    """Return what the page shows of one setting; kept, as the same one is often shown again."""
    file = session.require_unchanged()
    original = session.original()
    kept = file.prepared.setdefault("panels", {})
    key = (file.prepared["roles"], repr(session.judged_job()), point.setting.identity)
    if key not in kept:
        if len(kept) >= PANELS:
            kept.clear()
        edges = file.prepared.setdefault("edges", {})  # of the open file, whatever the roles
        parameters = dict(point.setting.parameters)
        kept[key] = panel.make_panel(
            session.opened(), original, point.method, parameters, session.secret, edges
        )
    return kept[key]


WEAKEST = (
    "Of each method the weakest safe setting is compared. By chance, a stronger one that meets the limits "
    "lost less in this search:"
)
PANELS = 50  # most that are kept


async def show_panel(request: Request) -> Response:
    """Answer what one setting does to the file, as a part of the screen."""
    session = session_of(request)
    kept = await session.work(session.kept)
    limits = await session.work(session.limits)
    point = point_named(kept, request.query_params.get("id", ""))
    content = await session.work(make_panel, session, point)
    broken = point.broken_limits(limits)
    return HTMLResponse(
        page_environment(*panel.FOLDERS)
        .get_template("point.html")
        .render(
            root=root_of(request),
            version=version_of(session),
            id=id_of(point),
            name=setting_text(point, title_of),
            broken=risks_text(point.public(), {name: limits[name] for name in broken}, title_of)
            if broken
            else "",
            panel=content,
        )
    )


async def compare(request: Request) -> Response:
    """Answer two settings side by side, as a part of the screen."""
    session = session_of(request)
    kept = await session.work(session.kept)
    pair = [point_named(kept, request.query_params.get(name, "")) for name in ("a", "b")]
    contents = [await session.work(make_panel, session, point) for point in pair]
    return HTMLResponse(compare_panels(*contents).to_html())


async def pick(request: Request) -> Response:
    """Choose the setting that is released; one that misses a limit is refused."""
    session, form = session_of(request), await read_form(request)
    file = session.require_unchanged()
    if is_old(session, form):
        session.tell(OLD, "error")
        return go_to(request, "map")
    kept = await session.work(session.kept)
    point = point_named(kept, form.text("id"))
    limits = await session.work(session.limits)
    if not point.meets(limits):
        broken = {name: limits[name] for name in point.broken_limits(limits)}
        remedy = "choose a setting that meets every limit, or change the goal"
        raise ValueError(f"{point} misses {limits_text(broken)}; {remedy}")
    recommended = kept.choice is not None and kept.choice.point is not None
    same = recommended and kept.choice.point.setting.identity == point.setting.identity  # type: ignore[union-attr]
    chosen = None if same else Pick(point.method, dict(point.setting.parameters))
    await session.work(file.become, State(file.state.job, chosen), seen_by(form))
    session.announce()
    return go_to(request, "release")


ROUTES = [
    Route("/map", needs_file(show)),
    Route("/map/points", needs_file(points)),
    Route("/map/panel", needs_file(show_panel)),
    Route("/map/compare", needs_file(compare)),
    Route("/map/pick", needs_file(pick), methods=["POST"]),
]
