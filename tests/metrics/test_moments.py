"""Losses of moments and bounded cells: IL_variables, IL_correl, eigen, CI overlap, covariance loss, PIL."""

import math
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import naive_loss
import sdckit as sdc
from contract import data, shaken
from sdckit.core.checks import NotApplicable
from sdckit.metrics.blocks import correlations_of
from sdckit.metrics.loss.moments import dependent_columns, overlap
from sdckit.metrics.loss.probabilistic import Moments, losses_by_family
from sdckit.metrics.pair import pair_of

NAN = float("nan")
FOLDER = Path(os.environ.get("SDCKIT_GOLDEN") or "absent")
TARRAGONA = sorted(path.stem for path in FOLDER.glob("Tarragona_*.csv")) or ["Tarragona_mdav_k3"]
CENSUS = sorted(path.stem for path in FOLDER.glob("Census_*.csv")) or ["Census_mdav_k3"]


def masked_file(golden, name):
    return pl.read_csv(golden / f"{name}.csv", infer_schema_length=None).cast(pl.Float64)


def part(metric, x, y, name):
    return sdc.METRICS[metric].score(pair_of(x, y), detail=True).parts[name]


# --- golden: R's sdcMicro 5.8.1 ---


@pytest.mark.parametrize("name", TARRAGONA)
def test_values_of_the_package(golden, tarragona, name):
    y = masked_file(golden, name)
    rows = pl.read_csv(golden / "metrics.csv").filter(dataset="Tarragona", masking=name.split("_", 1)[1])
    expected = dict(rows.select("metric", "value").iter_rows())
    found = sdc.evaluate(tarragona, y, metrics=["eigen", "il_correl", "il_variables:scale=raw"])
    theirs = ["dUtility_eigen", "IL_correl", "IL_variables"]
    assert list(dict(found).values()) == pytest.approx([expected[name] for name in theirs], rel=1e-9)


@pytest.mark.parametrize("name", CENSUS)
def test_census_names_the_columns_that_add_up(golden, census, name):
    y = masked_file(golden, name)
    rows = pl.read_csv(golden / "metrics.csv").filter(dataset="Census", masking=name.split("_", 1)[1])
    expected = dict(rows.select("metric", "value").iter_rows())
    assert sdc.il_variables(census, y, scale="raw") == pytest.approx(expected["IL_variables"], rel=1e-9)
    for function in (sdc.eigen, sdc.il_correl):
        with pytest.raises(
            NotApplicable, match="the columns PTOTVAL, POTHVAL, PEARNVAL determine one another"
        ):
            function(census, y)


def test_census_has_one_relation_and_values_without_one_of_its_columns(census):
    matrix = correlations_of(census.to_numpy()).products
    assert (np.linalg.eigvalsh(matrix) < 1e-10).sum() == 1
    assert (census["PTOTVAL"] == census["PEARNVAL"] + census["POTHVAL"]).all()
    rest = census.drop("POTHVAL")
    y = sdc.mask(rest, "noise", percent=10, rng=1)
    assert 0 < sdc.il_correl(rest, y) < 1
    assert sdc.eigen(rest, y) > 0


# --- linear relations ---


def test_columns_of_two_relations_are_named_and_no_other():
    rng = np.random.default_rng(3)
    a, b, c, d, e = rng.normal(size=(5, 100))
    table = {"a": a, "b": b, "sum": a + 1e3 * b, "c": c, "d": d, "twice": 5 - 2 * d, "e": e}
    matrix = correlations_of(np.column_stack(list(table.values()))).products
    assert dependent_columns(matrix, list(table)) == ["a", "b", "sum", "d", "twice"]


def test_a_relation_of_the_masked_data_stops_what_needs_their_inverse():
    x = pl.DataFrame(data(60), schema=["a", "b", "c"])
    y = x.with_columns(c=pl.col("a") - pl.col("b"))
    with pytest.raises(NotApplicable, match="in the masked data the columns a, b, c determine"):
        sdc.il_correl(x, y)
    assert sdc.eigen(x, y) > 0
    many = np.random.default_rng(0).normal(size=(5, 15))
    with pytest.raises(NotApplicable, match=r"x10 and 5 more determine one another exactly; leave one"):
        sdc.eigen(many, many)


def test_a_constant_column_is_named():
    x = pl.DataFrame(data(60), schema=["a", "b", "c"])
    flat = x.with_columns(b=pl.lit(0.1))
    for function in (sdc.eigen, sdc.il_correl):
        with pytest.raises(NotApplicable, match="column 'b' is constant in the masked data; leave it out"):
            function(x, flat)
    for function in (sdc.eigen, sdc.il_correl, sdc.covariance_loss):
        with pytest.raises(NotApplicable, match="column 'b' is constant in the original data"):
            function(flat, x)
    assert 0 < sdc.covariance_loss(x, flat) < 1
    assert sdc.covariance_loss(x, x.with_columns(pl.all() * 0 + 0.1)) == 1


# --- worked examples and twins ---


def test_il_variables_of_three_differences():
    x, y = [0.0, 1, 2], [0.0, 1.5, 4]  # differences 0, 1/2 and 2; spread 1
    assert sdc.il_variables(x, y, scale="raw") == pytest.approx(1 / 3)
    assert sdc.il_variables(x, y) == pytest.approx(1 / 3)
    tens = [10 * v for v in x], [10 * v for v in y]
    assert sdc.il_variables(*tens) == pytest.approx(1 / 3)
    assert sdc.il_variables(*tens, scale="raw") > 0.5
    assert sdc.il_variables(x, y, weights=[2, 1, 1]) < sdc.il_variables(x, y)


def test_il_variables_of_cells_records_and_suppression():
    x = np.array([[0.0, 10], [1, 30], [2, 20], [3, 40]])
    y = np.array([[1.0, 10], [2, NAN], [3, 20], [4, 60]])
    result = sdc.evaluate(x, y, metrics="il_variables:scale=raw", per_record=True)
    large = 2 / math.pi * math.atan(20)
    assert result["il_variables:scale=raw"] == pytest.approx((4 * 0.5 + large) / 7)
    assert result.records["il_variables:scale=raw"].to_list() == pytest.approx(
        [0.25, 0.5, 0.25, (0.5 + large) / 2]
    )
    assert any("depends on the units" in note for note in result.notes)
    penalised = sdc.il_variables(x, y, scale="raw", missing="penalise")
    assert penalised == pytest.approx((4 * 0.5 + large + 1) / 8)
    options = {"scale": "raw", "missing": "penalise", "per_record": True}
    assert sdc.METRICS["il_variables"].score(pair_of(x, y), **options).records[1] == pytest.approx(0.75)
    spreads = x.std(0, ddof=1)
    rows = ~np.isnan(y[:, 1])
    twin = [naive_loss.il_variables(x[:, 0], y[:, 0], spreads[0])] * 4
    twin += [naive_loss.il_variables(x[rows, 1], y[rows, 1], spreads[1])] * 3
    assert sdc.il_variables(x, y) == pytest.approx(np.mean(twin))


def test_any_change_of_a_constant_column_counts_1():
    result = sdc.evaluate([5.0, 5, 5, 5], [5.0, 5, 5, 6], metrics="il_variables")
    assert result["il_variables"] == 0.25
    assert result.notes == ("x1 is constant in the original, so any change of it counts 1",)
    one = pair_of([[1.0, 2], [NAN, 3]], [[2.0, 3], [4, 5]])
    score = sdc.METRICS["il_variables"].score(one)
    assert (score.used.tolist(), score.left_out.tolist()) == ([0, 2], [1, 0])


def test_overlap_of_intervals():
    assert overlap((0, 10), (5, 20)) == pytest.approx(0.4167, abs=5e-5)
    assert overlap((0, 10), (0, 10)) == 1
    assert overlap((0, 10), (11, 20)) == 0
    assert overlap((0, 10), (2, 4)) == pytest.approx(0.6)
    assert overlap((0, 10), (3, 3)) == 0.5
    assert overlap((3, 3), (3, 3)) == 1
    assert overlap((3, 3), (4, 4)) == 0


@pytest.mark.parametrize("seed", range(3))
def test_moments_equal_the_slow_twins(seed):
    rng = np.random.default_rng(seed)
    x = data(150, seed=seed) * [1, 100, 1e-3]
    x = x + 1e-3 * x.std(0) * rng.normal(size=x.shape)  # no ties in ranks
    y = shaken(x / x.std(0) * 10, seed) * x.std(0) / 10
    assert sdc.il_correl(x, y) == pytest.approx(naive_loss.il_correl(x, y), rel=1e-9)
    assert sdc.eigen(x, y) == pytest.approx(naive_loss.eigen(x, y), rel=1e-9)
    assert sdc.covariance_loss(x, y) == pytest.approx(1 - naive_loss.um(x, y), rel=1e-9)
    assert part("covariance_loss", x, y, "CM") == pytest.approx(naive_loss.cm(x, y), rel=1e-9)
    overlaps = [naive_loss.ci_overlap(*both) for both in zip(x.T.tolist(), y.T.tolist(), strict=True)]
    assert sdc.ci_overlap(x, y) == pytest.approx(np.mean(overlaps), rel=1e-9)
    expected = naive_loss.pil(x, y)
    found = sdc.METRICS["pil"].score(pair_of(x, y)).parts
    assert found == pytest.approx(expected, rel=1e-7)
    assert sdc.pil(x, y) == pytest.approx(np.mean(list(expected.values())), rel=1e-7)


def test_moments_do_not_see_the_order_of_records_or_units():
    x = data(150)
    y = shaken(x)
    order = np.random.default_rng(2).permutation(150)
    for name in ("il_correl", "eigen", "covariance_loss", "ci_overlap", "pil"):
        function = getattr(sdc, name)
        assert function(x, y[order]) == pytest.approx(function(x, y), rel=1e-8), name
        units = np.array([1e-30, 1e30, 1e3])
        assert function(units * x, units * y) == pytest.approx(function(x, y), rel=1e-8), name


def test_two_variables_always_keep_their_inverse_correlations():
    x, y = data(40)[:, :2], shaken(data(40))[:, :2]
    assert naive_loss.il_correl(x, y) == pytest.approx(0, abs=1e-12)
    with pytest.raises(NotApplicable, match="il_correl needs at least 3 variables"):
        sdc.il_correl(x, y)


def test_covariance_loss_does_not_let_the_largest_unit_decide():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 1)) + 0.3 * rng.normal(size=(500, 3))
    permuted = np.column_stack([rng.permutation(column) for column in x.T])
    units = np.array([1.0, 1e3, 1e6])
    assert sdc.covariance_loss(units * x, units * permuted) > 0.9
    assert sdc.covariance_loss(x, 3 * x + 7) == pytest.approx(0, abs=1e-12)
    assert part("covariance_loss", x, np.ones_like(x), "CM") == 1
    assert part("covariance_loss", x, x**3, "CM") == pytest.approx(0, abs=1e-9)


def test_eigen_says_what_inflates_it():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    x[:, 1] = x[:, 0] + 0.01 * x[:, 1]
    assert any("which inflates it" in note for note in sdc.evaluate(x, shaken(x), metrics="eigen").notes)


# --- PIL ---


def test_pil_of_a_shift():
    x = np.arange(1.0, 201)
    assert part("pil", x, x + 3, "means") == pytest.approx(0.5376, abs=5e-5)
    assert part("pil", x, x + 3, "variances") == 0
    assert set(sdc.METRICS["pil"].score(pair_of(x, x + 3)).parts) == {"quantiles", "means", "variances"}


def test_pil_needs_more_than_a_hundred_records():
    x = data(101)
    assert 0 < sdc.pil(x, shaken(x)) < 1
    with pytest.raises(
        NotApplicable, match="pil needs at least 101 records and the data have 100; use another"
    ):
        sdc.pil(x[:100], x[:100])
    x[7, 1] = NAN
    with pytest.raises(
        NotApplicable, match="101 records without a missing cell, the data have 100; fill the gaps"
    ):
        sdc.pil(x, x)


def test_variance_of_a_correlation_at_0_is_its_limit():
    u, v = (axis.ravel() for axis in np.meshgrid(np.arange(-5.0, 6), np.arange(-5.0, 6)))
    z = np.column_stack([u, v]) / math.sqrt(10)  # r = 0 and, as columns are independent, m22 = 1
    every = np.array([True])
    moments = Moments(z)
    assert moments.correlations(every)[0] == pytest.approx(0, abs=1e-15)
    assert moments.variance_of_correlations(every)[0] == pytest.approx(1 / 121)
    near = Moments(np.column_stack([z[:, 0], z[:, 1] + 1e-7 * z[:, 0]]))
    assert near.variance_of_correlations(every)[0] == pytest.approx(1 / 121, rel=1e-6)


def test_variance_of_a_correlation_is_that_of_samples():
    rng = np.random.default_rng(5)
    draws = rng.normal(size=(2000, 200, 2))
    draws[:, :, 1] = 0.6 * draws[:, :, 0] + 0.8 * draws[:, :, 1]
    found = [np.corrcoef(draw, rowvar=False)[0, 1] for draw in draws]
    whole = Moments(draws.reshape(-1, 2))
    expected = whole.variance_of_correlations(np.array([True]))[0] * whole.n / 200
    assert np.var(found) == pytest.approx(expected, rel=0.15)


def test_pil_of_constant_columns():
    x = np.column_stack([data(150), np.full(150, 0.1), 2 * data(150)[:, 0]])
    kept = losses_by_family(x, x)
    assert all((values == 0).all() for values in kept.values())
    assert kept["correlations"].size == 6  # of ten pairs, four with the constant column
    moved = x.copy()
    moved[:, 3] += 0.1
    assert losses_by_family(x, moved)["means"].tolist() == [0, 0, 0, 1, 0]
    assert losses_by_family(x, moved)["quantiles"].mean() == pytest.approx(0.2)
    lost = x.copy()
    lost[:, 0] = 3.0
    assert losses_by_family(x, lost)["correlations"].tolist() == [1, 1, 1, 0, 0, 0]
    both = shaken(x)
    both[:, 4] = 2 * both[:, 0]  # perfectly correlated before and after
    assert losses_by_family(x, both)["correlations"][2] == 0


def test_what_has_no_use_for_weights_says_so():
    x = data(150)
    names = ["il_correl", "eigen", "ci_overlap", "covariance_loss", "pil", "pmse"]
    result = sdc.Microdata(x, weights=np.arange(1.0, 151)).evaluate(shaken(x), metrics=names)
    assert [note.split()[0] for note in result.notes if "whatever its weight" in note] == names
    assert not any("weight" in note for note in sdc.evaluate(x, shaken(x), metrics=names).notes)
