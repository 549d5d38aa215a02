"""Files cut into blocks of rows, and the totals that exchanges deliver, computed in memory."""

import pickle
from functools import partial, reduce

import numpy as np

from sdckit.engines.compare import Basis, EngineComparison, SecondScan, merge_scans, scan_block
from sdckit.engines.plan import RankTotals
from sdckit.engines.transport import Block, Piece, merged
from sdckit.kernels.ranks import mean_cross_gap, tie_sum
from sdckit.metrics.blocks import couple_quantiles, edge_positions, edges_between, stream_power


def rank_totals(pair, j):
    """The totals of variable j that need its values in order; None below one record."""
    x, y, weights = pair.cells(j)
    n = x.size
    if not n:
        return None
    power = int(stream_power(np.array([max(np.abs(x).max(), np.abs(y).max())]))[0])
    u, v = np.ldexp(x, -power), np.ldexp(y, -power)
    pieces, order = couple_quantiles(u, v, None), np.argsort(x, kind="stable")
    shares = np.ones(n) if weights is None else weights
    costly = order[x[order] != 0]
    points = np.union1d(x, y)
    alignment = pair.alignment(j)
    middles = alignment.column.middle2 / 2, (alignment.first + alignment.last) / 2
    with np.errstate(over="ignore"):  # 1/|x| of a tiny value
        relative = shares[costly] / np.abs(x[costly])
    return RankTotals(
        n,
        sums={
            "average": alignment.average(),
            "expected": alignment.expected(),
            "min": alignment.least(),
            "max": alignment.largest(),
        },
        tie_sums=(tie_sum(alignment.column.first), tie_sum(alignment.first)),
        unrelated_ranks=mean_cross_gap(middles[0], np.ones(n), middles[1]),
        weighted=None if weights is None or n < 2 else pair.weighted_ranks(j).values(),
        largest_gap=max(abs(int((x <= v).sum()) - int((y <= v).sum())) for v in points),
        power=power,
        quantile_gaps=np.abs(pieces.x - pieces.y).sum(),
        marginal=((pieces.x - pieces.y) ** 2).sum(),
        permutation=((pieces.y - pieces.own) * (2 * pieces.x - pieces.own - pieces.y)).sum(),
        cross_gaps=mean_cross_gap(u[order], shares[order], np.sort(v)),
        relative_cross_gaps=mean_cross_gap(u[costly], relative, np.sort(v)) if costly.size else 0.0,
        order_statistics=dict(enumerate(np.sort(x).tolist())),
    )


def edges_of(totals):
    """Bin edges of a variable from its order statistics; None without records."""
    if totals is None:
        return None
    low, high, shares = edge_positions(totals.n)
    at = totals.order_statistics
    return edges_between(*(np.array([at[i] for i in ranks.tolist()]) for ranks in (low, high)), shares)


def cut(pair, strata, borders):
    """The rows of a pair as blocks between borders; `strata` are numbers or None."""
    for begin, end in zip([0, *borders], [*borders, pair.n], strict=True):
        rows = slice(begin, end)
        original, masked = (
            {name: values[rows, j] for j, name in enumerate(pair.columns)}
            for values in (pair.original.values, pair.masked)
        )
        weights = None if pair.original.weights is None else pair.original.weights[rows]
        numbers = None if strata is None else strata[rows]
        yield Block(begin, end - begin, original, masked, weights, numbers)


def engine_answers(pair, strata, borders):
    """Comparisons by stratum (None: whole file) as an engine makes them, and the pairs in memory."""
    pairs = {None: pair}
    if strata is not None:
        pairs |= {int(s): pair.take(np.flatnonzero(strata == s)) for s in np.unique(strata)}
    ranks = {
        Piece(name, group): totals
        for group, part in pairs.items()
        for j, name in enumerate(pair.columns)
        if (totals := rank_totals(part, j)) is not None
    }
    blocks = list(cut(pair, strata, borders))
    scans = merge_scans([_sent(partial(scan_block, pair.columns))(block) for block in blocks])
    bases = {
        group: Basis.of(
            totals,
            weighted=pair.weighted,
            edges=[edges_of(ranks.get(Piece(name, group))) for name in pair.columns],
        )
        for group, totals in scans.items()
    }
    details = reduce(merged, [_sent(SecondScan(pair.columns, bases))(block) for block in blocks])
    answers = {
        group: EngineComparison(
            pair.columns,
            pair.weighted,
            totals,
            details[group],
            [ranks.get(Piece(name, group)) for name in pair.columns],
        )
        for group, totals in scans.items()
    }
    return answers, pairs


def _sent(task):
    """A task as it arrives at a worker."""
    return pickle.loads(pickle.dumps(task))  # noqa: S301 - our own bytes
