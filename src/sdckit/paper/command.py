"""The command `sdckit paper`: run the study; write its tables, figures and one HTML page into a folder."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core import checks
from sdckit.io import datasets
from sdckit.io.atomic import check_folder, fill_folder
from sdckit.paper import risks, study
from sdckit.paper.correlations import summarise_replications
from sdckit.paper.design import SEED
from sdckit.paper.figures import all_figures
from sdckit.paper.verdicts import compare_with_sdcmicro, judge_claims, permutation_table
from sdckit.progress import each, track
from sdckit.report import charts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sdckit.paper.figures import Figure
    from sdckit.paper.risks import Risks
    from sdckit.paper.study import Study

MARK = "made-by-sdckit-paper.txt"
REPEATS = "sdckit paper replaces these files each time it runs; private/ holds finished work."
PRIVATE = "private"
NOTE = ("tarragona", "census")  # the note's own data sets
FORMATS = ("svg", "pdf", "png")
TABLE_CAPTION = (
    "All rankings in the note's order, with their differences from the ranking 1, 2, ... and the sums of "
    "their absolute and squared values. The last two rows divide these sums by their largest possible value: "
    "0 is the same order, 1 the farthest. Both tables of the note are right; its text announces 10 distinct "
    "squared distances for four records and lists 11, which is the number there are."
)
PRINTED = 3.0  # pixels of a PNG for each of a screen: 300 dots an inch


@dataclass(frozen=True)
class Results:
    """Measurements of the study, and the tables, figures and verdicts computed from them."""

    study: Study
    seed: int

    @property
    def risks(self) -> Risks:
        """The measured risks."""
        return self.study.required_risks

    @cached_property
    def figures(self) -> list[Figure]:
        """The paper's figures, then our further ones."""
        return all_figures(self.study, rng=self.seed)

    @cached_property
    def comparison(self) -> pl.DataFrame:
        """Table of our Spearman correlations beside those of R's sdcMicro."""
        return compare_with_sdcmicro(self.study.correlations)

    @cached_property
    def verdicts(self) -> pl.DataFrame:
        """Table of the paper's claims, each with the measured figures and a verdict."""
        return judge_claims(self.study.measured, rng=self.seed)

    @cached_property
    def tables(self) -> dict[str, pl.DataFrame]:
        """All tables of the study by file name, without ".csv"."""
        return {
            "table-1": permutation_table(3),
            "table-2": permutation_table(4),
            "comparison": self.comparison,
            "verdicts": self.verdicts,
            "correlations": self.study.correlations,
            "replications": summarise_replications(self.study.correlations),
            "levels": self.study.levels,
            "risks": self.risks.measured,
            **{figure.name: figure.table for figure in self.figures},
        }


def write_folder(found: Results, folder: Path, formats: tuple[str, ...] = ("svg",)) -> None:
    """Write all tables, figures and captions into a folder, and `index.html`, which needs no other file."""
    for name, table in found.tables.items():
        table.write_csv(folder / f"{name}.csv")
    for place, n in enumerate((3, 4), start=1):
        caption = f"Table {place}. All rankings of {n} records. {TABLE_CAPTION}"
        (folder / f"table-{place}.txt").write_text(caption + "\n", encoding="utf-8")
    found.study.measured.write_parquet(folder / "measured.parquet")
    pictures = {}
    for figure in each("drawing", found.figures):
        drawn = pictures[figure.name] = charts.svg(figure.chart)
        caption = f"Figure {figure.number}. {figure.title}. {figure.caption}"
        (folder / f"{figure.name}.txt").write_text(caption + "\n", encoding="utf-8")
        if "svg" in formats:
            (folder / f"{figure.name}.svg").write_text(drawn, encoding="utf-8")
        if "pdf" in formats:
            (folder / f"{figure.name}.pdf").write_bytes(charts.pdf(drawn))
        if "png" in formats:
            (folder / f"{figure.name}.png").write_bytes(charts.png(drawn, PRINTED))
    (folder / "index.html").write_text(_render_page(found, pictures), encoding="utf-8")


def _render_page(found: Results, pictures: dict[str, str]) -> str:
    """Return the HTML page with all figures (SVG texts in `pictures`, by figure name) and tables."""
    import jinja2  # noqa: PLC0415 - slow to import, and only for pages

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sdckit.paper", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )

    def number(value: float | None, digits: int = 4) -> str:
        """Return a number as text with so many decimals; empty for None."""
        return "" if value is None else f"{value:.{digits}f}"

    environment.filters |= {"number": number, "label": charts.label}
    measured, compared = found.study.measured, found.comparison
    return environment.get_template("page.html").render(
        datasets=found.study.datasets,
        files=measured.height,
        replications=measured["replication"].max(),
        table_caption=TABLE_CAPTION,
        tables={name: found.tables[name] for name in ("table-1", "table-2")},
        note=[figure for figure in found.figures if not figure.ours],
        ours=[figure for figure in found.figures if figure.ours and not figure.risk],
        risk=[figure for figure in found.figures if figure.risk],
        attacked=found.risks.measured.height,
        attacks=found.risks.replications,
        pictures=pictures,
        verdicts=found.verdicts.rows(named=True),
        compared=compared.rows(named=True),
        met=int(compared["met"].sum()) if compared.height else 0,
        missed=compared.filter(~pl.col("met")).rows(named=True) if compared.height else [],
    )


def summary_lines(found: Results, folder: Path, seconds: float) -> list[str]:
    """Return the lines that `sdckit paper` prints: number of files, verdicts, comparison with R, folder."""
    verdicts = found.verdicts["verdict"].value_counts(name="n")
    counts = verdicts.sort(["n", "verdict"], descending=[True, False]).select("n", "verdict").rows()
    files = found.study.measured.height + found.risks.measured.height
    lines = [
        f"{files:,} masked files measured in {seconds:.0f} s.",
        f"Claims of the note: {'; '.join(f'{count} {verdict}' for count, verdict in counts)}",
    ]
    compared = found.comparison
    if compared.height:
        met = int(compared["met"].sum())
        lines.append(f"Beside R's sdcMicro: {met} of {compared.height} figures agree within their limits.")
        for row in compared.filter(~pl.col("met")).iter_rows(named=True):
            case = f"{row['dataset']}, {row['method']}, {row['metric']} with {row['reference']}"
            lines.append(f"  not {case}: {row['explanation']}")
    lines.append(f"Tables, figures and their numbers: {folder / 'index.html'}")
    return lines


def run(
    folder: Path,
    *,
    data: Sequence[str] = NOTE,
    replications: int = 30,
    formats: Sequence[str] = ("svg",),
    seed: int | None = None,
    workers: int | None = None,
    overwrite: bool = False,
) -> list[str]:
    """Measure, draw and write the study into a folder; return the lines to print."""
    names, known = list(dict.fromkeys(data)), ["sample", *datasets.DATASETS]
    for name in names:
        checks.one_of("data set", name, known)
    if not 1 <= len(names) <= len(NOTE):
        raise ValueError(f"{len(data)} data sets named; give one or two of: {', '.join(known)}")
    for form in formats:
        checks.one_of("format", form, FORMATS)
    check_folder(folder, MARK)
    try:
        originals = study.load_data_sets(names)
    except (OSError, ValueError) as error:
        raise type(error)(f"{error}; pass data=['sample'] to run the study on bundled data") from error
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MARK).exists():
        (folder / MARK).write_text(REPEATS, encoding="utf-8")
    seed = SEED if seed is None else seed
    began = time.monotonic()
    options: dict[str, Any] = {
        "replications": replications,
        "seed": seed,
        "workers": workers,
        "folder": folder / PRIVATE,
        "overwrite": overwrite,
    }
    with track("the study", 10.0) as report:
        report(0.0, 5.0)
        losses = study.run_study(originals, **options)
        report(5.0, 4.0, "the attacks")
        found = Results(replace(losses, risks=risks.run_attacks(originals, **options)), seed)
        seconds = time.monotonic() - began
        report(9.0, 1.0, "drawing")
        with fill_folder(folder, MARK, REPEATS) as draft:
            write_folder(found, draft, tuple(formats))
    return summary_lines(found, folder, seconds)
