"""Pages of the documentation, read from Markdown: title, headings, links, text for the search, and HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from sdckit.app.anchors import anchors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from markdown_it.token import Token

BREAK = "<br>"  # the one tag that pages use, in cells of tables
COLOURS = HtmlFormatter(nowrap=True)
LEXERS = {"": "text", "sh": "bash"}
OUTSIDE = ("https://", "http://", "mailto:")


@dataclass
class Heading:
    """A heading, the anchor that leads to it, and the text below it up to the next one."""

    level: int
    anchor: str
    title: str
    words: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text below the heading, without line ends."""
        return " ".join(" ".join(self.words).split())


@dataclass
class Page:
    """A page: its file, the section of the navigation it is in, and what Markdown makes of its text."""

    path: Path
    section: str
    tokens: list[Token]
    headings: list[Heading]

    @property
    def title(self) -> str:
        """The first heading."""
        return self.headings[0].title

    @property
    def links(self) -> list[str]:
        """Targets of all links but those outside, and of all pictures, as none may come from outside."""
        inner = [child.attrs for token in self.tokens for child in token.children or ()]
        links = [str(one["href"]) for one in inner if "href" in one]
        pictures = [str(one["src"]) for one in inner if "src" in one]
        return pictures + [link for link in links if not link.startswith(OUTSIDE)]


def read_page(path: Path, section: str = "") -> Page:
    """Return a page; exit with an error if it does not begin with a heading of the first level."""
    tokens = _markdown().parse(path.read_text(encoding="utf-8"))
    if not tokens or tokens[0].tag != "h1":
        raise SystemExit(f"{path} has no title; begin it with a line such as '# Title'")
    places = [place for place, token in enumerate(tokens) if token.type == "heading_open"]
    names = anchors(tokens[place + 1].content for place in places)
    headings = []
    for place, name, after in zip(places, names, [*places[1:], len(tokens)], strict=True):
        tokens[place].attrSet("id", name)
        title = "".join(_texts(tokens[place + 1]))
        words = [word for token in tokens[place + 2 : after] for word in _texts(token)]
        headings.append(Heading(int(tokens[place].tag[1]), name, title, words))
    return Page(path, section, tokens, headings)


def html_of(page: Page, address: Callable[[str], str]) -> str:
    """Return a page as HTML; `address` returns where a link to another file of the site leads."""
    for token in page.tokens:
        for child in token.children or ():
            for name in ("href", "src"):
                link = str(child.attrs.get(name, ""))
                if link and not link.startswith(OUTSIDE):
                    child.attrSet(name, address(link))
    markdown = _markdown()
    html = str(markdown.renderer.render(page.tokens, markdown.options, {}))
    return html.replace(escape(BREAK), BREAK)


def _markdown() -> MarkdownIt:
    """Return a parser of plain Markdown with tables; HTML inside it is shown as text."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    markdown.add_render_rule("fence", _coloured)
    markdown.add_render_rule("heading_close", _heading_end)
    markdown.add_render_rule("table_open", lambda *_: '<div class="wide" tabindex="0"><table>\n')
    markdown.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return markdown


def _coloured(_renderer: Any, tokens: list[Token], place: int, *_rest: Any) -> str:
    """Return a block of code in colours, below the name of its file where the first line of it has one."""
    code, (language, _, name) = tokens[place].content, tokens[place].info.strip().partition(" ")
    if language == "python" and code.startswith(">>>"):
        language = "pycon"
    lexer = get_lexer_by_name(LEXERS.get(language, language), stripnl=False)
    title = f'<p class="file">{escape(name)}</p>' if name else ""
    return f'{title}<pre tabindex="0"><code>{highlight(code, lexer, COLOURS)}</code></pre>\n'


def _heading_end(_renderer: Any, tokens: list[Token], place: int, *_rest: Any) -> str:
    """Return the end of a heading, with a link to it."""
    opened = tokens[place - 2]
    sign = f'<a class="anchor" href="#{opened.attrs["id"]}" aria-label="Link to this heading">#</a>'
    return f"{sign if opened.tag != 'h1' else ''}</{opened.tag}>\n"


def _texts(token: Token) -> Iterator[str]:
    """Yield the words of a token and of those inside it."""
    if token.type in {"text", "code_inline", "fence", "code_block"}:
        yield token.content
    elif token.type in {"softbreak", "hardbreak"}:
        yield " "
    for child in token.children or ():
        yield from _texts(child)
