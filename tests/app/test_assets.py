"""The documentation inside the page: its links lead somewhere, its HTML is text, all of it is shipped."""

import re
import tomllib
from pathlib import Path

import pytest

from cases import each
from page_client import Direct
from sdckit.app import pages as assets
from sdckit.app.pages import Session, make_app

HERE = Path(__file__).parents[2]


@pytest.fixture
def ask(tmp_path):
    """A function that returns status and text of an address, without the guards."""

    def answer(path):
        got = Direct(make_app(Session(tmp_path))).navigate(path)
        return got.status, got.text

    return answer


def test_links_of_the_documentation_lead_to_pages_and_headings_that_are_there():
    shown = {
        name: assets.as_html(path.read_text(encoding="utf-8")) for name, path in assets.doc_files().items()
    }
    for name, html in shown.items():
        links = [one for one in re.findall(r'href="([^"]*)"', html) if not one.startswith("https://")]
        for target, _, heading in (link.partition("#") for link in links):
            assert not heading or f'id="{heading}"' in shown[target or name], (name, target, heading)
            assert not target or target in assets.doc_files(), (name, target)


@each(
    ("text", "html"),
    [
        ("[risk](risk.md)", '<a href="risk" rel="noreferrer">risk</a>'),
        ("[risk](risk.md#facts)", '<a href="risk#facts" rel="noreferrer">risk</a>'),
        ("[up](#facts)", '<a href="#facts" rel="noreferrer">up</a>'),
        ("[R](https://r-project.org)", '<a href="https://r-project.org" rel="noreferrer">R</a>'),
        ("[all](../README.md), [risk](risk)", "all, risk"),
        ("[*a*](figures/a.csv) [risk](risk.md)", '<em>a</em> <a href="risk" rel="noreferrer">risk</a>'),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("![the <map>](app-map.png)", "<em>Picture: the &lt;map&gt;</em>"),
        ("a <b onclick=x>bold</b>", "a &lt;b onclick=x&gt;bold&lt;/b&gt;"),
        ("<script>x</script>", "&lt;script&gt;x&lt;/script&gt;"),
    ],
)
def test_markdown_as_html(text, html):
    assert assets.as_html(text) == f"<p>{html}</p>\n"


def test_lines_in_cells_of_tables_are_broken():
    assert "<td>a<br>b</td>" in assets.as_html("| x |\n|---|\n| a<br>b |\n")


def test_headings_can_be_linked_to():
    assert '<h2 id="what-differs-and-why">' in assets.as_html("## What differs, and `why`?")


def test_pages_of_the_documentation_are_shown(ask):
    status, text = ask("/docs/methods")
    assert status == 200
    assert "How data can be masked" in text


@pytest.mark.parametrize(
    "path", ["docs/unknown", "docs/methods.md", "docs/..", "docs/figures", "static/..", "static/page.css"]
)
def test_other_names_are_not_found(ask, path):
    assert ask(f"/{path}") == (404, "not found")


def test_every_page_has_a_name_of_its_own_and_is_shipped():
    assert len(assets.doc_files()) == len(list((HERE / "docs").rglob("*.md")))
    wheel = tomllib.loads((HERE / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["only-include"] == ["src/sdckit", "docs"]
    assert all(not pattern.endswith(".md") for pattern in wheel["exclude"])


def test_links_of_the_screens_lead_to_pages_that_are_shown():
    texts = [path.read_text() for path in (HERE / "src/sdckit/app/templates").glob("*.html")]
    named = {name for text in texts for name in re.findall(r'own\.help\(.*, root, "([a-z-]+)[#"]\)', text)}
    assert named
    assert named <= set(assets.doc_files())


def test_equal_headings_have_anchors_of_their_own():
    assert re.findall(r'id="(.*?)"', assets.as_html("## Ties\n\n## Ties\n\n## ties?")) == [
        "ties",
        "ties-1",
        "ties-2",
    ]
