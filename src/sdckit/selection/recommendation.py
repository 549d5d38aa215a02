"""The function that recommends a masking: the least loss within limits on risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sdckit.core import checks
from sdckit.progress import ProgressCallback  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection import sweeping
from sdckit.selection.choice import Choice  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.search import Search


def recommend(
    original: Any,
    *,
    max_risk: dict[str, float],
    max_loss: dict[str, float] | None = None,
    minimise: str = "brmae",
    plan: Any = None,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: Any = None,
    by: str | Sequence[str] | None = None,
    ties: str = "average",
    missing: str = "penalise",
    na: Any = None,
    untouched: str | Sequence[str] | None = None,
    known: str | Sequence[str] | None = None,
    unknown: str | Sequence[str] | None = None,
    confidential: str | Sequence[str] | None = None,
    unit: str | None = None,
    drop: str | Sequence[str] | None = None,
    recode: Mapping[str, Any] | None = None,
    estimates: str | Sequence[str] | None = None,
    scenarios: Mapping[str, Any] | None = None,
    rules: Any = None,
    decimals: int | str | None = "original",
    replications: int | None = None,
    sample_queries: int | None = None,
    rng: Any = None,
    workers: int | None = None,
    folder: str | Path | None = None,
    progress: ProgressCallback | None = None,
) -> Choice:
    """Find the masking with the least loss that meets limits on risk, measuring few settings of each grid.

    Parameters
    ----------
    original : table
        pandas, polars, pyarrow or numpy; or what `prepare` returns, with its roles.
    max_risk : dict
        Limits by risk, such as `{"linkage": 0.1, "linkage_outliers": 0.3}`. One on `linkage_sure`, the share
        of exposed records, is a tenth of that on `linkage` unless it is given; 1 allows all.
    max_loss : dict, optional
        Limits by loss, such as `{"suppressed": 0.01}` for at most 1 % suppressed cells, or
        `{"estimates_worst": 0.3}`.
    minimise : str
        The loss to keep small; "estimates" for what `estimates` declares.
    plan : dict, optional
        Methods and grids, as for `sweep`; by default the same methods with their default grids.
    columns, key, weights, by, ties, missing, na, rules, workers, progress
        As for `sweep`.
    untouched, known, unknown, confidential, unit, drop, recode, estimates
        Other roles of columns, as for `prepare`.
    scenarios : dict, optional
        Other intruders by name, each with what he knows in place of `known` and limits of his own, as in
        `{"press": {"known": ["sex", "age"], "max_risk": {"linkage": 0.05}}}`: all limits are met together.
    decimals : int, "original" or None
        Round masked cells as `release` does, also in the table of `apply`: settings are judged by what would
        be released. None does not round.
    replications : int, optional
        How many tables a random method draws at each setting; the median of their risks is compared. By
        default 3, and 1 of files with more than 20,000 records, whose risk hardly varies from draw to draw.
    sample_queries : int, optional
        Judge settings by linkage estimated on so many records at first, drawn at random; more are drawn until
        a 95 % interval lies on one side of the limit, at most 65,536 of a large file. By default 2,048 of
        files with more than 20,000 records; 0 looks up all records. The release is measured on all
        records, up to 1e7 of them.
    rng : None, int or numpy Generator
        None draws fresh entropy.
    folder : path, optional
        Folder for finished runs: the same call resumes where it was stopped. One with other limits on the
        same risks measures only what is new, unless queries are sampled. The folder is private: it holds the
        seed.

    Returns
    -------
    Choice
        Its method `apply` masks the data, measures the result and returns it only if it meets the limits.

    Examples
    --------
    >>> import sdckit as sdc
    >>> x = [[i, (7 * i) % 40] for i in range(40)]
    >>> choice = sdc.recommend(x, max_risk={"linkage": 0.2}, plan="mdav")
    >>> choice.point.parameters, choice.maskings
    ('k=5', 6)
    >>> release = choice.apply(x)
    >>> bool(release.evaluation["linkage"] <= 0.2)
    True
    """
    threads = sweeping.available_cores() if workers is None else checks.checked_count("workers", workers)
    search = Search.of(
        original,
        max_risk=max_risk,
        max_loss=max_loss,
        minimise=minimise,
        plan=plan,
        ties=ties,
        missing=missing,
        scenarios=scenarios,
        rules=rules,
        decimals=decimals,
        replications=replications,
        sample_queries=sample_queries,
        columns=columns,
        key=key,
        weights=weights,
        by=by,
        na=na,
        untouched=untouched,
        known=known,
        unknown=unknown,
        confidential=confidential,
        unit=unit,
        drop=drop,
        recode=recode,
        estimates=estimates,
    )
    return search.run(folder, rng, threads, progress)
