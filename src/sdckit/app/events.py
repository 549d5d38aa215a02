"""The event stream: progress of searches and releases, and changes of the job, as they happen."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse
from starlette.routing import Route

from sdckit.app.screen import session_of, version_of
from sdckit.app.screen_search import progress_of
from sdckit.core.checks import printable_content

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from sdckit.app.session import Session

HEARTBEAT = 15.0  # seconds after which a comment shows that the stream is alive
PAUSE = 0.5  # seconds between two messages at least


def _now(session: Session) -> dict[str, dict[str, Any]]:
    """Return what the streams show, by the name of the event."""
    return {
        "state": {"version": version_of(session)},
        "search": progress_of(session),
        "release": session.release.shown(),
    }


async def _messages(request: Request, session: Session) -> AsyncIterator[str]:
    """Yield what has changed since the last message, until the browser goes away."""
    last: dict[str, dict[str, Any]] = {}
    yield "retry: 2000\n\n"
    while not await request.is_disconnected():
        seen, now = session.moment(), _now(session)
        for name, content in now.items():
            if last.get(name) != content:
                yield f"event: {name}\ndata: {json.dumps(printable_content(content))}\n\n"
        last = now
        try:
            async with asyncio.timeout(HEARTBEAT):
                await session.next_change(seen)
        except TimeoutError:
            yield ": alive\n\n"
        await asyncio.sleep(PAUSE)


async def stream(request: Request) -> Response:
    """Answer with the event stream."""
    return StreamingResponse(_messages(request, session_of(request)), media_type="text/event-stream")


ROUTES = [Route("/events", stream)]
