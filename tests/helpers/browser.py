"""A page in a real browser without a network: what it says on the console, what it asks for."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@dataclass
class Opened:
    """A page that has drawn its charts, and all it did that it should not have done."""

    page: Any
    complaints: list = field(default_factory=list)


@contextmanager
def opened(browser, path, viewport=DESKTOP, drawn="body[data-drawn=all]"):
    """Open a file with the network off; any request but for the file itself is refused and recorded.

    `drawn` is the selector of what is there when the page is ready.
    """
    context = browser.new_context(viewport=viewport, offline=True)
    try:
        here = Opened(context.new_page())
        here.page.route("**/*", lambda route: _only(route, path.as_uri(), here.complaints))
        here.page.on("console", lambda message: here.complaints.append(f"{message.type}: {message.text}"))
        here.page.on("pageerror", lambda error: here.complaints.append(f"error: {error}"))
        here.page.goto(path.as_uri())
        here.page.wait_for_selector(drawn)
        yield here
    finally:
        context.close()


def _only(route, address, complaints):
    if route.request.url.split("#")[0] == address:
        route.continue_()
    else:
        complaints.append(f"request for {route.request.url}")
        route.abort()


def cells(page, selector):
    """The words of a table's rows."""
    rows = page.locator(selector)
    return [rows.nth(place).locator("td, th").all_inner_texts() for place in range(rows.count())]
