"""Facts and nearest records equal the slow intruder, record by record; linkage finds as much as he does."""

import functools

import numpy as np
import pytest

from cases import each
from intruder import linkage
from intruder_cases import MASKINGS, drawn_case
from sdckit.core.checks import NotApplicable
from sdckit.core.registry import METHODS
from sdckit.risk.attacks import attack_result, score_linkage
from sdckit.risk.facts import facts_of, fits

NAMES = {"euclid": "dbrl", "ranks": "dbrl_rank", "plain": "guess"}
SEEDS = range(10 * len(MASKINGS))
SOME = range(0, len(SEEDS), 9)  # files on which the whole linkage is compared
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # coarse files: values kept, codes hit


@functools.cache
def attacked(seed):
    """From a seed, a drawn case and the slow attacks on it."""
    case = drawn_case(seed)
    return case, linkage(case.original, case.published, case.release, case.positions)


def candidates(facts):
    """From the fast facts, the published x original matrix of candidates."""
    ours, theirs = facts.sides()
    rows = range(facts.n)
    same = theirs.blocks[:, None] == ours.blocks
    inside = [(theirs.low[i] <= ours.high) & (ours.low <= theirs.high[i]) for i in rows]
    return same & np.array([one.all(axis=1) for one in inside])


def test_every_method_is_among_the_cases():
    tested = {method for method, _ in MASKINGS}
    assert set(METHODS) - tested <= {
        "romm",
        "ipso",
        "sequential_shuffle",
    }  # no missing cells, or no rows kept


@each("seed", SEEDS)
def test_facts_and_nearest_records_equal_the_slow_intruder(seed):
    case, slow = attacked(seed)
    facts = facts_of(case.pair)
    assert facts.cases == slow["facts"].cases, case.name
    assert sorted(facts.failed) == sorted(slow["facts"].failed), case.name
    assert (candidates(facts) == slow["facts"].certain).all(), case.name
    assert fits(*facts.sides()).all(), case.name  # the true record is always inside
    for (name, direction, run), expected in slow["credits"].items():
        if name in NAMES and run == "certain":
            found = attack_result(case.pair, NAMES[name], {"direction": direction}).credits.expected
            assert found == pytest.approx(expected, abs=1e-9), (case.name, name, direction)


@pytest.mark.long
def test_linkage_finds_as_much_as_the_best_of_the_slow_attacks():
    found, expected = [], []
    for seed in SOME:
        case, slow = attacked(seed)
        if slow["linkage"] is None:
            with pytest.raises(NotApplicable):
                score_linkage(case.pair)
        else:
            found.append(score_linkage(case.pair).value.overall)
            expected.append(slow["linkage"])
            kept = {("plain", "certain"), ("euclid", "certain")}
            least = max(mean for (name, _, run), mean in slow["means"].items() if (name, run) in kept)
            assert found[-1] >= least - 1e-12, case.name
    assert np.mean(found) >= np.mean(expected) - 0.01
