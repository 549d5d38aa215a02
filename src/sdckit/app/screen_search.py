"""The screen of the search: start it, follow it, stop it; what is measured is kept on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit.app.running import RunState
from sdckit.app.screen import Page, checked, kept, shown
from sdckit.app.screen_roles import undecided_text
from sdckit.app.session import describe
from sdckit.core.text import plural

if TYPE_CHECKING:
    from starlette.responses import Response

    from sdckit.app.session import Session

FINISHED = "The search is finished."
EARLIER = "A search for the job as it was before is running; stop it to search for this one."


async def show(page: Page) -> Response:
    """Show the state of the search."""
    session = page.session
    measured = await page.work(session.kept)
    found = progress_of(session)
    if not session.search.running and measured.choice is not None:
        found |= {"text": FINISHED, "share": 1.0, "percent": "100 %"}
    return page.render(
        "search",
        running=session.search.running,
        kept=bool(measured.points),
        progress=found,
        points_text=points_text(len(measured.points)),
    )


def points_text(count: int) -> str:
    """Return a sentence on the number of settings on the map."""
    return f"{count} {plural(count, 'setting')} measured." if count else "Nothing is measured yet."


def progress_of(session: Session) -> dict[str, Any]:
    """Return the progress of the search as the page shows it; nothing of one for another job."""
    state, current = session.search.state, session.search_is_current()
    if not current:
        state = RunState(state.running, state.stopping, step=EARLIER if state.running else "")
    share = min(max(state.share, 0.0), 1.0)
    return {
        "running": state.running,
        "share": share,
        "percent": f"{share:.0%}",
        "text": _progress_text(state, share),
        "methods": list(state.methods),
        "warnings": list(state.warnings),
    }


def _progress_text(state: RunState, share: float) -> str:
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


async def start(page: Page) -> Response:
    """Start the search, or go on with it; one that runs is left alone."""
    session, file = page.session, page.file
    found = await page.work(describe, file.source, file.state.roles)
    if text := undecided_text(found, file.state.job):
        return page.go_to("roles", text)
    if not session.search.running:
        await page.work(file.keep)
        session.start_search()
    return page.go_to("search")


async def stop(page: Page) -> Response:
    """Stop the search; its finished measurements are kept."""
    await page.session.search.stop()
    return page.go_to("search")


ROUTES = [
    shown("/search", show, back="roles"),
    kept("/search/start", start),
    checked("/search/stop", stop),
]
