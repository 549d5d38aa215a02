"""The checkpoint of finished runs and the private folder around it: complete or not there, come what may."""

import json
import math
import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import command
from sdckit.selection.runner import CELLS, PLAN, README, SWEEP, WARNING, Checkpoint
from sdckit.selection.runner import opened as opened_folder

LENGTH = 3
RECORD = 8 + 8 * LENGTH + 4  # bytes of key, values and check sum
IDENTITY = {"data": "d41d8c", "metrics": ["brmae"], "draws": "common"}


def line(key):
    """Numbers that tell which key they belong to."""
    return np.array([key, key / 7, math.nan if key % 3 == 0 else -key])


def filled(path, keys):
    with Checkpoint(path, LENGTH) as checkpoint:
        for key in keys:
            checkpoint.add(key, line(key))


def assert_found(path, keys):
    with Checkpoint(path, LENGTH) as checkpoint:
        assert sorted(checkpoint.records) == sorted(keys)
        for key, values in checkpoint.records.items():
            assert values.tobytes() == line(key).tobytes()


# --- records ---


def test_what_was_added_is_found_bit_for_bit(tmp_path):
    path = tmp_path / "cells.bin"
    awkward = np.array([-0.0, math.inf, 5e-324])
    nan = np.array([math.nan, 0.1 + 0.2, -math.nan])
    with Checkpoint(path, LENGTH) as checkpoint:
        assert checkpoint.records == {}
        checkpoint.add(2**64 - 1, awkward)
        checkpoint.add(0, nan)
    with Checkpoint(path, LENGTH) as checkpoint:
        assert list(checkpoint.records) == [2**64 - 1, 0]
        assert checkpoint.records[2**64 - 1].tobytes() == awkward.tobytes()
        assert checkpoint.records[0].tobytes() == nan.tobytes()
    assert path.stat().st_size == 2 * RECORD
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_record_is_there_as_soon_as_it_was_added(tmp_path):
    path = tmp_path / "cells.bin"
    with Checkpoint(path, LENGTH) as checkpoint:
        for key in range(4):
            checkpoint.add(key, line(key))
            assert_found(path, range(key + 1))


@pytest.mark.parametrize("cut", [1, 4, 5, RECORD - 1])
def test_a_torn_last_record_is_cut_off_and_work_goes_on(tmp_path, cut):
    path = tmp_path / "cells.bin"
    filled(path, range(4))
    path.write_bytes(path.read_bytes()[:-cut])
    assert_found(path, range(3))
    assert path.stat().st_size == 3 * RECORD
    filled(path, [3, 4])
    assert_found(path, range(5))


@given(bit=st.integers(0, 8 * 5 * RECORD - 1))
def test_a_flipped_bit_costs_its_own_record_and_no_other(tmp_path_factory, bit):
    path = tmp_path_factory.mktemp("flip") / "cells.bin"
    filled(path, range(5))
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    broken = bit // (8 * RECORD)
    assert_found(path, set(range(5)) - {broken})
    filled(path, [broken, 5])
    assert_found(path, range(6))


def test_two_threads_append_whole_records(tmp_path):
    path = tmp_path / "cells.bin"
    with Checkpoint(path, LENGTH) as checkpoint, ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda key: checkpoint.add(key, line(key)), range(2000)))
    assert_found(path, range(2000))


HEAD = (
    "import resource, sys\nfrom pathlib import Path\nfrom test_checkpoint import Checkpoint, LENGTH, line\n"
)
HALF = """
with Checkpoint(Path(sys.argv[1]), LENGTH, append=True) as checkpoint:
    for key in range(int(sys.argv[2]), 3000, 2):
        checkpoint.add(key, line(key))
"""
FULL = """
sys.dont_write_bytecode = True  # compiled modules would be cut off
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with Checkpoint(Path(sys.argv[1]), LENGTH) as checkpoint:
    for attempt in range(2):
        try:
            for key in range(1000):
                checkpoint.add(key, line(key))
        except OSError as error:
            print(error)
"""


def start(script, *words):
    environment = command.environment()
    for module in (__file__, command.__file__):
        environment["PYTHONPATH"] += f"{os.pathsep}{Path(module).parent}"
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + script, *map(str, words)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_two_processes_append_whole_records(tmp_path):
    path = tmp_path / "cells.bin"
    children = [start(HALF, path, first) for first in (0, 1)]
    assert [child.communicate(timeout=command.HANGING)[0] for child in children] == ["", ""]
    assert_found(path, range(3000))


@pytest.mark.long
def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path):
    path = tmp_path / "cells.bin"
    lines = start(FULL, path).communicate(timeout=command.HANGING)[0].splitlines()
    assert len(lines) == 2  # when a record is torn, and when nothing more goes in
    for text in lines:
        assert text.startswith(f"could not write '{path}': ")
        assert "; " in text
    assert path.stat().st_size == 1000
    assert_found(path, range(1000 // RECORD))
    filled(path, [500])
    assert_found(path, [*range(1000 // RECORD), 500])


def test_a_journal_that_cannot_be_opened_is_one_line(tmp_path):
    with pytest.raises(
        OSError, match=r"^could not write '.*': is a directory; choose another folder or name$"
    ):
        Checkpoint(tmp_path, LENGTH)


def test_the_journal_is_synced_when_opened_and_closed_and_at_most_once_a_second(tmp_path, monkeypatch):
    synced, clock = [], [0.0]
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with Checkpoint(tmp_path / "cells.bin", LENGTH) as checkpoint:
        assert len(synced) == 2  # the file and its folder
        for key, now in enumerate((0.5, 0.9, 1.1, 1.2, 2.2)):
            clock[0] = now
            checkpoint.add(key, line(key))
        assert len(synced) == 4
    assert len(synced) == 5


# --- the folder ---


def opened(folder, rng=None, identity=IDENTITY):
    with opened_folder(SWEEP, folder, identity, rng, LENGTH) as (entropy, _):
        return entropy


def test_a_new_folder_is_private_and_says_so(tmp_path):
    folder = tmp_path / "a" / "private"
    assert opened(folder, 7) == 7
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name for path in folder.iterdir()} == {PLAN, CELLS, README}
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    assert (folder / README).read_text() == WARNING
    content = json.loads((folder / PLAN).read_text())
    assert (content["identity"], content["entropy"]) == (IDENTITY, "7")


def test_without_a_seed_the_folder_keeps_its_entropy(tmp_path):
    entropy = opened(tmp_path / "one")
    assert entropy.bit_length() > 64
    assert opened(tmp_path / "one") == entropy
    assert opened(tmp_path / "two") != entropy
    assert opened(tmp_path / "one", entropy) == entropy


@pytest.mark.parametrize(
    ("rng", "change", "text"),
    [
        (8, {}, "seed"),
        (None, {"data": "other"}, "data"),
        (7, {"metrics": ["brmae", "mae"]}, "metrics"),
        (8, {"draws": "fresh", "data": "x"}, "data, draws, seed"),
        (7, {"version": "sdckit 9"}, "version"),
    ],
)
def test_another_sweep_is_refused_by_what_differs_and_left_alone(tmp_path, rng, change, text):
    folder = tmp_path / "x"
    opened(folder, 7)
    filled(folder / CELLS, range(5))
    before = command.contents(folder)
    with pytest.raises(ValueError, match=rf"holds another sweep \(different: {text}\); choose another"):
        opened(folder, rng, IDENTITY | change)
    assert command.contents(folder) == before


DAMAGE = ["", "{", "[]", "{}", '"text"', '{"identity": {}}', '{"identity": {}, "entropy": "x"}', "\x00\x01"]
ODD = [
    '{"identity": [5], "entropy": "5"}',
    '{"identity": null, "entropy": "5"}',
    "null",
    "5",
    '{"identity": {}, "entropy": null}',
]


@pytest.mark.parametrize("content", [*DAMAGE, *ODD])
def test_a_damaged_plan_is_one_line_and_left_alone(tmp_path, content):
    folder = tmp_path / "x"
    opened(folder, 7)
    (folder / PLAN).write_text(content)
    before = command.contents(folder)
    with pytest.raises(ValueError, match=r"sweep.json' is damaged; choose another folder$"):
        opened(folder)
    assert command.contents(folder) == before


def damaged(data, rng):
    """The bytes with one of them changed, removed or repeated, or cut off there."""
    place, kind = int(rng.integers(len(data))), int(rng.integers(4))
    other = bytes([data[place] ^ int(rng.integers(1, 256))])
    middle = [other, b"", data[place : place + 1] * 2, b""][kind]
    return data[:place] + middle + (b"" if kind == 3 else data[place + 1 :])


def assert_refused_or_identical(folder, data):
    (folder / PLAN).write_bytes(data)
    try:
        found = opened(folder)
    except ValueError as error:
        assert "sweep.json' is damaged" in str(error)  # noqa: PT017 - a plan may also be sound
    else:
        assert found == 7


def test_a_plan_damaged_anywhere_is_refused_or_means_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # thousands of syncs take long
    opened(tmp_path, 7)
    data, rng = (tmp_path / PLAN).read_bytes(), np.random.default_rng(1)
    for _ in range(500):
        assert_refused_or_identical(tmp_path, damaged(data, rng))
    for place in [i for i, byte in enumerate(data) if byte in b'"{}[],: \n']:
        assert_refused_or_identical(tmp_path, data[:place])
        assert_refused_or_identical(tmp_path, data[:place] + data[place + 1 :])


def test_a_journal_damaged_anywhere_holds_right_records_only(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # thousands of syncs take long
    path, rng = tmp_path / "cells.bin", np.random.default_rng(2)
    filled(path, range(20))
    data = path.read_bytes()
    fields = [place * RECORD + field for place in range(20) for field in (0, 8, RECORD - 4)]
    cut = [data[:place] for place in fields]
    removed = [data[:place] + data[place + 1 :] for place in fields]
    for content in (*cut, *removed, *(damaged(data, rng) for _ in range(500))):
        path.write_bytes(content)
        with Checkpoint(path, LENGTH) as checkpoint:
            assert len(checkpoint.records) >= min(len(content) // RECORD, 20) - 2
            for key, values in checkpoint.records.items():
                assert values.tobytes() == line(key).tobytes()


def test_folders_of_others_are_refused(tmp_path):
    command.put(tmp_path, "full/thesis.tex", "precious")
    command.put(tmp_path, "file", "precious")
    with pytest.raises(FileExistsError, match=r"^folder '.*full' holds other files; choose another one$"):
        opened(tmp_path / "full")
    with pytest.raises(FileExistsError, match=r"^'.*file' is a file; name a folder for the sweep$"):
        opened(tmp_path / "file")
    with pytest.raises(OSError, match=r"^could not write '.*below': not a directory; choose"):
        opened(tmp_path / "file" / "below")
    assert command.contents(tmp_path) == {"file": b"precious", "full": None, "full/thesis.tex": b"precious"}


@pytest.mark.parametrize("left", [{}, {README: WARNING}, {".sdckit-0123456789abcdef.part": WARNING}])
def test_whatever_a_kill_left_of_the_first_steps_is_no_obstacle(tmp_path, left):
    folder = tmp_path / "private"
    folder.mkdir()
    for name, content in left.items():
        command.put(folder, name, content)
    assert opened(folder, 7) == opened(folder) == 7
    assert (folder / README).read_text() == WARNING
