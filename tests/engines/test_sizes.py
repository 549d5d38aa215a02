"""Sizes of memory as text, at hand, in use; and the engine for a file."""

import os
import sys
from types import SimpleNamespace

import polars as pl
import pytest

from cases import each
from sdckit.engines import files as sizes
from sdckit.engines.files import choose_engine, memory_in_use, parse_memory, return_freed_memory
from sdckit.engines.opening import Settings, transport_on
from sdckit.io import memory
from sdckit.io.memory import memory_at_hand, memory_text


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), ("512 MB", 512 * 10**6), ("1.5GiB", 3 * 2**29), ("2mib", 2**21), (" 1TB ", 10**12)],
)
def test_amounts_of_memory_are_read(text, size):
    assert parse_memory(text) == size


@each("text", ["4", "GB", "-1GB", "4 apples", "0GB", "1e3MB", "4GBs", "7kB", 4_000, ""])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="give a number with MB, GB, MiB or GiB, such as 4GB") as caught:
        parse_memory(text)
    assert repr(text) in str(caught.value)


def test_sizes_are_written_with_their_unit():
    assert [memory_text(size) for size in (1_500_000_000, 20_000_000, 1234)] == ["1.5 GB", "20 MB", "1.23 kB"]


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


MEMINFO = "MemTotal:       9000 kB\nMemAvailable:   2000 kB\n"


def test_memory_at_hand_is_the_least_of_machine_and_containers(tmp_path):
    write(tmp_path, proc__meminfo=MEMINFO)
    assert memory_at_hand(tmp_path) == 2000 * 1024
    write(tmp_path, proc__self__cgroup="0::/pod/one\n")
    write(tmp_path / "sys/fs/cgroup/pod", memory_dot_max="1000000\n", memory_dot_current="600000\n")
    write(tmp_path / "sys/fs/cgroup/pod/one", memory_dot_max="max\n", memory_dot_current="600000\n")
    assert memory_at_hand(tmp_path) == 400_000
    write(tmp_path / "sys/fs/cgroup/pod", memory_dot_stat="anon 5\ninactive_file 100000\n")
    assert memory_at_hand(tmp_path) == 500_000
    write(tmp_path / "sys/fs/cgroup/pod", memory_dot_current="2000000\n")
    assert memory_at_hand(tmp_path) == 0


def test_older_control_groups_are_known(tmp_path):
    write(tmp_path, proc__meminfo=MEMINFO, proc__self__cgroup="5:cpu:/a\n4:memory,cpu:/a\n")
    group = tmp_path / "sys/fs/cgroup/memory"
    write(group, memory_dot_limit_in_bytes="300000", memory_dot_usage_in_bytes="100000")
    write(group / "a", memory_dot_limit_in_bytes="9223372036854771712", memory_dot_usage_in_bytes="1")
    write(group, memory_dot_stat="inactive_file 1\ntotal_inactive_file 1\n")
    assert memory_at_hand(tmp_path) == 200_001


def test_without_such_files_half_of_the_memory_or_a_guess_is_at_hand(tmp_path, monkeypatch):
    assert memory_at_hand(tmp_path) == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    monkeypatch.delattr(os, "sysconf")
    assert memory_at_hand(tmp_path) == memory.UNKNOWN_MEMORY


def test_memory_in_use_is_that_of_this_process(monkeypatch):
    assert 3e7 < memory_in_use() < memory_at_hand() + 1e11
    held = bytearray(os.urandom(1)) * 50_000_000
    assert memory_in_use() > len(held)
    monkeypatch.setattr(sizes, "STATM", "/no/such/file")
    assert memory_in_use() > len(held)
    monkeypatch.setitem(sys.modules, "resource", None)
    assert memory_in_use() == sizes.UNKNOWN_USE


def test_freed_memory_is_returned_where_the_library_offers_it(monkeypatch):
    asked = []
    for library in (lambda _: SimpleNamespace(malloc_trim=asked.append), lambda _: SimpleNamespace()):
        monkeypatch.setattr(sizes.ctypes, "CDLL", library)
        return_freed_memory()
    assert asked == [0]


def test_the_engine_follows_rows_columns_and_memory(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"x": [1.0] * 1000, "y": [1] * 1000, "text": ["a"] * 1000}).write_parquet(path)
    needed = 1000 * 2 * sizes.EVALUATE_BYTES
    assert choose_engine([path, path], needed) == "memory"
    assert choose_engine([path, path], needed - 1) == "local"
    assert choose_engine([tmp_path], needed - 1) == "local"
    assert choose_engine([tmp_path / "a.csv"], 1) == "memory"


def test_spark_without_its_packages_names_the_extra(monkeypatch):
    monkeypatch.setattr(sizes, "find_spec", lambda name: None if name == "pyarrow" else name)
    with pytest.raises(ImportError, match=r'^there is no pyarrow; run pip install "sdckit\[spark\]"$'):
        transport_on(Settings("spark"), None, None)
