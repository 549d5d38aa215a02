"""Jobs on small files as the page opens them, and the panels of some of their settings."""

import html
import json
import re
from html.parser import HTMLParser

from sdckit.app.job import open_job
from sdckit.app.panel import make_panel
from sdckit.request.toml import check_job
from secret_bytes import entropy

SECRET = entropy(16)
SPEC = re.compile(r' data-spec="([^"]*)"')


class Opened:
    """A file with its job; `panel` shows a setting of it."""

    def __init__(self, folder, frame, *, search=None, output=None, **sections):
        frame.write_csv(folder / "data.csv")
        content = {
            "command": "recommend",
            "input": {"data": "data.csv"} | sections.pop("input", {}),
            "search": {"max_risk": {"linkage": 0.5}} | (search or {}),
            "output": {"output": "masked.csv"} | (output or {}),
            **sections,
        }
        self.frame, self.job = frame, open_job(check_job(content, folder))
        self.original = self.job.prepare()

    def panel(self, method="mdav", secret=SECRET, **parameters):
        return make_panel(self.job, self.original, method, parameters, secret)


def charts(fragment):
    """The specifications of all charts of a fragment."""
    return [json.loads(html.unescape(text)) for text in SPEC.findall(fragment)]


def as_page(fragment):
    """A fragment with its charts in scripts, where the search for leaks reads them."""
    scripts = [f'<script type="application/json">{json.dumps(one)}</script>' for one in charts(fragment)]
    return "\n".join([SPEC.sub("", fragment), *scripts])


class Elements(HTMLParser):
    """All start tags of a fragment with their attributes; an end tag must be that of the open element."""

    EMPTY = ("rect", "br")

    def __init__(self, fragment):
        super().__init__()
        self.found, self.open = [], []
        self.feed(fragment)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
