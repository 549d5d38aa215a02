"""The screen of the search: start it, follow it, stop it; what is measured is kept on disk."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from sdckit.app.screen import (
    OLD,
    REFUSALS,
    go_to,
    is_old,
    message_of,
    needs_file,
    read_form,
    render,
    session_of,
)
from sdckit.app.screen_roles import undecided_text
from sdckit.app.search import SearchState
from sdckit.app.session import describe
from sdckit.core.checks import plural

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from sdckit.app.session import Session

FINISHED = "The search is finished."
EARLIER = "A search for the job as it was before is running; stop it to search for this one."


async def show(request: Request) -> Response:
    """Show the state of the search."""
    session = session_of(request)
    try:
        kept = await session.work(session.kept)
    except REFUSALS as error:
        session.tell(message_of(error).text, "error")
        return go_to(request, "roles")
    found = progress_of(session)
    if not session.search.running and kept.choice is not None:
        found |= {"text": FINISHED, "share": 1.0, "percent": "100 %"}
    return render(
        request,
        "search",
        title="Search",
        running=session.search.running,
        kept=bool(kept.points),
        progress=found,
        points_text=points_text(len(kept.points)),
    )


def points_text(count: int) -> str:
    """Return a sentence on the number of settings on the map."""
    return f"{count} {plural(count, 'setting')} measured." if count else "Nothing is measured yet."


def progress_of(session: Session) -> dict[str, Any]:
    """Return the progress of the search as the page shows it; nothing of one for another job."""
    state, current = session.search.state, session.search_is_current()
    if not current:
        state = SearchState(state.running, state.stopping, step=EARLIER if state.running else "")
    share = min(max(state.share, 0.0), 1.0)
    return {
        "running": state.running,
        "share": share,
        "percent": f"{share:.0%}",
        "text": _progress_text(state, share),
        "methods": [asdict(one) for one in state.methods],
        "warnings": list(state.warnings),
    }


def _progress_text(state: SearchState, share: float) -> str:
    """Return a sentence on a running, stopped or failed search."""
    if state.running and state.stopping:
        return "Stopping …"
    if state.step == EARLIER:
        return EARLIER
    if state.running:
        left = state.seconds_left
        return f"{share:.0%} done" + ("." if left is None else f", about {_time_text(left)} left.")
    outcomes = {
        "error": f"The search failed: {state.error}",
        "stopped": "The search was stopped; what it measured is kept.",
        "done": FINISHED,
    }
    return outcomes.get(state.outcome, "The search is not running.")


def _time_text(seconds: float) -> str:
    """Return a time as a person says it."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{round(seconds / 60)} minutes"


async def start(request: Request) -> Response:
    """Start the search, or go on with it; one that runs is left alone."""
    session, form = session_of(request), await read_form(request)
    file = session.require_unchanged()
    if is_old(session, form):
        session.tell(OLD, "error")
        return go_to(request, "search")
    found = await session.work(describe, file.source, file.state.roles)
    if text := undecided_text(found, file.state.job):
        session.tell(text, "error")
        return go_to(request, "roles")
    if not session.search.running:
        await session.work(file.keep)
        session.start_search()
        session.announce()
    return go_to(request, "search")


async def stop(request: Request) -> Response:
    """Stop the search; its finished measurements are kept."""
    session = session_of(request)
    await session.search.stop()
    session.announce()
    return go_to(request, "search")


ROUTES = [
    Route("/search", needs_file(show)),
    Route("/search/start", needs_file(start), methods=["POST"]),
    Route("/search/stop", needs_file(stop), methods=["POST"]),
]
