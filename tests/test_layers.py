"""The order of the packages: kept, checked by lint-imports, and without a circle anywhere."""

import re
import shutil
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import grimp

import sdckit as sdc

ROOT = Path(__file__).parents[1]
PACKAGE = Path(sdc.__file__).parent
LINT = "from importlinter.cli import lint_imports_command as run; run()"
ENTRIES = 21  # packages and modules at the top


def contracts():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


PLANTED = {  # files, and what must not stand there
    "kernels/jit.py": "from sdckit.core import checks",
    "core/table.py": "from sdckit.metrics.pair import Pair",
    "masking/noise.py": "def _late():\n    from sdckit.metrics.loss import rank",
    "masking/swapping.py": "def _late():\n    from sdckit.risk import intruder",
    "metrics/pair.py": "def _late():\n    from sdckit.selection.plan import Plan",
    "report/page.py": "def _late():\n    from sdckit.evaluation.result import Evaluation",
    "app/launch.py": "def _late():\n    from sdckit.cli import options",
    "selection/plan.py": "def _late():\n    from sdckit.terminal import print_error",
    "io/formats.py": "from sdckit.kernels import jit",
    "stray.py": "from sdckit.core import checks",
}


def lint(folder):
    return subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_layers_hold_and_planted_imports_upwards_are_found(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "sdckit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    done = lint(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for file, line in PLANTED.items():
        with (tmp_path / "sdckit" / file).open("a") as written:
            written.write(f"\n{line}\n")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    for file, line in PLANTED.items():
        importer = "sdckit." + file.removesuffix(".py").replace("/", ".")
        package = re.search(r"from ([\w.]+)", line)[1]
        found = rf"{importer} -> {package}[\w.]* \(l" if file != "stray.py" else "sdckit.stray"
        assert re.search(found, done.stdout), file


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
