"""What single records contribute to the coefficients of a model.

A coefficient is a weighted sum of the responses. Where few of them have a weight, or one has most of it, the
coefficient tells a response: the intercept of a model of classes alone is the mean of its first class.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.blocks.contributions import Contributions
from sdckit.metrics.dominated import is_dominated
from sdckit.metrics.estimates.models import model_data
from sdckit.metrics.estimates.shares import NO_FIGURE, ONE_DOMINATES, Members, Share, members_of, sum_reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.estimates.measuring import Rows
    from sdckit.metrics.estimates.models import Levels
    from sdckit.metrics.estimates.parse import Request
    from sdckit.metrics.estimates.regression import ModelData
    from sdckit.metrics.estimates.survey_file import SurveyFile

FEW_DIFFER = "fewer than ten records differ in the term"
FEW_IN_CLASS = "fewer than ten records are in the class that others are compared with"
FEW_RESPOND = "fewer than ten records have one of both responses"


def model_shares(file: SurveyFile, request: Request, levels: Levels, rows: Rows) -> Iterator[Share]:
    """Yield what records contribute to each coefficient of a model in each domain."""
    data, seen = model_data(file, request, levels)
    compared = _compared(file, request, levels)
    labels = file.grouping(request.by).labels
    for domain, members in enumerate(members_of(file, request.by, seen & (data.weights > 0))):
        own = data._replace(
            response=data.response[members.records],
            terms=data.terms[members.records],
            weights=data.weights[members.records],
        )
        reason = _model_reason(own, request, members, compared)
        keys = [(f"{request.text} [{name}]", labels[domain]) for name in data.names]
        fitted = np.array([not math.isnan(rows[key].value) for key in keys])
        influence = np.zeros_like(own.terms)
        if not reason and fitted.any():
            influence[:, fitted] = _influence(own.terms[:, fitted], own.weights)
        for place, key in enumerate(keys):
            share = Share(key, rows[key], request.by, domain, reason)
            if not reason and not fitted[place]:
                share.reason = NO_FIGURE
            if not share.reason:
                _add_term(share, own, place, influence[:, place], members, logistic=request.kind == "logit")
            yield share


def _compared(file: SurveyFile, request: Request, levels: Levels) -> dict[str, Ints]:
    """Return 1 for the records in the first class of each column of classes, 0 for others, by column."""
    found = {}
    for name in request.columns:
        if (request.text, name) not in levels:
            continue
        own, first = file.domains([name]), levels[request.text, name][0]
        places = np.array([*(int(label == first) for label in own.labels), 0], np.int64)
        found[name] = places[own.numbers]
    return found


def _model_reason(data: ModelData, request: Request, members: Members, compared: Mapping[str, Ints]) -> str:
    """Return why no coefficient of a model can be told; empty if some can."""
    if members.reason:
        return members.reason
    if any(members.chosen(first[members.records] == 1).reason for first in compared.values()):
        return FEW_IN_CLASS
    if request.kind == "logit":
        sides = (members.chosen(data.response == value) for value in (0.0, 1.0))
        return FEW_RESPOND if any(side.reason for side in sides) else ""
    return ""


def _influence(terms: Floats, weights: Floats) -> Floats:
    """Return by how much each coefficient moves with each response: records x coefficients."""
    roots = np.sqrt(weights)
    scales = np.sqrt((terms**2).mean(0))
    base, upper = np.linalg.qr(terms / scales * roots[:, None])
    return np.asarray((np.linalg.solve(upper, base.T) * roots).T / scales, np.float64)


def _add_term(
    share: Share, data: ModelData, place: int, influence: Floats, members: Members, *, logistic: bool
) -> None:
    """Enter what records contribute to one coefficient."""
    term, response = data.terms[:, place], data.response
    kinds, counts = np.unique(term, return_counts=True)
    usual = kinds[np.argmax(counts)]
    if kinds.size > 1 and members.chosen(term != usual).reason:
        share.reason = FEW_DIFFER
        return
    sizes = members.sizes(influence)
    moved = sizes if logistic else members.sizes(influence * response)
    share.reason = sum_reason(sizes) or (ONE_DOMINATES if is_dominated(Contributions.of(moved)) else "")
    mean = float(np.average(response, weights=data.weights))
    scale = mean * (1 - mean) if logistic else 1.0  # of the odds' derivative, roughly
    share.hide(float(moved.max()) / scale, abs(share.row.value))
