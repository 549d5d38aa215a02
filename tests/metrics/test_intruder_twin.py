"""The slow intruder on tables worked by hand: facts, distances, credit, matching."""

from datetime import date

import numpy as np
import pytest

from cases import each
from intruder import linkage
from intruder_distances import attack_both, distance, euclid, order_distance, ranks, squared_to_all
from intruder_facts import column_case, converted, facts
from intruder_matching import all_optimal_matchings, class_credits, matching_credits, optimal_matching
from intruder_release import Release, describe, known_columns, share_window

V = Release(masked=("v",))


def candidates(original, published, release=V, **columns):
    """From the cells of v and other columns (pairs of lists), F as a list of sets of originals."""
    before = {"v": original} | {name: cells[0] for name, cells in columns.items()}
    after = {"v": published} | {name: cells[1] for name, cells in columns.items()}
    return [set(np.flatnonzero(row).tolist()) for row in facts(before, after, release).certain]


def case(original, published):
    """From the cells of an untouched column, its case and the candidates of each record (None in case e)."""
    letter, relation = column_case([converted(x) for x in original], [converted(y) for y in published])
    return letter, None if relation is None else [set(np.flatnonzero(row).tolist()) for row in relation]


# --- untouched columns -------------------------------------------------------------------------------------


def test_one_conversion_makes_spellings_equal():
    assert converted(1) == converted(1.0) == converted("1") != converted("one")
    assert converted(date(2020, 1, 2)) == converted("2020-01-02") != converted("2020-01-03")
    assert converted(None) is converted(float("nan")) is None
    assert case([1, 2.0, "x", None], ["1", "2", "x", None]) == ("a", [{0}, {1}, {2}, {3}])


def test_recoding_leaves_the_originals_that_map_to_the_published_value():
    # 21 and 24 become 20, 25 becomes 25: a function; 20 is published for records 0, 1 and 3
    assert case([21, 24, 25, 21], [20, 20, 25, 20]) == ("b", [{0, 1, 3}, {0, 1, 3}, {2}, {0, 1, 3}])


def test_fresh_numbers_tell_nothing_but_a_change_of_scale_does():
    assert case([10, 20, 30, 40], [3, 1, 4, 2]) == ("e", None)  # one-to-one, no order, no pair agrees
    assert case([10, 20, 30, 40], [1, 2, 3, 4]) == ("b", [{0}, {1}, {2}, {3}])  # divided by 10
    assert case([10, 20, 30, 40], [4, 3, 2, 1]) == ("b", [{0}, {1}, {2}, {3}])  # turned round


def test_suppressed_cells_fit_every_original():
    # original 1 is published as 1 and as missing: no function; all present cells are equal
    assert case([1, 1, 2], [1, None, 2]) == ("c", [{0, 1}, {0, 1, 2}, {2}])


def test_columns_that_agree_in_half_of_the_pairs_are_doubtful():
    # 1 becomes 1 and 2: no function; the true pairs 0 and 2 agree, 2 of 4 is half
    assert case([1, 1, 2, 2], [1, 2, 2, 1]) == ("d", [{0, 1}, {2, 3}, {2, 3}, {0, 1}])
    # 1 of 4 agrees: no fact
    assert case([1, 1, 2, 2], [1, 2, 1, 1]) == ("e", None)


def test_doubtful_column_counts_where_it_raises_linkage():
    # v is constant: no distance, credit 1/4 without d. With d as a fact: published 1, 1, 2, 9 leave {0, 1},
    # {0, 1}, {2, 3} and none: 1/2, 1/2, 1/2, 0.
    original = {"v": [0.0] * 4, "d": [1, 1, 2, 2]}
    published = {"v": [0.0] * 4, "d": [1, 1, 2, 9]}
    found = linkage(original, published, Release(masked=("v",), untouched=("d",)))
    assert found["facts"].cases == {"d": "d"}
    assert found["means"]["plain", "masked_to_original", "certain"] == 0.25
    assert found["credits"]["plain", "masked_to_original", "doubtful"].tolist() == [0.5, 0.5, 0.5, 0.0]
    # from the originals: records 0 and 1 fit published 0 and 1; records 2 and 3 fit published 2 alone, look
    # the same and share its credit 1. Mean (1/2 + 1/2 + 1/2 + 1/2) / 4 = 1/2, the largest.
    assert found["credits"]["plain", "original_to_masked", "doubtful"].tolist() == [0.5] * 4
    assert found["linkage"] == 0.5


def test_knowledge_is_every_published_column_unless_stated():
    roles = {"masked": ("v", "w"), "untouched": ("sex", "weight", "firm"), "unit": "firm", "key": "id"}
    assert known_columns(Release(**roles)) == {"v", "w", "sex", "weight"}
    assert known_columns(Release(**roles, unknown=("weight",), confidential=("w",))) == {"v", "sex"}
    assert known_columns(Release(**roles, known=("sex", "v", "id"))) == {"sex", "v"}


# --- places of missing cells -------------------------------------------------------------------------------


def test_same_places_leave_records_with_the_same_places():
    assert candidates([1.0, None, 3.0], [2.0, None, 2.0]) == [{0, 2}, {1}, {0, 2}]


def test_suppression_excludes_missing_originals_from_observed_cells():
    # record 2 was suppressed: a missing cell fits all, an observed one the observed originals 0 and 2
    assert candidates([1.0, None, 3.0], [2.0, None, None]) == [{0, 2}, {0, 1, 2}, {0, 1, 2}]


def test_imputation_excludes_observed_originals_from_missing_cells():
    # record 1 was imputed: missing published cells fit missing originals (1, 2), observed ones fit all
    assert candidates([1.0, None, None], [2.0, 5.0, None]) == [{0, 1, 2}, {0, 1, 2}, {1, 2}]


def test_no_relation_between_places_is_no_fact():
    assert candidates([1.0, None, 3.0], [2.0, 5.0, None]) == [{0, 1, 2}] * 3


def test_codes_of_missing_cells_differ_like_values():
    assert candidates([".a", ".b", 3.0], [".a", ".b", 2.0]) == [{0}, {1}, {2}]
    assert candidates([".a", ".b", 3.0], [None, None, 2.0]) == [{0, 1}, {0, 1}, {2}]


# --- what the method says of itself ------------------------------------------------------------------------


def test_kept_zeros_and_their_converse():
    zeros = Release(masked=("v",), zeros=("v",))
    # every zero stays and no new one appears: zeros among zeros, others among others
    assert candidates([0.0, 5.0, 7.0], [0.0, 6.0, 6.5], zeros) == [{0}, {1, 2}, {1, 2}]
    # rounding made record 1 a zero: published 0 fits all, another cell fits originals other than 0
    assert candidates([0.0, 5.0, 7.0], [0.0, 0.0, 6.5], zeros) == [{0, 1, 2}, {0, 1, 2}, {1, 2}]
    # not stated by the method: no fact, although it holds
    assert candidates([0.0, 5.0, 7.0], [0.0, 6.0, 6.5]) == [{0, 1, 2}] * 3


def test_window_of_ranks():
    window = Release(masked=("v",), window={"v": 1})
    # published ranks 1, 0, 2, 3 among original ranks 0, 1, 2, 3, one step either way
    assert candidates([1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 3.0, 4.0], window) == [
        {0, 1, 2},
        {0, 1},
        {1, 2, 3},
        {2, 3},
    ]


def test_window_compares_blocks_of_ties():
    ordered = Release(masked=("v",), ordered=("v",))
    # published 1, 1, 9: ranks 0-1 and 2; originals 1, 3, 3: ranks 0 and 1-2: 3 overlaps with both
    assert candidates([1.0, 3.0, 3.0], [1.0, 1.0, 9.0], ordered) == [{0, 1, 2}, {0, 1, 2}, {1, 2}]


def test_window_by_stratum_needs_the_strata():
    release = {"masked": ("v",), "by": ("s",), "ordered": ("v",)}
    strata = (["x", "x", "y", "y"], ["x", "x", "y", "y"])
    known = candidates(
        [1.0, 2.0, 1.0, 2.0], [3.0, 4.0, 3.0, 9.0], Release(**release, untouched=("s",)), s=strata
    )
    assert known == [{0}, {1}, {2}, {3}]
    assert (
        candidates([1.0, 2.0, 1.0, 2.0], [3.0, 4.0, 3.0, 9.0], Release(**release), s=strata)
        == [{0, 1, 2, 3}] * 4
    )
    # floor(0.5 * 3 observed cells) = 1 in stratum x, floor(0.5 * 4) = 2 in stratum y
    table = {"v": [1.0, 2.0, 3.0, None, 1.0, 2.0, 3.0, 4.0], "s": ["x"] * 4 + ["y"] * 4}
    assert share_window(table, Release(**release), "v", 0.5) == [1] * 4 + [2] * 4


def test_missing_cells_fit_every_window_and_ruled_columns_have_none():
    release = Release(masked=("v", "w"), ordered=("v", "w"), ruled=("w",))
    before, after = (
        {"v": [1.0, 2.0, None], "w": [1.0, 2.0, 3.0]},
        {"v": [5.0, 6.0, 7.0], "w": [9.0, 8.0, 7.0]},
    )
    # the original's missing cell (imputed) fits all published ranks; ranks 0, 1 fit themselves
    found = facts(before, after, release)
    assert [set(np.flatnonzero(row).tolist()) for row in found.certain] == [{0, 2}, {1, 2}, {2}]
    assert found.failed == []


def test_rounding_to_a_base_is_a_box_of_half_a_base():
    release = Release(masked=("v",), base={"v": 10})
    # 3 to 0, 5 to 0 (half a base away), 8 to 10: published 0 allows up to 5, published 10 from 5
    assert candidates([3.0, 5.0, 8.0], [0.0, 0.0, 10.0], release) == [{0, 1}, {0, 1}, {1, 2}]


def test_relation_that_a_true_pair_breaks_is_no_fact_and_is_named():
    release = Release(masked=("v",), zeros=("v",), window={"v": 0})
    found = facts({"v": [0.0, 5.0, 7.0]}, {"v": [1.0, 9.0, 8.0]}, release)
    assert found.failed == ["zeros of v kept", "window of v"]
    assert found.certain.all()


def test_deterministic_method_is_run_again():
    again = Release(masked=("v", "w"), draws=False)
    before = {"v": [1.0, 2.0, 8.0, 9.0], "w": [1.0, 1.0, 1.0, 5.0]}
    after = {"v": [1.5, 1.5, 8.5, 8.5], "w": [1.0, 1.0, 3.0, 3.0]}
    pairs = [[True, True, False, False]] * 2 + [[False, False, True, True]] * 2
    assert facts(before, after, again).certain.tolist() == pairs
    # the method read w, which the intruder does not know: nothing; one by one: v alone tells as much
    unknown = {"masked": ("v", "w"), "draws": False, "unknown": ("w",)}
    assert facts(before, after, Release(**unknown)).certain.all()
    assert facts(before, after, Release(**unknown, one_by_one=True)).certain.tolist() == pairs


# --- distances and credit ----------------------------------------------------------------------------------


def test_distance_over_common_cells():
    # one of two cells in common: 2 * (3 - 1)^2 = 8; both: 4 + 9 = 13; none: infinite
    others = np.array([[1.0, np.nan], [1.0, 1.0], [np.nan, np.nan]])
    assert squared_to_all(np.array([3.0, 4.0]), others).tolist() == [8.0, 13.0, np.inf]


def test_standardised_and_rank_distances():
    table, masked = {"v": [0.0, 2.0]}, {"v": [1.0, 3.0]}
    # the variance of 0 and 2 is 2: squared differences 1, 1, 9, 1
    assert euclid(table, masked, V).squared == pytest.approx(np.array([[0.5, 0.5], [4.5, 0.5]]))
    # ranks 0, 1 of 2 cells: 1/4 and 3/4 in both files
    assert ranks(table, masked, V).squared.tolist() == [[0.0, 0.25], [0.25, 0.0]]


def test_credit_is_shared_on_both_sides():
    # published 1, 1, 10: the nearest original of 1 is 1, so records 0 and 1 earn 0 and 1, shared 1/2 and 1/2.
    # From the originals: 0 and 1 each find two published records 1: 1/2; 10 finds 10.
    found = linkage({"v": [0.0, 1.0, 10.0]}, {"v": [1.0, 1.0, 10.0]}, V)
    for direction in ("masked_to_original", "original_to_masked"):
        assert found["credits"]["euclid", direction, "certain"].tolist() == [0.5, 0.5, 1.0]
    assert found["linkage"] == pytest.approx(2 / 3)


def test_queries_with_other_candidates_do_not_share():
    # as above, but the sex of records 0 and 1 differs: each is found by its facts
    before = {"v": [0.0, 1.0, 10.0], "sex": ["f", "m", "m"]}
    found = linkage(before, before | {"v": [1.0, 1.0, 10.0]}, Release(masked=("v",), untouched=("sex",)))
    assert found["credits"]["euclid", "masked_to_original", "certain"].tolist() == [1.0, 1.0, 1.0]
    # sex alone: F is {0}, {1, 2}, {1, 2}: 1, 1/2, 1/2
    assert found["credits"]["plain", "masked_to_original", "certain"].tolist() == [1.0, 0.5, 0.5]


def test_record_without_cells_counts_by_its_facts():
    # record 0 has nothing left but its sex, which is its own: credit 1 in every attack
    before = {"v": [1.0, 2.0, 3.0], "sex": ["f", "m", "m"]}
    after = {"v": [None, 2.1, 2.9], "sex": ["f", "m", "m"]}
    found = linkage(before, after, Release(masked=("v",), untouched=("sex",)))
    assert found["linkage"] == 1.0
    assert all(credit[0] == 1.0 for credit in found["credits"].values())


def test_distances_within_a_billionth_are_equal():
    # from 0, originals at 1 and -1 - 4e-10 have squared distances 8e-10 apart: a tie; 2e-9 apart: none.
    # From 9 the original at 1, record 0, is nearest: record 1 is never found.
    for gap, credit in ((4e-10, 0.5), (1e-9, 1.0)):
        made = distance("line", np.array([[0.0], [9.0]]), np.array([[1.0], [-1.0 - gap]]))
        assert attack_both(np.ones((2, 2), bool), made)["masked_to_original"].tolist() == [credit, 0.0]


def test_row_order_estimates_ranks():
    values = [converted(x) for x in (5.0, 3.0, 1.0, None)]
    made = order_distance("order", values, [0, 1, 2, 3], [()] * 4)
    # falling along the rows: row 0 has the highest rank, 2; the record without a cell has no estimate
    assert made.published[:, 0].tolist() == pytest.approx([2.0, 1.0, 0.0, np.nan], nan_ok=True)
    assert made.original[:, 0].tolist() == pytest.approx([2.0, 1.0, 0.0, np.nan], nan_ok=True)
    assert order_distance("order", [(0, 2.0), (0, 1.0), (0, 3.0)], [0, 1, 2], [()] * 3) is None  # rho = 1/2


def test_row_order_of_a_key_gives_records_away():
    # the published file has one value and no id, but its rows still follow the id, in steps of other size
    original, masked = {"v": [3.0, 1.0, 2.0], "id": ["c", "d", "k"]}, {"v": [2.0] * 3}
    found = linkage(original, masked, Release(masked=("v",), key="id"), positions=[0, 5, 9])
    assert found["credits"]["order of id", "masked_to_original", "certain"].tolist() == [1.0, 1.0, 1.0]
    assert (found["linkage"], found["without_order"]) == (1.0, pytest.approx(1 / 3))


# --- one-to-one matching -----------------------------------------------------------------------------------


def test_matching_finds_what_nearest_neighbours_miss():
    # both published records are nearest to the original 1: credits 0 and 1. Matched: 0.81 + 0.04 = 0.85,
    # crosswise 0.01 + 1.44 = 1.45; the variance of 0 and 1 is 1/2: costs 1.7 and 2.9.
    table, masked = {"v": [0.0, 1.0]}, {"v": [0.9, 1.2]}
    squared, everyone = euclid(table, masked, V).squared, np.ones((2, 2), bool)
    chosen, cost = optimal_matching(everyone, squared)
    assert (chosen, cost) == ([(0, 0), (1, 1)], pytest.approx(1.7))
    assert matching_credits(everyone, squared).tolist() == [1.0, 1.0]
    found = linkage(table, masked, V, one_to_one=True)
    assert found["means"]["euclid", "masked_to_original", "certain"] == 0.5
    assert found["means"]["matching", "one_to_one", "certain"] == 1.0


def test_matching_stays_inside_the_facts():
    squared = np.array([[0.0, 1.0], [4.0, 0.0]])
    forbidden = np.array(
        [[False, True], [True, True]]
    )  # (0, 0) is outside: only the crosswise matching is left
    assert all_optimal_matchings(forbidden, squared) == {((0, 1), (1, 0))}
    assert optimal_matching(forbidden, squared) == ([(0, 1), (1, 0)], 5.0)
    narrow = np.array(
        [[True, False], [True, False]]
    )  # both want original 0: the cheaper one, (0, 0), gets it
    assert all_optimal_matchings(narrow, squared) == {((0, 0),)}
    assert optimal_matching(narrow, squared) == ([(0, 0)], 0.0)


@each("seed", range(8))
def test_matching_equals_trying_every_one(seed):
    rng = np.random.default_rng(seed)
    y, x = rng.integers(0, 4, (6, 2)) / 1.0, rng.normal(size=(6, 2))
    y[1] = y[0]  # equal queries
    x[3] = x[2]  # equal targets
    inside = rng.random((6, 6)) < 0.7  # often leaves no complete matching
    inside[:, 3] = inside[:, 2]  # equal records have equal facts
    inside[1] = inside[0]
    made = distance("line", y, x)
    best = all_optimal_matchings(inside, made.squared)
    chosen, cost = optimal_matching(inside, made.squared)
    assert len(chosen) == len(next(iter(best)))
    assert cost == pytest.approx(min(sum(made.squared[pair] for pair in one) for one in best))
    queries = [(*row, *mask) for row, mask in zip(y.tolist(), inside.tolist(), strict=True)]
    targets = [(*row, *mask) for row, mask in zip(x.tolist(), inside.T.tolist(), strict=True)]
    share = class_credits(inside, made.squared, queries, targets)
    assert share == pytest.approx(matching_credits(inside, made.squared))


# --- re-paired rows ----------------------------------------------------------------------------------------


def test_re_paired_rows_are_guessed_inside_the_facts():
    before = {"v": [1.0, 2.0, 3.0, 4.0], "sex": ["f", "f", "f", "m"]}
    after = before | {
        "v": [1.0, 2.0, 3.0, 4.0]
    }  # every cell came back by chance; the pairing is lost all the same
    found = linkage(before, after, describe(before, "shuffle", {}, ["v"], untouched=("sex",)))
    # three share "f": 1/3 each, one is alone: (1/3 + 1/3 + 1/3 + 1) / 4 = 1/2
    assert found["linkage"] == pytest.approx(0.5)
    assert {name for name, _, _ in found["credits"]} == {"plain"}
    assert (
        linkage(before, after, describe(before, "shuffle", {}, ["v"]))["linkage"] is None
    )  # nothing ties rows
