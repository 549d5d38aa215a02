"""The paper's figures, reproduced, and further ones: each a table and the chart that draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit.paper.correlations import BOUNDED
from sdckit.paper.figures import orders as orders
from sdckit.paper.figures import ours as ours
from sdckit.paper.figures import study as note
from sdckit.paper.figures.parts import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.paper.study import Study

__all__ = ["Figure", "all_figures"]

MOST_DATASETS = 2  # the note has two data sets and numbers its figures for these


def all_figures(study: Study, *, rng: Any = None, draws: int = 10_000) -> list[Figure]:
    """Return the paper's ten figures, as far as their data sets were measured, then our further ones.

    Parameters
    ----------
    study : Study
        What was measured.
    rng : None, int or numpy Generator
        For the random rankings of Figure 2.
    draws : int
        How many of them.

    Returns
    -------
    list of Figure
        Census has Figures 4, 6, 9 and 10; another data set has those of Tarragona.
    """
    if len(study.datasets) > MOST_DATASETS:
        raise ValueError(f"{len(study.datasets)} datasets measured; give one or two to be drawn")
    numbered = [(dataset, _dataset_index(dataset, i)) for i, dataset in enumerate(study.datasets)]
    found = [orders.small_rankings_figure(), orders.random_rankings_figure(rng=rng, draws=draws)]
    found += [note.loss_by_parameter_figure(study, dataset, 3 + place) for dataset, place in numbered]
    found += [note.correlations_figure(study, dataset, 5 + place) for dataset, place in numbered]
    found += [
        note.bounded_by_unbounded_figure(study, dataset, metric, 7 + 2 * place + i)
        for dataset, place in numbered
        for i, metric in enumerate(BOUNDED)
    ]
    return [*found, *_further_figures(study)]


def _dataset_index(dataset: str, order: int) -> int:
    """Return 0 or 1: which of the paper's two data sets this one stands for in figure numbers."""
    return 1 if dataset == "Census" else order


def _further_figures(study: Study) -> Iterator[Figure]:
    """Yield the figures that the paper does not have, numbered A1, A2, ..."""
    drawn: list[tuple[Any, ...]] = [
        (ours.tie_ranges_figure, "tie-range"),
        (ours.disagreements_figure, "disagreement"),
    ]
    if study.risks is not None:
        drawn += [
            (ours.risk_map_figure, f"risk-map-{dataset.lower()}", dataset) for dataset in study.datasets
        ]
    for number, (draw, name, *dataset) in enumerate(drawn, 1):
        yield draw(study, *dataset, number=f"A{number}", name=name)
