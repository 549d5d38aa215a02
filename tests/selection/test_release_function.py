"""`sdc.release`: what it hands out, what it says on the way, and that it draws again to meet limits."""

import threading
import warnings
from functools import partial

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from sdckit.core.randomness import draw_generator
from sdckit.record.publish import ReleaseFile, publish
from sdckit.selection.release import ReleasePlan, make_release
from secret_bytes import entropy
from sweeps import frame

NAMES = {"a, b": "a", 'c "d"': "b", "e=f:g": "c"}  # columns that are hard to put into text


def odd():
    return frame(60).rename({old: new for new, old in NAMES.items()})


def in_order(release):
    """The released table with its rows in the order of the original."""
    return release.data[np.argsort(release.rows)]


def test_a_release_is_the_masked_table_and_its_evaluation():
    release = sdc.release(frame(), "rank_swap", p=0.2, entropy=entropy(3), metrics=["brmae", "linkage"])
    masked = sdc.mask(frame(), "rank_swap", p=0.2, rng=draw_generator(entropy(3), 1), decimals="original")
    assert in_order(release).equals(masked)
    known = {"method": "rank_swap", "parameters": {"p": 0.2}}
    again = called("evaluate", frame(), masked, metrics=["brmae", "linkage"], **known)
    assert release.evaluation.table.equals(again.table)
    assert release.disclosure.parameters["p"] == 0.2
    assert (release.draws, release.warnings) == (1, ())


@pytest.mark.parametrize("method", ["copula", "ipso", "noise", "mdav"])
@pytest.mark.filterwarnings("ignore:rows of .* stand for no original record")
def test_cells_beside_masked_ones_come_from_the_numbered_row(method):
    data = frame().with_columns(place=pl.arange(60))
    release = sdc.Microdata(data, columns=["a", "b"], untouched=["c", "place"]).release(
        method, entropy=entropy(3), metrics="ks"
    )
    assert release.disclosure.paired == (method in {"noise", "mdav"})
    assert release.data["place"].to_list() == release.rows.tolist() != list(range(60))


def test_the_key_and_the_weights_are_left_alone():
    data = frame(60).with_columns(id=np.arange(60), w=np.linspace(1.0, 2.0, 60))
    how = {"key": "id", "weights": "w", "unknown": "w", "metrics": "brmae"}
    release = called("release", data, "mdav", k=5, **how)
    assert in_order(release).select("w").equals(data.select("w"))
    assert "id" not in release.data.columns
    again = called("evaluate", data, release.data, **how, rows=release.rows)
    assert release.evaluation["brmae"] == again["brmae"]
    array = sdc.Microdata(frame(60), weights=data["w"].to_numpy()).release("mdav", k=5, metrics="brmae")
    assert array.evaluation["brmae"] == again["brmae"]


def test_notes_of_the_masking_stand_beside_those_of_the_measures():
    release = sdc.Microdata(frame(), rules="a >= 0").release(
        "noise", percent=20, entropy=entropy(1), metrics="brmae"
    )
    assert any(note.startswith("edit rules hold in every record") for note in release.evaluation.notes)


# --- limits ---


@pytest.mark.parametrize("limits", [{}, {"brmae": 0.1}, {"linkage": 2}, {"window": 0.1}])
def test_limits_are_checked_first(limits):
    with pytest.raises((TypeError, ValueError), match="limit"):
        sdc.release(frame(), "noise", max_risk=limits)


# --- warnings and progress ---


WARNED = "column 'weight' looks like a survey weight"


def doubtful():
    return frame(40).rename({"c": "weight"})


def test_warnings_are_given_and_kept():
    with pytest.warns(UserWarning, match=WARNED) as seen:
        release = sdc.release(doubtful(), "mdav", k=3)
    assert [str(one.message) for one in seen] == list(release.warnings)
    assert seen[0].filename == __file__, "a warning points at the line that called the package"


def test_warnings_that_a_caller_ignores_are_kept_all_the_same():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(sdc.release(doubtful(), "mdav", k=3).warnings) == 1


def test_a_warning_of_every_draw_is_given_once():
    with pytest.warns(UserWarning, match=WARNED) as seen, pytest.raises(sdc.LimitsMissed):
        sdc.release(doubtful(), "noise", percent=1, max_risk={"linkage": 0.0}, tries=4, entropy=entropy(1))
    assert len(seen) == 1


@pytest.mark.long
@pytest.mark.parametrize("where", ["this thread", "another thread"])
def test_progress_reaches_the_caller(where):
    seen = []
    work = threading.Thread(
        target=lambda: sdc.release(frame(), "mdav", k=3, progress=lambda *step: seen.append(step))
    )
    if where == "another thread":
        work.start()
        work.join()
    else:
        work.run()
    assert {step for step, _ in seen} >= {"measuring"}
    shares = [share for step, share in seen if step == "measuring"]
    assert shares == sorted(shares)
    assert 0 <= min(shares) <= max(shares) <= 1
    seen.clear()
    sdc.release(frame(), "mdav", k=3, metrics="brmae")
    assert not seen, "only for the one call"


# --- what is written and reported ---


def test_a_report_that_fails_leaves_no_file(tmp_path):
    plan = ReleasePlan("mdav", {"k": 3}, metrics="brmae")
    file = ReleaseFile(tmp_path / "out.csv")

    def refuse(release, _digest, _notes, _drafts):
        assert in_order(release).equals(sdc.mask(frame(), "mdav", k=3))
        assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
        raise OSError("no room for a report")

    with pytest.raises(OSError, match="no room"):
        make_release(plan, sdc.Microdata(frame()).original, hand_out=partial(publish, file, report=refuse))
    assert not list(tmp_path.iterdir())
    release, _ = make_release(plan, sdc.Microdata(frame()).original, hand_out=partial(publish, file))
    assert pl.read_csv(tmp_path / "out.csv").equals(release.data)


# --- names that are hard to put into text ---


@pytest.mark.long
@pytest.mark.parametrize("names", [["a, b"], ['c "d"', "a, b"], ["e=f:g"]])
@pytest.mark.parametrize("search", ["recommend", "sweep"])
def test_given_columns_of_any_name_survive_a_search(names, search):
    plan = {"shuffle": {"given": [names]}}
    limits, how = {"linkage": 1.0, "linkage_sure": 1.0}, {"rng": 1, "workers": 1}
    if search == "recommend":
        choice = called("recommend", odd(), max_risk=limits, plan=plan, **how)
    else:
        choice = called("sweep", odd(), plan, metrics=["brmae", *limits], **how).recommend(limits)
    assert choice.point.setting.parameters == choice.parameters == {"given": tuple(names)}
    release = choice.release(entropy=entropy(2))
    assert in_order(release).select(names).equals(odd().select(names))
    assert release.disclosure.parameters["given"] == tuple(names)
    assert not in_order(release).drop(names).equals(odd().drop(names))


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:not masked, every value")
def test_numbers_by_column_of_any_name_survive_a_search(name):
    plan = {"mdav": {"k": [2, 3], "variable_weights": [{name: 4.0}]}}
    choice = sdc.recommend(odd(), max_risk={"linkage": 0.9}, plan=plan, decimals=None, rng=1, workers=1)
    assert choice.parameters == {"k": 2, "variable_weights": {name: 4.0}}
    expected = sdc.mask(odd(), "mdav", k=2, variable_weights={name: 4.0})
    assert in_order(choice.release()).equals(expected)


@pytest.mark.long
def test_strata_of_any_name_survive_a_search():
    data = odd().with_columns(pl.Series("x, y", ["p, q", 'r "s"'] * 30))
    choice = sdc.Microdata(data, by="x, y").recommend(
        max_risk={"linkage": 0.9}, plan={"mdav": None}, workers=1
    )
    release = choice.release()
    assert release.disclosure.by == ("x, y",)
    assert release.evaluation["linkage"] == choice.point.values["linkage"]


def with_identifier():
    return frame().with_columns(pl.Series("person_id", range(len(frame()))))


def searched(**more):
    return called(
        "recommend", with_identifier(), max_risk={"dbrl": 0.9}, plan={"mdav": {"k": [3, 5]}}, **more
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda **more: called("sweep", with_identifier(), {"mdav": {"k": [3]}}, metrics=["brmae"], **more),
        searched,
    ],
)
def test_sweeps_and_searches_keep_their_warnings_and_report_progress(call):
    seen = []
    with pytest.warns(UserWarning, match="person_id"):
        found = call(progress=lambda *step: seen.append(step), workers=1)
    assert [text for text in found.warnings if "person_id" in text] == list(found.warnings)
    assert len(found.warnings) == 1
    assert seen
    assert all(0 <= share <= 1 for _, share in seen)


def test_an_evaluation_reports_its_progress():
    seen = []
    sdc.evaluate(frame(), sdc.mask(frame(), "mdav", k=3), progress=lambda *step: seen.append(step))
    assert {step for step, _ in seen} == {"measuring"}


def test_limits_on_rows_that_stand_for_no_record_are_refused():
    with pytest.raises(ValueError, match=r"^rows of copula stand for no original record, so that no"):
        sdc.release(np.random.default_rng(0).normal(size=(50, 2)), "copula", max_risk={"linkage": 0.5})


def test_the_window_is_limited_by_linkage():
    with pytest.raises(ValueError, match=r"^window cannot be limited by itself; limit linkage, which"):
        sdc.release(np.arange(10.0), "rank_swap", max_risk={"window": 0.5})


# --- rounding ---


PLAIN = {"decimals": None}


def whole():
    return pl.DataFrame(
        {"age": [20 + i * 7 % 50 for i in range(60)], "rent": [i * i % 997 / 4 for i in range(60)]}
    )


@pytest.mark.parametrize("search", ["recommend", "sweep"])
def test_what_a_search_leads_to_is_rounded_as_the_original(search):
    plan, limits, how = {"mdav": {"k": [3, 4]}}, {"linkage": 0.5}, {"rng": 1, "workers": 1}
    if search == "recommend":
        choices = [
            called("recommend", whole(), max_risk=limits, plan=plan, **how, **more) for more in ({}, PLAIN)
        ]
    else:
        found = called("sweep", whole(), plan, metrics=["brmae", "linkage"], **how)
        choices = [found.recommend(limits, **more) for more in ({}, PLAIN)]
    rounded, plain = (choice.release(entropy=entropy(2)).data for choice in choices)
    assert rounded.schema == whole().schema
    assert (rounded["rent"] * 4 % 1 == 0).all()
    assert plain["age"].dtype == pl.Float64
    assert (plain["age"] % 1 != 0).any()
    with pytest.raises(ValueError, match="decimals is 'two'"):
        sdc.recommend(whole(), max_risk=limits, plan=plan, decimals="two")
