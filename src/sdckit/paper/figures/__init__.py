"""The note's figures, reproduced, and further ones: each a table and the chart that draws it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sdckit.paper.correlations import BOUNDED
from sdckit.paper.figures import methods as across
from sdckit.paper.figures import orders as orders
from sdckit.paper.figures import risk as risk
from sdckit.paper.figures import study as note
from sdckit.paper.figures import ties as ties
from sdckit.paper.figures.parts import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.paper.results import Study

__all__ = ["Figure", "all_figures"]

PLACES = 2  # the note has two datasets, and its figures numbers for no more


def all_figures(study: Study, *, rng: Any = None, draws: int = 10_000) -> list[Figure]:
    """Return the note's ten figures, where their data sets are available, then ours.

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
        Census has Figures 4, 6, 9 and 10; another dataset takes the place of Tarragona.
    """
    if len(study.datasets) > PLACES:
        raise ValueError(f"{len(study.datasets)} datasets measured; give one or two to be drawn")
    places = [(dataset, _place(dataset, i)) for i, dataset in enumerate(study.datasets)]
    found = [orders.small_orders(), orders.large_orders(rng=rng, draws=draws)]
    found += [note.against_parameter(study, dataset, 3 + place) for dataset, place in places]
    found += [note.over_replications(study, dataset, 5 + place) for dataset, place in places]
    found += [
        note.against_each_other(study, dataset, metric, 7 + 2 * place + i)
        for dataset, place in places
        for i, metric in enumerate(BOUNDED)
    ]
    return [*found, *_ours(study, places)]


def _place(dataset: str, order: int) -> int:
    return 1 if dataset == "Census" else order


def _ours(study: Study, places: list[tuple[str, int]]) -> Iterator[Figure]:
    """Return our figures, numbered A1, A2, ..."""
    drawn: list[tuple[Any, ...]] = []
    drawn += [(ties.rule_values, f"figure-{3 + place}-ties", dataset) for dataset, place in places]
    drawn += [(ties.rule_correlations, f"figure-{5 + place}-ties", dataset) for dataset, place in places]
    drawn += [(ties.rule_associations, f"figure-{7 + 2 * place}-ties", dataset) for dataset, place in places]
    drawn += [(ties.tie_ranges, "tie-range")]
    drawn += [(across.tails, f"tails-{dataset.lower()}", dataset) for dataset, _ in places]
    drawn += [(across.across_methods, f"across-{dataset.lower()}", dataset) for dataset, _ in places]
    drawn += [(across.disagreements, "disagreement")]
    if study.risks is not None:
        outliers = partial(risk.risk_map, risk="linkage_outliers")
        drawn += [(risk.risk_map, f"risk-map-{dataset.lower()}", dataset) for dataset, _ in places]
        drawn += [(outliers, f"risk-outliers-{dataset.lower()}", dataset) for dataset, _ in places]
        drawn += [(risk.attacks, f"attacks-{dataset.lower()}", dataset) for dataset, _ in places]
    for number, (draw, name, *dataset) in enumerate(drawn, 1):
        yield draw(study, *dataset, number=f"A{number}", name=name)
