"""Totals of exchanges equal those of the kernels in memory, however rows are cut into blocks and buckets."""

import numpy as np
import pytest

from file_transport import Columns, FileTransport
from sdckit.engines import plan as measuring
from sdckit.engines.plan import Wanted, measure_ranks
from sdckit.engines.transport import Piece
from sdckit.kernels.ranks import AlignedColumn, OrderedColumn, WeightedRanks, distance, mean_cross_gap
from sdckit.metrics.blocks import couple_quantiles, distribution_gap

KINDS = ("untied", "whole", "zeros", "zeros kept", "one heavy value", "constant masked", "constant original")
WHOLE = Piece("x")


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    monkeypatch.setattr(measuring, "LEAST_SAMPLE", 30)


def columns(kind, n, rng):
    """Return an original and a masked column of a kind, some cells missing in every third file."""
    x = rng.normal(size=n)
    y = x + rng.normal(size=n) * 0.3
    if kind == "whole":
        x, y = np.round(x), np.round(y)
    elif kind.startswith("zeros"):
        x = np.where(rng.random(n) < 0.6, 0.0, x)
        y = np.where(x == 0, 0.0, y) if kind == "zeros kept" else y
    elif kind == "one heavy value":
        x, y = np.round(x * 3), np.where(rng.random(n) < 0.5, 1.0, np.round(y))
    elif kind == "constant masked":
        y = np.zeros(n)
    elif kind == "constant original":
        x = np.zeros(n)
    if rng.random() < 1 / 3:
        x, y = (np.where(rng.random(n) < 0.1, np.nan, column) for column in (x, y))
    return x + 0.0, y + 0.0


def transport(x, y, rng, **more):
    """Return an engine with up to eight blocks, some of them empty, and buckets of a few rows."""
    borders = np.sort(np.concatenate(([0, x.size], rng.integers(0, x.size + 1, rng.integers(0, 8)))))
    sizes = np.diff(borders).tolist()
    together = more.pop("together", False)
    columns = Columns({"x": x}, {"x": y}, **more)
    return FileTransport(columns, sizes=sizes, bucket_rows=int(rng.integers(3, 60)), together=together)


def compared(x, y):
    seen = ~(np.isnan(x) | np.isnan(y))
    return x[seen], y[seen]


@pytest.mark.parametrize("kind", KINDS)
def test_rank_sums_are_those_of_memory_under_every_tie_rule(kind):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, y = columns(kind, int(rng.integers(4, 300)), rng)
        ours, theirs = compared(x, y)
        engine, sizes = transport(x, y, rng), {WHOLE: ours.size}
        found = measure_ranks(engine, sizes, {WHOLE: Wanted(expected=True)})[WHOLE]
        by_row = measure_ranks(engine, sizes, {WHOLE: Wanted(ties="rows")})[WHOLE]
        column = OrderedColumn(ours)
        for rule in ("average", "min", "max"):
            assert found.sums[rule] == distance(column, theirs, rule)
        for rule in ("first", "last"):
            assert by_row.sums[rule] == distance(column, theirs, rule)
        assert found.sums["expected"][1:] == pytest.approx(
            distance(column, theirs, "expected")[1:], rel=1e-13
        )
        aligned = AlignedColumn(column, theirs)
        level = mean_cross_gap(column.middle2 / 2, np.ones(ours.size), (aligned.first + aligned.last) / 2)
        assert found.unrelated_ranks == pytest.approx(level, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_over_both_columns_in_order_are_those_of_memory(kind):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, y = columns(kind, int(rng.integers(4, 300)), rng)
        ours, theirs = compared(x, y)
        n, power = ours.size, int(rng.integers(-3, 4))
        ranks = (0, n // 2, n - 1)
        wanted = Wanted(streams=True, power=power, ranks=ranks)
        found = measure_ranks(transport(x, y, rng), {WHOLE: n}, {WHOLE: wanted})[WHOLE]
        ordered, others = np.sort(ours), np.sort(theirs)
        not_zero = ordered[ordered != 0]
        pieces = couple_quantiles(ours, theirs, None)
        marginal = ((pieces.x - pieces.y) ** 2).sum()
        split = ((pieces.x - pieces.own) ** 2).sum() - marginal
        unit = 2.0**power
        assert found.largest_gap == round(distribution_gap(ours, theirs, None) * n)
        assert found.order_statistics == {rank: ordered[rank] for rank in ranks}
        assert found.quantile_gaps * unit == pytest.approx(np.abs(ordered - others).sum(), rel=1e-12)
        assert found.marginal * unit**2 == pytest.approx(marginal, rel=1e-12)
        assert found.permutation * unit**2 == pytest.approx(split, rel=1e-12, abs=1e-12 * (marginal + 1))
        cross = mean_cross_gap(ordered, np.ones(n), others)
        assert found.cross_gaps * unit == pytest.approx(cross, rel=1e-12)
        if not_zero.size:
            relative = mean_cross_gap(not_zero, 1 / np.abs(not_zero), others)
            assert found.relative_cross_gaps * unit == pytest.approx(relative, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_weighted_ranks_are_those_of_memory_also_within_strata(kind):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x, y = columns(kind, int(rng.integers(20, 300)), rng)
        few = seed % 2 == 0
        weights = rng.choice([1.0, 2.0, 5.0], x.size) if few else rng.exponential(size=x.size)
        strata = rng.integers(0, 3, x.size)
        seen = ~(np.isnan(x) | np.isnan(y))
        chosen = {WHOLE: seen} | {Piece("x", k): seen & (strata == k) for k in range(3)}
        unit = float(2.0 ** (np.frexp(weights.max())[1] - 1))
        wanted = dict.fromkeys(chosen, Wanted(ties="weights", streams=True, unit=unit))
        engine = transport(x, y, rng, weights=weights, strata=strata, together=few)
        found = measure_ranks(engine, {piece: int(rows.sum()) for piece, rows in chosen.items()}, wanted)
        for piece, rows in chosen.items():
            if rows.sum() < 2:
                continue
            expected = WeightedRanks(x[rows], y[rows], weights[rows]).values()
            order = np.argsort(x[rows], kind="stable")
            cross = mean_cross_gap(x[rows][order], weights[rows][order], np.sort(y[rows]))
            assert found[piece].weighted == pytest.approx(expected, rel=1e-12)
            assert found[piece].cross_gaps == pytest.approx(cross, rel=1e-12)


def test_a_heavy_value_fills_no_bucket():
    rng = np.random.default_rng(1)
    x = np.where(rng.random(20_000) < 0.6, 0.0, rng.normal(size=20_000))
    y = np.where(x == 0, 0.0, x + rng.normal(size=20_000))
    engine = FileTransport(Columns({"x": x}, {"x": y}), sizes=[10_000] * 2, bucket_rows=1_000)
    measure_ranks(engine, {WHOLE: x.size}, {WHOLE: Wanted(streams=True)})
    assert engine.largest < 4 * 1_000
