"""How Sphinx builds the documentation: `sphinx-build -W -n -c tools/site . site`.

The pages are plain Markdown, as repositories on the web and `sdckit app` show them, too; the tree of pages,
which Sphinx wants in one of them, is added here. Chosen by trying: zensical and mkdocs-material ask another
host for a script on every page if the search shall work from the file system.
"""

from __future__ import annotations

from typing import Any

project = "sdckit"
extensions = ["myst_parser"]
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**"]
exclude_patterns = ["**/.*", "site"]
root_doc = "docs/index"
myst_heading_anchors = 6  # links lead to any heading, by the names that repositories on the web give it
suppress_warnings = ["misc.highlighting_failure"]  # signatures are no Python, drafts of jobs no TOML
html_theme = "furo"  # loads nothing from outside
html_copy_source = html_show_copyright = html_show_sphinx = False
html_show_search_summary = False  # which would be read from pages by requests that the file system refuses
SECTIONS = {  # those named come first, then the others of the folder
    "Tutorial": ["tutorial", "python-tour"],
    "How-to": ["how-to/install", "how-to/choose-a-limit", "how-to/*"],
    "Explanation": [
        "explanation/measures",
        "explanation/metrics",
        "explanation/risk",
        "explanation/choosing",
        "explanation/*",
    ],
    "Reference": ["reference/commands", "reference/exit-codes", "reference/job-file", "reference/*"],
    "Coming from": ["coming-from/sdcmicro", "coming-from/*"],
    "Project": ["glossary", "benchmarks", "/README", "/CONTRIBUTING", "/CHANGELOG"],
}


def add_sections(_app: Any, name: str, source: list[str]) -> None:
    """Add the tree of pages to the first one; a page that is in no section ends the build."""
    if name == root_doc:
        for title, pages in SECTIONS.items():
            options = [":hidden:", ":glob:", f":caption: {title}", ""]
            source[0] += "\n".join(["", "```{toctree}", *options, *pages, "```", ""])


def setup(app: Any) -> None:
    """Let Sphinx call `add_sections` for each page that it reads."""
    app.connect("source-read", add_sections)
