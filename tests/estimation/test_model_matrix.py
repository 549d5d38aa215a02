"""Matrices of models: classes, missing cells, products, and formulas that cannot be computed."""

import numpy as np
import pytest

from sdckit.estimation.models import Classes, model_matrix
from sdckit.estimation.parse import parse_estimate

X, Y = np.array([1.0, 2.0, np.nan, 0.0]), np.array([4.0, np.nan, 6.0, 7.0])
CELLS = {
    "x": X,
    "y": Y,
    "s": Classes(("a", "gone", "column_9_"), np.array([0, 2, 2, -1])),
    "one": Classes(("single",), np.zeros(4, np.int64)),
}
LAST = np.array([0.0, 1.0, 1.0, 0.0])  # in the last class of s; a record without a class is in none
NONE, ALL = np.zeros(4), np.ones(4)
MATRICES = {
    "y ~ x": {"Intercept": ALL, "x": X},
    "log(y) ~ s - 1": {"s[a]": np.array([1.0, 0.0, 0.0, 0.0]), "s[gone]": NONE, "s[column_9_]": LAST},
    "y ~ log(x):s": {
        "Intercept": ALL,
        "log(x):s[a]": np.array([0.0, 0.0, np.nan, np.nan]),
        "log(x):s[gone]": np.array([0.0, 0.0, np.nan, np.nan]),
        "log(x):s[column_9_]": np.array([0.0, np.log(2.0), np.nan, np.nan]),
    },
    "y ~ C(s) + I(-x ^ 2 / 2)": {
        "Intercept": ALL,
        "C(s)[T.gone]": NONE,
        "C(s)[T.column_9_]": LAST,
        "I(-x ** 2 / 2)": -(X**2) / 2,
    },
    "log(y) ~ one": {"Intercept": ALL},
}


def matrix_of(text):
    formula = parse_estimate(f"model: {text}").formula
    return model_matrix(formula, [CELLS[name] for name in formula.columns])


@pytest.mark.parametrize("text", MATRICES)
def test_a_matrix_has_a_column_for_each_term(text):
    found, expected = matrix_of(text), MATRICES[text]
    assert found.names == tuple(expected)
    np.testing.assert_array_equal(found.response, np.log(Y) if text.startswith("log(y)") else Y)
    np.testing.assert_array_equal(found.terms, np.column_stack(list(expected.values())))
    assert found.terms.flags.c_contiguous


@pytest.mark.parametrize("text", ["s ~ x", "y ~ log(s)", "y ~ x + log(2)", "y / 2 ~ x - 2 * x"])
def test_a_formula_that_cannot_be_computed_is_refused(text):
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^(the response of )?model "):
            matrix_of(text)
