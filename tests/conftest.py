"""Folders of data that are not ours to publish, a browser, no luck, no skips where forbidden."""

import itertools
import json
import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest

LONGER = 10  # so many times the examples has every test with --hypothesis-profile=long
USUAL = 30
hypothesis.settings.register_profile(
    "default", deadline=None, derandomize=True, database=None, max_examples=USUAL
)
hypothesis.settings.register_profile(
    "long", deadline=None, derandomize=False, max_examples=LONGER * USUAL, print_blob=True
)
hypothesis.settings.load_profile("default")

WORKER = os.environ.get("PYTEST_XDIST_WORKER")
if WORKER:  # there is one for each core, so that more threads would only wait for each other
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
LONG = {"browser", "spark"}  # fixtures that start what takes long: tests that ask for them are long

SKIPPED = pytest.StashKey[list]()


def folder(variable):
    name = os.environ.get(variable)
    if not name or not Path(name).is_dir():
        pytest.skip(f"{variable} names no folder")
    return Path(name)


def table(name):
    import polars as pl

    path = folder("SDCKIT_DATA") / name
    if not path.exists():
        pytest.skip(f"SDCKIT_DATA has no {name}")
    return pl.read_csv(path, infer_schema_length=None).cast(pl.Float64)


@pytest.fixture(autouse=True)
def no_luck(monkeypatch):
    """Draws for which a test gives no seed differ from each other and are the same at every run."""
    import numpy as np

    import sdckit.core.randomness
    from secret_bytes import entropy

    seeded, seeds = np.random.default_rng, itertools.count(1_000_000)
    monkeypatch.setattr(
        np.random, "default_rng", lambda seed=None: seeded(next(seeds) if seed is None else seed)
    )
    monkeypatch.setattr(sdckit.core.randomness, "fresh_entropy", lambda: entropy(next(seeds)))


@pytest.fixture(scope="module", autouse=True)
def record_of_fixtures(tmp_path_factory):
    """What is released by fixtures of a file of tests, before its first test, is recorded apart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def own_record(monkeypatch, tmp_path_factory, request):
    """Each test has a private record of releases of its own, empty at first, and never the user's."""
    name = f"state-{hash(request.node.nodeid) & 0xFFFFFFFF:08x}"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / name))


@pytest.fixture(scope="session")
def tarragona():
    """834 firms, 13 variables, 77 zeros."""
    return table("Tarragona.csv")


@pytest.fixture(scope="session")
def census():
    """1080 persons, 13 variables, one of them the sum of two others."""
    return table("CASCrefmicrodata.csv")


@pytest.fixture(scope="session")
def golden():
    """Folder with what R's sdcMicro 5.8.1 computes."""
    return folder("SDCKIT_GOLDEN")


@pytest.fixture(scope="session")
def browser():
    """Debian's chromium; one for all tests that look at pages."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium on the PATH")
    from browser import FLAGS

    with playwright.sync_playwright() as starter:
        found = starter.chromium.launch(executable_path=path, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session on a cluster of a master and two workers; one for all tests on Spark."""
    if shutil.which("java") is None:
        pytest.skip("there is no Java on the PATH")
    import sdckit
    import spark_cluster
    from sdckit.engines.spark import spark_session

    paths = [Path(sdckit.__file__).parents[1], Path(spark_cluster.__file__).parent]
    with spark_cluster.running(tmp_path_factory.mktemp("cluster"), *paths) as address:
        session = spark_session(address, spark_cluster.SETTINGS)
        yield session
        session.stop()


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The folder that `sdckit demo` leaves, and what it printed; run once for all workers."""
    own = tmp_path_factory.getbasetemp()
    place = (own.parent if WORKER else own) / "demo"
    done = run_once(place, "demo")
    assert done.returncode == 0, done.stderr
    return place / "sdckit-demo", done


def run_once(place, *words):
    """Run a command in a folder that all workers share: the first to come runs it, the others wait."""
    import command

    result, names = place.with_suffix(".json"), ("returncode", "stdout", "stderr")
    try:
        place.mkdir()
    except FileExistsError:
        deadline = time.monotonic() + command.HANGING
        while not result.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
    else:
        done = command.run(place, *words)
        draft = result.with_suffix(".part")
        draft.write_text(json.dumps({name: getattr(done, name) for name in names}), encoding="utf-8")
        draft.rename(result)
    return SimpleNamespace(**json.loads(result.read_text(encoding="utf-8")))


def pytest_configure(config):
    config.stash[SKIPPED] = []
    config.pluginmanager.register(Skips(config), "skips")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if LONG.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("long")
    items.sort(key=lambda item: "spark" not in getattr(item, "fixturenames", ()))  # they take longest
    if config.getoption("--hypothesis-profile", None) == "long":
        for test in {getattr(item.obj, "__func__", item.obj) for item in items if hasattr(item, "obj")}:
            lengthen(test)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Long tests that share what they start share a process: one cluster, one page, else by file."""
    if config.option.markexpr != "long":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Shared(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.partition("::")[0]
            folder = path.rpartition("/")[0]
            return folder if folder in {"tests/engines", "tests/app"} else path

    config.option.loadscopereorder = False  # in the order of the tests, not the largest file first
    return Shared(config, log)


def lengthen(test):
    """Give a test that sets its own number of examples as many more as all others get by the profile."""
    chosen = getattr(test, "_hypothesis_internal_use_settings", None)
    if chosen is not None and chosen.max_examples != hypothesis.settings.default.max_examples:
        more = hypothesis.settings(chosen, max_examples=LONGER * chosen.max_examples)
        test._hypothesis_internal_use_settings = more  # noqa: SLF001 - hypothesis offers no other way


class Skips:
    """With SDCKIT_FORBID_SKIPS set, a skipped test fails the session."""

    def __init__(self, config):
        self.found = config.stash[SKIPPED]

    def pytest_runtest_logreport(self, report):
        if report.skipped and not hasattr(report, "wasxfail"):
            self.found.append(report.nodeid)

    def pytest_collectreport(self, report):
        if report.skipped:
            self.found.append(report.nodeid)

    def pytest_sessionfinish(self, session):
        if self.found and os.environ.get("SDCKIT_FORBID_SKIPS"):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        if self.found and os.environ.get("SDCKIT_FORBID_SKIPS"):
            terminalreporter.section("skips are forbidden here", red=True)
            for name in self.found:
                terminalreporter.line(f"skipped: {name}")
