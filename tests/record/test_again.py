"""`sdckit check` with the original measures a recorded release again, and says what changed."""

import json

import polars as pl
import pytest

import sdckit as sdc
from command import good, run_here
from kept import ROLES, mask, only_entry, put_people, raw_entry, store_in
from sdckit.core.version import INTRUDER_VERSION
from sdckit.io.atomic import checksum

PRIVATE = ["--private", "record"]


@pytest.fixture
def released(tmp_path):
    put_people(tmp_path)
    mask(tmp_path, *PRIVATE)
    return tmp_path


def rewrite(store, one, **fields):
    """Change the entry of a release as if another version had written it."""
    content = raw_entry(store, one) | fields
    del content["checksum"]
    text = json.dumps(content | {"checksum": checksum(content)})
    (store.folder / one / "release.json").write_text(text)


def measured_by_version_1(folder, linkage, **fields):
    """Let the record say that an older intruder found this share of the records."""
    store = store_in(folder)
    entry = only_entry(store)
    rows = [row | ({"value": linkage} if row["metric"] == "linkage" else {}) for row in entry.measured]
    rewrite(store, entry.id, measured=rows, intruder=1, **fields)
    return next(row["value"] for row in entry.measured if row["metric"] == "linkage")


def test_the_same_intruder_finds_the_same(released):
    done = good(released, "check", "out.csv", "data.csv", *PRIVATE)
    assert "- linkage" in done.stdout
    assert "as recorded" not in done.stdout
    found = json.loads(good(released, "check", "out.csv", "data.csv", *PRIVATE, "--json").stdout)
    assert found["intruder"] == found["recorded_intruder"] == INTRUDER_VERSION
    assert all(row["recorded"] == pytest.approx(row["now"]) for row in found["changes"])
    assert {"linkage"} <= {row["metric"] for row in found["changes"]}


def test_figures_of_an_older_intruder_are_measured_again_and_judged_by_today(released):
    true = measured_by_version_1(released, 0.001, limits={"linkage": 0.002})
    assert true > 0.002
    done = good(released, "check", "out.csv", *PRIVATE)
    assert "measured by version 1 of the intruder, and this is version 3: do not compare" in done.stdout
    assert "version 1 of the intruder" in good(released, "check", "out.csv", *PRIVATE, "--json").stderr
    done = run_here(released, "check", "out.csv", "data.csv", *PRIVATE)
    assert done.returncode == 1
    assert f"- linkage 0.0010 as recorded, {true:.4f} now" in done.stdout
    assert "linkage" in done.stderr
    assert "limit 0.002 not met" in done.stderr


def test_risks_together_are_measured_again(released):
    mask(released, *PRIVATE, output="second.csv")
    found = json.loads(good(released, "check", "second.csv", "data.csv", *PRIVATE, "--json").stdout)
    (joint,) = [row for row in found["changes"] if "together_with" in row]
    assert joint["recorded"] == pytest.approx(joint["now"])


def test_another_original_is_refused(released):
    put_people(released, pl.read_csv(released / "data.csv").reverse(), "other.csv")
    done = run_here(released, "check", "out.csv", "other.csv", *PRIVATE)
    assert done.returncode == 2
    assert "is not the file that release" in done.stderr


@pytest.mark.long
def test_a_calibrated_release_and_scenarios_are_measured_again(tmp_path):
    put_people(tmp_path)
    words = [
        "recommend",
        "data.csv",
        "-o",
        "out.csv",
        "--max-risk",
        "linkage=0.9",
        "--grid",
        "noise.percent=100",
    ]
    words += ["--calibrate", "total(wages)", "--scenario", "press=wages,rent:linkage=0.9"]
    good(tmp_path, *words, *ROLES, *PRIVATE, "--quiet")
    found = json.loads(good(tmp_path, "check", "out.csv", "data.csv", *PRIVATE, "--json").stdout)
    assert {"linkage", "linkage (press)"} <= {row["metric"] for row in found["changes"]}
    assert all(row["recorded"] == pytest.approx(row["now"]) for row in found["changes"])


def test_json_and_reports_say_which_intruder_measured(released):
    words = [
        "evaluate",
        "data.csv",
        "out.csv",
        *ROLES,
        *PRIVATE,
        "--made-by",
        "noise",
        "--set",
        "percent=100",
    ]
    done = good(released, *words, "--json", "--report", "page.html")
    assert json.loads(done.stdout)["intruder"] == INTRUDER_VERSION
    assert f"(intruder {INTRUDER_VERSION})" in (released / "page.html").read_text(encoding="utf-8")


def test_a_sweep_of_another_intruder_is_refused(tmp_path, monkeypatch):
    given = {
        "plan": {"noise": {"percent": [50]}},
        "metrics": "linkage",
        "rng": 1,
        "folder": tmp_path / "sweep",
    }
    frame = put_and_read(tmp_path)
    monkeypatch.setattr("sdckit.selection.task.INTRUDER_VERSION", 1)
    sdc.sweep(frame, **given)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"holds another sweep \(different: version of the intruder\)"):
        sdc.sweep(frame, **given)


def put_and_read(folder):
    return pl.read_csv(put_people(folder)).select("wages", "rent", "food")
