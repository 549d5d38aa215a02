"""Masking of files in blocks: each method of the registry as in memory, whatever the blocks and the order."""

import numpy as np
import polars as pl
import pytest

import sdckit.masking  # noqa: F401 - registers the methods
from cases import few
from masked_files import CUTS, NAMES, in_memory, masked, matrix, survey
from sdckit.core.registry import METHODS

IN_BLOCKS = [name for name, method in METHODS.items() if method.in_blocks is not None]
OPTIONS = {
    "blocked_mdav": {"block": 120},
    "top_bottom_code": {"top": 0.03, "bottom": 0.4},
    "rank_swap": {"p": 0.1, "start": "highest", "bound": "exclusive"},
    "individual_ranking": {"k": 7},
    "correlated_noise": {"percent": 60},
}
GROUPED = [name for name in IN_BLOCKS if METHODS[name].in_blocks.how == "groups"]


@pytest.fixture(scope="module")
def frame():
    return survey()


@pytest.fixture(scope="module")
def file(tmp_path_factory, frame):
    path = tmp_path_factory.mktemp("files") / "survey.parquet"
    frame.write_parquet(path, row_group_size=133)
    return path


def cut_for(name, cut):
    return (cut[0], 10_000) if name == "mdav" else cut  # MDAV forms groups among all records of a stratum


@pytest.mark.parametrize("name", few(IN_BLOCKS, 3))
def test_the_file_is_the_same_however_it_is_cut(tmp_path, file, frame, name):
    options = {"by": "area", "decimals": "original", **OPTIONS.get(name, {})}
    found = [
        masked(file, tmp_path / f"{i}.parquet", name, cut=cut_for(name, cut), seed=i, retry=0.2, **options)
        for i, cut in enumerate(CUTS)
    ]
    first, notes = found[0]
    assert all(one.equals(first) and said == notes for one, said in found[1:])
    assert first.schema == frame.schema
    assert first.select("name", "area").equals(frame.select("name", "area"))
    if name in GROUPED:
        assert first.group_by("area", *NAMES).len()["len"].min() >= METHODS[name].defaults()["k"]
    else:
        assert first["money"].is_null().equals(frame["money"].is_null())
    assert not first.select(NAMES).equals(frame.select(NAMES))


@pytest.mark.parametrize("by", [None, "area"])
@pytest.mark.parametrize("name", [name for name in IN_BLOCKS if name not in GROUPED])
def test_a_method_masks_as_in_memory_with_the_same_draws(tmp_path, file, frame, name, by):
    options = OPTIONS.get(name, {})
    found = matrix(masked(file, tmp_path / "out.parquet", name, cut=CUTS[1], by=by, **options)[0])
    expected = in_memory(frame, name, by, **options)
    if METHODS[name].in_blocks.how == "ranks":
        np.testing.assert_array_equal(found, expected)
    else:
        assert (np.isnan(found) == np.isnan(expected)).all()
        unit = np.nanstd(matrix(frame), axis=0)
        assert np.nanmax(np.abs(found - expected) / unit) < 1e-12


@pytest.mark.parametrize("name", GROUPED)
def test_groups_within_one_block_are_those_of_memory(tmp_path, file, frame, name):
    found, notes = masked(file, tmp_path / "out.parquet", name, cut=(7, 10_000), by="area")
    np.testing.assert_allclose(matrix(found), in_memory(frame, name, "area"), rtol=1e-12)
    gone, missing = np.isnan(matrix(found)), np.isnan(matrix(frame))
    counts = f"{(missing & ~gone).sum()} missing cells filled, {(gone & ~missing).sum()} others suppressed"
    assert notes == [f"{counts}, so that all records of a group are alike"]


def test_parameters_by_stratum(tmp_path, file, frame):
    percent = {"north": 5.0, "south": 200.0}
    found = matrix(masked(file, tmp_path / "out.parquet", "noise", by="area", percent=percent)[0])
    np.testing.assert_allclose(found, in_memory(frame, "noise", "area", percent=percent), rtol=1e-12)
    k = {"north": 5, "south": 12}
    swapped = matrix(
        masked(file, tmp_path / "k.parquet", "individual_ranking", by="area", k=k, cut=CUTS[2])[0]
    )
    np.testing.assert_array_equal(swapped, in_memory(frame, "individual_ranking", "area", k=k))


@pytest.mark.parametrize("replace", ["mean", "limit"])
@pytest.mark.parametrize(
    "options",
    [
        {"top": 0.5, "bottom": 0.5},
        {"top": 0.0, "above": {"rate": 20.0, "zeros": 10.0}, "below": {"zeros": 1.0, "money": 3000.0}},
        {"top": 0.002, "below": {"money": 4000.0}},
    ],
)
def test_tails_are_coded_as_in_memory(tmp_path, file, frame, options, replace):
    given = {**options, "replace": replace}
    found, notes = masked(file, tmp_path / "out.parquet", "top_bottom_code", cut=CUTS[2], **given)
    expected = in_memory(frame, "top_bottom_code", **given)
    np.testing.assert_allclose(matrix(found), expected, rtol=1e-13)
    assert notes == METHODS["top_bottom_code"].release_notes(
        matrix(frame),
        {"multivariate": "each", "above": None, "below": None, "bottom": 0.0, **as_arrays(given)},
    )


def as_arrays(given):
    fill = {"above": np.inf, "below": -np.inf}
    return {
        name: np.array([value.get(column, fill[name]) for column in NAMES]) if name in fill else value
        for name, value in given.items()
    }


def test_codes_of_missing_cells_and_whole_numbers_stay(tmp_path, frame):
    coded = frame.with_columns(pl.col("zeros").replace(0, -9), pl.col("money").fill_null(float("nan")))
    coded.write_parquet(tmp_path / "in.parquet")
    found, _ = masked(
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        "noise",
        cut=CUTS[1],
        na=-9,
        decimals=0,
        drop="name",
    )
    assert found.columns == ["money", "area", "zeros", "rate"]
    assert found.schema["zeros"] == pl.Int32
    assert (found["zeros"] == -9).equals(coded["zeros"] == -9)
    assert found["money"].is_nan().equals(coded["money"].is_nan())
    assert found["money"].null_count() == 0
    assert (found["rate"].round(0) == found["rate"]).all()


def test_notes_are_those_of_memory(tmp_path, file, frame):
    for name in ("zero_preserving_noise", "multiplicative_noise"):
        notes = masked(file, tmp_path / f"{name}.parquet", name, cut=CUTS[1])[1]
        assert notes == METHODS[name].release_notes(matrix(frame), {})
    notes = masked(file, tmp_path / "m.parquet", "individual_ranking", aggregate="median")[1]
    assert notes == ["medians of an odd number of values are original ones"]


def test_rows_without_any_value_are_written(tmp_path):
    frame = survey(120)
    rows = pl.int_range(pl.len()).is_between(30, 70)
    empty = frame.with_columns(pl.when(~rows).then(pl.col(name)).alias(name) for name in NAMES)
    empty.write_parquet(tmp_path / "in.parquet")
    for name in ("rank_swap", "individual_ranking", "blocked_mdav", "noise"):
        found, _ = masked(tmp_path / "in.parquet", tmp_path / f"{name}.parquet", name, cut=(9, 13))
        assert found["name"].equals(frame["name"])
        assert found["rate"].is_null().equals(empty["rate"].is_null())
