"""The private record is for its owner alone: from the moment that a file exists, and under every umask."""

import os
import stat
from pathlib import Path

import pytest

import sdckit as sdc
from kept import people, store_in
from sdckit.record import store as private_files
from sdckit.record.store import Store


def modes(folder):
    """Every path below a folder, and the folder, with its mode."""
    return {path: stat.S_IMODE(path.lstat().st_mode) for path in [folder, *Path(folder).rglob("*")]}


def require_private(folder):
    for path, mode in modes(folder).items():
        assert mode == (0o700 if path.is_dir() else 0o600), (path, oct(mode))


@pytest.fixture(params=[0o000, 0o077, 0o777], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture(scope="module")
def release():
    return sdc.Microdata(people(), key="name", drop="street", untouched="region").release(
        "mdav", k=5, metrics="brmae"
    )


@pytest.mark.usefixtures("umask")
def test_no_file_is_ever_open_to_others(tmp_path, monkeypatch, release):
    """Looked at whenever something is written: each file before its first byte and before each renaming."""
    folder, seen = tmp_path / "new" / "record", set()
    write = private_files._write_all  # noqa: SLF001 - all bytes of the record pass through it

    def look(handle, content):
        assert stat.S_IMODE(os.fstat(handle).st_mode) == 0o600
        require_private(folder)
        seen.update(path.name.split("-")[0] for path in folder.iterdir())
        write(handle, content)

    monkeypatch.setattr(private_files, "_write_all", look)
    tmp_path.chmod(0o700)
    target = tmp_path / "out"
    target.mkdir()
    target.chmod(0o700)
    release.publish(target / "out.csv", folder)
    assert ".part" in seen
    require_private(folder)
    require_private(tmp_path / "new")


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o500])
def test_a_folder_that_is_open_is_closed_and_one_that_is_shut_is_opened(tmp_path, mode, release):
    folder = tmp_path / "record"
    folder.mkdir()
    folder.chmod(mode)
    release.publish(tmp_path / "out.csv", folder)
    require_private(folder)
    folder.chmod(mode)
    with pytest.warns(UserWarning, match="released before"):
        release.publish(tmp_path / "again.csv", folder)
    require_private(folder)
    assert len(store_in(tmp_path).ids()) == 2


@pytest.fixture(scope="module")
def shared_by_a_module():
    return Store.at().folder


def test_no_fixture_keeps_releases_among_those_of_the_user(shared_by_a_module, tmp_path_factory):
    base = tmp_path_factory.getbasetemp().resolve()
    assert base in shared_by_a_module.parents
    assert base in Store.at().folder.parents
    assert Store.at().folder != shared_by_a_module
