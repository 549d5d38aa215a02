"""Projection of released records onto the edit rules, as an intruder who has the rules would compute it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.jit import inner, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Bools, Floats
    from sdckit.rules.parse import Rule

SWEEPS = 20_000  # most passes over all rules
SMALL = 1e-12  # the sweeps end once all moves are below this share of the record's size


def projected(
    columns: Sequence[str], rules: Sequence[Rule], values: Floats, spread: Floats, broken: Bools
) -> Floats:
    """Return for each record the nearest point that satisfies all edit rules, without rounding.

    Near is Euclidean in units of `spread`; columns without spread stay as they are. Rules with a missing
    cell do not count for their record, and records that satisfy all rules stay exactly as they are.

    Parameters
    ----------
    columns
        The names of the columns of `values`.
    rules
        The edit rules that every record must satisfy.
    values
        The released records.
    spread
        The unit of each column.
    broken
        Which records break which rule, one column for each rule.

    Returns
    -------
    numpy.ndarray
        A new matrix.

    Notes
    -----
    Dykstra's alternating projections, at most 20,000 sweeps.

    References
    ----------
    Boyle & Dykstra 1986, A method for finding projections onto the intersection of convex sets in Hilbert
    spaces.

    Examples
    --------
    >>> import numpy as np
    >>> from sdckit.rules import rules_of
    >>> table = np.array([[5.0, 2.0, 3.0], [9.0, 4.0, 2.0]])
    >>> rules = rules_of("total = a + b", ["total", "a", "b"], table)
    >>> print(rules.projected(table, np.array([1.0, 1.0, 1.0])))
    [[5. 2. 3.]
     [8. 5. 3.]]
    """
    found = np.array(values, np.float64, order="C")
    rows = np.flatnonzero(broken.any(axis=1) & ~np.isinf(values).any(axis=1))
    if not rows.size:
        return found
    unit = np.where(np.isfinite(spread) & (spread > 0), spread, 0.0)
    factors = np.zeros((len(rules), len(columns)))
    for r, rule in enumerate(rules):
        for name, factor in rule.terms:
            factors[r, columns.index(name)] = factor
    constants = np.array([float(rule.constant) for rule in rules])
    equality = np.array([rule.equality for rule in rules])
    chosen = found[rows]
    _project(chosen, factors, constants, equality, unit)
    found[rows] = chosen
    return found


@kernel
def _project(cells: Floats, factors: Floats, constants: Floats, equality: Bools, unit: Floats) -> None:
    """Project each record in place onto the rules that it breaks, by Dykstra's algorithm."""
    past = np.empty(len(factors))  # how far each inequality has pushed, as a multiple of its direction
    lengths = np.empty(len(factors))
    for i in range(len(cells)):
        record = cells[i]
        limit = SMALL * _direction_lengths(record, factors, unit, lengths)
        past[:] = 0.0
        for _ in range(SWEEPS):
            largest = 0.0
            for r in range(len(factors)):
                if lengths[r] > 0:
                    move = _excess(record, factors[r], constants[r], lengths[r])
                    if not equality[r]:
                        move = max(move, -past[r])
                        past[r] += move
                    largest = max(largest, abs(move) * np.sqrt(lengths[r]))
                    for j in range(record.size):
                        if factors[r, j] != 0:
                            record[j] -= move * factors[r, j] * unit[j] ** 2
            if largest <= limit:
                break


@inner
def _direction_lengths(record: Floats, factors: Floats, unit: Floats, lengths: Floats) -> float:
    """Write each rule's squared direction length (0 or less: not used); return the record's size."""
    size = 0.0
    lengths[:] = 0.0
    for j in range(record.size):
        missing = np.isnan(record[j])
        if not missing and unit[j] > 0:
            size = max(size, abs(record[j]) / unit[j])
        for r in range(len(factors)):
            if factors[r, j] != 0:
                lengths[r] += -np.inf if missing else (factors[r, j] * unit[j]) ** 2
    return size


@kernel
def _excess(record: Floats, factors: Floats, constant: float, length: float) -> float:
    """Return by how much a record exceeds a rule, as a multiple of the rule's direction."""
    rest = -constant
    for j in range(record.size):
        if factors[j] != 0:
            rest += factors[j] * record[j]
    return rest / length
