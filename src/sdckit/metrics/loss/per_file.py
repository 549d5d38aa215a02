"""Helpers of metrics with one value for the whole file: complete records, correlations, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks, registry
from sdckit.core.registry import METRICS
from sdckit.core.text import shortened
from sdckit.kernels.scaling import deviations, powers_of_two
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.pair import Pair

SINGULAR = 1e-10  # eigenvalue of a correlation matrix below which a linear relation counts as exact
TAKES_PART = 1e-6  # entry of a null vector above which its column takes part in the relation
NAMED = 10  # columns that a message names at most


def complete_records(name: str, pair: Pair) -> tuple[Floats, Floats, Ints]:
    """Return original and masked values of the records complete in both files, and their row numbers."""
    registry.require_size(name, pair.original.n, pair.p)
    x, y = pair.original.values, pair.masked
    rows = np.arange(pair.original.n)
    if not pair.complete:
        rows = np.flatnonzero(~(pair.original.missing | pair.missing).any(1))
        needed = METRICS[name].records
        if rows.size < needed:
            raise checks.NotApplicable(
                f"{name} needs at least {needed} records without a missing cell, the data have {rows.size}; "
                "fill the gaps or leave columns out"
            )
        x, y = x[rows], y[rows]
    # One layout for both: sums are then added in one order, and equal files give equal sums.
    return np.ascontiguousarray(x), np.ascontiguousarray(y), rows


def whole_file_score(
    name: str,
    pair: Pair,
    value: float,
    rows: Ints,
    *,
    parts: dict[str, float] | None = None,
    notes: Sequence[str] = (),
    detail: bool,
    per_record: bool,
) -> Score:
    """Return the score of a metric that has one value for the whole file and none per variable."""
    used = np.full(pair.p, rows.size, np.int64)
    extra: dict[str, Any] = {"parts": parts or {}}
    if detail:
        extra["notes"] = (*notes, *ignored_weights_notes(name, pair))
    if per_record:
        extra["records"] = np.full(pair.original.n, np.nan)
    return Score(Values(value, np.full(pair.p, np.nan)), used, pair.counts.both - used, **extra)


def ignored_weights_notes(name: str, pair: Pair) -> tuple[str, ...]:
    """Return a note that the metric ignores the weights, if there are weights."""
    return () if pair.original.weights is None else (f"{name} counts every record once, whatever its weight",)


def refuse_constant(name: str, spreads: Floats, columns: Sequence[str], which: str) -> None:
    """Raise NotApplicable naming the first column whose spread is 0."""
    if not spreads.all():
        column = columns[int(np.flatnonzero(spreads == 0)[0])]
        raise checks.NotApplicable(
            f"{name} has no value: column {column!r} is constant in the {which} data; leave it out"
        )


def correlations(name: str, values: Floats, columns: Sequence[str], which: str) -> Floats:
    """Return the correlation matrix of the columns; raise NotApplicable for a constant column."""
    centred = deviations(values / powers_of_two(values))
    norms = np.sqrt((centred**2).sum(0))
    refuse_constant(name, norms, columns, which)
    centred /= norms
    matrix: Floats = centred.T @ centred
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
