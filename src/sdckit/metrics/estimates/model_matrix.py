"""The matrix of a model: by formulaic or, much faster for many files, by a recipe read from it once.

A recipe says of which factors each column is the product. Formulas whose cells depend on other records, such
as those with poly(), have none and are left to formulaic.
"""

from __future__ import annotations

import ast
import operator
import re
from functools import lru_cache, reduce
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.metrics.estimates.formula import OWN, Classes, Formula, ModelMatrix, formulaic_matrix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from sdckit.kernels.jit import Floats
    from sdckit.metrics.estimates.formula import Cells

    Values = Callable[[Mapping[str, Any]], Any]  # of an expression, given cells by placeholder
    Factor = Callable[[Mapping[str, Any]], list[Floats]]  # the columns of a factor, given the same

Kinds = tuple[tuple[str, ...] | None, ...]  # the classes of each column of a formula, None for numbers
SIMPLE: dict[str, Callable[[Any], Any]] = {**OWN, "I": lambda values: values}
SIGNS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
CLASSES = re.compile(r"(?:C\()?(column_\d+_)\)?")
MADE_UP = 5  # records from which a recipe is read, beside one for each class
RECIPES = 256  # that are kept


class Term(NamedTuple):
    """Columns of a matrix: all products of the columns of some factors, times a number."""

    factors: tuple[Factor, ...]
    scale: float

    def columns(self, cells: Mapping[str, Any], n: int) -> list[Floats]:
        """Return the columns for n records, in formulaic's order and with its order of multiplication."""
        if not self.factors:
            return [np.full(n, float(self.scale))]
        parts = [factor(cells) for factor in self.factors]
        alone = [part for part in parts if len(part) == 1]
        several = [part for part in parts if len(part) != 1]
        if alone:
            several.append([reduce(np.multiply, [part[0] for part in alone])])
        return [self.scale * reduce(np.multiply, found[::-1]) for found in product(*several[::-1])]


class Recipe(NamedTuple):
    """The terms of a model's response and of its matrix, and the names of the matrix's columns."""

    response: tuple[Term, ...]
    terms: tuple[Term, ...]
    names: tuple[str, ...]

    def matrix(self, columns: Sequence[Cells]) -> ModelMatrix:
        """Return response and terms, given the columns of the formula in their order."""
        n = len(columns[0])
        cells = {f"column_{j}_": one for j, one in enumerate(columns)}
        with np.errstate(all="ignore"):
            (response,) = (column for term in self.response for column in term.columns(cells, n))
            terms = [column for term in self.terms for column in term.columns(cells, n)]
        return ModelMatrix(response, np.stack(terms, axis=1), self.names)


def model_matrix(formula: Formula, columns: Sequence[Cells]) -> ModelMatrix:
    """Return response and terms of a model for each record, given the columns of its formula.

    Cells are floats, NaN where missing, or classes. A term that cannot be computed, such as the log of 0, is
    NaN or infinite.
    """
    recipe = _recipe(formula, tuple(one.labels if isinstance(one, Classes) else None for one in columns))
    return formulaic_matrix(formula, columns)[0] if recipe is None else recipe.matrix(columns)


@lru_cache(RECIPES)
def _recipe(formula: Formula, kinds: Kinds) -> Recipe | None:
    """Return how the matrix of a formula is made for such columns; None where formulaic has to make it.

    It is read from formulaic's matrix of a few records that are made up, and has to give that matrix.
    """
    n = MADE_UP + max((len(labels) for labels in kinds if labels), default=0)
    columns = [_made_up(place, labels, n) for place, labels in enumerate(kinds)]
    classes = {f"column_{place}_" for place, labels in enumerate(kinds) if labels is not None}
    try:
        expected, response, terms = formulaic_matrix(formula, columns)
        recipe = Recipe(_terms(response, classes), _terms(terms, classes), expected.names)
        found = recipe.matrix(columns)
    except ValueError:  # formulaic says of the data themselves what cannot be computed
        return None
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found[:2], expected[:2], strict=True))
    return recipe if same else None


def _made_up(place: int, labels: tuple[str, ...] | None, n: int) -> Cells:
    """Return cells of n records: all classes and one that is missing, or numbers from 1 to 2."""
    steps = np.arange(n)
    if labels is None:
        return 1.0 + np.sqrt(steps * (place + 2) % n / n)
    return Classes(labels, np.where(steps < n - 1, steps % max(len(labels), 1), -1))


def _terms(structure: Iterable[Any], classes: AbstractSet[str]) -> tuple[Term, ...]:
    """Return the terms in the structure of formulaic's matrix; raise ValueError where one is not simple."""
    return tuple(
        Term(tuple(_factor(one.factor.expr, one.reduced, classes) for one in part.factors), part.scale)
        for whole in structure
        for part in whole.scoped_terms
    )


def _factor(code: str, reduced: bool, classes: AbstractSet[str]) -> Factor:  # noqa: FBT001 - of formulaic
    """Return a factor, without its first class if `reduced`; raise ValueError where it is not simple."""
    match = CLASSES.fullmatch(code)
    if match and match[1] in classes:
        name, first = match[1], int(reduced)
        return lambda cells: cells[name].indicators()[first:]
    values = _values(ast.parse(code, mode="eval").body, classes)
    return lambda cells: [values(cells)]


def _values(node: ast.AST, classes: AbstractSet[str]) -> Values:
    """Return what computes an expression of numbers; raise ValueError where it needs other records."""
    match node:
        case ast.Constant(number):
            return lambda _: number
        case ast.Name(name) if name not in classes:
            return operator.itemgetter(name)
        case ast.UnaryOp(sign, operand) if type(sign) in SIGNS:
            function, inner = SIGNS[type(sign)], _values(operand, classes)
            return lambda cells: function(inner(cells))
        case ast.BinOp(left, sign, right) if type(sign) in SIGNS:
            function, first, second = SIGNS[type(sign)], _values(left, classes), _values(right, classes)
            return lambda cells: function(first(cells), second(cells))
        case ast.Call(ast.Name(name), [argument], []) if name in SIMPLE:
            function, inner = SIMPLE[name], _values(argument, classes)
            return lambda cells: function(inner(cells))
    raise ValueError(f"{ast.unparse(node)} is not computed record by record")
