"""What is kept of an original for the next masked file changes no estimate."""

import numpy as np

import sdckit as sdc

RISKS = ["linkage", "dbrl", "dbrl_rank"]


def linkages(original, masked, p, sample):
    """Return the risks of a rank swapping whose window is public, looked up for a sample of records."""
    result = sdc.evaluate(
        original, masked, made_by=sdc.Method("rank_swap", p=p), metrics=RISKS, sample_queries=sample
    )
    return [result[name] for name in RISKS]


def test_estimates_are_those_of_a_fresh_original():
    rng = np.random.default_rng(4)
    values = np.round(rng.lognormal(size=(400, 3)), 1)
    files = {p: sdc.mask(values, "rank_swap", p=p, rng=5) for p in (0.1, 0.3, 0.05)}
    original = sdc.Microdata(values).original
    for p, masked in files.items():
        assert linkages(original, masked, p, 50) == linkages(values, masked, p, 50)
        assert linkages(original, masked, p, 0) == linkages(values, masked, p, 0)
