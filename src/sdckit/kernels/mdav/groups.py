"""The MDAV group of each record, by the fastest of the exact algorithms for the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit import progress
from sdckit.kernels.mdav import missing, scan, state, tree
from sdckit.kernels.mdav.state import FORMED, LEFT, WORK
from sdckit.kernels.sums import standardise

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.arrays import Floats, Ints
    from sdckit.kernels.mdav.state import MdavState, RoundedCopy

STEP = 5_000_000  # nodes of a tree, or blocks of records, times columns between two checks for Ctrl-C
SMALL = 10_000  # most records for which scans are always faster than a tree
TRIAL = 100  # groups after which tree and scans are compared again
WORTH = 50  # records that are scanned twice in the time that a search takes for a node
SCANS, SEARCHES = 2.0, 1.3  # power of the ungrouped records to which the work of scans and of searches grows


def mdav_points(values: Floats) -> Floats:
    """Return the records as MDAV compares them: columns standardised (ddof 0), each record contiguous."""
    return standardise(np.ascontiguousarray(values), ddof=0)


def mdav_groups(values: Floats, k: int, points: Floats | None = None) -> Ints:
    """Return the MDAV group number of each row, by distances of `points` (default: standardised values).

    Groups are numbered in the order in which they are formed; a record without any value gets -1.
    """
    observed = ~np.isnan(values)
    present = observed.any(axis=1)
    count = np.count_nonzero(present)
    if count < k:
        raise ValueError(
            f"records with a value: {count}, fewer than k = {k}; choose a smaller k or add records"
        )
    groups = np.full(len(values), -1)
    if k == 1:
        groups[present] = np.arange(count)
        return groups
    points = mdav_points(values) if points is None else points
    with progress.track("MDAV", 1.0) as report:
        if not np.isnan(points).any():
            return group_complete(points, k, report)
        groups[present] = group_incomplete(points[present], k, report)
    return groups


class ProgressShare:
    """Estimate of the share of work done; the work left grows with a power of the ungrouped records."""

    def __init__(self, report: Callable[[float], None], counters: Ints, exponent: float) -> None:
        self.report, self.counters = report, counters
        self.before, self.begun, self.exponent = 0.0, self.left(), exponent

    def left(self) -> int:
        """Return the number of records without a group."""
        return int(self.counters[LEFT])

    def done(self) -> float:
        """Return the estimated share of the work that is done, from 0 to 1."""
        return 1 - (1 - self.before) * (self.left() / self.begun) ** self.exponent

    def show(self) -> None:
        """Report the share of the work that is done to the progress callback."""
        self.report(self.done())

    def switch(self, exponent: float) -> None:
        """Keep the share done so far and estimate the rest with another exponent."""
        self.before, self.begun, self.exponent = self.done(), self.left(), exponent


def group_complete(points: Floats, k: int, report: Callable[[float], None]) -> Ints:
    """Return the MDAV groups of points without missing cells: by scans if few, else by a tree if useful."""
    grouped, rounded = state.start(points, k), state.rounded_copy(points)
    share = ProgressShare(report, grouped.counters, SEARCHES)
    if len(points) <= SMALL or not group_by_tree(grouped, rounded, k, share):
        share.switch(SCANS)
        store = scan.fill_blocks(grouped, rounded)
        while not scan.advance(store, k, max(1, STEP // points.shape[1])):
            share.show()
    report(1.0)
    return grouped.groups


def group_incomplete(points: Floats, k: int, report: Callable[[float], None]) -> Ints:
    """Return the MDAV groups of points with missing cells, with a tree that is built again at times."""
    grouped = state.start(points, k)
    grown = tree.build_tree(grouped, state.rounded_copy(points))
    columns, share = missing.fill_columns(grown), ProgressShare(report, grouped.counters, SCANS)
    while not missing.form_groups(grown, columns, k, max(1, STEP // points.shape[1])):
        share.show()
        if grown is not (grown := tree.renewed(grown)):
            columns = missing.fill_columns(grown)
    report(1.0)
    return grouped.groups


def group_by_tree(grouped: MdavState, rounded: RoundedCopy, k: int, share: ProgressShare) -> bool:
    """Form groups with a k-d tree; return False once scans of all ungrouped records would be faster."""
    most = STEP // grouped.points.shape[1]
    grown = tree.build_tree(grouped, rounded)
    far = tree.empty_list(grouped)
    work = since = 0
    while not tree.advance(grown, far, k, max(1, min(most, TRIAL * share.left() // WORTH))):
        share.show()
        work += int(grouped.counters[WORK])
        formed = int(grouped.counters[FORMED]) - since
        if formed >= TRIAL or work * WORTH >= TRIAL * share.left():
            if share.left() > SMALL and work * WORTH > formed * share.left():
                return False
            work, since = 0, since + formed
        grown = tree.renewed(grown)
    return True
