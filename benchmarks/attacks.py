"""Plain attacks on released files, beside the risk that is printed for the same files.

`python benchmarks/attacks.py [--draws N] [--line NAME]` prints, for each kind of file, the share that the
attack finds and the printed figure, both as means over draws with fixed seeds, and their ratio. Of a person
who leaves between two releases the attack's figure is the share of that person's cells guessed within 1 %,
and the printed one is the share of second releases that are refused. Slow lines, one draw each, are run
where they are named: large_panel, large_panel_60, large_multiplicative.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS / "twins"), str(TESTS / "helpers")]

import attacked_releases  # noqa: E402 - from the folders that were added

ONCE = ("missing_cells", *attacked_releases.SLOW)  # nothing is drawn there, or a draw takes long
SEEDS = 20_000  # seeds of the draws start here


def printed(measure: Any) -> float:
    """Return what is printed; NaN where the program does not know the metric yet."""
    try:
        return float(measure())
    except ValueError as error:
        if "unknown metric" not in str(error):
            raise
        return math.nan


def measured(name: str, line: Any, draws: int) -> str:
    """Run one line of the table and return it as text."""
    start, pairs = time.process_time(), []
    for draw in range(1 if name in ONCE else draws):
        found = line(SEEDS + draw)
        pairs.append((found.found, printed(found.printed)))
    attack, shown = np.mean(pairs, axis=0)
    ratio = shown / attack if attack > 0 else math.nan
    cells = (f"{value:8.4f}" if math.isfinite(value) else "       -" for value in (attack, shown, ratio))
    return f"{name:34}{len(pairs):6}{''.join(cells)}{time.process_time() - start:8.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=16)
    parser.add_argument("--line", action="append", help="name of a line; all by default")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = dict(attacked_releases.LINES)
    if os.environ.get("SDCKIT_DATA"):
        lines |= attacked_releases.FOREIGN
    else:
        print(f"left out, as SDCKIT_DATA is not set: {', '.join(attacked_releases.FOREIGN)}")
    named = lines | attacked_releases.SLOW
    unknown = set(chosen.line or ()) - set(named)
    if unknown:
        parser.error(f"unknown line {', '.join(sorted(unknown))}; choose from: {', '.join(named)}")
    print(f"{'line':34}{'draws':>6}{'attack':>8}{'printed':>8}{'ratio':>8}{'seconds':>8}")
    for name in chosen.line or lines:
        print(measured(name, named[name], chosen.draws), flush=True)


if __name__ == "__main__":
    main()
