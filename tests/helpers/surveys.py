"""A survey made by formulas: strata, units of up to three records, unequal weights, skew, missing cells."""

import math

import numpy as np

N = 420
DESIGN = {"weights": "weight", "strata": "stratum", "unit": "house"}
FINITE = DESIGN | {"population": "houses"}


def survey():
    """Columns by name, lists or arrays; a table of any library can be made of them."""
    row = np.arange(N)
    even = [
        np.modf((row + 1) * math.sqrt(prime))[0] for prime in (2, 3, 5, 7, 11)
    ]  # spread evenly over 0 to 1
    stratum = row * 4 // N
    wealth = np.exp(0.9 * np.log(even[0] / (1 - even[0])) / 1.7)
    income = np.round(20 + 10 * wealth * (1 + stratum / 2) + 5 * even[1], 2)
    spending = np.round(0.5 * income + 45 * even[2] - 4, 2)
    spending[row % 37 == 5] = math.nan
    chance = 1 / (1 + np.exp(1.2 - np.log(income) / 3 + (even[3] > 0.6)))
    return {
        "stratum": [f"s{one}" for one in stratum],
        "house": [f"h{one}" for one in row // 3],
        "houses": np.array([90, 120, 200, 400])[stratum],
        "region": [("north", "south", "west")[int(3 * one)] for one in even[3]],
        "weight": np.round(5 + 30 * even[2] ** 2 + 4 * stratum, 3),
        "income": income,
        "spending": spending,
        "members": (1 + np.floor(5 * even[4])).astype(int),
        "owner": (even[1] * 0.5 + even[4] * 0.5 < chance).astype(int),
    }
