"""pMSE: a model tells masked from original records."""

import numpy as np
import pytest

import naive_loss
import sdckit as sdc
from contract import data, shaken
from sdckit.core import checks
from sdckit.core.checks import NotApplicable
from sdckit.metrics.loss import propensity
from sdckit.metrics.loss.propensity import fit_logistic, model_columns, whiten
from sdckit.metrics.pair import pair_of


def parts(x, y, model="quadratic"):
    return sdc.METRICS["pmse"].score(pair_of(x, y), model=model).parts


def permuted(x, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.permutation(column) for column in x.T])


def test_worked_example():
    x, y = [1, 2, 3, 4], [2, 3, 4, 5]
    found = parts(x, y, "main")
    assert round(found["pmse"], 5) == 0.04181
    assert round(sdc.pmse(x, y, model="main"), 4) == 0.1672
    assert found["parameters"] == 2
    assert found["ratio"] == pytest.approx(found["pmse"] / (0.5**3 / 8))


@pytest.mark.parametrize("model", ["main", "quadratic"])
@pytest.mark.parametrize("seed", range(3))
def test_the_ridge_changes_nothing_where_the_files_overlap(model, seed):
    x = data(120, seed=seed) * [1, 100, 0.01]
    y = x + (shaken(x / [1, 100, 0.01], seed) - x / [1, 100, 0.01]) * [1, 100, 0.01]
    expected = naive_loss.pmse(x, y, quadratic=model == "quadratic")
    assert parts(x, y, model)["pmse"] == pytest.approx(expected, rel=1e-6)
    assert parts(x, y, model)["parameters"] == {"main": 4, "quadratic": 10}[model]
    assert sdc.pmse(x, y, model=model) == pytest.approx(4 * expected, rel=1e-6)


@pytest.mark.parametrize("model", ["main", "quadratic", "cart"])
def test_files_wholly_apart_score_1(model):
    x = data(100)
    assert sdc.pmse(x, x + 1000, model=model) == pytest.approx(1, abs=1e-6)
    assert sdc.pmse(x, x + 1000, model=model) <= 1


@pytest.mark.parametrize("model", ["main", "quadratic", "cart"])
def test_identical_records_in_any_order_score_exactly_0(model, tarragona):
    for x in (data(300), tarragona.to_numpy()):
        assert sdc.pmse(x, x, model=model) == 0
        assert sdc.pmse(x, x[::-1], model=model) == 0


def test_main_effects_cannot_see_microaggregation_and_permuted_columns(census):
    x = census.gather_every(3).to_numpy()
    for y in (sdc.mask(x, "mdav", k=5), permuted(x)):
        assert sdc.pmse(x, y, model="main") == 0
        assert sdc.pmse(x, y) > 0.05
        result = sdc.evaluate(x, y, metrics="pmse:model=main")
        assert any(note.endswith("microaggregated and permuted columns score 0") for note in result.notes)


@pytest.mark.parametrize(("dataset", "expected"), [("tarragona", 0.53), ("census", 0.67)])
def test_paired_noise_lies_far_below_a_ratio_of_1(dataset, expected, request):
    """Relative variance 0.09, main effects; theory is the trace of (S + N/2)^-1 N over p."""
    x = request.getfixturevalue(dataset).to_numpy()
    covariance = np.cov(x / x.std(0, ddof=1), rowvar=False)
    noise = 0.09 * np.eye(len(covariance))
    theory = np.trace(np.linalg.solve(covariance + noise / 2, noise)) / len(covariance)
    assert theory == pytest.approx(expected, abs=0.01)
    ratios = [parts(x, sdc.mask(x, "noise", percent=30, rng=seed), "main")["ratio"] for seed in range(60)]
    assert np.mean(ratios) == pytest.approx(expected, abs=4 * np.std(ratios) / np.sqrt(60))
    result = sdc.evaluate(x, sdc.mask(x, "noise", percent=30, rng=1), metrics="pmse:model=main")
    assert any("no proof of utility" in note for note in result.notes)


def test_redundant_columns_are_no_parameters(census):
    x = census.to_numpy()
    y = sdc.mask(x, "mdav", k=5)  # keeps PTOTVAL = PEARNVAL + POTHVAL
    twelve = 12 + 12 * 13 // 2
    assert parts(x, y)["parameters"] == 1 + twelve
    without = [j for j, name in enumerate(census.columns) if name != "POTHVAL"]
    assert sdc.pmse(x, y) == pytest.approx(sdc.pmse(x[:, without], y[:, without]), rel=1e-4)
    two = np.column_stack([data(60)[:, 0] > 50, data(60)[:, 1]])  # the square of a switch is the switch
    assert parts(two, shaken(two))["parameters"] == 6
    switch = two.copy()
    switch[:, 1] += np.arange(60) % 3
    assert parts(two, switch)["parameters"] == 5
    flat = np.column_stack([data(60)[:, 0], np.full(60, 7.0)])
    moved = flat + np.array([1.0, 0.0])
    assert parts(flat, moved)["parameters"] == 3
    assert sdc.pmse(flat, moved) == pytest.approx(sdc.pmse(flat[:, 0], moved[:, 0]), rel=1e-9)


def test_constant_files_cannot_be_distinguished():
    found = sdc.METRICS["pmse"].score(pair_of([0.1] * 6, [0.1] * 6), detail=True)
    assert found.value.overall == 0
    assert "ratio" not in found.parts


def test_value_does_not_see_linear_recoding():
    x, y = data(100), shaken(data(100))
    turn = np.random.default_rng(0).normal(size=(3, 3))
    assert sdc.pmse(x @ turn + 5, y @ turn + 5) == pytest.approx(sdc.pmse(x, y), rel=1e-6)


def test_a_model_with_too_many_parameters_is_refused():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 5))
    with pytest.raises(
        NotApplicable, match="has 21 parameters for 40 stacked records; use model=main or fewer"
    ):
        sdc.pmse(x, x)
    assert sdc.pmse(x, x, model="main") == 0
    with pytest.raises(NotApplicable, match="model=main has 6 parameters for 12 stacked records; use fewer"):
        sdc.pmse(x[:6], x[:6], model="main")
    with pytest.raises(
        NotApplicable, match="model=cart needs at least 20 complete records and the data have 19"
    ):
        sdc.pmse(x[:19], x[:19], model="cart")
    with pytest.raises(ValueError, match="unknown model 'tree'"):
        sdc.pmse(x, x, model="tree")


def test_a_tree_sees_what_a_regression_does_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 1))
    y = np.where(np.abs(x) < 0.25, x, np.round(2 * x) / 2)
    assert sdc.pmse(x, y) < 0.001
    assert sdc.pmse(x, y, model="cart") > 0.2
    found = parts(x, y, "cart")
    assert set(found) == {"pmse", "leaves"}
    assert 2 <= found["leaves"] <= 100
    assert sdc.pmse(x, y, model="cart") == sdc.pmse(x, y, model="cart")


def test_without_the_extra_a_tree_says_which(monkeypatch):
    loader = checks.import_module

    def absent(name):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return loader(name)

    monkeypatch.setattr(checks, "import_module", absent)
    with pytest.raises(ValueError, match=r'needs the package scikit-learn; pip install "sdckit\[stats\]"'):
        sdc.pmse(data(50), shaken(data(50)), model="cart")


def test_the_fit_is_a_maximum_where_files_are_apart():
    """Perfect separation: the ridge ends the climb, and no direction gains any more."""
    table = np.concatenate([np.arange(10.0), np.arange(20.0, 30)])[:, None]
    target = np.repeat([0.0, 1.0], 10)
    white = whiten(model_columns(table, "quadratic"))
    fitted = fit_logistic(white, target)
    predictor = np.log(fitted[:10] / (1 - fitted[:10]))  # of the other half 1 - p rounds to 0
    weights = np.linalg.lstsq(np.column_stack([np.ones(10), white[:10]]), predictor)[0]
    gradient = white.T @ (target - fitted) - propensity.RIDGE * 20 * weights[1:]
    assert np.abs(gradient).max() < 1e-9
    assert 10 < np.abs(predictor).max() < 60
