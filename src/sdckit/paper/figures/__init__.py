"""The paper's figures, reproduced, and further ones: each a table and the chart that draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit.paper.correlations import BOUNDED
from sdckit.paper.figures import orders as orders
from sdckit.paper.figures import ours as ours
from sdckit.paper.figures import study as note
from sdckit.paper.figures.parts import Figure

if TYPE_CHECKING:
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
    # Which of the paper's two data sets each stands for in figure numbers.
    numbered = [(dataset, 1 if dataset == "Census" else i) for i, dataset in enumerate(study.datasets)]
    found = [orders.small_rankings_figure(), orders.random_rankings_figure(rng=rng, draws=draws)]
    found += [note.loss_by_parameter_figure(study, dataset, 3 + place) for dataset, place in numbered]
    found += [note.correlations_figure(study, dataset, 5 + place) for dataset, place in numbered]
    found += [
        note.bounded_by_unbounded_figure(study, dataset, metric, 7 + 2 * place + i)
        for dataset, place in numbered
        for i, metric in enumerate(BOUNDED)
    ]
    found.append(ours.tie_ranges_figure(study, number="A1", name="tie-range"))
    found.append(ours.disagreements_figure(study, number="A2", name="disagreement"))
    for number, dataset in enumerate(() if study.risks is None else study.datasets, 3):
        name = f"risk-map-{dataset.lower()}"
        found.append(ours.risk_map_figure(study, dataset, number=f"A{number}", name=name))
    return found
