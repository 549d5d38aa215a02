"""The registry is the only list: a new module is found everywhere, and no other place names its members."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from cases import each
from new_records import linked_package

HERE = Path(__file__).parents[2]
NEW = {"changed_cells", "shrunk"}
PLANS = {  # which methods to try is what a plan says
    "src/sdckit/cli/demo.py",
    "src/sdckit/paper/design.py",
    "benchmarks/secret_draws.py",
    "benchmarks/estimates.py",
    "tools/estimates_coverage.py",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return linked_package(tmp_path_factory.mktemp("package"))


@pytest.fixture
def run(package, tmp_path):
    values = np.random.default_rng(3).normal(50, 10, (60, 3)).round(1)
    pl.DataFrame(values, schema=["a", "b", "c"]).write_csv(tmp_path / "data.csv")
    pl.DataFrame(values + 1, schema=["a", "b", "c"]).write_csv(tmp_path / "masked.csv")

    def run(*words, folder=tmp_path):
        more = {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
        how = {"cwd": folder, "env": os.environ | more, "capture_output": True, "text": True}
        done = subprocess.run([sys.executable, *words], check=False, **how)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.long
def test_the_added_modules_are_those_of_the_folder(run, package):
    found = run(
        "-c", "import sdckit; print(sdckit.__file__, sdckit.loss.changed_cells is sdckit.changed_cells)"
    )
    assert found.split() == [str(package / "sdckit" / "__init__.py"), "True"]


def test_a_new_metric_and_a_new_method_are_listed(run):
    metrics = json.loads(run("-m", "sdckit.cli", "metrics", "--json"))
    assert [row["metric"] for row in metrics if row["metric"] not in sdc.METRICS] == ["changed_cells"]
    methods = json.loads(run("-m", "sdckit.cli", "methods", "--json"))
    assert [row["method"] for row in methods if row["method"] not in sdc.METHODS] == ["shrunk"]


def test_a_new_metric_and_a_new_method_are_in_the_reference_and_the_stubs(run):
    code = "import make_reference as m; print(*m.pages().values(), *m.stubs().values())"
    found = run("-c", code, folder=HERE / "tools")
    assert {name for name in NEW if f"### `{name}`" in found} == NEW
    assert found.count("from sdckit.metrics.loss.changed import changed_cells as changed_cells") == 2


@pytest.mark.long
def test_a_new_metric_and_a_new_method_are_in_a_sweep_by_default(run, tmp_path):
    words = [
        "data.csv",
        "-o",
        "out",
        "--workers",
        "1",
        "--method",
        "shrunk",
        "--report",
        "map.html",
        "--quiet",
    ]
    run("-m", "sdckit.cli", "sweep", *words)
    summary = pl.read_csv(tmp_path / "out" / "summary.csv")
    rows = summary.filter(method="shrunk", metric="changed_cells")
    assert rows["setting"].to_list() == [10, 50, 90]
    assert rows["value"].to_list() == [1.0, 1.0, 1.0]
    assert "shrinking towards the mean" in (tmp_path / "map.html").read_text(encoding="utf-8")
    planned = run("-c", "from sdckit.selection.plan import settings_of; print(*map(str, settings_of(None)))")
    assert "shrunk" in planned


def test_a_new_metric_is_in_a_report_by_default(run, tmp_path):
    run("-m", "sdckit.cli", "evaluate", "data.csv", "masked.csv", "--report", "one.html", "--quiet")
    page = (tmp_path / "one.html").read_text(encoding="utf-8")
    assert "changed cells, whatever the change" in page
    assert "100.0% of the cells changed" in page


def test_a_new_metric_and_a_new_method_are_held_to_the_contract(run):
    files = [f"tests/contract/test_contract{name}.py" for name in ("", "_methods", "_invariants")]
    words = ["-q", "-n0", "-p", "no:cacheprovider", "-k", "changed_cells or shrunk", *files]
    found = run("-m", "pytest", *words, "--rootdir", str(HERE), folder=HERE)
    assert int(re.search(r"(\d+) passed", found)[1]) > 30
    assert "failed" not in found


# --- no second list ---


def sources():
    return [
        path
        for folder in ("src", "tools", "benchmarks")
        for path in sorted((HERE / folder).rglob("*.py"))
        if path.name != "registry.py"
    ]


def own_parts(statement):
    """The parts of a statement that are no statements themselves: of a function, its head and decorators."""
    for part in ast.iter_child_nodes(statement):
        if not isinstance(part, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield part


def texts(statement):
    """The pieces of text in a statement: in displays, keys and values, calls, comparisons, all alike."""
    for part in own_parts(statement):
        for node in ast.walk(part):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def lists_of(names, code, most=2):
    """The statements in some code that hold more than so many of the names, options apart."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, (ast.stmt, ast.match_case)):
            found = {text.partition(":")[0] for text in texts(node)} & set(names)
            if len(found) > most:
                yield f"line {getattr(node, 'lineno', 0)}: {', '.join(sorted(found))}"


def test_no_file_lists_metrics_or_methods():
    aliases = [alias for metric in sdc.METRICS.values() for alias in metric.aliases]
    found = {}
    for path in sources():
        code, name = path.read_text(encoding="utf-8"), str(path.relative_to(HERE))
        found[name] = [*lists_of([*sdc.METRICS, *aliases], code)]
        found[name] += [] if name in PLANS else lists_of(sdc.METHODS, code)
    assert len(found) > 200
    assert {name: lines for name, lines in found.items() if lines} == {}


@each(
    "code",
    [
        "a = ['brmae', 'ks', 'rid']",
        "def f(x=('brmae', 'il1:zeros=drop', 'rid')): ...",
        "a = {'brmae': 1, 'ks': 2, 'rid': 3}",
        "a = {'brmae', 'ks', 'rid', 'other'}",
        "a = [('brmae', 1), ('ks', 2), ('rid', 3)]",
        "a = (Kind('brmae', 1), Kind('ks', 2), Kind(name='rid'))",
        "a = {1: 'brmae', 2: 'ks', 3: 'rid'}",
        "f('brmae', 'ks', 'rid')",
        "if name in ('brmae', 'ks') or name == 'rid': pass",
        "a = dict([('brmae', f(1)), ('ks', 2)]) | {'rid': 3}",
        "@f('brmae', 'ks', 'rid')\ndef g(): ...",
        "a = [f(x) for x in ('brmae', 'ks', 'rid')]",
    ],
)
def test_a_list_of_metrics_would_be_found(code):
    assert len(list(lists_of(sdc.METRICS, code))) == 1
    assert not list(lists_of(sdc.METRICS, code.replace("rid", "other")))


def test_statements_that_name_one_metric_each_are_no_list():
    code = "def f():\n    if x == 'brmae':\n        return 'ks'\n    return 'rid'"
    assert not list(lists_of(sdc.METRICS, code))


def test_no_metric_shares_its_name_with_a_module_of_its_family():
    for family in (sdc.loss, sdc.risk):
        modules = {path.stem for path in Path(family.__file__).parent.glob("*.py")}
        assert not modules & set(family.__all__)


def test_the_registry_is_complete_after_any_import():
    for package, records in (("metrics", "METRICS"), ("masking", "METHODS")):
        code = f"from sdckit.{package} import {records} as r; print(*r)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == list(getattr(sdc, records))
