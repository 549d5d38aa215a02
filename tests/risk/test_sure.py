"""Sure links: everybody in an unchanged file, nobody in groups, never more than linkage."""

import numpy as np
import pytest

import sdckit as sdc
from calls import called
from cases import each
from sdckit.metrics.pair import pair_of
from sdckit.risk.attacks import sure_links
from sdckit.risk.posterior import SURE

RISKS = ["linkage", "linkage_sure"]


def amounts(n=150, p=3, seed=1):
    rng = np.random.default_rng(seed)
    return np.exp(0.6 * rng.normal(size=(n, 1)) + 0.8 * rng.normal(size=(n, p)))


def test_an_unchanged_file_gives_everybody_away():
    x = amounts()
    found = sdc.evaluate(x, x, metrics=RISKS)
    assert (found["linkage"], found["linkage_sure"]) == (1.0, 1.0)
    assert found.parts["linkage_sure"]["exposed"] == 150
    assert found.parts["linkage_sure"]["exposed above 0.9"] == 150


@each("method", ["mdav", "vmdav", "blocked_mdav"])
@each("missing", [0.0, 0.1])
@each("named", [True, False])
def test_groups_of_k_hide_everybody(method, missing, named):
    x = amounts()
    x[np.random.default_rng(2).random(x.shape) < missing] = np.nan
    masked = sdc.mask(x, method, k=5)
    known = {"method": method, "parameters": {"k": 5}} if named else {}
    found = called("evaluate", x, masked, metrics=RISKS, **known)
    assert found["linkage"] <= 1 / 5 + 1e-9
    assert found["linkage_sure"] == 0.0
    assert found.parts["linkage_sure"]["exposed"] == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "parameters"),
    [("noise", {"percent": 30}), ("rank_noise", {"a": 0.05}), ("rank_swap", {"p": 0.2})],
)
def test_sure_links_are_never_more_than_all_links(method, parameters):
    x = amounts()
    for seed in range(3):
        masked = sdc.mask(x, method, rng=seed, **parameters)
        found = sdc.evaluate(
            x, masked, made_by=sdc.Method(method, **parameters), metrics=RISKS, per_record=True
        )
        assert 0 < found["linkage_sure"] <= found["linkage"]
        chances = found.records["linkage_sure"].to_numpy()
        assert found["linkage_sure"] == pytest.approx((chances > 0.5).mean())
        assert found.parts["linkage_sure"]["exposed"] == (chances > 0.5).sum()
        assert found.parts["linkage_sure"]["exposed above 0.9"] == (chances > 0.9).sum()


def test_what_he_is_sure_of_is_mostly_right():
    x = amounts(300, 4)
    exposed = claimed = 0
    for seed in range(3):
        found = sure_links(pair_of(x, sdc.mask(x, "noise", percent=30, rng=seed)))
        exposed, claimed = exposed + (found.truth > SURE).sum(), claimed + found.claimed
    assert claimed > 50
    assert 0.6 <= exposed / claimed <= 1


def test_a_sentence_says_how_many_are_exposed():
    x = amounts()
    said = sdc.evaluate(x, x, metrics="linkage_sure").meaning["linkage_sure"]
    assert said.startswith(
        "the intruder gives the true originals of 150 records a probability above one half"
    )
    none = sdc.evaluate(x, np.ones_like(x), metrics="linkage_sure").meaning["linkage_sure"]
    assert none.startswith("the intruder gives no true original a probability above one half")
