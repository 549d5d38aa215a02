"""An engine that reads blocks of rows gives every loss metric what the pair in memory gives."""

import math

import numpy as np
import pytest

from cases import each
from engine_totals import engine_answers
from sdckit.core.checks import NotApplicable
from sdckit.core.registry import METRICS
from sdckit.metrics.pair import pair_of

IN_MEMORY = {"covariance_loss", "pil", "pmse"}  # need all records at once
UNWEIGHTED = {"ks", "wasserstein", "mse_marginal", "mse_permutation"}  # the exchange has no weights for them
LOSSES = [
    one for one in METRICS.values() if one.family == "loss" and one.name not in IN_MEMORY and not one.role
]
NAN = float("nan")


def lognormal(rng, n):
    x = rng.lognormal(3, 1.5, (n, 3)) + 0.0
    x[:, 2] = x[:, 0] * rng.lognormal(0, 0.5, n)
    return x, x * rng.lognormal(0, 0.3, x.shape)


def tied(rng, n):
    x = np.round(rng.normal(0, 1.5, (n, 3)))
    return x, np.round(x + rng.normal(0, 1, x.shape))


def far_from_zero(rng, n):
    """Values whose means are rounded to 1e-7: in memory and in blocks alike, but not to the same number."""
    x = 1e9 + rng.normal(size=(n, 3))
    return x, x + rng.normal(size=x.shape) / 10


def extreme(rng, n):
    x, y = lognormal(rng, n)
    units = np.array([1e-290, 1.0, 1e290])
    return x * units, y * units


def with_gaps(rng, n):
    x, y = tied(rng, n)
    x[rng.random(x.shape) < 0.15] = NAN
    y[rng.random(x.shape) < 0.15] = NAN
    return x, y


def constant(rng, n):
    x, y = lognormal(rng, n)
    x[:, 0], y[:, 1] = 0.1, 7.0
    return x, y


def nearly_empty(rng, n):
    x, y = with_gaps(rng, n)
    x[1:, 0], x[:, 1] = NAN, NAN
    return x, y


FILES = [lognormal, tied, far_from_zero, extreme, with_gaps, constant, nearly_empty]


def score_of(metric, comparison, options):
    """The score with all detail, or the reason why there is none."""
    try:
        return metric.score(comparison, detail=True, **options)
    except ValueError as reason:
        return str(reason)


def check_level(found, expected, scale, close):
    assert (found is None) == (expected is None)
    if found is not None:
        near = {"rel": close, "abs": close * scale, "nan_ok": True}
        assert found.variables == pytest.approx(expected.variables, **near)
        assert found.overall == pytest.approx(expected.overall, **near)


def check_score(metric, found, expected, *, weighted=False, rounded_means=False):
    if isinstance(expected, str):
        assert found == expected
        return
    levels = expected.value, expected.random
    sizes = [level.overall for level in levels if level is not None and math.isfinite(level.overall)]
    # Moments are differences of correlations: a small one has the rounding errors of numbers up to 1.
    scale = 1.0 if metric.bounded or metric.needs == "moments" else max(sizes, default=1.0)
    for name in ("value", "random", "tie_low", "tie_high"):
        if name != "random" or not weighted or metric.needs != "ranks":  # that level needs all records
            by_mean = rounded_means and (metric.name == "ci_overlap" or name == "random")
            check_level(getattr(found, name), getattr(expected, name), scale, 1e-6 if by_mean else 1e-12)
    assert found.used.tolist() == expected.used.tolist()
    assert found.left_out.tolist() == expected.left_out.tolist()
    assert found.notes == expected.notes


@each("weighted", [False, True])
@each("make", FILES)
def test_scores_of_blocks_are_those_of_memory(make, weighted):
    rng = np.random.default_rng(len(make.__name__))
    n = 90
    x, y = make(rng, n)
    pair = pair_of(x, y, weights=rng.gamma(1, 1, n) + 0.01 if weighted else None)
    strata = rng.choice([0, 1, 1, 1, 2], n) if make is not extreme else None
    borders = [0, 1, 5, 5, 40, n]
    answers, pairs = engine_answers(pair, strata, borders)
    for group, memory in pairs.items():
        for metric in LOSSES:
            if weighted and metric.name in UNWEIGHTED:
                continue
            choices = [{}, {"missing": "penalise"}] if metric.bounded and metric.parameters else [{}]
            for options in choices if metric.name.startswith(("br", "il_v", "ks")) else [{}]:
                found, expected = (score_of(metric, one, options) for one in (answers[group], memory))
                check_score(metric, found, expected, weighted=weighted, rounded_means=make is far_from_zero)
            if metric.dominated:
                judged = [[metric.dominated(one, j) for j in range(3)] for one in (answers[group], memory)]
                assert judged[0] == judged[1], (metric.name, group)


def test_other_rules_and_scales_are_those_of_memory():
    rng = np.random.default_rng(8)
    pair = pair_of(*with_gaps(rng, 60))
    answers, _ = engine_answers(pair, None, [7, 30])
    for name, options in [
        *(("brmse", {"ties": ties}) for ties in ("min", "max", "expected")),
        *(("il1", {"zeros": zeros}) for zeros in ("keep", "drop")),
        ("wasserstein", {"scale": "spread"}),
        ("il_variables", {"scale": "raw"}),
    ]:
        found, expected = (score_of(METRICS[name], one, options) for one in (answers[None], pair))
        check_score(METRICS[name], found, expected)


def test_what_needs_all_records_is_left_out_by_name():
    pair = pair_of(*tied(np.random.default_rng(3), 30))
    answer = engine_answers(pair, None, [11])[0][None]
    assert "covariance_loss needs both files in memory" in score_of(METRICS["covariance_loss"], answer, {})
    assert "the tie rule 'random' cannot" in score_of(METRICS["brmae"], answer, {"ties": "random", "rng": 1})
    for metric in LOSSES:
        if metric.needs == "cells" and metric.name != "mse_permutation":
            with pytest.raises(NotApplicable, match="a loss of each record needs both files in memory"):
                metric.score(answer, per_record=True)
