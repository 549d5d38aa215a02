"""Helpers of metrics with one value for the whole file: complete records, correlations, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks, registry
from sdckit.core.registry import METRICS
from sdckit.core.text import shortened
from sdckit.metrics.comparison import require_in_memory
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Floats
    from sdckit.metrics.blocks.correlations import FileCorrelations
    from sdckit.metrics.comparison import Comparison

SINGULAR = 1e-10  # eigenvalue of a correlation matrix below which a linear relation counts as exact
TAKES_PART = 1e-6  # entry of a null vector above which its column takes part in the relation
NAMED = 10  # columns that a message names at most


def require_complete_records(name: str, comparison: Comparison) -> int:
    """Return the number of records complete in both files; raise NotApplicable if the metric needs more."""
    registry.require_size(name, comparison.n, comparison.p)
    found, needed = comparison.complete_records, METRICS[name].records
    if not comparison.complete and found < needed:
        raise checks.NotApplicable(
            f"{name} needs at least {needed} records without a missing cell, the data have {found}; "
            "fill the gaps or leave columns out"
        )
    return found


def complete_values(name: str, comparison: Comparison) -> tuple[Floats, Floats]:
    """Return original and masked values of the records complete in both files, which must be in memory."""
    require_complete_records(name, comparison)
    return require_in_memory(comparison, name).complete_values()


def whole_file_score(
    name: str,
    comparison: Comparison,
    value: float,
    *,
    parts: dict[str, float] | None = None,
    notes: Sequence[str] = (),
    detail: bool,
    per_record: bool,
) -> Score:
    """Return the score of a metric that has one value for the whole file and none per variable."""
    used = np.full(comparison.p, comparison.complete_records, np.int64)
    extra: dict[str, Any] = {"parts": parts or {}}
    if detail:
        extra["notes"] = (*notes, *ignored_weights_notes(name, comparison))
    if per_record:
        extra["records"] = np.full(comparison.n, np.nan)
    return Score(Values(value, np.full(comparison.p, np.nan)), used, comparison.counts.both - used, **extra)


def ignored_weights_notes(name: str, comparison: Comparison) -> tuple[str, ...]:
    """Return a note that the metric ignores the weights, if there are weights."""
    return (f"{name} counts every record once, whatever its weight",) if comparison.weighted else ()


def refuse_constant(name: str, spreads: Floats, columns: Sequence[str], which: str) -> None:
    """Raise NotApplicable naming the first column whose spread is 0."""
    if not spreads.all():
        column = columns[int(np.flatnonzero(spreads == 0)[0])]
        raise checks.NotApplicable(
            f"{name} has no value: column {column!r} is constant in the {which} data; leave it out"
        )


def checked_correlations(name: str, found: FileCorrelations, columns: Sequence[str], which: str) -> Floats:
    """Return the correlation matrix of the columns; raise NotApplicable for a constant column."""
    refuse_constant(name, found.norms, columns, which)
    matrix = found.products.copy()
    np.fill_diagonal(matrix, 1.0)
    return matrix


def dependent_columns(matrix: Floats, columns: Sequence[str]) -> list[str]:
    """Return the names of the columns in an exact linear relation, given their correlation matrix.

    A relation is a vector that the matrix maps to 0. A column takes part if it has a share in some
    such vector, that is, if its axis is not orthogonal to all of them.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    shares = np.sqrt((vectors[:, eigenvalues <= SINGULAR] ** 2).sum(1))
    return [column for column, share in zip(columns, shares, strict=True) if share > TAKES_PART]


def refuse_relations(name: str, matrix: Floats, columns: Sequence[str], which: str) -> None:
    """Raise NotApplicable naming the linearly dependent columns of a singular correlation matrix."""
    names = dependent_columns(matrix, columns)
    if names:
        listed = shortened(names, NAMED)
        raise checks.NotApplicable(
            f"{name} has no value: in the {which} data the columns {listed} determine one another exactly; "
            "leave one of them out"
        )
