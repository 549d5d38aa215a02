"""The tour, how-tos and guides for users of other programs are true: their examples run as shown."""

from pathlib import Path

import pytest

from cases import few
from run_page import run_page

DOCS = Path(__file__).parent.parent / "docs"
FOLDERS = ("how-to", "coming-from")
AS_NOTEBOOK = "notebooks"  # tests/notebook runs it as one
PAGES = [
    DOCS / "python-tour.md",
    *(path for one in FOLDERS for path in sorted((DOCS / one).glob("*.md")) if path.stem != AS_NOTEBOOK),
]


@pytest.mark.parametrize("page", few(PAGES, 4), ids=lambda path: path.stem)
def test_the_examples_of_a_page_run(page, tmp_path):
    assert run_page(page, tmp_path) > 0


def test_a_wrong_result_on_a_page_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\n>>> 1 + 1\n3\n\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page\.md, block 0"):
        run_page(page, tmp_path)


def test_a_wrong_line_of_a_transcript_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ sdckit --version\nversion none\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="not printed: version none"):
        run_page(page, tmp_path)
