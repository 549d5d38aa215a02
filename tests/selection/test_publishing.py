"""What is handed out has lost the order of its rows, its key and the numbers of its units; nothing else."""

from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import sdckit as sdc
from calls import called
from cases import each
from sdckit.core.randomness import derived, draw_generator, secret_order
from secret_bytes import entropy
from sweeps import frame

N = 300


def survey(n=N):
    """Records sorted by every amount, with key, units, a column to drop and one to publish as it is."""
    rng = np.random.default_rng(3)
    base = np.sort(rng.lognormal(8, 1, n))
    return pl.DataFrame(
        {
            "id": [f"p{i:04d}" for i in range(n)],
            "household": np.arange(n) // 3 + 700,
            "secret": rng.integers(0, 9, n),
            "place": np.arange(n),
            "income": base.round(2),
            "tax": (base * 0.2).round(2),
        }
    )


COLUMNS = {
    "columns": ["income", "tax"],
    "key": "id",
    "unit": "household",
    "drop": "secret",
    "untouched": "place",
}
ROLES = COLUMNS | {"metrics": "brmae"}
HOW = {"method": "noise", "percent": 1, **ROLES}


def handed_out(data=None, **more):
    return called("release", survey() if data is None else data, **HOW | more)


def in_order(release):
    return release.data[np.argsort(release.rows)]


# --- the order ---


def test_every_order_is_as_likely_as_any_other():
    """Chi-squared over all 24 orders of four rows: far from its tail."""
    secrets = (derived(entropy(1), f"order {draw}") for draw in range(4800))
    orders = [tuple(secret_order(4, secret, "rows").tolist()) for secret in secrets]
    counts = [orders.count(order) for order in permutations(range(4))]
    assert sum(counts) == 4800
    assert stats.chisquare(counts).pvalue > 1e-6


def test_the_order_of_rows_tells_nothing_of_any_column():
    """The file is sorted by everything; of forty releases, none is, and all together by chance only."""
    data, found = survey(), []
    for _ in range(40):
        release = handed_out(data)
        rows = np.arange(N)
        known = [data[name].to_numpy()[release.rows] for name in ("household", "place", "income", "tax")]
        known += [release.data[name].to_numpy() for name in ("household", "income", "tax")]
        found.append([stats.spearmanr(rows, column).statistic for column in known])
    deviation = 1 / np.sqrt(N - 1)
    assert np.abs(found).max() < 5 * deviation
    assert np.abs(np.mean(found, axis=0)).max() < 5 * deviation / np.sqrt(40)


def test_the_cells_are_those_of_mask():
    masked = sdc.Microdata(survey(), **COLUMNS).mask(
        "noise", percent=1, rng=draw_generator(entropy(4), 1), decimals="original"
    )
    published = ["place", "income", "tax"]
    assert in_order(handed_out(entropy=entropy(4))).select(published).equals(masked.select(published))


# --- entropy ---


def test_the_same_entropy_gives_the_same_release_again_and_none_another():
    one, again, other = (handed_out(entropy=entropy(seed)) for seed in (5, 5, 6))
    assert one.data.equals(again.data)
    assert np.array_equal(one.rows, again.rows)
    assert not np.array_equal(one.rows, other.rows)
    fresh = [handed_out().rows.tolist() for _ in range(3)]
    assert fresh[0] != fresh[1] != fresh[2] != fresh[0]


def test_each_draw_has_an_order_of_its_own():
    """The order follows from entropy and number of the draw: the last draw is repeated without the others."""
    release = called("release", survey(), "mdav", k=3, entropy=entropy(7), **ROLES)
    orders = [secret_order(N, derived(entropy(7), f"order {draw}"), "rows") for draw in (1, 2)]
    assert np.array_equal(orders[0], release.rows)
    assert not np.array_equal(*orders)


def test_orders_for_different_purposes_are_unrelated():
    rows, units = (secret_order(500, b"secret", purpose) for purpose in ("rows", "units"))
    assert abs(stats.spearmanr(rows, units).statistic) < 5 / np.sqrt(499)


# --- key, dropped columns, units, groups ---


@pytest.mark.parametrize("keep_order", [False, True])
def test_neither_key_nor_dropped_columns_are_handed_out(keep_order):
    release = handed_out(keep_order=keep_order)
    assert release.data.columns == ["household", "place", "income", "tax"]
    assert (release.rows.tolist() == list(range(N))) == keep_order


def test_mask_keeps_the_key_and_the_order_but_nothing_that_is_dropped():
    masked = sdc.Microdata(survey(), **COLUMNS).mask("mdav", k=3)
    left = ["id", "household", "place"]
    assert masked.columns == [*left, "income", "tax"]
    assert masked.select(left).equals(survey().select(left))


def test_units_get_fresh_numbers_that_keep_the_grouping():
    data = survey().with_columns(household=pl.col("household").cast(str).sort_by(pl.col("income") % 7))
    data = data.with_columns(household=pl.when(pl.arange(N) % 50 == 0).then(None).otherwise("household"))
    release = handed_out(data, entropy=entropy(2))
    before, after = data["household"], in_order(release)["household"]
    assert after.dtype == pl.Int64
    assert (before.is_null() == after.is_null()).all()
    pairs = pl.DataFrame({"before": before, "after": after}).drop_nulls().unique()
    assert pairs.height == before.n_unique() - 1 == after.n_unique() - 1
    assert sorted(pairs["after"]) == list(range(1, pairs.height + 1))
    ranks = pairs.sort("before")["after"].to_numpy()
    assert abs(stats.spearmanr(np.arange(ranks.size), ranks).statistic) < 5 / np.sqrt(ranks.size - 1)
    assert not after.equals(in_order(handed_out(data, entropy=entropy(3)))["household"])


def test_groups_get_fresh_numbers_as_well():
    data = survey().drop("household")
    roles = COLUMNS | {"unit": None, "groups": "group"}
    release = called("release", data, "mdav", k=3, **roles, metrics="brmae", entropy=entropy(1))
    masked = called("mask", data, "mdav", k=3, **roles)
    pairs = pl.DataFrame({"old": masked["group"], "new": in_order(release)["group"]}).unique()
    assert pairs.height == masked["group"].n_unique() == pairs["new"].n_unique()
    assert sorted(pairs["new"]) == sorted(pairs["old"])
    assert pairs["new"].to_list() != pairs["old"].to_list()
    array = sdc.release(frame().to_numpy(), "mdav", k=3, groups="group", metrics="brmae")
    assert sorted(set(array.data[:, -1])) == list(range(1, 21))


# --- kinds of tables ---


def test_labels_of_pandas_rows_are_not_handed_out():
    data = frame().to_pandas().set_index(pd.Index([f"p{i}" for i in range(60)]))
    release = sdc.release(data, "mdav", k=3, entropy=entropy(1))
    assert release.data.index.equals(pd.RangeIndex(60))
    assert sdc.release(data, "mdav", k=3, keep_order=True).data.index.equals(pd.RangeIndex(60))
    assert sdc.Microdata(data, drop="c").mask("mdav", k=3).index.equals(data.index)


KINDS = {
    "numpy": lambda data: data.to_numpy(),
    "one column": lambda data: data["a"].to_numpy(),
    "pandas": lambda data: data.to_pandas(),
    "numbered columns": lambda data: pd.DataFrame(data.to_numpy()),
    "series": lambda data: data["a"].to_pandas(),
    "polars": lambda data: data,
    "pyarrow": lambda data: data.to_arrow(),
    "batch": lambda data: data.to_arrow().combine_chunks().to_batches()[0],
}


@pytest.mark.long
@each("kind", KINDS)
def test_every_kind_of_table_is_shuffled_and_can_be_measured_again(kind):
    data = KINDS[kind](frame())
    release = sdc.release(data, "noise", percent=20, entropy=entropy(1), metrics=["brmae", "linkage"])
    assert type(release.data) is type(data)
    kept = sdc.release(
        data, "noise", percent=20, entropy=entropy(1), metrics=["brmae", "linkage"], keep_order=True
    )
    assert np.array_equal(np.asarray(release.data), np.asarray(kept.data)[release.rows])
    how = {"disclosure": release.disclosure, "metrics": ["brmae", "linkage"]}
    again = called("evaluate", data, release.data, rows=release.rows, **how)
    assert again.table.equals(release.evaluation.table)
    assert called("evaluate", data, release.data, **how | {"disclosure": release}).table.equals(again.table)


# --- how it is measured ---


def test_records_follow_the_original_order():
    release = handed_out(entropy=entropy(1))
    again = called("evaluate", survey(), release.data, **ROLES, rows=release.rows, per_record=True)
    masked = sdc.Microdata(survey(), **COLUMNS).mask(
        "noise", percent=1, rng=draw_generator(entropy(1), 1), decimals="original"
    )
    expected = called("evaluate", survey(), masked, **ROLES, per_record=True)
    assert again.records.equals(expected.records)
    assert again["brmae"] == release.evaluation["brmae"] == expected["brmae"]


@pytest.mark.long
def test_a_kept_order_is_measured():
    """The file is sorted by income, so that a row's place finds its record; shuffled, it does not."""
    how = {"method": "noise", "percent": 300, "metrics": "linkage"}
    more = ROLES | how | {"untouched": [], "drop": ["secret", "place"]}
    kept, shuffled = (called("release", survey(), **more, keep_order=keep) for keep in (True, False))
    assert kept.evaluation["linkage"] > 0.9
    assert shuffled.evaluation["linkage"] < 0.3


def test_rules_on_a_column_that_is_not_published():
    data = frame().with_columns(total=pl.col("a") + pl.col("b"))
    for role in ({"drop": "total"}, {"key": "total"}):
        how = {"columns": ["a", "b"], "rules": ["a >= 0", "total = a + b"], "metrics": "linkage"}
        release = called("release", data, "noise", percent=20, **how, **role)
        assert release.data.columns == ["a", "b", "c"]
        assert release.evaluation["linkage"] >= 0


@pytest.mark.parametrize(
    ("rows", "error", "text"),
    [
        ([0, 1], ValueError, "rows are not the numbers from 0 to 59, each once; give the original row of"),
        ([0] * 60, ValueError, "rows are not the numbers from 0 to 59, each once"),
        (range(1, 61), ValueError, "rows are not the numbers from 0 to 59"),
        ([0.5] * 60, TypeError, "rows are no list of whole numbers; give the original row of each"),
        ("rows", TypeError, "rows are no list of whole numbers"),
        ([[0]], TypeError, "rows are no list of whole numbers"),
    ],
)
def test_rows_that_are_no_order_are_refused(rows, error, text):
    with pytest.raises(error, match=text):
        sdc.evaluate(frame(), frame(), rows=rows)


# --- numbers of records ---


@pytest.mark.parametrize("keep_order", [False, True])
def test_numbers_of_records_follow_no_order(keep_order):
    """Neither that of the published rows nor that of the original, whose every column is sorted."""
    found = []
    for _ in range(20):
        release = handed_out(numbered="record", keep_order=keep_order)
        numbers = release.data["record"].to_numpy()
        assert sorted(numbers) == list(range(1, N + 1))
        orders = (np.arange(N), release.rows, release.data["household"], release.data["income"])
        found.append([stats.spearmanr(numbers, order).statistic for order in orders])
    assert np.abs(found).max() < 5 / np.sqrt(N - 1)
    assert np.abs(np.mean(found, axis=0)).max() < 5 / np.sqrt(20 * (N - 1))


@pytest.mark.long
@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, np.asarray])
def test_numbers_of_records_are_a_column_of_every_kind_of_table(kind):
    data = frame().to_numpy() if kind is np.asarray else kind(frame().to_dict(as_series=False))
    release = sdc.release(data, "mdav", k=3, numbered="record", metrics=["brmae", "linkage"])
    plain = sdc.release(data, "mdav", k=3, metrics=["brmae", "linkage"])
    assert type(release.data) is type(data)
    numbers = release.data[:, -1] if kind is np.asarray else np.asarray(release.data["record"])
    assert sorted(numbers) == list(range(1, 61))
    assert release.evaluation["linkage"] == plain.evaluation["linkage"]


@pytest.mark.parametrize("name", ["income", "id", " ", "all", 3])
def test_the_column_of_numbers_needs_a_name_of_its_own(name):
    with pytest.raises(ValueError, match=f"the column for record numbers cannot be named {name!r}, which"):
        handed_out(numbered=name)
