"""The last screen: what to look at before the release, where it is written, and what was measured on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from sdckit.app import copying, folders
from sdckit.app.release_checks import checklist
from sdckit.app.screen import (
    OLD,
    REFUSALS,
    Form,
    Message,
    go_to,
    is_old,
    message_of,
    needs_file,
    read_form,
    render,
    seen_by,
    session_of,
)
from sdckit.app.screen_map import is_pick
from sdckit.app.state import StaleError
from sdckit.core.checks import as_sentence, number
from sdckit.core.scenarios import exposed_of
from sdckit.metrics import METRICS
from sdckit.request.limits import WHOLE
from sdckit.request.options import job_options
from sdckit.selection.points import setting_text, title_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
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


async def show(request: Request) -> Response:
    """Show the checklist, the paths and, once written, the release."""
    session = session_of(request)
    try:
        return await _screen(request)
    except REFUSALS as error:
        session.tell(message_of(error).text, "error")
        return go_to(request, "roles")


async def _screen(
    request: Request, status: int = 200, form: Form | None = None, messages: Sequence[Message] = ()
) -> Response:
    """Return the screen, with what a refused form says."""
    session = session_of(request)
    file = session.require_file()
    kept = await session.work(session.kept)
    point = chosen_point(file, kept)
    rows = [] if point is None else await session.work(checklist, session, point)
    if session.release.error and session.release.about == _about(file):
        messages = [*messages, Message("error", session.release.error)]
    return render(
        request,
        "release",
        status,
        title="Release",
        messages=messages,
        chosen="" if point is None else setting_text(point, title_of),
        finished=kept.choice is not None,
        checklist=rows,
        paths=_path_fields(file, form),
        keep_order=file.state.job["output"].get("keep_order", False),
        running=session.release.running,
        running_text="Writing and measuring the file …" if session.release.running else "",
        result=_result(session),
    )


def chosen_point(file: OpenFile, kept: Kept) -> Point | None:
    """Return the setting that is released: the one chosen on the map, else the recommended one."""
    pick = file.state.pick
    if pick is None:
        return kept.choice.point if kept.choice else None
    return next((point for point in kept.points if is_pick(point, pick)), None)


def _path_fields(file: OpenFile, form: Form | None) -> list[dict[str, Any]]:
    """Return the fields of the paths to write."""
    job = file.state.job
    return [
        {
            "name": name,
            "title": title,
            "about": about,
            "value": form.text(name) if form else _path_of(job, file, name),
            "needed": name == "output",
        }
        for name, (title, about) in PATHS.items()
    ]


def _path_of(job: Mapping[str, Any], file: OpenFile, name: str) -> str:
    """Return a path of the job; the job file's is in the start folder by default, as those of the others."""
    if name == "save_job":
        return f"{Path(file.name).stem}-job.toml"
    return str(job.get(SECTIONS[name], {}).get(name, ""))


def _result(session: Session) -> dict[str, Any] | None:
    """Return the release that was written as the screen shows it; None without one."""
    found, about = session.release.result, session.release.about
    file = session.require_file()
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
        "report": session.release.report is not None,
        "notes": [*found["notes"], *session.release.warnings],
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


async def write(request: Request) -> Response:
    """Keep the paths, and start the command that writes the release."""
    session, form = session_of(request), await read_form(request)
    file = session.require_unchanged()
    if is_old(session, form):
        session.tell(OLD, "error")
        return go_to(request, "release")
    try:
        kept = await session.work(session.kept)
        if chosen_point(file, kept) is None:
            raise ValueError("no setting is chosen yet; finish the search first")
        job = job_with_paths(session, file, form)
    except REFUSALS as error:
        return await _screen(request, 422, form, [message_of(error)])
    if not session.busy():
        await session.work(file.change, job, seen_by(form))
    if session.file is not file:
        raise StaleError("another file was opened meanwhile, perhaps in another tab; nothing was written")
    if session.busy():  # asked last, as another tab may have begun meanwhile
        session.tell("A search or a release is still running; wait for it, or stop it.", "error")
        return go_to(request, "release")
    report = job["output"].get("report")
    session.release.begin(_words(file, form), session.start / report if report else None, _about(file))
    session.announce()
    return go_to(request, "release")


def job_with_paths(session: Session, file: OpenFile, form: Form) -> dict[str, Any]:
    """Return the job with the paths of the form; raise ValueError for one outside of the start folder."""
    job = {name: dict(part) if isinstance(part, dict) else part for name, part in file.state.job.items()}
    for name, section in SECTIONS.items():
        part = job.setdefault(section, {})
        part.pop(name, None)
        if text := form.text(name):
            part[name] = folders.confined(session.start, text).relative_to(session.start).as_posix()
    job["output"].pop("keep_order", None)
    if form.ticked("keep_order"):
        job["output"]["keep_order"] = True
    if not job["private"]:
        del job["private"]
    for path in [form.text("save_job"), *_paths_of(job)]:
        if folders.confined(session.start, path).is_relative_to(file.work.path.resolve()):
            raise ValueError(f"'{path}' lies in the folder of this page's own files; choose another place")
    return job


def _paths_of(job: Mapping[str, Any]) -> list[str]:
    """Return all paths of a job: those that no form shows may come from a file that somebody else wrote."""
    found = [
        job.get(field.section, {}).get(field.key)
        for field in job_options("recommend")
        if field.kind == "path"
    ]
    return [path for path in found if path]


def _about(file: OpenFile) -> tuple[Path, State]:
    """Return what a release is of: the file and the state of its job."""
    return file.path, file.state


def _words(file: OpenFile, form: Form) -> list[str]:
    """Return the words of the command that writes the release, without the name of the program."""
    saved = form.text("save_job")
    extra = ["--save-job", saved] if saved else []
    extra += ["--overwrite"] if form.ticked("overwrite") else []
    return copying.command_words(file.job(), extra)[1:]


ROUTES = [
    Route("/release", needs_file(show)),
    Route("/release", needs_file(write), methods=["POST"]),
]
