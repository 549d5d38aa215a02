"""Files with few records: grids of a search shrink to what the data allow, those of a sweep are refused."""

import polars as pl
import pytest

import sdckit as sdc
from command import good, run_here
from secret_bytes import entropy
from sweeps import frame

SMALL = 12


@pytest.fixture(scope="module")
def found():
    return sdc.sweep(frame(SMALL), metrics=["brmae", "dbrl"], rng=1, workers=1)


def test_usual_grids_end_where_the_records_do(found):
    for method in ("mdav", "individual_ranking"):
        tried = found.table.filter(method=method)["setting"].unique().sort().to_list()
        (grid,) = [parameter.grid for parameter in sdc.METHODS[method].parameters if parameter.grid]
        assert tried == [k for k in grid if k <= SMALL]
        assert len(tried) < len(grid)


def test_other_grids_stay_whole(found):
    for method in ("noise", "correlated_noise", "rank_noise"):
        (grid,) = [parameter.grid for parameter in sdc.METHODS[method].parameters if parameter.grid]
        assert found.table.filter(method=method)["setting"].n_unique() == len(grid)


@pytest.mark.long
@pytest.mark.parametrize("plan", [None, "mdav", ["mdav", "noise"]])
def test_recommend_works_on_few_records(plan):
    choice = sdc.recommend(frame(SMALL), max_risk={"dbrl": 0.5}, plan=plan, rng=1, workers=1)
    assert choice.met
    release = choice.release(entropy=entropy(1))
    assert release.evaluation["dbrl"] <= 0.5
    assert all(point.setting.options["k"] <= SMALL for point in choice.points if point.method == "mdav")


def test_the_smallest_stratum_ends_the_grid():
    data = frame(40).with_columns(g=pl.Series(["a"] * 33 + ["b"] * 7))
    table = sdc.Microdata(data, by="g").sweep("mdav", metrics="brmae", workers=1).table
    assert table["setting"].max() == 7


@pytest.mark.parametrize("k", [13, [2, 13], range(2, 14)])
def test_a_group_size_that_was_asked_for_is_refused(k):
    refusal = r"^the file has 12 records, fewer than k = 13 of mdav; lower k$"
    with pytest.raises(ValueError, match=refusal):
        sdc.sweep(frame(SMALL), {"mdav": {"k": k}}, workers=1)


@pytest.mark.parametrize("grid", [None, {"k": range(2, 14)}])
@pytest.mark.filterwarnings("ignore:stratum 'tiny' has 3 records")
def test_a_search_that_a_small_stratum_ends_names_it(grid):
    """With and without a grid: no stronger setting would help, since the stratum has none."""
    data = frame(40).with_columns(g=pl.Series(["a"] * 37 + ["tiny"] * 3))
    choice = sdc.Microdata(data, by="g").recommend(max_risk={"dbrl": 0.01}, plan={"mdav": grid}, workers=1)
    (sentence,) = choice.sentences
    assert not choice.met
    assert "stratum 'tiny' has 3 records, fewer than k = 4" in sentence
    assert ("merge strata" in sentence, "stronger" in sentence) == (True, False)


def test_a_named_grid_that_is_cut_is_warned_of_and_one_without_settings_refused():
    options = {"max_risk": {"dbrl": 0.5}, "workers": 1}
    with pytest.warns(UserWarning, match="the file has 12 records, fewer than k = 13 of mdav: settings"):
        assert sdc.recommend(frame(SMALL), plan={"mdav": {"k": [6, 13]}}, **options).met
    with pytest.raises(ValueError, match="the file has 12 records, fewer than k = 13 of mdav; lower k"):
        sdc.recommend(frame(SMALL), plan={"mdav": {"k": 13}}, **options)


def test_a_usual_grid_of_which_nothing_is_left_is_refused():
    data = frame(5).with_columns(g=pl.Series(["a"] * 4 + ["b"]))
    refusal = r"^stratum '[ab]' has \d records?, fewer than k = \d+ of mdav; lower k or merge strata$"
    with pytest.raises(ValueError, match=refusal):
        sdc.Microdata(data, by="g").sweep("mdav", workers=1)


def test_the_commands_work_on_few_records(tmp_path):
    frame(SMALL).write_csv(tmp_path / "data.csv")
    good(tmp_path, "sweep", "data.csv", "-o", "out", "--workers", "1", "--metrics", "brmae,dbrl")
    good(tmp_path, "recommend", "data.csv", "-o", "m.csv", "--max-risk", "dbrl=0.5", "--workers", "1")
    done = run_here(tmp_path, "sweep", "data.csv", "-o", "more", "--grid", "mdav.k=2:13")
    assert (done.returncode, done.stderr) == (
        2,
        "error: the file has 12 records, fewer than k = 13 of mdav; lower k\n",
    )
