"""CPU time of maskings and measures as files grow: `python benchmarks/growth.py` writes growth.csv.

The work is that of the functions of R's sdcMicro in sdcmicro.csv, by public calls on plain arrays, checks
included. Data are lognormal columns, masked by noise of 20 % of their standard deviations: the values that
sdcmicro.csv has of its own data fit that. `docs/benchmarks.md` shows both.
"""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

import sdckit as sdc

if TYPE_CHECKING:
    from sdckit.arrays import Floats

RESULTS = Path(__file__).with_name("growth.csv")
LIMIT = 60.0  # seconds of CPU that one call may take
REPEATS, ENOUGH = 3, 6.0  # calls of which the fastest counts, fewer once so many seconds are spent
WIDTHS = (4, 13)
USUAL = (1_000, 10_000, 100_000, 1_000_000)
Call = Callable[["Floats", "Floats"], object]


class Work(NamedTuple):
    """A function of R's and the call that does the same work, on files of these sizes and widths."""

    function: str
    ours: str
    call: Call
    sizes: tuple[int, ...] = USUAL
    widths: tuple[int, ...] = WIDTHS
    steep: float = (
        1.2  # power of n by which time is assumed to grow, to leave out what would exceed the limit
    )


def masking(name: str, **options: float) -> Call:
    """A call that masks the original by a method."""
    return lambda original, _: sdc.mask(original, name, rng=1, **options)


def deterministic(name: str, **options: float) -> Call:
    """The same for a method that draws nothing."""
    return lambda original, _: sdc.mask(original, name, **options)


def rank_losses(original: Floats, masked: Floats) -> tuple[float, float]:
    """Both bounded losses of ranks; the original is put in order once."""
    prepared = sdc.Microdata(original)
    return sdc.brmae(prepared, masked), sdc.brmse(prepared, masked)


def works() -> list[Work]:
    """All that is timed; the names of R's functions are those of sdcmicro.csv."""
    swap = masking("rank_swap", p=0.05, tails=0.05)
    many = (*USUAL, 10_000_000)
    grouped = (1_000, 5_000, 10_000, 20_000, 100_000, 1_000_000)
    few = (1_000, 2_000)  # more are not matched
    found = [Work("additive_50", "noise, percent=50", masking("noise", percent=50))]
    found += [Work("correlated_50", "correlated_noise, percent=50", masking("correlated_noise", percent=50))]
    found += [Work("rankSwap_P0.05", "rank_swap, p=0.05, tails=0.05", swap)]
    found += [Work("mdav_k3", "mdav, k=3", deterministic("mdav", k=3), grouped, steep=1.6)]
    found += [Work("onedims_k3", "individual_ranking, k=3", deterministic("individual_ranking", k=3))]
    found += [Work("brMAE_brMSE_rank_average", "brmae() and brmse()", rank_losses, many, (1, 13))]
    found += [Work("dUtility_IL1", "il1()", sdc.il1)]
    found += [Work("dUtility_IL1s", "il1s()", sdc.il1s)]
    found += [Work("dRisk_k0.05", "sdid()", sdc.sdid)]
    found += [Work("dRiskRMD", "rmdid()", sdc.rmdid)]
    return [*found, Work("recordLinkage_euclidean", "matching()", sdc.matching, few)]


def files(n: int, p: int) -> tuple[Floats, Floats]:
    """An original of n records and p variables, and a masked one."""
    rng = np.random.default_rng(n + p)
    original = np.asfortranarray(rng.lognormal(size=(n, p)))
    return original, np.asfortranarray(original + rng.normal(size=(n, p)) * 0.2 * original.std(axis=0))


def least_seconds(call: Call, original: Floats, masked: Floats) -> tuple[float, int]:
    """CPU seconds of the fastest of some calls, and how many there were."""
    spent: list[float] = []
    while len(spent) < REPEATS and sum(spent) < ENOUGH:
        inner = 1 if len(original) > USUAL[0] else 10  # a clock does not tell milliseconds well
        began = process_time()
        for _ in range(inner):
            call(original, masked)
        spent.append((process_time() - began) / inner)
    return min(spent), len(spent)


def growth(work: Work, p: int) -> list[dict[str, object]]:
    """Times of one work on files of p variables, from small to large, within the limit."""
    rows: list[dict[str, object]] = []
    work.call(*files(USUAL[0], p))  # compiles
    last, size = 0.0, 1
    for n in work.sizes:
        if last * (n / size) ** work.steep > LIMIT or (n > USUAL[-1] and p > 1):
            break
        last, repeats = least_seconds(work.call, *files(n, p))
        size = n
        rows.append({"function": work.function, "ours": work.ours, "n": n, "p": p, "reps": repeats})
        rows[-1] |= {"cpu_min_s": round(last, 5)}
        print(f"{work.ours}, {n:,} x {p}: {last:.4f} s", file=sys.stderr, flush=True)
    return rows


def machine() -> str:
    """The processor and its number of cores as the system names them."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {max(len(names), 1)} cores"


def updated(function: str, rows: list[dict[str, object]]) -> pl.DataFrame:
    """What the file holds, with these rows in place of the earlier ones of a function."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    table = pl.DataFrame(rows).with_columns(machine=pl.lit(machine()), versions=pl.lit(versions))
    before = pl.read_csv(RESULTS) if RESULTS.exists() else table.clear()
    order = {work.function: place for place, work in enumerate(works())}
    place = pl.col("function").replace_strict(order, default=len(order))
    others = before.filter(pl.col("function") != function)
    return pl.concat([others, table], how="vertical_relaxed").sort(place, maintain_order=True)


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    for work in works():
        if not names or work.function in names:
            rows = [row for p in work.widths for row in growth(work, p)]
            updated(work.function, rows).write_csv(RESULTS)


if __name__ == "__main__":
    main(sys.argv[1:])
