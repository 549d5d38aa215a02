"""`estimates`: what users of a file compute, in the original and in the masked file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sdckit.core.frame_kinds import kind_of
from sdckit.core.table import names_of
from sdckit.metrics.estimates.comparing import comparison_table
from sdckit.metrics.estimates.measuring import measure, require_readable
from sdckit.metrics.estimates.models import Levels, levels_of, shared_levels
from sdckit.metrics.estimates.parse import parse_estimates
from sdckit.metrics.estimates.result import Estimates
from sdckit.metrics.estimates.survey_file import survey_files


def estimates(
    original: Any,
    masked: Any,
    estimates: str | Iterable[str],
    *,
    weights: Any = None,
    by: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | None = None,
    population: str | None = None,
    unit: str | None = None,
    na: Any = None,
    replications: Sequence[Any] = (),
) -> Estimates:
    """Compare what users of a file compute: totals, means, quantiles, models, before and after masking.

    Each file's estimates are computed by itself, so rows need not be aligned, and the files may differ in
    their number of records.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy; `original` may be prepared, and its weights, unit and missing codes
        are taken then.
    estimates : str or list of str
        `total(turnover) by sector`, `mean(wages)`, `median(wages) by sector, size`, `quantile(wages, 0.9)`,
        `share(profit > 0)`, `ratio(wages, employees)`, `gini(income)`, `correlation(a, b)`,
        `model: log(profit) ~ log(turnover) + sector` (linear) and `logit: exporter ~ log(turnover)` (of 0 and
        1). Columns after `by` form domains; a model has a row for each coefficient. Odd names stand in
        backquotes. Functions in formulas are log, log2, log10, exp, sqrt, abs, C, I, center, scale and poly.
    weights : str or array, optional
        Survey weights, at least 0: a column of both files, or one number per record in the order of both.
    by : str or list of str, optional
        Columns whose values form the domains of estimates without a `by` of their own.
    strata : str or list of str, optional
        Columns of the strata in which the sample was drawn, for standard errors.
    population : str, optional
        Column with the number of units in the population of each record's stratum, for a finite-population
        correction: errors shrink by the share that was drawn.
    unit : str, optional
        Column of the units that were drawn, such as households or firms with several records; errors are
        clustered by them.
    na : number or list of numbers, optional
        Values that stand for a missing cell. Records without a value of a column are left out.
    replications : list of tables, optional
        Further maskings of the same original by the same method, to show the spread of masked estimates.

    Returns
    -------
    Estimates
        With `table` and `summary`.

    Notes
    -----
    Totals, means, shares, ratios, correlations and Gini coefficients have linearised (Taylor) standard
    errors: units drawn with replacement within strata, a finite-population correction only where `population`
    is given, and records outside a domain counted as 0. Quantiles have Woodruff's intervals. Linear and
    logistic models have sandwich errors, HC1 or, with `unit`, clustered; they leave strata and the population
    aside. Intervals are value -+ 1.96 standard errors.

    The overlap is that of `ci_overlap`. With replications, `spread` is the standard deviation of the masked
    estimate over the maskings, and `se_inflated` the square root of the original's squared error plus the
    mean squared change over all maskings, so that noise, bias and lost variance of a masking all count.

    References
    ----------
    Woodruff 1952, Confidence intervals for medians and other position measures, JASA 47.
    Karr, Kohnen, Oganian, Reiter & Sanil 2006, doi:10.1198/000313006X124640.

    Examples
    --------
    >>> import sdckit as sdc
    >>> original = sdc.load_sample()
    >>> masked = sdc.mask(original, "mdav", k=10, key="firm", weights="weight", by="sector")
    >>> found = sdc.estimates(original, masked, ["total(turnover) by sector"], weights="weight")
    >>> found.table.columns[:4]
    ['estimate', 'domain', 'original', 'se_original']
    """
    requests = parse_estimates(estimates, tuple(names_of(by)))
    ours, (theirs, *others) = survey_files(
        original,
        [masked, *replications],
        weights=weights,
        strata=strata,
        population=population,
        unit=unit,
        na=na,
    )
    files = (ours, theirs, *others)
    for file in files:
        require_readable(file, requests)
    levels: Levels = {}
    for file in files:
        levels = shared_levels(levels, levels_of(file, requests))
    first, *found = (measure(file, requests, levels) for file in files)
    return Estimates(comparison_table(first, found[0], found[1:]), kind=kind_of(ours.table.frame))
