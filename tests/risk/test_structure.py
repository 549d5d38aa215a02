"""Structure of swaps: found where values were exchanged in pairs, whatever is beside, and nowhere else."""

import numpy as np
import polars as pl
import pytest

import naive_law
import sdckit as sdc
from calls import called
from sdckit.masking.disclosure import Disclosure
from sdckit.metrics.original import Original
from sdckit.metrics.pair import pair_by_row
from sdckit.risk import intruder, posterior
from sdckit.risk.intruder import exchanged_codes

SWAP = {"method": "rank_swap", "parameters": {"p": 0.3}}


def amounts(n=240, p=4, digits=15, seed=1):
    rng = np.random.default_rng(seed)
    return np.exp(3 + 0.6 * rng.normal(size=(n, 1)) + 0.8 * rng.normal(size=(n, p))).round(digits)


def linkage(original, masked, **options):
    return called("evaluate", original, masked, metrics=["linkage", "linkage_sure"], **options)


def test_kept_pairs_are_those_of_the_slow_twin():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 6, 12)
        y = x[rng.permutation(12)]
        possible = rng.random((12, 12)) < 0.4
        codes = intruder.codes_of(x.astype(float), y.astype(float))
        found = possible.copy()
        partners = np.zeros((codes.size, codes.size), bool)
        intruder._keep_exchanged(codes.published, codes.original, partners, found)  # noqa: SLF001 - a kernel
        assert (found == naive_law.keep_exchanged(possible, x, y)).all()


def test_an_exchange_is_told_from_any_other_permutation():
    rng = np.random.default_rng(2)
    x = rng.normal(size=100)
    pairs = rng.permutation(100).reshape(-1, 2)
    swapped = x.copy()
    swapped[pairs[:, 0]], swapped[pairs[:, 1]] = x[pairs[:, 1]], x[pairs[:, 0]]
    assert intruder.is_exchanged(x, swapped)
    assert not intruder.is_exchanged(x, np.roll(x, 1))
    assert not intruder.is_exchanged(x, x)  # nothing moved: no proof
    assert not intruder.is_exchanged(x, x + 1)


@pytest.mark.parametrize(
    ("digits", "options"),
    [(15, {}), (0, {}), (15, {"tails": 0.05}), (2, {"decimals": 2})],
    ids=["plain", "ties", "tails", "two digits"],
)
def test_swaps_are_undone(digits, options):
    x = amounts(digits=digits)
    masked = called("mask", x, "rank_swap", p=0.3, rng=3, **options)
    parameters = {"p": 0.3} | {name: value for name, value in options.items() if name == "tails"}
    found = linkage(x, masked, method="rank_swap", parameters=parameters)
    assert found["linkage"] >= 0.9
    assert found["linkage_sure"] >= 0.85


@pytest.mark.long
def test_swaps_within_strata_are_undone():
    table = pl.DataFrame(amounts(300), schema=list("abcd")).with_columns(g=pl.Series(["x", "y"] * 150))
    masked = sdc.Microdata(table, by="g").mask("rank_swap", p=0.3, rng=3)
    assert linkage(table, masked, by="g", **SWAP)["linkage"] >= 0.95


@pytest.mark.long
def test_p_distribution_swaps_are_undone():
    x = amounts()
    masked = sdc.mask(x, "p_distribution_swap", p=0.3, rng=3)
    found = linkage(x, masked, method="p_distribution_swap", parameters={"p": 0.3})
    assert found["linkage"] >= 0.95


def test_swaps_are_undone_beside_a_recomputed_sum():
    x = amounts(digits=2)
    table = pl.DataFrame(x, schema=list("abcd")).with_columns(total=pl.Series(x.sum(axis=1).round(2)))
    rules = ["total == a + b + c + d"]
    masked = sdc.Microdata(table, rules=rules).mask("rank_swap", p=0.2, rng=3)
    found = sdc.Microdata(table, rules=rules).evaluate(
        masked, made_by=sdc.Method("rank_swap", p=0.2), metrics="linkage"
    )
    assert found["linkage"] >= 0.9


def columns_proven(original, masked, method, parameters):
    pair = pair_by_row(Original.of(original, warn=False), masked)
    pair.disclose(Disclosure.of(method, parameters))
    return len(exchanged_codes(pair))


def test_a_noised_column_beside_swaps_does_not_hide_them():
    x = amounts()
    swapped = sdc.mask(x, "rank_swap", p=0.3, rng=3)
    noised = swapped + np.random.default_rng(4).normal(size=swapped.shape) * [0, 0, 0, 5.0]
    shadows = [
        sdc.mask(x, "rank_swap", p=0.3, rng=seed)
        + np.random.default_rng(seed).normal(size=x.shape) * [0, 0, 0, 5.0]
        for seed in range(3)
    ]
    assert intruder.exchanged_columns(x, shadows) == [0, 1, 2]
    codes = [intruder.codes_of(x[:, j], noised[:, j]) for j in range(3)]
    left = intruder.pairs_left(
        np.abs(np.argsort(np.argsort(x[:, 0]))[None] - np.argsort(np.argsort(noised[:, 0]))[:, None]) <= 72,
        codes,
    )
    assert left.diagonal().all()
    assert left.sum() < 0.5 * 240**2


@pytest.mark.parametrize(
    ("method", "parameters"), [("rank_noise", {"a": 0.1}), ("noise", {"percent": 50}), ("resample", {})]
)
def test_nothing_else_is_taken_for_a_swap(method, parameters):
    x = amounts(120, 3)
    assert columns_proven(x, sdc.mask(x, method, rng=1, **parameters), method, parameters) == 0


def test_cells_with_many_digits_are_proven():
    x = amounts(120, 3)
    assert columns_proven(x, sdc.mask(x, "rank_swap", p=0.3, rng=1), "rank_swap", {"p": 0.3}) == 3


@pytest.mark.long
def test_swaps_within_strata_are_undone_where_strata_share_values():
    rng = np.random.default_rng(11)
    stratum = np.repeat(np.arange(4), 50)
    values = np.round(20 + 5 * rng.multivariate_normal(np.zeros(3), 0.5 + 0.5 * np.eye(3), 200))
    data = pl.DataFrame(values, schema=["a", "b", "c"]).with_columns(stratum=stratum)
    masked = sdc.Microdata(data, columns=["a", "b", "c"], by="stratum").mask("rank_swap", p=0.3, rng=1)
    named = {"method": "rank_swap", "parameters": {"p": 0.3}, "metrics": "linkage"}
    together = called("evaluate", data, masked, columns=["a", "b", "c"], by="stratum", **named)["linkage"]
    parts = [
        (data.drop("stratum")[rows], masked.drop("stratum")[rows]) for rows in np.split(np.arange(200), 4)
    ]
    apart = [called("evaluate", ours, theirs, **named)["linkage"] for ours, theirs in parts]
    assert together >= 0.8 * np.mean(apart)


def test_proven_swaps_count_in_files_too_large_to_undo_them(monkeypatch):
    monkeypatch.setattr(posterior, "WHOLE", 10_000)
    values = np.exp(np.random.default_rng(12).normal(size=(150, 2)))
    masked = sdc.mask(values, "rank_swap", p=0.2, rng=1)
    named = {"method": "rank_swap", "parameters": {"p": 0.2}}
    result = called("evaluate", values, masked, metrics=["linkage", "linkage_sure"], **named)
    assert result["linkage"] == result["linkage_sure"] == 1
