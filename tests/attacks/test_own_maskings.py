"""Maskings of a user's own, of forms that no built-in method has, attacked by their exact law in numpy."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc

NAMES = ["a", "b", "c"]
N, DRAWS = 150, 2
EDGE = 1e-9


def moves(published, original):
    """Return the difference of each published row and each original: row x original x variable."""
    return published[:, None] - original[None]


def one_factor(x, rng):
    return x * (1 + 0.5 * rng.normal(size=(len(x), 1)))


def law_of_one_factor(y, x):
    factor = y[:, None] / x[None]
    spread = factor.std(axis=2) / np.abs(factor).mean(axis=2)
    return -0.5 * (factor.mean(axis=2) - 1) ** 2 / 0.25 - 1e6 * np.minimum(spread, 1e-3)


def kept_or_drawn(x, rng):
    drawn = np.column_stack([rng.permutation(column) for column in x.T])
    return np.where(rng.random(x.shape) < 0.3, x, drawn)


def law_of_kept_or_drawn(y, x):
    return np.where(np.abs(moves(y, x)) < EDGE, np.log(0.3), np.log(0.7 / len(x))).sum(axis=2)


def signs(x, rng):
    return x * np.where(rng.random(x.shape) < 0.5, 1, -1) + 0.1 * rng.normal(size=x.shape)


def law_of_signs(y, x):
    return np.logaddexp(-50 * moves(y, x) ** 2, -50 * moves(y, -x) ** 2).sum(axis=2)


def far_or_near(x, rng):
    sd = np.where(rng.random((len(x), 1)) < 0.5, 0.05, 3.0)
    return x + sd * rng.normal(size=x.shape)


def law_of_far_or_near(y, x):
    squares = (moves(y, x) ** 2).sum(axis=2)
    return np.logaddexp(-200 * squares - 3 * np.log(0.05), -squares / 18 - 3 * np.log(3.0))


CASES = {
    "one factor": (one_factor, law_of_one_factor),
    "kept or drawn": (kept_or_drawn, law_of_kept_or_drawn),
    "signs": (signs, law_of_signs),
    "far or near": (far_or_near, law_of_far_or_near),
}


def found_by(chance, axis):
    """Return the share of records whose true partner is likeliest, and of those named with more than 1/2."""
    share = np.exp(chance - chance.max(axis=axis, keepdims=True))
    share /= share.sum(axis=axis, keepdims=True)
    best = share >= share.max(axis=axis, keepdims=True)
    return np.mean(np.diag(best) / best.sum(axis=axis)), np.mean(np.diag(share) > 0.5)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_the_law_of_a_users_own_masking_is_learnt_whatever_its_form(case):
    mask, law = CASES[case]
    covariance = [[1, 0.6, 0.3], [0.6, 1, 0.5], [0.3, 0.5, 1]]
    x = np.random.default_rng(5).multivariate_normal(np.zeros(3), covariance, size=N)
    data = sdc.Microdata(pl.DataFrame(x, schema=NAMES))

    def made_by(table, rng):
        return pl.DataFrame(mask(table.select(NAMES).to_numpy(), rng), schema=NAMES)

    figures = []
    for draw in range(DRAWS):
        y = mask(x, np.random.default_rng(draw))
        masked = pl.DataFrame(y, schema=NAMES)
        printed = data.evaluate(masked, made_by=made_by, metrics=["linkage", "linkage_sure"])
        by_row, by_original = (found_by(law(y, x), axis) for axis in (1, 0))
        figures.append(
            [printed["linkage"], max(by_row[0], by_original[0]), printed["linkage_sure"], by_row[1]]
        )
    linkage, found, sure, named = np.mean(figures, axis=0)
    assert linkage >= 0.95 * found
    assert sure >= 0.9 * named


@pytest.mark.long
def test_which_amount_a_masked_confidential_cell_stands_for_is_read():
    rng, amounts = np.random.default_rng(3), np.array([450.0, 900.0, 1350.0, 2000.0])
    known, secret = rng.normal(size=(N, 3)), rng.choice(amounts, N)
    table = pl.DataFrame(known, schema=NAMES).with_columns(secret=pl.Series(secret))
    data, noise = sdc.Microdata(table, columns=[*NAMES, "secret"], confidential="secret"), 0.3
    figures = []
    for draw in range(DRAWS):
        masked = data.mask("noise", percent=100 * noise, rng=draw)
        made_by = sdc.Method("noise", percent=100 * noise)
        printed = data.evaluate(masked, made_by=made_by, metrics=["attribute"])["attribute"]
        far = (moves(masked.select(NAMES).to_numpy(), known) / (noise * known.std(axis=0))) ** 2
        person = np.exp(-far.sum(axis=2) / 2)  # row x person
        gap = (masked["secret"].to_numpy()[:, None] - amounts) / (noise * secret.std())
        amount = np.exp(-(gap**2) / 2)  # row x amount
        person, amount = person / person.sum(axis=0), amount / amount.sum(axis=1, keepdims=True)
        guess = amounts[(person.T @ amount).argmax(axis=1)]
        figures.append([printed, np.mean(guess == secret)])
    printed, found = np.mean(figures, axis=0)
    assert printed >= 0.95 * found
