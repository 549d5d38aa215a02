"""Random files, maskings and releases, for the fast intruder and for the slow one that judges it."""

from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import polars as pl

from calls import called
from intruder_release import describe
from sdckit.masking.disclosure import Disclosure
from sdckit.metrics.original import Original
from sdckit.metrics.pair import pair_by_row

MASKINGS = (
    ("mdav", {"k": 3}),
    ("vmdav", {"k": 2}),
    ("pca_microaggregation", {"k": 3}),
    ("blocked_mdav", {"k": 3}),
    ("individual_ranking", {"k": 2}),
    ("optimal_univariate", {"k": 3}),
    ("noise", {"percent": 30}),
    ("noise", {"percent": 0}),
    ("correlated_noise", {"percent": 60}),
    ("kim_noise", {"percent": 50}),
    ("zero_preserving_noise", {"percent": 80}),
    ("multiplicative_noise", {"percent": 40}),
    ("moment_preserving_noise", {"delta": 0.5}),
    ("outlier_noise", {}),
    ("rank_swap", {"p": 0.2}),
    ("rank_swap", {"p": 0.1}),
    ("p_distribution_swap", {"p": 0.1}),
    ("rank_noise", {"a": 0.1}),
    ("round_to", {"base": 0.5}),
    ("round_to", {"base": 0.25}),
    ("top_bottom_code", {"top": 0.2}),
    ("top_bottom_code", {"top": 0.2, "multivariate": "distance"}),
    ("resample", {"samples": 3}),
    ("shuffle", {}),
    ("copula", {}),
)
CODES = (-9.0, -8.0)


@dataclass
class Case:
    """A file and its published version: dicts for the slow intruder, a pair for the fast one."""

    name: str
    original: dict
    published: dict
    release: object
    pair: object
    positions: list | None


def drawn_case(seed):
    """From a seed, a random file, masked by one of the methods and published with its other columns."""
    rng = np.random.default_rng(seed)
    method, parameters = MASKINGS[seed % len(MASKINGS)]
    table, variables = drawn_variables(rng, method)
    by = drawn_strata(rng, table)
    others = drawn_columns(rng, table, by)
    if rng.random() < 0.4:
        table = sorted_rows(table, rng.choice([*variables, *others]))
    na = [*CODES] if rng.random() < 0.3 else None
    frame = pl.DataFrame({name: drawn_codes(rng, c, name in variables and na) for name, c in table.items()})
    options = {"columns": variables, "by": by or None, "na": na, "rng": seed}
    if rng.random() < 0.3 and "percent" in parameters:
        options["decimals"] = 1
    masked = called("mask", frame, method, **options, **parameters)
    masked = masked.with_columns(changed_column(rng, masked[name]) for name in others)
    unknown = list(rng.choice([*variables, *others], 1)) if rng.random() < 0.2 else None
    prepared = Original.of(frame, columns=variables, by=by or None, na=na, unknown=unknown, warn=False)
    pair = pair_by_row(prepared, masked)
    by_position = bool(rng.random() < 0.5)
    pair.by_position = by_position
    pair.disclose(Disclosure.of(method, parameters, by=by, columns=variables))
    pair.window = None if by else pair.disclosure.width("all", prepared.values, prepared.columns)
    original, published = slow_table(frame, variables, na), slow_table(masked, variables, na)
    roles = {"untouched": (*by, *others), "by": tuple(by), "unknown": tuple(unknown or ())}
    release = describe(original, method, parameters, variables, **roles)
    positions = list(range(len(frame))) if by_position else None
    return Case(f"{seed} {method} {parameters}", original, published, release, pair, positions)


def drawn_variables(rng, method):
    """From a method, a dict of variables with repeated values, zeros and missing cells, and their names."""
    n, p = int(rng.integers(16, 45)), int(rng.integers(2 if method == "copula" else 1, 5))
    digits = int(rng.choice([0, 1, 6]))
    gaps = rng.choice([0.0, 0.0, 0.1, 0.3])
    zeros = rng.choice([0.0, 0.0, 0.3])
    table = {}
    for j in range(p):
        cells = np.round(np.exp(rng.normal(size=n)) * (1 + 3 * (digits == 0)), digits)
        cells[rng.random(n) < zeros] = 0.0
        cells[rng.random(n) < gaps * (j < 3)] = np.nan
        table[f"v{j}"] = [None if np.isnan(cell) else float(cell) for cell in cells]
    return table, list(table)


def drawn_strata(rng, table):
    """Add a column of two strata to the table, sometimes; return the names of the strata columns."""
    n = len(table["v0"])
    if n < 32 or rng.random() < 0.6:
        return []
    table["region"] = [["north", "south"][i % 2] for i in range(n)]
    return ["region"]


def drawn_columns(rng, table, by):
    """Add columns that are published unmasked, of several types; return their names."""
    n = len(table["v0"])
    made = {
        "sex": lambda: [["f", "m"][i] for i in rng.integers(0, 2, n)],
        "size": lambda: rng.integers(0, 6, n).tolist(),
        "born": lambda: [date(1990, 1, 1) + timedelta(int(d)) for d in rng.integers(0, 9, n)],
        "weight": lambda: rng.uniform(1, 9, n).round(1).tolist(),
        "code": lambda: [None if i == 3 else str(i) for i in rng.integers(0, 4, n)],
    }
    names = list(rng.choice([*made], int(rng.integers(0, 3)), replace=False))
    table |= {str(name): made[name]() for name in names}
    return [str(name) for name in names if name not in by]


def sorted_rows(table, name):
    """From a table, the table sorted by a column, missing cells first, with two rows exchanged."""
    cells = table[name]
    order = sorted(
        range(len(cells)),
        key=lambda i: (
            (cells[i] is not None, cells[i] or type(cells[i])()) if cells[i] is not None else (False,)
        ),
    )
    order[2], order[3] = order[3], order[2]
    return {column: [values[i] for i in order] for column, values in table.items()}


def drawn_codes(rng, cells, coded):
    """From a column, the same with codes in some of its missing cells, if it is coded."""
    if not coded:
        return cells
    return [[None, *CODES][rng.integers(0, 3)] if cell is None else cell for cell in cells]


def changed_column(rng, column):
    """From a published column, the column as it is, recoded, suppressed in part, or changed in some rows."""
    kind = rng.choice(["same", "same", "text", "recoded", "suppressed", "changed", "wrong"])
    cells, n = column.to_list(), len(column)
    if kind == "text":
        cells = [None if cell is None else str(cell) for cell in cells]
    if kind == "recoded":
        cells = [None if cell is None else hash_band(cell) for cell in cells]
    if kind == "suppressed":
        cells = [None if rng.random() < 0.2 else cell for cell in cells]
    if kind in {"changed", "wrong"}:
        moved = rng.permutation(n)
        share = 0.3 if kind == "changed" else 1.0
        cells = [cells[moved[i]] if rng.random() < share else cell for i, cell in enumerate(cells)]
    return pl.Series(column.name, cells)


def hash_band(cell):
    """From a cell, a coarser one: whole numbers, the month of a date, the first letter of a text."""
    if isinstance(cell, float):
        return float(round(cell))
    if isinstance(cell, int):
        return cell // 2
    return cell.replace(day=1) if isinstance(cell, date) else cell[:1] in "f12"


def slow_table(frame, variables, na):
    """From a data frame, a dict of lists, codes of missing cells as text."""
    coded = set(na or ())
    return {
        name: [
            f"code {cell:g}" if name in variables and cell in coded else cell
            for cell in frame[name].to_list()
        ]
        for name in frame.columns
    }
