"""What a masking publishes about itself, and how `evaluate` is told of it."""

import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import sdckit as sdc
from calls import called
from cases import each, later
from sdckit.masking.disclosure import Disclosure, Method, disclosure_of
from secret_bytes import entropy
from sweeps import frame

COLUMNS = ["a", "b", "c"]
NEAREST = "linkage:attacks=nearest"  # makes use of a window and of nothing else that a method says of itself


def swapped(p=0.1, **more):
    return called("mask", frame(), "rank_swap", p=p, rng=1, **more)


def test_every_method_discloses_itself():
    for method in sdc.METHODS.values():
        found = Disclosure.of(method.name, {})
        assert (found.method, found.parameters) == (method.name, method.defaults())
        assert (found.keeps, found.deterministic) == (method.keeps, not method.random)
        assert found.paired == method.paired
        assert (found.window is None) == (method.window is None)
        assert (found.rules, found.by, found.uninformed) == (None, (), False)


def test_it_can_be_kept_and_sent():
    known = Disclosure.of("rank_swap", {"p": {"x": 0.1, "y": 0.2}}, by=["g"])
    found = pickle.loads(pickle.dumps(known))  # noqa: S301 - our own
    assert found == known
    values = np.arange(200.0).reshape(100, 2)
    assert [found.width(name, values, ["a", "b"]).tolist() for name in "xy"] == [[10, 10], [20, 20]]


def test_the_window_is_that_of_the_columns_that_are_measured():
    """Given columns keep their ranks; the places of the others do not depend on which are measured."""
    found = Disclosure.of("shuffle", {"given": ["c", "a"]})
    values = np.zeros((7, 3))
    assert found.width("all", values, COLUMNS).tolist() == [0.0, 7.0, 0.0]
    assert found.width("all", values[:, :2], ["b", "c"]).tolist() == [7.0, 0.0]
    assert found.width("all", values[:, :1], ["b"]).tolist() == [7.0]


@pytest.mark.long
def test_the_risk_of_a_file_does_not_depend_on_how_the_window_is_stated():
    data, masked = frame(), swapped()
    ways = [
        {"disclosure": Disclosure.of("rank_swap", {"p": 0.1})},
        {"method": "rank_swap", "parameters": {"p": "0.1"}},
        {"window": 0.1},
        {"window": lambda values: int(0.1 * len(values) + 1e-9)},
        {"window": {"all": 0.1}},
    ]
    found = [called("evaluate", data, masked, metrics=["linkage", NEAREST], **way) for way in ways]
    assert len({result[NEAREST] for result in found}) == 1
    assert [result.notes == () for result in found] == [True, True, False, False, False]  # a window is no law
    blind = sdc.evaluate(data, masked, metrics=["linkage", NEAREST])
    assert blind[NEAREST] < found[0][NEAREST]
    assert any(note.startswith("nobody said how the file was masked") for note in blind.notes)


def test_measures_that_make_no_use_of_it_need_no_note():
    metrics = ["brmae", "dbrl", "window:within=0.1", "rid"]
    assert not any("nobody said" in note for note in sdc.evaluate(frame(), swapped(), metrics=metrics).notes)


@pytest.mark.parametrize(
    "metric", ["linkage", "window", later("linkage_outliers"), later("linkage_outliers:share=0.1")]
)
def test_measures_that_do_are_named_in_a_note(metric):
    notes = sdc.evaluate(frame(), swapped(), metrics=["brmae", metric]).notes
    assert any(f"nobody said how the file was masked: the law behind {metric} was" in note for note in notes)
    known = {"method": "rank_swap", "parameters": {"p": 0.1}}
    assert not called("evaluate", frame(), swapped(), metrics=metric, **known).notes


def test_a_method_without_a_window_is_knowledge_too():
    masked = sdc.mask(frame(), "noise", percent=30, rng=1)
    known = sdc.evaluate(frame(), masked, made_by=sdc.Method("noise", percent=30), metrics="linkage")
    assert known["linkage"] >= 0.95 * sdc.evaluate(frame(), masked, metrics="linkage")["linkage"]
    assert known.notes == ()


def test_rows_of_a_method_that_loses_the_pairing_are_not_compared():
    masked = sdc.mask(frame(), "copula", rng=1)
    result = sdc.evaluate(frame(), masked, made_by=sdc.Method("copula"))
    assert "linkage" not in result.meaning
    assert result.table.equals(sdc.evaluate(frame(), masked, made_by=sdc.Method(paired=False)).table)


def strata():
    return frame(60).with_columns(g=np.array(["x", "y"])[np.arange(60) % 2])


STATED = {"method": "rank_swap", "parameters": {"p": 0.2}}


def swapped_in_strata():
    data = strata()
    return data, sdc.Microdata(data, by="g").release(
        "rank_swap", p=0.2, entropy=entropy(1), metrics=["linkage"], decimals=None
    )


@pytest.mark.long
def test_strata_are_those_of_the_disclosure_and_of_the_method():
    data, release = swapped_in_strata()
    assert release.disclosure.by == ("g",)
    how = {"rows": release.rows, "metrics": "linkage"}
    told = called("evaluate", data, release.data, **how, disclosure=release.disclosure)
    named = sdc.Microdata(data, by="g").evaluate(release, metrics="linkage")
    stated = [
        called("evaluate", data, release.data, **how, by="g", **STATED, **more)
        for more in ({}, {"stratified": True})
    ]
    for found in (told, named, *stated):
        assert found.table.equals(release.evaluation.table)
        assert found.notes == release.evaluation.notes


@pytest.mark.long
def test_a_file_masked_as_a_whole_may_be_shown_by_strata():
    """`stratified=False` says that strata are for measuring only, and so does a window by default."""
    data, release = swapped_in_strata()
    how = {"rows": release.rows, "metrics": NEAREST, "by": "g"}
    whole = called("evaluate", data, release.data, **STATED, **how, stratified=False)
    assert whole.table.equals(called("evaluate", data, release.data, **how, window=0.2).table)
    assert whole[NEAREST] < called("evaluate", data, release.data, **STATED, **how)[NEAREST]


@pytest.mark.parametrize("known", [STATED, {"window": 0.2}, {}], ids=["method", "window", "nothing"])
def test_strata_that_do_not_exist_are_refused(known):
    message = "stratified is True and there are no strata; name their column with by"
    with pytest.raises(ValueError, match=message):
        called("evaluate", frame(), frame(), stratified=True, **known)


@pytest.mark.long
def test_a_number_by_stratum_needs_strata_of_the_masking():
    known = {"method": "rank_swap", "parameters": {"p": "x:0.1,y:0.2"}}
    masked = sdc.Microdata(strata(), by="g").mask("rank_swap", p={"x": 0.1, "y": 0.2}, rng=1)
    assert called("evaluate", strata(), masked, by="g", metrics="linkage", **known)["linkage"] > 0
    with pytest.raises(ValueError, match=r"p is .* and the file was masked as a whole; give one number"):
        called("evaluate", strata(), masked, by="g", stratified=False, **known)


# --- which columns ---


@pytest.mark.long
def test_the_columns_that_were_masked_are_the_ones_measured():
    data = frame()
    release = sdc.Microdata(data, columns=["b", "a"]).release("rank_swap", p=0.15, entropy=entropy(1))
    assert set(release.disclosure.columns) == {"a", "b"}
    how = {"rows": release.rows, "disclosure": release.disclosure}
    again = called("evaluate", data, release.data, **how)
    assert again.table.equals(release.evaluation.table)
    with pytest.warns(UserWarning, match="more than half of the cells are as in the original: 'c';"):
        wider = called("evaluate", data, release.data, **how, columns=COLUMNS)
    assert wider["dbrl"] != again["dbrl"]
    assert "measured, but not masked by this method: c" in wider.notes
    fewer = called("evaluate", data, release.data, **how, columns="a")
    assert fewer.table["variable"].unique().sort().to_list() == ["a", "all"]
    assert fewer.notes == release.evaluation.notes


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", [lambda t: t.to_numpy(), lambda t: t["a"].to_numpy(), lambda t: t.to_pandas()]
)
def test_every_kind_of_table_has_columns(kind):
    data = kind(frame())
    release = sdc.release(data, "rank_swap", p=0.15, entropy=entropy(1), metrics=["linkage"])
    again = sdc.evaluate(data, release, metrics=["linkage"])
    assert again.table.equals(release.evaluation.table)


# --- made by hand ---


@each("name", sdc.METHODS)
def test_one_made_by_hand_is_that_of_the_method(name):
    found = sdc.Disclosure(method=name)
    assert found == Disclosure.of(name, {})
    assert replace(found, rules="a >= 0").window == found.window


def test_what_is_given_by_hand_stays():
    narrow = disclosure_of(None, Method(window=0.1)).window
    found = Disclosure("rank_swap", {"p": 0.5}, narrow, by="g", columns="a", paired=False, keeps=["ranks"])
    told = found.window, found.paired, found.keeps, found.deterministic
    assert told == (narrow, False, ("ranks",), False)
    assert (found.by, found.columns) == (("g",), ("a",))
    wider = replace(Disclosure("rank_swap", {"p": 0.1}), parameters={"p": 0.5})
    assert wider.width("all", np.zeros((100, 2)), ["a", "b"]).tolist() == [50, 50]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "nonsense"}, "unknown method 'nonsense'"),
        ({"method": "rank_swap", "parameters": {"q": 1}}, "method 'rank_swap' has no parameter 'q'"),
        ({"method": "rank_swap", "parameters": {"p": 3}}, "p is 3, out of range"),
        ({"method": "rank_swap", "parameters": {"p": {"x": 0.1}}}, "there are no strata; give one number"),
        ({"parameters": {"p": 0.1}}, "parameters are given without a method: p; name the method"),
    ],
)
def test_one_that_no_method_discloses_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Disclosure(**options)


@pytest.mark.parametrize("given", [{"method": "rank_swap"}, "rank_swap", 0.15, frame()])
def test_what_is_no_disclosure_is_refused_in_one_line(given):
    message = f"made_by is a {type(given).__name__}; give sdc.Method"
    with pytest.raises(TypeError, match=message):
        sdc.evaluate(frame(), frame(), made_by=given)


# --- frozen ---


def test_it_cannot_be_changed():
    widths, rules = {"x": 0.1, "y": 0.2}, ["a >= 0"]
    known = Disclosure.of("rank_swap", {"p": widths}, by=["g"], rules=rules)
    widths["x"] = 0.9
    rules.append("b >= 0")
    assert (known.parameters["p"], known.rules) == ({"x": 0.1, "y": 0.2}, ("a >= 0",))
    for mapping in (known.parameters, known.parameters["p"]):
        for change in ("clear()", "update(p=0.9)", "popitem()", "pop('p')", "setdefault('q', 1)"):
            with pytest.raises(TypeError, match="cannot be changed"):
                eval(f"mapping.{change}")  # noqa: S307 - our own words
        with pytest.raises(TypeError, match="cannot be changed"):
            mapping["x"] = 0.9
        with pytest.raises(TypeError, match="cannot be changed"):
            mapping |= {"x": 0.9}
        with pytest.raises(TypeError, match="cannot be changed"):
            del mapping["x"]
    with pytest.raises(FrozenInstanceError):
        known.method = "noise"
    assert known.width("x", np.zeros((100, 2)), ["a", "b"]).tolist() == [10, 10]


@pytest.mark.parametrize("turn", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301
def test_equal_ones_are_equal_however_they_were_kept(turn):
    for known in (
        Disclosure.of("rank_swap", {"p": {"x": 0.1, "y": 0.2}}, by=["g"], rules=["a >= 0"]),
        disclosure_of(None, Method(window={"x": 0.1}, stratified=True), by=["g"]),
    ):
        assert turn(known) == known
        assert {turn(known): 1}[known] == 1
    assert Disclosure.of("rank_swap", {"p": 0.1}) != Disclosure.of("rank_swap", {"p": 0.2})


def test_windows_by_stratum_may_be_given_by_name():
    data = strata()
    masked = sdc.Microdata(data, by="g").mask("rank_swap", p={"x": 0.1, "y": 0.4}, rng=1)
    how = {"metrics": [NEAREST], "by": "g", "stratified": True}
    stated = called("evaluate", data, masked, window={"y": 0.4, "x": 0.1}, **how)
    known = {"method": "rank_swap", "parameters": {"p": {"x": 0.1, "y": 0.4}}}
    assert stated.table.equals(called("evaluate", data, masked, **known, **how).table)
    with pytest.raises(ValueError, match="y"):
        called("evaluate", data, masked, window={"x": 0.1}, **how)


REFUSED = {
    "method": sdc.Method("noise"),
    "window": sdc.Method(window=0.1),
    "stratified": sdc.Method(stratified=False),
    "paired": sdc.Method(paired=False),
}


@pytest.mark.parametrize("word", REFUSED)
def test_nothing_is_said_twice(word):
    release = sdc.release(frame(), "rank_swap", entropy=entropy(1))
    with pytest.raises(ValueError, match=f"how the file was masked and {word} is given too; drop one"):
        sdc.evaluate(frame(), release, made_by=REFUSED[word])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "rank_swap", "window": 0.1},
            "the method rank_swap determines the window and window is given",
        ),
        (
            {"disclosure": Disclosure(by=("g",)), "by": "a"},
            "by is a and the file was masked within strata of g",
        ),
        (
            {"window": {"x": 0.1}},
            "window is given by stratum and there are no strata; name their column with by",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        called("evaluate", frame(), frame(), **options)


def test_a_window_by_stratum_is_one_within_strata():
    assert disclosure_of(None, Method(window={"x": 0.1}), by=["g"]).by == ("g",)
    text = "window is given by stratum and stratified is False; give one window for the file"
    with pytest.raises(ValueError, match=text):
        disclosure_of(None, Method(window={"x": 0.1}, stratified=False), by=["g"])


def test_what_is_stated_becomes_one_record():
    found = disclosure_of(None, Method(window=0.1, stratified=True), rules="a >= 0", by=["g"])
    assert (found.method, found.by, found.rules) == (None, ("g",), "a >= 0")
    assert found.width("any", np.zeros((50, 2)), ["a", "b"]) == 5
    assert not found.uninformed
    assert disclosure_of(None, Method(), by=["g"]).by == ()
    assert disclosure_of(None, Method()).uninformed
    assert not disclosure_of(None, Method("noise", paired=False)).paired
