"""Paths of the page: nothing outside of the start folder, whatever a text, a link or a name says."""

import os

import pytest

from sdckit.app.folders import LONGEST, Entry, confined, list_folder, start_folder


@pytest.fixture
def start(tmp_path):
    """A start folder with files, a sub-folder, and links that stay inside or lead out of it."""
    outside = tmp_path / "outside"
    start = tmp_path / "start"
    for folder in (outside, start / "sub", start / ".hidden"):
        folder.mkdir(parents=True)
    (outside / "secret.csv").write_text("a\n1\n")
    for name in ("b.csv", "A.parquet", "notes.md", ".hidden.csv", "sub/deep.dta"):
        (start / name).write_text("a\n1\n")
    links = {
        "out.csv": outside / "secret.csv",
        "out": outside,
        "in.csv": start / "sub" / "deep.dta",
        "broken.csv": start / "none.csv",
        "circle.csv": start / "circle.csv",
    }
    for name, target in links.items():
        (start / name).symlink_to(target)
    return start


@pytest.mark.parametrize(
    "text", ["b.csv", "sub/../b.csv", "./b.csv", "sub/none-yet.csv", "in.csv", "", "ünï cödé"]
)
def test_a_path_below_the_start_folder_is_resolved(start, text):
    assert confined(start, text) == (start / text).resolve()


def test_a_refusal_says_where_a_path_must_lie_and_what_to_rename(start):
    with pytest.raises(ValueError, match="lies outside of the start folder; give one below it"):
        confined(start, "out/new.csv")
    with pytest.raises(ValueError, match="has control characters; rename the file"):
        confined(start, "b\x1b.csv")


def test_a_path_may_be_so_long_and_no_longer(start):
    assert confined(start, "a/" * (LONGEST // 2))
    with pytest.raises(
        ValueError, match=f"the path has {LONGEST + 1} characters; give one of at most {LONGEST}"
    ):
        confined(start, "a" * (LONGEST + 1))


def test_the_list_has_folders_then_files_that_can_be_read(start):
    assert list_folder(start, start) == [
        Entry("sub", "sub", True, 0),
        Entry("A.parquet", "A.parquet", False, 4),
        Entry("b.csv", "b.csv", False, 4),
        Entry("in.csv", "in.csv", False, 4),
    ]
    assert [entry.path for entry in list_folder(start, start / "sub")] == ["sub/deep.dta"]


def test_the_list_of_a_linked_start_folder_has_the_same_paths(start):
    linked = start.parent / "linked"
    linked.symlink_to(start)
    assert list_folder(linked, linked) == list_folder(start, start)


def test_a_name_with_control_characters_is_shown_safely_and_cannot_be_chosen(start):
    (start / "sub" / "x\x1b[31m\n.csv").write_text("a\n1\n")
    odd = [entry for entry in list_folder(start, start / "sub") if entry.path is None]
    assert [entry.name for entry in odd] == ["x\\u001b[31m\\u000a.csv"]


def test_a_pipe_is_no_file(start):
    os.mkfifo(start / "sub" / "pipe.csv")
    assert [entry.name for entry in list_folder(start, start / "sub")] == ["deep.dta"]


def test_a_folder_outside_or_missing_is_not_listed(start):
    with pytest.raises(ValueError, match="outside"):
        list_folder(start, start.parent)
    with pytest.raises(FileNotFoundError, match=r"no file .*none"):
        list_folder(start, start / "none")


def test_the_start_folder_is_the_working_directory_or_that_of_the_file(start, monkeypatch):
    monkeypatch.chdir(start)
    here, outside = start.resolve(), start.parent.resolve() / "outside"
    names = [None, start / "b.csv", start / "sub" / "deep.dta", outside / "secret.csv", start / "out.csv"]
    assert [start_folder(name) for name in names] == [here, here, here, outside, outside]
