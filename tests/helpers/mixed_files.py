"""Ten files of mixed columns, as offices have them, with the roles that a user gives after a refusal."""

from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np
import polars as pl

SIZE = 200


@dataclass
class Mixed:
    """A file, the roles of its columns, and the columns that stand in the way, if no release is safe."""

    data: pl.DataFrame
    roles: dict = field(default_factory=dict)
    in_the_way: tuple = ()


def drawn(seed, names, digits=1, size=SIZE):
    """From a seed and names, columns of skewed amounts that share one factor."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=size)
    return {name: np.exp(5 + 0.6 * factor + 0.8 * rng.normal(size=size)).round(digits) for name in names}


def with_gaps(frame, names, share, cells, seed):
    """From a frame, one in which a share of the cells of some columns is replaced by one of some cells."""
    rng = np.random.default_rng(seed)
    columns = []
    for name in names:
        lost, found = rng.random(frame.height) < share, frame[name].to_list()
        columns.append([cells[rng.integers(len(cells))] if lost[i] else x for i, x in enumerate(found)])
    return frame.with_columns(pl.Series(n, c, frame[n].dtype) for n, c in zip(names, columns, strict=True))


def households():
    """Persons in households, with codes, near-unique weights and amounts."""
    rng = np.random.default_rng(20)
    data = pl.DataFrame(
        {
            "hhid": np.repeat(np.arange(1001, 1001 + SIZE // 4), 4),
            "sex": rng.integers(1, 3, SIZE),
            "roof": rng.choice([1, 2, 3], SIZE, p=[0.6, 0.3, 0.1]),
            "wgt": rng.uniform(200, 900, SIZE).round(3),
            **drawn(21, ["wage", "rent", "food"]),
        }
    )
    roles = {"unit": "hhid", "untouched": ["sex"], "recode": {"roof": "rare:40"}, "drop": ["wgt"]}
    return Mixed(data, roles)


def dates_and_text():
    """Patients with a key, dates, a town and costs; dates are coarsened, the comment is dropped."""
    rng = np.random.default_rng(22)
    born = [date(1940, 1, 1) + timedelta(int(day)) for day in rng.integers(0, 22_000, SIZE)]
    data = pl.DataFrame(
        {
            "patient": [f"P{number:05}" for number in rng.permutation(10**5)[:SIZE]],
            "born": born,
            "town": rng.choice(["Aa", "Bee", "Cee", "Dee", "Eff"], SIZE, p=[0.5, 0.3, 0.1, 0.07, 0.03]),
            "comment": [f"{a} {b}" for a, b in rng.integers(0, 10**6, (SIZE, 2))],
            **drawn(23, ["cost", "drugs"], 2),
        }
    )
    recode = {"born": "year:20", "town": "rare:50"}
    return Mixed(data, {"key": "patient", "recode": recode, "drop": ["comment"]})


def empty_cells():
    """Amounts of which one in ten is missing, without codes."""
    frame = pl.DataFrame(drawn(24, ["a", "b", "c", "d"]))
    return Mixed(with_gaps(frame, ["a", "b", "c", "d"], 0.1, [None], 25))


def coded_gaps():
    """Amounts with two codes of missing cells in one column, and a known code of sexes."""
    frame = pl.DataFrame(drawn(26, ["a", "b", "c"]) | {"sex": ["f", "m"] * (SIZE // 2)})
    return Mixed(with_gaps(frame, ["a"], 0.15, [-9.0, -8.0], 27), {"na": [-9, -8]})


def zeros():
    """Amounts of which a third is zero."""
    return Mixed(with_gaps(pl.DataFrame(drawn(28, ["a", "b", "c"])), ["a", "b", "c"], 0.35, [0.0], 29))


def sorted_rows():
    """Firms sorted by turnover, with a running number."""
    data = pl.DataFrame(drawn(30, ["turnover", "wages", "profit"])).sort("turnover", descending=True)
    return Mixed(data.with_row_index("firm_id", offset=1), {"key": "firm_id"})


def strata():
    """Amounts of firms in three sectors that are masked one by one, with weights that the intruder lacks."""
    rng = np.random.default_rng(31)
    sector = rng.choice(["trade", "crafts", "transport"], SIZE, p=[0.5, 0.3, 0.2])
    data = pl.DataFrame(
        {"sector": sector, "weight": rng.uniform(1, 9, SIZE).round(4), **drawn(32, ["a", "b"])}
    )
    return Mixed(data, {"by": "sector", "weights": "weight", "unknown": "weight"})


def integers():
    """Whole numbers with many ties, and records that repeat."""
    rng = np.random.default_rng(33)
    data = pl.DataFrame(
        {
            "age": rng.integers(16, 90, SIZE),
            "hours": rng.integers(0, 61, SIZE),
            "km": rng.integers(0, 300, SIZE),
        }
    )
    return Mixed(pl.concat([data[: SIZE - 40], data[:40]]))


def demographics():
    """A survey whose untouched codes single most persons out, whatever is done to their amounts."""
    rng = np.random.default_rng(34)
    codes = {f"q{j}": rng.choice([1, 2, 3, 4], SIZE, p=[0.55, 0.25, 0.15, 0.05]) for j in range(7)}
    names = tuple(codes)
    return Mixed(pl.DataFrame(codes | drawn(35, ["income", "wealth"])), {"untouched": list(names)}, names)


def weights():
    """A survey whose near-unique weights are published and known."""
    rng = np.random.default_rng(36)
    data = pl.DataFrame(
        {"w": rng.uniform(1, 9, SIZE).round(5), "sex": rng.integers(1, 3, SIZE), **drawn(37, ["a"])}
    )
    return Mixed(data, {"weights": "w", "untouched": ["w", "sex"], "columns": ["a"]}, ("w",))


FILES = {
    make.__name__: make
    for make in (
        *(households, dates_and_text, empty_cells, coded_gaps, zeros),
        *(sorted_rows, strata, integers, demographics, weights),
    )
}
