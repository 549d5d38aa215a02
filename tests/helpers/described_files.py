"""Five files as statisticians get them, and the role that each column should be given."""

import datetime as dt

import numpy as np
import polars as pl

FIRST = ("Anna", "Ben", "Carla", "David", "Eva", "Felix", "Greta", "Hugo", "Ida", "Jan", "Leo", "Mia", "Noah")
START = ("Alt", "Berg", "Eber", "Fried", "Gold", "Hohen", "Kirch", "Linden", "Mittel", "Neu", "Ober", "Rosen")
LAST = ("bach", "berg", "born", "dorf", "feld", "hardt", "hausen", "heim", "hof", "holz", "horst", "stein")
END = ("", "er", "mann", "ner", "s")


def households(n=1200):
    """Persons of a household survey: codes, household ids, weights and four amounts."""
    rng = np.random.default_rng(11)
    sizes = rng.integers(1, 6, n)
    household = np.repeat(np.arange(10_001, 10_001 + n), sizes)[:n]
    first = np.r_[True, household[1:] != household[:-1]]
    inside = np.arange(n) - np.flatnonzero(first)[np.cumsum(first) - 1]
    unit = np.unique(household, return_inverse=True)[1]
    region = rng.integers(1, 18, unit.max() + 1)[unit]
    age = rng.integers(0, 96, n)
    income = np.round(rng.lognormal(9.5, 0.8, n), 0) * (age > 15)
    return pl.DataFrame(
        {
            "hhid": household,
            "pid": inside + 1,
            "region": region,
            "urban": rng.integers(1, 3, unit.max() + 1)[unit],
            "sex": rng.integers(1, 3, n),
            "age": age,
            "marital": rng.choice([1, 2, 3, 4, 9], n, p=[0.4, 0.4, 0.1, 0.08, 0.02]),
            "education": rng.integers(0, 9, n),
            "isco": rng.integers(11, 97, n) * 100 + rng.integers(1, 9, n),
            "roof": rng.choice([1, 2, 3], n, p=[0.7, 0.25, 0.05]),
            "rooms": rng.integers(1, 9, unit.max() + 1)[unit],
            "income": income.astype(np.int64),
            "rent": np.round(rng.lognormal(6, 0.5, n), 2),
            "food": np.round(rng.lognormal(5.5, 0.5, n), 2),
            "transfers": np.round(rng.exponential(300, n) * (rng.random(n) < 0.4), 2),
            "wgt": np.round(rng.uniform(50, 900, unit.max() + 1)[unit], 3),
        }
    )


def panel(firms=90, years=8):
    """A panel of firms: firm ids that repeat, years, amounts."""
    rng = np.random.default_rng(12)
    n = firms * years
    size = np.repeat(rng.lognormal(7, 1, firms), years)
    staff = np.maximum(1, size / 40 * rng.lognormal(0, 0.1, n)).astype(int)
    return pl.DataFrame(
        {
            "firm_id": np.repeat(rng.permutation(9000)[:firms] + 1000, years),
            "year": np.tile(np.arange(2015, 2015 + years), firms),
            "nace": np.repeat(rng.choice([10, 25, 28, 41, 46, 47, 62, 70], firms), years),
            "listed": np.repeat(rng.integers(0, 2, firms), years),
            "staff": staff,
            "turnover": np.round(size * rng.lognormal(0, 0.2, n), 1),
            "wages": np.round(staff * rng.lognormal(3.3, 0.2, n), 1),
            "exports": np.round(size * rng.random(n) * (rng.random(n) < 0.5), 1),
            "profit": np.round(rng.normal(0, 1, n) * size / 10, 1),
        }
    )


def patients(n=500):
    """Patients with names, dates, e-mail addresses, bodies and costs."""
    rng = np.random.default_rng(13)
    names = [f"{rng.choice(FIRST)} {rng.choice(START)}{rng.choice(LAST)}{rng.choice(END)}" for _ in range(n)]
    born = [dt.date(1930, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 30_000, n)]
    came = [dt.date(2023, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 365, n)]
    return pl.DataFrame(
        {
            "patient": [f"P-{number:06}" for number in rng.permutation(10**6)[:n]],
            "name": names,
            "email": [f"{name.split()[0].lower()}{i}@example.org" for i, name in enumerate(names)],
            "born": [day.isoformat() for day in born],
            "admitted": [day.strftime("%d.%m.%Y") for day in came],
            "zip": [f"{code:05}" for code in rng.integers(1000, 1090, n)],
            "ward": rng.choice(["surgery", "medicine", "eye", "ear"], n),
            "icd": [f"{rng.choice(list('ABCDE'))}{number:02}" for number in rng.integers(0, 30, n)],
            "weight": np.round(rng.normal(75, 12, n), 1),
            "height": np.round(rng.normal(171, 9, n), 0),
            "days": rng.integers(1, 40, n),
            "cost": np.round(rng.lognormal(8, 1, n), 2),
            "comment": [f"{a} {b} {c}" for a, b, c in rng.integers(0, 10**6, (n, 3))],
        }
    )


LABELS = {
    "sex": {1: "male", 2: "female"},
    "region": {code: f"region {code}" for code in range(1, 31)},
    "health": {1: "good", 2: "fair", 3: "bad"},
    "income": {-1: "refused"},
}


def labelled(n=800):
    """A survey as Stata has it: codes with value labels, a weight and amounts."""
    rng = np.random.default_rng(14)
    return pl.DataFrame(
        {
            "caseid": rng.permutation(n) + 1,
            "sex": rng.integers(1, 3, n),
            "region": rng.integers(1, 31, n),
            "health": rng.integers(1, 4, n),
            "yob": rng.integers(1935, 2005, n),
            "children": rng.integers(0, 6, n),
            "hours": rng.integers(0, 61, n),
            "income": np.where(rng.random(n) < 0.05, -1, rng.integers(500, 9000, n)),
            "savings": np.round(rng.lognormal(8, 1.5, n), 2),
            "pweight": np.round(rng.uniform(100, 2000, n), 4),
        }
    )


# Roles that a statistician would give; columns that are not listed are variables.
EXPECTED = {
    "sample": {"firm": "key", "sector": "untouched", "weight": "weights"},
    "households": {
        "hhid": "unit",
        "wgt": "weights",
        **dict.fromkeys(
            ("pid", "region", "urban", "sex", "age", "marital", "education", "isco", "roof"), "untouched"
        ),
        "rooms": "untouched",
    },
    "panel": {"firm_id": "unit", **dict.fromkeys(("year", "nace", "listed"), "untouched")},
    "patients": {
        "patient": "key",
        **dict.fromkeys(("name", "email", "comment"), "drop"),
        **dict.fromkeys(("born", "admitted", "zip", "ward", "icd"), "untouched"),
    },
    "labelled": {
        "caseid": "key",
        "pweight": "weights",
        **dict.fromkeys(("sex", "region", "health", "yob", "children"), "untouched"),
    },
}
