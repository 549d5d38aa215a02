"""The page in a real browser: the command in a folder of its own, and a browser that reaches nothing else."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from browser import DESKTOP

WAIT = 120_000  # milliseconds that a busy machine may take for one step


class Command:
    """A running `sdckit app` in a folder."""

    def __init__(self, folder, *options, state=None):
        self.folder = folder
        env = os.environ | {"XDG_STATE_HOME": str(state or folder.parent / "state")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sdckit.cli", "app", "--no-browser", *options],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.address = self.process.stdout.readline().strip()
        self.own = self.address.partition("/open")[0]

    def stop(self, sign=signal.SIGINT):
        """End the command and return what it printed besides the address."""
        self.process.send_signal(sign)
        printed, said = self.process.communicate(timeout=60)
        return printed + said


@dataclass
class Visit:
    """A tab that shows the page, and all it did that it should not have done."""

    page: Any
    complaints: list = field(default_factory=list)

    def go(self, screen):
        """Open a screen by its link among the steps, and wait until its script has run."""
        self.page.locator(f'nav a[href$="/{screen}"]').click()
        self.ready(screen)

    def ready(self, screen):
        """Wait for a screen and its script."""
        self.page.wait_for_selector(f'body[data-screen="{screen}"][data-ready="yes"]', timeout=WAIT)

    def press(self, name):
        """Press a button that sends a form, and wait for the next screen."""
        with self.page.expect_navigation():
            self.page.get_by_role("button", name=name, exact=True).click()
        self.page.wait_for_selector('body[data-ready="yes"]', timeout=WAIT)

    def messages(self):
        """Return the lines above the screen."""
        return self.page.locator("#messages .message").all_inner_texts()

    def copied(self, name):
        """Return a text that the screen offers to copy."""
        return self.page.locator(f"#copy-{name}").text_content()


@contextmanager
def visited(browser, command, viewport=DESKTOP, **options):
    """Open the page by its address; requests to any other host are refused and recorded."""
    context = browser.new_context(viewport=viewport, **options)
    try:
        yield tab(context, command, command.address)
    finally:
        context.close()


def tab(context, command, address, screen="open"):
    """Open an address in a new tab of a browser, and wait for its screen."""
    here = Visit(context.new_page())
    here.page.route("**/*", lambda route: _only(route, command.own, here.complaints))
    here.page.on("console", lambda message: here.complaints.append(f"{message.type}: {message.text}"))
    here.page.on("pageerror", lambda error: here.complaints.append(f"error: {error}"))
    here.page.goto(address)
    here.ready(screen)
    return here


class Served:
    """The page of a folder in one browser, whose tabs share the cookie; the command can be started again."""

    def __init__(self, browser, folder, *options):
        self.browser, self.folder = browser, folder
        self.start(*options)

    def start(self, *options):
        """Start the command, and open its address."""
        self.command = Command(self.folder, *options)
        copying = ["clipboard-read", "clipboard-write"]
        self.context = self.browser.new_context(viewport=DESKTOP, permissions=copying)
        self.first = tab(self.context, self.command, self.command.address)
        self.root = self.first.page.url.rpartition("/")[0]

    def stop(self):
        """Close the browser's tabs, and end the command; return what it printed."""
        self.context.close()
        return self.command.stop()

    def tab(self, screen="open"):
        """Open a screen in another tab."""
        return tab(self.context, self.command, f"{self.root}/{screen}", screen)


def _only(route, own, complaints):
    if route.request.url.startswith((f"{own}/", "data:")):
        route.continue_()
    else:
        complaints.append(f"request for {route.request.url}")
        route.abort()
