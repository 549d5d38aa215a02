"""Run the study and copy what the docs show of it into docs/figures: `python tools/make_figures.py`.

Needs the Tarragona and Census files, as `sdckit paper` does: the folder in SDCKIT_DATA, or a download.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from sdckit.paper import command

DOCS = Path(__file__).parent.parent / "docs"
FIGURES = DOCS / "figures"
ALWAYS = {"risk-map-tarragona.svg"}  # for any page that weighs loss against risk


def linked() -> list[str]:
    """Files of docs/figures: what docs/explanation/metrics.md links to, and what any other page may show."""
    page = (DOCS / "explanation" / "metrics.md").read_text(encoding="utf-8")
    return sorted(ALWAYS.union(re.findall(r"\]\(\.\./figures/([^)]+)\)", page)))


def main() -> None:
    FIGURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "paper"
        print(*command.run(results), sep="\n")
        for old in FIGURES.iterdir():
            old.unlink()
        for name in linked():
            shutil.copyfile(results / name, FIGURES / name)
    size = sum(path.stat().st_size for path in FIGURES.iterdir())
    print(f"{len(linked())} files, {size / 1000:.0f} kB in {FIGURES}")


if __name__ == "__main__":
    main()
