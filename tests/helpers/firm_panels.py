"""A panel of firms by month, skewed, with a sum that rounding disturbs: the example of estimates.md."""

import numpy as np
import polars as pl

FIRMS, MONTHS = 341, 12


def firm_panel():
    """4,092 firm-months with state, four parts of sales, sales and profit."""
    rng = np.random.default_rng(2)
    firm, month = np.divmod(np.arange(FIRMS * MONTHS), MONTHS)
    size = rng.lognormal(5, 1.8, FIRMS)[firm]
    parts = size[:, None] * rng.dirichlet([4, 3, 2, 2], FIRMS)[firm] * rng.lognormal(0, 0.15, (len(firm), 4))
    sales = parts.sum(axis=1)
    profit = 1 + 0.3 * sales**0.9 * np.exp(0.13 * np.log1p(sales) * rng.normal(size=len(firm)))
    amounts = dict(zip(["food", "tools", "books", "other"], parts.T, strict=True))
    amounts |= {"sales": sales, "profit": profit}
    states = rng.integers(1, 13, FIRMS)[firm]
    table = pl.DataFrame({"firm": firm, "month": month + 1, "state": [f"S{one:02}" for one in states]})
    return table.with_columns(**amounts).with_columns(pl.col(pl.Float64).round())
