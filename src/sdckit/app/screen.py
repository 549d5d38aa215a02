"""What screens share: the form that was sent, the page around a screen, and addresses with their checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from sdckit.app import job
from sdckit.app.panel import FOLDERS
from sdckit.app.session import Session  # noqa: TC001 - launch.py finds it here
from sdckit.app.state import StaleError
from sdckit.core.version import VERSION
from sdckit.report.page import page_environment
from sdckit.request.python_text import python_text
from sdckit.terminal import EXPECTED, error_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request

    from sdckit.app.session import OpenFile

    Handler = Callable[["Page"], Awaitable[Response]]

FIELDS = 20_000  # most fields of a form: some for each column of a wide file
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
class Form:
    """Fields of a form by name, each with all its values."""

    fields: Mapping[str, list[str]]

    def text(self, name: str) -> str:
        """Return the first value of a field without surrounding spaces, an empty text without one."""
        return self.fields.get(name, [""])[0].strip()

    def texts(self, name: str) -> list[str]:
        """Return all values of a field, as of boxes that are ticked."""
        return [value.strip() for value in self.fields.get(name, [])]

    def lines(self, name: str) -> list[str]:
        """Return the lines of a field that are not empty."""
        return [line.strip() for line in self.text(name).splitlines() if line.strip()]

    def ticked(self, name: str) -> bool:
        """Return True if a box is ticked."""
        return name in self.fields

    def names_with(self, start: str) -> list[str]:
        """Return what follows in the names of the fields that begin so, in the order of the form."""
        return [name.removeprefix(start) for name in self.fields if name.startswith(start)]


async def read_form(request: Request) -> Form:
    """Return the form that a request carries; raise ValueError if it is none."""
    body = await request.body()
    how: dict[str, Any] = {"keep_blank_values": True, "errors": "strict", "max_num_fields": FIELDS}
    try:
        return Form(parse_qs(body.decode(), strict_parsing=bool(body), **how))
    except ValueError as error:
        raise ValueError("the form could not be read; send it again") from error


@dataclass(frozen=True)
class Message:
    """A line above a screen: of the kind "info" or "error"."""

    kind: str
    text: str


def message_of(error: BaseException) -> Message:
    """Return an error as the line that the page shows, the first letter in upper case."""
    text = error_text(error) or type(error).__name__
    return Message("error", text[:1].upper() + text[1:])


class Page:
    """A request of a screen: the session that it is for, and the form that was sent, if any.

    Attributes
    ----------
    refused
        Why the form was refused: the screen then shows what the form says, with this line above it.
    """

    def __init__(self, request: Request, form: Form | None = None) -> None:
        self.request = request
        self.session: Session = request.app.state.session
        self.sent = form
        self.refused: Message | None = None

    @property
    def form(self) -> Form:
        """The form that was sent, an empty one if none was."""
        return self.sent or Form({})

    @property
    def file(self) -> OpenFile:
        """The open file; ValueError if there is none."""
        return self.session.require_file()

    @property
    def root(self) -> str:
        """The beginning of all addresses of the page."""
        return str(self.request.scope.get("root_path", ""))

    @property
    def is_old(self) -> bool:
        """True for a form that was made before the job was changed elsewhere."""
        return self.form.text("version") != version_of(self.session)

    @property
    def seen(self) -> int:
        """The version of the history that a form, which is not old, was made from."""
        return int(self.form.text("version").rpartition(".")[2])

    async def work(self, function: Callable[..., Any], *values: Any) -> Any:
        """Call a function in the thread that reads and measures data."""
        return await self.session.work(function, *values)

    async def keep(self, content: Mapping[str, Any], then: str) -> Response:
        """Make another job the current one, and send the browser to the next screen."""
        await self.work(self.file.change, content, self.seen)
        self.session.announce()
        return self.go_to(then)

    def go_to(self, screen: str, error: str = "") -> Response:
        """Return the answer that sends the browser to a screen, which shows the error, if any."""
        if error:
            self.session.tell(error, "error")
        return RedirectResponse(f"{self.root}/{screen}", 303)

    def render(self, screen: str, status: int = 200, **content: Any) -> Response:
        """Return a screen with what all screens have: steps, history, messages and the texts to copy."""
        session, file = self.session, self.session.file
        notes, session.notes = session.notes, []
        own = [*content.pop("messages", ()), *([self.refused] if self.refused else [])]
        page = page_environment(*FOLDERS).get_template(f"{content.pop('template', screen)}.html")
        return HTMLResponse(
            page.render(
                root=self.root,
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
                messages=[*own, *(Message(*note) for note in notes)],
                changed=session.changed(),
                copies=copies_of(session),
                charts=content.pop("charts", screen in CHARTS),
                sdckit_version=VERSION,
                **content,
            ),
            422 if self.refused else status,
        )


def version_of(session: Session) -> str:
    """Return what differs after every change of the job, and after another file was opened."""
    return f"{session.openings}.{0 if session.file is None else session.file.history.version}"


def copies_of(session: Session) -> Sequence[Mapping[str, str]]:
    """Return the texts that repeat the work without the page: a command and a Python script."""
    if session.file is None:
        return ()
    try:
        own = session.file.job()
        texts = job.command_text(own), python_text(own)
    except REFUSALS:  # a job that cannot be run yet, which the screens say
        return ()
    folder = f"Run it in the folder {session.start}."
    python = "The same search and release from Python, in the same folder."
    return [
        {"name": "command", "title": "Copy as command", "about": folder, "text": texts[0]},
        {"name": "python", "title": "Copy as Python", "about": python, "text": texts[1]},
    ]


def shown(path: str, handler: Handler, back: str = "") -> Route:
    """Return the address of a screen or a part of one, which needs an open file.

    What is refused sends the browser `back` to an earlier screen, if there is one, to put it right there.
    """

    async def answer(request: Request) -> Response:
        """Answer, or go to the first screen."""
        page = Page(request)
        if page.session.file is None:
            return page.go_to("open", "Open a file first.")
        try:
            return await handler(page)
        except REFUSALS as error:
            if not back:
                raise
            return page.go_to(back, message_of(error).text)

    return Route(path, answer)


def checked(path: str, handler: Handler) -> Route:
    """Return the address of a form that is looked at and not kept."""

    async def answer(request: Request) -> Response:
        """Answer, or go to the first screen."""
        page = Page(request)
        if page.session.file is None:
            return page.go_to("open", "Open a file first.")
        page.sent = await read_form(request)
        return await handler(page)

    return Route(path, answer, methods=["POST"])


def kept(path: str, handler: Handler, again: Handler | None = None) -> Route:
    """Return the address of a form that changes the job, made from the job and the file as they are now.

    Where the form is refused, `again` shows it once more; without it, the browser gets a page with the error.
    """
    screen = path.split("/")[1]

    async def answer(page: Page) -> Response:
        """Answer, unless the form is old or the file was changed on disk."""
        page.session.require_unchanged()
        if page.is_old:
            return page.go_to(screen, OLD)
        try:
            return await handler(page)
        except StaleError:
            raise
        except REFUSALS as error:
            if again is None:
                raise
            page.refused = message_of(error)
            return await again(page)

    return checked(path, answer)
