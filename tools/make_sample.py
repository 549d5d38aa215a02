"""Write the bundled sample: a made-up survey of 1,000 firms, the same bytes on every machine.

Run `python tools/make_sample.py` from the repository's root. Amounts are in thousands.
"""

from pathlib import Path

import numpy as np

TARGET = Path(__file__).parents[1] / "src" / "sdckit" / "data" / "sample.csv"
SEED = 73105

# sector: firms, log of median size, share of exporters, share of materials in turnover, weight: firms of the
# population for each of the sample, so that weights tell no more than sectors do
SECTORS = {
    "manufacturing": (290, 3.0, 0.60, 0.45, 4.5),
    "trade": (270, 1.9, 0.30, 0.62, 9.8),
    "construction": (180, 2.2, 0.10, 0.40, 7.2),
    "services": (180, 1.7, 0.25, 0.15, 11.6),
    "transport": (80, 2.5, 0.40, 0.30, 5.4),
}
DECIMALS = {
    "employees": 0,
    "turnover": 0,
    "domestic_sales": 0,
    "export_sales": 0,
    "wages": 1,
    "materials": 1,
    "energy_cost": 2,
    "investment": 1,
    "rd_spending": 1,
    "profit": 1,
}
MISSING = {"wages": 15, "energy_cost": 20, "investment": 12}  # cells, of 1,000


def variables(rng: np.random.Generator, sector: list[str]) -> dict[str, np.ndarray]:
    """Draw the ten variables and the weight for firms of these sectors."""
    n = len(sector)
    size, exporting, material, weight = np.array([SECTORS[name][1:] for name in sector]).T

    def spread(scale: float) -> np.ndarray:
        return np.exp(scale * rng.standard_normal(n))

    def some(share: np.ndarray | float) -> np.ndarray:
        return rng.integers(0, 10_000, n) < 10_000 * np.clip(share, 0, 1)

    employees = np.maximum(1, np.round(np.exp(size) * spread(1.15)))
    large = np.log(employees) / np.log(500)  # 0 for one employee, 1 for 500
    turnover = np.maximum(5, np.round(110 * employees**1.03 * spread(0.55)))
    share = np.clip(0.22 * spread(0.8), 0, 0.95) * some(exporting * (0.4 + large))
    export = np.round(turnover * share)
    wages = np.round(29 * employees**1.04 * spread(0.22), 1)
    materials = np.round(turnover * np.minimum(material * spread(0.25), 0.9), 1)
    energy = np.round(turnover * 0.021 * spread(0.7), 2)
    investment = np.round(turnover * 0.05 * spread(1.1) * some(0.25 + 0.6 * large), 1)
    research = np.round(turnover * 0.018 * spread(0.9) * some(0.02 + 0.45 * large), 1)
    other = turnover * 0.12 * spread(0.4)
    profit = np.round(turnover - wages - materials - energy - research - other, 1)
    rng.standard_normal(n)  # an earlier sample drew its weights here: missing cells stay in their places
    return {
        "weight": weight,
        "employees": employees,
        "turnover": turnover,
        "domestic_sales": turnover - export,
        "export_sales": export,
        "wages": wages,
        "materials": materials,
        "energy_cost": energy,
        "investment": investment,
        "rd_spending": research,
        "profit": profit,
    }


def sample() -> str:
    """Return the whole file as text."""
    rng = np.random.default_rng(SEED)
    names = [name for name, record in SECTORS.items() for _ in range(record[0])]
    sector = [names[place] for place in rng.permutation(len(names))]
    table = variables(rng, sector)
    cells = {"firm": [f"F{number:04d}" for number in range(1, len(sector) + 1)], "sector": sector}
    for name, values in table.items():
        decimals = DECIMALS.get(name, 1)
        cells[name] = [f"{value:.{decimals}f}" for value in values + 0.0]
    for name, count in MISSING.items():
        for row in rng.permutation(len(sector))[:count]:
            cells[name][row] = ""
    lines = [",".join(cells), *(",".join(row) for row in zip(*cells.values(), strict=True))]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_bytes(sample().encode())
