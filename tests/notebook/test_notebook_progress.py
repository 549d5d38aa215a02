"""Progress in notebooks: shown without being asked for, in one place, gone at the end; never in scripts."""

import sys
from types import SimpleNamespace

import pytest

from sdckit import progress


class Place:
    """Output below a cell: all that was shown in it, the last being what is left."""

    def __init__(self, content):
        self.seen = [content]

    def update(self, content, *, raw):
        assert raw
        self.seen.append(content)


@pytest.fixture
def places(monkeypatch):
    """The outputs of a notebook's cell; work is shown at once."""
    found = []

    def display(content, *, raw, display_id):
        assert raw
        assert display_id
        found.append(Place(content))
        return found[-1]

    shell = SimpleNamespace(kernel=object())
    display_module = SimpleNamespace(display=display)
    package = SimpleNamespace(get_ipython=lambda: shell, display=display_module, shell=shell)
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", display_module)
    monkeypatch.setattr(progress, "SHOW_AFTER", 0.0)
    monkeypatch.setattr(progress, "NOTEBOOK_STEP", 0.0)
    monkeypatch.setattr(progress, "_enabled", None)
    return found


def test_one_bar_moves_and_nothing_of_it_is_left(places, capsys):
    assert list(progress.each("a < b", range(4))) == [0, 1, 2, 3]
    (place,) = places
    texts = [content["text/plain"].split(",")[0] for content in place.seen]
    assert texts == ["a < b: 0%", "a < b: 25%", "a < b: 50%", "a < b: 75%", ""]
    assert 'value="0.2500"' in place.seen[1]["text/html"]
    assert "a &lt; b: 25%" in place.seen[1]["text/html"]
    assert place.seen[-1] == {"text/plain": "", "text/html": ""}
    assert capsys.readouterr() == ("", "")


def test_an_error_leaves_no_bar(places):
    def stopped():
        with progress.track("stopped", 2) as report:
            report(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert places[0].seen[-1]["text/plain"] == ""


def test_it_can_be_switched_off(places):
    progress.show_progress(False)
    list(progress.each("counting", range(3)))
    assert places == []


def test_short_work_shows_nothing(places, monkeypatch):
    monkeypatch.setattr(progress, "SHOW_AFTER", 60.0)
    list(progress.each("counting", range(3)))
    assert places == []


def test_it_is_not_drawn_more_often_than_eyes_see(places, monkeypatch):
    monkeypatch.setattr(progress, "NOTEBOOK_STEP", 60.0)
    list(progress.each("counting", range(100)))
    assert len(places[0].seen) == 2  # the first, and the empty one


@pytest.mark.parametrize("shell", [None, SimpleNamespace()], ids=["imported only", "terminal"])
def test_scripts_and_terminals_that_import_ipython_show_nothing(places, capsys, monkeypatch, shell):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    list(progress.each("counting", range(3)))
    assert places == []
    assert capsys.readouterr() == ("", "")
