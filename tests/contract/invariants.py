"""Checks of what maskings keep: exactly, to 1e-9 of a column's size, or on average over draws."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

EXACT = 1e-9


class Masked(NamedTuple):
    """A matrix before and after, with the options as the method's function takes them."""

    before: Any
    after: Any
    options: dict
    groups: Any = None
    window: int | None = None


# --- moments ---


def size_of(values):
    return np.nanmax(np.abs(values), axis=0)


def check_means(masked):
    change = np.nanmean(masked.after, axis=0) - np.nanmean(masked.before, axis=0)
    assert (np.abs(change) <= EXACT * size_of(masked.before)).all()


def covariance(values, original):
    """Of differences from one record, so that equal values have no variance, not even by rounding."""
    size = np.ptp(original, axis=0)  # squares must not leave the range of numbers
    return np.atleast_2d(np.cov((values - original[0]) / np.where(size > 0, size, 1.0), rowvar=False))


def check_moments(masked):
    check_means(masked)
    old, new = (covariance(values, masked.before) for values in (masked.before, masked.after))
    spread = np.sqrt(np.diag(old))
    assert (np.abs(new - old) <= EXACT * np.outer(spread, spread)).all()


def units_of(masked):
    """Columns that vary, before and after, in standard deviations of the former."""
    mean, spread = masked.before.mean(axis=0), np.ptp(masked.before, axis=0)
    return [((values - mean) / np.where(spread > 0, spread, np.inf)) for values in masked[:2]]


def check_linear(masked):
    old, new = units_of(masked)
    varies = np.ptp(old, axis=0) > 0
    _, sizes, lines = np.linalg.svd(old[:, varies], full_matrices=True)
    relations = lines[np.count_nonzero(sizes > EXACT * sizes.max(initial=0.0)) :]
    assert (np.abs(new[:, varies] @ relations.T) <= EXACT * max(1.0, np.abs(new).max())).all()


def given_of(masked):
    return masked.options["given"]


def check_given(masked):
    places = list(given_of(masked))
    assert np.array_equal(masked.before[:, places], masked.after[:, places], equal_nan=True)


def check_regressions(masked):
    """Coefficients are the same where what changed has nothing to do with the regressors."""
    old, new = units_of(masked)
    regressors = np.column_stack([np.ones(len(old)), old[:, list(given_of(masked))]])
    assert (np.abs(regressors.T @ (new - old)) <= EXACT * len(old)).all()


# --- values, zeros, missing cells ---


def check_values(masked):
    assert np.array_equal(np.sort(masked.before, axis=0), np.sort(masked.after, axis=0), equal_nan=True)


def check_zeros(masked):
    assert np.array_equal(masked.before == 0, masked.after == 0)


def check_missing(masked):
    assert np.array_equal(np.isnan(masked.before), np.isnan(masked.after))


def bin_of(cell, low, high, bins):
    if np.isnan(cell):
        return None
    return max(int(np.ceil((cell - low) / (high - low) * bins)) - 1, 0) if high > low else 0


def check_bins(masked):
    low, high = np.nanmin(masked.before, axis=0), np.nanmax(masked.before, axis=0)

    def counted(values):
        ends = (low, high, [masked.options["bins"]] * len(low))
        return Counter(tuple(bin_of(*cell) for cell in zip(row, *ends, strict=True)) for row in values)

    assert counted(masked.before) == counted(masked.after)


def base_of(spread, options, j):
    """The base of `round_to` for a column: its own, the common one, or a round number near a share."""
    own = 0.0 if options["bases"] is None else options["bases"][j]
    if own or options["base"] or spread == 0:
        return own or options["base"]
    size = spread * options["percent"] / 100
    candidates = [float(f"{digit}e{power}") for power in range(-20, 20) for digit in (1, 2, 5)]
    return min(candidates, key=lambda number: abs(np.log(number / size)))


def check_base(masked):
    for j, (old, new) in enumerate(zip(masked.before.T, masked.after.T, strict=True)):
        spread = 0.0 if np.nanmin(old) == np.nanmax(old) else np.nanstd(old, ddof=1)
        base = base_of(spread, masked.options, j)
        assert np.nanmax(np.abs(new - old)) <= base / 2 + EXACT * np.nanmax(np.abs(old))


# --- order and ranks ---


def columns_of(masked):
    """Cells that are there before and after, column by column."""
    for old, new in zip(masked.before.T, masked.after.T, strict=True):
        seen = ~np.isnan(old) & ~np.isnan(new)
        yield old[seen], new[seen]


def blocks_of(old, new):
    """The smallest and the largest new value of each old one, from the smallest of these to the largest."""
    order = np.argsort(old, kind="stable")
    starts = np.flatnonzero(np.diff(old[order], prepend=-np.inf))
    return np.minimum.reduceat(new[order], starts), np.maximum.reduceat(new[order], starts)


def check_order(masked):
    for old, new in columns_of(masked):
        low, high = blocks_of(old, new)
        assert (np.maximum.accumulate(high)[:-1] <= low[1:]).all()


def check_order_and_ties(masked):
    check_order(masked)
    for old, new in columns_of(masked):
        low, high = blocks_of(old, new)
        assert np.array_equal(low, high)


def ranks_of(values):
    """The lowest and the highest rank of each value."""
    ordered = np.sort(values)
    return np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right") - 1


def moves_of(old, new):
    """How many ranks each value moved, at least: equal values stand at any of their ranks."""
    (low, high), (new_low, new_high) = ranks_of(old), ranks_of(new)
    return np.maximum(np.maximum(low - new_high, new_low - high), 0)


def check_window(masked):
    assert masked.window is not None
    widths = np.broadcast_to(masked.window, masked.before.shape[1])  # one for all columns, or one for each
    for (old, new), width in zip(columns_of(masked), widths, strict=True):
        assert moves_of(old, new).max() <= width


# --- groups ---


def shared_by(values):
    """By how many each of these values, or records, is shared."""
    _, which, counts = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    return counts[which.ravel()]


def check_cells_shared(masked):
    """No published value stands for fewer than k records."""
    for _, new in columns_of(masked):
        assert new.size == 0 or shared_by(new).min() >= masked.options["k"]


def check_group_sizes(masked):
    """Groups of records are as large as they should be, and so are the sets of equal records."""
    check_cells_shared(masked)
    if masked.groups is not None:
        assert np.bincount(masked.groups[masked.groups >= 0]).min() >= masked.options["k"]
    if not np.isnan(masked.before).any():
        assert shared_by(masked.after).min() >= masked.options["k"]


def check_equal_records(masked):
    """Every published record, missing cells included, is shared by k or more."""
    assert shared_by(np.nan_to_num(masked.after, nan=1e300)).min() >= masked.options["k"]


def check_groups_below_2k(masked):
    check_group_sizes(masked)
    largest = 2 * masked.options["k"] - 1
    if masked.groups is not None:
        assert np.bincount(masked.groups[masked.groups >= 0]).max() <= largest
    elif shared_by(masked.before).max() == 1 and not np.isnan(masked.before).any():  # no two means coincide
        assert shared_by(masked.after).max() <= largest


def check_runs_below_2k(masked):
    check_cells_shared(masked)
    for old, new in columns_of(masked):
        if shared_by(old).max() == 1:  # else the means of two groups may be one
            assert shared_by(new).max() <= 2 * masked.options["k"] - 1


# --- on average or nearly, on a list of draws with fixed seeds ---


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
