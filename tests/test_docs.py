"""The documentation is true: generated parts are up to date, every name is explained, versions agree."""

import importlib.util
import re
import tomllib
from pathlib import Path

import sdckit as sdc
from cases import each
from sdckit.cli import mask
from sdckit.kernels.ranks import TIES

HERE = Path(__file__).parent.parent
README = (HERE / "README.md").read_text(encoding="utf-8")


def make_reference():
    spec = importlib.util.spec_from_file_location("make_reference", HERE / "tools" / "make_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_program_says():
    for path, text in make_reference().pages().items():
        assert path.read_text(encoding="utf-8") == text, path


def test_type_stubs_have_exactly_the_public_names():
    for path, text in make_reference().stubs().items():
        assert path.read_text(encoding="utf-8") == text, path


@each("name", sdc.METRICS)
def test_the_page_at_a_glance_names_every_metric(name):
    page = HERE / "docs" / "explanation" / "measures.md"
    assert f"`{name}`" in page.read_text(encoding="utf-8")


def test_the_readme_shows_what_the_demo_prints(demo):
    _, done = demo
    printed = [line.split() for line in done.stdout.splitlines()]
    shown = README.split("```text\n")[1].split("```")[0]
    for line in shown.splitlines():
        assert "─" in line or line.split() in printed, line


def test_the_two_commands_stand_in_the_readme():
    assert "pip install -e . && sdckit demo" in README
    assert 'pip install -e ".[dev]" && pytest' in README


def test_versions_agree():
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    assert project["version"] == sdc.__version__
    assert f"version: {sdc.__version__}" in (HERE / "CITATION.cff").read_text()
    assert f"## [{sdc.__version__}]" in (HERE / "CHANGELOG.md").read_text()


def test_every_public_name_exists_and_is_documented():
    for name in dir(sdc):
        value = getattr(sdc, name)
        if callable(value):
            assert (value.__doc__ or "").strip(), name


def test_no_placeholder_is_left():
    for file in (HERE / "README.md", HERE / "CONTRIBUTING.md", HERE / "CHANGELOG.md"):
        for line in file.read_text(encoding="utf-8").splitlines():
            assert not re.fullmatch(r"[A-Z]{3,}", line), f"{file.name}: {line}"


def test_the_readme_counts_the_methods():
    assert f"Of {len(sdc.METHODS)} methods and their parameters" in " ".join(README.split())


def test_the_help_names_every_rule_for_ties():
    (ties,) = [option for option in mask.params if option.name == "ties"]
    named = re.findall(r"\w+", ties.help.split(":")[1].replace(" or ", ", "))
    assert tuple(named) == TIES
