"""Attacks on published files by somebody who holds the original and knows the method, but not the draws.

Slow and plain, in numpy. X is the original, Y the published file, one row a record; NaN is a missing cell.
Scores are tables of log likelihoods, `scores[u, i]`: published record u, if it belongs to original record i.
They use the method's own law, as its documentation states it. Nothing here looks at which pairs are true.
"""

import math

import numpy as np

from attacker_posterior import posterior

NEVER = -np.inf

# ---- swaps ---------------------------------------------------------------------------------------------


def swap_scores(X, Y, move_scores, rounds=4):
    """Scores of all pairs, where each column's values were exchanged in pairs.

    If published u is person i, then in every column the person h who had u's published value is published as
    the record v that now has i's value. So the pair (u, i) implies the pair (v, h), which is as likely as its
    moves in the other columns, and implies further pairs in turn. `X` may hold some of the persons only: a
    value that no known person had implies nothing. `move_scores[j][u, i]` is the log likelihood of the move
    of column j alone. Of equal values the best holder counts.
    """
    columns = range(X.shape[1])
    links = [_links(X[:, j], Y[:, j]) for j in columns]
    # apart[j]: all that speaks for a pair besides column j, by which the pair was implied.
    apart = [_sum_without(move_scores, j) for j in columns]
    for _ in range(rounds):
        told = [move_scores[j] + _implied(apart[j], *links[j]) for j in columns]
        apart = [_sum_without(told, j) for j in columns]
    return sum(told)


def _sum_without(tables, j):
    """Sum of all tables but one; not a difference, as cells may be minus infinity."""
    return sum((table for k, table in enumerate(tables) if k != j), np.zeros_like(tables[j]))


def _links(x, y):
    """Number the values of a column, in the original and in the published file, and count them."""
    values, codes = np.unique(np.concatenate([x, y]), return_inverse=True)
    return codes[: len(x)], codes[len(x) :], len(values)


def _implied(scores, x, y, count):
    """For each pair (u, i) the best score of (v, h), v published with i's value, h with u's value before."""
    by_value = np.full((count, scores.shape[1]), NEVER)
    np.maximum.at(by_value, y, scores)  # best v for each published value
    table = np.full((count, count), NEVER)
    np.maximum.at(table.T, x, by_value.T)  # best h for each original value
    before, now = np.bincount(x, minlength=count), np.bincount(y, minlength=count)
    table[:, now > before] = 0.0  # somebody who is not known had this value, and nothing follows
    table[before > now] = 0.0  # somebody is not published with it, as in tails
    same = y[:, None] == x[None, :]  # not moved: the implied pair is the pair itself, or says nothing
    return np.where(same, 0.0, table[x[None, :], y[:, None]])


def ranks_in(values, column):
    """Rank of each value in a column, from 0, the middle one of equal values."""
    ordered = np.sort(column)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") - 1) / 2


def window_moves(X, Y, p, tails=0.0):
    """Rank swap: every move of at most floor(p n) ranks is as likely as any other, larger ones impossible.

    Equal values may hide a longer move: each value's tie block, not its middle, must lie within the window.
    With tails, the values at each end are published as their mean, and only they.
    """
    n, found = len(Y), []
    levelled = max(math.ceil(n * tails) - 1, 0)
    for x, y in zip(X.T, Y.T, strict=True):
        ordered = np.sort(y)
        low, high = (np.searchsorted(ordered, x, side) for side in ("left", "right"))
        below, above = (np.searchsorted(ordered, y, side) for side in ("left", "right"))
        gap = np.maximum(low[None] - (above[:, None] - 1), below[:, None] - (high[None] - 1))
        fits = gap <= math.floor(p * n + 1e-9)
        if levelled:
            ends = ordered[levelled], ordered[-levelled - 1]  # the values next to the tails
            fits &= _end(y, *ends)[:, None] == _end(x, *ends)[None]
        found.append(np.where(fits, 0.0, NEVER))
    return found


def _end(values, low, high):
    """-1 in the lower tail, 1 in the upper one, 0 between them."""
    return (values > high).astype(int) - (values < low)


def drawn_moves(X, Y, p):
    """p-distribution swap: the move is the size of a normal draw with mean and deviation p n / 2."""
    n, found = len(Y), []
    for x, y in zip(X.T, Y.T, strict=True):
        move = np.abs(ranks_in(y, y)[:, None] - ranks_in(x, y)[None]) / n
        ahead, behind = (np.exp(-0.5 * ((move - side * p / 2) / (p / 2)) ** 2) for side in (1, -1))
        found.append(np.log(ahead + behind + 1e-6))  # the place drawn may be taken, so no move is impossible
    return found


def guessed_exactly(scores, confidential, published):
    """Share of persons whose confidential value is that of the record to which they are linked, ties shared.

    `published[u]` belongs to record u, `confidential[i]` to person i.
    """
    shares = []
    for i, column in enumerate(scores.T):
        best = column == column.max()
        shares.append((published[best] == confidential[i]).mean())
    return float(np.mean(shares))


# ---- noise ---------------------------------------------------------------------------------------------


def spreads(X):
    """Standard deviation of each column, divisor n - 1."""
    return np.nanstd(X, axis=0, ddof=1)


def _apart(Y, X):
    """Differences y_u - x_i of all pairs, in every column."""
    return Y[:, None, :] - X[None, :, :]


def _normal(differences, deviations):
    """Log density of normal differences, added up over columns; a missing cell adds nothing."""
    terms = -0.5 * (differences / deviations) ** 2 - np.log(deviations)
    return np.nansum(np.broadcast_to(terms, differences.shape), axis=2)


def _mahalanobis(differences, covariance):
    """Log density of normal differences with a covariance, which may be singular, up to a constant."""
    root = np.linalg.pinv(covariance, rcond=1e-10, hermitian=True)
    return -0.5 * np.einsum("uij,jk,uik->ui", differences, root, differences, optimize=True)


def noise(X, Y, percent):
    """Score y = x + e, e independent with `percent` % of each spread."""
    return _normal(_apart(Y, X), spreads(X) * percent / 100)


def outlier_noise(X, Y, percent, factors):
    """Score y_i = x_i + f_i e, where record i has its own factor f_i."""
    return _normal(_apart(Y, X), factors[None, :, None] * spreads(X) * percent / 100)


def factors_by_masking(X, percent, masked_again):
    """How many times stronger than plain noise each record's is: he masks the file himself, many times."""
    squares = np.mean(
        [((other - X) / (spreads(X) * percent / 100)) ** 2 for other in masked_again], axis=(0, 2)
    )
    return np.maximum(np.sqrt(squares), 1.0)


def by_places(X, Y, masked_again):
    """Score y = a + Bx + e for records with the same missing cells, learnt by masking the file many times."""
    gaps, scores = np.isnan(X), np.full((len(Y), len(X)), -1e6)
    for places in np.unique(gaps, axis=0):
        i, j = (np.flatnonzero((np.isnan(one) == places).all(1)) for one in (X, Y))
        x, y = X[np.ix_(i, ~places)], Y[np.ix_(j, ~places)]
        runs = np.array([other[np.ix_(i, ~places)] for other in masked_again])
        expected = runs.mean(0)
        if len(i) > 4 * x.shape[1]:
            design = np.column_stack([np.ones(len(i)), x])
            expected = design @ np.linalg.lstsq(design, expected, rcond=None)[0]
        covariance = np.cov((runs - expected).reshape(-1, x.shape[1]).T).reshape(2 * x.shape[1:])
        covariance += 1e-10 * np.trace(covariance) * np.eye(x.shape[1])
        scores[np.ix_(j, i)] = _mahalanobis(_apart(y, expected), covariance)
    return scores


def correlated_noise(X, Y, percent):
    """Score y = x + e, e normal with the covariance of the data times a."""
    a = (percent / 100) ** 2
    return _mahalanobis(_apart(Y, X), a * np.cov(X.T))


def kim_noise(X, Y, percent):
    """Score y = m + (x + e - m) / sqrt(1 + a): he undoes the transform first."""
    a, m = (percent / 100) ** 2, X.mean(0)
    return correlated_noise(X, m + (Y - m) * math.sqrt(1 + a), percent)


def moment_preserving_noise(X, Y, delta):
    """Score y = m + sqrt(1 - d^2) (x - m) + d E, E with the covariance of the data."""
    m = X.mean(0)
    return _mahalanobis(_apart(Y, m + math.sqrt(1 - delta**2) * (X - m)), delta**2 * np.cov(X.T))


def moment_preserving_noise_by_record(X, Y, delta):
    """Score the same, with the variance of each record's own noise: E is orthogonal to the data.

    The projection onto what is orthogonal to a constant and the data has 1 - h on its diagonal, h the
    leverage, and its mean is (n - 1 - rank) / n; the sum of squares of E is that of the data.
    """
    n, m, covariance = len(X), X.mean(0), np.cov(X.T)
    rank = np.linalg.matrix_rank(np.corrcoef(X.T))
    base = np.column_stack([np.ones(n), (X - m) / spreads(X)])
    leverage = np.diag(base @ np.linalg.pinv(base, rcond=1e-10))
    share = (1 - leverage) * (n - 1) / (n - 1 - rank)
    expected = m + math.sqrt(1 - delta**2) * (X - m)
    return _mahalanobis(_apart(Y, expected), delta**2 * covariance) / share - 0.5 * rank * np.log(share)


def romm(X, Y, percent, draws=40):
    """Score y = sum of t_k x_k over a block: t_i x_i plus normal noise with what is left of the spread.

    t_i, the share of the record itself, is drawn as the method draws its rotations; the likelihood is the
    mean over these draws.
    """
    rng = np.random.default_rng(5)
    m, covariance = X.mean(0), np.cov(X.T)
    blocks = max(len(X) // 100, 1)
    size = len(X) // blocks
    kept = np.concatenate([_diagonal(rng, size, percent / 100) for _ in range(4)])
    kept = np.quantile(kept, (np.arange(draws) + 0.5) / draws)
    total = np.full((len(Y), len(X)), NEVER)
    p = np.linalg.matrix_rank(covariance)
    for t in kept:
        left = max(1 - t**2, 1e-6)
        score = _mahalanobis(_apart(Y - m, t * (X - m)), left * covariance) - 0.5 * p * math.log(left)
        total = np.logaddexp(total, score)
    return total


def _diagonal(rng, size, strength):
    """The diagonal of one random rotation: I + s G / sqrt(m), its columns made orthonormal in turns."""
    matrix = np.eye(size - 1) + strength / math.sqrt(size) * rng.normal(size=(size - 1, size - 1))
    q, r = np.linalg.qr(matrix)
    return np.diag(q * np.sign(np.diag(r)))


def multiplicative_noise(X, Y, percent):
    """Score y = x (1 + e): the spread is that share of the value itself; zeros stay zeros."""
    scale = np.abs(X) * percent / 100
    terms = -0.5 * (_apart(Y, X) / np.where(X == 0, 1, scale)) ** 2 - np.log(np.where(X == 0, 1, scale))
    return _zeros_kept(X, Y, terms)


def zero_preserving_noise(X, Y, percent):
    """Score y = x + e where x is not 0, e in units of the spread of such cells; zeros stay zeros."""
    scale = np.array([column[column != 0].std(ddof=1) for column in X.T]) * percent / 100
    return _zeros_kept(X, Y, -0.5 * (_apart(Y, X) / scale) ** 2)


def _zeros_kept(X, Y, terms):
    """Add up terms over columns, where a zero must stand against a zero and says nothing more."""
    zero = Y[:, None, :] == 0
    return np.where(zero != (X[None] == 0), NEVER, np.where(zero, 0.0, terms)).sum(2)


def rank_noise(X, Y, a):
    """Score values published in the order of rank + normal noise with deviation a n.

    z = G^-1(published rank / n) is where the noisy rank lay, with G the distribution of n U + a n Z; it is
    normal around the original's rank with deviation a n.
    """
    n = len(Y)
    places = np.linspace(-6 * a, 1 + 6 * a, 20_001)
    shares = a * (_integral(places / a) - _integral((places - 1) / a))
    total = np.zeros((n, len(X)))
    for x, y in zip(X.T, Y.T, strict=True):
        z = np.interp((ranks_in(y, y) + 0.5) / n, shares, places)
        total -= 0.5 * ((z[:, None] - (ranks_in(x, x)[None] + 0.5) / n) / a) ** 2
    return total


def _integral(t):
    """The integral of the normal distribution function up to t."""
    below = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in t])
    return t * below + np.exp(-0.5 * t**2) / math.sqrt(2 * math.pi)


def several_releases(scores):
    """Add up the scores of releases drawn independently: records of all of them lie in the same order."""
    return sum(scores)


def same_places(X, Y):
    """0 where two records miss the same cells, minus infinity elsewhere."""
    differ = np.isnan(Y)[:, None, :] != np.isnan(X)[None]
    return np.where(differ.any(2), NEVER, 0.0)


# ---- units, folds, leaving, missing cells -----------------------------------------------------------------


def units_by_month(row_scores, published_units, published_months, units, months):
    """Scores of all pairs of units: rows of the same month stand against each other.

    `row_scores[u, i]` are the scores of rows. A pair of units with other months is impossible.
    """
    names, others = np.unique(published_units), np.unique(units)
    total = np.zeros((len(names), len(others)))
    for a, one in enumerate(names):
        mine = {published_months[u]: u for u in np.flatnonzero(published_units == one)}
        for b, other in enumerate(others):
            his = {months[i]: i for i in np.flatnonzero(units == other)}
            if mine.keys() != his.keys():
                total[a, b] = NEVER
            else:
                total[a, b] = sum(row_scores[mine[month], his[month]] for month in mine)
    return total


def rows_in_found_units(scores, sizes, truth=None):
    """Share of rows in units that are found, units one to one."""
    truth = np.arange(len(scores)) if truth is None else truth
    claims = posterior(scores)
    right = claims.argmax(1) == truth
    return (right * sizes).sum() / sizes.sum()


def learnt_in_folds(X, Y, folds=5):
    """Scores by y = a + B x + e, learnt from the true pairs of the other folds; no method is named.

    Row u is scored by the law of the pairs outside its own fold, against all originals. Records are put into
    folds at random.
    """
    n = len(X)
    fold = np.random.default_rng(11).permutation(n) % folds
    total = np.empty((n, n))
    for k in range(folds):
        use = fold != k
        base = np.column_stack([np.ones(use.sum()), X[use]])
        law = np.linalg.lstsq(base, Y[use], rcond=None)[0]
        rest = Y[use] - base @ law
        covariance = np.cov(rest.T).reshape(Y.shape[1], -1)
        covariance += np.diag(1e-9 * Y.var(0) + 1e-300)  # an exact law leaves no rest
        expected = np.column_stack([np.ones(n), X]) @ law
        total[~use] = _mahalanobis(_apart(Y[~use], expected), covariance)
    return total


def leaver_by_sums(first, second):
    """Guess the cells of the one who left by what is missing from the sums of the second file."""
    return first.sum(0) - second.sum(0)


def leaver_by_values(first, second):
    """Guess the cells of the one who left by the values that the second file lacks; NaN if not just one."""
    guesses = []
    for before, after in zip(first.T, second.T, strict=True):
        values = np.unique(np.concatenate([before, after]))
        counts = np.array([(before == value).sum() - (after == value).sum() for value in values])
        gone = values[counts > 0]
        guesses.append(gone[0] if len(gone) == 1 else np.nan)
    return np.array(guesses)


def guessed_within(guess, true, share):
    """Share of cells guessed within a share of their size; a missing guess is wrong."""
    with np.errstate(invalid="ignore"):
        return float((np.abs(guess - true) <= share * np.abs(true)).mean())


def alone_in_class(rows):
    """For each published record the chance of the truth, where the masking drew nothing: 1 / equal records.

    Such a masking can be run again: the candidates of a published record are the originals that are published
    just so. A row is a tuple of cells; missing ones, None, count as values.
    """
    return np.array([1 / rows.count(row) for row in rows])
