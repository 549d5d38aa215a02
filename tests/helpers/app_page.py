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


def tab(context, command, address):
    """Open an address in a new tab of a browser."""
    here = Visit(context.new_page())
    here.page.route("**/*", lambda route: _only(route, command.own, here.complaints))
    here.page.on("console", lambda message: here.complaints.append(f"{message.type}: {message.text}"))
    here.page.on("pageerror", lambda error: here.complaints.append(f"error: {error}"))
    here.page.goto(address)
    here.ready("open")
    return here


def _only(route, own, complaints):
    if route.request.url.startswith((f"{own}/", "data:")):
        route.continue_()
    else:
        complaints.append(f"request for {route.request.url}")
        route.abort()
