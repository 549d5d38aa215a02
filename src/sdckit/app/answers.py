"""Answers of the page: the headers that each of them has, refusals, and faults without a word on them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import Message, Receive, Send

POLICY = b"content-security-policy"  # a handler may give its own
SECURITY_HEADERS: Mapping[bytes, bytes] = {
    POLICY: (
        b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
        b"object-src 'none'; img-src 'self' data:"
    ),
    b"cache-control": b"no-store",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
FAULT = "internal error"
DRAINING = 10.0  # seconds for which the rest of a refused request is read
DRAINED = 4 * 1024 * 1024  # bytes of it that are read


class Refused(Exception):  # noqa: N818 - a refusal is no error of ours
    """A request that is not served, with the status and the one line of the answer.

    Parameters
    ----------
    status, text
        Those of the answer.
    drained
        Read the rest of the request, so that a client that is still sending gets to read the answer.
    """

    def __init__(self, status: int, text: str, *, drained: bool = True) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.drained = drained


def with_security_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer with those that each has; none may open it to other sites."""
    given = [(bytes(name).lower(), bytes(value)) for name, value in headers]
    own_policy = any(name == POLICY for name, _ in given)
    kept = [
        (name, value)
        for name, value in given
        if (name not in SECURITY_HEADERS or name == POLICY) and not name.startswith(b"access-control-")
    ]
    return kept + [pair for pair in SECURITY_HEADERS.items() if not (own_policy and pair[0] == POLICY)]


class Answer:
    """The answer to one request; `send` is what the application that answers gets."""

    def __init__(self, receive: Receive, send: Send) -> None:
        """Take the functions of ASGI for this request."""
        self._receive = receive
        self._send = send
        self._started = False
        self._replaced = False

    async def send(self, message: Message) -> None:
        """Send a part of the application's answer; one of status 500 is replaced by one without details."""
        if self._replaced:
            return
        if message["type"] == "http.response.start":
            if message["status"] == 500:
                await self.fail()
                return
            self._started = True
            message = {**message, "headers": with_security_headers(message.get("headers", ()))}
        await self._send(message)

    async def fail(self) -> None:
        """Answer "internal error"; an answer that has begun is left incomplete, which ends the connection."""
        if not self._started:
            await self.whole(500, FAULT, "text/plain", {})
            self._replaced = True

    async def refuse(self, refusal: Refused) -> None:
        """Answer a refusal, then read the rest of the request for a while, and close the connection."""
        await self._start(refusal.status, refusal.text, "text/plain", {b"connection": b"close"})
        await self._send({"type": "http.response.body", "body": refusal.text.encode(), "more_body": True})
        if refusal.drained:
            await self._drain()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def whole(self, status: int, text: str, kind: str, headers: Mapping[bytes, bytes]) -> None:
        """Send a complete answer of our own."""
        await self._start(status, text, kind, headers)
        await self._send({"type": "http.response.body", "body": text.encode(), "more_body": False})

    async def _start(self, status: int, text: str, kind: str, headers: Mapping[bytes, bytes]) -> None:
        """Send status and headers of an answer of our own."""
        about = {
            b"content-type": f"{kind}; charset=utf-8".encode(),
            b"content-length": str(len(text.encode())).encode(),
        }
        self._started = True
        every = with_security_headers([*about.items(), *headers.items()])
        await self._send({"type": "http.response.start", "status": status, "headers": every})

    async def _drain(self) -> None:
        """Read the rest of the request and forget it; a client that sends much, or slowly, is left."""
        read, more = 0, True
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAINING):
                while more and read <= DRAINED:
                    message = await self._receive()
                    read += len(message.get("body", b""))
                    more = message.get("more_body", False)
