"""The last screen: what to look at before the release, where it is written, and what was measured on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sdckit.app import folders
from sdckit.app.running import RELEASING
from sdckit.app.screen import Form, Message, Page, kept, shown
from sdckit.app.screen_map import is_pick
from sdckit.app.screen_roles import undecided_text, uniques_text
from sdckit.app.session import describe
from sdckit.app.state import StaleError
from sdckit.core.registry import title_of
from sdckit.core.scenarios import exposed_of
from sdckit.core.text import as_sentence, listed, number, shortened
from sdckit.metrics import METRICS
from sdckit.record.ledger import find_overlaps
from sdckit.record.store import Store
from sdckit.request.limits import WHOLE
from sdckit.request.options import job_options
from sdckit.selection.limits import SUPPRESSED
from sdckit.selection.points import setting_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

    from sdckit.app.session import OpenFile, Session
    from sdckit.app.state import State
    from sdckit.selection.points import Point
    from sdckit.selection.search import Kept

PATHS = {  # title and help by the name of the option
    "output": ("The released file", "Its suffix gives the format: .csv, .parquet, .dta, .sav."),
    "report": (
        "Report to publish",
        "One page with losses, risks and places to sign; it holds no original record. Empty: none.",
    ),
    "save_job": ("Job file", "The choices made here; sdckit run does the same again. Empty: none."),
    "private_report": (
        "Private report",
        "The same report with exact statistics of the original. Never hand it out. Empty: none.",
    ),
    "private": (
        "Folder of the private record",
        "What repeats and checks the release. Never hand it out. Empty: that of your account.",
    ),
}
OUTDATED = "The job was changed after this release was written. The figures here are those of the release."
SECTIONS = {"output": "output", "report": "output", "private_report": "private", "private": "private"}


async def show(page: Page) -> Response:
    """Show the checklist, the paths and, once written, the release; or what a refused form says."""
    session, file = page.session, page.file
    measured = await page.work(session.kept)
    point = chosen_point(file, measured)
    rows = [] if point is None else await page.work(checklist, session, point)
    failed = session.release.state.error if session.release.about == _about(file) else ""
    return page.render(
        "release",
        messages=[Message("error", failed)] if failed else [],
        chosen="" if point is None else setting_text(point, title_of),
        finished=measured.choice is not None,
        checklist=rows,
        paths=[
            {
                "name": name,
                "title": title,
                "about": about,
                "value": page.form.text(name) if page.refused else _path_of(file, name),
                "needed": name == "output",
            }
            for name, (title, about) in PATHS.items()
        ],
        keep_order=file.state.job["output"].get("keep_order", False),
        running=session.release.running,
        running_text=RELEASING if session.release.running else "",
        result=_result(session),
    )


def chosen_point(file: OpenFile, measured: Kept) -> Point | None:
    """Return the setting that is released: the one chosen on the map, else the recommended one."""
    pick = file.state.pick
    if pick is None:
        return measured.choice.point if measured.choice else None
    return next((point for point in measured.points if is_pick(point, pick)), None)


def _path_of(file: OpenFile, name: str) -> str:
    """Return a path of the job; the job file's is in the start folder by default, as those of the others."""
    if name == "save_job":
        return f"{Path(file.name).stem}-job.toml"
    return str(file.state.job.get(SECTIONS[name], {}).get(name, ""))


def _result(session: Session) -> dict[str, Any] | None:
    """Return the release that was written as the screen shows it; None without one."""
    written, about = session.release.state, session.release.about
    file, found = session.require_file(), written.result
    if found is None or about[0] != file.path:
        return None
    summary, exposed = found["summary"], exposed_of(found["parts"])
    files = [
        ("released file", ", ".join(found["masked"])),
        ("SHA-256", summary["sha256"]),
        ("method", summary["method"]),
    ]
    return {
        "sentence": " ".join(found["choice"]["sentences"][:1]),
        "exposed": "" if exposed is None else as_sentence(exposed.sentence(found["n"])),
        "files": files,
        "outdated": OUTDATED if about != _about(file) else "",
        "report": bool(written.report),
        "notes": [*found["notes"], *(f"warning: {text}" for text in written.warnings)],
        "measures": _measures(found),
    }


def _measures(found: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the measures of the whole file as written, then the risks of other intruders."""
    measures = [
        {
            "name": row["metric"],
            "title": _title(row["metric"]),
            "text": number(row["value"]),
            "meaning": found["meaning"].get(row["metric"], ""),
        }
        for row in found["table"]
        if (row["stratum"], row["variable"]) == WHOLE
    ]
    others = [
        {
            "name": f"{row['metric']} ({row['scenario']})",
            "title": f"{_title(row['metric'])}, for {row['scenario']}",
            "text": number(row["value"]),
            "meaning": f"an intruder who knows {row['known']}; the limit is {number(row['limit'])}",
        }
        for row in found.get("scenarios", ())
    ]
    return measures + others


def _title(metric: str) -> str:
    """Return the full title of a measure; of one by attack, the short one."""
    return METRICS[metric].title if metric in METRICS else title_of(metric)


async def write(page: Page) -> Response:
    """Keep the paths, and start the command that writes the release."""
    session, file, form = page.session, page.file, page.form
    if chosen_point(file, await page.work(session.kept)) is None:
        raise ValueError("no setting is chosen yet; finish the search first")
    content = job_with_paths(session, file, form)
    if not session.busy():
        await page.work(file.change, content, page.seen)
    if session.file is not file:
        raise StaleError("another file was opened meanwhile, perhaps in another tab; nothing was written")
    if session.busy():  # asked last, as another tab may have begun meanwhile
        return page.go_to("release", "A search or a release is still running; wait for it, or stop it.")
    task = {
        "job": file.job().content,
        "save_job": form.text("save_job"),
        "overwrite": form.ticked("overwrite"),
    }
    session.release.start(task, _about(file))
    return page.go_to("release")


def job_with_paths(session: Session, file: OpenFile, form: Form) -> dict[str, Any]:
    """Return the job with the paths of the form; raise ValueError for one outside of the start folder."""
    content = {name: dict(part) if isinstance(part, dict) else part for name, part in file.state.job.items()}
    for name, section in SECTIONS.items():
        part = content.setdefault(section, {})
        part.pop(name, None)
        if text := form.text(name):
            part[name] = folders.confined(session.start, text).relative_to(session.start).as_posix()
    content["output"].pop("keep_order", None)
    if form.ticked("keep_order"):
        content["output"]["keep_order"] = True
    if not content["private"]:
        del content["private"]
    for path in [form.text("save_job"), *_paths_of(content)]:
        if folders.confined(session.start, path).is_relative_to(file.work.path.resolve()):
            raise ValueError(f"'{path}' lies in the folder of this page's own files; choose another place")
    return content


def _paths_of(content: Mapping[str, Any]) -> list[str]:
    """Return all paths of a job: those that no form shows may come from a file that somebody else wrote."""
    paths = [field for field in job_options("recommend") if field.kind == "path"]
    return [path for field in paths if (path := content.get(field.section, {}).get(field.key))]


def _about(file: OpenFile) -> tuple[Path, State]:
    """Return what a release is of: the file and the state of its job."""
    return file.path, file.state


NO_IDENTIFIER = "All columns are published: none is an identifier, none is left out. Check the roles."
MET = "This setting meets every limit. The released file is measured again; it is not kept if it misses one."
UNITS = "There is no limit on finding whole households, firms or persons; set one on the screen Goal."
TOGETHER = "The new file is measured together with them; it is not kept if it then misses a limit."
UNSEEN = "No screen shows some choices of this job: {}. Look at them under Copy as command."
MARKS = {"good": "✓", "look": "!", "bad": "✗"}


class Item(NamedTuple):
    """A line of the checklist: in order, to look at, or in the way of a release."""

    state: str
    text: str

    @property
    def mark(self) -> str:
        """The sign before the line."""
        return MARKS[self.state]


def checklist(session: Session, point: Point) -> list[Item]:
    """Return the lines of the checklist for a setting."""
    file = session.require_file()
    roles = file.state.job.get("roles", {})
    found = describe(file.source, file.state.roles)
    gone = [*roles.get("key", ()), *roles.get("drop", ())]
    limits = session.limits()
    undecided = undecided_text(found, file.state.job)
    items = [
        Item("bad", undecided) if undecided else Item("good", "Every column has a role."),
        Item("good", f"Not published: {shortened(gone)}.") if gone else Item("look", NO_IDENTIFIER),
        Item("good", MET) if point.meets(limits) else Item("bad", "This setting misses a limit."),
    ]
    if file.state.job["output"].get("keep_order"):
        items.append(Item("look", "The rows stay in the order of the original, which an intruder may use."))
    else:
        items.append(Item("good", "The rows will be shuffled."))
    if roles.get("unit") and "linkage_units" not in limits:
        items.append(Item("look", UNITS))
    if unseen := unseen_choices(file.state.job):
        items.append(Item("look", UNSEEN.format(listed(unseen))))
    share = point.values.get(SUPPRESSED, 0.0)
    gone_cells = f"{100 * share:.2g} of 100 cells are suppressed." if share > 0 else "No cell is suppressed."
    items.append(Item("look" if share > 0 else "good", gone_cells))
    records = file.source.frame.height
    alone = "look" if round(found.uniques * records) else "good"
    return [*items, Item(alone, uniques_text(found, records)), _earlier(session)]


def unseen_choices(job: Mapping[str, Any]) -> list[str]:
    """Return the keys of a job that no screen shows; a job from elsewhere may have any, as [roles] known."""
    hidden = (field for field in job_options("recommend") if field.off_page)
    return [field.path for field in hidden if field.key in job.get(field.section, ())]


def _earlier(session: Session) -> Item:
    """Return the line on earlier releases of the same records."""
    private = session.require_file().state.job.get("private", {}).get("private")
    store = Store.at(folders.confined(session.start, private) if private else None)
    entries, broken = store.entries() if store.folder.exists() else ([], [])
    if not entries and not broken:
        return Item("good", "No earlier release is in the private record.")
    overlaps, lost = find_overlaps(store, session.original(), store.secret(), entries)
    if damaged := [*broken, *lost]:
        return Item(
            "bad", f"Records of releases are damaged: {shortened(damaged)}; restore them from a copy."
        )
    if overlaps:
        named = listed([one.entry.id for one in overlaps[:5]])
        return Item("look", f"Released before: {named}. {TOGETHER}")
    return Item("good", "By the private record, none of these records was released before.")


ROUTES = [shown("/release", show, back="roles"), kept("/release", write, show)]
