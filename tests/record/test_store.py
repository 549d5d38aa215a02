"""The folder of the record: whole or not at all, with several writers, links and killed processes."""

import errno
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

import sdckit as sdc
from command import contents, good, put, run_here
from kept import NOISE, ROLES, only_entry, people, put_people, store_in
from sdckit.engines import files as parquet_files
from sdckit.io import atomic
from sdckit.io.atomic import sha256_of
from sdckit.record import store as stores
from sdckit.record.entry import DamagedRecord
from sdckit.record.store import ENTRY, KEY, Store, digest_of_file, write_private
from sdckit.request import release as releasing

OTHERS = ("published.csv", "crosswalk.parquet", "fingerprints.parquet", "originals.parquet")
IGNORED = {".lock", ".key"}


@pytest.fixture(scope="module")
def release():
    return sdc.Microdata(people(40), key="name", drop="street", untouched="region").release(
        "mdav", k=5, metrics="brmae"
    )


@pytest.fixture
def quiet(recwarn):
    """Warnings of records that were released before are no matter here."""
    return recwarn


def shown(folder):
    return sorted(path.name for path in Path(folder).iterdir() if path.name not in IGNORED)


@pytest.mark.usefixtures("quiet")
def test_ids_are_unique_where_the_same_bytes_are_published_again(tmp_path, release):
    ids = [release.publish(tmp_path / f"{i}.csv", tmp_path / "record") for i in range(3)]
    assert len(set(ids)) == 3
    assert all(one.startswith(ids[0]) for one in ids)
    store = store_in(tmp_path)
    assert store.find(store.read(ids[0]).output["sha256"]).id in ids
    digest = store.read(ids[0]).output["sha256"]
    assert [len(one) for one in sorted(ids, key=len)] == [17, 18, 19]
    assert ids[0] == f"{ids[0][:8]}-{digest[:8]}"


@pytest.mark.usefixtures("quiet")
def test_when_all_digits_are_taken_a_number_is_added(tmp_path, release):
    one = release.publish(tmp_path / "a.csv", tmp_path / "record")
    store = store_in(tmp_path)
    digest = store.read(one).output["sha256"]
    for size in range(9, 65):
        (store.folder / f"{one[:8]}-{digest[:size]}").mkdir()
    assert release.publish(tmp_path / "b.csv", tmp_path / "record") == f"{one}-2"


def test_a_signal_after_the_file_got_its_name_leaves_its_record(tmp_path, release, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic, "sync_folder", interrupted)
    with pytest.raises(KeyboardInterrupt):
        release.publish(tmp_path / "out.csv", tmp_path / "record")
    entry = only_entry(store_in(tmp_path))
    assert entry.output["sha256"] == digest_of_file(tmp_path / "out.csv")


@pytest.mark.parametrize("failing", ["copy", "entry", "rename"])
def test_a_record_that_cannot_be_written_leaves_nothing_and_no_file(tmp_path, release, monkeypatch, failing):
    store_in(tmp_path).check()
    before = contents(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    where = {
        "copy": (stores, "copy_private"),
        "entry": (stores, "write_private"),
        "rename": (Path, "rename"),
    }
    monkeypatch.setattr(*where[failing], full)
    with pytest.raises(OSError, match=r"could not write .*no space left on device; name another folder"):
        release.publish(tmp_path / "out.csv", tmp_path / "record")
    monkeypatch.undo()
    assert contents(tmp_path) == before


def test_a_file_that_cannot_be_named_has_no_record(tmp_path, release, monkeypatch):
    def refuse(*_given, **_named):
        raise FileExistsError("'out.csv' exists already")

    monkeypatch.setattr(atomic, "_move_to_target", refuse)
    with pytest.raises(FileExistsError):
        release.publish(tmp_path / "out.csv", tmp_path / "record")
    assert shown(tmp_path / "record") == []
    assert shown(tmp_path) == ["record"]


def test_unfinished_work_of_killed_processes_is_swept(tmp_path, release):
    store = store_in(tmp_path)
    store.check()
    (store.folder / ".part-0123").mkdir()
    (store.folder / ".part-0123" / ENTRY).write_text("{}")
    (store.folder / ".part-4567").write_text("half an index")
    one = release.publish(tmp_path / "out.csv", store.folder)
    assert shown(store.folder) == [one]


def add(store, entry, digest="ab" * 32):
    """Write a record of plain files as a release does; forked processes cannot write Parquet."""
    store.check()
    with store.lock():
        return store.add(digest, dict.fromkeys(OTHERS, b"content"), lambda name, _: replace(entry, id=name))


def in_a_fork(work):
    """Start a process that does some work and ends; return its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def exit_codes(children):
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def kill_after(syncs):
    """Kill this process after so many syncs."""
    left, sync = [syncs], os.fsync

    def count(handle):
        sync(handle)
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = count


@pytest.mark.long
def test_killed_at_any_file_it_leaves_a_whole_record_or_none(tmp_path, release):
    release.publish(tmp_path / "out.csv", tmp_path / "record")
    entry, found = only_entry(store_in(tmp_path)), []
    for syncs in range(1, 11):
        store = store_in(tmp_path, f"record {syncs}")
        in_fork = in_a_fork(lambda store=store, syncs=syncs: (kill_after(syncs), add(store, entry)))
        (code,) = exit_codes([in_fork])
        left, broken = store.entries()
        assert broken == []
        assert all(
            (store.folder / one.id / name).read_bytes() == b"content" for one in left for name in OTHERS
        )
        store.check()
        assert shown(store.folder) == [one.id for one in left]
        found.append((code, len(left)))
    assert found[0] == (-signal.SIGKILL, 0)
    assert (-signal.SIGKILL, 1) in found
    assert found[-1] == (0, 1)


@pytest.mark.long
def test_processes_at_once_keep_all_records(tmp_path, release):
    release.publish(tmp_path / "out.csv", tmp_path / "other")
    entry, store = only_entry(store_in(tmp_path, "other")), store_in(tmp_path)
    assert exit_codes([in_a_fork(lambda: add(store, entry)) for _ in range(6)]) == [0] * 6
    entries, broken = store.entries()
    assert (len(entries), broken) == (6, [])
    assert shown(store.folder) == store.ids()
    assert len({one.id for one in entries}) == 6


def test_what_another_process_is_writing_is_not_swept(tmp_path):
    store = store_in(tmp_path)
    store.check()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with store.lock():
            (store.folder / ".part-mine").mkdir()
            os.write(write, b"x")
            time.sleep(0.5)
            os._exit(0 if (store.folder / ".part-mine").exists() else 1)
    os.read(read, 1)
    store.check()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert shown(store.folder) == []


def test_links_are_followed_to_the_folder_and_nowhere_inside(tmp_path, release):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    one = release.publish(tmp_path / "out.csv", tmp_path / "link")
    store = Store.at(tmp_path / "link")
    assert store.folder == (tmp_path / "real").resolve()
    (store.folder / "20260101-00000000").symlink_to(one)
    assert store.ids() == [one]
    entry = store.folder / one / ENTRY
    entry.rename(tmp_path / "elsewhere.json")
    entry.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(DamagedRecord, match="no plain file"):
        store.read(one)


def test_a_link_in_the_place_of_a_new_file_is_not_followed(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "new").symlink_to("victim")
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "new", b"secret")
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.parametrize("kind", ["file", "other files", "file above"])
def test_a_folder_that_cannot_be_used_is_refused_before_any_work(tmp_path, kind):
    put_people(tmp_path)
    private = tmp_path / "record"
    if kind == "file":
        private.write_text("")
    elif kind == "file above":
        private.write_text("")
        private = private / "below"
    else:
        private.mkdir()
        (private / "thesis.tex").write_text("")
    before = contents(tmp_path)
    done = run_here(
        tmp_path, "mask", "data.csv", "-o", "out.csv", "--release", *NOISE, *ROLES, "--private", private
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "name a" in done.stderr
    assert contents(tmp_path) == before


def test_a_read_only_place_is_refused_before_any_work(tmp_path, monkeypatch):
    put_people(tmp_path)

    def refuse(*_given, **_named):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(stores, "make_folder", refuse)
    monkeypatch.setattr("sdckit.request.release.read_data", None)  # nothing is read
    done = run_here(tmp_path, "mask", "data.csv", "-o", "out.csv", "--release", *NOISE, *ROLES)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "read-only file system; name another folder for the private record (--private)" in done.stderr


def test_private_is_for_releases_alone(tmp_path):
    put_people(tmp_path)
    done = run_here(tmp_path, "mask", "data.csv", "-o", "out.csv", *NOISE, *ROLES, "--private", "record")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--private is for a file that is handed out" in done.stderr
    assert not (tmp_path / "record").exists()


def test_times_are_in_utc_and_no_plain_mask_is_recorded(tmp_path, release):
    release.publish(tmp_path / "out.csv", tmp_path / "record")
    entry = only_entry(store_in(tmp_path))
    assert time.strptime(entry.time, "%Y-%m-%dT%H:%M:%SZ")
    assert (store_in(tmp_path).folder / KEY).stat().st_size == 32
    put_people(tmp_path)
    assert run_here(tmp_path, "mask", "data.csv", "-o", "m.csv", *NOISE, *ROLES).returncode == 0
    assert Store.at().ids() == []


@pytest.mark.parametrize("form", ["file", "folder"])
def test_a_record_names_the_bytes_that_were_measured(tmp_path, monkeypatch, form):
    if form == "file":
        data = put_people(tmp_path)
    else:
        data = put(tmp_path, "data/.keep", "").parent
        put_people(data, name="part.parquet")
    digest, read = digest_of_file(data), releasing.read_data

    def read_and_replace(path, *more):
        source = read(path, *more)
        (data if form == "file" else data / "new").write_text("another file")
        return source

    monkeypatch.setattr(releasing, "read_data", read_and_replace)
    words = ["--release", *NOISE, *ROLES, "--private", "record", "--private-report", "r.html"]
    good(tmp_path, "mask", data.name, "-o", "out.csv", *words)
    assert only_entry(store_in(tmp_path)).input["sha256"] == digest
    assert digest in (tmp_path / "r.html").read_text()


def test_a_folder_that_gains_a_file_while_it_is_read_is_refused(tmp_path, monkeypatch):
    folder = put(tmp_path, "data/.keep", "").parent
    put_people(folder, name="a.parquet")

    def digest_and_add(path):
        put_people(folder, name="b.parquet")
        return sha256_of(path)

    monkeypatch.setattr(parquet_files, "sha256_of", digest_and_add)
    done = run_here(tmp_path, "mask", "data", "-o", "out.csv", "--engine", "memory", *NOISE, *ROLES)
    assert (done.returncode, "start again" in done.stderr) == (2, True)
