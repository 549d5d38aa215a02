"""All that the report takes from original records, in one place to audit.

Two figures on the page are counts of records: the distributions of each variable and the records at
risk. Both come from here, and only as bins of at least `THRESHOLD` records. Bins have rounded edges
that are chosen on the masked file; the outer ones are open, so that neither a smallest nor a largest
value shows. Whatever could undo a masking is dropped from the list of facts. Every other number of
the page is a measure of the whole file or of a whole variable; strata are never shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.compiled import Floats, Ints

THRESHOLD = 10  # records that a bin has at least, in the original and in the masked file alike
DIGITS = 2  # significant digits of an edge
BINS = 10  # aimed at between the outer ones
OUTER = 0.1  # share of the masked records below the first edge and above the last, about
SECRETS = ("seed", "rng", "entropy", "random state")


@dataclass(frozen=True)
class Bins:
    """Records of both files between edges; the first and the last bin are open."""

    edges: tuple[float, ...]
    original: tuple[int, ...]
    masked: tuple[int, ...]


@dataclass(frozen=True)
class RiskBin:
    """How many records have a risk in [low, high)."""

    low: float
    high: float
    records: int


def distribution(original: Floats, masked: Floats) -> Bins | None:
    """Count the records of a variable in both files; None where that would tell of few of them."""
    original, masked = original[~np.isnan(original)], masked[~np.isnan(masked)]
    if min(original.size, masked.size) < 2 * THRESHOLD:
        return None
    edges = _rounded_edges(masked)
    edges = edges[(edges > original.min()) & (edges < original.max())]  # no edge is an extreme itself
    ours, theirs = _counts(original, edges), _counts(masked, edges)
    ends = _merged(ours, theirs)
    if len(ends) < 2:
        return None
    starts = [0, *ends[:-1]]
    return Bins(
        edges=tuple(float(edges[end - 1]) for end in ends[:-1]),
        original=tuple(int(ours[a:b].sum()) for a, b in zip(starts, ends, strict=True)),
        masked=tuple(int(theirs[a:b].sum()) for a, b in zip(starts, ends, strict=True)),
    )


def _rounded_edges(masked: Floats) -> Floats:
    """Multiples of a round step, cut to few digits; they depend on the masked values alone."""
    low, high = np.quantile(masked, [OUTER, 1 - OUTER])
    if not high > low:
        low, high = masked.min(), masked.max()
    width = (high - low) / BINS
    if not width > 0:
        return np.empty(0)
    size = 10.0 ** np.floor(np.log10(width))
    step = size * next(factor for factor in (1, 2, 5, 10) if factor * size >= 0.999 * width)
    places = np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    return np.unique([float(f"{step * place:.{DIGITS}g}") + 0.0 for place in places])


def _counts(values: Floats, edges: Floats) -> Ints:
    """Records below the first edge, between two edges, and from the last edge on."""
    return np.bincount(np.searchsorted(edges, values, side="right"), minlength=edges.size + 1)


def _merged(*counts: Ints) -> list[int]:
    """Where merged bins end so that each has the threshold of records in every file."""
    ends, start = [], 0
    for end in range(1, len(counts[0]) + 1):
        if all(count[start:end].sum() >= THRESHOLD for count in counts):
            ends.append(end)
            start = end
    if ends:
        ends[-1] = len(counts[0])  # what is left over joins its neighbour
    return ends


def records_at_risk(risks: Floats) -> list[RiskBin] | None:
    """Count records by their risk in steps of 0.1; a bin is empty or has the threshold of records."""
    risks = risks[~np.isnan(risks)]
    if risks.size < THRESHOLD:
        return None
    counts = _counts(risks, np.arange(1, 10) / 10)
    bins: list[tuple[int, int]] = []
    start = 0
    for end in range(1, 11):
        found = counts[start:end].sum()
        if found >= THRESHOLD or (found == 0 and end - start == 1):
            bins.append((start, end))
            start = end
    while start < 10 and counts[start:].sum() < THRESHOLD:  # thin at the end: go back to a full bin
        start = bins.pop()[0]
    if start < 10:
        bins.append((start, 10))
    return [RiskBin(a / 10, b / 10, int(counts[a:b].sum())) for a, b in bins]


def public_facts(facts: Mapping[str, str]) -> dict[str, str]:
    """Drop what would undo a masking: whoever has the seed can subtract the noise."""
    return {
        name: text for name, text in facts.items() if not any(secret in name.lower() for secret in SECRETS)
    }
