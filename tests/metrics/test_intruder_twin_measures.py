"""The slow intruder beyond linkage, worked by hand, and what must hold of it for every method and file."""

import numpy as np
import pytest

from attacked_files import amounts, codes, published, replaced
from cases import each
from intruder import linkage
from intruder_disclosure import (
    attribute,
    constants,
    dominance,
    dominated,
    floor,
    group_bounds,
    group_labels,
    uniques,
)
from intruder_distances import attack_both, cell_distances, links, plain, raw_credits
from intruder_facts import facts
from intruder_release import Release, describe
from intruder_together import linkage_together, precisions, weighted_mean
from intruder_units import linkage_units, unit_candidates, unit_means, unit_sorted

NAN = np.nan
THREE = ("v0", "v1", "v2")
PAIRED = {
    "mdav": {"k": 3},
    "vmdav": {"k": 3},
    "pca_microaggregation": {"k": 3},
    "blocked_mdav": {"k": 3},
    "individual_ranking": {"k": 3},
    "optimal_univariate": {"k": 3},
    "noise": {"percent": 50},
    "correlated_noise": {"percent": 50},
    "kim_noise": {"percent": 50},
    "zero_preserving_noise": {"percent": 50},
    "multiplicative_noise": {"percent": 50},
    "moment_preserving_noise": {"delta": 0.3},
    "romm": {"percent": 50},
    "outlier_noise": {"percent": 50},
    "rank_swap": {"p": 0.2},
    "p_distribution_swap": {"p": 0.2},
    "round_to": {"base": 20.0},
    "top_bottom_code": {"top": 0.2},
    "resample": {},
}
RE_PAIRED = {"shuffle": {}, "sequential_shuffle": {}, "ipso": {}, "copula": {}}


# --- uniques, attribute, dominance -------------------------------------------------------------------------


def test_uniques_and_the_floor():
    table = {"v": [1.0] * 4, "sex": ["m", "m", "f", "f"], "roof": ["1", 1, 1, 2]}
    release = Release(masked=("v",), untouched=("sex", "roof"))
    # (m, 1) twice, since "1" is 1; (f, 1) and (f, 2) once: 2 of 4 alone; (1/2 + 1/2 + 1 + 1) / 4 = 3/4
    assert uniques(table, release) == 0.5
    assert floor(table, release) == 0.75
    assert linkage(table, table, release)["linkage"] == 0.75
    # sex alone: two classes of two; nothing known: one class of four
    assert floor(table, Release(masked=("v",), untouched=("sex", "roof"), unknown=("roof",))) == 0.5
    assert floor(table, Release(masked=("v",))) == 0.25


def test_attribute_disclosure_beside_its_baselines():
    original = {"v": [0.0, 10.0, 20.0], "c": [100.0, 200.0, 0.0]}
    masked = {"v": [1.0, 11.0, 19.0], "c": [105.0, 150.0, 0.0]}
    found = attribute(original, masked, Release(masked=("v", "c"), confidential=("c",)), "c")
    # linked one to one: 105 is within 10 of 100, 150 not within 20 of 200, 0 is 0: 2/3.
    # Random pairs: only (105, 100) and (0, 0) of nine. The median, 105, is right for 100 alone: 1/3.
    assert found == pytest.approx(
        {"attribute": 2 / 3, "random": 2 / 9, "constant": 1 / 3, "excess": 1 / 3, "groups": 2 / 9}
    )


def test_attribute_of_groups_alone():
    # v is constant; sex leaves {0, 1} and {2}. Text is right when equal: records 0 and 1 guess a and b, half
    # right each; record 2 has no value and is left out: 1/2. Random: a is 1 of 3 guesses, b is 2 of 3: 1/2.
    original = {"v": [1.0] * 3, "sex": ["f", "f", "m"], "c": ["a", "b", None]}
    masked = original | {"c": ["a", "b", "b"]}
    found = attribute(original, masked, Release(masked=("v",), untouched=("sex",), confidential=("c",)), "c")
    assert found["groups"] == found["attribute"] == found["random"] == 0.5
    assert found["constant"] == 0.5  # the mode, b, is right for one of two
    assert constants([3.0, 1.0, 3.0, 1.0, 8.0]) == [1.0, 3.0]  # two modes: the smaller; the median


def test_dominance_is_the_p_percent_rule():
    assert dominated([100.0, 5.0, 3.0])  # 3 < 10
    assert not dominated([100.0, -50.0, 20.0])  # 20 >= 10
    assert dominated([100.0, 50.0])  # the second knows the first exactly: 0 < 10
    assert not dominated([100.0, 50.0, 10.0])  # 10 is not below 10
    assert not dominated([0.0, 0.0, 0.0])  # nothing to learn: 0 is not below 0


def test_dominance_is_the_share_of_failing_group_cells():
    original = {"v": [100.0, 5.0, 3.0, 4.0, 4.0, 4.0], "w": [1.0, 1.0, 1.0, 9.0, None, None]}
    masked = {"v": [36.0] * 3 + [4.0] * 3, "w": [1.0] * 3 + [None] * 3}
    labels = group_labels(masked, ("v", "w"))
    # v: the first group fails, the second not (4 >= 0.4); w: the first not (1 >= 0.1), the second has no cell
    assert dominance(original, masked, ("v", "w"), labels) == pytest.approx(1 / 3)


# --- units -------------------------------------------------------------------------------------------------


def test_rows_lead_to_units():
    original = {"v": [1.0, 2.0, 10.0, 11.0], "firm": ["A", "A", "B", "B"]}
    masked = {"v": [2.1, 1.1, 10.2, 10.4], "firm": [7, 7, 3, 3]}
    release = Release(masked=("v",), untouched=("firm",), unit="firm")
    # nearest originals are rows 1, 0, 2, 2: one row of four right, but every one of the right firm
    assert linkage(original, masked, release)["means"]["euclid", "masked_to_original", "certain"] == 0.25
    # means 1.6 and 10.3 are nearest to 1.5 and 10.5
    assert linkage_units(original, masked, release) == {
        "row_to_unit": 1.0,
        "unit_to_unit": 1.0,
        "linkage_units": 1.0,
    }


def test_tied_rows_share_the_credit_of_a_unit():
    # every cell is published as 5: all rows tie. Two thirds of the candidates belong to A: rows of A earn
    # 2/3, the row of B 1/3: (2/3 + 2/3 + 1/3) / 3 = 5/9. The numbers of rows differ: each unit is found.
    original, masked = {"v": [1.0, 2.0, 9.0], "u": ["A", "A", "B"]}, {"v": [5.0] * 3, "u": [1, 1, 2]}
    found = linkage_units(original, masked, Release(masked=("v",), unit="u"))
    assert found["unit_to_unit"] == 1.0
    rows = linkage_units(original, masked, Release(masked=("v",), unit="u", re_paired=True))["row_to_unit"]
    assert rows == pytest.approx(5 / 9)
    alone = linkage_units(original, {"v": [5.0] * 3}, Release(masked=("v",), unit="u"))
    assert alone["unit_to_unit"] == 0.0  # the grouping is not published: only rows can be linked


def test_units_fit_when_their_rows_can_be_matched():
    # unit 0 is rows 0 and 1, unit 1 rows 2 and 3; rows 0 and 1 both fit row 2 alone of unit 1: no matching
    inside = np.eye(4, dtype=bool)
    inside[[0, 1], 2] = True
    assert unit_candidates(inside, [[0, 1], [2, 3]]).tolist() == [[True, False], [False, True]]
    inside[0, 3] = True
    assert unit_candidates(inside, [[0, 1], [2, 3]]).tolist() == [[True, True], [False, True]]
    # a single row fits either row of unit 0, but one row is not two
    assert unit_candidates(np.ones((3, 3), bool), [[0, 1], [2]]).tolist() == [[True, False], [False, True]]


def test_coordinates_of_units():
    rows = np.array([[3.0, 1.0], [1.0, NAN], [5.0, NAN]])
    assert np.array_equal(unit_means(rows, [[0, 1], [2]]), [[2.0, 1.0], [5.0, NAN]], equal_nan=True)
    # variables sorted one by one: (1, 3) and (1, missing); the smaller unit is filled up
    expected = [[1.0, 1.0, 3.0, NAN], [5.0, NAN, NAN, NAN]]
    assert np.array_equal(unit_sorted(rows, [[0, 1], [2]]), expected, equal_nan=True)


# --- several releases --------------------------------------------------------------------------------------


def test_mean_of_releases_weighs_them_by_precision():
    x, one, two = np.array([[0.0], [10.0]]), np.array([[1.0], [11.0]]), np.array([[2.0], [8.0]])
    assert precisions(x, [one, two]).tolist() == [[1.0], [0.25]]  # squared changes 1, 1 and 4, 4
    # (1 + 2/4) / (5/4) = 1.2 and (11 + 8/4) / (5/4) = 10.4
    assert weighted_mean([one, two], precisions(x, [one, two])).ravel().tolist() == pytest.approx([1.2, 10.4])
    gap = np.array([[NAN], [8.0]])  # the other release alone where a cell is missing
    assert weighted_mean([one, gap], [[1.0], [1.0]]).ravel().tolist() == [1.0, 9.5]
    assert precisions(x, [one, x]).tolist() == [[0.0], [1.0]]  # unchanged: it alone counts


def test_facts_of_releases_are_intersected():
    # sex leaves two of four, region two of four, both together one
    original = {"v": [0.0] * 4, "sex": ["f", "f", "m", "m"], "region": ["a", "b", "a", "b"]}
    releases = [(original, Release(masked=("v",), untouched=(name,))) for name in ("sex", "region")]
    found = linkage_together(original, releases)
    assert (found["single"], found["linkage"]) == ([0.5, 0.5], 1.0)


# --- what must hold for every method and kind of file ------------------------------------------------------


def kinds(method):
    """For a method, files of every kind: name, original table and options of the masking."""
    table = {name: [round(100 * x) for x in column] for name, column in amounts(40, 3, seed=5).items()}
    table = {name: [float(x) for x in column] for name, column in table.items()} | codes(40, 1, seed=6)
    amounts_only = {name: table[name] for name in THREE}
    strata = [row % 2 for row in range(40)]
    yield "complete", table, {}
    yield "rounded", table, {"decimals": 0}
    yield "zeros", table | replaced(amounts_only, 0.3, 0.0, seed=7), {"decimals": 0}
    yield "strata", table | {"d0": strata}, {"by": "d0"}
    if method != "romm":
        yield "missing", table | replaced(amounts_only, 0.15, None, seed=8), {}
        yield (
            "missing and strata",
            table | {"d0": strata} | replaced(amounts_only, 0.1, None, seed=9),
            {"by": "d0"},
        )
    total = [a + b for a, b in zip(table["v1"], table["v2"], strict=True)]
    yield "repaired", table | {"v0": total}, {"rules": ["v0 = v1 + v2", "v1 >= 0"], "decimals": 0}


@pytest.mark.filterwarnings("ignore:rows of .* stand for no original record")
@each("method", PAIRED | RE_PAIRED)
def test_true_record_is_always_a_candidate(method):
    parameters = (PAIRED | RE_PAIRED)[method]
    for kind, original, options in kinds(method):
        masked = published(original, method, THREE, **parameters, **options)
        by = (options["by"],) if "by" in options else ()
        ruled = THREE if "rules" in options else ()
        release = describe(original, method, parameters, THREE, untouched=("d0",), by=by, ruled=ruled)
        found = facts(original, masked, release)
        assert found.certain.diagonal().all(), kind
        assert found.cases == {"d0": "a"}
        assert found.failed == [], kind  # what the method states holds for every true pair
        assert not found.certain.all()


@each("method", ["mdav", "vmdav", "pca_microaggregation", "blocked_mdav"])
@each("k", [3, 5])
def test_groups_of_complete_records_bound_the_risk_of_each(method, k):
    for seed in range(3):
        original = amounts(50, 3, seed=seed)
        masked = published(original, method, THREE, k=k)
        found = linkage(original, masked, describe(original, method, {"k": k}, THREE), one_to_one=True)
        for name, credit in found["credits"].items():
            assert credit.max() <= 1 / k + 1e-12, name
    naive = raw_credits(
        links(np.ones((50, 50), bool), cell_distances(original, masked, Release(masked=THREE))[0])
    )
    assert naive.max() > 1 / k  # without sharing the bound fails


def test_members_of_the_group_that_share_the_facts_bound_the_risk_of_each():
    original = amounts(60, 3, seed=19) | codes(60, 1, seed=20)
    masked = published(original, "mdav", THREE, k=6)
    found = linkage(original, masked, describe(original, "mdav", {"k": 6}, THREE, untouched=("d0",)))
    bounds = group_bounds(found["facts"].certain, group_labels(masked, THREE))
    assert all((credit <= bounds + 1e-12).all() for credit in found["credits"].values())
    assert found["risk"] == pytest.approx(bounds)
    assert bounds.max() > 1 / 6 > bounds.min() - 1e-12  # the code splits groups: 1/k is no bound


def test_sharing_keeps_the_sum_of_credits():
    original = replaced(amounts(60, 3, seed=11), 0.2, None, seed=12) | codes(60, 2, seed=13)
    masked = published(original, "mdav", THREE, k=4)
    release = Release(masked=THREE, untouched=("d0", "d1"))
    inside = facts(original, masked, release).certain
    moved = 0.0
    for made in [plain(60), *cell_distances(original, masked, release)]:
        before, after = raw_credits(links(inside, made)), attack_both(inside, made)["masked_to_original"]
        assert after.sum() == pytest.approx(before.sum(), abs=1e-9)
        moved += abs(after - before).sum()
    assert moved > 1  # and credit did change hands


def test_rows_permuted_inside_the_facts_give_chance():
    original = amounts(60, 3, seed=14) | codes(60, 2, seed=15)
    masked = published(original, "noise", THREE, percent=10)
    release = Release(masked=THREE, untouched=("d0", "d1"))
    blocks = facts(original, masked, release).blocks
    rng = np.random.default_rng(16)
    draws = {}
    for _ in range(40):
        rows = permuted_within(blocks, rng)
        shuffled = masked | {name: [masked[name][row] for row in rows] for name in THREE}
        for name, mean in linkage(original, shuffled, release)["means"].items():
            draws.setdefault(name, []).append(mean)
    chance = floor(original, release)  # 1/class size, in the mean
    assert linkage(original, masked, release)["linkage"] > chance + 0.2
    for name, means in draws.items():
        error = np.std(means, ddof=1) / np.sqrt(len(means))
        assert abs(np.mean(means) - chance) <= 3 * error + 1e-12, name


def permuted_within(blocks, rng):
    """From block labels, a permutation of the rows that keeps every block in its places."""
    rows = np.arange(len(blocks))
    for block in dict.fromkeys(blocks):
        members = [i for i, label in enumerate(blocks) if label == block]
        rows[members] = rng.permutation(members)
    return rows


def test_releases_together_are_never_below_the_largest_alone():
    original = replaced(amounts(50, 3, seed=17), 0.1, None, seed=18)
    for method, parameters in (("noise", {"percent": 80}), ("rank_swap", {"p": 0.3})):
        release = describe(original, method, parameters, THREE)
        tables = [published(original, method, THREE, seed=draw, **parameters) for draw in range(3)]
        found = linkage_together(original, [(table, release) for table in tables])
        assert found["linkage"] >= max(found["single"])
        assert found["single"] == [linkage(original, table, release)["linkage"] for table in tables]
