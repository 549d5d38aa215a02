"""The masking methods of the study: parameter grids, names, and how figures draw them.

The grids and conventions are those of R's sdcMicro, which the paper used: correlated noise in percent of the
variance; rank swapping that replaces 5 % of the values at each end by their mean, moves values by less than
P times the number of records, and begins at the highest value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.masking import METHODS
from sdckit.report.charts import AMBER, colour
from sdckit.selection.microdata import Microdata

if TYPE_CHECKING:
    from sdckit.metrics.original import Original

SWAPPING = {"p": "0.001:0.3:0.001", "bound": "exclusive", "start": "highest"}
UNTAILED = "rank_swap_no_tails"


@dataclass(frozen=True)
class StudyMethod:
    """A masking method as the study uses it: its parameter grids, and how tables and figures show it.

    `name` is its name in the tables, `varied` the parameter that `grid` varies, `attack_grid` the values of
    it whose risk is measured. The rest is for figures: the title and range of the parameter's axis, the text
    of a setting (`setting_format`), the settings that the map of risks labels (`labelled_settings`; left of
    their points if `labels_left`), and the area of a point.
    """

    name: str
    method: str
    grid: dict[str, Any]
    varied: str
    attack_grid: str
    short: str
    axis_title: str
    setting_format: str
    axis_range: tuple[float, float]
    labelled_settings: tuple[float, ...] = ()
    labels_left: bool = False
    point_area: float = 4.0
    remark: str = ""  # difference from the note's use of the same method; empty for the note's own
    own_colour: str | None = None  # if not that of the method

    @property
    def heading(self) -> str:
        """Title of the method above a panel of a figure."""
        return f"{METHODS[self.method].title} {self.remark}".strip()

    @property
    def colour(self) -> str:
        """Colour of the method in every figure, as hexadecimal RGB."""
        return self.own_colour or colour(self.method)


_SWAP = StudyMethod(
    name="rank_swap",
    method="rank_swap",
    grid={"tails": 0.05, **SWAPPING},
    varied="p",
    attack_grid="0.015:0.3:0.015",
    short="rank swapping",
    axis_title="P (share of records)",
    setting_format="P = {:g}",
    axis_range=(0.0, 0.305),
    labelled_settings=(0.3,),
    labels_left=True,
)
_METHODS = (
    StudyMethod(
        name="mdav",
        method="mdav",
        grid={"k": "1:30"},
        varied="k",
        attack_grid="1:30",
        short="MDAV",
        axis_title="aggregation parameter k",
        setting_format="k = {:g}",
        axis_range=(0.0, 31.0),
        labelled_settings=(2, 3, 5, 10, 30),
        labels_left=True,
        point_area=9.0,
    ),
    StudyMethod(
        name="noise",
        method="noise",
        grid={"percent": "1:300"},
        varied="percent",
        attack_grid="1,2,4,7,10,15,20,30,40,50,60,75,90,105,120,150,180,210,250,300",
        short="noise",
        axis_title="noise (% of the s.d.)",
        setting_format="{:g} %",
        axis_range=(0.0, 305.0),
        labelled_settings=(30, 105, 300),
        labels_left=True,
    ),
    StudyMethod(
        name="correlated_noise",
        method="correlated_noise",
        grid={"percent": "1:300", "scale": "variance"},
        varied="percent",
        attack_grid="1,2,4,7,10,15,20,30,45,60,80,100,120,140,160,190,220,250,275,300",
        short="correlated noise",
        axis_title="noise (% of the variance)",
        setting_format="{:g} %",
        axis_range=(0.0, 305.0),
        labelled_settings=(15, 60, 300),
    ),
    _SWAP,
    replace(
        _SWAP,
        name=UNTAILED,
        grid={"tails": 0.0, **SWAPPING},
        short="rank swapping without tails",
        labelled_settings=(0.15, 0.3),
        labels_left=False,
        remark="(no tails)",
        own_colour=AMBER,
    ),
)
STUDY_METHODS = {method.name: method for method in _METHODS}
NOTE_METHODS = tuple(name for name, method in STUDY_METHODS.items() if not method.remark)  # the note's four
RANDOM_METHODS = tuple(
    name for name in NOTE_METHODS if METHODS[STUDY_METHODS[name].method].random
)  # repeated with fresh draws
HEADINGS = {name: method.heading for name, method in STUDY_METHODS.items()}
COLOURS = {name: method.colour for name, method in STUDY_METHODS.items()}


KEYS = ["dataset", "method", "parameters", "setting"]  # columns that identify a setting
SEED = 20  # fixed, as the data are public: every run of the study gives the same figures


def name_of(dataset: str) -> str:
    """Return the name of a data set as texts spell it."""
    return "the bundled sample" if dataset == "sample" else dataset


def setting_label(method: str, setting: float) -> str:
    """Return a method's setting as text for figures, such as "k = 5"."""
    return STUDY_METHODS[method].setting_format.format(setting)


def measure_files(
    original: Original, plan: dict[str, list[Any]], *, name: str, **options: Any
) -> pl.DataFrame:
    """Run a sweep; return a table with one row per masked file and one column per metric."""
    no_tails = pl.col("parameters").str.contains("tails=0,", literal=True)
    return (
        Microdata(original, name=name)
        .sweep(plan, **options)
        .table.pivot("metric", index=[*KEYS, "replication"], values="value", maintain_order=True)
        .with_columns(method=pl.when(no_tails).then(pl.lit(UNTAILED)).otherwise("method"))
    )
