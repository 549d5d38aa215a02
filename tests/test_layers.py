"""The order of the packages: kept, checked by lint-imports, and without a circle anywhere."""

import shutil
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import grimp
import pytest

import sdckit as sdc

ROOT = Path(__file__).parents[1]
PACKAGE = Path(sdc.__file__).parent
LINT = "from importlinter.cli import lint_imports_command as run; run()"
ENTRIES = 21  # packages and modules at the top


def contracts():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def lint(folder):
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command as run; run()",
            "--no-cache",
        ],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layers")
    shutil.copytree(PACKAGE, folder / "sdckit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_the_layers_hold(copy):
    done = lint(copy)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("kernels/jit.py", "from sdckit.core import checks"),
        ("core/table.py", "from sdckit.metrics.pair import Pair"),
        ("masking/noise.py", "def _late():\n    from sdckit.metrics.loss import rank"),
        ("masking/swapping.py", "def _late():\n    from sdckit.risk import intruder"),
        ("metrics/pair.py", "def _late():\n    from sdckit.selection.plan import Plan"),
        ("report/page.py", "def _late():\n    from sdckit.evaluation.result import Evaluation"),
        ("app/launch.py", "def _late():\n    from sdckit.cli import options"),
        ("selection/plan.py", "def _late():\n    from sdckit.cli import terminal"),
        ("io/formats.py", "from sdckit.kernels import jit"),
        ("stray.py", "from sdckit.core import checks"),
    ],
)
def test_a_planted_import_upwards_is_found(copy, file, line):
    target = copy / "sdckit" / file
    before = target.read_text() if target.exists() else None
    target.write_text(f"{before or ''}\n{line}\n")
    try:
        done = lint(copy)
    finally:
        target.unlink() if before is None else target.write_text(before)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 broken" in done.stdout


def test_no_module_imports_itself_by_a_detour():
    graph = grimp.build_graph("sdckit", cache_dir=None, exclude_type_checking_imports=True)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()  # names the circle if there is one


def test_kernels_import_nothing_but_progress_and_types():
    graph = grimp.build_graph("sdckit", cache_dir=None)
    found = {
        imported
        for name in graph.find_descendants("sdckit.kernels")
        for imported in graph.find_modules_directly_imported_by(name)
    }
    assert {name for name in found if not name.startswith("sdckit.kernels")} == {
        "sdckit.arrays",
        "sdckit.progress",
    }


def test_the_layers_are_checked_at_every_run():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert any("lint-imports" in line.split() and not line.lstrip().startswith("#") for line in lines)


def test_there_are_no_exceptions():
    assert not [line for contract in contracts() for line in contract.get("ignore_imports", ())]


def test_the_top_is_short_and_shares_no_name_with_a_public_function():
    found = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.name not in {"__init__.py", "__init__.pyi", "py.typed", "data", "__pycache__"}
    }
    assert len(found) <= ENTRIES
    shared = found & set(dir(sdc))
    assert all(isinstance(getattr(sdc, name), ModuleType) for name in shared)  # risk: the family of metrics
