"""Progress: silent at first and in the library; inner work refines the step of the outer."""

from contextlib import suppress

import pytest

from sdckit import progress


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "SHOW_AFTER", 0.0)
    monkeypatch.setattr(progress, "PLAIN_STEP", 0.0)
    progress.show_progress(True)
    yield
    progress.show_progress(False)


def lines(capsys):
    return [line.split(",")[0] for line in capsys.readouterr().err.splitlines()]


@pytest.mark.usefixtures("impatient")
def test_each_step_is_reported(capsys):
    assert list(progress.each("counting", [5, 6, 7, 8])) == [5, 6, 7, 8]
    assert lines(capsys) == ["counting: 0%", "counting: 25%", "counting: 50%", "counting: 75%"]


@pytest.mark.usefixtures("impatient")
def test_inner_work_refines_the_step_of_the_outer(capsys):
    for _ in progress.each("outer", range(2)):
        for _ in progress.each("inner", range(2)):
            pass
    assert lines(capsys) == ["outer: 0%", "outer: 0%", "outer: 25%", "outer: 50%", "outer: 50%", "outer: 75%"]


def reported(work):
    """What a callback gets while `work` runs."""
    seen = []
    with progress.reported_to(lambda step, share: seen.append((step, round(share, 6)))):
        work()
    return seen


def test_work_inside_inner_work_refines_its_step():
    def work():
        for _ in progress.each("a", range(2)):
            for _ in progress.each("b", range(2)):
                list(progress.each("c", range(2)))

    shares = [share for _, share in reported(work)]
    assert shares == sorted(shares)
    assert sorted(set(shares)) == [i / 8 for i in range(9)]


def test_a_step_with_several_computations_does_not_move_back():
    def work():
        for _ in progress.each("a", range(2)):
            for _ in range(3):
                list(progress.each("b", range(4)))

    shares = [share for _, share in reported(work)]
    assert shares == sorted(shares)
    assert sorted(set(shares)) == [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1]


def test_a_large_step_with_a_name_is_refined_as_a_whole():
    def work():
        with progress.track("first", 10.0) as report:
            report(0.0, 8.0)
            list(progress.each("b", range(2)))
            report(8.0, 2.0, "second")
            list(progress.each("c", range(2)))

    assert list(dict.fromkeys(reported(work))) == [
        ("first", 0),
        ("first", 0.4),
        ("second", 0.8),
        ("second", 0.9),
        ("second", 1),
    ]


def test_what_an_error_ends_is_not_reported_as_done():
    def work():
        with suppress(ValueError), progress.track("a", 2.0) as report:
            report(1.0)
            raise ValueError("no luck")

    assert reported(work) == [("a", 0), ("a", 0.5)]


@pytest.mark.usefixtures("impatient")
def test_after_an_error_the_next_work_starts_afresh(capsys):
    def interrupted():
        with progress.track("stopped", 2) as report:
            report(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with progress.track("next", 2) as report:
        report(1)
    assert lines(capsys) == ["stopped: 50%", "next: 50%"]


def test_silent_unless_asked_for(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SHOW_AFTER", 0.0)
    assert list(progress.each("counting", range(3))) == [0, 1, 2]
    assert lines(capsys) == []


class Clock:
    """Time that passes as a test says."""

    now = 100.0

    def monotonic(self):
        return self.now


def test_progress_appears_after_two_seconds_and_then_every_five(capsys, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    progress.show_progress(True)
    with progress.track("counting", 1000) as report:
        for seconds, done in ((1.9, 1), (2.0, 9), (6.9, 100), (7.0, 350), (11.9, 500), (12.0, 600)):
            clock.now = 100.0 + seconds
            report(done)
    progress.show_progress(False)
    assert capsys.readouterr().err.splitlines() == [
        "counting: 1%",  # too early to tell how much time is left
        "counting: 35%, about 13 s left",
        "counting: 60%, about 8 s left",
    ]


def test_short_work_shows_nothing(capsys, monkeypatch):
    monkeypatch.setattr(progress, "time", Clock())
    progress.show_progress(True)
    assert list(progress.each("counting", range(3))) == [0, 1, 2]
    progress.show_progress(False)
    assert lines(capsys) == []
