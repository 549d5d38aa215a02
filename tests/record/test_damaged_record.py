"""Damage to any byte of a record is refused in one line, unless what was written is read all the same."""

import json
import shutil

import numpy as np
import pytest

from command import run_here
from kept import mask, only_entry, put_people, store_in
from sdckit.record.entry import DamagedRecord, Entry
from sdckit.record.store import ENTRY, KEY, Store

ROUNDS = 500


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    folder = tmp_path_factory.mktemp("office")
    put_people(folder)
    mask(folder, "--private", "record", "--rule", "wages >= 0")
    return folder, store_in(folder)


def changed(data, place, rng):
    """The bytes with one of them replaced, left out, or doubled, or cut off there."""
    other = bytes([(data[place] + rng.integers(1, 256)) % 256])
    ways = [data[:place] + other + data[place + 1 :], data[:place] + data[place + 1 :]]
    ways += [data[:place] + data[place : place + 1] + data[place:], data[:place]]
    return ways[rng.integers(len(ways))]


def places(data, rng):
    """Random places, and both sides of every mark that ends a field."""
    marks = [i for i, byte in enumerate(data) if byte in b'",:[]{}\n']
    edges = {min(max(place + step, 0), len(data) - 1) for place in marks for step in (-1, 0, 1)}
    return [*rng.integers(len(data), size=ROUNDS).tolist(), *sorted(edges)]


def test_the_entry_is_refused_or_the_same(office):
    _, store = office
    rng = np.random.default_rng(1)
    written = only_entry(store)
    data = (store.folder / written.id / ENTRY).read_bytes()
    assert Entry.from_json(data, "release.json") == written
    refused = []
    for place in places(data, rng):
        try:
            found = Entry.from_json(changed(data, place, rng), "release.json")
        except DamagedRecord as error:
            refused.append(str(error))
        else:
            assert found == written
    assert len(refused) > ROUNDS
    assert not any("\n" in text for text in refused)


@pytest.mark.parametrize("field", ["entropy", "draws", "limits", "output", "checksum", "format", "id"])
def test_a_field_that_is_gone_or_added_is_refused(office, field):
    _, store = office
    content = json.loads((store.folder / only_entry(store).id / ENTRY).read_bytes())
    for other in (
        content | {field: None},
        {k: v for k, v in content.items() if k != field},
        content | {"x": 1},
    ):
        with pytest.raises(ValueError, match=r"^'release.json' is damaged.*restore it from a copy$"):
            Entry.from_json(json.dumps(other).encode(), "release.json")


def test_an_unknown_format_is_refused_by_its_number(office):
    from sdckit.record.entry import checksum

    _, store = office
    content = json.loads((store.folder / only_entry(store).id / ENTRY).read_bytes()) | {"format": 4}
    del content["checksum"]
    data = json.dumps(content | {"checksum": checksum(content)}).encode()
    with pytest.raises(ValueError, match="has format 4 and this version reads 3; update sdckit"):
        Entry.from_json(data, "release.json")


@pytest.mark.parametrize(
    ("what", "rounds"), [("crosswalk", ROUNDS), ("fingerprints", 50), ("originals", 50), ("published", 50)]
)
def test_other_files_are_refused_unless_they_are_the_same(office, tmp_path, what, rounds):
    _, kept = office
    store = Store.at(tmp_path / "record")
    shutil.copytree(kept.folder, store.folder)
    entry = only_entry(store)
    path = getattr(store, what)(entry)
    data, rng = path.read_bytes(), np.random.default_rng(2)
    for place in rng.integers(len(data), size=rounds).tolist():
        other = changed(data, place, rng)
        path.write_bytes(other)
        if other != data:
            with pytest.raises(DamagedRecord, match="damaged: it is not as it was written"):
                getattr(store, what)(entry)
    path.unlink()
    with pytest.raises(DamagedRecord, match="missing or no plain file"):
        getattr(store, what)(entry)


def test_commands_say_in_one_line_that_a_record_is_damaged(office, tmp_path):
    folder, kept = office
    store = Store.at(tmp_path / "record")
    shutil.copytree(kept.folder, store.folder)
    entry = only_entry(store)
    path = store.folder / entry.id / ENTRY
    path.write_bytes(path.read_bytes().replace(b'"draws": 1', b'"draws": 2'))
    private = ["--private", store.folder]
    done = run_here(folder, "replay", entry.id, "data.csv", "-o", "again.csv", *private)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is damaged" in done.stderr
    assert not (folder / "again.csv").exists()
    done = run_here(folder, "check", "out.csv", *private)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert entry.id in done.stderr
    assert "record is damaged" in run_here(folder, "releases", *private).stdout


@pytest.mark.parametrize("content", [None, b"", b"short"])
def test_a_lost_key_of_fingerprints_is_not_made_anew(office, tmp_path, content):
    """Fingerprints by another key would find no earlier release."""
    _, kept = office
    store = Store.at(tmp_path / "record")
    shutil.copytree(kept.folder, store.folder)
    (store.folder / KEY).unlink() if content is None else (store.folder / KEY).write_bytes(content)
    with pytest.raises(DamagedRecord, match="restore it from a copy"):
        store.check()
