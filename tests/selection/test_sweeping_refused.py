"""What a sweep refuses, before any work and in one line."""

import numpy as np
import polars as pl
import pytest

from sdckit.selection import task
from swept import frame, swept


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"replications": 0}, "replications is 0; give a whole number of at least 1"),
        ({"replications": 2.5}, "replications is 2.5; give a whole number"),
        ({"workers": 0}, "workers is 0; give a whole number of at least 1"),
        ({"draws": "some"}, "unknown rule for draws 'some'; choose from: common, fresh"),
        ({"ties": "coin"}, "unknown rule for ties 'coin'"),
        ({"metrics": []}, "the list of metrics is empty"),
        ({"metrics": "il1:zeros=never"}, "unknown zeros 'never'; choose from: keep, drop, error"),
        ({"metrics": "il1:foo=1"}, "unknown option of il1 'foo'; choose from: zeros, missing"),
        (
            {"metrics": "mae:missing=penalise"},
            "mae.* has no largest value, so missing='penalise' is undefined",
        ),
        ({"metrics": "brmae:ties=first:ties=last"}, "'ties'.* twice"),
        ({"plan": {"mdav": {"k": 61}}}, "the file has 60 records, fewer than k = 61 of mdav; lower k$"),
        ({"rng": "x"}, "rng is str 'x'; give None"),
        ({"columns": ["incom"]}, r"unknown column 'incom' \(did you mean 'income'\?\)"),
        (
            {"weights": np.ones(60), "metrics": "brmae:ties=first"},
            "weights go with ties='average' only, not 'first'",
        ),
        ({"weights": np.ones(60), "ties": "min"}, "weights go with ties='average' only, not 'min'"),
        ({"by": "region"}, "unknown column 'region'"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_any_work(options, text, tmp_path, monkeypatch):
    monkeypatch.setattr(task.Task, "measure", lambda *_: pytest.fail("worked"))
    with pytest.raises((ValueError, TypeError), match=text):
        swept(frame(), **{"folder": tmp_path / "x"} | options)
    assert not (tmp_path / "x").exists()


def test_a_stratum_smaller_than_a_group_is_refused_by_name():
    data = frame().with_columns(g=pl.Series(["a"] * 56 + ["b"] * 4))
    with pytest.raises(
        ValueError, match="stratum 'b' has 4 records, fewer than k = 5 of mdav; lower k or merge"
    ):
        swept(data, by="g")


@pytest.mark.parametrize("data", [[1.0], np.empty((0, 2)), pl.DataFrame({"a": ["x", "y"]})])
def test_data_that_cannot_be_masked_are_refused(data):
    with pytest.raises(ValueError, match=r"give at least 2( records)?$|no numeric column left; name some"):
        swept(data)


def test_numbers_that_leave_the_range_of_floats_are_refused_in_one_line():
    with pytest.raises(ValueError, match=r"^column 'x1' holds numbers too large for noise; divide them by"):
        swept([1e308, -1e308, 3.0, 4.0], {"noise": {"percent": 1000}})
