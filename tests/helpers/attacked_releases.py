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
import attacker_beside as beside_attacks
import attacker_posterior as chances
import sdckit as sdc
from calls import called

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


def linkage(original, masked, method, parameters, metric="linkage", *, together=False, **roles):
    """Measure a file as a user does who names the method."""
    return sdc.Microdata(original, **roles).evaluate(
        masked, made_by=sdc.Method(method, **parameters), metrics=[metric], together=together
    )[metric]


# ---- swaps ---------------------------------------------------------------------------------------------


def swapped(X, draw, method, parameters, *, share=1.0, rounds=4):
    """Exchanges of values, propagated; `share` of the persons known."""
    masked = sdc.mask(frame(X), method, rng=draw, **parameters)
    Y, moves = masked.to_numpy(), {"rank_swap": attacker.window_moves}.get(method, attacker.drawn_moves)
    known = np.sort(np.random.default_rng(draw).permutation(len(X))[: round(share * len(X))])
    scores = attacker.swap_scores(X[known], Y, moves(X[known], Y, **parameters), rounds)
    found = chances.right_links(chances.row_posterior(scores.T), known).mean()
    return Attacked(found, lambda: linkage(frame(X), masked, method, parameters))


def rank_swap_strata(draw, n=600):
    """Masked within regions, which are published: he attacks each by itself."""
    X, region = skewed(n, 4), np.arange(n) % 3
    table = frame(X).with_columns(region=pl.Series(region).cast(pl.String))
    masked = sdc.Microdata(table, by="region").mask("rank_swap", p=0.3, rng=draw)
    Y, found = masked.select(NAMES[:4]).to_numpy(), []
    for one in range(3):
        x, y = X[region == one], Y[region == one]
        scores = attacker.swap_scores(x, y, attacker.window_moves(x, y, 0.3))
        found.append(chances.found(scores, one_to_one=False))
    return Attacked(np.mean(found), lambda: linkage(table, masked, "rank_swap", {"p": 0.3}, by="region"))


def wealth_beside_swaps(draw, n=600):
    """The confidential wealth is published as it is, beside known columns that were swapped."""
    X = skewed(n, 5)
    table = frame(X[:, :4]).with_columns(wealth=pl.Series(X[:, 4]))
    roles = {"columns": list(NAMES[:4]), "untouched": "wealth", "confidential": "wealth"}
    masked = sdc.Microdata(table, **roles).mask("rank_swap", p=0.3, rng=draw)
    Y = masked.select(NAMES[:4]).to_numpy()
    scores = attacker.swap_scores(X[:, :4], Y, attacker.window_moves(X[:, :4], Y, 0.3))
    found = attacker.guessed_exactly(scores, X[:, 4], masked["wealth"].to_numpy())
    return Attacked(found, lambda: linkage(table, masked, "rank_swap", {"p": 0.3}, "attribute", **roles))


# ---- panels --------------------------------------------------------------------------------------------


def panel_by_month(draw, firms=80, metric="linkage_units"):
    """Noise on the months of firms; the month is published."""
    table, parameters = panel(firms), {"percent": 150}
    roles = {"columns": list(NAMES[:4]), "unit": "firm", "untouched": "month"}
    masked = sdc.Microdata(table, **roles).mask("noise", rng=draw, **parameters)
    rows = attacker.noise(*(one.select(NAMES[:4]).to_numpy() for one in (table, masked)), percent=150)
    unit, month = table["firm"].to_numpy(), table["month"].to_numpy()
    scores = attacker.units_by_month(rows, unit, month, unit, month)
    found = attacker.rows_in_found_units(scores, np.full(firms, 12))
    return Attacked(found, lambda: linkage(table, masked, "noise", parameters, metric, **roles))


# ---- noise ---------------------------------------------------------------------------------------------


def noised(X, draw, method, parameters):
    """The method's own law, one to one."""
    masked = sdc.mask(frame(X), method, rng=draw, **parameters)
    scores = getattr(attacker, method)(X, masked.to_numpy(), **parameters)
    return Attacked(chances.found(scores), lambda: linkage(frame(X), masked, method, parameters))


def outlier_noise(draw, n=500, runs=200):
    """He learns each record's strength by masking the file himself."""
    X, parameters = skewed(n, 6, spread=1.5), {"percent": 50}
    masked = sdc.mask(frame(X), "outlier_noise", rng=draw, **parameters)
    own = [sdc.mask(X, "outlier_noise", rng=10_000 + run, **parameters) for run in range(runs)]
    scores = attacker.outlier_noise(X, masked.to_numpy(), 50, attacker.factors_by_masking(X, 50, own))
    return Attacked(chances.found(scores), lambda: linkage(frame(X), masked, "outlier_noise", parameters))


def missing_correlated(draw, n=400, method="correlated_noise", p=6, common=0.99, runs=60):
    """Strongly correlated columns, a tenth of the cells missing: some combinations get no noise at all."""
    rng, parameters = np.random.default_rng(5), {"percent": 150}
    X = 100 + np.sqrt(common) * rng.normal(size=(n, 1)) + np.sqrt(1 - common) * rng.normal(size=(n, p))
    X[rng.random(X.shape) < 0.1] = np.nan
    masked = sdc.mask(X, method, rng=draw, **parameters)
    own = [sdc.mask(X, method, rng=10_000 + run, **parameters) for run in range(runs)]
    found = chances.found(attacker.by_places(X, masked, own))
    return Attacked(found, lambda: linkage(X, masked, method, parameters))


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
    return Attacked(
        found, lambda: called("evaluate", frame(X), masked, metrics=["linkage"], **named)["linkage"]
    )


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
    masked = sdc.Microdata(table, **roles).mask("mdav", **parameters)
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


# ---- beside the masked cells: codes, columns that follow, places of rows, units --------------------------

AMOUNTS = list(NAMES[:4])


def beside(table, masked, method, parameters, found, metric="linkage", **roles):
    """Measure a file of which four columns are masked, with the roles of the others."""
    roles = {"columns": AMOUNTS, **roles}
    return Attacked(found, lambda: linkage(table, masked, method, parameters, metric, **roles))


def masked_beside(table, draw, method, **roles):
    """Mask four columns; return the masked table, the parameters, and scores of pairs by these columns."""
    parameters = BESIDE[method]
    masked = sdc.Microdata(table, columns=AMOUNTS, **roles).mask(method, rng=draw, **parameters)
    X, Y = (one.select(AMOUNTS).to_numpy() for one in (table, masked))
    scores = attacker.noise(X, Y, **parameters) if method == "noise" else beside_attacks.same_group(Y, Y)
    return masked, parameters, scores


BESIDE = {
    "mdav": {"k": 10},
    "individual_ranking": {"k": 150},
    "round_to": {"percent": 300},
    "noise": {"percent": 100},
}


def wrong_codes(draw, method="mdav", n=400, codes=None, wrong=0.03):
    """A known column of codes, published unmasked, of which a share of the cells is wrong.

    Without a number of codes each record has its own, and a wrong one is a code that nobody has.
    """
    rng = np.random.default_rng(draw)
    code = rng.permutation(n) % (codes or n)
    table = frame(skewed(n, 4)).with_columns(code=pl.Series(code))
    masked, parameters, scores = masked_beside(table, draw, method, untouched="code")
    others = rng.permutation(code) if codes else n + np.arange(n)
    shown = np.where(rng.random(n) < wrong, others, code)
    found = chances.found(scores + beside_attacks.codes_with_errors(code, shown, wrong))
    masked = masked.with_columns(code=pl.Series(shown))
    return beside(table, masked, method, parameters, found, untouched="code")


def wrong_ages_mdav(draw, n=400, wrong=0.3):
    """A known age, published unmasked, of which three in ten are wrong by one or two years."""
    rng = np.random.default_rng(draw)
    age = rng.integers(18, 90, n)
    table = frame(skewed(n, 4)).with_columns(age=pl.Series(age))
    masked, parameters, scores = masked_beside(table, draw, "mdav", untouched="age")
    shown = np.where(rng.random(n) < wrong, age + rng.choice([-2, -1, 1, 2], n), age)
    found = chances.found(scores + beside_attacks.near_numbers(age, shown, wrong, 2))
    masked = masked.with_columns(age=pl.Series(shown))
    return beside(table, masked, "mdav", parameters, found, untouched="age")


def attribute_wrong_codes_mdav(draw, n=400, wrong=0.03):
    """A confidential wealth, read in the record of the group that has the person's code."""
    rng, X = np.random.default_rng(draw), skewed(n, 5)
    code = rng.permutation(n) % 40
    table = frame(X[:, :4]).with_columns(code=pl.Series(code), wealth=pl.Series(X[:, 4]))
    roles = {"untouched": ["code", "wealth"], "confidential": "wealth"}
    masked, parameters, scores = masked_beside(table, draw, "mdav", **roles)
    shown = np.where(rng.random(n) < wrong, rng.permutation(code), code)
    links = beside_attacks.linked_records(scores + beside_attacks.codes_with_errors(code, shown, wrong))
    found = beside_attacks.read_within(links, X[:, 4], masked["wealth"].to_numpy())
    masked = masked.with_columns(code=pl.Series(shown))
    return beside(table, masked, "mdav", parameters, found, "attribute", **roles)


def sure_by_unknown_sum_mdav(draw, n=400):
    """Share of records named with a chance above 1/2, and rightly, by a sum that is declared unknown."""
    X = skewed(n, 4)
    table = frame(X).with_columns(made=pl.Series(sum_of_all(X)))
    roles = {"untouched": "made", "unknown": "made"}
    masked, parameters, scores = masked_beside(table, draw, "mdav", **roles)
    _, found = chances.sure_links(scores + beside_attacks.follows(X, sum_of_all(X)))
    return beside(table, masked, "mdav", parameters, found, "linkage_sure", **roles)


def following(x, correlation, seed):
    """Log-normal values whose logarithms have this correlation with those of x."""
    logs = np.log(x)
    own = np.random.default_rng(seed).normal(size=len(x))
    same = (logs - logs.mean()) / logs.std()
    return np.exp(6 + correlation * same + math.sqrt(1 - correlation**2) * own).round(2)


def follows(draw, method, correlation, n=400, role="unknown"):
    """A column that he does not know is published unmasked, and follows from a known one."""
    X = skewed(n, 4)
    wealth = following(X[:, 0], correlation, draw)
    table = frame(X).with_columns(wealth=pl.Series(wealth))
    roles = {"untouched": "wealth", role: "wealth"}
    masked, parameters, scores = masked_beside(table, draw, method, **roles)
    scores = scores + beside_attacks.follows(np.log(X), np.log(wealth))
    return beside(table, masked, method, parameters, chances.found(scores), **roles)


def attribute_follows_mdav(draw, n=400):
    """Inside groups, people are told apart by the very column that he wants to learn."""
    X = skewed(n, 4)
    wealth = following(X[:, 0], 0.95, draw)
    table = frame(X).with_columns(wealth=pl.Series(wealth))
    roles = {"untouched": "wealth", "confidential": "wealth"}
    masked, parameters, scores = masked_beside(table, draw, "mdav", **roles)
    links = beside_attacks.linked_records(scores + beside_attacks.follows(np.log(X), np.log(wealth)))
    found = beside_attacks.read_within(links, wealth, wealth)
    return beside(table, masked, "mdav", parameters, found, "attribute", **roles)


def weights_follow_size(draw, method="noise", n=400):
    """Survey weights, unknown to him, are large where turnover is small, up to 10 %."""
    X = skewed(n, 4)
    weight = (1e6 / X[:, 0] * np.exp(0.1 * np.random.default_rng(3).normal(size=n))).round(1)
    table = frame(X).with_columns(weight=pl.Series(weight))
    roles = {"weights": "weight", "unknown": "weight"}
    masked, parameters, scores = masked_beside(table, draw, method, **roles)
    scores = scores + beside_attacks.follows(np.log(X), np.log(weight))
    return beside(table, masked, method, parameters, chances.found(scores), **roles)


def class_of_size(draw, method="noise", n=400, classes=20):
    """A published class of size, declared unknown, is computed from a known turnover."""
    X = skewed(n, 4)
    edges = np.quantile(X[:, 0], np.arange(1, classes) / classes)
    size = np.searchsorted(edges, X[:, 0])
    table = frame(X).with_columns(size=pl.Series([f"c{one:02}" for one in size]))
    roles = {"untouched": "size", "unknown": "size"}
    masked, parameters, scores = masked_beside(table, draw, method, **roles)
    scores = scores + beside_attacks.class_of_number(X[:, 0], edges, size)
    return beside(table, masked, method, parameters, chances.found(scores), **roles)


def sorted_rows(draw, method, key, n=400):
    """The file is sorted, and its rows are published in place; `key` makes the column it is sorted by."""
    X = skewed(n, 4)
    X = X[np.argsort(key(X))]
    masked, parameters, scores = masked_beside(frame(X), draw, method)
    found = chances.found(scores + beside_attacks.in_place(key(X)), one_to_one=False)
    return beside(frame(X), masked, method, parameters, found)


def sum_of_two(X):
    return X[:, 0] + X[:, 1]


def sum_of_all(X):
    return X.sum(1)


def sorted_by_dropped(draw, method="noise", n=400, correlation=0.0):
    """Sorted by a column that is not published; known to him if it has nothing to do with the others."""
    X = skewed(n, 4)
    size = following(X[:, 0], correlation, draw)
    order = np.argsort(size, kind="stable")
    X, size = X[order], size[order]
    table = frame(X).with_columns(size=pl.Series(size))
    masked, parameters, scores = masked_beside(table, draw, method, drop="size")
    if correlation:
        places = beside_attacks.follows(np.log(X), beside_attacks.normal_places(n))
        found = chances.found(scores + places)
    else:
        found = chances.found(scores + beside_attacks.in_place(size), one_to_one=False)
    return beside(table, masked, method, parameters, found, drop="size")


def attribute_of_sorted(draw, method="noise", n=400):
    """Rows are sorted by a known column and stay in place: each person's wealth is read at their rank."""
    X = skewed(n, 5)
    X = X[np.argsort(X[:, 0])]
    table = frame(X[:, :4]).with_columns(wealth=pl.Series(X[:, 4]))
    roles = {"untouched": "wealth", "confidential": "wealth"}
    masked, parameters, _ = masked_beside(table, draw, method, **roles)
    links = beside_attacks.linked_records(beside_attacks.in_place(X[:, 0]))
    found = beside_attacks.read_within(links, X[:, 4], masked["wealth"].to_numpy())
    return beside(table, masked, method, parameters, found, "attribute", **roles)


def unit_scores(table, masked, percent, units, months=12):
    """Scores of units by all their months, where rows lie by unit and month and noise was added."""
    X, Y = (one.select(AMOUNTS).to_numpy() for one in (table, masked))
    deviations = attacker.spreads(X) * percent / 100
    X, Y = (values.reshape(units, months, -1) for values in (X, Y))
    return beside_attacks.noise_of_units(X, Y, deviations, np.arange(units))


def attribute_of_units(draw, firms=60):
    """Link a firm by all its months, then read its confidential wealth in each."""
    wealth = skewed(12 * firms, 1, seed=5)[:, 0]
    table, parameters = panel(firms).with_columns(wealth=pl.Series(wealth)), {"percent": 150}
    roles = {"unit": "firm", "untouched": ["month", "wealth"], "confidential": "wealth"}
    masked = sdc.Microdata(table, columns=AMOUNTS, **roles).mask("noise", rng=draw, **parameters)
    links = beside_attacks.linked_rows_of_units(unit_scores(table, masked, 150, firms), 12)
    found = beside_attacks.read_within(links, wealth, masked["wealth"].to_numpy())
    return beside(table, masked, "noise", parameters, found, "attribute", **roles)


def units_shown(draw, firms, roles, table):
    """The number of the firm is dropped, but something else shows which rows belong together."""
    parameters = {"percent": 150}
    masked = sdc.Microdata(table, columns=AMOUNTS, **roles).mask("noise", rng=draw, **parameters)
    shown = [column for column in ("weight", "month") if column in masked.columns]
    together = [one.sort(shown) if len(shown) == 2 else one for one in (table, masked)]
    found = attacker.rows_in_found_units(unit_scores(*together, 150, firms), np.full(firms, 12))
    return beside(table, masked, "noise", parameters, found, **roles)


def units_shown_by_weight(draw, firms=50):
    """Rows lie in any order; those of a firm share a weight, which he does not know and no other has."""
    table = panel(firms).with_columns(weight=pl.Series(np.repeat(1 + np.arange(firms) / 7, 12).round(3)))
    table = table[np.random.default_rng(7).permutation(len(table))]
    roles = {"drop": "firm", "untouched": "month", "weights": "weight", "unknown": "weight"}
    return units_shown(draw, firms, roles, table)


def formula(draw, method, compute, fitted, n=400):
    """A column that he does not know is computed from known ones; `fitted` brings it into a linear form."""
    X = skewed(n, 4)
    made = compute(X)
    table = frame(X).with_columns(made=pl.Series(made))
    roles = {"untouched": "made", "unknown": "made"}
    masked, parameters, scores = masked_beside(table, draw, method, **roles)
    scores = scores + beside_attacks.follows(fitted(X), fitted(made))
    return beside(table, masked, method, parameters, chances.found(scores), **roles)


def masked_unknown_follows(draw, n=400):
    """Noise on a column that he does not know, too: it measures the known one once more."""
    X, parameters = np.column_stack([skewed(n, 1, spread=0.5, seed=k) for k in (1, 2)]), {"percent": 20}
    wealth = 0.1 * X[:, 0] * np.exp(0.02 * np.random.default_rng(3).normal(size=n))
    table, columns = frame(X).with_columns(wealth=pl.Series(wealth)), [*NAMES[:2], "wealth"]
    masked = sdc.Microdata(table, columns=columns).mask("noise", rng=draw, **parameters)
    scores = attacker.noise(X, masked.select(NAMES[:2]).to_numpy(), **parameters)
    scores = scores + beside_attacks.follows(X, masked["wealth"].to_numpy())
    roles = {"columns": columns, "unknown": "wealth"}
    return beside(table, masked, "noise", parameters, chances.found(scores), **roles)


def sorted_in_regions(draw, method="mdav", n=400):
    """Sorted by a known, published region and inside it by a sum of columns."""
    X, region = skewed(n, 4), np.random.default_rng(3).integers(0, 4, n)
    order = np.lexsort([sum_of_two(X), region])
    X, region = X[order], region[order]
    table = frame(X).with_columns(region=pl.Series([f"r{one}" for one in region]))
    masked, parameters, scores = masked_beside(table, draw, method, untouched="region")
    places = np.lexsort([sum_of_two(X), region]).argsort()
    found = chances.found(scores + beside_attacks.in_place(places), one_to_one=False)
    return beside(table, masked, method, parameters, found, untouched="region")


def months_present(draw, firms=50):
    """Each firm is there in months of its own: which they are names most firms, however strong the noise."""
    table, parameters = panel(firms), {"percent": 300}
    table = table.filter(pl.Series(np.random.default_rng(3).random(len(table)) < 0.5))
    roles = {"unit": "firm", "untouched": "month"}
    masked = sdc.Microdata(table, columns=AMOUNTS, **roles).mask("noise", rng=draw, **parameters)
    rows = attacker.noise(*(one.select(AMOUNTS).to_numpy() for one in (table, masked)), percent=300)
    unit, month = table["firm"].to_numpy(), table["month"].to_numpy()
    scores = attacker.units_by_month(rows, unit, month, unit, month)
    found = attacker.rows_in_found_units(scores, np.unique(unit, return_counts=True)[1])
    return beside(table, masked, "noise", parameters, found, **roles)


def sizes_of_units(draw, firms=25):
    """No month is published, but every firm has another number of rows: `linkage_units`."""
    table, parameters = panel(firms, months=firms), {"percent": 300}
    table = table.filter(pl.col("month") <= pl.col("firm") + 1).drop("month")
    masked = sdc.Microdata(table, columns=AMOUNTS, unit="firm").mask("noise", rng=draw, **parameters)
    sizes = table.group_by("firm", maintain_order=True).len()["len"].to_numpy()
    found = chances.found(beside_attacks.codes_with_errors(sizes, sizes, 1e-9))
    return beside(table, masked, "noise", parameters, found, "linkage_units", unit="firm")


# ---- slow ------------------------------------------------------------------------------------------------


def large_panel(draw, firms=2100, percent=100, sampled=100):
    """Noise on the months of firms in a large file, whose rows are sampled; the attack samples firms."""
    table, parameters = panel(firms), {"percent": percent}
    roles = {"unit": "firm", "untouched": "month"}
    masked = sdc.Microdata(table, columns=AMOUNTS, **roles).mask("noise", rng=draw, **parameters)
    X, Y = (one.select(AMOUNTS).to_numpy() for one in (table, masked))
    deviations = attacker.spreads(X) * percent / 100
    X, Y = (values.reshape(firms, 12, -1) for values in (X, Y))
    sample = np.random.default_rng(draw).permutation(firms)[:sampled]
    found = beside_attacks.nearest_units(beside_attacks.noise_of_units(X, Y, deviations, sample), sample)
    return beside(table, masked, "noise", parameters, found, **roles)


def large_multiplicative(draw, n=4000):
    """Multiplicative noise of 100 % on six very skewed columns: the law in closed form, row by row."""
    X, parameters = skewed(n, 6, spread=1.5), {"percent": 100}
    masked = sdc.mask(frame(X), "multiplicative_noise", rng=draw, **parameters)
    found = beside_attacks.multiplicative_row_by_row(X, masked.to_numpy(), 100)
    return Attacked(found, lambda: linkage(frame(X), masked, "multiplicative_noise", parameters))


LINES = {
    "rank_swap": lambda draw, n=800: swapped(skewed(n, 4), draw, "rank_swap", {"p": 0.3}),
    "rank_swap_two_columns": lambda draw, n=400: swapped(
        skewed(n, 2), draw, "rank_swap", {"p": 0.1}, rounds=8
    ),
    "rank_swap_tails": lambda draw, n=400: swapped(
        skewed(n, 4), draw, "rank_swap", {"p": 0.3, "tails": 0.05}
    ),
    "rank_swap_known_75": lambda draw, n=800: swapped(
        skewed(n, 6), draw, "rank_swap", {"p": 0.3}, share=0.75
    ),
    "rank_swap_known_50": lambda draw, n=800: swapped(skewed(n, 6), draw, "rank_swap", {"p": 0.3}, share=0.5),
    "p_distribution_swap": lambda draw, n=400: swapped(skewed(n, 4), draw, "p_distribution_swap", {"p": 0.3}),
    "panel_rows": lambda draw, firms=80: panel_by_month(draw, firms, "linkage"),
    "multiplicative_noise": lambda draw, n=500: noised(
        skewed(n, 4, common=0.3, spread=1.5), draw, "multiplicative_noise", {"percent": 100}
    ),
    "kim_noise": lambda draw, n=500: noised(skewed(n, 6), draw, "kim_noise", {"percent": 100}),
    "moment_preserving_noise": lambda draw, n=500: noised(
        skewed(n, 6), draw, "moment_preserving_noise", {"delta": 0.8}
    ),
    "romm": lambda draw, n=500: noised(skewed(n, 6), draw, "romm", {"percent": 100}),
    "leaving_rank_swap": lambda draw, n=600: leaving(draw, "rank_swap", n),
    "leaving_mdav": lambda draw, n=600: leaving(draw, "mdav", n),
    "leaving_moment_preserving_noise": lambda draw, n=600: leaving(draw, "moment_preserving_noise", n),
    "leaving_romm": lambda draw, n=600: leaving(draw, "romm", n),
    "noise": lambda draw, n=500: noised(skewed(n, 4), draw, "noise", {"percent": 50}),
    "correlated_noise": lambda draw, n=500: noised(skewed(n, 4), draw, "correlated_noise", {"percent": 60}),
    "zero_preserving_noise": lambda draw, n=500: noised(
        with_zeros(n, 4), draw, "zero_preserving_noise", {"percent": 100}
    ),
    "missing_correlated_kim": lambda draw, n=400: missing_correlated(draw, n, "kim_noise"),
    "missing_less_correlated": lambda draw, n=400: missing_correlated(draw, n, common=0.9, p=4),
    "wrong_codes_mdav": lambda draw, n=400: wrong_codes(draw, "mdav", n),
    "wrong_codes_40_mdav": lambda draw, n=400: wrong_codes(draw, "mdav", n, codes=40),
    "wrong_codes_noise": lambda draw, n=400: wrong_codes(draw, "noise", n),
    "follows_95_noise": lambda draw, n=400: follows(draw, "noise", 0.95, n),
    "follows_99_noise": lambda draw, n=400: follows(draw, "noise", 0.99, n),
    "follows_95_mdav": lambda draw, n=400: follows(draw, "mdav", 0.95, n),
    "follows_99_mdav": lambda draw, n=400: follows(draw, "mdav", 0.99, n),
    "confidential_follows_noise": lambda draw, n=400: follows(draw, "noise", 0.99, n, "confidential"),
    "confidential_follows_mdav": lambda draw, n=400: follows(draw, "mdav", 0.99, n, "confidential"),
    "weights_follow_size_mdav": lambda draw, n=400: weights_follow_size(draw, "mdav", n),
    "class_of_size_mdav": lambda draw, n=400: class_of_size(draw, "mdav", n),
    "sorted_by_sum_noise": lambda draw, n=400: sorted_rows(draw, "noise", sum_of_two, n),
    "sorted_by_sum_mdav": lambda draw, n=400: sorted_rows(draw, "mdav", sum_of_two, n),
    "sorted_by_total_noise": lambda draw, n=400: sorted_rows(draw, "noise", sum_of_all, n),
    "sorted_by_dropped_noise": lambda draw, n=400: sorted_by_dropped(draw, "noise", n),
    "sorted_by_dropped_mdav": lambda draw, n=400: sorted_by_dropped(draw, "mdav", n),
    # He does not know the column that rows are sorted by, but it follows from one that he knows.
    "sorted_by_secret_noise": lambda draw, n=400: sorted_by_dropped(draw, "noise", n, 0.95),
    "sorted_by_secret_mdav": lambda draw, n=400: sorted_by_dropped(draw, "mdav", n, 0.95),
    "attribute_of_sorted_mdav": lambda draw, n=400: attribute_of_sorted(draw, "mdav", n),
    # Rows stay in place, twelve months of one firm after the other.
    "units_shown_by_place": lambda draw, firms=50: units_shown(
        draw, firms, {"drop": "firm", "untouched": "month"}, panel(firms)
    ),
    "unknown_sum_noise": lambda draw, n=400: formula(draw, "noise", sum_of_all, np.asarray, n),
    "unknown_sum_mdav": lambda draw, n=400: formula(draw, "mdav", sum_of_all, np.asarray, n),
    "unknown_ratio_noise": lambda draw, n=400: formula(
        draw, "noise", lambda X: (X[:, 0] / X[:, 1]).round(4), np.log, n
    ),
    "unknown_ratio_mdav": lambda draw, n=400: formula(
        draw, "mdav", lambda X: (X[:, 0] / X[:, 1]).round(4), np.log, n
    ),
    "wrong_codes_individual_ranking": lambda draw, n=400: wrong_codes(
        draw, "individual_ranking", n, codes=40
    ),
    "wrong_codes_rounding": lambda draw, n=400: wrong_codes(draw, "round_to", n, codes=40),
    **{
        line.__name__: line
        for line in (
            rank_swap_strata,
            wealth_beside_swaps,
            panel_by_month,
            outlier_noise,
            three_releases,
            sure_links,
            missing_cells,
            secret_rotation,
            rank_noise,
            missing_correlated,
            attribute_follows_mdav,
            weights_follow_size,
            class_of_size,
            attribute_of_sorted,
            attribute_of_units,
            units_shown_by_weight,
            masked_unknown_follows,
            sorted_in_regions,
            months_present,
            sizes_of_units,
            wrong_ages_mdav,
            attribute_wrong_codes_mdav,
            sure_by_unknown_sum_mdav,
        )
    },
}
FOREIGN = {
    "census_swap": lambda draw: swapped(foreign("census"), draw, "rank_swap", {"p": 0.5}, rounds=2),
    "tarragona_swap": lambda draw: swapped(foreign("tarragona"), draw, "rank_swap", {"p": 0.7}, rounds=2),
    "tarragona_multiplicative": lambda draw: noised(
        foreign("tarragona"), draw, "multiplicative_noise", {"percent": 100}
    ),
}
SLOW = {
    "large_panel": large_panel,
    "large_panel_60": lambda draw, firms=2100: large_panel(draw, firms, 60),
    "large_multiplicative": large_multiplicative,
}
