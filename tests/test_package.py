"""The package is fit for strangers: wheel, lock, licences, and no address of a package index anywhere."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import make_licences
import try_package
from cases import each

REPOSITORY = Path(__file__).parent.parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (REPOSITORY / "requirements-dev.lock").read_text(encoding="utf-8")
LICENCES = (REPOSITORY / "docs" / "reference" / "licences.md").read_text(encoding="utf-8")
HOSTS = ("pypi" + ".org", "python" + "hosted", "npm" + "js", "/opt/" + "pypi", "artifact" + "ory")
OPTIONS = ("--index" + "-url", "--extra-index" + "-url", "--find" + "-links /", "--find" + "-links http")
ADDRESS = re.compile("|".join(map(re.escape, (*HOSTS, *OPTIONS))))


def declared():
    """Return every requirement that the project declares, its own extras apart."""
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    found = [Requirement(line) for lines in lists for line in lines]
    return [one for one in found if one.name != "sdckit"]


def locked():
    """Return the locked version of each package; the lowest where systems differ."""
    found = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", LOCK, re.MULTILINE):
        key = canonicalize_name(name)
        found[key] = min(found.get(key, Version(version)), Version(version))
    return found


def tracked():
    """Return the text files of the repository, whatever else lies in its folder."""
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=REPOSITORY, text=True)  # noqa: S607
    paths = [REPOSITORY / name for name in listed.split("\0") if name]
    kinds = {".md", ".toml", ".py", ".lock", ".txt", ".cfg", ".json", ".yml", ".html", ""}
    return [path for path in paths if path.suffix in kinds and path.exists()]


def test_no_file_names_a_package_index():
    files = tracked()
    assert len(files) > 100
    found = [path for path in files if ADDRESS.search(path.read_text(encoding="utf-8", errors="replace"))]
    assert found == []


@pytest.mark.parametrize("text", ["https://" + HOSTS[0] + "/simple", OPTIONS[0] + " x", HOSTS[3] + "/simple"])
def test_the_address_of_an_index_would_be_found(text):
    assert ADDRESS.search(text)


@each("one", declared())
def test_the_lock_is_within_the_declared_bounds(one):
    assert locked()[canonicalize_name(one.name)] in one.specifier


def test_every_locked_package_has_hashes():
    parts = re.split(r"^(?=[\w.-]+==)", LOCK, flags=re.MULTILINE)[1:]
    assert len(parts) > 40
    assert [part.split()[0] for part in parts if "--hash=sha256:" not in part] == []


def test_every_bound_is_a_lowest_version():
    assert [str(one) for one in declared() if [part.operator for part in one.specifier] != [">="]] == []


def test_licences_of_all_packages_are_listed_and_compatible():
    listed = LICENCES.split("|---|---|---|")[1]
    rows = dict(re.findall(r"^\| ([\w.-]+) \| (.+?) \| [\w, ]+ \|$", listed, re.MULTILINE))
    lists = [
        PROJECT["dependencies"],
        *(PROJECT["optional-dependencies"][name] for name in make_licences.EXTRAS),
    ]
    needed = [Requirement(line) for lines in lists for line in lines]
    here = [one.name for one in needed if one.marker is None or one.marker.evaluate()]
    assert [name for name in here if canonicalize_name(name) not in rows] == []
    assert [name for name in rows if not make_licences.is_compatible(rows[name])] == []
    assert not make_licences.is_compatible("GPL-3.0-only")
    assert not make_licences.is_compatible("MIT AND AGPL-3.0")


def test_the_wheel_works_without_the_repository(tmp_path):
    wheel = Path(next(WheelBuilder(str(REPOSITORY)).build(directory=str(tmp_path))))
    assert try_package.digests(wheel)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-P", "-m", "sdckit.cli", "methods"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=kept | {"PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "mdav" in done.stdout


@pytest.mark.parametrize(
    ("versions", "faults"),
    [
        ({"vl-convert-python": "1.7.0", "rich": "14.0"}, []),
        (
            {"vl-convert-python": "1.8", "rich": "14.0"},
            ["vl_Convert.python 1.8 was installed in place of 1.7"],
        ),
        (
            {"vl-convert-python": "1.70", "rich": "14.0"},
            ["vl_Convert.python 1.70 was installed in place of 1.7"],
        ),
        ({"vl-convert-python": "1.7.0"}, ["rich is declared and was not installed"]),
        (
            {"vl-convert-python": "1.7", "rich": "14.0", "tzdata": "2026.1"},
            ["tzdata 2026.1 was installed in place of 2024.1"],
        ),
    ],
)
def test_the_oldest_packages_are_found_however_they_are_spelled(versions, faults):
    declared = ["vl_Convert.python>=1.7", "rich>=14.0", "tzdata>=2024.1; sys_platform == 'win32'"]
    assert try_package.faults_of_lowest(declared, versions) == faults
