"""Which records MDAV puts together: the groups, whatever is published of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit import progress
from sdckit.kernels.mdav import flat_scan, float32_scan, missing_cells, state, tree_build, tree_search
from sdckit.kernels.mdav.float32_copy import round_off
from sdckit.kernels.mdav.state import FORMED, LEFT, WORK
from sdckit.kernels.scaling import standardise

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.kernels.mdav.float32_copy import Rounded
    from sdckit.kernels.mdav.state import MdavState

CELLS = 100_000_000  # visits to a cell between two looks at the keyboard: a fraction of a second
STEP = 5_000_000  # the same for nodes of a tree, or blocks of a filter, times columns
SMALL = 10_000  # records that flat scans group in no time
TRIAL = 100  # groups between two decisions between tree and scans
WORTH = 50  # records that are scanned twice in the time that a search takes for a node
ALIVE = 0.7  # share of records left at which a new tree is planted
SCANS, SEARCHES = 2.0, 1.3  # how the work grows with the records left


def mdav_points(values: Floats) -> Floats:
    """The records as MDAV compares them: columns standardised (ddof 0), each record contiguous."""
    return standardise(np.ascontiguousarray(values), ddof=0)


def mdav_groups(values: Floats, k: int, points: Floats | None = None) -> Ints:
    """The MDAV group of each row, numbered as they are formed; -1 for a record without any value."""
    observed = ~np.isnan(values)
    present = observed.any(axis=1)
    count = np.count_nonzero(present)
    if count < k:
        raise ValueError(
            f"{count} records have a value, fewer than k = {k}; choose a smaller k or add records"
        )
    groups = np.full(len(values), -1)
    if k == 1:
        groups[present] = np.arange(count)
        return groups
    points = mdav_points(values) if points is None else points
    with progress.track("MDAV", 1.0) as report:
        if not np.isnan(points).any():
            return group_complete(points, k, report)
        part = missing_cells.start(points[present], k)
        share = Share(report, part.counters, SCANS)
        while not missing_cells.advance(part, k, max(1, CELLS // (share.left() * 10 * points.shape[1]))):
            share.tell()
        report(1.0)
    groups[present] = part.groups
    return groups


class Share:
    """The share of the work that is done, if what is left goes with a power of the records left."""

    def __init__(self, report: Callable[[float], None], counters: Ints, exponent: float) -> None:
        self.report, self.counters = report, counters
        self.before, self.begun, self.exponent = 0.0, self.left(), exponent

    def left(self) -> int:
        """How many records are left."""
        return int(self.counters[LEFT])

    def done(self) -> float:
        """The share, from 0 to 1."""
        return 1 - (1 - self.before) * (self.left() / self.begun) ** self.exponent

    def tell(self) -> None:
        """Report the share."""
        self.report(self.done())

    def switch(self, exponent: float) -> None:
        """Keep what is done, and let the rest go with another exponent."""
        self.before, self.begun, self.exponent = self.done(), self.left(), exponent


def group_complete(points: Floats, k: int, report: Callable[[float], None]) -> Ints:
    """The groups of a file without missing cells: by flat scans if small, by a tree if that is of use."""
    if len(points) <= SMALL:
        flat = flat_scan.start(points, k)
        share = Share(report, flat.counters, SCANS)
        while not flat_scan.advance(flat, k, max(1, CELLS // (share.left() * 2 * points.shape[1]))):
            share.tell()
        report(1.0)
        return flat.groups
    grouped, rounded = state.start(points, k), round_off(points)
    share = Share(report, grouped.counters, SEARCHES)
    if not search(grouped, rounded, k, share):
        share.switch(SCANS)
        store = float32_scan.lay_out(grouped, rounded)
        while not float32_scan.advance(store, k, max(1, STEP // points.shape[1])):
            share.tell()
    report(1.0)
    return grouped.groups


def search(grouped: MdavState, rounded: Rounded, k: int, share: Share) -> bool:
    """Form groups with a tree; False as soon as scans of all records left would be faster."""
    most = STEP // grouped.points.shape[1]
    tree, planted = tree_build.plant(grouped, rounded), share.left()
    work = since = 0
    while not tree_search.advance(tree, k, max(1, min(most, TRIAL * share.left() // WORTH))):
        share.tell()
        work += int(grouped.counters[WORK])
        formed = int(grouped.counters[FORMED]) - since
        if formed >= TRIAL or work * WORTH >= TRIAL * share.left():
            if share.left() > SMALL and work * WORTH > formed * share.left():
                return False
            work, since = 0, since + formed
        if share.left() < ALIVE * planted:
            tree, planted = tree_build.plant(grouped, rounded), share.left()
    return True
