"""Checks of what maskings keep on average or nearly, on a list of draws with fixed seeds."""

import numpy as np

from invariants import EXACT, columns_of, ranks_of, units_of


def check_expectation(draws, of):
    """`of` a draw is, on average, that of the original."""
    found = np.array([of(masked.after) for masked in draws])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert (np.abs(found.mean(axis=0) - of(draws[0].before)) <= 5 * error + EXACT).all()


def scaled(draws):
    """In units in which every column has mean 0 and range 1."""
    return [masked._replace(before=old, after=new) for masked in draws for old, new in [units_of(masked)]]


def means(values):
    return values.mean(axis=0)


def all_moments(values):
    return np.concatenate([means(values), np.cov(values, rowvar=False).ravel()])


def upper(matrix):
    return matrix[np.triu_indices(len(matrix), 1)]


def mixed_moments(values):
    return np.concatenate([means(values), upper(np.cov(values, rowvar=False))])


def correlations(values):
    return upper(np.corrcoef(values, rowvar=False))


def expected(of):
    return lambda draws: check_expectation(scaled(draws), of)


def check_correlations(draws):
    """Means in expectation; the mean correlation within 0.02, for it has a bias of the order of 1/n."""
    expected(means)(draws)
    found = np.mean([correlations(masked.after) for masked in draws], axis=0)
    assert (np.abs(found - correlations(draws[0].before)) <= 0.02).all()


def check_distribution(draws):
    """The largest distance between distribution functions is below 2.2/sqrt(n), which 1 in 8000 exceeds."""
    for masked in draws:
        for old, new in columns_of(masked):
            both = np.concatenate([old, new])
            shares = [np.searchsorted(np.sort(x), both, "right") / len(x) for x in (old, new)]
            assert np.abs(shares[0] - shares[1]).max() <= 2.2 / np.sqrt(len(old))


def check_rank_correlations(draws):
    """Spearman's correlations, on average over the draws, are within 0.03."""

    def spearman(values):
        return correlations(np.column_stack([sum(ranks_of(column)) for column in values.T]))

    found = np.mean([spearman(masked.after) for masked in draws], axis=0)
    assert (np.abs(found - spearman(draws[0].before)) <= 0.03).all()
