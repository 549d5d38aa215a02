"""Files with units: constant variables stay constant, and no unit dominates a group."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdckit as sdc
from calls import called
from cases import each
from sdckit.core.cells import number_values
from sdckit.masking.disclosure import Disclosure
from sdckit.masking.mask_table import constant_within, merge_dominated
from sdckit.masking.microaggregation import unit_values
from sdckit.metrics.pair import pair_by_row
from sdckit.risk.units import row_shares

GROUPING = [name for name, method in sdc.METHODS.items() if method.groups is not None]
PAIRED = [name for name, method in sdc.METHODS.items() if method.paired]
UNMASKED = "ignore:not masked, every value"


def households(n=60, seed=0, members=4):
    """Persons in households of several members: an income of the household, two amounts of each person."""
    rng = np.random.default_rng(seed)
    unit = np.sort(rng.integers(0, n // members, n))
    income = rng.lognormal(3, 1, n // members).round(2)[unit]
    own = rng.lognormal(2, 1, (n, 2)).round(2)
    return pl.DataFrame({"home": unit + 100, "income": income, "wage": own[:, 0], "rent": own[:, 1]})


def largest_shares(groups, units):
    """The largest share that one unit holds of each group."""
    return [np.bincount(units[groups == group]).max() / (groups == group).sum() for group in set(groups)]


@pytest.mark.filterwarnings(UNMASKED)
@each("method", PAIRED)
def test_variables_constant_within_units_stay_constant(method):
    data = households(90)
    masked = sdc.Microdata(data, unit="home", columns=["income", "wage", "rent"]).mask(method, rng=1)
    per_unit = masked.group_by("home").agg(pl.col("income").n_unique())["income"]
    assert per_unit.max() == 1
    assert masked["home"].n_unique() == data["home"].n_unique()


@each("columns", [["income", "wage"], ["wage", "rent"], ["income"]])
@each("method", GROUPING)
def test_groups_are_not_dominated_by_a_unit(method, columns):
    data = households(200, members=5)
    masked = sdc.Microdata(data, unit="home", columns=columns).mask(method, k=4, groups="group")
    groups, units = masked["group"].to_numpy(), number_values(data["home"].to_numpy())
    assert max(largest_shares(groups, units)) <= 1 / 4
    means = masked.group_by("group").agg(pl.col(columns).n_unique())
    assert all(means[name].max() == 1 for name in columns)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 4), st.sampled_from(GROUPING), st.booleans())
def test_a_row_leads_to_its_unit_in_at_most_one_of_k_cases(seed, k, method, constant):
    columns = ["income", "wage"] if constant else ["wage", "rent"]
    data = households(60, seed, members=3).select("home", *columns)
    roles = {"columns": columns, "unit": "home"}
    original = sdc.Microdata(data, **roles)
    if int(np.bincount(original.original.units).max()) * k > 60:
        with pytest.raises(ValueError, match=r"one unit holds \d+ of them, more than 1/k"):
            original.mask(method, k=k)
        return
    pair = pair_by_row(original.original, original.mask(method, k=k), rows=np.arange(60))
    pair.disclose(Disclosure.of(method, {"k": k}, columns=columns))
    for name, shares in row_shares(pair, original.original.units):
        assert shares.mean() <= 1 / k + 1e-9, name


def test_what_cannot_be_hidden_is_refused_in_one_line():
    data = households(60).with_columns(home=pl.Series([1] * 30 + list(range(2, 32))))
    with pytest.raises(ValueError, match=r"^the file has 60 records and one unit holds 30 of them, "):
        sdc.Microdata(data, unit="home", columns=["wage", "rent"]).mask("mdav", k=3)
    with pytest.raises(ValueError, match=r"^the file, counted in units, has"):
        sdc.Microdata(households(60, members=20), unit="home", columns="income").mask("mdav", k=5)


def test_sweeps_and_releases_mask_units_alike():
    data = households(120)
    roles = {"columns": ["income", "wage"], "unit": "home"}
    found = called(
        "sweep", data, {"mdav": {"k": [3]}}, metrics=["linkage_units", "brmae"], workers=1, **roles
    )
    release = called("release", data, "mdav", k=3, decimals=None, metrics=["brmae"], **roles)
    assert found.table.filter(metric="brmae")["value"].to_list() == [release.evaluation["brmae"]]
    assert release.data.group_by("home").agg(pl.col("income").n_unique())["income"].max() == 1


# --- the parts ---


def test_constant_columns_and_values_of_units():
    nan = np.nan
    values = np.array([[1.0, 1.0, nan], [1.0, 2.0, nan], [5.0, 3.0, 7.0]])
    units = np.array([0, 0, 1])
    assert constant_within(values, units).tolist() == [True, False, True]
    assert np.array_equal(unit_values(values, units), [[1.0, 1.5, nan], [5.0, 3.0, 7.0]], equal_nan=True)


def test_dominated_groups_are_merged_with_the_nearest():
    values = np.array([[0.0], [0.1], [1.0], [1.1], [9.0], [9.1]])
    units, groups = np.array([0, 0, 1, 2, 3, 4]), np.array([0, 0, 1, 1, 2, 2])
    assert merge_dominated(values, groups, units, 2).tolist() == [0, 0, 0, 0, 1, 1]
    assert merge_dominated(values, np.array([0, 0, 1, 1, -1, -1]), units, 2).tolist() == [0, 0, 0, 0, -1, -1]


# --- a panel ---

ALONE = [name for name, method in sdc.METHODS.items() if method.group_size and method.groups is None]


def panel(firms=20, years=6, seed=4):
    """Firms whose amounts hardly change from year to year, with a sector's size that never does."""
    rng = np.random.default_rng(seed)
    firm = np.repeat(np.arange(firms), years)
    level = np.repeat(rng.lognormal(6, 1.5, (firms, 2)), years, axis=0)
    amounts = (level * rng.lognormal(0, 0.02, level.shape)).round(1)
    size = rng.lognormal(4, 1, firms).round(1)[firm]
    return pl.DataFrame({"firm": firm, "size": size, "turnover": amounts[:, 0], "wages": amounts[:, 1]})


@pytest.mark.filterwarnings(UNMASKED)
@pytest.mark.parametrize("how", [{}, {"aggregate": "median"}])
@pytest.mark.parametrize("method", ALONE)
def test_groups_of_a_single_variable_are_not_dominated_by_a_unit(method, how):
    """Without merging, the years of one firm would be a group, and the group's mean the firm's own."""
    if how and method != "individual_ranking":
        return
    data, k = panel(), 4
    units = data["firm"].to_numpy()
    for column in ("turnover", "size"):
        masked = called("mask", data, method, k=k, unit="firm", columns=column, **how)[column].to_numpy()
        assert max(largest_shares(number_values(masked), units)) <= 1 / k
        alone = called("mask", data.drop("firm"), method, k=k, columns=column, **how)[column].to_numpy()
        assert max(largest_shares(number_values(alone), units)) > 1 / k, "the attack works without units"
        original = sdc.Microdata(
            data, unit="firm", columns=column, drop=[n for n in data.columns[1:] if n != column]
        ).original
        pair = pair_by_row(
            original, data.select("firm").with_columns(pl.Series(column, masked)), rows=np.arange(120)
        )
        pair.disclose(Disclosure.of(method, {"k": k}, columns=[column]))
        for name, shares in row_shares(pair, original.units):
            assert shares.mean() <= 1 / k + 1e-9, name


@pytest.mark.long
@pytest.mark.filterwarnings(UNMASKED)
@pytest.mark.parametrize("method", ["noise", "correlated_noise", "rank_swap", "mdav", *ALONE])
def test_a_released_panel_keeps_what_is_constant_and_numbers_firms_anew(method):
    data, columns = panel(), ["size", "turnover", "wages"]
    release = sdc.Microdata(data, unit="firm", columns=columns).release(
        method, metrics=["brmae"], numbered="record"
    )
    released = release.data
    assert released.group_by("firm").agg(pl.col("size").n_unique())["size"].to_list() == [1] * 20
    pairs = pl.DataFrame({"old": data["firm"].to_numpy()[release.rows], "new": released["firm"]}).unique()
    assert pairs.height == 20
    assert sorted(pairs["new"]) == list(range(1, 21))
    assert sorted(released["record"]) == list(range(1, 121))
    assert released.sort("record")["firm"].to_list() != sorted(released["firm"]), "numbers follow no firm"
    assert not np.array_equal(released["size"].to_numpy(), data["size"].to_numpy()[release.rows])


def test_units_across_strata_are_refused_where_they_share_a_value():
    data = households(120).with_columns(sex=pl.Series(["f", "m"] * 60))
    roles = {"unit": "home", "by": "sex"}
    text = "^column 'income' is constant within units, and units that lie in several strata would get several"
    with pytest.raises(ValueError, match=text):
        called("mask", data, "noise", columns=["income", "wage"], **roles)
    with pytest.raises(ValueError, match=text):
        called("sweep", data, {"noise": {"percent": [5]}}, columns=["income", "wage"], **roles)
    assert called("mask", data, "noise", columns=["wage", "rent"], **roles).height == 120
    whole = data.with_columns(sex=pl.Series(["f", "m"])[(data["home"] % 2).to_list()])
    masked = called("mask", whole, "noise", columns=["income", "wage"], **roles)
    assert masked.group_by("home").agg(pl.col("income").n_unique())["income"].max() == 1


def test_rules_that_split_units_are_warned_of():
    data = households(80).with_columns(income=pl.col("income") + 100)
    roles = {"unit": "home", "columns": ["income", "wage"], "decimals": "original", "rng": 1}
    with pytest.warns(UserWarning, match="edit rules changed what was constant within units: 'income'; drop"):
        called("mask", data, "noise", percent=500, rules="wage <= income", **roles)
    masked = called(
        "mask", data, "noise", percent=500, rules="income >= 0", **roles
    )  # the same for all of a unit
    assert masked.group_by("home").agg(pl.col("income").n_unique())["income"].max() == 1
