"""The law of a masking: kernels against slow twins, what shadows and folds find, what is warned of."""

import numpy as np
import polars as pl
import pytest

import naive_law
import sdckit as sdc
from calls import called
from sdckit.metrics.pair import pair_of
from sdckit.risk import law
from sdckit.risk.attacks import attack_result


def amounts(n, p, seed=1):
    rng = np.random.default_rng(seed)
    return np.exp(0.6 * rng.normal(size=(n, 1)) + 0.8 * rng.normal(size=(n, p)))


def linkage(original, masked, **options):
    return called("evaluate", original, masked, metrics="linkage", **options)


def some_pairs(n, seed=2):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n, 60), rng.integers(0, n, 60)


# --- kernels ---


def test_normal_likelihood_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    published, mean, sd = rng.normal(size=(9, 3)), rng.normal(size=(9, 3)), rng.uniform(0.5, 2, (9, 3))
    free, root = rng.random((9, 3)) < 0.7, np.linalg.qr(rng.normal(size=(3, 3)))[0] * [0.5, 1.0, 2.0]
    rows, originals = some_pairs(9)
    found = np.zeros(60)
    law.Normal(mean, sd, root).add(published, free, rows, originals, found)
    assert found == pytest.approx(
        naive_law.normal_likelihood(published, free, mean, sd, root, rows, originals)
    )


def test_moves_and_transitions_are_read_from_their_tables():
    rng = np.random.default_rng(1)
    x, y = amounts(40, 2), amounts(40, 2, seed=3)
    x[0, 0] = y[1, 1] = np.nan
    free = rng.random((40, 2)) < 0.8
    rows, originals = some_pairs(40)
    bins, tables = rng.integers(0, 3, (40, 2)), rng.normal(size=(2, 3, 7))
    moves = law.RankMoves(law.mid_ranks_of(x), bins, np.array([9.5, 30.0]), tables)
    found = np.zeros(60)
    moves.add(moves.read(y), free, rows, originals, found)
    expected = naive_law.moves_likelihood(
        moves.ranks, law.mid_ranks_of(y), free, bins, moves.limits, tables, rows, originals
    )
    assert found == pytest.approx(expected)
    lines, states = rng.integers(0, 3, (40, 2)), rng.integers(0, 4, (40, 2))
    tables, found = rng.normal(size=(2, 3, 4)), np.zeros(60)
    law.States([np.zeros(0)] * 2, lines, tables).add(states, rows, originals, found)
    assert found == pytest.approx(naive_law.transitions_likelihood(states, lines, tables, rows, originals))


def test_frequent_and_missing_values_are_states_of_their_own():
    column = np.array([0.0, np.nan, 3.0, 7.0, 0.0])
    found = law.States([np.array([0.0, 7.0])], np.zeros((5, 1), int), np.zeros((1, 1, 4))).of(column[:, None])
    assert found[:, 0].tolist() == [2, 1, 0, 3, 2]


def test_mid_ranks_share_ties_and_leave_gaps():
    values = np.array([[2.0], [1.0], [2.0], [np.nan]])
    assert law.mid_ranks_of(values)[:, 0] == pytest.approx(
        [2.5 * 4 / 3, 4 / 3, 2.5 * 4 / 3, np.nan], nan_ok=True
    )


def test_scales_of_cells_stay_numbers_where_values_are_extreme():
    x = amounts(60, 2)
    x[0, 0] = 1e90
    y = x * np.exp(0.1 * np.random.default_rng(3).normal(size=x.shape))
    reading = law.laws_of_folds(x, y)
    rows = np.arange(60)
    assert np.isfinite(reading.likelihood(rows, rows)).all()


# --- what is found ---


@pytest.mark.long
def test_permuted_truth_is_found_by_chance():
    x = amounts(120, 3)
    draws = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = sdc.mask(x, "noise", percent=20, rng=seed)[rng.permutation(120)]
        found = attack_result(pair_of(x, y), "folds", {"one_to_one": True})
        draws.append(found.credits.expected.mean())
    error = np.std(draws, ddof=1) / np.sqrt(len(draws))
    assert abs(np.mean(draws) - 1 / 120) <= 3 * error


def test_a_secret_rotation_is_found_by_folds_alone():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 4))
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    y = x @ rotation + 0.05 * rng.normal(size=x.shape)
    found = linkage(x, y).parts["linkage"]
    assert found["folds"] >= 0.95
    assert found["dbrl"] < 0.2


def test_secret_borders_of_blocks_are_found_by_folds():
    rng = np.random.default_rng(6)
    x = amounts(300, 4, seed=7)
    y = np.empty_like(x)
    for j in range(4):  # values are permuted within blocks of ranks that nobody is told
        order = np.argsort(x[:, j])
        borders = np.sort(rng.choice(np.arange(1, 300), 29, replace=False))
        for block in np.split(order, borders):
            y[block, j] = x[rng.permutation(block), j]
    found = linkage(x, y).parts["linkage"]
    assert found["folds"] >= 1.1 * found["dbrl"]


@pytest.mark.long
def test_a_wrongly_named_parameter_is_warned_of():
    x = amounts(300, 3)
    masked = sdc.mask(x, "noise", percent=20, rng=1)
    linkage(x, masked, method="noise", parameters={"percent": 20})  # no warning: all are errors here
    with pytest.warns(UserWarning, match="does not look as if masked by noise with these parameters"):
        linkage(x, masked, method="noise", parameters={"percent": 60})


def test_a_wrongly_named_method_is_warned_of():
    x = amounts(300, 4)
    masked = sdc.mask(x, "multiplicative_noise", percent=50, rng=1)  # as likely in the mean as noise is
    with pytest.warns(UserWarning, match="does not look as if masked by noise with these parameters"):
        linkage(x, masked, method="noise", parameters={"percent": 50})


@pytest.mark.long
def test_one_draw_of_a_rightly_named_method_is_no_reason_to_warn():
    x = amounts(160, 4, seed=14)
    for seed in range(10):
        masked = sdc.mask(x, "noise", percent=50, rng=seed)
        assert linkage(x, masked, method="noise", parameters={"percent": 50})["linkage"] < 0.5


def test_mean_over_draws_is_not_below_any_single_attack():
    x = amounts(150, 3, seed=8)
    parts = [
        linkage(
            x,
            sdc.mask(x, "multiplicative_noise", percent=30, rng=seed),
            method="multiplicative_noise",
            parameters={"percent": 30},
        )
        for seed in range(4)
    ]
    printed = np.mean([one["linkage"] for one in parts])
    for name in parts[0].parts["linkage"]:
        assert printed >= np.mean([one.parts["linkage"][name] for one in parts])


@pytest.mark.long
def test_a_sorted_file_is_read_by_its_rows():
    x = amounts(200, 3, seed=9)
    x = x[np.argsort(x[:, 0])]
    y = sdc.mask(x, "noise", percent=200, rng=2)
    named = {"method": "noise", "parameters": {"percent": 200}}
    assert linkage(x, y, **named).parts["linkage"]["row_order"] >= 0.99
    rows = np.random.default_rng(3).permutation(200)
    assert linkage(x, y[rows], rows=rows, **named)["linkage"] < 0.3


@pytest.mark.long
def test_a_column_changed_in_some_records_is_read_by_folds():
    rng = np.random.default_rng(10)
    table = pl.DataFrame(amounts(300, 2), schema=["a", "b"]).with_columns(
        town=pl.Series(rng.integers(0, 30, 300))
    )
    masked = sdc.Microdata(table, columns=["a", "b"], untouched="town").mask("noise", percent=100, rng=1)
    changed = np.where(rng.random(300) < 0.2, rng.integers(0, 30, 300), masked["town"])
    named = {"method": "noise", "parameters": {"percent": 100}, "columns": ["a", "b"]}
    some = linkage(table, masked.with_columns(town=pl.Series(changed)), untouched="town", **named)
    without = linkage(table, masked.drop("town"), **named)
    assert some["linkage"] >= 2 * without["linkage"]
    assert "unmasked columns that differ from the original in some records: town" in " ".join(some.notes)
