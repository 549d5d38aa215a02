"""The screen of edit rules: those found in the file, with their counts, and the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from starlette.responses import JSONResponse
from starlette.routing import Route

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
from sdckit.rules.discover import discovered
from sdckit.rules.parse import parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from sdckit.app.session import Session
    from sdckit.metrics.original import Original

SHOWN = 60  # most rules that are listed


class Checked(NamedTuple):
    """A line with a rule of the user: what it says about the file, or what is wrong with it."""

    text: str
    error: bool


async def show(request: Request) -> Response:
    """Show the rules of the file and of the job."""
    session = session_of(request)
    try:
        return await _screen(request)
    except REFUSALS as error:  # the roles do not fit
        session.tell(message_of(error).text, "error")
        return go_to(request, "roles")


async def _screen(
    request: Request, status: int = 200, form: Form | None = None, messages: Sequence[Message] = ()
) -> Response:
    """Return the screen of rules, with what a refused form says."""
    session = session_of(request)
    original = await session.work(session.original)
    found = await session.work(found_rules, session, original)
    listed = [one["rule"] for one in found]
    kept = session.require_file().state.job.get("rules", {}).get("rule", [])
    ticked = set(kept if form is None else ticked_rules(form, listed))
    own = [rule for rule in kept if rule not in listed] if form is None else own_rules(form)
    return render(
        request,
        "rules",
        status,
        title="Edit rules",
        messages=messages,
        found=[one | {"ticked": one["rule"] in ticked} for one in found],
        typed="\n".join(own),
        checks=await session.work(checked_rules, original, own),
    )


def found_rules(session: Session, original: Original) -> list[dict[str, Any]]:
    """Return the rules that hold in the file, found once for each set of variables."""
    prepared = session.require_file().prepared
    if "rules" not in prepared or prepared.get("rules of") != original.columns:
        rules = discovered(original.columns, original.values)[:SHOWN]
        complete = [~np.isnan(original.matrix(list(rule.columns))).any(axis=1) for rule in rules]
        prepared |= {
            "rules of": original.columns,
            "rules": [
                {"rule": rule.text, "text": f" holds in all {np.count_nonzero(seen):,} records"}
                for rule, seen in zip(rules, complete, strict=True)
            ],
        }
    found: list[dict[str, Any]] = prepared["rules"]
    return found


def ticked_rules(form: Form, listed: Sequence[str]) -> list[str]:
    """Return the ticked ones of the rules that were found in the file."""
    places = [int(word) for word in form.texts("found") if word.isdecimal()]
    return [listed[place] for place in places if place < len(listed)]


def own_rules(form: Form) -> list[str]:
    """Return the user's own rules in a form, one a line."""
    return [line.strip() for line in form.text("own").splitlines() if line.strip()]


def checked_rules(original: Original, rules: Sequence[str]) -> list[Checked]:
    """Return what each rule says about the file: how many records obey it, or what is wrong with it."""
    found = []
    for rule in rules:
        try:
            found.append(Checked(f"{rule}: {_obeyed_text(original, rule)}", error=False))
        except REFUSALS as error:
            found.append(Checked(message_of(error).text, error=True))
    return found


def _obeyed_text(original: Original, given: str) -> str:
    """Return how many records obey the rules in a text, which may be several such as 0 <= A <= B."""
    table = original.table
    if table is None:
        raise ValueError("the file is not there any more; open it again")
    rules = parsed(given, list(table.numeric_names))
    breaks = [rule.broken(list(original.matrix(list(rule.columns)).T)) for rule in rules]
    broken = int(np.any(breaks, axis=0).sum())
    if not broken:
        return f"all {original.n:,} records obey it"
    verb = "record breaks" if broken == 1 else "records break"
    return f"{broken:,} {verb} it of {original.n:,}; the release will obey it"


async def check(request: Request) -> Response:
    """Answer what the rules in the form say about the file, without keeping them."""
    session, form = session_of(request), await read_form(request)
    original = await session.work(session.original)
    checks = await session.work(checked_rules, original, own_rules(form))
    return JSONResponse({"checks": [one._asdict() for one in checks]})


async def keep(request: Request) -> Response:
    """Keep the ticked rules and the user's own, unless one of them is wrong."""
    session, form = session_of(request), await read_form(request)
    file = session.require_unchanged()
    if is_old(session, form):
        session.tell(OLD, "error")
        return go_to(request, "rules")
    original = await session.work(session.original)
    listed = [one["rule"] for one in await session.work(found_rules, session, original)]
    rules = [*ticked_rules(form, listed), *own_rules(form)]
    wrong = [one for one in await session.work(checked_rules, original, rules) if one.error]
    if wrong:
        return await _screen(request, 422, form, [Message("error", one.text) for one in wrong[:1]])
    job = {name: part for name, part in file.state.job.items() if name != "rules"}
    job |= {"rules": {"rule": list(dict.fromkeys(rules))}} if rules else {}
    try:
        await session.work(file.change, job, seen_by(form))
    except OSError as error:  # such as a full disk: what was written is shown again
        return await _screen(request, 422, form, [message_of(error)])
    session.announce()
    return go_to(request, "goal")


ROUTES = [
    Route("/rules", needs_file(show)),
    Route("/rules", needs_file(keep), methods=["POST"]),
    Route("/rules/check", needs_file(check), methods=["POST"]),
]
