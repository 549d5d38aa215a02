"""MDAV of large files: through tree and filter, always the groups of the textbook loop."""

import _thread
import functools
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import command
import naive
from sdckit.kernels.mdav import groups, scan, state, tree
from sdckit.kernels.mdav.groups import mdav_groups, mdav_points
from textbook import textbook

SHAPES = {
    "normal": lambda rng, n, p: rng.normal(size=(n, p)),
    "lognormal": lambda rng, n, p: rng.lognormal(sigma=2, size=(n, p)),
    "duplicated": lambda rng, n, p: rng.normal(size=(n // 5 + 1, p))[rng.integers(0, n // 5 + 1, n)],
    "correlated": lambda rng, n, p: np.sqrt(3) * rng.normal(size=(n, 1)) + rng.normal(size=(n, p)),
    "integers": lambda rng, n, p: rng.integers(-2, 3, (n, p)).astype(float),
    "mostly zero": lambda rng, n, p: np.where(
        rng.random((n, 1)) < 0.7, 0.0, rng.integers(0, 50, (n, p)).astype(float)
    ),
    "crowded": lambda rng, n, p: np.vstack([rng.normal(size=(n - 1, p)), np.full((1, p), 1e9)]),
    "all equal": lambda _rng, n, p: np.full((n, p), 7.1),
}
MAIN = ("normal", "lognormal", "duplicated", "correlated", "integers")
WIDTHS = (1, 2, 4, 8, 13)
PATHS = {  # how many records a node of the tree is worth: none, so many that scans win, or something between
    "tree": {"WORTH": 1e-9, "STEP": 5_000},
    "filter": {"WORTH": 10**9},
    "both": {"WORTH": 40, "STEP": 20_000, "TRIAL": 10},
}


def table(shape, n, p, seed):
    return SHAPES[shape](np.random.default_rng(seed), n, p)


def force(monkeypatch, path):
    """Send small files, too, through the tree, the filter or both."""
    monkeypatch.setattr(groups, "SMALL", 0)
    for name, value in PATHS[path].items():
        monkeypatch.setattr(groups, name, value)


@pytest.fixture
def calls(monkeypatch):
    """How many records were left when a tree was planted, and when the filter took over."""
    seen = {"build_tree": [], "fill_blocks": []}

    def spy(module, name):
        original = getattr(module, name)

        def counted(book, rounded):
            seen[name].append(int(book.counters[state.LEFT]))
            return original(book, rounded)

        monkeypatch.setattr(module, name, counted)

    spy(tree, "build_tree")
    spy(scan, "fill_blocks")
    return seen


# --- the same groups as the textbook loop ---


def test_the_textbook_loop_is_the_slow_twin():
    for shape in SHAPES:
        for n, p, k in [(60, 1, 2), (61, 4, 7), (90, 13, 30)]:
            values = table(shape, n, p, seed=n)
            np.testing.assert_array_equal(
                textbook(naive.standardise(values), k), naive.mdav_groups(values, k)
            )


@functools.cache
def textbook_groups(shape, n, p, k, seed):
    """The groups that every path must find, searched for by the slow loop only once."""
    return textbook(mdav_points(table(shape, n, p, seed)), k)


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("p", WIDTHS)
@pytest.mark.parametrize("shape", MAIN)
def test_random_files(monkeypatch, shape, p, path):
    force(monkeypatch, path)
    rng = np.random.default_rng([p, MAIN.index(shape)])
    n, k = int(rng.integers(200, 1500)), int(rng.integers(2, 51))
    points = mdav_points(table(shape, n, p, 0))
    np.testing.assert_array_equal(
        mdav_groups(points, k, points), textbook_groups(shape, n, p, k, 0), f"{n=}, {k=}"
    )


@settings(max_examples=30, deadline=None)
@given(
    shape=st.sampled_from(sorted(SHAPES)),
    path=st.sampled_from(sorted(PATHS)),
    n=st.integers(2, 200),
    p=st.sampled_from([1, 2, 3, 13]),
    k=st.integers(2, 50),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_small_file(*, shape, path, n, p, k, seed):
    values, k = table(shape, n, p, seed), min(k, n)
    with pytest.MonkeyPatch.context() as monkeypatch:
        force(monkeypatch, path)
        np.testing.assert_array_equal(mdav_groups(values, k), naive.mdav_groups(values, k))


@pytest.mark.parametrize(
    ("shape", "n", "p", "k"),
    [
        ("normal", 20_000, 4, 3),
        ("normal", 12_000, 13, 3),
        ("lognormal", 20_000, 2, 50),
        ("duplicated", 20_000, 8, 5),
        ("correlated", 15_000, 13, 10),
        ("integers", 20_000, 2, 10),
        ("integers", 20_000, 13, 20),
        ("mostly zero", 20_000, 4, 7),
        ("crowded", 20_000, 1, 20),
    ],
)
def test_large_files_as_they_come(shape, n, p, k):
    values = table(shape, n, p, seed=1)
    np.testing.assert_array_equal(mdav_groups(values, k), textbook(mdav_points(values), k))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("power", [-1060, -560, -530, -150, 500])
def test_points_of_any_size(monkeypatch, path, power):
    # Squares underflow (or nearly so), far beyond what float32 can hold.
    force(monkeypatch, path)
    points = np.ldexp(mdav_points(table("lognormal", 700, 4, seed=3)), power)
    np.testing.assert_array_equal(mdav_groups(points, 3, points), textbook(points, 3))


@pytest.mark.parametrize("path", ["tree", "filter"])
def test_without_its_margin_the_copy_would_mislead(monkeypatch, path):
    force(monkeypatch, path)
    points = mdav_points(table("crowded", 2000, 2, seed=5))
    expected = textbook(points, 3)
    np.testing.assert_array_equal(mdav_groups(points, 3, points), expected)
    for module in (state, tree, scan):
        monkeypatch.setattr(
            module, "set_absolute_margin", lambda rounded, _largest: rounded.margin[1:].fill(0)
        )
    assert (mdav_groups(points, 3, points) != expected).any()


# --- on the way ---


def test_new_trees_are_planted_on_the_way(monkeypatch, calls):
    force(monkeypatch, "tree")
    points = mdav_points(table("normal", 5000, 3, seed=2))
    np.testing.assert_array_equal(mdav_groups(points, 3, points), textbook(points, 3))
    assert len(calls["build_tree"]) > 5
    assert calls["build_tree"][0] == 5000
    assert all(
        after < 0.7 * before
        for before, after in zip(calls["build_tree"], calls["build_tree"][1:], strict=False)
    )
    assert not calls["fill_blocks"]


def test_scans_take_over_on_the_way(monkeypatch, calls):
    force(monkeypatch, "both")
    points = mdav_points(table("correlated", 6000, 8, seed=4))
    np.testing.assert_array_equal(mdav_groups(points, 3, points), textbook(points, 3))
    (left,) = calls["fill_blocks"]
    assert 500 < left < 5500


def test_the_choice_of_the_way(calls):
    # Boxes exclude no record of 13 independent columns; small files need neither tree nor filter.
    mdav_groups(table("normal", 12_000, 13, seed=0), 3)
    assert calls["fill_blocks"][0] > 10_000
    calls["fill_blocks"].clear()
    mdav_groups(table("normal", 12_000, 2, seed=0), 3)
    assert not calls["fill_blocks"]
    calls["build_tree"].clear()
    mdav_groups(table("normal", 10_000, 2, seed=0), 3)
    assert not calls["build_tree"]


@pytest.mark.parametrize("shape", ["mostly zero", "all equal", "integers"])
def test_equal_records_do_not_make_the_tree_slow(shape):
    points = mdav_points(table(shape, 16_000, 2, seed=6))
    book = state.start(points, 3)
    grown = tree.build_tree(book, state.rounded_copy(points))
    tree.advance(grown, tree.empty_list(book), 3, 100_000)
    assert book.counters[state.WORK] / book.counters[state.FORMED] < len(grown.smallest) / 10


@pytest.mark.parametrize("path", [None, *PATHS])
def test_progress_goes_up_to_the_end(monkeypatch, path):
    shares = []

    @contextmanager
    def track(what, total):
        assert (what, total) == ("MDAV", 1.0)
        yield shares.append

    monkeypatch.setattr(groups.progress, "track", track)
    monkeypatch.setattr(groups, "STEP", 50_000)
    if path:
        force(monkeypatch, path)
    mdav_groups(table("correlated", 6000, 8, seed=4), 3)
    assert len(shares) > 5
    assert 0 < shares[0] < 0.3
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize(("shape", "p"), [("normal", 4), ("normal", 13)])
def test_ctrl_c_stops_within_a_second(shape, p):
    mdav_groups(table(shape, 10_001, p, seed=0), 3)  # compile
    values, sent = table(shape, 200_000, p, seed=0), []

    def interrupt():
        sent.append(time.process_time())  # of all threads: a busy machine does not matter
        _thread.interrupt_main()

    timer = threading.Timer(0.6, interrupt)

    def work():
        timer.start()
        while True:  # until the interrupt comes, however fast the machine is
            mdav_groups(values, 3)

    with command.interruptible(), pytest.raises(KeyboardInterrupt):
        work()
    assert time.process_time() - sent[0] < 1
    timer.join()
