"""Microdata: roles stated once, and all that can be done with them."""

import warnings

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from secret_bytes import entropy

ROLES = {"key": "firm", "by": "sector", "weights": "weight", "unknown": "weight", "na": -9}
PRESS = {"known": ["turnover", "wages"], "max_risk": {"linkage": 0.5}}
METRICS = ["brmae", "mae", "linkage"]


@pytest.fixture(scope="module")
def frame():
    return sdc.load_sample().head(300)


def drawn(chart):
    """Names of the methods or files that have a mark on a map."""
    return {row["method"] for rows in chart.to_dict()["datasets"].values() for row in rows if "method" in row}


def test_descriptions_know_the_roles(frame):
    found = sdc.Microdata(frame, key="firm").describe()
    assert found.table.filter(column="firm")["role"].item() == "key"


def test_several_files_are_one_table_and_one_map(frame):
    data = sdc.Microdata(frame, **ROLES)
    release = data.release("mdav", k=5)
    files = {"mine": data.mask("mdav", k=3), "theirs": release}
    both = data.evaluate(files, made_by={"mine": sdc.Method("mdav", k=3)}, metrics=METRICS)
    assert both.table["file"].unique(maintain_order=True).to_list() == ["mine", "theirs"]
    alone = data.evaluate(files["mine"], made_by=sdc.Method("mdav", k=3), metrics=METRICS)
    assert both.files["mine"].table.equals(alone.table)
    assert both["linkage (theirs)"] == data.evaluate(release, metrics=METRICS)["linkage"]
    assert list(both)[:3] == [f"{name} (mine)" for name in METRICS]
    assert "brmae (mine)" in both
    assert "brmae" not in both
    with pytest.raises(ValueError, match=r"^brmae was not measured; measured: brmae \(mine\), "):
        both["brmae"]
    assert "brmae (theirs)" in repr(both)
    assert both.public().files["mine"].table.equals(alone.public().table)
    assert drawn(both.map()) == {"mine", "theirs"}
    sweep = data.sweep({"mdav": {"k": [3, 6]}}, metrics=METRICS)
    assert {"mine", "theirs"} < drawn(sweep.map(files=both))


def test_several_files_have_a_report(frame, tmp_path):
    data = sdc.Microdata(frame, **ROLES)
    both = data.evaluate({k: data.mask("mdav", k=int(k)) for k in ("3", "6")}, metrics=METRICS)
    both.report(tmp_path / "files.html")
    assert "Comparison of 2 masked files" in (tmp_path / "files.html").read_text()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"together": True}, "the files have names and together is True"),
        ({"made_by": {"hers": sdc.Method("mdav")}}, "hers"),
        ({"rows": [0]}, "rows are of one file and there are several"),
    ],
)
def test_what_does_not_fit_several_files_is_refused(frame, options, text):
    with pytest.raises((ValueError, TypeError), match=text):
        sdc.Microdata(frame, **ROLES).evaluate({"mine": frame}, **options)


def test_an_evaluation_is_read_like_a_dictionary():
    result = sdc.evaluate([1.0, 2.0, 3.0], [2.0, 1.0, 3.0], metrics=["brmae", "mae"])
    assert dict(result) == {"brmae": 0.5, "mae": result["mae"]}
    assert list(result) == result.keys() == ["brmae", "mae"]
    assert "brmae" in result
    assert "linkage" not in result


def test_a_choice_is_released_without_the_data(frame, tmp_path):
    data = sdc.Microdata(frame, **ROLES)
    choice = data.recommend(max_risk={"linkage": 0.3}, plan="mdav")
    target = tmp_path / "masked.csv"
    release = choice.release(target, private=tmp_path / "private", entropy=entropy(4))
    assert pl.read_csv(target).height == len(release.rows) == frame.height
    assert "firm" not in pl.read_csv(target).columns
    assert choice.release(entropy=entropy(4)).data.height == frame.height
    with pytest.raises(FileExistsError, match="masked"):
        choice.release(target, private=tmp_path / "private")
    chosen = data.sweep({"mdav": {"k": [5]}}, metrics=METRICS).recommend({"linkage": 0.5})
    assert chosen.release(entropy=entropy(4)).disclosure.parameters["k"] == 5


def test_limits_of_intruders_are_not_forgotten_by_a_sweep(frame):
    data = sdc.Microdata(frame, **ROLES, intruders={"press": sdc.Intruder(**PRESS)})
    sweep = data.sweep({"mdav": {"k": [5]}}, metrics=METRICS)
    with pytest.raises(ValueError, match=r"the intruders of the data have limits.*; use data\.recommend"):
        sweep.recommend({"linkage": 0.5})


def test_a_masking_may_be_a_function(frame):
    data = sdc.Microdata(frame.select("turnover", "wages", "profit"))
    masked = data.mask("noise", percent=30, rng=1)

    def again(table, rng):
        return sdc.mask(table, "noise", percent=30, rng=rng)

    told = [data.evaluate(masked, made_by=one, metrics="linkage") for one in (again, sdc.Method(again))]
    assert told[0].table.equals(told[1].table)
    with pytest.raises(TypeError, match=r"^made_by is a int; give sdc.Method"):
        data.evaluate(masked, made_by=5)
    with pytest.raises(ValueError, match="made_by says how the file was masked and disclosure is given too"):
        data.evaluate(data.release("mdav", k=5), made_by=again)
    with pytest.raises(
        ValueError, match="the disclosure says how the file was masked and method is given too"
    ):
        data.evaluate(data.release("mdav", k=5), made_by=sdc.Method("mdav"))


def test_roles_that_do_not_fit_are_refused_at_once(frame):
    with pytest.raises(ValueError, match="no_such"):
        sdc.Microdata(frame, key="no_such")
    with pytest.raises(TypeError, match="the data are a Microdata, which has its roles; call its own method"):
        sdc.mask(sdc.Microdata(frame), "mdav")


def test_metrics_take_microdata(frame):
    data = sdc.Microdata(frame, **ROLES)
    masked = data.mask("mdav", k=5)
    assert sdc.brmae(data, masked) == data.evaluate(masked, metrics="brmae")["brmae"]


def test_warnings_on_roles_are_issued_once_and_kept_in_every_result(frame):
    data = sdc.Microdata(frame, weights="weight")
    told = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            release = data.release("mdav", k=5)
        told.append(sum("undecided" in str(one.message) for one in seen))
        assert any("undecided" in text for text in release.warnings)
    assert told == [1, 0]


@pytest.mark.parametrize("engine", [None, "memory", "local", sdc.Local(memory="4GB")])
def test_files_are_measured_and_masked(frame, tmp_path, engine):
    paths = [tmp_path / f"{name}.parquet" for name in ("original", "masked", "made")]
    data = sdc.Microdata(frame, columns=["turnover", "wages"], key="firm")
    masked = data.mask("mdav", k=5)
    frame.write_parquet(paths[0])
    masked.write_parquet(paths[1])
    there = sdc.Microdata(paths[0], columns=["turnover", "wages"], key="firm", engine=engine)
    assert there.evaluate(paths[1], metrics="brmae")["brmae"] == pytest.approx(
        sdc.brmae(data, masked), rel=1e-12
    )
    assert there.mask("noise", percent=5, rng=1, output=paths[2]) == paths[2]
    assert pl.read_parquet(paths[2]).height == frame.height
    if engine in (None, "memory"):
        assert there.mask("mdav", k=5).equals(masked)
    else:
        with pytest.raises(ValueError, match="on the engine local, which has evaluate and mask only"):
            there.recommend(max_risk={"linkage": 0.1})
        with pytest.raises(ValueError, match="there is no output; name the file to write"):
            there.mask("mdav", k=5)


def test_weights_may_be_numbers(frame):
    numbers = np.linspace(1, 2, frame.height)
    data = sdc.Microdata(frame, key="firm", columns=["turnover"], weights=numbers)
    masked = data.mask("mdav", k=5)
    named = frame.with_columns(numbers=numbers)
    wanted = sdc.Microdata(named, key="firm", columns=["turnover"], weights="numbers", unknown="numbers")
    found = data.evaluate(masked, metrics="brmae").table
    assert found.equals(wanted.evaluate(wanted.mask("mdav", k=5), metrics="brmae").table)
    assert f"weights: {frame.height} numbers" in repr(data)
