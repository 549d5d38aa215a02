"""Write the results of the study: tables, figures with captions, and one HTML page with all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.paper.correlations import summarise_replications
from sdckit.paper.figures import all_figures
from sdckit.paper.risks import LIMITS, safe_rows, safety_sentences
from sdckit.paper.verdicts import compare_with_sdcmicro, judge_claims, permutation_table
from sdckit.progress import each
from sdckit.report import charts

if TYPE_CHECKING:
    from pathlib import Path

    from sdckit.paper.figures import Figure
    from sdckit.paper.study import Study

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
            "risks": self.study.required_risks.measured,
            "safe-settings": self.study.required_risks.safe,
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
        (folder / f"{figure.name}.txt").write_text(_caption_text(figure) + "\n", encoding="utf-8")
        if "svg" in formats:
            (folder / f"{figure.name}.svg").write_text(drawn, encoding="utf-8")
        if "pdf" in formats:
            (folder / f"{figure.name}.pdf").write_bytes(charts.pdf(drawn))
        if "png" in formats:
            (folder / f"{figure.name}.png").write_bytes(charts.png(drawn, PRINTED))
    (folder / "index.html").write_text(_render_page(found, pictures), encoding="utf-8")


def _caption_text(figure: Figure) -> str:
    """Return the caption of a figure with its number and title."""
    return f"Figure {figure.number}. {figure.title}. {figure.caption}"


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
    environment.filters |= {"number": _number_text, "label": charts.label}
    measured, risks = found.study.measured, found.study.required_risks
    compared = found.comparison
    return environment.get_template("page.html").render(
        datasets=found.study.datasets,
        files=measured.height,
        replications=measured["replication"].max(),
        table_caption=TABLE_CAPTION,
        tables={name: found.tables[name] for name in ("table-1", "table-2")},
        note=[figure for figure in found.figures if not figure.ours],
        ours=[figure for figure in found.figures if figure.ours and not figure.risk],
        risk=[figure for figure in found.figures if figure.risk],
        attacked=risks.measured.height,
        attacks=risks.replications,
        limits=LIMITS,
        safe={name: safe_rows(risks, name) for name in found.study.datasets},
        sentences={name: safety_sentences(risks, name) for name in found.study.datasets},
        pictures=pictures,
        verdicts=found.verdicts.rows(named=True),
        compared=compared.rows(named=True),
        met=int(compared["met"].sum()) if compared.height else 0,
        missed=compared.filter(~pl.col("met")).rows(named=True) if compared.height else [],
    )


def _number_text(value: Any, digits: int = 4) -> str:
    """Return a number as text with so many decimals; empty for None."""
    return "" if value is None else f"{value:.{digits}f}"


def summary_lines(found: Results, folder: Path, seconds: float) -> list[str]:
    """Return the lines that `sdckit paper` prints: number of files, verdicts, comparison with R, folder."""
    counts = dict(
        found.verdicts["verdict"]
        .value_counts(name="n")
        .sort(["n", "verdict"], descending=[True, False])
        .rows()
    )
    files = found.study.measured.height + found.study.required_risks.measured.height
    lines = [f"{files:,} masked files measured in {seconds:.0f} s."]
    lines.append(
        "Claims of the note: " + "; ".join(f"{count} {verdict}" for verdict, count in counts.items())
    )
    compared = found.comparison
    if compared.height:
        met = int(compared["met"].sum())
        lines.append(f"Beside R's sdcMicro: {met} of {compared.height} figures agree within their limits.")
        for row in compared.filter(~pl.col("met")).iter_rows(named=True):
            case = f"{row['dataset']}, {row['method']}, {row['metric']} with {row['reference']}"
            lines.append(f"  not {case}: {row['explanation']}")
    lines += [safety_sentences(found.study.required_risks, dataset)[0] for dataset in found.study.datasets]
    lines.append(f"Tables, figures and their numbers: {folder / 'index.html'}")
    return lines
