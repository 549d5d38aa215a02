"""The result of a comparison of estimates: a table, a summary, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from sdckit.core import frame_kinds, notebook
from sdckit.core.text import number
from sdckit.metrics.estimates.domains import WHOLE
from sdckit.metrics.estimates.guards import Guards  # noqa: TC001 - typing.get_type_hints looks for it

HEAD = ("estimate", "original", "masked", "change", "s.e.", "overlap", "reason")
SHOWN = 10  # rows of the table in a text, those that changed most


@dataclass(frozen=True)
class Estimates:
    """Estimates of the original and of the masked file, row by row.

    `table` has a row for each estimate and domain ("all" for all records) with the columns estimate, domain,
    original, se_original, masked, se_masked, change (in percent of the original), change_in_se (in standard
    errors of the original), overlap (of the 95 % intervals, from 0 to 1; 0 where the masked file has no such
    estimate), the ends of these intervals, spread and the inflated error and interval (with replications),
    sign ("kept" or "changed"), significance ("kept", "lost", "gained" or "none"), the records behind each
    estimate, and the reason where something is absent. `guards` has what may be published of each row,
    nothing of those that it does not have. `computable` is False if users do not get the weights or units:
    then figures of the masked file tell these, and are not published. `kind` is the type of the original's
    dataframe, which `to_frame` returns.
    """

    table: pl.DataFrame
    guards: Guards = field(default_factory=dict, repr=False)
    computable: bool = field(default=True, repr=False)
    kind: str = field(default=frame_kinds.USUAL, repr=False, compare=False)

    @property
    def some_withheld(self) -> bool:
        """True if some row may not be published: then no exact figure over all rows may be, either."""
        return len(self.guards) < self.table.height or any(one.reason for one in self.guards.values())

    @property
    def summary(self) -> dict[str, Any]:
        """What became of all estimates, as a dict.

        `estimates` counts the rows, `without_value` those that cannot be compared. `worst` names the estimate
        with the smallest overlap and, among equals, the largest change; `worst_overlap`, `median_overlap`,
        `mean_overlap`, `worst_change_in_se` and `median_change_in_se` (of absolute values) are over rows.
        `outside_1_se` is the share that moved by more than one standard error, `overlap_below_half` the share
        with an overlap below 0.5; `sign_changed`, `significance_lost` and `significance_gained` are counts.
        """
        rows = self.table.filter(pl.col("overlap").is_not_null())
        moved = pl.col("change_in_se").abs()
        worst = rows.sort("overlap", moved.fill_null(float("inf")), descending=[False, True]).head(1)
        counted = self.table.select(
            sign_changed=(pl.col("sign") == "changed").sum(),
            significance_lost=(pl.col("significance") == "lost").sum(),
            significance_gained=(pl.col("significance") == "gained").sum(),
        )
        found = rows.select(
            worst_overlap=pl.col("overlap").min(),
            median_overlap=pl.col("overlap").median(),
            mean_overlap=pl.col("overlap").mean(),
            worst_change_in_se=moved.max(),
            median_change_in_se=moved.median(),
            outside_1_se=(moved > 1).mean(),
            overlap_below_half=(pl.col("overlap") < 0.5).mean(),
        )
        return {
            "estimates": self.table.height,
            "without_value": self.table.height - rows.height,
            "worst": _name(worst.row(0, named=True)) if worst.height else None,
            **found.row(0, named=True),
            **counted.row(0, named=True),
        }

    def __repr__(self) -> str:
        """Return the rows with the smallest overlap, one line each, and a line that sums up."""
        lines = [
            f"{name}: {original} -> {masked}, {change}, {moved} s.e., overlap {overlap}"
            + (f" ({reason})" if reason else "")
            for name, original, masked, change, moved, overlap, reason in self._rows()
        ]
        return "\n".join([*lines, *self._sentences()])

    def _rows(self) -> list[list[str]]:
        """Return the cells of the rows with the smallest overlap as texts, in the order of `HEAD`."""
        return [
            [
                _name(row),
                number(row["original"]),
                number(row["masked"]),
                "-" if row["change"] is None else f"{row['change']:+.2f} %",
                number(row["change_in_se"]),
                number(row["overlap"]),
                row["reason"] or "",
            ]
            for row in self.table.sort("overlap", nulls_last=True).head(SHOWN).iter_rows(named=True)
        ]

    def _sentences(self) -> list[str]:
        """Return how many rows are not shown, and the line that sums up."""
        left = self.table.height - SHOWN
        more = [f"and {left} more with a larger overlap"] if left > 0 else []
        return [*more, _summary_text(self.summary)]

    def _repr_html_(self) -> str:
        """Return what `print` shows, for notebooks."""
        rows = notebook.table(HEAD, self._rows(), right=HEAD[1:-1])
        return notebook.block(rows, notebook.paragraphs(self._sentences()))

    def to_frame(self, kind: str | None = None) -> Any:
        """Return the table as a dataframe.

        Parameters
        ----------
        kind : str, optional
            "polars", "pandas" or "pyarrow"; by default that of the original.

        Returns
        -------
        dataframe
        """
        return frame_kinds.converted(self.table, kind, self.kind)

    def to_csv(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the table to a CSV file; raise FileExistsError unless `overwrite` where it exists."""
        from sdckit.io import files  # noqa: PLC0415 - only needed to write

        files.write(path, self.table, overwrite=overwrite)


def name_of_row(estimate: str, domain: str) -> str:
    """Return estimate and domain of a row as one text."""
    return estimate if domain == WHOLE else f"{estimate}, {domain}"


def _name(row: dict[str, Any]) -> str:
    """Return estimate and domain of a row of the table as one text."""
    return name_of_row(row["estimate"], row["domain"])


def _summary_text(summary: dict[str, Any]) -> str:
    """Return the summary as one line."""
    if summary["worst"] is None:
        return f"no overlap: {summary['estimates']} estimates cannot be compared"
    below, outside = (summary[name] or 0.0 for name in ("overlap_below_half", "outside_1_se"))
    middle, least = (number(summary[name]) for name in ("median_overlap", "worst_overlap"))
    return (
        f"overlap {middle} in the median and {least} at worst; {below:.0%} below 0.5, "
        f"{outside:.0%} moved by more than 1 s.e."
    )
