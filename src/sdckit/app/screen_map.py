"""The screen of the map: every measured setting, what it does to the file, and which one is released."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, JSONResponse, Response

from sdckit.app import panel
from sdckit.app.panel import compare_panels
from sdckit.app.screen import Page, kept, shown, version_of
from sdckit.app.screen_search import points_text
from sdckit.app.state import Pick, State
from sdckit.core.registry import title_of
from sdckit.core.scenarios import limits_text
from sdckit.core.text import number, printable_content
from sdckit.report.build import map_points
from sdckit.report.page import page_environment
from sdckit.report.risk_map import map_groups, risk_map, table_of_points
from sdckit.selection.points import risks_text, setting_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.app.panel import PanelContent
    from sdckit.app.session import Session
    from sdckit.report.risk_map import Points
    from sdckit.selection.points import Point
    from sdckit.selection.search import Kept

WEAKEST = (
    "Of each method the weakest safe setting is compared. By chance, a stronger one that meets the limits "
    "lost less in this search:"
)
PANELS = 50  # most that are kept


async def show(page: Page) -> Response:
    """Show the map of what is measured so far."""
    session = page.session
    found = await page.work(session.kept)
    limits = await page.work(session.limits)
    drawn = await page.work(points_of, session, found)
    return page.render(
        "map",
        title="Map of loss and risk",
        rows=[_row(session, one, found, limits, drawn) for one in found.points],
        sentences=_sentences(found, limits),
        groups=map_groups(drawn) if drawn is not None and drawn.drawn.height else (),
        loss=title_of(drawn.loss) if drawn is not None else "loss",
        risk=title_of(drawn.risk) if drawn is not None else "risk",
    )


def _sentences(measured: Kept, limits: Mapping[str, float]) -> list[str]:
    """Return the recommendation in sentences, and the stronger settings that happen to lose less, if any."""
    if measured.choice is None:
        return ["The search is not finished; these settings are measured."]
    choice = measured.choice.public()
    found = choice.describe(title_of)
    if choice.point is None:
        return found
    loss, least = choice.minimise, choice.point.cost(choice.minimise)
    safe = [point.public() for point in measured.points if point.meets(limits)]
    if better := [point for point in safe if point.cost(loss) < least]:
        best = min(better, key=lambda point: point.cost(loss))
        name = setting_text(best, title_of)
        found.append(f"{WEAKEST} {name}, {title_of(loss)} {number(best.values[loss])}.")
    return found


def _row(
    session: Session, point: Point, found: Kept, limits: Mapping[str, float], drawn: Points | None
) -> dict[str, Any]:
    """Return one measured setting as the table shows it."""
    public = point.public()
    chosen = found.choice.point if found.choice else None
    pick = session.require_file().state.pick
    picked = pick is not None and is_pick(point, pick)
    recommended = chosen is not None and chosen.setting.identity == point.setting.identity
    return {
        "id": id_of(point),
        "title": point.setting.method.title,
        "parameters": point.parameters,
        "loss": number(public.values.get(drawn.loss)) if drawn else "",
        "risk": number(public.values.get(drawn.risk)) if drawn else "",
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


def points_of(session: Session, measured: Kept) -> Points | None:
    """Return the points of the map, the chosen one marked; None while nothing is measured."""
    if not measured.points:
        return None
    public = [point.public() for point in measured.points]
    found = map_points(
        table_of_points(public),
        records=session.original().n,
        own_settings=[point.setting for point in measured.points],
        choice=measured.choice and measured.choice.public(),
    )
    return found and replace(found, limits=dict(session.limits()))


async def points(page: Page) -> Response:
    """Answer the map as a specification of its chart, with the number of its points."""
    measured = await page.work(page.session.kept)
    found = await page.work(points_of, page.session, measured)
    spec = None if found is None or not found.drawn.height else risk_map(found)
    if spec is not None and found is not None:
        names = {(one.method, one.parameters): id_of(one) for one in measured.points}
        for row, drawn in zip(spec["data"]["values"], found.drawn.iter_rows(named=True), strict=True):
            row["id"] = names[drawn["method"], drawn["parameters"]]
    return JSONResponse(
        {
            "spec": printable_content(spec),
            "count": len(measured.points),
            "version": f"{version_of(page.session)} {measured.runs} {measured.choice is not None}",
            "text": points_text(len(measured.points)),
        }
    )


def point_named(measured: Kept, name: str) -> Point:
    """Return the measured setting with an identity; raise ValueError if there is none."""
    for point in measured.points:
        if id_of(point) == name:
            return point
    raise ValueError("this setting is not measured; reload the page")


def make_panel(session: Session, point: Point) -> PanelContent:
    """Return what the page shows of one setting; kept, as the same one is often shown again."""
    file, original = session.require_unchanged(), session.original()
    panels = file.once("panels", (session.roles_key(), repr(session.judged_job())), dict)
    name = point.setting.identity
    if name not in panels:
        if len(panels) >= PANELS:
            panels.clear()
        parameters = dict(point.setting.parameters)
        panels[name] = panel.make_panel(
            session.opened(), original, point.method, parameters, session.secret, file.edges
        )
    found: PanelContent = panels[name]
    return found


async def show_panel(page: Page) -> Response:
    """Answer what one setting does to the file, as a part of the screen."""
    session = page.session
    limits = await page.work(session.limits)
    point = point_named(await page.work(session.kept), page.request.query_params.get("id", ""))
    content = await page.work(make_panel, session, point)
    broken = {name: limits[name] for name in point.broken_limits(limits)}
    return HTMLResponse(
        page_environment(*panel.FOLDERS)
        .get_template("point.html")
        .render(
            root=page.root,
            version=version_of(session),
            id=id_of(point),
            name=setting_text(point, title_of),
            broken=risks_text(point.public(), broken, title_of) if broken else "",
            panel=content,
        )
    )


async def compare(page: Page) -> Response:
    """Answer two settings side by side, as a part of the screen."""
    measured = await page.work(page.session.kept)
    pair = [point_named(measured, page.request.query_params.get(name, "")) for name in ("a", "b")]
    contents = [await page.work(make_panel, page.session, point) for point in pair]
    return HTMLResponse(compare_panels(*contents).to_html())


async def pick(page: Page) -> Response:
    """Choose the setting that is released; one that misses a limit is refused."""
    session, file = page.session, page.file
    measured = await page.work(session.kept)
    point = point_named(measured, page.form.text("id"))
    limits = await page.work(session.limits)
    if not point.meets(limits):
        broken = {name: limits[name] for name in point.broken_limits(limits)}
        remedy = "choose a setting that meets every limit, or change the goal"
        raise ValueError(f"{point} misses {limits_text(broken)}; {remedy}")
    recommended = measured.choice.point if measured.choice else None
    same = recommended is not None and recommended.setting.identity == point.setting.identity
    chosen = None if same else Pick(point.method, dict(point.setting.parameters))
    await page.work(file.become, State(file.state.job, chosen), page.seen)
    session.announce()
    return page.go_to("release")


ROUTES = [
    shown("/map", show, back="roles"),
    shown("/map/points", points),
    shown("/map/panel", show_panel),
    shown("/map/compare", compare),
    kept("/map/pick", pick),
]
