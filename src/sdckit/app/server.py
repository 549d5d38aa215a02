"""The server of the page: uvicorn without logs, which ends slow connections, and itself when not in use."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from sdckit.app.guards import DRAINED, HEADERS, SECONDS, SECURITY_HEADERS
from sdckit.terminal import print_fault

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from types import FrameType

    from sdckit.app.guards import Guard

WAITING = "the running work is finished first; Ctrl-C again stops it"
CONNECTIONS = 500  # that may be open at once; further ones are closed at once
GRACE = 2  # seconds that answers may take after the server was asked to end
TICKS = 10  # of uvicorn's main loop in a second
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # that end the page, where the system has them
_TEXT = b"this is no request that can be read"
_UNREADABLE = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", str(len(_TEXT)).encode()),
    (b"connection", b"close"),
    *SECURITY_HEADERS.items(),
]
_END = h11.EndOfMessage()
# No request and no error is logged, as both may hold what the file holds; faults are printed by ourselves.
SILENCE: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"none": {"class": "logging.NullHandler"}},
    "loggers": {
        name: {"handlers": ["none"], "level": "CRITICAL", "propagate": False}
        for name in ("uvicorn", "asyncio")
    },
}


class PatientProtocol(H11Protocol):
    """A connection that is closed if it sends no complete head of a request within ten seconds.

    uvicorn's own limits give none of this: they begin with the first complete head, and its answers to what
    is no request, or beyond `limit_concurrency`, lack the headers of `answers.py`.
    """

    _deadline: asyncio.TimerHandle | None = None
    _refused = False
    _forgotten = 0  # bytes that came after the refusal

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request; close the connection if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle what has arrived; stop waiting if the head of a request is complete."""
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._wait_for_head()
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        """Handle data; of what a client goes on to send after a refusal, some is read and forgotten."""
        if not self._refused:
            super().data_received(data)
            return
        self._forgotten += len(data)
        if self._forgotten > DRAINED:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's text, which is not sent
        """Refuse what is no request; read on until the client leaves, so that it gets to read the answer."""
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.abort()  # in the middle of an answer
            return
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        for event in (h11.Response(status_code=400, headers=_UNREADABLE), h11.Data(data=_TEXT), _END):
            self.transport.write(self.conn.send(event) or b"")
        self._refused = True
        self.transport.write_eof()
        self._wait_for_head()

    def _wait_for_head(self) -> None:
        """Close the connection in ten seconds, unless the head of a request is complete before."""
        self._stop_waiting()
        self._deadline = self.loop.call_later(SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        """Let the connection stay open."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class PageServer(Server):
    """A server that ends with a signal, or when `is_over`, which is asked every second, says so.

    Parameters
    ----------
    guard
        The application, which ends its event streams when the server ends.
    is_over
        Whether the page has been idle for long enough.
    unfinished
        Whether work is running that the first signal waits for; a second signal does not.

    Attributes
    ----------
    signals
        Signals that were received; they are not raised again.
    """

    def __init__(
        self, guard: Guard, is_over: Callable[[], bool], unfinished: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(_config(guard))
        self.unfinished = unfinished
        self.guard = guard
        self.is_over = is_over
        self.signals: list[int] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve; errors outside of requests are printed as those of handlers are."""
        asyncio.get_running_loop().set_exception_handler(_print_loop_fault)
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Return True if the server is to end."""
        if counter % TICKS == 0 and (self.is_over() or (self.signals and not self.unfinished())):
            self.should_exit: bool = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the event streams, wait a little for other answers, and close all connections."""
        self.guard.end_streams()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals end the server inside of the `with` block; only the main thread gets any."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [number for name in SIGNALS if (number := getattr(signal, name, None)) is not None]
        heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self.handle_exit) for number in heeded}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of a handler
        """Note a signal and end the server, after unfinished work; a second one waits for nothing."""
        self.signals.append(sig)
        if len(self.signals) == 1 and self.unfinished():
            print(WAITING, file=sys.stderr)  # noqa: T201 - a line of our own
            return
        self.force_exit: bool = self.should_exit
        self.should_exit = True


def _config(guard: Guard) -> Config:
    """Return uvicorn's settings: HTTP/1.1 by h11, no web sockets, no log, no header of a proxy believed."""
    return Config(
        guard,
        loop="asyncio",
        http=PatientProtocol,
        ws="none",
        interface="asgi3",
        lifespan="on",
        log_config=SILENCE,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=HEADERS,
    )


def _print_loop_fault(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Print one line on an error that no request is waiting for."""
    with suppress(KeyError):
        print_fault(context["exception"])
