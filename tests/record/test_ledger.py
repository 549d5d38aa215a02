"""Records that were released before are announced, and judged together with their earlier releases."""

import json

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from command import contents, forget_releases, run_here
from kept import ROLES, mask, people, put_people, store_in
from sdckit.core.table import Table
from sdckit.record.entry import fingerprints
from sdckit.record.ledger import matching_rows
from secret_bytes import entropy
from slow_ledger import shared_records

OPTIONS = {"key": "name", "drop": "street", "untouched": "region", "unknown": "region", "metrics": "linkage"}
ALONE = 0.15  # between the linkage of one such release and that of two together
FIRST = people(120)


def wave(frame, share=0.9):
    """The same records but for some that are new, in another order."""
    kept = round(share * frame.height)
    fresh = people(frame.height, seed=77)[kept:].with_columns(name="N" + pl.col("name"))
    return pl.concat([frame[:kept], fresh]).sample(fraction=1, shuffle=True, seed=3)


SHAPES = {
    "same file": (FIRST, "120 of 120 records are unchanged and 0 changed"),
    "changed row order": (FIRST.reverse(), "120 of 120 records are unchanged and 0 changed"),
    "wave": (wave(FIRST), "108 of 120 records are unchanged and 0 changed"),
}


def noisy(frame, number, **more):
    return called("release", frame, "noise", percent=100, entropy=entropy(number), **OPTIONS | more)


@pytest.fixture
def first(tmp_path):
    """A release of the first file, in the record that all others of a test go into."""
    made = noisy(FIRST, 1)
    return made.publish(tmp_path / "first.csv", tmp_path / "record")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_second_release_is_announced_with_counts_and_judged_together(tmp_path, first, shape):
    frame, counts = SHAPES[shape]
    second = noisy(frame, 2)
    with pytest.warns(UserWarning, match=f"released before: {counts} since release {first}"):
        one = second.publish(tmp_path / "second.csv", tmp_path / "record")
    measured = store_in(tmp_path).read(one).measured
    (joint,) = [row["value"] for row in measured if row.get("together_with") == [first]]
    assert joint > 1.2 * second.evaluation["linkage"]


@pytest.mark.parametrize("shape", SHAPES)
def test_one_that_meets_its_limit_alone_and_misses_it_together_is_refused(tmp_path, first, shape):
    limit = 1.1 * noisy(SHAPES[shape][0], 2).evaluation["linkage"]
    second = noisy(SHAPES[shape][0], 2, max_risk={"linkage": limit, "linkage_sure": 1.0})
    before = contents(tmp_path)
    with (
        pytest.warns(UserWarning, match="released before"),
        pytest.raises(
            ValueError, match=rf"together with the earlier release {first}, linkage is 0\.\d+, above"
        ),
    ):
        second.publish(tmp_path / "second.csv", tmp_path / "record")
    assert contents(tmp_path).keys() == before.keys()


def test_the_command_refuses_with_exit_code_1_and_a_clear_line(tmp_path):
    put_people(tmp_path, FIRST)
    given = ["recommend", "data.csv", "--max-risk", f"linkage={ALONE}", "--max-risk", "linkage_sure=1"]
    given += ["--grid", "noise.percent=100", *ROLES, "--unknown", "region", "--quiet", "-o"]
    assert run_here(tmp_path, *given, "first.csv").returncode == 0
    done = run_here(tmp_path, *given, "second.csv")
    assert done.returncode == 1
    warning, error = done.stderr.splitlines()
    assert warning.startswith("warning: released before: 120 of 120 records are unchanged")
    assert error.startswith("not met: together with the earlier release ")
    assert not (tmp_path / "second.csv").exists()
    missed = json.loads(run_here(tmp_path, *given, "second.csv", "--json").stdout)["choice"]
    assert (missed["met"], "together with the earlier release" in missed["reason"]) == (False, True)
    forget_releases()
    assert run_here(tmp_path, *given, "second.csv").returncode == 0


def test_the_joint_figure_is_that_of_evaluating_both_together(tmp_path, first):
    second = noisy(FIRST, 2)
    with pytest.warns(UserWarning, match="released before"):
        one = second.publish(tmp_path / "second.csv", tmp_path / "record")
    original = sdc.Microdata(
        FIRST, **{name: OPTIONS[name] for name in ("key", "drop", "untouched", "unknown")}
    )
    made = noisy(FIRST, 1)
    whole = original.evaluate(
        [second.data, made.data],
        made_by=[second, made],
        rows=[second.rows, made.rows],
        together=True,
        metrics="linkage",
    )
    (joint,) = [
        r["value"] for r in store_in(tmp_path).read(one).measured if r.get("together_with") == [first]
    ]
    assert joint == pytest.approx(whole["linkage"])


def test_a_scenario_is_judged_together_as_well(tmp_path, first):
    limits = {"press": {"known": ["wages", "rent", "food"], "max_risk": {"linkage": ALONE}}}
    second = noisy(FIRST, 2, intruders=limits)
    with (
        pytest.warns(UserWarning, match="released before"),
        pytest.raises(ValueError, match=rf"release {first}, linkage \(press\) is"),
    ):
        second.publish(tmp_path / "second.csv", tmp_path / "record")


def test_records_whose_key_is_given_anew_are_found_by_their_values(tmp_path):
    """A row number as key is that of another record once the rows are in another order."""
    for number, frame in ((1, FIRST), (2, FIRST.reverse())):
        numbered = frame.with_columns(name=pl.int_range(pl.len()))
        made = noisy(numbered, number)
        if number == 1:
            made.publish(tmp_path / "first.csv", tmp_path / "record")
    with pytest.warns(UserWarning, match="120 of 120 records are unchanged and 0 changed"):
        one = made.publish(tmp_path / "second.csv", tmp_path / "record")
    (joint,) = [row["value"] for row in store_in(tmp_path).read(one).measured if "together_with" in row]
    assert joint > 1.2 * made.evaluation["linkage"]


def test_what_an_earlier_release_published_unmasked_counts(tmp_path):
    roles = OPTIONS | {"untouched": ["region", "rent", "food"]}
    made = called("release", FIRST, "noise", percent=100, entropy=entropy(1), **roles)
    made.publish(tmp_path / "first.csv", tmp_path / "record")
    second = noisy(FIRST, 2, max_risk={"linkage": ALONE})
    with (
        pytest.warns(UserWarning, match="released before"),
        pytest.raises(ValueError, match=r"together with the earlier release .*, linkage is (0\.[5-9]|1\.0)"),
    ):
        second.publish(tmp_path / "second.csv", tmp_path / "record")


def test_changed_records_are_announced_with_their_number(tmp_path, first):
    later = FIRST.with_columns(wages=pl.col("wages") + 1.0 * (pl.int_range(pl.len()) < 30))
    with pytest.warns(
        UserWarning, match=f"90 of 120 records are unchanged and 30 changed since release {first}"
    ):
        noisy(later, 2).publish(tmp_path / "second.csv", tmp_path / "record")


@pytest.mark.long
@pytest.mark.parametrize("key", [None, "name"])
def test_data_without_a_column_that_was_masked_are_not_taken_for_new_in_silence(tmp_path, key):
    frame = FIRST if key else FIRST.drop("name")
    noisy(frame, 1, key=key).publish(tmp_path / "first.csv", tmp_path / "record")
    said = "120 changed .*; changed records are not judged together" if key else "not compared with release"
    with pytest.warns(UserWarning, match=said):
        noisy(frame.drop("food"), 2, key=key).publish(tmp_path / "second.csv", tmp_path / "record")


def test_releases_without_a_common_column_are_said_not_to_be_judged(tmp_path):
    for number, ours, others in ((1, ["wages"], ["rent", "food"]), (2, ["rent", "food"], ["wages"])):
        made = noisy(FIRST, number, columns=ours, drop=["street", *others])
        if number == 1:
            made.publish(tmp_path / "first.csv", tmp_path / "record")
    with (
        pytest.warns(UserWarning, match="released before: 120 of 120"),
        pytest.warns(UserWarning, match="not judged together with release .*: no column in common"),
    ):
        made.publish(tmp_path / "second.csv", tmp_path / "record")


def test_other_records_are_not_announced(tmp_path, first, recwarn):
    other = people(120, seed=8).with_columns(name="Other" + pl.col("name"))
    noisy(other, 2).publish(tmp_path / "second.csv", tmp_path / "record")
    assert first
    assert not recwarn


def test_three_releases_are_judged_all_together(tmp_path, first):
    names, joints = [first], []
    for number in (2, 3):
        with pytest.warns(UserWarning, match="released before"):
            one = noisy(FIRST, number).publish(tmp_path / f"{number}.csv", tmp_path / "record")
        rows = [row for row in store_in(tmp_path).read(one).measured if "together_with" in row]
        assert sorted(rows[0]["together_with"]) == sorted(names)
        joints.append(rows[0]["value"])
        names.append(one)
    assert joints[1] > joints[0]


@pytest.mark.parametrize("form", ["text", "other types", "other columns", "no key"])
def test_the_same_records_are_found_in_other_forms(tmp_path, first, form, recwarn):
    """Numbers as integers, columns in another order, further ones, or a key that is no longer there."""
    frame = {
        "text": FIRST.select(reversed(FIRST.columns)),
        "other types": FIRST.to_pandas(),
        "other columns": FIRST.with_columns(cars=pl.int_range(pl.len()) * 1.5),
        "no key": FIRST.drop("name"),
    }[form]
    options = {} if form != "no key" else {"key": None}
    noisy(frame, 2, **options).publish(tmp_path / "second.csv", tmp_path / "record")
    assert any(f"120 of 120 records are unchanged and 0 changed since release {first}" in str(w.message)
               for w in recwarn)  # fmt: skip


def test_a_damaged_earlier_release_is_named(tmp_path, first):
    (tmp_path / "record" / first / "fingerprints.parquet").write_bytes(b"damaged")
    with pytest.warns(UserWarning, match=f"record of release {first} is damaged and not counted"):
        noisy(FIRST, 2).publish(tmp_path / "second.csv", tmp_path / "record")


def test_with_limits_a_damaged_earlier_release_is_refused(tmp_path, first):
    (tmp_path / "record" / first / "fingerprints.parquet").write_bytes(b"damaged")
    made = noisy(FIRST, 2, max_risk={"linkage": 0.9})
    with pytest.raises(ValueError, match=f"record of release {first} is damaged, so that limits cannot be"):
        made.publish(tmp_path / "second.csv", tmp_path / "record")
    assert not (tmp_path / "second.csv").exists()


def test_a_lost_copy_of_the_earlier_file_is_refused(tmp_path, first):
    (tmp_path / "record" / first / "published.csv").unlink()
    with (
        pytest.warns(UserWarning, match="released before"),
        pytest.raises(ValueError, match=f"cannot be judged together with release {first}"),
    ):
        noisy(FIRST, 2).publish(tmp_path / "second.csv", tmp_path / "record")
    assert not (tmp_path / "second.csv").exists()


def test_matching_rows_are_those_of_comparing_all_with_all():
    rng = np.random.default_rng(4)
    for n, m, kinds in [(30, 40, 8), (50, 20, 200), (1, 1, 1), (25, 25, 1), (10, 10, 1000)]:
        ours, theirs = rng.integers(kinds, size=n).astype("u8"), rng.integers(kinds, size=m).astype("u8")
        found = list(zip(*(rows.tolist() for rows in matching_rows(ours, theirs)), strict=True))
        assert sorted(found) == sorted(shared_records(ours.tolist(), theirs.tolist()))


def test_fingerprints_depend_on_cells_and_key_alone():
    frame = pl.DataFrame({"a": [1, 2, 2, None], "b": ["x", "7", "7.0", None]})
    secret, other = bytes(32), bytes([1]) * 32
    marks = fingerprints(Table(frame), ["a", "b"], secret, "values")
    assert marks[1] == marks[2]
    assert len(set(marks.tolist())) == 3
    floats = frame.with_columns(pl.col("a").cast(float)).select("b", "a")
    assert (fingerprints(Table(floats), ["b", "a"], secret, "values") == marks).all()
    assert not set(fingerprints(Table(frame), ["a", "b"], other, "values")) & set(marks)
    assert not set(fingerprints(Table(frame), ["a", "b"], secret, "key")) & set(marks)
    long = pl.DataFrame({"a": [2**60, 2**60 + 1, -(2**60)]})
    assert len(set(fingerprints(Table(long), ["a"], secret, "key").tolist())) == 3
    assert fingerprints(Table(frame), ["c"], secret, "key") is None


def test_mask_announces_without_limits_too(tmp_path):
    put_people(tmp_path)
    mask(tmp_path)
    done = mask(tmp_path, "--overwrite", "--report", "out.html")
    assert "warning: released before: 80 of 80 records are unchanged" in done.stderr
    assert "for an intruder who also has release" in (tmp_path / "out.html").read_text()
