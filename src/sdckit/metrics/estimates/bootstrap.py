"""`compare`: any function of a table in both files, with intervals by the bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.core.frame_kinds import kind_of
from sdckit.core.randomness import entropy_of
from sdckit.estimation.compare import Estimates, comparison_table
from sdckit.estimation.estimators import CONFIDENCE, Row, Rows
from sdckit.estimation.survey_file import WHOLE, SurveyFile, survey_files

if TYPE_CHECKING:
    from sdckit.kernels.jit import Ints

Values = dict[str, float]
UNSTABLE = "the function has no value in more than half of the resamples, so no standard error"


def compare(
    original: Any,
    masked: Any,
    function: Callable[[Any], float | Mapping[str, float]],
    *,
    strata: str | Sequence[str] | None = None,
    unit: str | None = None,
    resamples: int = 200,
    rng: Any = None,
    replications: Sequence[Any] = (),
) -> Estimates:
    """Compare a function of a table, such as your own analysis, in the original and in the masked file.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy; `original` may be prepared.
    function : callable
        Takes a table of the given type, returns a number, or a dict of numbers by name.
    strata : str or list of str, optional
        Columns of the strata in which the sample was drawn; each is drawn from again.
    unit : str, optional
        Column of units, such as households, that are drawn as a whole.
    resamples : int, optional
        How many bootstrap samples are drawn from each file.
    rng : None, int or numpy Generator, optional
        Seed of the draws, which are the same for both files where they have the same units.
    replications : list of tables, optional
        Further maskings of the same original, as for `estimates`.

    Returns
    -------
    Estimates
        With `table` and `summary`, as of `estimates`.

    Notes
    -----
    As many units as a stratum has are drawn with replacement. The standard error is the standard deviation
    over the resamples, the interval goes from their 2.5 % to their 97.5 % quantile.

    Examples
    --------
    >>> import sdckit as sdc
    >>> x = sdc.load_sample().select("turnover", "wages")
    >>> found = sdc.compare(x, x * 1.01, lambda data: data["wages"].mean(), resamples=50, rng=1)
    >>> round(found.table["change"][0], 6)
    1.0
    """
    if not callable(function):
        raise TypeError(f"function is {function!r}; give a function of a table that returns a number")
    count, seed = checks.checked_count("resamples", resamples), entropy_of(rng)
    ours, others = survey_files(
        original, [masked, *replications], weights=None, strata=strata, unit=unit, na=None
    )
    name = getattr(function, "__name__", type(function).__name__).strip("<>")
    found = [
        _bootstrap(file, function, name, count if place < 2 else 0, np.random.default_rng(seed))
        for place, file in enumerate((ours, *others))
    ]
    return Estimates(comparison_table(found[0], found[1], found[2:]), kind=kind_of(ours.table.frame))


def _bootstrap(
    file: SurveyFile,
    function: Callable[[Any], float | Mapping[str, float]],
    name: str,
    resamples: int,
    rng: np.random.Generator,
) -> Rows:
    """Return values of the function with errors and intervals over resamples of a file."""
    table = file.table
    values = _values(function(table.take(table.names)), name)
    draws = [
        _values(function(table.take(table.names, rows)), name) for rows in _resamples(file, resamples, rng)
    ]
    return {
        (label, WHOLE): _row(value, np.array([one.get(label, np.nan) for one in draws]), file.n)
        for label, value in values.items()
    }


def _values(found: Any, name: str) -> Values:
    """Return what a function gave as numbers by name; raise TypeError for anything else."""
    several = found if isinstance(found, Mapping) else {name: found}
    for label, value in several.items():
        if not isinstance(value, (Real, type(None))):
            raise TypeError(
                f"the function returned {type(value).__name__} {value!r} for {label!r}; return a number or a "
                "dict of numbers by name"
            )
    return {str(label): np.nan if value is None else float(value) for label, value in several.items()}


def _resamples(file: SurveyFile, count: int, rng: np.random.Generator) -> list[Ints]:
    """Return row numbers of bootstrap samples: in each stratum as many units as it has, with replacement."""
    design = file.design
    unit = np.arange(file.n) if design.unit is None else design.unit
    order = np.argsort(unit, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(unit)))
    stratum = np.zeros(file.n, np.int64) if design.stratum is None else design.stratum
    of_unit = stratum[order[starts[:-1]]]
    members = [np.flatnonzero(of_unit == one) for one in range(design.strata)]
    found = []
    for _ in range(count):
        drawn = np.concatenate([rng.choice(own, own.size) for own in members])
        sizes = starts[drawn + 1] - starts[drawn]
        steps = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        found.append(order[np.repeat(starts[drawn], sizes) + steps])
    return found


def _row(value: float, draws: Any, records: int) -> Row:
    """Return a value with standard error and percentile interval of its resamples."""
    if np.isnan(value):
        return Row(np.nan, np.nan, np.nan, np.nan, records, "the function has no value")
    found = draws[np.isfinite(draws)]
    if found.size < 2 or 2 * found.size < draws.size:
        return Row(value, np.nan, np.nan, np.nan, records, UNSTABLE)
    low, high = np.quantile(found, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Row(value, float(found.std(ddof=1)), float(low), float(high), records)
