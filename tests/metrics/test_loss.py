"""The losses against the note's tables, exact counts, known statistics, twins and worked examples."""

import itertools
import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import sdckit as sdc
from cases import each
from sdckit.metrics.pair import pair_of

NAN = float("nan")
CELLS = {"mae": sdc.mae, "mse": sdc.mse, "il1": sdc.il1, "il1s": sdc.il1s}
RANKS = {"brmae": sdc.brmae, "brmse": sdc.brmse}

# Tables 1 and 2 of Chaibub Neto's note: the permutations r2 of (1, ..., n), a column each, then the
# sums of |r1 - r2| and of (r1 - r2)**2 in its last two rows.
TABLE_1 = """
1 1 2 3 2 3
2 3 1 1 3 2
3 2 3 2 1 1
0 2 2 4 4 4
0 2 2 6 6 8
"""
TABLE_2 = """
1 1 1 2 2 1 1 3 2 1 3 3 2 4 2 4 3 2 4 3 4 3 4 4
2 2 3 1 1 4 3 1 3 4 2 1 4 1 3 1 2 4 2 4 3 4 2 3
3 4 2 3 4 2 4 2 1 3 1 4 1 2 4 3 4 3 1 1 1 2 3 2
4 3 4 4 3 3 2 4 4 2 4 2 3 3 1 2 1 1 3 2 2 1 1 1
0 2 2 2 4 4 4 4 4 4 4 6 6 6 6 6 6 6 6 8 8 8 6 8
0 2 2 2 4 6 6 6 6 8 8 10 10 12 12 14 14 14 14 16 18 18 18 20
"""


@pytest.mark.parametrize(("text", "n"), [(TABLE_1, 3), (TABLE_2, 4)], ids=["table 1", "table 2"])
def test_tables_of_the_note(text, n):
    rows = [[int(number) for number in line.split()] for line in text.split("\n") if line]
    columns = list(zip(*rows, strict=True))
    assert len({column[:n] for column in columns}) == len(columns) == math.factorial(n)
    identity = list(range(1, n + 1))
    for *ranking, absolute, squared in columns:
        assert sdc.brmae(identity, ranking) == pytest.approx(absolute / (n * n // 2), abs=1e-15)
        assert sdc.brmse(identity, ranking) == pytest.approx(squared / (n * (n * n - 1) / 3), abs=1e-15)
        assert sdc.rank_mae(identity, ranking) == pytest.approx(absolute / n)
        assert sdc.rank_mse(identity, ranking) == pytest.approx(squared / n)


def over_all_rankings(n):
    """Sums of |r - s| and (r - s)**2 over all permutations, from brmae and brmse of one wide table."""
    rankings = np.array(list(itertools.permutations(range(1, n + 1))), float).T
    pair = pair_of(np.tile(np.arange(1.0, n + 1)[:, None], rankings.shape[1]), rankings)
    values = [sdc.METRICS[name].score(pair).value.variables for name in ("brmae", "brmse")]
    absolute, squared = values[0] * (n * n // 2), values[1] * (n * (n * n - 1) / 3)
    assert np.allclose(absolute, np.round(absolute), atol=1e-9)
    assert np.allclose(squared, np.round(squared), atol=1e-9)
    return Counter(np.round(absolute).astype(int).tolist()), Counter(np.round(squared).astype(int).tolist())


COUNTS = {
    5: {0: 1, 2: 4, 4: 12, 6: 24, 8: 35, 10: 24, 12: 20},
    6: {0: 1, 2: 5, 4: 18, 6: 46, 8: 93, 10: 137, 12: 148, 14: 136, 16: 100, 18: 36},
    7: {0: 1, 2: 6, 4: 25, 6: 76, 8: 187, 10: 366, 12: 591, 14: 744, 16: 884, 18: 832, 20: 716, 22: 360,
        24: 252},
}  # fmt: skip


@pytest.mark.parametrize(
    ("n", "distinct", "maximisers"), [(3, 4, 3), (4, 11, 4), (5, 21, 20), (6, 36, 36), (7, 57, 252)]
)
def test_exact_distributions_over_all_rankings(n, distinct, maximisers):
    absolute, squared = over_all_rankings(n)
    assert absolute[n * n // 2] == maximisers == absolute[max(absolute)]
    assert len(squared) == distinct
    assert squared[n * (n * n - 1) // 3] == 1 == squared[max(squared)]
    if n in COUNTS:
        assert absolute == COUNTS[n]
    rankings = math.factorial(n)
    mean = sum(value * count for value, count in absolute.items()) / rankings / (n * n // 2)
    assert mean == pytest.approx((n * n - 1) / (3 * (n * n // 2)))
    second = sum((value / (n * n // 2)) ** 2 * count for value, count in absolute.items()) / rankings
    assert second - mean**2 == pytest.approx((n + 1) * (2 * n * n + 7) / (45 * (n * n // 2) ** 2))
    largest = n * (n * n - 1) / 3
    half = sum(value * count for value, count in squared.items()) / rankings / largest
    spread = sum((value / largest) ** 2 * count for value, count in squared.items()) / rankings - half**2
    assert (half, spread) == pytest.approx((0.5, 1 / (4 * (n - 1))))


# --- known statistics ---


@pytest.mark.parametrize("n", [2, 3, 10, 101, 5000])
def test_untied_brmse_is_half_of_one_less_spearman(n):
    from scipy.stats import spearmanr

    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    y = x + rng.normal(size=n)
    if n == 2:
        y = -x
    assert sdc.brmse(x, y) == pytest.approx((1 - spearmanr(x, y).statistic) / 2, abs=1e-12)


@pytest.mark.parametrize("n", [4, 5, 100, 101])
def test_footrule(n):
    rng = np.random.default_rng(n)
    x, y = rng.permutation(n), rng.permutation(n)
    footrule = 1 - 3 * np.abs(x - y).sum() / (n * n - 1)
    factor = 1 if n % 2 else 1 - 1 / n**2
    assert sdc.brmae(x, y) == pytest.approx(2 / 3 * (1 - footrule) * factor, abs=1e-12)


@pytest.mark.parametrize("rho", [0.9, 0.5, 0.0, -0.7])
def test_gaussian_copula_curves(rho):
    rng = np.random.default_rng(11)
    x, e = rng.normal(size=(2, 200_000))
    y = np.exp(rho * x + math.sqrt(1 - rho**2) * e)
    assert sdc.brmae(x, y) == pytest.approx(2 / math.pi * math.acos((1 + rho) / 2), abs=0.003)
    assert sdc.brmse(x, y) == pytest.approx(0.5 - 3 / math.pi * math.asin(rho / 2), abs=0.003)


def test_additive_noise_curve():
    rng = np.random.default_rng(12)
    x = rng.normal(size=200_000)
    masked = sdc.mask(x, "noise", percent=100, rng=1)
    assert sdc.brmae(x, masked) == pytest.approx(0.3489, abs=0.003)
    assert sdc.brmse(x, masked) == pytest.approx(0.1549, abs=0.003)


@pytest.mark.parametrize(("draw", "level"), [("normal", 0.798), ("uniform", 0.816), ("exponential", 0.707)])
def test_random_level_of_il1s(draw, level):
    x = getattr(np.random.default_rng(13), draw)(size=50_000)
    score = sdc.METRICS["il1s"].score(pair_of(x, x), detail=True)
    assert score.random.overall == pytest.approx(level, abs=0.006)


# --- worked examples of the specification ---


def test_a_wide_table_scores_the_mean_of_its_columns():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 50, 4))
    for name, function in RANKS.items():
        single = [function(x[:, j], y[:, j]) for j in range(4)]
        assert function(x, y) == pytest.approx(np.mean(single))
        score = sdc.METRICS[name].score(pair_of(x, y))
        assert score.value.variables == pytest.approx(single)


# --- missing cells ---


def test_missing_cells_are_left_out_pairwise_and_counted():
    x = np.array([[1.0, 5.0], [2.0, NAN], [3.0, 7.0], [4.0, NAN], [5.0, 9.0]])
    y = np.array([[2.0, 6.0], [1.0, NAN], [NAN, 5.0], [NAN, 3.0], [5.0, 9.0]])
    result = sdc.evaluate(x, y)
    counts = result.table.filter(pl.col("metric") == "brmae").select(
        "variable", "n_used", "n_suppressed", "n_imputed", "n_both_missing"
    )
    assert counts.rows() == [("all", 6, 2, 1, 1), ("x1", 3, 2, 0, 0), ("x2", 3, 0, 1, 1)]
    first, second = naive.br([1, 2, 5], [2, 1, 5]), naive.br([5, 7, 9], [6, 5, 9])
    assert (result["brmae"], result["brmse"]) == pytest.approx(
        (np.mean([first[0], second[0]]), np.mean([first[1], second[1]]))
    )
    for name in CELLS:
        assert result[name] == pytest.approx(naive.cell_loss(name, x.tolist(), y.tolist()))
    assert any("suppressed cells, left out of every metric: 2" in note for note in result.notes)
    assert any("1 cell is missing in the original" in note for note in result.notes)


def test_penalty_example():
    """8 kept rows at 0.25 and 2 suppressed ones."""
    x = np.arange(10.0)
    y = x.copy()
    y[:8] = [1, 0, 3, 2, 5, 4, 7, 6]
    kept = sdc.brmae(x[:8], y[:8])
    y[8:] = NAN
    assert kept == 0.25
    assert sdc.brmae(x, y) == 0.25
    assert sdc.brmae(x, y, missing="penalise") == pytest.approx(0.40)
    assert sdc.brmse(x, y, missing="penalise") == pytest.approx(
        naive.penalised(sdc.brmse(x[:8], y[:8]), 8, 2)
    )


def test_penalty_of_complete_suppression_is_one():
    x = np.column_stack([np.arange(5.0), np.arange(5.0)])
    y = x.copy()
    y[:, 0] = NAN
    assert sdc.brmae(x, np.full_like(x, NAN), missing="penalise") == 1
    assert sdc.brmse(x, y, missing="penalise") == 0.5
    assert math.isnan(sdc.brmae(x, np.full_like(x, NAN)))
    with pytest.raises(ValueError, match="no largest value"):
        sdc.mae(x, y, missing="penalise")


def test_a_penalty_where_hardly_a_record_is_left_to_compare():
    x, one = [1.0, 2.0, 3.0, 4.0], [1.0, NAN, NAN, NAN]
    for metric in RANKS.values():
        assert math.isnan(metric(x, one))
        assert metric(x, one, missing="penalise") == naive.penalised(0.0, 1, 3) == 0.75
        weighted = metric(x, one, missing="penalise", weights=[5.0, 1.0, 1.0, 3.0])
        assert weighted == naive.penalised(0.0, 5, 5) == 0.5
        assert metric(x, [2.0, 1.0, NAN, NAN], missing="penalise") == naive.penalised(1.0, 2, 2) == 1.0
        assert metric(x, [1.0, 2.0, NAN, NAN], missing="penalise") == naive.penalised(0.0, 2, 2) == 0.5
        assert math.isnan(metric([1.0, NAN, NAN], [1.0, 2.0, 3.0], missing="penalise"))


def test_an_evaluation_penalises_the_bounded_losses_only():
    x, y = np.arange(10.0), np.arange(10.0)
    y[8:] = NAN
    result = sdc.Microdata(x, missing="penalise").evaluate(y)
    assert (result["brmae"], result["brmse"], result["mae"]) == pytest.approx((0.2, 0.2, 0))
    assert any("without a largest value" in note for note in result.notes)


@given(st.data())
def test_missing_cells_equal_the_twin(data):
    n = data.draw(st.integers(3, 9))
    cell = st.integers(0, 4).map(float) | st.just(NAN)
    x, y = (np.array(data.draw(st.lists(cell, min_size=n, max_size=n))) for _ in range(2))
    both = ~np.isnan(x) & ~np.isnan(y)
    suppressed = int((~np.isnan(x) & np.isnan(y)).sum())
    kept = int(both.sum())
    if kept < 2:
        return
    loss = naive.br(x[both].tolist(), y[both].tolist())
    assert (sdc.brmae(x, y), sdc.brmse(x, y)) == pytest.approx(loss, abs=1e-12)
    penalty = sdc.brmae(x, y, missing="penalise")
    assert penalty == pytest.approx(naive.penalised(loss[0], kept, suppressed), abs=1e-12)


# --- zeros and constant columns ---


def test_rules_for_zeros():
    x, y = [[10.0], [0.0], [0.0], [5.0]], [[12.0], [0.0], [3.0], [4.0]]
    assert sdc.il1(x, y) == pytest.approx(naive.cell_loss("il1", x, y)) == pytest.approx(0.4 / 3)
    assert sdc.il1(x, y, zeros="drop") == pytest.approx(naive.cell_loss("il1", x, y, zeros="drop")) == 0.2
    with pytest.raises(ValueError, match="column 'x1' has 1 zeros that were changed"):
        sdc.il1(x, y, zeros="error")
    assert sdc.il1(x, x, zeros="error") == 0
    with pytest.raises(ValueError, match="unknown rule for zeros 'skip'"):
        sdc.il1(x, y, zeros="skip")
    pair = pair_of(x, y)
    for zeros, used in (("keep", 3), ("drop", 2)):
        score = sdc.METRICS["il1"].score(pair, zeros=zeros, detail=True)
        assert (score.used.tolist(), score.left_out.tolist()) == ([used], [4 - used])
        assert score.notes == (
            f"cells left out because an original value of 0 has no relative change: {4 - used}",
        )


@given(st.data())
def test_cells_with_zeros_and_gaps_equal_the_twin(data):
    n, p = data.draw(st.integers(3, 7)), data.draw(st.integers(1, 3))
    cell = st.sampled_from([0.0, 0.0, 1.5, -2.0, 7.0, NAN])
    x, y = (
        np.array(data.draw(st.lists(cell, min_size=n * p, max_size=n * p))).reshape(n, p) for _ in range(2)
    )
    x[0], x[1] = 3.0, -4.0
    y[0] = 5.0
    for name, function in CELLS.items():
        assert function(x, y) == pytest.approx(naive.cell_loss(name, x.tolist(), y.tolist()), rel=1e-9)
    dropped = naive.cell_loss("il1", x.tolist(), y.tolist(), zeros="drop")
    assert sdc.il1(x, y, zeros="drop") == pytest.approx(dropped, rel=1e-9)


def test_il1s_of_constant_columns():
    constant, x = np.full(6, 0.1), np.arange(6.0)
    table = np.column_stack([constant, x])
    moved = np.column_stack([constant, x[::-1]])
    assert sdc.il1s(table, moved) == pytest.approx(sdc.il1s(x, x[::-1]) / 2)
    assert sdc.il1s(constant, constant) == 0
    assert sdc.il1s(constant, constant + 1) == math.inf
    notes = sdc.evaluate(constant, x, metrics="il1s").notes
    assert notes == ("x1 is constant in the original, so its change has no scale",)


# --- records, strata and levels ---


@each("name", [*RANKS, *CELLS, "rank_mae", "rank_mse"])
def test_record_values_average_to_the_overall_value(name):
    rng = np.random.default_rng(21)
    x, y = rng.integers(1, 9, (2, 40, 3)).astype(float)
    metric = sdc.METRICS[name]
    score = metric.score(pair_of(x, y), per_record=True)
    assert score.records.mean() == pytest.approx(score.value.overall, rel=1e-12)
    assert np.ptp(score.records) > 0
    if name not in {"rank_mae", "rank_mse"}:
        w = rng.uniform(1, 5, 40)
        score = metric.score(pair_of(x, y, weights=w), per_record=True)
        assert np.average(score.records, weights=w) == pytest.approx(score.value.overall, rel=1e-12)


@pytest.mark.parametrize("ties", ["average", "expected", "first", "last", "min", "max", "random"])
def test_record_values_under_every_tie_rule(ties):
    x, y = np.random.default_rng(22).integers(0, 4, (2, 30)).astype(float)
    for name, function in RANKS.items():
        score = sdc.METRICS[name].score(pair_of(x, y), ties=ties, rng=5, per_record=True)
        assert score.records.mean() == pytest.approx(score.value.overall, rel=1e-12)
        assert score.value.overall == function(x, y, ties=ties, rng=5)


def test_strata_are_measured_apart():
    rng = np.random.default_rng(23)
    frame = pl.DataFrame({"a": rng.normal(size=30), "b": rng.normal(size=30), "g": ["u", "v", "u"] * 10})
    masked = frame.with_columns(pl.col("a").shuffle(seed=1), pl.col("b").shuffle(seed=2))
    result = sdc.Microdata(frame, by="g").evaluate(masked, metrics=[*RANKS, *CELLS])
    assert result.table["stratum"].unique(maintain_order=True).to_list() == ["all", "u", "v"]
    for name, function in (RANKS | CELLS).items():
        for stratum in ("u", "v"):
            ours, theirs = (t.filter(pl.col("g") == stratum).drop("g") for t in (frame, masked))
            rows = result.table.filter(metric=name, stratum=stratum)
            assert rows.filter(variable="all")["value"][0] == pytest.approx(function(ours, theirs))
            assert rows.filter(variable="b")["value"][0] == pytest.approx(
                function(ours.select("b"), theirs.select("b"))
            )
        assert result[name] == pytest.approx(function(frame.drop("g"), masked.drop("g")))
