"""Which statements of the package the tests execute: printed at the end where SDCKIT_COVERAGE is set.

A mark is put before every run of statements, which ends with one that may branch, when a module is imported:
that costs far less than tracing lines. A run that an exception leaves counts as a whole.
Kernels are left out, since numba compiles them; so is what other processes execute.
"""

import ast
import sys
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path

import pytest

HITS = "__statements_executed__"  # in every module: a byte for each line
COMPILED = {"kernel", "inner", "inlined", "uncounted", "uncounted_inner"}
BLOCKS = ("body", "orelse", "finalbody")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def has_no_mark(statement):
    """Docstrings and imports from the future must stay the first of their block."""
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return docstring or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")


def is_compiler(node):
    return isinstance(node, ast.Name) and node.id in COMPILED


def compiled_names(tree):
    """Functions with the decorator of kernels, or handed over to it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(map(is_compiler, node.decorator_list)):
            yield node.name
        if isinstance(node, ast.Call) and is_compiler(node.func):
            yield from (given.id for given in node.args if isinstance(given, ast.Name))


class Marks(ast.NodeTransformer):
    """Puts a mark before every run of statements; `runs` has the lines of each by that of its first."""

    def __init__(self, tree):
        self.runs, self.compiled = {}, set(compiled_names(tree))

    def visit(self, node):
        if isinstance(node, ast.FunctionDef) and node.name in self.compiled:
            return node
        self.generic_visit(node)
        for name in BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, list(self.marked(block)))
        return node

    def marked(self, block):
        """Yield the statements of a block, with a mark before each run of them."""
        first = None
        for statement in block:
            if isinstance(statement, ast.stmt) and not has_no_mark(statement):
                if first is None:
                    first = statement.lineno
                    yield mark_before(statement)
                self.runs.setdefault(first, set()).add(statement.lineno)
                if hasattr(statement, "body") and not isinstance(statement, DEFINITIONS):
                    first = None
            yield statement


def mark_before(statement):
    (mark,) = ast.parse(f"{HITS}[{statement.lineno}] = 1").body
    for part in ast.walk(mark):
        ast.copy_location(part, statement)
    return mark


def marks(source, path):
    """The code of a module with marks, and the lines of each run of statements by that of its first."""
    tree = ast.parse(source)
    found = Marks(tree)
    return compile(found.visit(tree), path, "exec", dont_inherit=True), found.runs


def lines_of(runs, firsts):
    """The lines of those runs whose first line is among the given ones."""
    return {line for first in runs.keys() & set(firsts) for line in runs[first]}


class Loader(SourceFileLoader):
    """Loads a module with marks."""

    def __init__(self, name, path, executed):
        super().__init__(name, path)
        self.executed = executed

    def exec_module(self, module):
        source = self.get_data(self.path)
        code, _ = marks(source, self.path)
        hits = self.executed.setdefault(self.path, bytearray(source.count(b"\n") + 2))
        module.__dict__[HITS] = hits
        exec(code, module.__dict__)  # noqa: S102 - the module itself


class Finder:
    """Finds the modules of the package and lets them be loaded with marks."""

    def __init__(self):
        self.executed = {}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != "sdckit":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None and path:  # pytest names the folder of a package itself
            spec = PathFinder.find_spec(name, [str(Path(folder).parent) for folder in path], target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Loader(name, spec.origin, self.executed)
        return spec


class Statements:
    """The part of pytest that gathers the lines of all workers and prints the shares."""

    def __init__(self):
        self.finder = Finder()
        self.lines = {}
        sys.meta_path.insert(0, self.finder)

    def add(self, found):
        for path, lines in found.items():
            self.lines.setdefault(path, set()).update(lines)

    def pytest_sessionfinish(self, session):
        executed = self.finder.executed.items()
        found = {path: [line for line, hit in enumerate(hits) if hit] for path, hits in executed}
        self.add(found)
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["statements"] = found

    @pytest.hookimpl(optionalhook=True)  # of pytest-xdist
    def pytest_testnodedown(self, node):
        self.add(getattr(node, "workeroutput", {}).get("statements", {}))

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section("statements executed, without kernels and other processes")
        for name, (done, count) in self.shares().items():
            terminalreporter.line(f"{name:12} {done:6,} of {count:6,} {done / max(count, 1):7.1%}")

    def shares(self):
        """Executed and all statements by first-level package, and in total."""
        (home,) = map(Path, find_spec("sdckit").submodule_search_locations)
        found = {}
        for path in sorted(home.rglob("*.py")):
            _, runs = marks(path.read_bytes(), str(path))
            lines, done = lines_of(runs, runs), len(lines_of(runs, self.lines.get(str(path), ())))
            for name in (path.relative_to(home).parts[0], "total"):
                before = found.pop(name, (0, 0))
                found[name] = (before[0] + done, before[1] + len(lines))
        return found
