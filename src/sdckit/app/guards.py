"""Answers of the page: the headers that each of them has, refusals, and faults without a word on them."""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sdckit.terminal import print_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


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


HOST = "127.0.0.1"
COOKIE = "sdckit"
OPEN = "/open"  # where the token is exchanged for the cookie
EVENTS = "events"  # the event stream, below the prefix
TARGET = 8 * 1024  # bytes of a request's path and query
HEADERS = 16 * 1024  # bytes of a request's headers
BODY = 1024 * 1024  # bytes of a request's body
SECONDS = 10.0  # that a request's body may take
METHODS = ("GET", "HEAD", "POST")
FORM = b"application/x-www-form-urlencoded"  # the only kind of body that the page sends


@dataclass
class Address:
    """Where the page is, and the secrets that open it: fresh ones for every start.

    Attributes
    ----------
    port
        The port of 127.0.0.1 that the page listens on.
    token
        What the printed address holds; it is exchanged for the cookie once.
    prefix
        First part of every path, so that the cookie is sent to no server on another port of this machine.
    cookie
        Value of the cookie.
    used
        True when the token was exchanged.
    """

    port: int
    token: str = field(default_factory=secrets.token_urlsafe, repr=False)
    prefix: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    cookie: str = field(default_factory=secrets.token_urlsafe, repr=False)
    used: bool = False

    @property
    def host(self) -> str:
        """The only value of the header Host that is served."""
        return f"{HOST}:{self.port}"

    @property
    def origin(self) -> str:
        """The only origin whose requests are served."""
        return f"http://{self.host}"

    @property
    def url(self) -> str:
        """The address that is printed, token included."""
        return f"{self.origin}{OPEN}?token={self.token}"

    @property
    def root(self) -> str:
        """The path that all others are below, without a slash at its end."""
        return f"/{self.prefix}"

    def use_token(self, query: bytes) -> bool:
        """Return True, once, for the query that holds the token."""
        right = secrets.compare_digest(query, f"token={self.token}".encode())
        first, self.used = not self.used, self.used or right
        return right and first

    def admits(self, cookies: bytes) -> bool:
        """Return True if one of the cookies of a request is ours; other servers may have set some, too."""
        name, mine = COOKIE.encode(), self.cookie.encode()
        pairs = [pair.strip().partition(b"=") for pair in cookies.split(b";")]
        return any(key == name and secrets.compare_digest(value, mine) for key, _, value in pairs)


class Asked:
    """What the guards look at in a request."""

    def __init__(self, scope: Scope, address: Address) -> None:
        """Take the path, the method and the headers of a request from its scope."""
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope.get("query_string", b"")
        self.raw_path: bytes = scope.get("raw_path") or self.path.encode("utf-8", "surrogatepass")
        self.headers: list[tuple[bytes, bytes]] = [(name.lower(), value) for name, value in scope["headers"]]
        events = f"{address.root}/{EVENTS}"
        self.stream: bool = self.path == events or b"text/event-stream" in self.joined(b"accept").lower()
        self.opens: bool = self.path == OPEN

    def joined(self, name: bytes) -> bytes:
        """Return all values of a header, empty if there is none."""
        return b"; ".join(value for key, value in self.headers if key == name)

    def single(self, name: bytes) -> bytes | None:
        """Return the value of a header, None if there is none; a second one is refused."""
        values = [value for key, value in self.headers if key == name]
        if len(values) > 1:
            raise Refused(400, "a header came twice")
        return values[0] if values else None


class Guard:
    """An ASGI application that checks each request and passes it on to another application.

    The inner application gets the scope with `root_path` set to the prefix, and `path` as it came, as ASGI
    has it: Starlette's routes are those without the prefix; links are `request.scope["root_path"] + "/map"`.
    The body of a request was read, in whole, before the inner application gets it. A response of status 500,
    or an error, becomes "internal error". Pages with a form need `<meta name="referrer"
    content="same-origin">`: by the policy of the header, no-referrer, browsers send "null" as the origin of a
    form, which is refused.

    Parameters
    ----------
    app
        The application that answers.
    address
        Where the page is, and its secrets.

    Attributes
    ----------
    last
        Time (`time.monotonic`) of the last request that was served, event streams apart.
    active
        Number of requests that are being answered, event streams apart.
    """

    def __init__(self, app: ASGIApp, address: Address) -> None:
        self.app = app
        self.address = address
        self.last: float = time.monotonic()
        self.active: int = 0
        self._streams: set[asyncio.Task[object]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and answer it; the signature is that of ASGI."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._answer(scope, receive, Answer(receive, send))

    def end_streams(self) -> None:
        """End all event streams, which would stay open until the browser leaves."""
        for task in self._streams:
            task.cancel()

    async def _answer(self, scope: Scope, receive: Receive, answer: Answer) -> None:
        """Serve a request that passes all checks; refuse another one."""
        try:
            asked = Asked(scope, self.address)
            check_sizes(asked)
            check_origin(asked, self.address)
            check_path(asked, self.address)
            receive = await whole_body(asked, receive)
            if asked.opens:
                await self._exchange(asked, answer)
            else:
                await self._serve(asked, {**scope, "root_path": self.address.root}, receive, answer.send)
        except Refused as refusal:
            await answer.refuse(refusal)
        except Exception as error:  # noqa: BLE001 - whatever a handler raised
            print_fault(error)
            await answer.fail()

    async def _exchange(self, asked: Asked, answer: Answer) -> None:
        """Answer the right token, once, by the cookie and a page that goes on to the first screen."""
        if not self.address.use_token(asked.query):
            raise Refused(403, "this address is wrong or was used before; start `sdckit app` again")
        self.last = time.monotonic()
        home = f"{self.address.root}/"
        page = (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>sdckit</title>'
            f'<link rel="icon" href="data:,"><meta http-equiv="refresh" content="0; url={home}"></head>'
            f'<body><a href="{home}">Go on to sdckit</a></body></html>'
        )
        cookie = f"{COOKIE}={self.address.cookie}; HttpOnly; SameSite=Strict; Path={home}"
        await answer.whole(200, page, "text/html", {b"set-cookie": cookie.encode()})

    async def _serve(self, asked: Asked, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; count it as work while it lasts, unless it is an event stream."""
        if asked.stream:
            task = asyncio.current_task()
            assert task is not None  # noqa: S101 - ASGI runs in a task
            self._streams.add(task)
            try:
                await self.app(scope, receive, send)
            finally:
                self._streams.discard(task)
            return
        self.active += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.active -= 1
            self.last = time.monotonic()


def check_sizes(asked: Asked) -> None:
    """Refuse a path or headers that are too long, and requests to change the protocol."""
    if len(asked.raw_path) + 1 + len(asked.query) > TARGET:
        raise Refused(414, f"the address is longer than {TARGET} bytes")
    if sum(len(name) + len(value) + 4 for name, value in asked.headers) > HEADERS:
        raise Refused(431, f"the headers are longer than {HEADERS} bytes")
    if asked.joined(b"upgrade"):
        raise Refused(403, "there are no web sockets here")


def check_origin(asked: Asked, address: Address) -> None:
    """Refuse a request under another host's name, and one that another site made the browser send."""
    if asked.single(b"host") != address.host.encode():
        raise Refused(421, "this host is not served")
    origin, site = asked.single(b"origin"), asked.single(b"sec-fetch-site")
    if origin not in {None, address.origin.encode()}:
        raise Refused(403, "requests of other sites are not served")
    if site is None:
        changes = asked.method not in {"GET", "HEAD"}
        if origin is None and (changes or asked.stream):
            raise Refused(403, "a request must say where it comes from")
    elif site != b"same-origin" and not _is_visit(asked, site):
        raise Refused(403, "requests of other sites are not served")


def _is_visit(asked: Asked, site: bytes) -> bool:
    """Return True if a user typed or chose the address; for /open also if a file of this machine led there.

    Browsers call a file another site; unlike a page of the web it is never named as the referrer.
    """
    goes = asked.method == "GET" and asked.single(b"sec-fetch-mode") == b"navigate"
    document = asked.single(b"sec-fetch-dest") in {None, b"document"}
    from_file = asked.opens and site == b"cross-site" and asked.single(b"referer") is None
    return goes and document and (site == b"none" or from_file)


def check_path(asked: Asked, address: Address) -> None:
    """Refuse a path that leads nowhere, one below the prefix without the cookie, and odd methods."""
    _, first, *rest = [*asked.path.split("/"), ""]
    odd = any(part in {".", ".."} for part in rest) or not asked.path.isprintable() or "\\" in asked.path
    right = secrets.compare_digest(first.encode("utf-8", "replace"), address.prefix.encode())
    below = asked.path.startswith("/") and right and len(rest) > 1 and not odd
    if not asked.opens and not (below and address.admits(asked.joined(b"cookie"))):
        raise Refused(403, "open the page by the address that `sdckit app` printed")
    if asked.method not in (METHODS[:1] if asked.opens else METHODS):
        raise Refused(405, "this method is not served here")


async def whole_body(asked: Asked, receive: Receive) -> Receive:
    """Return a function that gives the whole body; refuse one that is no form, too long or too slow."""
    length = asked.single(b"content-length")
    if length is not None and asked.joined(b"transfer-encoding"):
        raise Refused(400, "the length of the body is unclear")
    if asked.method != "POST":
        if length not in {None, b"0"} or asked.joined(b"transfer-encoding"):
            raise Refused(400, "only a form may have a body")
        return receive
    if (asked.single(b"content-type") or FORM).partition(b";")[0].strip().lower() != FORM:
        raise Refused(415, "only a form may be sent")
    if length is not None and not (length.isdigit() and len(length) < 12 and int(length) <= BODY):
        raise Refused(413, f"the body is longer than {BODY} bytes")
    try:
        async with asyncio.timeout(SECONDS):
            body = await _read_body(receive)
    except TimeoutError:
        raise Refused(408, f"the body took longer than {SECONDS:g} seconds", drained=False) from None
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        """Return the body at first, then what the server says, such as that the browser left."""
        return messages.pop() if messages else await receive()

    return again


async def _read_body(receive: Receive) -> bytes:
    """Return the body of a request; refuse it as soon as it is too long."""
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise Refused(400, "the request ended early", drained=False)
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > BODY:
            raise Refused(413, f"the body is longer than {BODY} bytes")
    return bytes(body)
