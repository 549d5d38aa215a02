"""`release.publish` writes what was measured, keeps its record, and the record makes the file again."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sdckit as sdc
from command import good, run_here
from kept import only_entry, people, put_people, store_in
from sdckit.record.store import Store

ROLES = {"key": "name", "drop": "street", "untouched": "region"}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_file_is_the_table_and_is_made_again_from_a_file_of_the_data(tmp_path, kind, suffix):
    frame = people()
    data = {"polars": frame, "pandas": frame.to_pandas(), "pyarrow": frame.to_arrow()}[kind]
    release = sdc.Microdata(data, **ROLES).release("noise", percent=20, metrics="brmae")
    one = release.publish(tmp_path / f"out{suffix}")
    read = pl.read_csv if suffix == ".csv" else pl.read_parquet
    found = read(tmp_path / f"out{suffix}")
    assert found.columns == ["region", "wages", "rent", "food"]
    ours = pl.DataFrame(release.data) if kind != "pandas" else pl.from_pandas(release.data)
    assert found.to_dicts() == ours.to_dicts()
    entry = only_entry(Store.at())
    assert (entry.id, entry.command, entry.input["sha256"]) == (one, "publish", None)
    put_people(tmp_path)
    good(tmp_path, "replay", one, "data.csv", "-o", f"again{suffix}")
    assert (tmp_path / f"again{suffix}").read_bytes() == (tmp_path / f"out{suffix}").read_bytes()
    put_people(tmp_path, people(seed=6))
    done = run_here(tmp_path, "replay", one, "data.csv", "-o", f"other{suffix}")
    assert done.returncode == 2
    assert "is not the file that release" in done.stderr


def test_an_array_is_published_with_names(tmp_path):
    values = np.random.default_rng(1).normal(size=(40, 2)).round(2)
    release = sdc.release(values, "mdav", k=4, metrics="brmae")
    release.publish(tmp_path / "out.csv", tmp_path / "record")
    assert pl.read_csv(tmp_path / "out.csv").columns == ["x1", "x2"]
    assert (pl.read_csv(tmp_path / "out.csv").to_numpy() == release.data).all()


def test_a_recommendation_is_published_and_checked(tmp_path):
    choice = sdc.Microdata(people(), **ROLES).recommend(
        plan={"mdav": {"k": [3, 5, 8]}}, max_risk={"linkage": 0.4}
    )
    one = choice.release().publish(tmp_path / "out.csv")
    assert f"release {one}" in good(tmp_path, "check", "out.csv").stdout


def test_only_what_a_function_released_is_published(tmp_path):
    from dataclasses import replace

    release = replace(sdc.release([1.0, 2.0, 30.0, 31.0], "mdav", k=2), made_from=None)
    with pytest.raises(
        ValueError, match=r"does not know the data it was made from; make it with release\(\)"
    ):
        release.publish(tmp_path / "out.csv", tmp_path / "record")


@pytest.mark.parametrize("path", ["out.doc", "missing/out.csv", "record/out.csv"])
def test_a_path_that_cannot_be_written_is_refused_first(tmp_path, path):
    release = sdc.release([1.0, 2.0, 30.0, 31.0], "mdav", k=2)
    (tmp_path / "record").mkdir()
    with pytest.raises((OSError, ValueError), match="out"):
        release.publish(tmp_path / path, tmp_path / "record")
    assert list(tmp_path.rglob("*")) == [tmp_path / "record"]


def test_a_table_that_was_changed_after_it_was_measured_is_refused(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(40, 2)).round(2), columns=["a", "b"])
    release = sdc.release(frame, "mdav", k=4, metrics="brmae")
    release.data.loc[3, "a"] += 1
    with pytest.raises(ValueError, match="changed since it was measured"):
        release.publish(tmp_path / "out.csv", tmp_path / "record")
    assert store_in(tmp_path).ids() == []


def test_a_record_that_cannot_be_written_leaves_neither_file_nor_report(tmp_path, monkeypatch):
    put_people(tmp_path)
    roles = ["--key", "name", "--drop", "street", "--untouched", "region", "--private", "record"]
    words = ["mask", "data.csv", "-o", "out.csv", "--method", "mdav", "--release", "--report", "report.html"]

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "add", full)
        done = run_here(tmp_path, *words, *roles)
    assert done.returncode == 2
    assert not (tmp_path / "out.csv").exists()
    assert not (tmp_path / "report.html").exists()
    good(tmp_path, *words, *roles)
    assert (tmp_path / "report.html").exists()


def test_the_demo_keeps_its_own_record(demo, tmp_path):
    folder, done = demo
    assert "Private record" in done.stdout
    store = Store.at(folder / "private")
    one = only_entry(store).id
    given = [one, folder / "original.csv", "-o", "again.csv", "--private", store.folder]
    good(tmp_path, "replay", *given)
    assert (tmp_path / "again.csv").read_bytes() == (folder / "masked.csv").read_bytes()
    assert Store.at().ids() == []
