"""Metrics that are computed by default: those about columns of some role only where columns have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sdckit.risk.facts import untouched_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.core.registry import Metric
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair


def metrics_for_pair(metrics: Iterable[Metric], pair: Pair) -> list[Metric]:
    """Return those of the default metrics whose columns a pair of files has."""
    names = pair.original.table_names if pair.table is None else pair.table.names
    return metrics_for_columns(metrics, pair.original, names, pair.disclosure.columns)


def metrics_for_columns(
    metrics: Iterable[Metric], original: Original, published: Sequence[str], masked: Iterable[str] = ()
) -> list[Metric]:
    """Return those of the default metrics whose columns are among the published ones."""
    unmasked = untouched_names(original, published, masked)

    def has_columns(role: str | None) -> bool:
        """Return True if some column has the role."""
        return role is None or bool(unmasked if role == "untouched" else original.roles.columns_with(role))

    return [one for one in metrics if has_columns(one.role)]
