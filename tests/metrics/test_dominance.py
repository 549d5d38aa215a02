"""Dominance in published group means, against the slow twin."""

import numpy as np
import pytest

import sdckit as sdc
from cases import each
from intruder_disclosure import dominance as slow_dominance
from intruder_disclosure import group_labels

NAMES = ("a", "b", "c")


def table_of(values):
    return {
        name: [None if np.isnan(v) else v for v in column]
        for name, column in zip(NAMES, values.T, strict=True)
    }


@each("seed", range(25))
@each("method", ["mdav", "vmdav", "pca_microaggregation", "individual_ranking"])
def test_the_share_of_failing_cells_is_that_of_the_twin(seed, method):
    rng = np.random.default_rng(seed)
    values = rng.lognormal(sigma=2, size=(40, 3)) * rng.choice([-1, 1], size=(40, 3))
    k = int(rng.integers(2, 6))
    masked = sdc.mask(values, method, k=k)
    found = sdc.evaluate(values, masked, made_by=sdc.Method(method, k=k), metrics=["dominance"])
    original, published = table_of(values), table_of(masked)
    if method == "individual_ranking":
        parts = [(name, group_labels(published, [name])) for name in NAMES]
    else:
        parts = [(name, group_labels(published, NAMES)) for name in NAMES]
    cells = [len(set(labels)) for _, labels in parts]
    shares = [slow_dominance(original, published, [name], labels) for name, labels in parts]
    assert found["dominance"] == pytest.approx(np.average(shares, weights=cells), abs=1e-12)
    by_variable = found.table.filter(metric="dominance")["value"].to_list()[1:]
    assert by_variable == pytest.approx(shares, abs=1e-12)


def test_merged_groups_count_as_one_in_that_variable():
    values = np.array([[1.0, 5], [1.1, np.nan], [1.2, np.nan], [9.0, 6], [9.1, 7], [9.2, 8]])
    masked = sdc.mask(values, "mdav", k=3, gaps="merge")
    assert len(set(masked[~np.isnan(masked[:, 1]), 1])) == 1  # one value, of four contributors
    found = sdc.evaluate(values, masked, made_by=sdc.Method("mdav", k=3, gaps="merge"), metrics=["dominance"])
    rows = dict(found.table.filter(metric="dominance").select("variable", "n_used").rows())
    assert rows["x2"] == 4
    assert found["dominance"] == 0.0


def test_other_methods_publish_no_group_means():
    values = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(sdc.NotApplicable, match="dominance needs means of groups and noise publishes none"):
        sdc.evaluate(values, values + 1, made_by=sdc.Method("noise"), metrics=["dominance"])


def test_values_published_for_one_record_alone_are_given_away():
    values = np.random.default_rng(0).normal(size=(30, 2))
    assert sdc.dominance(values, values) == 1.0
    assert sdc.dominance(np.zeros((30, 2)), np.zeros((30, 2))) == 0.0


def test_tarragona_with_groups_of_three_gives_largest_values_away(tarragona):
    found = sdc.evaluate(
        tarragona, sdc.mask(tarragona, "mdav", k=3), made_by=sdc.Method("mdav", k=3), metrics=["dominance"]
    )
    assert 0.05 < found["dominance"] < 0.5
