"""Files that looked safe and were not: what is printed for them by default is what an intruder finds.

Each file is of the kind on which the figure that was printed differed from the true one. Both stand in the
comments; the slow intruder, written from the definitions alone, judges ours.
"""

import json

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from attacked_files import amounts, codes, replaced
from calls import called
from command import good
from intruder import linkage
from intruder_distances import naive_linkage
from intruder_release import describe
from intruder_together import linkage_together
from intruder_units import linkage_units
from secret_bytes import drawn_from, entropy

SIZE = 240
FOUR = ("v0", "v1", "v2", "v3")


def released(table, method, parameters, columns=FOUR, *, metrics=("linkage",), **roles):
    """From a table, its release by default options, its linkage by the slow intruder, and the naive one."""
    made = sdc.Microdata(pl.DataFrame(table), columns=columns, **roles).release(
        method, metrics=metrics, entropy=entropy(1), **parameters
    )
    aligned = made.data[np.argsort(made.rows)].to_dict(as_series=False)
    return made, *judged(table, aligned, method, parameters, columns, **roles)


def judged(table, published, method, parameters, columns=FOUR, positions=None, **roles):
    """From a table and its aligned published one, the linkage of the slow intruder and the naive one."""
    others = tuple(name for name in published if name not in {*columns, roles.get("unit")})
    roles = {name: value for name, value in roles.items() if name in {"unit", "unknown"}}
    release = describe(table, method, parameters, columns, untouched=others, **roles)
    found = linkage(table, published, release, positions, one_to_one=positions is None)
    return found["linkage"], naive_linkage(table, published, columns)


def assert_honest(ours, slow, *, exactly=True):
    """Check that a printed linkage is not below that of the slow intruder, or that it is the same."""
    assert ours >= slow - 1e-9
    assert not exactly or ours == pytest.approx(slow, abs=1e-9)


def test_household_survey_with_untouched_demographics():
    demographics = codes(SIZE, 8, seed=2)
    table = amounts(SIZE, 4, seed=1) | demographics
    made, slow, naive = released(table, "mdav", {"k": 10}, untouched=list(demographics))
    assert naive <= 0.1  # printed: 0.094, limit met
    assert made.evaluation["linkage"] >= 0.83  # true: 0.83
    assert_honest(made.evaluation["linkage"], slow)
    with pytest.raises(sdc.LimitsMissed, match=r"untouched columns (d[0-7], ){7}d[0-7] alone single"):
        sdc.Microdata(pl.DataFrame(table), columns=FOUR, untouched=list(demographics)).recommend(
            max_risk={"linkage": 0.1}
        )


def test_panel_of_firms():
    rng = np.random.default_rng(3)
    logs = np.repeat(1.5 * rng.normal(size=(20, 4)), 12, axis=0) + 0.25 * rng.normal(size=(SIZE, 4))
    table = {name: np.exp(logs[:, j]).tolist() for j, name in enumerate(FOUR)}
    firms = np.repeat(np.arange(20), 12)
    masked = sdc.mask(pl.DataFrame(table), "mdav", k=10)  # rows are grouped as if each were a firm
    original = pl.DataFrame(table).with_columns(firm=firms)
    known = {"unit": "firm", "method": "mdav", "parameters": {"k": 10}, "columns": FOUR}
    found = called("evaluate", original, masked.with_columns(firm=firms), **known)
    assert found["dbrl"] <= 0.1 + 1e-12  # printed: 0.093, met
    published = masked.with_columns(firm=firms).to_dict(as_series=False)
    whole = original.to_dict(as_series=False)
    slow = linkage_units(whole, published, describe(whole, "mdav", {"k": 10}, FOUR, unit="firm"))
    assert found["linkage_units"] >= 0.58  # true: 0.58 of the rows lead to the right firm
    assert_honest(found["linkage_units"], slow["linkage_units"], exactly=False)


def test_unique_survey_weights(tmp_path):
    table = amounts(SIZE, 4, seed=4)
    table["weight"] = np.random.default_rng(5).uniform(100, 900, SIZE).tolist()
    made, slow, naive = released(table, "mdav", {"k": 10}, weights="weight", untouched="weight")
    assert naive <= 0.1  # printed: 0.094, met
    assert made.evaluation["linkage"] == slow == 1.0  # true: 1.00
    pl.DataFrame(table).write_csv(tmp_path / "data.csv")
    words = ["mask", "data.csv", "-o", "out.csv", "--method", "mdav", "--set", "k=10", "--weights", "weight"]
    assert printed_linkage(tmp_path, *words) == 1.0


def printed_linkage(folder, *words):
    """From the words of a command, the linkage that it prints."""
    done = good(folder, *words, "--metrics", "linkage", "--json")
    rows = json.loads(done.stdout)["table"]
    return next(row["value"] for row in rows if (row["variable"], row["stratum"]) == ("all", "all"))


@pytest.mark.long
def test_places_of_missing_cells():
    table = replaced(amounts(SIZE, 8, seed=6), 0.1, None, seed=7)
    made, slow, naive = released(table, "noise", {"percent": 150}, tuple(table))
    assert naive <= 0.08  # printed: 0.058
    assert made.evaluation["linkage"] >= 0.2  # true: 0.212
    assert_honest(made.evaluation["linkage"], slow, exactly=False)


@pytest.mark.long
def test_kept_zeros():
    both = ("linkage", "linkage:attacks=nearest")
    table = replaced(amounts(SIZE, 8, seed=8), 0.4, 0.0, seed=9)
    made, slow, naive = released(table, "zero_preserving_noise", {"percent": 150}, tuple(table), metrics=both)
    assert naive <= 0.2  # printed: 0.051
    assert made.evaluation["linkage"] >= 0.44  # true: 0.444
    assert_honest(made.evaluation[both[1]], slow, exactly=False)
    assert made.evaluation["linkage"] >= slow - 0.01  # attacks without a law may find two more by luck


def test_sorted_rows(tmp_path):
    table = amounts(SIZE, 4, seed=10)
    original = pl.DataFrame(table).sort("v0")
    masked = sdc.mask(original, "rank_swap", p=0.3, rng=1)
    found = sdc.evaluate(original, masked, made_by=sdc.Method("rank_swap", p=0.3), metrics="linkage")
    aligned = [frame.to_dict(as_series=False) for frame in (original, masked)]
    slow, naive = judged(*aligned, "rank_swap", {"p": 0.3}, positions=list(range(SIZE)))
    assert naive <= 0.05  # printed: 0.008
    assert found["linkage"] == slow == 1.0  # true: every value recovered
    how = {"a": 0.3, "entropy": entropy(1), "metrics": "linkage"}  # swaps are undone in any order of rows
    shuffled = called("release", original, "rank_noise", **how)
    assert shuffled.evaluation["linkage"] <= 0.15  # what is handed out has another order
    kept = called("release", original, "rank_noise", keep_order=True, **how)
    assert kept.evaluation["linkage"] == 1.0
    original.write_csv(tmp_path / "data.csv")
    words = ["mask", "data.csv", "-o", "out.csv", "--method", "rank_swap", "--set", "p=0.3", "--seed", "1"]
    assert printed_linkage(tmp_path, *words) == 1.0


def test_credit_of_equal_published_records():
    table = pl.DataFrame(amounts(SIZE, 4, seed=12))
    masked = sdc.mask(table, "mdav", k=10)
    known = {"method": "mdav", "parameters": {"k": 10}, "metrics": ["linkage", "linkage_outliers"]}
    found = called("evaluate", table, masked, per_record=True, **known)
    risks = found.records["linkage"].to_numpy()
    assert risks == pytest.approx(np.full(SIZE, 0.1))  # printed: 381 records "with risk 1.0"; true: 0.1 each
    assert found["linkage"] == pytest.approx(0.1)
    assert found["linkage_outliers"] == pytest.approx(0.1)


def test_pca_microaggregation_run_again():
    made, slow, naive = released(amounts(SIZE, 4, seed=13), "pca_microaggregation", {"k": 5})
    assert naive <= 0.1  # printed: 0.051
    assert made.evaluation["linkage"] == pytest.approx(0.2)  # true: 0.200
    assert_honest(made.evaluation["linkage"], slow)


@pytest.mark.long
def test_window_of_rank_swapping_is_not_dropped_on_the_way(tmp_path):
    table = amounts(SIZE, 4, seed=15)
    data = pl.DataFrame(table)
    data.write_csv(tmp_path / "data.csv")
    made, slow, naive = released(table, "rank_swap", {"p": 0.15})
    words = ["mask", "data.csv", "-o", "out.csv", "--method", "rank_swap", "--set", "p=0.15"]
    with drawn_from(1):
        masked = printed_linkage(tmp_path, *words, "--release", "--crosswalk", "order.csv")
    how = ["--made-by", "rank_swap", "--set", "p=0.15", "--crosswalk", "order.csv"]
    measured = printed_linkage(tmp_path, "evaluate", "data.csv", "out.csv", *how)
    again = sdc.evaluate(data, made, metrics="linkage")["linkage"]
    assert (
        made.evaluation["linkage"] == masked == measured == again
    )  # printed: 0.247 and 0.363; true: one number
    assert_honest(masked, slow, exactly=False)
    assert masked >= naive + 0.05


@pytest.mark.long
def test_ten_releases_of_a_file_masked_by_noise():
    table, size = amounts(160, 4, seed=14), 160
    data, noise = pl.DataFrame(table), {"percent": 50}
    made = [
        sdc.release(data, "noise", metrics="linkage", entropy=entropy(draw), **noise) for draw in range(10)
    ]
    single = [one.evaluation["linkage"] for one in made]
    found = sdc.evaluate(data, [one.data for one in made], made_by=made, together=True, metrics="linkage")
    release = describe(table, "noise", noise, FOUR)
    aligned = [one.data[np.argsort(one.rows)].to_dict(as_series=False) for one in made]
    slow = linkage_together(table, [(one, release) for one in aligned])
    assert 1 / size < min(single) <= max(single) <= 0.35  # printed: 0.19
    assert found["linkage"] >= 0.5  # true: 0.50
    assert_honest(found["linkage"], slow["linkage"], exactly=False)
