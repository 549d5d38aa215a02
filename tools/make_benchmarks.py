"""Draw growth curves and write the table of docs/benchmarks.md: `python tools/make_benchmarks.py`.

From benchmarks/growth.csv, our times, and benchmarks/sdcmicro.csv, those of R; both in seconds of CPU.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl

from sdckit.report import charts

HERE = Path(__file__).parent.parent
PAGE = HERE / "docs" / "benchmarks.md"
FIGURES = HERE / "docs" / "benchmarks"
OURS, THEIRS = "sdckit", "R"
LEAST = 0.0005  # seconds; R's clock tells milliseconds, and zero has no place on a logarithmic axis
FASTER = re.compile(r"(?<=^## Where R is faster\n\n).*?(?=\n\n## )", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"^\| work .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def times() -> pl.DataFrame:
    """Both files in one table: the work, whose time, records, variables, seconds; missing where R failed."""
    ours = pl.read_csv(HERE / "benchmarks" / "growth.csv")
    theirs = pl.read_csv(HERE / "benchmarks" / "sdcmicro.csv", infer_schema_length=None)
    names = dict(ours.select("function", "ours").unique().rows())
    theirs = theirs.filter(pl.col("function").is_in(list(names)))
    columns = ("function", "n", "p", "cpu_min_s")
    return pl.concat(
        [
            ours.select(*columns, whose=pl.lit(OURS), status=pl.lit("ok")),
            theirs.select(*columns, "status", whose=pl.lit(THEIRS)).select(*columns, "whose", "status"),
        ]
    ).with_columns(ours=pl.col("function").replace_strict(names))


def panel(table: pl.DataFrame, function: str) -> dict[str, Any]:
    """The curves of one work: records against seconds, both logarithmic."""
    rows = table.filter((pl.col("function") == function) & pl.col("cpu_min_s").is_not_null())
    least = pl.when(whose=THEIRS).then(pl.col("cpu_min_s").clip(LEAST)).otherwise("cpu_min_s")
    shown = rows.with_columns(seconds=least, variables=pl.col("p").cast(pl.String))
    axis = {"grid": True, "gridColor": charts.PALE, "gridOpacity": 0.4, "tickCount": 4}
    scale = {"type": "log", "nice": False}
    return {
        "title": {"text": rows["ours"][0], "subtitle": f"R: {function}"},
        "width": 190,
        "height": 150,
        "data": {"values": shown.select("n", "seconds", "whose", "variables").to_dicts()},
        "mark": {"type": "line", "point": {"size": 18}, "strokeWidth": 1.5},
        "encoding": {
            "x": {
                "field": "n",
                "type": "quantitative",
                "title": "records",
                "scale": scale | {"domain": [1e3, 1e7]},
                "axis": axis | {"format": "~e", "values": [1e3, 1e4, 1e5, 1e6, 1e7]},
            },
            "y": {
                "field": "seconds",
                "type": "quantitative",
                "title": "CPU seconds",
                "scale": scale | {"domain": [1e-4, 1e2]},
                "axis": axis | {"format": "~e", "values": [1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100]},
            },
            "color": {
                "field": "whose",
                "type": "nominal",
                "title": None,
                "scale": {"domain": [OURS, THEIRS], "range": [charts.BLUE, charts.ORANGE]},
            },
            "strokeDash": {
                "field": "variables",
                "type": "nominal",
                "title": "variables",
                "legend": {"symbolType": "stroke", "symbolSize": 400},
                "scale": {"domain": ["1", "4", "13"], "range": [[1, 2], [4, 3], [1, 0]]},
            },
        },
    }


def picture(table: pl.DataFrame) -> str:
    """All panels as SVG."""
    functions = table.filter(whose=OURS)["function"].unique(maintain_order=True).to_list()
    words = "CPU seconds against records, both logarithmic, of sdckit and of R, one panel for each work"
    panels = [panel(table, function) for function in functions]
    return charts.svg(charts.grid(panels, columns=3, description=words, name="growth", spacing=(18, 18)))


def paired(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Each work at each size that both were timed at, or that R failed at, with R's time over ours.

    R's clock tells milliseconds: a ratio of fewer than five of them says nothing and is None.
    """
    keys = ["ours", "function", "n", "p"]
    mine = table.filter(whose=OURS).select(*keys, mine="cpu_min_s")
    theirs = table.filter(whose=THEIRS).select(*keys, "status", theirs="cpu_min_s")
    telling = pl.when(pl.col("theirs") >= 10 * LEAST).then(pl.col("theirs") / pl.col("mine"))
    return mine.join(theirs, on=keys, maintain_order="left").with_columns(ratio=telling).to_dicts()


def comparison(table: pl.DataFrame) -> str:
    """The table of the page."""
    heads = ["work", "R's function", "records", "variables", "sdckit, s", "R, s", "R takes"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in paired(table):
        shown = failure(row["status"]) if row["theirs"] is None else seconds(row["theirs"])
        cells = [row["ours"], f"`{row['function']}`", f"{row['n']:,}", str(row["p"]), seconds(row["mine"])]
        lines.append(f"| {' | '.join([*cells, shown, times_text(row['ratio'])])} |")
    return "\n".join(lines)


def faster(table: pl.DataFrame) -> str:
    """A line for each work and size at which R takes less time."""
    found = [row for row in paired(table) if row["ratio"] is not None and row["ratio"] < 1]
    lines = []
    for row in found:
        spent = f"R {seconds(row['theirs'])} s, sdckit {seconds(row['mine'])} s"
        lines.append(f"- {row['ours']}, {row['n']:,} x {row['p']}: {spent}")
    return "\n".join(lines) or "Nowhere in this table."


def times_text(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.1f} times"


def seconds(value: float) -> str:
    return f"{value:.4f}" if value < 1 else f"{value:.2f}"


def failure(status: str) -> str:
    """Why R has no time, in words."""
    words = {"error": "out of memory", "stopped": "stopped after 180 s", "killed": "killed"}
    return words.get(status.partition("_")[0], status)


def page(text: str, table: pl.DataFrame) -> str:
    """The page with what follows from the times written anew."""
    text = TABLE.sub(lambda _: comparison(table), text)
    return FASTER.sub(lambda _: faster(table), text)


def main() -> None:
    table = times()
    FIGURES.mkdir(exist_ok=True)
    (FIGURES / "growth.svg").write_text(picture(table), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(text, table), encoding="utf-8")


if __name__ == "__main__":
    main()
