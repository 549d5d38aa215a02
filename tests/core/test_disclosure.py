"""What a masking publishes about itself, and how `evaluate` is told of it."""

import pickle

import numpy as np
import pytest

import sdckit as sdc
from sdckit.core.disclosure import Disclosure, disclosure_of
from sweeps import frame

UNKNOWN = "linkage assumes the intruder does not know the method; else give method="
COLUMNS = ["a", "b", "c"]


def swapped(p=0.1, **more):
    return sdc.mask(frame(), "rank_swap", p=p, rng=1, **more)


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
    assert [found.width(name, values, ["a", "b"]) for name in "xy"] == [10, 20]


def test_the_window_is_that_of_the_columns_that_are_measured():
    """Given columns keep their ranks; the places of the others do not depend on which are measured."""
    found = Disclosure.of("shuffle", {"given": ["c", "a"]})
    values = np.zeros((7, 3))
    assert found.width("all", values, COLUMNS).tolist() == [0.0, 7.0, 0.0]
    assert found.width("all", values[:, :2], ["b", "c"]).tolist() == [7.0, 0.0]
    assert found.width("all", values[:, :1], ["b"]).tolist() == [7.0]


def test_the_risk_of_a_file_does_not_depend_on_how_the_window_is_stated():
    data, masked = frame(), swapped()
    ways = [
        {"disclosure": Disclosure.of("rank_swap", {"p": 0.1})},
        {"method": "rank_swap", "parameters": {"p": "0.1"}},
        {"window": 0.1},
        {"window": lambda values: int(0.1 * len(values) + 1e-9)},
        {"window": {"all": 0.1}},
    ]
    found = [sdc.evaluate(data, masked, metrics="linkage", **way) for way in ways]
    assert len({result["linkage"] for result in found}) == 1
    assert all(result.notes == () for result in found)
    blind = sdc.evaluate(data, masked, metrics="linkage")
    assert blind["linkage"] < found[0]["linkage"]
    assert any(note.startswith(UNKNOWN) for note in blind.notes)


@pytest.mark.parametrize("metric", ["brmae", "dbrl", "window:within=0.1", "rid"])
def test_measures_that_make_no_use_of_it_need_no_note(metric):
    assert not any("does not know" in note for note in sdc.evaluate(frame(), swapped(), metrics=metric).notes)


@pytest.mark.parametrize("metric", ["linkage", "linkage_outliers", "window", "linkage_outliers:share=0.1"])
def test_measures_that_do_are_named_in_a_note(metric):
    notes = sdc.evaluate(frame(), swapped(), metrics=["brmae", metric]).notes
    assert any(f"{metric} assumes the intruder does not know" in note for note in notes)
    assert not sdc.evaluate(frame(), swapped(), metrics=metric, method="rank_swap").notes


def test_a_method_without_a_window_is_knowledge_too():
    masked = sdc.mask(frame(), "noise", percent=30, rng=1)
    known = sdc.evaluate(frame(), masked, metrics="linkage", method="noise", parameters={"percent": 30})
    assert known["linkage"] == sdc.evaluate(frame(), masked, metrics="linkage")["linkage"]
    assert known.notes == ()


def test_rows_of_a_method_that_loses_the_pairing_are_not_compared():
    masked = sdc.mask(frame(), "copula", rng=1)
    result = sdc.evaluate(frame(), masked, method="copula")
    assert "linkage" not in result.meaning
    assert result.table.equals(sdc.evaluate(frame(), masked, paired=False).table)


def strata():
    return frame(60).with_columns(g=np.array(["x", "y"])[np.arange(60) % 2])


def test_strata_are_those_of_the_disclosure():
    data = strata()
    release = sdc.release(data, "rank_swap", p=0.2, by="g", rng=1, metrics=["linkage"])
    assert release.disclosure.by == ("g",)
    again = sdc.evaluate(data, release.data, metrics=["linkage"], disclosure=release.disclosure)
    assert again.table.equals(release.evaluation.table)
    named = sdc.evaluate(data, release.data, metrics=["linkage"], by="g", disclosure=release.disclosure)
    assert named.table.equals(again.table)


def test_windows_by_stratum_may_be_given_by_name():
    data = strata()
    masked = sdc.mask(data, "rank_swap", p={"x": 0.1, "y": 0.4}, by="g", rng=1)
    how = {"metrics": ["linkage"], "by": "g", "stratified": True}
    stated = sdc.evaluate(data, masked, window={"y": 0.4, "x": 0.1}, **how)
    known = {"method": "rank_swap", "parameters": {"p": {"x": 0.1, "y": 0.4}}}
    assert stated.table.equals(sdc.evaluate(data, masked, **known, **how).table)
    with pytest.raises(ValueError, match="y"):
        sdc.evaluate(data, masked, window={"x": 0.1}, **how)


KNOWN = Disclosure.of("rank_swap", {})
REFUSED = {
    "the disclosure says how the file was masked and method is given too": {"method": "noise"},
    "the disclosure says how the file was masked and window is given too": {"window": 0.1},
    "the disclosure says how the file was masked and rules is given too": {"rules": "a >= 0"},
    "the disclosure says how the file was masked and stratified is given too": {"stratified": True},
    "the disclosure says how the file was masked and paired is given too": {"paired": False},
}


@pytest.mark.parametrize("message", REFUSED)
def test_nothing_is_said_twice(message):
    with pytest.raises(ValueError, match=f"{message}; drop one"):
        sdc.evaluate(frame(), frame(), disclosure=KNOWN, **REFUSED[message])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "rank_swap", "window": 0.1},
            "the method rank_swap determines the window and window is given",
        ),
        ({"parameters": {"p": 0.1}}, "parameters p are given without a method; name the method"),
        ({"method": "swap"}, "swap"),
        ({"method": "rank_swap", "parameters": {"q": 1}}, "method 'rank_swap' has no parameter 'q'"),
        ({"method": "rank_swap", "parameters": {"p": {"x": 0.1}}}, "there are no strata; give one number"),
        (
            {"disclosure": Disclosure(by=("g",)), "by": "h"},
            "by is h and the file was masked within strata of g",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sdc.evaluate(frame(), frame(), **options)


def test_what_is_stated_becomes_one_record():
    found = disclosure_of(None, window=0.1, rules="a >= 0", by=["g"], stratified=True)
    assert (found.method, found.by, found.rules) == (None, ("g",), "a >= 0")
    assert found.width("any", np.zeros((50, 2)), ["a", "b"]) == 5
    assert not found.uninformed
    assert disclosure_of(None, by=["g"]).by == ()
    assert disclosure_of(None).uninformed
    assert not disclosure_of(None, method="noise", paired=False).paired
