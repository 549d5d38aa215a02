"""Bounds and chance levels of the attacks inside the facts: 1/k of groups, and permuted records."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdckit as sdc
from attacked_files import amounts, codes
from cases import few
from intruder import linkage
from intruder_cases import drawn_case
from intruder_distances import euclid
from intruder_matching import matching_costs, optimal_matching
from linkages import tied_files
from sdckit.masking.disclosure import Disclosure
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair, pair_by_row
from sdckit.risk.attacks import applicable_attacks, attack_result, score_linkage
from sdckit.risk.facts import facts_of
from secret_bytes import entropy

GROUPING = ("mdav", "vmdav", "pca_microaggregation", "blocked_mdav")


def shuffled_pair(data, method, parameters, **roles):
    """From a table, the pair of it and its masked values, for a release with shuffled rows."""
    original = Original.of(data, warn=False, **roles)
    values = sdc.METHODS[method].function(original.values, **parameters)
    return Pair(original, values, disclosure=Disclosure.of(method, parameters))


@pytest.mark.parametrize("method", GROUPING)
@given(files=tied_files(least=8, most=40), k=st.integers(2, 4))
@settings(max_examples=25)
def test_no_record_of_a_complete_file_is_found_with_more_than_one_in_k(method, files, k):
    pair = shuffled_pair(files[0], method, {"k": k})
    for attack in applicable_attacks(pair, "both"):
        assert attack.credits.expected.max() <= 1 / k + 1e-9, attack.name
    assert sdc.METRICS["linkage_outliers"].score(pair).value.overall <= 1 / k + 1e-9


def test_the_largest_risk_of_census_records_in_groups_of_30(census):
    pair = shuffled_pair(census, "mdav", {"k": 30})
    found = score_linkage(pair, per_record=True)
    assert found.value.overall == pytest.approx(1 / 30)
    assert found.records == pytest.approx(np.full(1080, 1 / 30))
    assert sdc.METRICS["linkage_outliers"].score(pair).value.overall == pytest.approx(1 / 30)


def test_known_columns_raise_the_risk_to_one_in_the_members_who_share_them():
    table = pl.DataFrame(amounts(120, 3, seed=3) | codes(120, 2, seed=4))
    pair = shuffled_pair(table, "mdav", {"k": 6}, columns=["v0", "v1", "v2"])
    sizes, _ = facts_of(pair).candidates("masked_to_original")
    for attack in applicable_attacks(pair, "both"):
        assert (attack.credits.expected <= 1 / sizes + 1e-9).all(), attack.name
    found = score_linkage(pair)
    assert found.value.overall >= np.mean(1 / sizes) > 1 / 6


# --- chance ---


def permuted_inside(pair, rng):
    """From a pair whose facts are equalities, the pair with published records permuted inside them."""
    blocks = facts_of(pair).ours.blocks
    rows = np.empty(len(blocks), int)
    rows[np.argsort(blocks, kind="stable")] = np.lexsort((rng.random(len(blocks)), blocks))
    other = Pair(pair.original, np.asfortranarray(pair.masked[rows]), disclosure=pair.disclosure)
    assert (facts_of(other).ours.blocks == blocks).all()
    return other


@pytest.mark.long
@pytest.mark.parametrize("name", ["dbrl", "dbrl_mahalanobis", "dbrl_rank", "matching", "guess"])
@pytest.mark.parametrize("direction", ["masked_to_original", "original_to_masked"])
def test_records_permuted_inside_the_facts_are_found_by_chance(name, direction):
    table = pl.DataFrame(amounts(200, 3, seed=1) | {"size": codes(200, 1, seed=2)["d0"]})
    original = Original.of(table, columns=["v0", "v1", "v2"], warn=False)
    rng = np.random.default_rng(5)
    masked = np.asfortranarray(original.values * np.exp(0.1 * rng.normal(size=original.values.shape)))
    pair = Pair(original, masked)
    real = attack_result(pair, name, {"direction": direction})
    level = real.facts.candidates(direction)[0]
    chance = float(np.mean(1 / level))
    assert chance > 3 / 200
    draws = []
    for _ in range(40):
        drawn = attack_result(permuted_inside(pair, rng), name, {"direction": direction})
        draws.append(drawn.credits.expected.mean())
    error = max(np.std(draws) / np.sqrt(len(draws)), 1e-12)
    assert abs(np.mean(draws) - chance) <= 3 * error
    stated = real.chances(pair.queries(np.ones(200, bool)))
    assert abs(stated.mean() - chance) <= 3 * max(np.std(stated) / np.sqrt(len(stated)), 1e-12)


def test_a_true_record_drawn_from_all_candidates_is_found_by_chance():
    """Where facts are intervals, records cannot be permuted; true ones are drawn from the candidates."""
    table = pl.DataFrame(amounts(150, 3, seed=6))
    masked = sdc.mask(table, "rank_swap", p=0.15, rng=1)
    pair = pair_by_row(Original.of(table, warn=False), masked)
    pair.by_position = False
    pair.disclose(Disclosure.of("rank_swap", {"p": 0.15}))
    pair.window = pair.disclosure.width("all", pair.original.values, pair.columns)
    ours, theirs = facts_of(pair).sides()
    inside = [((theirs.low[i] <= ours.high) & (ours.low <= theirs.high[i])).all(axis=1) for i in range(150)]
    rng = np.random.default_rng(2)
    for name in ("dbrl", "dbrl_rank"):
        result = attack_result(pair, name, {})
        draws = [
            result.attack.credits(
                np.array([rng.choice(np.flatnonzero(row)) for row in inside])
            ).expected.mean()
            for _ in range(60)
        ]
        level = result.chances(pair.queries(np.ones(150, bool))).mean()
        assert level == pytest.approx(np.mean([1 / row.sum() for row in inside]))
        assert abs(np.mean(draws) - level) <= 3 * np.std(draws) / np.sqrt(len(draws))


# --- one-to-one matching ---


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", few(range(0, 240, 8), 6))
def test_matching_has_the_links_of_the_slow_intruder(seed):
    case = drawn_case(seed)
    if not case.pair.disclosure.paired or not case.pair.known_variables:
        return
    noise = np.random.default_rng(seed).normal(size=case.pair.masked.shape)  # so that no two costs are equal
    masked = np.where(np.isnan(case.pair.masked), np.nan, case.pair.masked + 1e-3 * noise)
    pair = Pair(case.pair.original, np.asfortranarray(masked), table=case.pair.table)
    published = dict(case.published)
    for j, column in enumerate(pair.columns):
        cells = published[column]
        published[column] = [
            cell if np.isnan(value) else float(value) for cell, value in zip(cells, masked[:, j], strict=True)
        ]
    release = type(case.release)(
        masked=case.release.masked, untouched=case.release.untouched, unknown=case.release.unknown
    )
    slow = linkage(case.original, published, release, one_to_one=True)
    made = euclid(case.original, published, release)
    inside = slow["facts"].certain
    chosen, cost = optimal_matching(inside, np.sqrt(made.squared))
    result = attack_result(pair, "matching", {})
    links = [(i, j) for i, j in enumerate(result.attack.matched.links) if j >= 0]
    costs = matching_costs(inside, np.sqrt(made.squared))
    assert len(links) == len(chosen), case.name
    assert sum(costs[link] for link in links) == pytest.approx(cost, rel=1e-9, abs=1e-9), case.name
    if pair.complete and len(pair.known_variables) > 1:  # else sums of distances are often equal
        expected = slow["credits"]["matching", "one_to_one", "certain"]
        assert result.credits.expected == pytest.approx(expected, abs=1e-9), case.name


@pytest.mark.long
def test_rules_that_move_no_value_leave_the_window_to_the_intruder():
    x = np.round(np.random.default_rng(0).lognormal(size=(200, 3)), 3)
    rules = ["x1 >= 0", "x2 >= 0", "x3 >= 0"]  # hold for any swapped value
    plain, ruled = (
        sdc.Microdata(x, rules=given)
        .release("rank_swap", p=0.15, entropy=entropy(1), metrics="linkage")
        .evaluation
        for given in (None, rules)
    )
    uninformed = sdc.evaluate(x, sdc.mask(x, "rank_swap", p=0.15, rng=1), metrics="linkage")
    assert ruled["linkage"] == plain["linkage"] > uninformed["linkage"]
