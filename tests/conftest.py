"""Folders of data that are not ours to publish, a browser, hypothesis profiles, no skips where forbidden."""

import os
import shutil
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

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
def demo(tmp_path_factory):
    """The folder that `sdckit demo` leaves, and what it printed; run once for all tests that look at it."""
    import command

    place = tmp_path_factory.mktemp("demo")
    done = command.run(place, "demo")
    assert done.returncode == 0, done.stderr
    return place / "sdckit-demo", done


def pytest_configure(config):
    config.stash[SKIPPED] = []
    config.pluginmanager.register(Skips(config), "skips")


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
