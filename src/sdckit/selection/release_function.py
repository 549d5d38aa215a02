"""The function `release`: mask data and return what can be handed out, with its losses and risks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from sdckit.core import checks, randomness
from sdckit.core.prepared import PreparedTable  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.core.scenarios import checked_risk_limits, checked_scenarios, limits_of, with_sure_limit
from sdckit.core.table import names_of
from sdckit.core.warning_texts import collect_warnings
from sdckit.kernels.jit import Floats  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.original import Original
from sdckit.metrics.scenario_risks import require_columns
from sdckit.progress import ProgressCallback  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.limits import check_loss_limits
from sdckit.selection.release import Frame, Release, make_release
from sdckit.selection.release_plan import TRIES, ReleasePlan, metrics_of_release


@overload
def release(data: list[Any] | tuple[Any, ...], method: str, **options: Any) -> Release[Floats]: ...


@overload
def release(data: PreparedTable, method: str, **options: Any) -> Release[Any]: ...  # of the type prepared


@overload
def release(
    data: Frame,
    method: str,
    *,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: Any = None,
    by: str | Sequence[str] | None = None,
    na: Any = None,
    untouched: str | Sequence[str] | None = None,
    known: str | Sequence[str] | None = None,
    unknown: str | Sequence[str] | None = None,
    confidential: str | Sequence[str] | None = None,
    unit: str | None = None,
    drop: str | Sequence[str] | None = None,
    recode: Mapping[str, Any] | None = None,
    estimates: str | Sequence[str] | None = None,
    rules: Any = None,
    calibrate: str | Sequence[str] = (),
    groups: str | None = None,
    metrics: str | Iterable[str] | None = None,
    ties: str = "average",
    missing: str = "pairwise",
    max_risk: dict[str, float] | None = None,
    max_loss: dict[str, float] | None = None,
    scenarios: Mapping[str, Any] | None = None,
    tries: int = TRIES,
    keep_order: bool = False,
    numbered: str | None = None,
    entropy: bytes | None = None,
    decimals: int | str | None = "original",
    progress: ProgressCallback | None = None,
    **parameters: Any,
) -> Release[Frame]: ...


def release(
    data: Any,
    method: str,
    *,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: Any = None,
    by: str | Sequence[str] | None = None,
    na: Any = None,
    untouched: str | Sequence[str] | None = None,
    known: str | Sequence[str] | None = None,
    unknown: str | Sequence[str] | None = None,
    confidential: str | Sequence[str] | None = None,
    unit: str | None = None,
    drop: str | Sequence[str] | None = None,
    recode: Mapping[str, Any] | None = None,
    estimates: str | Sequence[str] | None = None,
    rules: Any = None,
    calibrate: str | Sequence[str] = (),
    groups: str | None = None,
    metrics: str | Iterable[str] | None = None,
    ties: str = "average",
    missing: str = "pairwise",
    max_risk: dict[str, float] | None = None,
    max_loss: dict[str, float] | None = None,
    scenarios: Mapping[str, Any] | None = None,
    tries: int = TRIES,
    keep_order: bool = False,
    numbered: str | None = None,
    entropy: bytes | None = None,
    decimals: int | str | None = "original",
    progress: ProgressCallback | None = None,
    **parameters: Any,
) -> Release[Any]:
    """Mask data and return the masked table with its losses and risks; draw again until limits are met.

    The table can be handed out: its rows are shuffled, it has neither the key nor dropped columns, and units
    have fresh numbers. The figures are those that `sdckit mask --release` prints for the same file.

    Parameters
    ----------
    data : table
        pandas, polars, pyarrow or numpy; or what `prepare` returns, with its roles.
    method : str
        A name from `sdc.METHODS`.
    columns, key, by, na, rules, groups
        As for `mask`.
    weights : str or array, optional
        Survey weights of the losses; a column of that name is not masked.
    untouched, known, unknown, confidential, unit, drop, recode, estimates
        Other roles of columns, as for `prepare`.
    calibrate : str or list of str
        Totals of the original that shall hold in the table, such as `total(turnover) by sector`: as for
        `calibrate`, with the weights given here. What is measured is the calibrated table; its risks are at
        least those of an intruder who undoes the calibration.
    metrics, ties, missing
        As for `evaluate`.
    max_risk : dict, optional
        Limits by risk, such as `{"linkage": 0.1}`: a random method is drawn again while it misses one. One on
        `linkage_sure`, the share of exposed records, is a tenth of that on `linkage` unless it is given.
    max_loss : dict, optional
        Limits by loss, such as `{"suppressed": 0.01}`, treated alike.
    scenarios : dict, optional
        Other intruders, as for `evaluate`; their limits are met, too.
    tries : int
        How many tables to draw at most.
    keep_order : bool
        Leave the rows in the order of the original, which an intruder may use; the figures count that.
    numbered : str, optional
        Name of a column to add: numbers of the records from 1, in an order that tells nothing.
    entropy : bytes, optional
        At least 32 secret bytes from which all that is random follows, to make the same release again; fresh
        ones by default. Seeds are refused: who guesses one can undo the masking.
    decimals : int, "original" or None
        Round masked cells, by default to the usual step of each column, which 95 % of its values share: 100
        for a column of hundreds; None does not round. Columns of edit rules keep all their decimals.
    progress : function, optional
        Called as `progress(step, share)` during the work: the name of the step, and the share of the whole
        work that is done, which rises from 0 to 1.
    **parameters
        Parameters of the method, such as `k=5`; with strata also `k={"north": 5, "south": 3}`.

    Returns
    -------
    Release
        The masked table, its evaluation, the order of its rows, what the masking discloses, and the
        warnings. A table that misses a limit is not returned: after the last draw, `LimitsMissed` is raised.

    Examples
    --------
    >>> import sdckit as sdc
    >>> release = sdc.release([1.0, 2.0, 30.0, 31.0], "mdav", k=2)
    >>> release.evaluation["linkage"], sorted(release.data.tolist())
    (0.5, [2.0, 2.0, 30.0, 30.0])
    >>> again = sdc.evaluate([1.0, 2.0, 30.0, 31.0], release.data, rows=release.rows, disclosure=release)
    >>> again["linkage"]
    0.5
    """
    if "rng" in parameters:
        raise TypeError("rng is no option of a release, as seeds can be guessed; drop it or give entropy")
    entropy = randomness.checked_entropy(entropy)
    others = checked_scenarios(scenarios)
    limits = {} if max_risk is None else with_sure_limit(checked_risk_limits(max_risk))
    limits |= check_loss_limits(max_loss)
    limits |= limits_of(others)
    plan = ReleasePlan(
        method=method,
        parameters=parameters,
        rules=rules,
        decimals=decimals,
        groups=groups,
        metrics=metrics_of_release(metrics, list(limits)),
        ties=ties,
        missing=missing,
        limits=limits,
        scenarios=others,
        tries=checks.checked_count("tries", tries),
        keep_order=keep_order,
        numbered=numbered,
        calibrate=tuple(names_of(calibrate)),
    )
    warned: list[str] = []
    with collect_warnings(warned):
        original = Original.of(
            data,
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
    require_columns(others, original)
    return make_release(plan, original, entropy=entropy, progress=progress, warned=warned)
