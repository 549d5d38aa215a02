"""Masked matrices with totals that can be reached, the least change by scipy, and what must be kept."""

from fractions import Fraction

import numpy as np
from scipy.optimize import minimize

from sdckit.rules.calibrate import Problem, Totals, exact_total, unit_of
from sdckit.rules.rules import rules_of

NAMES = ("T", "A", "B", "C")
RULES = {
    "none": None,
    "sum": ["T = A + B"],
    "inequality": ["A <= B", "C >= 0"],
    "sum and inequalities": ["T = A + B", "C <= A", "B <= 2*A"],
    "sum with a tolerance": ["T = A + B + C +- 2"],
    "two sums": ["T = A + B", "A = B + C"],
}


def totals_of(source, column, domains, weights):
    labels = [str(number) for number in range(domains.max() + 1)]
    targets = [exact_total(source[domains == d, column], weights[domains == d]) for d in range(len(labels))]
    return Totals(f"total({NAMES[column]})", column, domains, labels, targets)


def problem_of(seed, texts, *, n=24, columns=(0, 1), digits=1, weighted=False, divisions=1):
    """A masked file of four columns that satisfies the rules, with totals of another masking that does so."""
    rng = np.random.default_rng(seed)
    original = np.exp(rng.normal(3, 1, (n, 4)))
    original[:4, 3] = 0.0
    target, masked = (np.round(original * np.exp(rng.normal(0, 0.1, (n, 4))), digits) for _ in range(2))
    rules = rules_of(texts, NAMES, masked) if texts else None
    if rules is not None:
        inside = [NAMES.index(name) for name in rules.columns]
        for file in (target, masked):
            file[:, inside] = rules.repaired(file[:, inside], [digits] * len(inside), [True] * len(inside))
    weights = np.round(rng.uniform(1, 20, n), 1) if weighted else np.ones(n)
    divided = [rng.integers(0, 2, n) for _ in range(divisions)]
    totals = tuple(totals_of(target, j, domains, weights) for domains in divided for j in columns)
    return Problem(NAMES, np.asfortranarray(masked), weights, totals, rules, np.ones(4, bool))


def conditions_of(problem):
    """Equations and inequalities on the moving cells, each a row of factors and its side."""
    moving = np.less(*problem.limits)
    number = np.full(moving.shape, -1)
    number[moving] = np.arange(moving.sum())
    equal, below = [], []

    def add(where, terms, side):
        row = np.zeros(moving.sum())
        for (i, j), factor in terms:
            if moving[i, j]:
                row[number[i, j]] += factor
            else:
                side -= factor * problem.values[i, j]
        if row.any():
            where.append((row, side))

    for one in problem.totals:
        for d, target in enumerate(one.targets):
            rows = np.flatnonzero((one.domains == d) & ~np.isnan(problem.values[:, one.column]))
            add(equal, [((i, one.column), problem.weights[i]) for i in rows], float(target))
    for half in (half for rule in (problem.rules.rules if problem.rules else ()) for half in rule.halves):
        places = [NAMES.index(name) for name in half.columns]
        if len(places) > 1:
            for i in np.flatnonzero(~np.isnan(problem.values[:, places]).any(1)):
                terms = [((i, j), factor) for j, (_, factor) in zip(places, half.terms, strict=True)]
                add(equal if half.equality else below, terms, float(half.constant))
    return moving, equal, below


def independent(matrix):
    """Numbers of rows that do not depend on those before them, which SLSQP needs."""
    kept = []
    for r in range(len(matrix)):
        if np.linalg.matrix_rank(matrix[[*kept, r]]) > len(kept):
            kept.append(r)
    return kept


def least_by_scipy(problem):
    """The least change by SLSQP, every cell and every condition written out."""
    moving, equal, below = conditions_of(problem)
    low, high = (side[moving] for side in problem.limits)
    unit = np.sqrt(np.abs(problem.values) * np.nanmean(np.abs(problem.values), 0) / problem.weights[:, None])
    unit, start = unit[moving], problem.values[moving]
    conditions = []
    for kind, sign, rows in (("eq", 1, equal), ("ineq", -1, below)):
        if rows:
            matrix = np.array([row for row, _ in rows]) * unit
            size = np.linalg.norm(matrix, axis=1)
            a = sign * matrix / size[:, None]
            b = sign * np.array([side - row @ start for row, side in rows]) / size
            kept = independent(a) if kind == "eq" else slice(None)
            a, b = a[kept], b[kept]
            conditions.append({"type": kind, "fun": lambda z, a=a, b=b: a @ z - b, "jac": lambda _, a=a: a})
    found = minimize(
        lambda z: z @ z / 2,
        np.zeros(start.size),
        jac=lambda z: z,
        bounds=list(zip((low - start) / unit, (high - start) / unit, strict=True)),
        constraints=conditions,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert found.success, found.message
    result = problem.values.copy()
    result[moving] = start + unit * found.x
    return result


def check_kept(problem, found):
    """Limits, rules, missing cells and zeros are kept, and cells are within one step of the least change."""
    low, high = problem.limits
    seen = ~np.isnan(problem.values)
    assert ((found.values >= low) & (found.values <= high))[seen].all()
    assert np.isnan(found.values[~seen]).all()
    assert (found.values[problem.values == 0] == 0).all()
    assert (np.sign(problem.values) * np.sign(found.values) >= 0)[seen].all()
    units = np.array([float(unit_of(step)) for step in problem.steps])
    assert np.nanmax(np.abs(found.values - found.continuous) / units) <= 1 + 1e-6
    if problem.rules is not None:
        inside = [NAMES.index(name) for name in problem.rules.columns]
        assert not problem.rules.violations(found.values[:, inside]).any()
    for column, step in zip(found.values.T, problem.steps, strict=True):
        counts = [Fraction(repr(cell)) / unit_of(step) for cell in column[~np.isnan(column)].tolist()]
        assert all(count.denominator == 1 for count in counts)
