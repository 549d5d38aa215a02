"""Build the documentation site: `python tools/make_site.py [FOLDER]`, by default into `site`.

Every link and anchor inside the site, and every one of README.md, must lead somewhere, or the build fails.
The pages load nothing from outside and open from the file system; their style and script are in `tools/site`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sdckit import __version__
from site_pages import Page, html_of, read_page

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent.parent
OWN = HERE / "tools" / "site"
MARK = ".sdckit-site"  # stands in a folder that this program wrote, and may delete
Config = dict[str, list[dict[str, list[str] | str]]]


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the folder that the command line names; `--help` prints what this program does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE / "site", help="folder to write")
    return parser.parse_args(words)


def main(target: Path) -> None:
    """Write the site into a folder, in place of one that was written before."""
    pages = read_pages(tomllib.loads((OWN / "site.toml").read_text(encoding="utf-8")))
    wrong = broken_links([*pages, read_page(HERE / "README.md")], {page.path: page for page in pages})
    if wrong:
        raise SystemExit("\n".join(["these links lead nowhere:", *wrong]))
    if target.exists() and any(target.iterdir()) and not (target / MARK).exists():
        raise SystemExit(f"'{target}' is not empty and no site; name another folder")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / MARK).touch()
    for name in ("site.css", "site.js"):
        shutil.copy(OWN / name, target / name)
    copy_files(pages, target)
    write_pages(pages, target)
    index = f"window.searchIndex = {json.dumps(search_index(pages), ensure_ascii=False)};\n"
    (target / "search-index.js").write_text(index, encoding="utf-8")


def read_pages(config: Config) -> list[Page]:
    """Return all pages in the order of the navigation; exit with an error for one that no section has."""
    pages = [
        read_page(path, str(section["title"])) for section in config["sections"] for path in _files(section)
    ]
    left = set((HERE / "docs").rglob("*.md")) - {page.path for page in pages}
    if left:
        raise SystemExit(
            f"no section of tools/site/site.toml has {', '.join(sorted(map(str, left)))}; add one"
        )
    return pages


def _files(section: dict[str, list[str] | str]) -> list[Path]:
    """Return the files of a section: those named, in their order, then the others of its folder."""
    if "folder" not in section:
        return [HERE / name for name in section["pages"] if (HERE / name).exists()]
    known = list(section["pages"])
    places = {name: place for place, name in enumerate(known)}
    found = sorted((HERE / str(section["folder"])).glob("*.md"))
    return sorted(found, key=lambda path: places.get(path.stem, len(known)))


def broken_links(sources: list[Page], pages: dict[Path, Page]) -> list[str]:
    """Return a line for each link of some pages to a file or heading that the site does not have."""
    wrong = []
    for source in sources:
        for link in source.links:
            name, _, anchor = link.partition("#")
            path = (source.path.parent / name).resolve() if name else source.path
            page = pages.get(path, source if path == source.path else None)
            known = {heading.anchor for heading in page.headings} if page else set()
            found = path.is_file() and (page is not None or is_shown(path) or source.path not in pages)
            if not link or not found or (anchor and anchor not in known):
                wrong.append(f"{source.path.relative_to(HERE)}: {link}")
    return wrong


def is_shown(path: Path) -> bool:
    """Return True for a file beside the pages, such as a picture, which the site copies."""
    return path.is_relative_to(HERE / "docs") and path.is_file() and path.suffix != ".md"


def copy_files(pages: list[Page], target: Path) -> None:
    """Copy the pictures and tables that pages link to."""
    linked = {(page.path.parent / link.partition("#")[0]).resolve() for page in pages for link in page.links}
    for path in filter(is_shown, linked):
        copy = target / path.relative_to(HERE / "docs")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)


def address(path: Path) -> str:
    """Return where a page or another file stands in the site."""
    docs = HERE / "docs"
    own = path.relative_to(docs if path.is_relative_to(docs) else HERE)
    return (own.with_suffix(".html") if own.suffix == ".md" else own).as_posix()


def lead(root: str, source: Path, link: str) -> str:
    """Return the address for a link of a file, from a page that reaches the top of the site by `root`."""
    name, mark, anchor = link.partition("#")
    return (root + address((source.parent / name).resolve()) if name else "") + mark + anchor


def write_pages(pages: list[Page], target: Path) -> None:
    """Write each page, with the navigation, its own headings, and links to the pages before and after it."""
    templates = Environment(
        loader=FileSystemLoader(OWN), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = templates.get_template("page.html")
    sections = {page.section: [one for one in pages if one.section == page.section] for page in pages}
    for page, before, after in zip(pages, [None, *pages[:-1]], [*pages[1:], None], strict=True):
        here = address(page.path)
        root = "../" * here.count("/")
        text = html_of(page, partial(lead, root, page.path))
        around = {"sections": sections, "before": before, "after": after, "version": __version__}
        html = template.render(page=page, text=text, root=root, address=address, **around)
        (target / here).parent.mkdir(parents=True, exist_ok=True)
        (target / here).write_text(html, encoding="utf-8")


def search_index(pages: list[Page]) -> list[list[str]]:
    """Return a row for each heading: page, anchor, title of the page, title of the heading, text below it."""
    return [
        [address(page.path), heading.anchor, page.title, heading.title, heading.text]
        for page in pages
        for heading in page.headings
    ]


if __name__ == "__main__":
    main(parsed(None).folder)
