"""The functions of 0.1, which state the roles of columns in each call: each forwards to `Microdata`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np  # noqa: TC002 - typing.get_type_hints looks for it

from sdckit.arrays import Floats
from sdckit.core.prepared import PreparedTable  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.core.table import is_path
from sdckit.engines.opening import Settings
from sdckit.evaluation.measure import require_one_masking
from sdckit.evaluation.result import Evaluation  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.io.atomic import AnyPath  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.masking.disclosure import Disclosure, HasDisclosure, Method, checked_disclosure
from sdckit.progress import ProgressCallback  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.choice import Choice  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.microdata import Microdata
from sdckit.selection.release import TRIES, Release
from sdckit.selection.sweep_result import Sweep  # noqa: TC001 - typing.get_type_hints looks for it

Frame = TypeVar("Frame")


def _called(name: str, data: Any, given: dict[str, Any]) -> Any:
    """Call a method of `Microdata` with all arguments of a function, which states the roles, too."""
    given = given | {"intruders": given.get("scenarios")}
    method = getattr(Microdata, name)
    roles, options = (
        {one: given[one] for one in signature(function).parameters if one in given}
        for function in (Microdata, method)
    )
    options |= options.pop("parameters", {})  # those of a masking method
    return method(Microdata(data, **roles), **options)


@overload
def mask(data: list[Any] | tuple[Any, ...], method: str, **options: Any) -> Floats: ...


@overload
def mask(data: Any, method: str, *, output: AnyPath, **options: Any) -> Path: ...


@overload
def mask(data: PreparedTable, method: str, **options: Any) -> Any: ...  # of the type that was prepared


@overload
def mask(data: Frame, method: str, **options: Any) -> Frame: ...


def mask(
    data: Any,
    method: str,
    *,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: str | None = None,
    by: str | Sequence[str] | None = None,
    rng: Any = None,
    decimals: int | str | None = None,
    na: Any = None,
    untouched: str | Sequence[str] | None = None,
    known: str | Sequence[str] | None = None,
    unknown: str | Sequence[str] | None = None,
    confidential: str | Sequence[str] | None = None,
    unit: str | None = None,
    drop: str | Sequence[str] | None = None,
    recode: Mapping[str, Any] | None = None,
    rules: Any = None,
    groups: str | None = None,
    engine: str | None = None,
    memory: int | str | None = None,
    master: str | None = None,
    scratch: AnyPath | None = None,
    output: AnyPath | None = None,
    overwrite: bool = False,
    **parameters: Any,
) -> Any:
    """Mask numeric columns with a method of `sdc.METHODS`; the form of 0.1 of `Microdata.mask`.

    Parameters
    ----------
    data : table, path or Spark DataFrame
        As for `Microdata`; or what `prepare` returns, with its roles.
    columns, key, weights, by, na, untouched, known, unknown, confidential, unit, drop, recode, rules
        Roles of columns and rules of the data, as for `Microdata`.
    method, rng, decimals, groups, output, overwrite, **parameters
        As for `Microdata.mask`; `output` is needed where the data are files.
    engine, memory, master, scratch
        Where to work: the name of the engine, and the fields of `Local` and `Spark`.

    Returns
    -------
    table, path or Spark DataFrame
        Of the same type as `data`, or as the table that was prepared; with `output`, its path.

    Examples
    --------
    >>> import sdckit as sdc
    >>> print(sdc.mask([1.0, 2.0, 30.0, 31.0], "mdav", k=2))
    [ 1.5  1.5 30.5 30.5]
    """
    where: Any = Settings.of(engine, memory=memory, master=master, scratch=scratch)
    if is_path(data) and output is None:
        raise ValueError("the data are a file and there is no output; name the file to write with output=")
    return _called("mask", data, locals() | {"engine": where})


def evaluate(
    original: Any,
    masked: Any,
    *,
    metrics: str | Iterable[str] | None = None,
    key: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    weights: Any = None,
    by: str | Sequence[str] | None = None,
    ties: str = "average",
    missing: str = "pairwise",
    na: Any = None,
    untouched: str | Sequence[str] | None = None,
    known: str | Sequence[str] | None = None,
    unknown: str | Sequence[str] | None = None,
    confidential: str | Sequence[str] | None = None,
    unit: str | None = None,
    drop: str | Sequence[str] | None = None,
    estimates: str | Sequence[str] | None = None,
    rows: Any = None,
    per_record: bool = False,
    scenarios: Mapping[str, Any] | None = None,
    together: bool = False,
    disclosure: Disclosure | HasDisclosure | Sequence[Disclosure | HasDisclosure] | None = None,
    method: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    made_by: Callable[[Any, np.random.Generator], Any] | None = None,
    window: float | Callable[[Floats], Any] | Mapping[str, Any] | None = None,
    stratified: bool | None = None,
    paired: bool = True,
    rules: Any = None,
    known_share: float | None = None,
    sample_queries: int | None = None,
    rng: Any = None,
    engine: str | None = None,
    memory: int | str | None = None,
    master: str | None = None,
    scratch: AnyPath | None = None,
    progress: ProgressCallback | None = None,
) -> Evaluation:
    """Measure the loss and risk of a masked file; the form of 0.1 of `Microdata.evaluate`.

    Parameters
    ----------
    original, masked : table, path or Spark DataFrame
        As for `Microdata`; `original` may be prepared. A `Release` in place of its table is measured with its
        disclosure and the order of its rows.
    key, columns, weights, by, na, untouched, known, unknown, confidential, unit, drop, estimates, rules
        Roles of columns and rules of the data, as for `Microdata`.
    scenarios : dict, optional
        Other intruders by name, as in `{"press": {"known": ["sex", "age"], "max_risk": {"linkage": 0.05}}}`.
    ties, missing
        As for `Microdata`.
    metrics, rows, per_record, together, known_share, sample_queries, rng, progress
        As for `Microdata.evaluate`.
    disclosure : Disclosure or Release, optional
        What is published about the masking, as `release` returns it: the linkage attacks use it. If it
        names strata, these are the strata of the table.
    method, parameters : str and dict, optional
        In place of a disclosure, for a file made elsewhere: how it was masked, such as "rank_swap" and
        {"p": 0.15}.
    made_by : function, optional
        In place of a method, the masking itself, as for `Method`.
    window, stratified, paired
        As for `Method`.
    engine, memory, master, scratch
        Where to work: the name of the engine, and the fields of `Local` and `Spark`. What engines leave out
        is named in a note.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import sdckit as sdc
    >>> result = sdc.evaluate([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0], metrics="brmae")
    >>> result["brmae"]
    0.25
    >>> result
    brmae           0.25  the mean distance between original and masked ranks is 25.0% of the largest
    possible; an unrelated order would score 0.625
    """
    require_one_masking(made_by, disclosure=disclosure, method=method, parameters=parameters)
    where: Any = Settings.of(engine, memory=memory, master=master, scratch=scratch)
    if together and scenarios:
        raise ValueError("scenarios are for one release and together is True; leave one of them out")
    masking: Any = Method(
        made_by or method, window=window, stratified=stratified, paired=paired, **(parameters or {})
    )
    if disclosure is not None:
        masking = _only_disclosure(disclosure, masking, rules)
    found: Evaluation = _called("evaluate", original, locals() | {"engine": where, "made_by": masking})
    return found


def _only_disclosure(disclosure: Any, method: Method, rules: Any) -> Any:
    """Return the disclosures; raise an error for what is none, and if something else tells of the masking."""
    for one in disclosure if isinstance(disclosure, (list, tuple)) else [disclosure]:
        checked_disclosure(one)
    for name in [*method.stated, *(() if rules is None else ("rules",))]:
        raise ValueError(f"the disclosure says how the file was masked and {name} is given too; drop one")
    return disclosure


def sweep(
    original: Any,
    plan: Any = None,
    *,
    metrics: str | Iterable[str] | None = None,
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
    rules: Any = None,
    replications: int = 1,
    draws: str = "common",
    per_variable: bool = False,
    detail: bool = False,
    sample_queries: int | None = None,
    rng: Any = None,
    workers: int | None = None,
    folder: str | Path | None = None,
    overwrite: bool = False,
    name: str = "data",
    progress: ProgressCallback | None = None,
) -> Sweep:
    """Mask data with many settings and measure each; the form of 0.1 of `Microdata.sweep`.

    Parameters
    ----------
    original : table
        As for `Microdata`; or what `prepare` returns, with its roles.
    columns, key, weights, by, na, untouched, known, unknown, confidential, unit, drop, recode, estimates
        Roles of columns, as for `Microdata`.
    rules
        As for `Microdata`.
    ties, missing, name
        As for `Microdata`.
    plan, metrics, replications, draws, per_variable, detail, sample_queries, rng, workers, folder, overwrite
        As for `Microdata.sweep`.
    progress : callable, optional
        Called as `progress(step, share done)` during the work; the share rises from 0 to 1.

    Returns
    -------
    Sweep

    Examples
    --------
    >>> import sdckit as sdc
    >>> found = sdc.sweep([1.0, 5.0, 6.0, 9.0, 11.0, 15.0], {"mdav": {"k": [2, 3]}}, metrics=["brmae"])
    >>> found.table.select("parameters", "value").rows()
    [('k=2', 0.16666666666666666), ('k=3', 0.2222222222222222)]
    """
    found: Sweep = _called("sweep", original, locals())
    return found


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
    """Find the masking of least loss within limits on risk; the form of 0.1 of `Microdata.recommend`.

    Parameters
    ----------
    original : table
        As for `Microdata`; or what `prepare` returns, with its roles.
    columns, key, weights, by, na, untouched, known, unknown, confidential, unit, drop, recode, estimates
        Roles of columns, as for `Microdata`.
    rules
        As for `Microdata`.
    scenarios : dict, optional
        Other intruders by name, each with what he knows in place of `known` and limits of his own, as in
        `{"press": {"known": ["sex", "age"], "max_risk": {"linkage": 0.05}}}`: all limits are met together.
    ties, missing
        As for `Microdata`.
    max_risk, max_loss, minimise, plan, decimals, replications, sample_queries, rng, workers, folder, progress
        As for `Microdata.recommend`.

    Returns
    -------
    Choice
        Its method `release` masks the data, measures the result and returns it only if it meets the limits.

    Examples
    --------
    >>> import sdckit as sdc
    >>> x = [[i, (7 * i) % 40] for i in range(40)]
    >>> choice = sdc.recommend(x, max_risk={"linkage": 0.2}, plan="mdav")
    >>> choice.point.parameters, choice.maskings
    ('k=5', 6)
    """
    found: Choice = _called("recommend", original, locals())
    return found


@overload
def release(data: list[Any] | tuple[Any, ...], method: str, **options: Any) -> Release[Floats]: ...


@overload
def release(data: PreparedTable, method: str, **options: Any) -> Release[Any]: ...  # of the type prepared


@overload
def release(data: Frame, method: str, **options: Any) -> Release[Frame]: ...


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
    """Mask data and return what can be handed out, with its figures; the form of 0.1 of `Microdata.release`.

    Parameters
    ----------
    data : table
        As for `Microdata`; or what `prepare` returns, with its roles.
    columns, key, weights, by, na, untouched, known, unknown, confidential, unit, drop, recode, estimates
        Roles of columns, as for `Microdata`.
    rules
        As for `Microdata`.
    scenarios : dict, optional
        Other intruders, as for `evaluate`; their limits are met, too.
    ties, missing
        As for `Microdata`.
    method, max_risk, max_loss, metrics, calibrate, groups, tries, keep_order, numbered, entropy, decimals
        As for `Microdata.release`.
    progress, **parameters
        As for `Microdata.release`.

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
    """
    return _called("release", data, locals())
