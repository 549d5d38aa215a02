"""The first screen: choose a file below the start folder, and say how it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from starlette.routing import Route

from sdckit.app import folders
from sdckit.app.screen import OLD, REFUSALS, Form, Page, message_of, read_form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from sdckit.app.session import Session

SHOWN = 20  # records of the preview
DELIMITERS = [
    ("", "comma; tab in .tsv"),
    (";", "semicolon"),
    ("\\t", "tab"),
    ("|", "vertical bar"),
    (":", "colon"),
    (" ", "space"),
]


async def show(request: Request) -> Response:
    """Show the files of a folder, and a preview of the open one."""
    page = Page(request)
    session = page.session
    if session.file is None and session.data is not None:
        name, session.data = session.data.relative_to(session.start).as_posix(), None
        try:
            await page.work(session.open, name)
        except REFUSALS as error:
            page.refused = message_of(error)
            return await _screen(page, {"data": name})
    return await _screen(page, {})


async def choose(request: Request) -> Response:
    """Open the chosen file; on an error the screen says why."""
    page = Page(request, await read_form(request))
    session, form = page.session, page.form
    if session.file is not None and page.is_old:
        return page.go_to("open", OLD)
    dialect = section_of(form) if "encoding" in form.fields else None  # None: a name in the list was chosen
    try:
        await page.work(session.open, form.text("data"), dialect)
    except REFUSALS as error:
        page.refused = message_of(error)
        return await _screen(page, _given_texts(form))
    session.announce()
    return page.go_to("open")


async def choose_sample(request: Request) -> Response:
    """Open the bundled sample."""
    page = Page(request)
    await page.work(lambda: page.session.open(page.session.open_sample()))
    page.session.announce()
    return page.go_to("open")


def section_of(form: Form) -> dict[str, Any]:
    """Return the entries of the section on the input of a job that a form gives; defaults are left out."""
    found = {
        "delimiter": _delimiter(form),
        "decimal_comma": form.ticked("decimal_comma"),
        "encoding": form.text("encoding"),
        "table": form.text("table"),
        "na": form.text("na").split(),
    }
    return {name: value for name, value in found.items() if value not in ("", False, [], "utf-8")}


def _given_texts(form: Form) -> dict[str, Any]:
    """Return what a form says, to show it again."""
    texts = {name: form.text(name) for name in ("data", "encoding", "na", "table")}
    return texts | {"delimiter": _delimiter(form), "decimal_comma": form.ticked("decimal_comma")}


def _delimiter(form: Form) -> str:
    """Return the delimiter of a form, which may be a space."""
    return form.fields.get("delimiter", [""])[0]


async def _screen(page: Page, given: Mapping[str, Any]) -> Response:
    """Return the first screen, with what was given in a form that was refused."""
    session, file = page.session, page.session.file
    folder = page.request.query_params.get("folder", "")
    messages = []
    try:
        entries = await page.work(folders.list_folder, session.start, folder)
    except REFUSALS as error:
        messages, folder = [message_of(error)], ""
        entries = await page.work(folders.list_folder, session.start, "")
    shown = {"delimiter": "", "decimal_comma": False, "encoding": "utf-8", "na": "", "data": "", "table": ""}
    if file is not None:
        job = file.state.job["input"]
        shown |= job | {"na": " ".join(map(str, job.get("na", ())))}
    shown |= given
    table = None if file is None else preview(session)
    return page.render(
        "open",
        422 if messages else 200,
        title="Open a file",
        messages=messages,
        start=session.start,
        folder=folder,
        parent=folder.rpartition("/")[0] if folder else None,
        entries=entries,
        data=shown["data"],
        given=shown,
        delimiters=DELIMITERS,
        table=table,
        records="" if file is None else f"{file.source.frame.height:,}",
    )


def preview(session: Session) -> dict[str, Any]:
    """Return the names of the columns and the first records as text; no records if that is switched off."""
    frame = session.require_file().source.frame
    columns = frame.columns
    if not session.preview:
        return {"columns": columns, "rows": None}
    numeric = [frame[name].dtype.is_numeric() for name in columns]
    rows = frame.head(SHOWN).select(pl.all().cast(pl.String, strict=False).fill_null("")).rows()
    return {
        "columns": columns,
        "rows": [
            [{"text": text, "numeric": is_number} for text, is_number in zip(row, numeric, strict=True)]
            for row in rows
        ],
    }


ROUTES = [
    Route("/open", show),
    Route("/open", choose, methods=["POST"]),
    Route("/open/sample", choose_sample, methods=["POST"]),
]
