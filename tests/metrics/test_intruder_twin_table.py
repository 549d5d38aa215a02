"""Files that looked safe and were not, rebuilt on data of the same kind, with the figures that are true.

Beside each stands what nearest neighbours by masked cells find without facts, the figure that was printed
once. What is printed now is no less than what the slow intruder finds.
"""

import numpy as np
import polars as pl
import pytest

from attacked_files import amounts, codes, published, replaced
from calls import called
from intruder import linkage
from intruder_disclosure import floor, uniques
from intruder_distances import Distance, links, naive_linkage, raw_credits, squared_distances, standardised
from intruder_release import describe
from intruder_together import linkage_together
from intruder_units import linkage_units

SIZE = 240
FOUR = ("v0", "v1", "v2", "v3")


def printed(original, masked, method, parameters, columns, *, metric="linkage", **roles):
    """From both tables and how they were made, the figure that a user sees."""
    frames = pl.DataFrame(original), pl.DataFrame(masked)
    options = {"method": method, "parameters": parameters, "columns": list(columns), "metrics": metric}
    given = {name: value if isinstance(value, str) else list(value) for name, value in roles.items()}
    if by := given.get("by"):
        given["untouched"] = [name for name in given["untouched"] if name not in by]
    return called("evaluate", *frames, **options, **given)[metric]


def attacked(original, method, parameters, columns, positions=None, **roles):
    """From an original and a masking, the attacks on it and what nearest neighbours find without facts."""
    masked = published(original, method, columns, by=list(roles.get("by", ())) or None, **parameters)
    release = describe(original, method, parameters, columns, **roles)
    found = linkage(original, masked, release, positions)
    assert found["facts"].failed == []
    if positions is not None or not sorted_by_first(original):
        shown = printed(original, masked, method, parameters, columns, **roles)
        assert shown >= 0.95 * found["linkage"]
    return found, naive_linkage(original, masked, columns)


def sorted_by_first(original):
    """Whether rows follow the first variable, so that they tell more than the attack without them knows."""
    return original["v0"] == sorted(original["v0"], key=lambda cell: (cell is None, cell))


def test_household_survey_is_given_away_by_untouched_demographics():
    demographics = codes(SIZE, 8, seed=2)
    original = amounts(SIZE, 4, seed=1) | demographics
    found, naive = attacked(original, "mdav", {"k": 10}, FOUR, untouched=tuple(demographics))
    assert naive <= 0.1  # printed: 0.094, limit met
    assert found["linkage"] >= 0.5  # true: 0.83
    release = describe(original, "mdav", {}, FOUR, untouched=tuple(demographics))
    assert 0.2 <= uniques(original, release) < floor(original, release) <= found["linkage"]


def test_household_survey_is_safe_where_demographics_are_unknown():
    demographics = codes(SIZE, 8, seed=2)
    original = amounts(SIZE, 4, seed=1) | demographics
    roles = {"untouched": tuple(demographics), "unknown": tuple(demographics)}
    found, _ = attacked(original, "mdav", {"k": 10}, FOUR, **roles)
    assert found["linkage"] == pytest.approx(0.1)


def test_rows_of_a_panel_lead_to_the_right_firm():
    rng = np.random.default_rng(3)
    logs = np.repeat(1.5 * rng.normal(size=(20, 4)), 12, axis=0) + 0.25 * rng.normal(size=(SIZE, 4))
    original = {name: np.exp(logs[:, j]).tolist() for j, name in enumerate(FOUR)}
    original["firm"] = np.repeat(np.arange(20), 12).tolist()
    masked = published(original, "mdav", FOUR, k=10)
    release = describe(original, "mdav", {"k": 10}, FOUR, unit="firm")
    assert linkage(original, masked, release)["linkage"] <= 0.1 + 1e-12  # printed: 0.093, met
    assert naive_linkage(original, masked, FOUR) <= 0.1
    units = linkage_units(original, masked, release)
    assert units["row_to_unit"] >= 0.5  # true: 0.58 of the rows lead to the right firm
    assert units["linkage_units"] == max(units["row_to_unit"], units["unit_to_unit"])
    shown = printed(original, masked, "mdav", {"k": 10}, FOUR, metric="linkage_units", unit="firm")
    assert shown >= 0.95 * units["linkage_units"]


def test_unique_survey_weights_give_everyone_away():
    original = amounts(SIZE, 4, seed=4)
    original["weight"] = np.random.default_rng(5).uniform(100, 900, SIZE).tolist()
    found, naive = attacked(original, "mdav", {"k": 10}, FOUR, untouched=("weight",))
    assert naive <= 0.1  # printed: 0.094, met
    assert found["linkage"] == 1.0  # true: 1.00
    roles = {"untouched": ("weight",), "unknown": ("weight",)}
    assert attacked(original, "mdav", {"k": 10}, FOUR, **roles)[0]["linkage"] == pytest.approx(0.1)


@pytest.mark.long
def test_places_of_missing_cells_give_records_away():
    table = replaced(amounts(SIZE, 8, seed=6), 0.1, None, seed=7)
    found, naive = attacked(table, "noise", {"percent": 150}, tuple(table))
    assert naive <= 0.08  # printed: 0.058
    assert found["linkage"] >= 0.2  # true: 0.212


@pytest.mark.long
def test_kept_zeros_give_records_away():
    table = replaced(amounts(SIZE, 8, seed=8), 0.4, 0.0, seed=9)
    found, naive = attacked(table, "zero_preserving_noise", {"percent": 150}, tuple(table))
    assert naive <= 0.2  # printed: 0.051
    assert found["linkage"] >= 0.44  # true: 0.444


def test_row_order_gives_every_record_of_a_sorted_file_away():
    table = amounts(SIZE, 4, seed=10)
    order = np.argsort(table["v0"])
    original = {name: np.array(column)[order].tolist() for name, column in table.items()}
    found, naive = attacked(original, "rank_swap", {"p": 0.3}, FOUR, positions=list(range(SIZE)))
    assert naive <= 0.05  # printed: 0.008
    assert found["linkage"] == 1.0  # true: every value recovered
    assert found["without_order"] <= 0.1
    shuffled, _ = attacked(original, "rank_swap", {"p": 0.3}, FOUR)
    assert shuffled["linkage"] == shuffled["without_order"] == found["without_order"]


def test_row_order_within_blocks_of_equality_facts_gives_records_away():
    table = amounts(SIZE, 2, seed=11) | {"region": [row % 6 for row in range(SIZE)]}
    order = np.lexsort([-np.array(table["v0"]), table["region"]])  # by region, then falling
    original = {name: np.array(column)[order].tolist() for name, column in table.items()}
    roles = {"untouched": ("region",), "by": ("region",)}
    found, _ = attacked(original, "noise", {"percent": 200}, ("v0", "v1"), list(range(SIZE)), **roles)
    assert found["strongest"][0] == "order of v0 in blocks"
    assert found["linkage"] == 1.0
    assert found["without_order"] <= 0.15


def test_mdav_credit_is_shared_among_equal_published_records():
    original = amounts(SIZE, 4, seed=12)
    masked = published(original, "mdav", FOUR, k=10)
    y, x = standardised(original, masked, FOUR)
    everyone = np.ones((SIZE, SIZE), bool)
    alone = raw_credits(links(everyone, Distance("naive", y, x, squared_distances(y, x))))
    assert (alone == 1.0).sum() >= 0.05 * SIZE  # printed: 381 records "with risk 1.0"
    found = linkage(original, masked, describe(original, "mdav", {"k": 10}, FOUR))
    for credit in found["credits"].values():
        assert credit.max() <= 0.1 + 1e-12  # true: 0.1 each
    assert found["risk"] == pytest.approx(np.full(SIZE, 0.1))
    assert printed(original, masked, "mdav", {"k": 10}, FOUR) == pytest.approx(0.1)


def test_pca_microaggregation_can_be_run_again():
    found, naive = attacked(amounts(SIZE, 4, seed=13), "pca_microaggregation", {"k": 5}, FOUR)
    assert naive <= 0.1  # printed: 0.051
    assert found["linkage"] == pytest.approx(0.2)  # true: 0.200


@pytest.mark.long
def test_noise_averages_out_over_ten_releases():
    original = amounts(160, 4, seed=14)
    release = describe(original, "noise", {"percent": 50}, FOUR)
    tables = [published(original, "noise", FOUR, seed=draw, percent=50) for draw in range(10)]
    found = linkage_together(original, [(table, release) for table in tables])
    assert naive_linkage(original, tables[0], FOUR) <= max(found["single"]) <= 0.35  # printed: 0.19
    assert found["linkage"] >= 0.5  # true: 0.50
    known = {"method": "noise", "parameters": {"percent": 50}, "together": True, "metrics": "linkage"}
    frames = [pl.DataFrame(table) for table in tables]
    assert called("evaluate", pl.DataFrame(original), frames, **known)["linkage"] >= 0.95 * found["linkage"]


@pytest.mark.long
def test_window_of_rank_swapping_narrows_the_candidates():
    original = amounts(SIZE, 4, seed=15)
    masked = published(original, "rank_swap", FOUR, p=0.15)
    release = describe(original, "rank_swap", {"p": 0.15}, FOUR)
    dropped = describe(original, "rank_swap", {}, FOUR)  # the window was dropped on the way
    found, without = linkage(original, masked, release), linkage(original, masked, dropped)
    assert found["facts"].failed == []
    assert naive_linkage(original, masked, FOUR) <= without["linkage"] <= 0.4  # printed: 0.247
    assert found["linkage"] >= without["linkage"] + 0.05  # true: 0.363
    assert printed(original, masked, "rank_swap", {"p": 0.15}, FOUR) >= 0.95 * found["linkage"]
