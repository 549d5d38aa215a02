"""Notebooks made from pages of the documentation: run by a kernel, and exported as pages."""

import re

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

CELL = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
# Scripts of nbconvert, for widgets, formulas and diagrams, most of them from servers. The report inside the
# page is escaped, and keeps its own.
SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)


def notebook_of_page(page, first=""):
    """A notebook with a cell for each text and each Python block of a page, after a first cell of code."""
    parts = CELL.split(page.read_text(encoding="utf-8"))
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(first)])
    for place, text in enumerate(parts):
        new = nbformat.v4.new_code_cell if place % 2 else nbformat.v4.new_markdown_cell
        made.cells.append(new(text.strip()))
    return made


def run(notebook, folder):
    """Run the cells in a kernel of their own, in a folder; an error in a cell is raised."""
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()


def exported(notebook, theme):
    """The notebook as nbconvert exports it, in the light or the dark theme of JupyterLab, as HTML."""
    page, _ = HTMLExporter(template_name="lab", theme=theme).from_notebook_node(notebook)
    return SCRIPT.sub("", page)
