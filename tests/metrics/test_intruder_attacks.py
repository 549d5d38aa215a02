"""The fast intruder equals the slow one that was written from the definitions alone, record by record."""

import numpy as np
import pytest

from intruder import linkage
from intruder_cases import MASKINGS, drawn_case
from sdckit.core.checks import NotApplicable
from sdckit.core.registry import METHODS
from sdckit.metrics.risk.facts import facts_of
from sdckit.metrics.risk.linkage_attacks import fits
from sdckit.metrics.risk.linkage_scores import ATTACKS, attack_result, score_linkage
from sdckit.metrics.risk.row_order import row_orders

NAMES = {"euclid": "dbrl", "ranks": "dbrl_rank", "places": "same_places", "plain": "guess"}
SEEDS = range(10 * len(MASKINGS))


def candidates(facts, run):
    """From the fast facts, the published x original matrix of candidates."""
    ours, theirs = facts.runs[run]
    rows = range(facts.n)
    same = theirs.blocks[:, None] == ours.blocks
    inside = [(theirs.low[i] <= ours.high) & (ours.low <= theirs.high[i]) for i in rows]
    return same & np.array([one.all(axis=1) for one in inside])


def fast_credits(pair, name, direction, run):
    """From the name of a slow attack, the credits of the fast one; None where it is not tried."""
    kind, options = NAMES.get(name), {"direction": direction, "run": run}
    if name.startswith("order of "):
        wanted = name.removeprefix("order of ").removesuffix(" in blocks"), name.endswith(" in blocks")
        orders = [(order.column, order.in_blocks) for order in row_orders(pair)]
        kind, options["order"] = "row_order", orders.index(wanted)
    if kind == "same_places" and not ATTACKS[kind].suits(pair):
        kind = "dbrl"  # without a missing cell, all places are the same
    return attack_result(pair, kind, options).credits.expected


def test_every_method_is_among_the_cases():
    tested = {method for method, _ in MASKINGS}
    assert set(METHODS) - tested <= {
        "romm",
        "ipso",
        "sequential_shuffle",
    }  # no missing cells, or no rows kept


@pytest.mark.filterwarnings("ignore::UserWarning")  # coarse files: values kept, codes hit
@pytest.mark.parametrize("seed", SEEDS)
def test_attacks_equal_the_slow_intruder(seed):
    case = drawn_case(seed)
    slow = linkage(case.original, case.published, case.release, case.positions)
    facts = facts_of(case.pair)
    assert facts.cases == slow["facts"].cases, case.name
    assert sorted(facts.failed) == sorted(slow["facts"].failed), case.name
    assert (candidates(facts, "certain") == slow["facts"].certain).all(), case.name
    assert ("doubtful" in facts.runs) == (slow["facts"].doubtful is not None)
    if "doubtful" in facts.runs:
        assert (candidates(facts, "doubtful") == slow["facts"].doubtful).all(), case.name
    assert fits(*facts.runs["certain"]).all(), case.name  # the true record is always inside
    for (name, direction, run), expected in slow["credits"].items():
        found = fast_credits(case.pair, name, direction, run)
        assert found == pytest.approx(expected, abs=1e-9), (case.name, name, direction, run)
    if slow["linkage"] is None:
        with pytest.raises(NotApplicable):
            score_linkage(case.pair)
    else:
        assert score_linkage(case.pair).value.overall >= slow["linkage"] - 1e-12, case.name
