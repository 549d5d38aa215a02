"""Forms as they are sent: fields by name, texts without surrounding spaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, RedirectResponse, Response

from sdckit.app import copying
from sdckit.app.panel import FOLDERS
from sdckit.app.session import Session  # noqa: TC001 - launch.py finds it here
from sdckit.cli.options import EXPECTED, error_text
from sdckit.core.version import VERSION
from sdckit.report.page import page_environment
from sdckit.request.python_text import python_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request


FIELDS = 20_000  # most fields of a form: some for each column of a wide file


@dataclass(frozen=True)
class Form:
    """Fields of a form by name, each with all its values."""

    fields: Mapping[str, list[str]]

    def text(self, name: str) -> str:
        """Return the first value of a field, an empty text without one."""
        return self.fields.get(name, [""])[0].strip()

    def texts(self, name: str) -> list[str]:
        """Return all values of a field, as of boxes that are ticked."""
        return [value.strip() for value in self.fields.get(name, [])]

    def ticked(self, name: str) -> bool:
        """Return True if a box is ticked."""
        return name in self.fields

    def names_with(self, start: str) -> list[str]:
        """Return what follows in the names of the fields that begin so, in the order of the form."""
        return [name.removeprefix(start) for name in self.fields if name.startswith(start)]


async def read_form(request: Request) -> Form:
    """Return the form that a request carries; raise ValueError if it is none."""
    body = await request.body()
    try:
        return Form(
            parse_qs(
                body.decode(),
                keep_blank_values=True,
                strict_parsing=bool(body),
                errors="strict",
                max_num_fields=FIELDS,
            )
        )
    except ValueError as error:
        raise ValueError("the form could not be read; send it again") from error


if TYPE_CHECKING:
    Handler = Callable[[Request], Awaitable[Response]]

STEPS = {
    "open": "Open",
    "roles": "Roles",
    "rules": "Rules",
    "goal": "Goal",
    "search": "Search",
    "map": "Map",
    "release": "Release",
}
CHARTS = ("search", "map")  # screens that load the scripts of the charts
OLD = "The job was changed in another tab; nothing of this form was kept. This is the job as it is now."
REFUSALS = EXPECTED  # wrong input, as the command line says it in one line


@dataclass(frozen=True)
class Message:
    """A line above a screen: of the kind "info" or "error"."""

    kind: str
    text: str


def session_of(request: Request) -> Session:
    """Return the session of the page that a request is for."""
    found: Session = request.app.state.session
    return found


def root_of(request: Request) -> str:
    """Return the beginning of all addresses of the page."""
    return str(request.scope.get("root_path", ""))


def render(request: Request, screen: str, status: int = 200, **content: Any) -> Response:
    """Return a screen with what all screens have: steps, history, messages and the texts to copy."""
    session = session_of(request)
    file = session.file
    notes, session.notes = session.notes, []
    messages = [*content.pop("messages", ()), *(Message(*note) for note in notes)]
    page = page_environment(*FOLDERS).get_template(f"{content.pop('template', screen)}.html")
    return HTMLResponse(
        page.render(
            root=root_of(request),
            screen=screen,
            title=content.pop("title", STEPS.get(screen, "")),
            steps=[
                {"name": name, "title": title, "reachable": name == "open" or file is not None}
                for name, title in STEPS.items()
            ],
            file="" if file is None else file.name,
            version=version_of(session),
            can_undo=file is not None and file.history.can_undo,
            can_redo=file is not None and file.history.can_redo,
            messages=messages,
            changed=session.changed(),
            copies=copies_of(session),
            charts=content.pop("charts", screen in CHARTS),
            sdckit_version=VERSION,
            **content,
        ),
        status,
    )


def version_of(session: Session) -> str:
    """Return what differs after every change of the job, and after another file was opened."""
    return f"{session.openings}.{0 if session.file is None else session.file.history.version}"


def copies_of(session: Session) -> Sequence[Mapping[str, str]]:
    """Return the texts that repeat the work without the page: a command and a Python script."""
    if session.file is None:
        return ()
    try:
        job = session.file.job()
        texts = copying.command_text(job), python_text(job)
    except REFUSALS:  # a job that cannot be run yet, which the screens say
        return ()
    return [
        {
            "name": "command",
            "title": "Copy as command",
            "about": f"Run it in the folder {session.start}.",
            "text": texts[0],
        },
        {
            "name": "python",
            "title": "Copy as Python",
            "about": "The same search and release from Python, in the same folder.",
            "text": texts[1],
        },
    ]


def go_to(request: Request, screen: str) -> Response:
    """Return the answer that sends the browser to a screen."""
    return RedirectResponse(f"{root_of(request)}/{screen}", 303)


def is_old(session: Session, form: Form) -> bool:
    """Return True for a form that was made before the job was changed elsewhere."""
    return form.text("version") != version_of(session)


def seen_by(form: Form) -> int:
    """Return the version of the history that a form, which is not old, was made from."""
    return int(form.text("version").rpartition(".")[2])


def message_of(error: BaseException) -> Message:
    """Return an error as the line that the page shows, the first letter in upper case."""
    text = error_text(error) or type(error).__name__
    return Message("error", text[:1].upper() + text[1:])


def needs_file(handler: Handler) -> Handler:
    """Return a handler that sends the browser to the first screen while no file is open."""

    async def checked(request: Request) -> Response:
        """Answer, or go to the first screen."""
        session = session_of(request)
        if session.file is None:
            session.tell("Open a file first.", "error")
            return go_to(request, "open")
        return await handler(request)

    return checked
