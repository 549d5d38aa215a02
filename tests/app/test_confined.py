"""Paths that somebody sends: resolved, links included, they must lie below the start folder."""

import pytest

from app_server import prepare
from sdckit.app.folders import confined

CONTROLS = [*map(chr, range(32)), *map(chr, range(127, 160)), "\udc80"]


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("paths"))


# Guard: paths are confined to the start folder.


@pytest.mark.parametrize("text", ["data.csv", "./data.csv", "below/../data.csv", "below//..//data.csv"])
def test_what_lies_below_is_found(start, text):
    assert confined(start, text) == (start / "data.csv").resolve()


def test_a_link_that_stays_below_and_a_file_that_is_not_there_yet_are_allowed(start):
    (start / "below/again.csv").symlink_to("../data.csv")
    assert confined(start, "below/again.csv") == (start / "data.csv").resolve()
    assert confined(start, "below/new.csv") == (start / "below/new.csv").resolve()


@pytest.mark.parametrize(
    "text",
    [
        "..",
        "../",
        "../outside/secret.csv",
        "../start-not/secret.csv",  # begins like the start folder's path
        "../start-not",
        "below/../../outside/secret.csv",
        "./../outside/secret.csv",
        "nowhere/../../outside/secret.csv",
        "data.csv/../../outside/secret.csv",
        "/etc/passwd",
        "//etc/passwd",
        "/",
        "/proc/self/environ",
        "/dev/stdin",
        "link.csv",
        "linked",
        "linked/secret.csv",
        "linked/../outside/secret.csv",
        "linked/new.csv",
        "below/../link.csv",
        "loop.csv",
        "loop.csv/data.csv",
    ],
)
def test_what_leads_out_is_refused_without_naming_where_it_leads(start, text):
    with pytest.raises(ValueError, match=r"\w") as error:
        confined(start, text)
    assert str(start.parent) not in str(error.value)
    assert "\n" not in str(error.value)


def test_the_full_path_of_what_lies_outside_is_refused(start):
    for name in ("outside/secret.csv", "start-not", "start/../outside", "start/link.csv"):
        with pytest.raises(ValueError, match=r"\w"):
            confined(start, str(start.parent / name))


def test_a_chain_of_links_is_followed_to_its_end(start):
    (start / "first").symlink_to("below/second")
    (start / "below/second").symlink_to("../linked")
    (start / "below/up").symlink_to("../..")
    for text in ("first", "first/secret.csv", "below/up", "below/up/outside/secret.csv"):
        with pytest.raises(ValueError, match=r"\w"):
            confined(start, text)


def test_a_start_folder_that_is_reached_by_a_link_itself_is_no_trouble(start, tmp_path):
    (tmp_path / "short").symlink_to(start)
    assert confined(tmp_path / "short", "data.csv") == (start / "data.csv").resolve()
    with pytest.raises(ValueError, match=r"\w"):
        confined(tmp_path / "short", "../outside/secret.csv")


@pytest.mark.parametrize(
    "text", ["..\\outside\\secret.csv", "C:\\secret.csv", "~/secret", "$HOME", "file:///etc"]
)
def test_other_ways_of_writing_paths_are_names_or_refused(start, text):
    try:
        found = confined(start, text)
    except ValueError:
        return
    assert found.is_relative_to(start.resolve())


@pytest.mark.parametrize("character", CONTROLS, ids=ascii)
def test_control_characters_are_refused(start, character):
    for text in (f"da{character}ta.csv", f"data.csv{character}", f"{character}data.csv"):
        with pytest.raises(ValueError, match=r"\w") as error:
            confined(start, text)
        assert character not in str(error.value)


@pytest.mark.parametrize(
    "text", ["a" * 4097, "a/" * 2049, "./" * 3000 + "data.csv", "\ud800.csv", "a" * 10**7]
)
def test_long_and_unwritable_paths_are_refused_in_a_short_line(start, text):
    with pytest.raises(ValueError, match=r"\w") as error:
        confined(start, text)
    assert len(str(error.value)) < 300
    assert str(error.value).isprintable()
