"""Matrices of models by recipe against formulaic's own, and which formulas have a recipe."""

import numpy as np
import pytest

from sdckit.metrics.estimates.formula import Classes, formulaic_matrix
from sdckit.metrics.estimates.model_matrix import _recipe, model_matrix
from sdckit.metrics.estimates.parse import parse_estimate

SIMPLE = [
    "y ~ x + z",
    "log(y) ~ log(x) + s",
    "y ~ 0 + s + x",
    "y ~ x * s",
    "y ~ (x + z + s) ^ 2 - x:z",
    "sqrt(y) ~ x:z:s + r",
    "y ~ s:r - 1",
    "y ~ s * r * x",
    "y ~ x / s",
    "y ~ C(s) + I(x ^ 2) + I(-x / (z + 1))",
    "I(y / 2) ~ exp(x - 3) + abs(z) + log2(x) + log10(x)",
    "I(y - x) ~ x + one + log(x):s",
    "log(y) ~ 1",
]
LEFT_TO_FORMULAIC = [
    "y ~ poly(x, 2)",
    "y ~ scale(x) + s",
    "center(y) ~ x",
    "y ~ log(x - center(x) + 9)",
    "y ~ I(s) + x",
]


@pytest.fixture(scope="module")
def cells():
    """Columns of ten records: some numbers and classes are missing, and one class has no record."""
    rng = np.random.default_rng(4)
    x, y, z = rng.normal(1.0, 2.0, (3, 10))
    x[3], z[5], y[7] = np.nan, 0.0, np.nan
    return {
        "x": x,
        "y": y,
        "z": z,
        "s": Classes(("a", "b", "gone", "column_1_"), np.array([0, 1, 3, 3, -1, 0, 1, 1, 0, 3])),
        "r": Classes(("only", "other"), np.array([1, 1, 0, 0, 0, 1, 0, 1, 1, -1])),
        "one": Classes(("single",), np.zeros(10, np.int64)),
    }


def read(text, cells):
    formula = parse_estimate(f"model: {text}").formula
    columns = [cells[name] for name in formula.columns]
    return formula, columns, tuple(getattr(one, "labels", None) for one in columns)


@pytest.mark.parametrize("text", SIMPLE + LEFT_TO_FORMULAIC)
def test_a_matrix_is_that_of_formulaic(cells, text):
    if text in LEFT_TO_FORMULAIC:  # which refuses missing cells in some of them
        cells = cells | {name: np.nan_to_num(cells[name]) for name in "xyz"}
    formula, columns, kinds = read(text, cells)
    found, expected = model_matrix(formula, columns), formulaic_matrix(formula, columns)[0]
    assert found.names == expected.names
    np.testing.assert_array_equal(found.response, expected.response)
    np.testing.assert_array_equal(found.terms, expected.terms)
    assert found.terms.flags.c_contiguous
    assert (_recipe(formula, kinds) is None) == (text in LEFT_TO_FORMULAIC)


@pytest.mark.parametrize("text", ["s ~ x", "y ~ log(s)", "y ~ x + log(2)", "y / 2 ~ x - 2 * x"])
def test_a_formula_that_cannot_be_computed_is_refused_as_by_formulaic(cells, text):
    formula, columns, _ = read(text, cells)
    with pytest.raises(ValueError, match="model") as expected:
        formulaic_matrix(formula, columns)
    for _ in range(2):
        with pytest.raises(ValueError, match="model") as found:
            model_matrix(formula, columns)
        assert str(found.value) == str(expected.value)
