"""What the tests of linkage share: tied files of many kinds, and how a metric is asked."""

import numpy as np
from hypothesis import strategies as st

import sdckit as sdc
from sdckit.metrics.pair import Pair, pair_of

NAN = float("nan")
DIRECTIONS = ("masked_to_original", "original_to_masked")
ATTACKS = ("dbrl", "dbrl_mahalanobis", "dbrl_rank", "window", "matching")
MASKINGS = ("integers", "microaggregated", "constant", "copied", "noise", "swapped")


def masked_as(kind, x, rng):
    """A release of the kind, made from few distinct values where that makes ties."""
    n, p = x.shape
    if kind == "integers":
        return x + rng.integers(-1, 2, x.shape)
    if kind == "microaggregated":
        groups = rng.integers(0, max(n // 3, 1), n)
        return np.array([x[groups == group].mean(0) for group in groups])
    if kind == "constant":
        return np.column_stack([np.full(n, 2.0), x[rng.permutation(n), 1:]])
    if kind == "copied":
        return x[rng.integers(0, n, n)]
    if kind == "noise":
        return x + rng.normal(0, 0.5, x.shape)
    assert kind == "swapped"
    return np.column_stack([column[rng.permutation(n)] for column in x.T]).reshape(n, p)


def tied_file(seed, *, largest=200):
    """Original and masked: 2 to `largest` records, 1 to 6 variables of few values."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, largest + 1)), int(rng.integers(1, 7))
    x = rng.integers(0, rng.choice([2, 5, 40]), (n, p)) * rng.choice([0.25, 1.0, 1000.0], p)
    if rng.random() < 0.2:
        x[:, 0] = 7.0
    return x, masked_as(MASKINGS[seed % len(MASKINGS)], x, rng)


def with_holes(values, rng, share=0.2):
    holes = rng.random(values.shape) < share
    holes[rng.integers(0, len(values))] = True  # a record without any value
    return np.where(holes, NAN, values)


@st.composite
def tied_files(draw, *, least=2, most=40):
    """The same for hypothesis."""
    n, p = draw(st.integers(least, most)), draw(st.integers(1, 4))
    cells = st.integers(0, draw(st.sampled_from([1, 4, 30])))
    rows = st.lists(cells, min_size=n * p, max_size=n * p)
    x, y = (np.array(draw(rows), float).reshape(n, p) for _ in range(2))
    return x, x + y * draw(st.sampled_from([0.0, 0.25, 1.0]))


def score(name, x, y, *, window=None, **options):
    """The score of a metric for shuffled rows: nothing follows from their order."""
    pair = pair_of(x, y)
    pair.window, pair.by_position = window, False
    return sdc.METRICS[name].score(pair, **options)


def all_values(x, y, *, window=None, attacks=(*ATTACKS, "linkage", "linkage_outliers")):
    """The value of every risk, both ways."""
    pairs = pair_of(x, y)
    pair = Pair(pairs.original, pairs.masked, window=window)
    return {
        (name, direction): sdc.METRICS[name].score(pair, direction=direction).value.overall
        for name in attacks
        for direction in DIRECTIONS
    }
