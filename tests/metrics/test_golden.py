"""Against R's sdcMicro 5.8.1: its masked files and the losses computed there (numbers only, see conftest)."""

import math
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import naive
import sdckit as sdc
from calls import called
from cases import each
from sdckit.kernels.ranks import OrderedColumn

FOLDER = Path(os.environ.get("SDCKIT_GOLDEN") or "absent")
FILES = sorted(path.stem for path in FOLDER.glob("*_*.csv")) or ["Tarragona_mdav_k3"]

LOSSES = {
    "brMAE_first": lambda x, y: sdc.brmae(x, y, ties="first"),
    "brMAE_average": sdc.brmae,
    "brMSE_first": lambda x, y: sdc.brmse(x, y, ties="first"),
    "brMSE_average": sdc.brmse,
    "MAE": sdc.mae,
    "MSE": sdc.mse,
    "IL1_mean_drop": lambda x, y: sdc.il1(x, y, zeros="drop"),
    "IL1s_mean": sdc.il1s,
}


@pytest.fixture(scope="session")
def originals(tarragona, census):
    return {"Tarragona": tarragona, "Census": census}


def masked_file(golden, name):
    return pl.read_csv(golden / f"{name}.csv", infer_schema_length=None).cast(pl.Float64)


def columns_of(table):
    return {name: table[name].to_numpy() for name in table.columns}


@pytest.mark.parametrize("name", FILES)
def test_losses_of_a_masked_file(golden, originals, name):
    dataset, masking = name.split("_", 1)
    x, y = originals[dataset], masked_file(golden, name)
    rows = pl.read_csv(golden / "metrics.csv").filter(dataset=dataset, masking=masking)
    expected = dict(rows.select("metric", "value").iter_rows())
    prepared = sdc.Microdata(x).original
    for metric, function in LOSSES.items():
        assert function(prepared, y) == pytest.approx(expected[metric], rel=1e-10), metric


def test_every_masked_file_has_its_numbers(golden):
    rows = pl.read_csv(golden / "metrics.csv")
    listed = {f"{dataset}_{masking}" for dataset, masking in rows.select("dataset", "masking").iter_rows()}
    assert listed == set(FILES)


def test_il1_says_how_many_zeros_it_left_out(tarragona, golden):
    masked = masked_file(golden, "Tarragona_mdav_k3")
    result = sdc.evaluate(tarragona, masked, metrics="il1")
    assert any(note.endswith("has no relative change: 77") for note in result.notes)


# --- rank swapping: the structure of R's files, whose random stream cannot be matched ---


def tail_size(n):
    return math.ceil(n * 0.05) - 1


def structure(x, y):
    """Whether each tail became its mean and the interior keeps its values, and the largest move in it."""
    order = OrderedColumn(x).order
    tail = tail_size(x.size)
    low, inside, high = order[:tail], order[tail:-tail], order[-tail:]
    means = np.allclose(y[low], x[low].mean(), rtol=1e-9) and np.allclose(y[high], x[high].mean(), rtol=1e-9)
    kept = np.array_equal(np.sort(y[inside]), np.sort(x[inside]))
    return means, kept, naive.displacement(x[inside].tolist(), y[inside].tolist()) if kept else math.nan


def clear_cuts(table):
    """Columns in which no tie reaches across the two cuts."""
    ordered = {name: np.sort(table[name].to_numpy()) for name in table.columns}
    tail = tail_size(table.height)
    return [name for name, v in ordered.items() if v[tail - 1] < v[tail] and v[-tail - 1] < v[-tail]]


def test_swapping_with_tails_has_the_structure_of_the_package(tarragona, golden):
    theirs = masked_file(golden, "Tarragona_rankswap_P0.1_seed1234567")
    ours = sdc.mask(tarragona, "rank_swap", p=0.1, tails=0.05, bound="exclusive", rng=3)
    names = clear_cuts(tarragona)
    assert len(names) >= 10
    assert tail_size(tarragona.height) == 41
    largest = {}
    for label, masked in (("R", theirs), ("sdckit", ours)):
        found = [structure(tarragona[name].to_numpy(), masked[name].to_numpy()) for name in names]
        assert all(means and kept for means, kept, _ in found)
        largest[label] = max(move for _, _, move in found)
    assert largest == {"R": 74, "sdckit": 74}  # floor(0.1 * (834 - 82)) - 1
    distance = [sdc.brmae(tarragona, masked) for masked in (theirs, ours)]
    assert distance[0] == pytest.approx(distance[1], rel=0.05)


def test_swapping_without_tails_keeps_the_values_like_the_package(census, golden):
    theirs = masked_file(golden, "Census_rankswap_P0.1_TB0_seed1234567")
    ours = sdc.mask(census, "rank_swap", p=0.1, bound="exclusive", rng=3)
    for name in census.columns:
        assert np.array_equal(np.sort(theirs[name]), np.sort(census[name]))
        assert np.array_equal(np.sort(ours[name]), np.sort(census[name]))
    distance = [sdc.brmae(census, masked) for masked in (theirs, ours)]
    assert distance[0] == pytest.approx(distance[1], rel=0.05)


# --- noise: one draw of each, compared as far as one draw allows ---

ADDITIVE = {"method": "noise", "percent": 50}
CORRELATED = {"method": "correlated_noise", "percent": 50, "scale": "variance"}


@pytest.mark.parametrize("dataset", ["Tarragona", "Census"])
@pytest.mark.parametrize(
    ("file", "call", "share"),
    [("additive_50_seed1", ADDITIVE, 0.5), ("correlated_50_seed2", CORRELATED, math.sqrt(0.5))],
)
def test_noise_has_the_spread_of_the_package(golden, originals, dataset, file, call, share):
    x, theirs = originals[dataset], masked_file(golden, f"{dataset}_{file}")
    method, options = call["method"], {name: call[name] for name in call if name != "method"}
    ours = called("mask", x, method, rng=4, **options)
    for masked in (theirs, ours):
        noise = {name: masked[name].to_numpy() - x[name].to_numpy() for name in x.columns}
        ratios = np.array([noise[name].std(ddof=1) / x[name].std() for name in x.columns])
        assert ratios == pytest.approx(share, rel=5 / math.sqrt(2 * x.height))  # five standard errors
        means = [abs(noise[name].mean()) / x[name].std() for name in x.columns]
        assert max(means) < 5 * share / math.sqrt(x.height)


@pytest.mark.parametrize("dataset", ["Tarragona", "Census"])
def test_correlated_noise_has_the_correlations_of_the_data_like_the_package(golden, originals, dataset):
    x = originals[dataset].to_numpy()
    theirs = masked_file(golden, f"{dataset}_correlated_50_seed2").to_numpy()
    ours = sdc.mask(x, "correlated_noise", percent=50, scale="variance", rng=4)
    independent = sdc.mask(x, "noise", percent=math.sqrt(50) * 10, rng=4)
    expected = np.corrcoef(x, rowvar=False)

    def far(masked):
        return np.abs(np.corrcoef(masked - x, rowvar=False) - expected).max()

    bound = 5 / math.sqrt(len(x))
    assert far(theirs) < bound
    assert far(ours) < bound
    assert far(independent) > bound  # the check can fail


@each("name", ["brMAE_average", "brMSE_average", "MAE", "IL1s_mean"])
@each(("file", "call"), [("additive_50_seed1", ADDITIVE), ("correlated_50_seed2", CORRELATED)])
def test_losses_of_noise_agree_with_the_package(golden, tarragona, name, file, call):
    rows = pl.read_csv(golden / "metrics.csv").filter(dataset="Tarragona", masking=file, metric=name)
    method, options = call["method"], {key: call[key] for key in call if key != "method"}
    draws = [
        LOSSES[name](tarragona, called("mask", tarragona, method, rng=seed, **options)) for seed in range(12)
    ]
    assert abs(rows["value"][0] - np.mean(draws)) < 6 * np.std(draws, ddof=1)
