"""Many short cases in one test."""

import functools
import inspect

import pytest


def each(names, cases):
    """Run a test on all cases in turn, where `pytest.mark.parametrize` would make as many tests.

    For cases of milliseconds: a test of its own costs more than that. All that fail are named.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = list(cases)

    def decorate(test):
        @functools.wraps(test)
        def every(**given):
            failed = []
            for case in cases:
                values = case if len(names) > 1 else (case,)
                try:
                    test(**given, **dict(zip(names, values, strict=True)))
                except Exception as error:  # noqa: BLE001 - raised below, with the others
                    error.add_note(f"in the case {', '.join(names)} = {case!r}")
                    failed.append(error)
            if failed:
                raise failed[0] if len(failed) == 1 else ExceptionGroup("several cases", failed)

        kept = [one for one in inspect.signature(test).parameters.values() if one.name not in names]
        every.__signature__ = inspect.Signature(kept)
        return every

    return decorate


def few(cases, number):
    """Cases for `pytest.mark.parametrize`: about so many in every run, the others as long tests."""
    cases = list(cases)
    now = set(range(0, len(cases), -(-len(cases) // number)))
    return [case if place in now else later(case) for place, case in enumerate(cases)]


def later(case):
    """Return a case as a long test."""
    if hasattr(case, "marks"):  # made by pytest.param
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.long], id=case.id)
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)
