"""The time spent on compiling kernels: counted once, announced once, where progress is shown."""

import gc
import sys

import pytest
from numba.core.event import Event, EventStatus

from sdckit import progress
from sdckit.kernels import jit as compile_time
from sdckit.kernels.jit import NOTICE, CompileClock

EVENT = Event("numba:compile", EventStatus.START)


@pytest.fixture
def time(monkeypatch):
    """A list whose last entry is the time."""
    times = [100.0]
    monkeypatch.setattr(compile_time, "process_time", lambda: times[-1])
    return times


def test_a_kernel_compiled_for_another_is_counted_once(time):
    clock = CompileClock()
    clock.on_start(EVENT)
    time.append(101.0)
    clock.on_start(EVENT)
    time.append(104.0)
    assert clock.seconds == 4.0
    clock.on_end(EVENT)
    clock.on_end(EVENT)
    time.append(110.0)
    assert clock.seconds == 4.0
    clock.on_start(EVENT)
    time.append(110.5)
    assert clock.seconds == 4.5
    clock.on_end(EVENT)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("shown", ["_enabled", "_notices", None])
def test_long_compiling_is_announced_once_where_asked_for(time, capsys, monkeypatch, shown, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    for switch in ("_enabled", "_notices"):
        monkeypatch.setattr(progress, switch, switch == shown)
    clock = CompileClock()
    for second in (101.0, 102.0, 103.0, 104.0):
        clock.on_start(EVENT)
        assert clock.noticed == (second > 102.0)  # not before a second has gone by
        time.append(second)
        clock.on_end(EVENT)
    found = capsys.readouterr()
    assert found.err == (NOTICE + "\n" if shown and terminal else "")
    assert found.out == ""


@pytest.mark.parametrize("collects", [True, False])
def test_the_search_for_garbage_goes_on_afterwards_as_before(collects):
    clock, before = CompileClock(), gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        clock.on_start(EVENT)
        clock.on_start(EVENT)
        clock.on_end(EVENT)
        assert not gc.isenabled()
        clock.on_end(EVENT)
        assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()
