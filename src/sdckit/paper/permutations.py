"""Distances between rankings: Tables 1 and 2 of the paper, and the numbers of Figures 1 and 2.

Everything is measured from the ranking 1, 2, ..., n. `permutation` numbers the rankings in the paper's
order, which is not lexicographic: each ranking comes from the one before by exchanging two neighbours,
the largest rank moving back and forth through the rankings of the others (the order of Johnson and
Trotter), and the whole list is then sorted by squared distance, equal distances staying in that order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from sdckit.core import randomness
from sdckit.kernels.ranks import gap_distance, largest_absolute, largest_squared

if TYPE_CHECKING:
    from sdckit.kernels.jit import Ints

LONGEST = 9  # 362,880 rankings; one more record would need ten times the memory
COSTS = {"brmae": "absolute", "brmse": "squared"}


class Printed(NamedTuple):
    """A table as the paper prints it: its rankings and their two sums, column by column."""

    rankings: str
    absolute: str
    squared: str


PRINTED = {
    3: Printed("123 132 213 312 231 321", "0 2 2 4 4 4", "0 2 2 6 6 8"),
    4: Printed(
        "1234 1243 1324 2134 2143 1423 1342 3124 2314 1432 3214 3142 "
        "2413 4123 2341 4132 3241 2431 4213 3412 4312 3421 4231 4321",
        "0 2 2 2 4 4 4 4 4 4 4 6 6 6 6 6 6 6 6 8 8 8 6 8",
        "0 2 2 2 4 6 6 6 6 8 8 10 10 12 12 14 14 14 14 16 18 18 18 20",
    ),
}


def rankings(n: int) -> Ints:
    """Return all n! rankings of n records as an array, one per row, in the paper's order.

    Examples
    --------
    >>> rankings(3).tolist()
    [[1, 2, 3], [1, 3, 2], [2, 1, 3], [3, 1, 2], [2, 3, 1], [3, 2, 1]]
    """
    if not 2 <= n <= LONGEST:
        raise ValueError(
            f"n is {n}; give 2 to {LONGEST} to list every ranking, or draw with random_distances"
        )
    found = _neighbour_exchanges(n)
    squared = ((found - np.arange(1, n + 1)) ** 2).sum(axis=1)
    return found[np.argsort(squared, kind="stable")]


def _neighbour_exchanges(n: int) -> Ints:
    """Return all rankings of n records, each one exchange of neighbours away from the one before."""
    found = np.ones((1, 1), np.int64)
    for largest in range(2, n + 1):
        longer = np.empty((len(found), largest, largest), np.int64)
        for place in range(largest):
            longer[:, place, :place] = found[:, :place]
            longer[:, place, place] = largest
            longer[:, place, place + 1 :] = found[:, place:]
        longer[::2] = longer[::2, ::-1]  # from right to left first, then back
        found = longer.reshape(-1, largest)
    return found


def _distances(found: Ints) -> pl.DataFrame:
    """Return a table of the absolute and squared distances of rankings from the ranking 1, 2, ..., n."""
    n = found.shape[1]
    sums = [gap_distance(gaps2) for gaps2 in 2 * (np.arange(1, n + 1) - found)]
    return pl.DataFrame(
        {
            "n": np.full(len(sums), n),
            "permutation": np.arange(1, len(sums) + 1),
            "absolute": np.array([row.absolute2 for row in sums], np.int64) // 2,
            "squared": np.array([row.squared4 for row in sums], np.int64) // 4,
            "brmae": [row.absolute for row in sums],
            "brmse": [row.squared for row in sums],
        }
    )


def all_distances(n: int) -> pl.DataFrame:
    """Return the distances of all n! rankings from 1, 2, ..., n (Figure 1: n = 5, 6 and 7).

    0 means the same order; 1 the largest distance, which only the reversed order has under brMSE.

    Returns
    -------
    polars.DataFrame
        One row per ranking in the paper's order: `n`, `permutation` (from 1), `absolute` and `squared`
        (sums over the records), `brmae`, `brmse`.

    Examples
    --------
    >>> all_distances(3)["squared"].to_list()
    [0, 2, 2, 6, 6, 8]
    """
    return _distances(rankings(n))


def random_distances(n: int = 100, draws: int = 10_000, *, rng: Any = None) -> pl.DataFrame:
    """Return distances of random rankings, the same and the reversed order, from 1, ..., n (Figure 2).

    0 means the same order, 1 (under brMSE) the reversed one; a drawn ranking scores 2/3 and 1/2 on
    average.

    Returns
    -------
    polars.DataFrame
        As `all_distances`, and `kind`: "identity" in the first row, "reversal" in the last, "random"
        between them.

    Examples
    --------
    >>> found = random_distances(4, 2, rng=1)
    >>> found["kind"].to_list(), found["brmse"][0], found["brmse"][-1]
    (['identity', 'random', 'random', 'reversal'], 0.0, 1.0)
    """
    if n < 2 or draws < 0:
        raise ValueError(f"n is {n} and draws is {draws}; give at least 2 records and no negative number")
    start = np.arange(1, n + 1)
    drawn = randomness.generator(rng).permuted(np.tile(start, (draws, 1)), axis=1)
    kinds = ["identity", *["random"] * draws, "reversal"]
    return _distances(np.vstack([start, drawn, start[::-1]])).with_columns(kind=pl.Series(kinds))


def table_is_right(n: int) -> bool:
    """Return True if the paper's table prints every ranking once, in our order, with the right sums."""
    printed, found, measured = PRINTED[n], rankings(n), all_distances(n)
    expected = Printed(
        " ".join("".join(map(str, ranking)) for ranking in found.tolist()),
        *(" ".join(map(str, measured[cost])) for cost in COSTS.values()),
    )
    return printed == expected


def largest_is_right(n: int) -> bool:
    """Return True if the paper's sums for the reversed order are the largest distances of n records."""
    steps = [n - 2 * k + 1 for k in range(1, n // 2 + 1)]
    noted = (2 * sum(steps), 2 * sum(step**2 for step in steps))
    found = all_distances(n).select(pl.col(*COSTS.values()).max()).row(0)
    return noted == found == (largest_absolute(n), largest_squared(n))


def permutation_table(n: int) -> pl.DataFrame:
    """Return Table 1 (n = 3) or Table 2 (n = 4) of the paper, with brMAE and brMSE below.

    Returns
    -------
    polars.DataFrame
        `row`, then one column per ranking, named by its number; cells are text, so that ranks and
        shares can stand in one column. `r2[i]` is the rank of record i, `r1-r2[i]` its difference.

    Examples
    --------
    >>> permutation_table(3).select("row", "1", "4", "6").rows()[-4:]
    [('absolute', '0', '4', '4'), ('squared', '0', '6', '8'),
     ('brmae', '0.0000', '1.0000', '1.0000'), ('brmse', '0.0000', '0.7500', '1.0000')]
    """
    found = rankings(n)
    measured = _distances(found)
    rows = {f"r2[{i + 1}]": [str(rank) for rank in found[:, i]] for i in range(n)}
    rows |= {f"r1-r2[{i + 1}]": [str(i + 1 - rank) for rank in found[:, i]] for i in range(n)}
    rows |= {name: [str(value) for value in measured[name]] for name in COSTS.values()}
    rows |= {name: [f"{value:.4f}" for value in measured[name]] for name in COSTS}
    names = ["row", *(str(number) for number in measured["permutation"])]
    return pl.DataFrame([[row, *cells] for row, cells in rows.items()], schema=names, orient="row")


def distance_counts(distances: pl.DataFrame) -> pl.DataFrame:
    """Count the rankings at each distance; return a table.

    Returns
    -------
    polars.DataFrame
        `n`, `metric` ("brmae", "brmse"), `distance` (the sum), `value` (its share of the largest),
        `count`; ascending.

    Examples
    --------
    >>> distance_counts(all_distances(3)).filter(metric="brmae").select("distance", "count").rows()
    [(0, 1), (2, 2), (4, 3)]
    """
    return pl.concat(
        distances.group_by(
            "n", pl.lit(metric).alias("metric"), pl.col(cost).alias("distance"), pl.col(metric).alias("value")
        ).agg(count=pl.len())
        for metric, cost in COSTS.items()
    ).sort("n", "metric", "distance")


def distance_facts(distances: pl.DataFrame) -> pl.DataFrame:
    """Return a table of facts on distances: numbers of rankings and distinct values, mean, deviation.

    Returns
    -------
    polars.DataFrame
        One row per `n` and `metric`: `rankings`, `distinct` values, `at_largest` (rankings with the
        largest distance there is), `mean` and `sd` of the bounded distance.

    Examples
    --------
    >>> distance_facts(all_distances(4)).select("metric", "rankings", "distinct", "at_largest").rows()
    [('brmae', 24, 5, 4), ('brmse', 24, 11, 1)]
    """
    return pl.concat(
        distances.group_by("n", pl.lit(metric).alias("metric")).agg(
            rankings=pl.len(),
            distinct=pl.col(cost).n_unique(),
            at_largest=(pl.col(metric) == 1).sum(),
            mean=pl.col(metric).mean(),
            sd=pl.col(metric).std(ddof=0),
        )
        for metric, cost in COSTS.items()
    ).sort("n", "metric")
