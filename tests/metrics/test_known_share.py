"""An intruder who holds a share of the persons only."""

import numpy as np
import polars as pl
import pytest

import attacked_releases as releases
import attacker
import sdckit as sdc
from calls import called
from cases import later
from sdckit.masking.disclosure import Disclosure
from sdckit.metrics.pair import pair_of
from sdckit.risk import intruder, posterior


def pair(method, parameters, seed, n=300, p=4):
    data = releases.frame(releases.skewed(n, p))
    found = pair_of(data, sdc.mask(data, method, rng=seed, **parameters))
    found.disclose(Disclosure(method, parameters))
    if method == "rank_swap":
        found.window = int(parameters["p"] * n)
    return found


def twin(found, share, p):
    """What the slow attack finds with the same persons known."""
    n = found.n
    held = np.sort(np.random.default_rng(intruder.KNOWN_SEED).permutation(n)[: round(share * n)])
    X, Y = found.original.values[held], found.masked
    scores = attacker.swap_scores(X, Y, attacker.window_moves(X, Y, p))
    best = scores == scores.max(axis=0)
    return np.mean([best[i, k] / best[:, k].sum() for k, i in enumerate(held)])


@pytest.mark.parametrize(("share", "least"), [later((1.0, 1.0)), (0.75, 0.98), later((0.5, 0.7))])
def test_swaps_are_undone_with_a_share_of_the_persons(share, least):
    pairs = [pair("rank_swap", {"p": 0.3}, seed) for seed in range(4)]
    found = np.mean([intruder.found_among_known(one, share) for one in pairs])
    assert found >= least
    assert found >= 0.95 * np.mean([twin(one, share, 0.3) for one in pairs])


def test_less_knowledge_finds_less_of_a_wide_swap():
    one = pair("rank_swap", {"p": 0.5}, 1, p=3)
    found = [intruder.found_among_known(one, share) for share in (1, 0.75, 0.5, 0.25)]
    assert found == sorted(found, reverse=True)
    assert found[0] == 1
    assert found[-1] < 0.3


@pytest.mark.parametrize(
    ("method", "parameters"), [("noise", {"percent": 50}), later(("rank_noise", {"a": 0.15}))]
)
def test_noise_is_read_by_the_law_whoever_is_known(method, parameters):
    pairs = [pair(method, parameters, seed) for seed in range(4)]
    found = np.mean([[intruder.found_among_known(one, share) for share in (1, 0.5)] for one in pairs], 0)
    whole = np.mean([_linkage(one, method, parameters) for one in pairs])
    assert 0.6 * whole < found[1] <= whole + 0.05
    assert 0.8 * whole < found[0] <= whole + 0.02


def _linkage(found, method, parameters):
    return sdc.evaluate(
        found.original.values, found.masked, made_by=sdc.Method(method, **parameters), metrics="linkage"
    )["linkage"]


def test_the_order_of_the_rows_tells_nothing():
    """The same rows in another order give the same credit: the true row has no better place."""
    one = pair("rank_swap", {"p": 0.5}, 1, n=150, p=3)
    known = np.arange(150) % 2 == 0
    matrix = intruder.with_strangers(intruder.whole_matrix(one, "shadows"), known)
    codes = [intruder.partial_codes(column, known) for column in intruder.exchanged_codes(one)]
    order = np.random.default_rng(1).permutation(150)
    found = []
    for rows in (np.arange(150), order):
        moved = [column._replace(published=column.published[rows]) for column in codes]
        chance = posterior.Posterior(intruder.pairs_after_swaps(matrix[rows], moved))
        found.append(chance.credit(chance.both, rows, forward=False)[known].mean())
    assert found[0] == pytest.approx(found[1], abs=0.05)


def test_values_of_unknown_persons_are_not_used():
    """What the file holds of persons who are not known changes nothing but the law."""
    one = pair("rank_swap", {"p": 0.3}, 1, n=100)
    known = np.arange(100) < 50
    codes = [intruder.partial_codes(column, known) for column in intruder.exchanged_codes(one)]
    assert len(codes) == 4
    for column in codes:
        assert (column.original[~known] == -1).all()
        held = {value for value in column.original[known] if value >= 0}
        assert {int(value) for value in np.flatnonzero(~column.open)} <= held


def test_groups_stay_groups():
    data = releases.frame(releases.skewed(300, 4))
    masked = sdc.mask(data, "mdav", k=5)
    notes = sdc.evaluate(
        data, masked, made_by=sdc.Method("mdav", k=5), metrics="linkage", known_share=0.5
    ).notes
    assert notes == ("someone who holds 50 % of the persons finds 20 of 100 of them",)


def test_a_note_says_it_and_linkage_stays():
    data = releases.frame(releases.skewed(150, 4))
    masked = sdc.mask(data, "rank_swap", p=0.3, rng=1)
    how = {"metrics": "linkage", "method": "rank_swap", "parameters": {"p": 0.3}}
    plain, asked = (
        called("evaluate", data, masked, **how),
        called("evaluate", data, masked, known_share=0.75, **how),
    )
    assert asked["linkage"] == plain["linkage"]
    assert asked.notes == (*plain.notes, "someone who holds 75 % of the persons finds 100 of 100 of them")
    assert "someone who holds 75 % of the persons finds 100 of 100 of them" in asked.to_html()


@pytest.mark.parametrize("share", [0, 1.5, -1, "many", float("nan")])
def test_a_share_that_is_none(share):
    with pytest.raises(
        ValueError, match=r"^known_share is .*; give a number above 0 and at most 1, such as 0.75$"
    ):
        sdc.evaluate([1.0, 2, 3], [1.0, 2, 3], known_share=share)


def test_it_is_for_one_release():
    with pytest.raises(ValueError, match=r"^known_share is for one release and together is True; leave one"):
        sdc.evaluate([1.0, 2, 3], [[1.0, 2, 3]] * 2, together=True, known_share=0.5)


def left_out(data, masked, **more):
    (note,) = [
        n for n in called("evaluate", data, masked, known_share=0.75, **more).notes if "known_share" in n
    ]
    return note


def test_where_it_cannot_be_measured_a_note_says_why():
    small = np.random.default_rng(1).normal(size=(8, 2))
    assert "8 records are too few to learn it from" in left_out(small, small[::-1], metrics="linkage")
    large = np.arange(6002.0).reshape(3001, 2)
    assert "up to 3,000 records, and there are 3,001" in left_out(large, large + 1, metrics="brmae")
    table = pl.DataFrame({"a": small[:, 0], "b": small[:, 1]})
    assert "ties a row to a person" in left_out(table, table[::-1], metrics="ks", paired=False)
