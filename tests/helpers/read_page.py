"""A report as a reader gets it: its words, sections, tables and drawings."""

import json
import re
from html.parser import HTMLParser

from sdckit.report import report


class Read(HTMLParser):
    """The words of a page, its sections and the rows of its tables."""

    def __init__(self, page):
        super().__init__()
        self.words, self.sections, self.rows, self.tags = [], set(), [], []
        self.skipped = self.inside = False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        named = dict(attributes)
        self.skipped = tag in {"script", "style"}
        if tag == "section" and "id" in named:
            self.sections.add(named["id"])
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.inside = True
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.skipped = self.skipped and tag not in {"script", "style"}
        self.inside = self.inside and tag not in {"td", "th"}

    def handle_data(self, data):
        if self.skipped:
            return
        self.words.append(data)
        if self.inside:
            self.rows[-1][-1] += data.strip()

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def specs(page):
    found = re.search(r'<script type="application/json" id="specs">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1]) if found else {}


def bare(**parts):
    return report(title="A title", done=["What was done."], **parts)
