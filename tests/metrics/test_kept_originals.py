"""Searches built on facts about originals are used again for the next masked file, and change no estimate."""

import numpy as np

import sdckit as sdc
from sdckit.risk.facts import keep_side

RISKS = ["linkage", "dbrl", "dbrl_rank"]


def linkages(original, masked, p, sample):
    """Return the risks of a rank swapping whose window is public, looked up for a sample of records."""
    result = sdc.evaluate(
        original, masked, method="rank_swap", parameters={"p": p}, metrics=RISKS, sample_queries=sample
    )
    return [result[name] for name in RISKS]


def test_estimates_are_those_of_a_fresh_original():
    rng = np.random.default_rng(4)
    values = np.round(rng.lognormal(size=(400, 3)), 1)
    files = {p: sdc.mask(values, "rank_swap", p=p, rng=5) for p in (0.1, 0.3, 0.05)}
    original = sdc.prepare(values)
    for p, masked in files.items():
        assert linkages(original, masked, p, 50) == linkages(values, masked, p, 50)
        assert linkages(original, masked, p, 0) == linkages(values, masked, p, 0)


def test_other_facts_are_not_mistaken_for_the_kept_ones():
    original = sdc.prepare([[1.0], [2.0], [3.0]])
    sides = [(np.array([0, 0, number]),) for number in (0, 1, 1)]
    kept = [keep_side(original, side) for side in sides]
    assert kept[1][0] is sides[1]
    assert kept[2][0] is sides[1]
    assert kept[0][1] is not kept[1][1]
    assert kept[1][1] is kept[2][1]
