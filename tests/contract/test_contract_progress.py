"""Progress of every public function and command: one bar that rises from 0 to 1 and never moves back."""

import io
import math
from contextlib import chdir
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
import rich.progress

import command
import sdckit as sdc
from calls import called
from cases import each
from sdckit import progress
from sdckit.masking import METHODS
from secret_bytes import entropy

PLAN = {"mdav": {"k": range(2, 8)}, "noise": {"percent": [20, 40, 80]}}
PRESS = {"press": {"known": ["a"], "max_risk": {"linkage": 0.95}}}
ROLES = {"by": "g", "columns": ["a", "b", "c"]}


def people(n=60):
    """Three variables, whole and positive, in two strata."""
    values = np.random.default_rng(4).lognormal(5, 1, (n, 3)).round() + 1
    return pl.DataFrame(values, schema=["a", "b", "c"]).with_columns(g=pl.Series(["x", "y"] * (n // 2)))


class Seen(list):
    """Callback that records each step and share it is called with."""

    def __call__(self, step, share):
        self.append((step, share))

    def require_one_rise(self):
        shares = [share for _, share in self]
        assert shares[0] == 0.0
        assert shares[-1] == 1.0
        backwards = [(one, other) for one, other in pairwise(self) if other[1] < one[1]]
        assert backwards == []


def evaluated(**more):
    masked = sdc.Microdata(people(), by="g").mask("mdav", k=3)
    return called("evaluate", people(), masked, **ROLES, **more)


def released_together(**more):
    masked = [sdc.Microdata(people(), **ROLES).mask("noise", percent=30, rng=seed) for seed in (1, 2)]
    return called("evaluate", people(), masked, together=True, **ROLES, **more)


def applied(**more):
    choice = sdc.Microdata(people(), **ROLES).recommend(
        max_risk={"linkage": 0.9}, plan=PLAN, rng=1, workers=1
    )
    return choice.release(**more)


def drawn_again(**more):
    """A release whose first draws miss the limit."""
    options = {
        "max_risk": {"linkage": 0.35, "linkage_sure": 1},
        "metrics": "brmae",
        "entropy": entropy(1),
        "tries": 50,
    }
    found = called("release", people(40).select("a"), "noise", percent=5, **options, **more)
    assert found.draws > 1
    return found


CALLS = {
    "evaluate": lambda **more: evaluated(intruders=PRESS, per_record=True, **more),
    "evaluate together": released_together,
    "release": lambda **more: called("release", people(), "mdav", k=3, intruders=PRESS, **ROLES, **more),
    "release drawn again": drawn_again,
    "sweep": lambda **more: called("sweep", people(), PLAN, workers=2, **ROLES, **more),
    "recommend": lambda **more: called(
        "recommend",
        people(),
        max_risk={"linkage": 0.9},
        plan=PLAN,
        intruders=PRESS,
        rng=1,
        workers=1,
        **ROLES,
        **more,
    ),
    "apply": applied,
}


@pytest.mark.parametrize("call", CALLS)
def test_functions_report_one_rise(call):
    seen = Seen()
    CALLS[call](progress=seen)
    seen.require_one_rise()
    if call != "sweep":  # which reports ten times a second
        assert any(0 < share < 1 for _, share in seen)


@each("method", METHODS)
@pytest.mark.filterwarnings("ignore")
def test_every_method_reports_one_rise_over_strata_and_rules(method):
    seen = Seen()
    known = METHODS[method]
    ruled = {"rules": ["a >= 0"]} if known.keeps_pairing(known.defaults()) else {}
    with progress.reported_to(seen):
        sdc.Microdata(people(), **ROLES, **ruled).mask(method, rng=3)
    seen.require_one_rise()
    assert {step for step, _ in seen} == {"masking"}


LIMIT = ["--max-risk", "linkage=0.9"]
GRID = ["--grid", "mdav.k=2:7", "--grid", "noise.percent=20:80:20", "--workers", "1"]
STRATA = ["--by", "g"]
COMMANDS = {
    "mask": ["mask", "data.csv", "-o", "x.csv", "--method", "mdav", *STRATA, "--report", "x.html"],
    "mask --release": ["mask", "data.csv", "-o", "y.csv", "--method", "noise", *STRATA, "--release"],
    "mask --no-measure": ["mask", "data.csv", "-o", "z.csv", "--method", "mdav", *STRATA, "--no-measure"],
    "evaluate": [
        *["evaluate", "data.csv", "masked.csv", *STRATA, "--report", "e.html"],
        *["--scenario", "press=a:linkage=0.5"],
    ],
    "evaluate several": ["evaluate", "data.csv", "masked.csv", "other.csv", *STRATA],
    "evaluate together": ["evaluate", "data.csv", "masked.csv", "other.csv", "--together"],
    "sweep": ["sweep", "data.csv", "-o", "swept", *GRID, *STRATA, "--report", "s.html"],
    "recommend": [
        *["recommend", "data.csv", "-o", "r.csv", *LIMIT, *GRID, *STRATA, "--report", "r.html"],
        *["--scenario", "press=a:linkage=0.95"],
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("progress")
    people().write_csv(place / "data.csv")
    for seed, name in enumerate(["masked", "other"]):
        sdc.Microdata(people(), **ROLES).mask("noise", percent=30, rng=seed).write_csv(place / f"{name}.csv")
    return place


@pytest.mark.long
@pytest.mark.parametrize("words", COMMANDS)
def test_commands_report_one_rise(folder, words):
    seen = Seen()
    with progress.reported_to(seen):
        command.good(folder, *COMMANDS[words])
    seen.require_one_rise()


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self):
        return True


@pytest.mark.long
def test_a_terminal_shows_one_bar_that_only_rises(folder, monkeypatch):
    bars, shown = set(), []
    update = rich.progress.Progress.update

    def noted(bar, task, *, completed, description):
        bars.add(id(bar))
        shown.append((description, completed))
        update(bar, task, completed=completed, description=description)

    terminal = Terminal()
    monkeypatch.setattr(rich.progress.Progress, "update", noted)
    monkeypatch.setattr(progress, "SHOW_AFTER", -math.inf)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    monkeypatch.setenv("TERM", "xterm")
    progress.show_progress(True)
    try:
        with chdir(folder), pytest.raises(SystemExit) as stop:
            command.main([*COMMANDS["recommend"], "--overwrite"])
    finally:
        progress.show_progress(False)
    assert not stop.value.code
    assert len(bars) == 1
    assert [share for _, share in shown] == sorted(share for _, share in shown)
    assert list(dict.fromkeys(step for step, _ in shown)) == ["searching", "masking", "writing", "measuring"]
    assert "searching" in terminal.getvalue()


def test_a_loop_left_by_an_error_does_not_disturb_later_work():
    def failing():
        for item in progress.each("inner", range(4)):
            if item == 1:
                raise ValueError("left")

    seen, kept = Seen(), None
    with progress.reported_to(seen):
        try:
            with progress.track("outer", 2.0):
                failing()
        except ValueError as error:
            kept = error  # and with it the loop
        with progress.track("next", 2.0) as report:
            report(1.0)
            kept.__traceback__ = None
            del kept
            for _ in progress.each("inner", range(2)):
                pass
    assert [one for one in seen if one[0] == "next"] == [("next", share) for share in (0, 0.5, 0.5, 0.75, 1)]
