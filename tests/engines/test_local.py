"""Scans and exchanges on one machine: same results for any cut, memory and order; nothing is left behind."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import polars as pl
import pytest

from sdckit.engines.files import memory_in_use
from sdckit.engines.local import LocalTransport, Workers, memory_for_rows
from sdckit.engines.source import Source
from sdckit.engines.transport import Message, Reads
from sdckit.progress import reported_to
from spark_toy_ranks import READS, Count, by_numpy, tasks

N = 4000
SMALL = 20_000  # bytes of messages in memory, so that the rest goes to files


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(5)
    x = np.where(rng.random(N) < 0.5, 0.0, rng.normal(size=N).round(2))
    path = tmp_path_factory.mktemp("local") / "a.parquet"
    pl.DataFrame({"x": x, "y": np.round(x + rng.normal(size=N), 1)}).write_parquet(path, row_group_size=300)
    return path


def transport_of(path, scratch, *, block_rows=500, held=SMALL, threads=3):
    source = Source.of(path, path, block_rows=block_rows)
    made = LocalTransport(source, memory=memory_in_use() + 10**9, threads=threads, scratch=scratch)
    made.workers.held = held
    return made


def rank_gaps(transport, cuts):
    """Return the sum of rank differences by bucket, in two exchanges."""
    first, stage, last = tasks(cuts, transport.scan(Count(cuts), READS, step="counting"))
    return transport.exchange(first, READS, [stage], last, step="ranking")


@pytest.mark.parametrize("held", [0, SMALL, 10**8])
@pytest.mark.parametrize("block_rows", [100, 777, N])
def test_ranks_from_two_exchanges_are_those_of_two_sorts(path, tmp_path, block_rows, held):
    transport = transport_of(path, tmp_path, block_rows=block_rows, held=held)
    cuts = np.array([-9.0, -1.0, 0.0, 0.0, 0.5, 0.51, 7.0])  # buckets that are heavy, tiny and empty
    found = rank_gaps(transport, cuts)
    assert sum(gaps for gaps, _ in found.values()) == by_numpy(*pl.read_parquet(path).to_numpy().T)
    assert list(found) == sorted(found)
    assert len(found) < len(cuts)
    assert list(tmp_path.iterdir()) == []


def test_messages_reach_a_stage_in_the_order_of_their_origin(path, tmp_path):
    """Later blocks are made to send before earlier ones."""
    transport = transport_of(path, tmp_path, block_rows=400, held=100, threads=10)
    later = [threading.Event() for _ in range(11)]
    later[10].set()

    def first(block):
        number = block.first // 400
        assert later[number + 1].wait(30)
        for place in range(3):
            yield Message(place % 2, number, (np.full(20, 10 * number + place),))
        later[number].set()

    def stage(bucket, messages):
        yield Message(7, bucket, (np.concatenate([message.arrays[0][:1] for message in messages]),))

    def last(bucket, messages):
        assert [message.kind for message in messages] == [0, 1]
        return bucket, [message.arrays[0].tolist() for message in messages]

    even, odd = ([10 * i + place for i in range(10) for place in places] for places in ((0, 2), (1,)))
    assert transport.exchange(first, READS, [stage], last, step="s") == {7: (7, [even, odd])}


class Refused(Exception):  # noqa: N818 - the test's own
    pass


def sends(block):
    yield Message(block.first % 3, 0, (np.zeros(100),))


def no_stage(bucket, messages):
    raise Refused(bucket, len(messages))


def interrupted(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("last", "error"), [(no_stage, Refused), (interrupted, KeyboardInterrupt)])
def test_errors_reach_the_caller_and_leave_no_file(path, tmp_path, last, error):
    with pytest.raises(error) as caught:
        transport_of(path, tmp_path, held=0).exchange(sends, READS, [], last, step="s")
    assert error is not Refused or caught.value.args == (0, 3)
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_one_block_stops_the_others(path, tmp_path):
    seen = []

    def task(block):
        seen.append(block.first)
        raise Refused

    with pytest.raises(Refused):
        transport_of(path, tmp_path, block_rows=10, threads=2).scan(task, READS, step="s")
    assert len(seen) < 100


def test_progress_never_runs_backwards(path, tmp_path):
    shares = []
    with reported_to(lambda step, share: shares.append((step, share))):
        rank_gaps(transport_of(path, tmp_path), np.array([0.0]))
    for step in ("counting", "ranking"):
        found = [share for name, share in shares if name == step]
        assert found == sorted(found)
        assert (found[0], found[-1]) == (0, 1)
        assert len(set(found)) > 3


def test_unknown_columns_and_changed_files_are_refused(path, tmp_path):
    transport = transport_of(path, tmp_path)
    for run in (
        lambda: transport.scan(len, Reads(("z",)), step="s"),
        lambda: transport.exchange(sends, Reads(("z",)), [], no_stage, step="s"),
    ):
        with pytest.raises(ValueError, match="unknown column 'z'"):
            run()
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(path.read_bytes())
    transport = transport_of(copy, tmp_path)

    def grows(block):
        if block.first + block.rows == N:
            with copy.open("ab") as file:
                file.write(b"more")

    with pytest.raises(ValueError, match="changed while it was read"):
        transport.scan(grows, Reads(("x",)), step="s")


def test_memory_sets_threads_buckets_and_blocks(path):
    source = Source.of(path, path)
    limits = [memory_in_use() + extra for extra in (22 * 10**7, 10**9, 10**10)]
    made = [LocalTransport(source, memory=limit) for limit in limits]
    assert made[0].workers.threads == 1
    sizes = [one.bucket_rows * one.workers.threads for one in made]
    assert sizes == sorted(sizes)
    blocks, need = made[0]._blocks(Reads(("x",) * 500))  # noqa: SLF001 - as wide files have
    assert 1000 <= blocks[0].rows < N
    assert need(blocks[0]) <= made[0].workers.limit
    with pytest.raises(ValueError, match=r"^memory is 50 MB, too little .* give at least [0-9.]+ .B$"):
        memory_for_rows(50_000_000)


def test_running_items_stay_within_the_limit_and_a_larger_one_runs_alone(tmp_path):
    running, seen, lock = [], [], threading.Lock()

    def work(need):
        with lock:
            running.append(need)
            seen.append(sum(running) if len(running) > 1 else 0)
        time.sleep(0.001)
        with lock:
            running.remove(need)
        return need + 1

    for needs in ([10, 30, 20] * 20, [10, 40, 300, 60, 20] * 10):
        found = Workers(8, 100, 0, tmp_path).run(work, needs, int, lambda _: None)
        assert found == [need + 1 for need in needs]
        assert max(seen) <= 100


def test_an_unusable_scratch_folder_is_refused(path, tmp_path):
    gone = tmp_path / "gone"
    with pytest.raises(FileNotFoundError, match=r"no folder .* create it or name another with scratch="):
        LocalTransport(Source.of(path), scratch=gone)


SCRIPT = """
import resource, sys
sys.dont_write_bytecode = True  # compiled modules would be cut off
import numpy as np
from sdckit.engines.local import LocalTransport
from sdckit.engines.source import Source
from sdckit.engines.transport import Message, Reads
what, path, scratch = sys.argv[1:]
transport = LocalTransport(Source.of(path, block_rows=500), threads=2, scratch=scratch)
transport.workers.held = 0
if what == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

def first(block):
    yield Message(1, 0, (block.original["x"],))

def last(bucket, messages):
    if what == "wait":
        print("waiting", flush=True)
        sys.stdin.readline()
    return sum(message.arrays[0].sum() for message in messages)

try:
    print(transport.exchange(first, Reads(("x",)), [], last, step="s")[1])
except OSError as error:
    print(error)
"""


def started(what, path, scratch):
    command = [sys.executable, "-c", SCRIPT, what, str(path), str(scratch)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_full_disk_says_in_one_line_where_and_how_much_is_needed(path, tmp_path):
    out, err = started("full", path, tmp_path).communicate()
    assert out.startswith(f"could not write intermediate files to '{tmp_path}': file too large; about "), err
    needed = float(re.search(r"about ([0-9.]+) kB are needed", out)[1])
    assert 32 <= needed <= 2 * 32  # eight blocks of 500 numbers, estimated from those before the error
    assert out.endswith("are needed: free some space or name another folder with scratch=\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal")
def test_ending_processes_leaves_no_file_but_those_of_others(path, tmp_path):
    ends = {signal.SIGTERM: 143, signal.SIGINT: -signal.SIGINT, None: 0}
    processes = {how: started("wait", path, tmp_path) for how in ends}
    for process in processes.values():
        assert process.stdout.readline() == "waiting\n"
    for left, (how, code) in zip((2, 1, 0), ends.items(), strict=True):
        process = processes[how]
        if how is not None:
            process.send_signal(how)
        out, _ = process.communicate()
        assert process.returncode == code
        assert len(list(tmp_path.iterdir())) == left
    assert float(out) == pytest.approx(pl.read_parquet(path)["x"].sum())
