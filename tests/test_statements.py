"""The count of executed statements is right."""

from statements import HITS, lines_of, marks

SOURCE = '''"""Docstring."""
from __future__ import annotations
def kernel(function):
    return function
@kernel
def compiled(n):
    return n
def handed_over(n):
    return n
kernel(handed_over)
def chosen(n):
    """Docstring."""
    if n:
        n = 1
    else:
        n = 2
    try:
        return 1 / (n - 1)
    except ZeroDivisionError:
        return compiled(n)
    finally:
        n = 0
class Thing:
    size = 3
'''
AT = {line.strip(): number for number, line in enumerate(SOURCE.splitlines(), 1)}
UNMARKED = {1, 2, 5, 7, 9, 12, 15, 19, 21}  # docstrings, the future, kernels, parts of statements


def executed(*calls):
    code, runs = marks(SOURCE, "x.py")
    names = {HITS: bytearray(40)}
    exec(code, names)  # noqa: S102 - the source above
    for number in calls:
        names["chosen"](number)
    hits = [line for line, hit in enumerate(names[HITS]) if hit]
    return lines_of(runs, hits), lines_of(runs, runs)


def test_every_statement_counts_but_docstrings_and_kernels():
    _, lines = executed()
    assert lines == set(range(1, len(SOURCE.splitlines()) + 1)) - UNMARKED


def test_marks_tell_what_was_executed():
    hits, lines = executed()
    assert hits < lines
    assert AT["size = 3"] in hits
    assert AT["if n:"] not in hits
    hits, _ = executed(5)
    assert {AT["n = 1"], AT["return compiled(n)"], AT["n = 0"]} <= hits
    assert AT["n = 2"] not in hits
    hits, lines = executed(5, 0)
    assert hits == lines
