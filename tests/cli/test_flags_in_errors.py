"""Errors of the library name Python arguments; the command line prints them as its options."""

import ast
import re
from pathlib import Path

import sdckit
from cases import each
from sdckit.request.options import with_flags

ROOT = Path(sdckit.__file__).parent
COMMANDS = [ROOT / "app" / "launch.py"]  # checks the options of a command outside of `cli`


@each(
    ("text", "shown"),
    [
        ("a; set encoding='utf-8'", "a; set --encoding utf-8"),
        ("a; such as delimiter=';'", "a; such as --delimiter ';'"),
        ("a; such as delimiter='\\t'", "a; such as --delimiter '\\t'"),
        ("a; set decimal_comma=True or not", "a; set --decimal-comma or not"),
        ("a; overwrite it (overwrite=True)", "a; overwrite it (--overwrite)"),
        ("a; declare it with na=['NA', 'not asked']", "a; declare it with --na NA --na 'not asked'"),
        ("a; name it as key= or drop it", "a; name it as --key or drop it"),
        ("column 'key=1' is unknown; rename it", "column 'key=1' is unknown; rename it"),
        ("na=['NA'] alone", "na=['NA'] alone"),
    ],
)
def test_arguments_in_a_remedy_become_options(text, shown):
    assert with_flags(text) == shown


def errors_of(file):
    """Texts inside the raise statements of a module."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def test_no_error_of_the_library_names_an_option_of_the_command_line():
    files = [
        file
        for file in ROOT.rglob("*.py")
        if file.parent.name not in {"cli", "request"} and file not in COMMANDS
    ]
    assert len(files) > 100
    found = [
        f"{file.relative_to(ROOT)}: {text}"
        for file in files
        for text in errors_of(file)
        if re.search(r"(^|\W)--[a-z]| -o\b", text)
    ]
    assert found == []
