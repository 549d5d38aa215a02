"""The maskings of the study: one record each, with what its tables and figures need.

The grids and conventions are those of R's sdcMicro, which the note used: correlated noise in percent of the
variance, rank swapping that replaces 5 % at each end by their mean, moves values by less than the window and
begins at the highest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sdckit.masking import METHODS
from sdckit.report.charts import AMBER, colour

SWAPPING = {"p": "0.001:0.3:0.001", "bound": "exclusive", "start": "highest"}
UNTAILED = "rank_swap_no_tails"


@dataclass(frozen=True)
class Way:
    """A method with a grid of one parameter, `varied`, and its name in the tables.

    `thinned` is the grid for the attacks, closer where loss and risk change fastest. The rest is for figures:
    `axis` is the title of the parameter's axis, `setting` spells one of its values, `span` is its scale and
    `ticks` are its marks where that scale is logarithmic; `marked` are the settings that a map of risk names,
    by risk and where they were tried, left of their points if `left`; `dot` is the area of a point, the
    larger the fewer there are.
    """

    name: str
    method: str
    grid: dict[str, Any]
    varied: str
    thinned: str
    short: str
    axis: str
    setting: str
    span: tuple[float, float]
    marked: dict[str, tuple[float, ...]] = field(default_factory=dict)
    ticks: tuple[float, ...] = ()
    left: bool = False
    dot: float = 4.0
    remark: str = ""  # what sets it apart from the note's way with the same method
    own_colour: str | None = None  # where it is not that of the method

    @property
    def heading(self) -> str:
        """Title above a panel."""
        return f"{METHODS[self.method].title} {self.remark}".strip()

    @property
    def colour(self) -> str:
        """Colour in every figure."""
        return self.own_colour or colour(self.method)

    @property
    def noted(self) -> bool:
        """True where the note has this masking."""
        return not self.remark


_MDAV = Way(
    name="mdav",
    method="mdav",
    grid={"k": "1:30"},
    varied="k",
    thinned="1:30",
    short="MDAV",
    axis="aggregation parameter k",
    setting="k = {:g}",
    span=(0.0, 31.0),
    marked={"linkage": (2, 3, 5, 10, 30), "linkage_outliers": (2, 3)},
    ticks=(1, 3, 10, 30),
    left=True,
    dot=9.0,
)
_NOISE = Way(
    name="noise",
    method="noise",
    grid={"percent": "1:300"},
    varied="percent",
    thinned="1,2,4,7,10,15,20,30,40,50,60,75,90,105,120,150,180,210,250,300",
    short="noise",
    axis="noise (% of the s.d.)",
    setting="{:g} %",
    span=(0.0, 305.0),
    marked={"linkage": (30, 105, 300), "linkage_outliers": (300,)},
    ticks=(1, 10, 100),
    left=True,
)
_CORRELATED = Way(
    name="correlated_noise",
    method="correlated_noise",
    grid={"percent": "1:300", "scale": "variance"},
    varied="percent",
    thinned="1,2,4,7,10,15,20,30,45,60,80,100,120,140,160,190,220,250,275,300",
    short="correlated noise",
    axis="noise (% of the variance)",
    setting="{:g} %",
    span=(0.0, 305.0),
    marked={"linkage": (15, 60, 300), "linkage_outliers": (300,)},
    ticks=(1, 10, 100),
)
_SWAP = Way(
    name="rank_swap",
    method="rank_swap",
    grid={"tails": 0.05, **SWAPPING},
    varied="p",
    thinned="0.015:0.3:0.015",
    short="rank swapping",
    axis="P (share of records)",
    setting="P = {:g}",
    span=(0.0, 0.305),
    marked={"linkage": (0.3,), "linkage_outliers": (0.3,)},
    left=True,
)
_UNTAILED = Way(
    name=UNTAILED,
    method="rank_swap",
    grid={"tails": 0.0, **SWAPPING},
    varied="p",
    thinned="0.015:0.3:0.015",
    short="rank swapping without tails",
    axis="P (share of records)",
    setting="P = {:g}",
    span=(0.0, 0.305),
    marked={"linkage": (0.15, 0.3), "linkage_outliers": (0.3,)},
    remark="(no tails)",
    own_colour=AMBER,
)
WAYS = {way.name: way for way in (_MDAV, _NOISE, _CORRELATED, _SWAP, _UNTAILED)}
NOTED = tuple(name for name, way in WAYS.items() if way.noted)  # the note's four
DRAWN = tuple(name for name in NOTED if METHODS[WAYS[name].method].random)  # repeated with fresh draws
HEADINGS = {name: way.heading for name, way in WAYS.items()}
COLOURS = {name: way.colour for name, way in WAYS.items()}
