"""Released files of every kind, each with what a plain attack finds in it and what is printed for it.

One function a line of the table: it makes data of a fixed kind, masks them with the draws of a seed, and runs
the attack of `attacker` on the published file. `Attacked.printed` measures the same file as a user would.
"""

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

import attacker
import attacker_posterior as chances
import sdckit as sdc

NAMES = ("turnover", "wages", "costs", "stock", "rent", "profit", *(f"x{j}" for j in range(7)))


class Attacked(NamedTuple):
    """What the attack finds in one released file, and a function that returns what is printed for it."""

    found: float
    printed: Callable[[], float]


# ---- data ----------------------------------------------------------------------------------------------


def skewed(n, p, *, common=0.6, spread=1.0, seed=1):
    """Amounts of firms: log-normal with a common factor, two decimals."""
    rng = np.random.default_rng(seed)
    factor, own = rng.normal(size=(n, 1)), rng.normal(size=(n, p))
    return np.exp(8 + spread * (math.sqrt(common) * factor + math.sqrt(1 - common) * own)).round(2)


def with_zeros(n, p, share=0.4, seed=1):
    """The same, a share of the cells 0."""
    rng = np.random.default_rng(seed + 100)
    return np.where(rng.random((n, p)) < share, 0.0, skewed(n, p, seed=seed))


def panel(firms, months=12, seed=1):
    """Firms of nearly the same size, each with its own good and bad months."""
    rng = np.random.default_rng(seed)
    level, month = 0.15 * rng.normal(size=(firms, 1, 4)), 0.8 * rng.normal(size=(firms, months, 4))
    values = np.exp(8 + level + month).reshape(-1, 4).round(2)
    unit, time = np.repeat(np.arange(firms), months), np.tile(np.arange(1, months + 1), firms)
    return frame(values).with_columns(firm=pl.Series(unit), month=pl.Series(time))


def foreign(name):
    """A test file of the field, its rows shuffled, as Tarragona's are sorted by size."""
    values = sdc.load_dataset(name).to_numpy().astype(float)
    return values[np.random.default_rng(1).permutation(len(values))]


def frame(values):
    """A table with a name for each column."""
    return pl.DataFrame(values, schema=list(NAMES[: values.shape[1]]))


def linkage(original, masked, method, parameters, metric="linkage", **roles):
    """Measure a file as a user does who names the method."""
    return sdc.evaluate(original, masked, method=method, parameters=parameters, metrics=[metric], **roles)[
        metric
    ]


# ---- swaps ---------------------------------------------------------------------------------------------


def swapped(X, draw, method, parameters, *, share=1.0, rounds=4):
    """Exchanges of values, propagated; `share` of the persons known."""
    masked = sdc.mask(frame(X), method, rng=draw, **parameters)
    Y, moves = masked.to_numpy(), {"rank_swap": attacker.window_moves}.get(method, attacker.drawn_moves)
    known = np.sort(np.random.default_rng(draw).permutation(len(X))[: round(share * len(X))])
    scores = attacker.swap_scores(X[known], Y, moves(X[known], Y, **parameters), rounds)
    found = chances.right_links(chances.row_posterior(scores.T), known).mean()
    return Attacked(found, lambda: linkage(frame(X), masked, method, parameters))


def rank_swap(draw, n=800):
    return swapped(skewed(n, 4), draw, "rank_swap", {"p": 0.3})


def rank_swap_two_columns(draw, n=400):
    return swapped(skewed(n, 2), draw, "rank_swap", {"p": 0.1}, rounds=8)


def rank_swap_tails(draw, n=400):
    return swapped(skewed(n, 4), draw, "rank_swap", {"p": 0.3, "tails": 0.05})


def rank_swap_known_75(draw, n=800):
    return swapped(skewed(n, 6), draw, "rank_swap", {"p": 0.3}, share=0.75)


def rank_swap_known_50(draw, n=800):
    return swapped(skewed(n, 6), draw, "rank_swap", {"p": 0.3}, share=0.5)


def p_distribution_swap(draw, n=400):
    return swapped(skewed(n, 4), draw, "p_distribution_swap", {"p": 0.3})


def rank_swap_strata(draw, n=600):
    """Masked within regions, which are published: he attacks each by itself."""
    X, region = skewed(n, 4), np.arange(n) % 3
    table = frame(X).with_columns(region=pl.Series(region).cast(pl.String))
    masked = sdc.mask(table, "rank_swap", by="region", p=0.3, rng=draw)
    Y, found = masked.select(NAMES[:4]).to_numpy(), []
    for one in range(3):
        x, y = X[region == one], Y[region == one]
        scores = attacker.swap_scores(x, y, attacker.window_moves(x, y, 0.3))
        found.append(chances.found(scores, one_to_one=False))
    return Attacked(np.mean(found), lambda: linkage(table, masked, "rank_swap", {"p": 0.3}, by="region"))


def census_swap(draw):
    return swapped(foreign("census"), draw, "rank_swap", {"p": 0.5}, rounds=2)


def tarragona_swap(draw):
    return swapped(foreign("tarragona"), draw, "rank_swap", {"p": 0.7}, rounds=2)


def wealth_beside_swaps(draw, n=600):
    """The confidential wealth is published as it is, beside known columns that were swapped."""
    X = skewed(n, 5)
    table = frame(X[:, :4]).with_columns(wealth=pl.Series(X[:, 4]))
    roles = {"columns": list(NAMES[:4]), "untouched": "wealth", "confidential": "wealth"}
    masked = sdc.mask(table, "rank_swap", p=0.3, rng=draw, **roles)
    Y = masked.select(NAMES[:4]).to_numpy()
    scores = attacker.swap_scores(X[:, :4], Y, attacker.window_moves(X[:, :4], Y, 0.3))
    found = attacker.guessed_exactly(scores, X[:, 4], masked["wealth"].to_numpy())
    return Attacked(found, lambda: linkage(table, masked, "rank_swap", {"p": 0.3}, "attribute", **roles))


# ---- panels --------------------------------------------------------------------------------------------


def panel_by_month(draw, firms=80, metric="linkage_units"):
    """Noise on the months of firms; the month is published."""
    table, parameters = panel(firms), {"percent": 150}
    roles = {"columns": list(NAMES[:4]), "unit": "firm", "untouched": "month"}
    masked = sdc.mask(table, "noise", rng=draw, **roles, **parameters)
    rows = attacker.noise(*(one.select(NAMES[:4]).to_numpy() for one in (table, masked)), percent=150)
    unit, month = table["firm"].to_numpy(), table["month"].to_numpy()
    scores = attacker.units_by_month(rows, unit, month, unit, month)
    found = attacker.rows_in_found_units(scores, np.full(firms, 12))
    return Attacked(found, lambda: linkage(table, masked, "noise", parameters, metric, **roles))


def panel_rows(draw, firms=80):
    return panel_by_month(draw, firms, "linkage")


# ---- noise ---------------------------------------------------------------------------------------------


def noised(X, draw, method, parameters):
    """The method's own law, one to one."""
    masked = sdc.mask(frame(X), method, rng=draw, **parameters)
    scores = getattr(attacker, method)(X, masked.to_numpy(), **parameters)
    return Attacked(chances.found(scores), lambda: linkage(frame(X), masked, method, parameters))


def noise(draw, n=500):
    return noised(skewed(n, 4), draw, "noise", {"percent": 50})


def correlated_noise(draw, n=500):
    return noised(skewed(n, 4), draw, "correlated_noise", {"percent": 60})


def zero_preserving_noise(draw, n=500):
    return noised(with_zeros(n, 4), draw, "zero_preserving_noise", {"percent": 100})


def multiplicative_noise(draw, n=500):
    return noised(skewed(n, 4, common=0.3, spread=1.5), draw, "multiplicative_noise", {"percent": 100})


def tarragona_multiplicative(draw):
    return noised(foreign("tarragona"), draw, "multiplicative_noise", {"percent": 100})


def kim_noise(draw, n=500):
    return noised(skewed(n, 6), draw, "kim_noise", {"percent": 100})


def moment_preserving_noise(draw, n=500):
    return noised(skewed(n, 6), draw, "moment_preserving_noise", {"delta": 0.8})


def romm(draw, n=500):
    return noised(skewed(n, 6), draw, "romm", {"percent": 100})


def outlier_noise(draw, n=500, runs=200):
    """He learns each record's strength by masking the file himself."""
    X, parameters = skewed(n, 6, spread=1.5), {"percent": 50}
    masked = sdc.mask(frame(X), "outlier_noise", rng=draw, **parameters)
    own = [sdc.mask(X, "outlier_noise", rng=10_000 + run, **parameters) for run in range(runs)]
    scores = attacker.outlier_noise(X, masked.to_numpy(), 50, attacker.factors_by_masking(X, 50, own))
    return Attacked(chances.found(scores), lambda: linkage(frame(X), masked, "outlier_noise", parameters))


def rank_noise(draw, n=500, a=0.12):
    """Each column's own values in the order of rank + normal noise; no method is named while none has it."""
    X = skewed(n, 4)
    masked, named = frame(X), {}
    if "rank_noise" in sdc.METHODS:
        named = {"method": "rank_noise", "parameters": {sdc.METHODS["rank_noise"].parameters[0].name: a}}
        masked = sdc.mask(masked, "rank_noise", rng=draw, **named["parameters"])
    else:
        places = X.argsort(0).argsort(0) + a * n * np.random.default_rng(draw).normal(size=X.shape)
        masked = frame(np.take_along_axis(np.sort(X, 0), places.argsort(0).argsort(0), 0))
    scores = attacker.rank_noise(X, masked.to_numpy(), a)
    found = chances.found(scores)
    return Attacked(found, lambda: sdc.evaluate(frame(X), masked, metrics=["linkage"], **named)["linkage"])


def three_releases(draw, n=500):
    """Multiplicative noise, drawn three times; rows of all three files can be aligned."""
    X, parameters = skewed(n, 4, common=0.3, spread=1.5), {"percent": 100}
    files = [sdc.mask(frame(X), "multiplicative_noise", rng=1000 * draw + k, **parameters) for k in range(3)]
    scores = [attacker.multiplicative_noise(X, file.to_numpy(), 100) for file in files]
    found = chances.found(attacker.several_releases(scores))
    return Attacked(
        found, lambda: linkage(frame(X), files, "multiplicative_noise", parameters, together=True)
    )


# ---- sure links, missing cells, secrets ------------------------------------------------------------------


def sure_links(draw, n=500):
    """Share of all records that are named with a chance above 1/2, and rightly."""
    X, parameters = skewed(n, 4), {"percent": 50}
    masked = sdc.mask(frame(X), "noise", rng=draw, **parameters)
    _, found = chances.sure_links(attacker.noise(X, masked.to_numpy(), 50))
    return Attacked(found, lambda: linkage(frame(X), masked, "noise", parameters, "linkage_sure"))


def precision_of_surest(draw, n=500):
    """Precision of the surest 5 % of the links, a figure that nothing is printed beside."""
    X = skewed(n, 4)
    masked = sdc.mask(X, "noise", rng=draw, percent=50)
    return chances.sure_links(attacker.noise(X, masked, 50))[0]


def missing_cells(_draw=0, n=1000):
    """MDAV on the bundled sample: share of the firms that the places of missing cells give away."""
    table, parameters = sdc.load_sample().head(n), {"k": 20, "gaps": "merge"}
    roles = {"key": "firm", "by": "sector", "weights": "weight", "unknown": "weight"}
    masked = sdc.mask(table, "mdav", **roles, **parameters)
    found = (attacker.alone_in_class(masked.drop("firm", "weight").rows()) >= 0.9).mean()
    return Attacked(found, lambda: linkage(table, masked, "mdav", parameters, "linkage_sure", **roles))


def secret_rotation(draw, n=500):
    """Columns turned by a secret matrix that all records share; no method is named."""
    X = np.log(skewed(n, 4))
    X = (X - X.mean(0)) / X.std(0)
    Y = X @ np.linalg.qr(np.random.default_rng(draw).normal(size=(4, 4)))[0]
    found = chances.found(attacker.learnt_in_folds(X, Y))
    return Attacked(found, lambda: sdc.evaluate(frame(X), frame(Y), metrics=["linkage"])["linkage"])


# ---- leaving -------------------------------------------------------------------------------------------

LEAVING = {
    "rank_swap": {"p": 0.3},
    "mdav": {"k": 10},
    "moment_preserving_noise": {"delta": 0.8},
    "romm": {"percent": 100},
}


def leaving(draw, method, n=600, within=0.01):
    """One person leaves between two releases: share of that person's cells guessed; 1 printed if refused."""
    X = skewed(n, 4)
    person = (37 * draw + 5) % n
    rest = np.delete(X, person, 0)
    first, second = (
        sdc.mask(frame(values), method, rng=2 * draw + k, decimals="original", **LEAVING[method]).to_numpy()
        if method != "mdav"
        else sdc.mask(frame(values), method, decimals="original", **LEAVING[method]).to_numpy()
        for k, values in enumerate((X, rest))
    )
    guess = attacker.leaver_by_values(first, second)
    guess = np.where(np.isnan(guess), attacker.leaver_by_sums(first, second), guess)
    found = attacker.guessed_within(guess, X[person], within)
    return Attacked(found, lambda: float(second_refused(frame(X), frame(rest), method)))


def second_refused(first, second, method):
    """Tell whether the command line refuses to release the file without the one who left."""
    from command import good, run_here

    options = [f"--set={name}={value}" for name, value in LEAVING[method].items()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first.write_csv(folder / "first.csv")
        second.write_csv(folder / "second.csv")
        words = ["--release", "--private", "record", "--method", method, *options, "-q"]
        good(folder, "mask", "first.csv", "-o", "one.csv", *words)
        return run_here(folder, "mask", "second.csv", "-o", "two.csv", *words).returncode == 1


def leaving_rank_swap(draw, n=600):
    return leaving(draw, "rank_swap", n)


def leaving_mdav(draw, n=600):
    return leaving(draw, "mdav", n)


def leaving_moment_preserving_noise(draw, n=600):
    return leaving(draw, "moment_preserving_noise", n)


def leaving_romm(draw, n=600):
    return leaving(draw, "romm", n)


LINES = {
    line.__name__: line
    for line in (
        rank_swap,
        rank_swap_two_columns,
        rank_swap_tails,
        rank_swap_strata,
        rank_swap_known_75,
        rank_swap_known_50,
        p_distribution_swap,
        wealth_beside_swaps,
        panel_by_month,
        panel_rows,
        multiplicative_noise,
        outlier_noise,
        kim_noise,
        moment_preserving_noise,
        romm,
        three_releases,
        leaving_rank_swap,
        leaving_mdav,
        leaving_moment_preserving_noise,
        leaving_romm,
        sure_links,
        missing_cells,
        secret_rotation,
        noise,
        correlated_noise,
        zero_preserving_noise,
        rank_noise,
    )
}
FOREIGN = {line.__name__: line for line in (census_swap, tarragona_swap, tarragona_multiplicative)}
