"""Plain calls on tables whose columns have no roles: each is one call of a method of `Microdata`."""

from __future__ import annotations

from inspect import signature
from typing import Any

from sdckit.core.description import Description  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.evaluation.result import Evaluation  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.choice import Choice  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.microdata import Microdata
from sdckit.selection.release import Release  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.sweep_result import Sweep  # noqa: TC001 - typing.get_type_hints looks for it

CALLS = {
    "describe": "describe()",
    "mask": "mask(method, ...)",
    "evaluate": "evaluate(masked)",
    "sweep": "sweep(plan)",
    "recommend": "recommend(max_risk=...)",
    "release": "release(method, ...)",
}
RENAMED = {  # keywords of 0.1 that `Microdata` has in another form
    "scenarios": "intruders={'press': sdc.Intruder(known=...)}",
    "memory": "engine=sdc.Local(memory=...)",
    "scratch": "engine=sdc.Local(scratch=...)",
    "master": "engine=sdc.Spark(master=...)",
}
OF_MASKING = {  # keywords of `evaluate` of 0.1 on how the file was masked
    "disclosure": "evaluate(data, release)",
    "method": "evaluate(data, masked, made_by=sdc.Method('mdav', k=5))",
    "parameters": "evaluate(data, masked, made_by=sdc.Method('mdav', k=5))",
    "window": "evaluate(data, masked, made_by=sdc.Method(window=...))",
    "stratified": "evaluate(data, masked, made_by=sdc.Method(..., stratified=...))",
    "paired": "evaluate(data, masked, made_by=sdc.Method(paired=...))",
}


def describe(data: Any, **options: Any) -> Description:
    """Describe the columns of a table, and the role that each would get: `Microdata(data).describe()`.

    Parameters
    ----------
    data : table or path
        As for `Microdata`, which states the roles of columns that are decided.
    **options
        Roles are refused here, in one line that says how `Microdata` states them.

    Returns
    -------
    Description
        It has no value of any cell.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.describe(sdc.load_sample()).table.filter(column="firm")["role"].item()
    'key'
    """
    return _called("describe", data, (), options)


def mask(data: Any, method: str, **options: Any) -> Any:
    """Mask all numeric columns of a table: `Microdata(data).mask(method, **options)`.

    Parameters
    ----------
    data : table, path or Spark DataFrame
        As for `Microdata`, which states the roles of columns.
    method : str
        A name from `sdc.METHODS`.
    **options
        As for `Microdata.mask`, with the parameters of the method.

    Returns
    -------
    table, path or Spark DataFrame
        Of the type of the data; an array for lists. With `output`, its path.

    Examples
    --------
    >>> import sdckit as sdc
    >>> print(sdc.mask([1.0, 2.0, 30.0, 31.0], "mdav", k=2))
    [ 1.5  1.5 30.5 30.5]
    """
    return _called("mask", data, (method,), options)


def evaluate(original: Any, masked: Any, **options: Any) -> Evaluation:
    """Measure the loss and risk of a masked table: `Microdata(original).evaluate(masked, **options)`.

    Parameters
    ----------
    original : table, path or Spark DataFrame
        As for `Microdata`, which states the roles of columns.
    masked : table, path, Release or dict
        As for `Microdata.evaluate`.
    **options
        As for `Microdata.evaluate`, such as `metrics` and `made_by`.

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
    return _called("evaluate", original, (masked,), options)


def sweep(data: Any, plan: Any = None, **options: Any) -> Sweep:
    """Mask a table with many settings and measure each: `Microdata(data).sweep(plan, **options)`.

    Parameters
    ----------
    data : table
        As for `Microdata`, which states the roles of columns.
    plan, **options
        As for `Microdata.sweep`.

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
    return _called("sweep", data, (plan,), options)


def recommend(data: Any, **options: Any) -> Choice:
    """Find the masking of least loss within limits on risk: `Microdata(data).recommend(**options)`.

    Parameters
    ----------
    data : table
        As for `Microdata`, which states the roles of columns.
    **options
        As for `Microdata.recommend`; `max_risk` is needed.

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
    return _called("recommend", data, (), options)


def release(data: Any, method: str, **options: Any) -> Release[Any]:
    """Mask a table and return what can be handed out: `Microdata(data).release(method, **options)`.

    Parameters
    ----------
    data : table
        As for `Microdata`, which states the roles of columns.
    method, **options
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
    return _called("release", data, (method,), options)


def _called(name: str, data: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a method of `Microdata`; raise TypeError for a keyword that is stated on the data or is gone."""
    stated = list(signature(Microdata).parameters)[1:]
    for option in options:
        if option in stated or option in RENAMED:
            role = RENAMED.get(option, f"{option}=...")
            form = f"sdc.Microdata(data, {role}).{CALLS[name]}"
            raise TypeError(f"{name} takes no {option}; state it once: {form}")
        if name == "evaluate" and option in OF_MASKING:
            raise TypeError(f"evaluate takes no {option}; say how it was masked: sdc.{OF_MASKING[option]}")
    return getattr(Microdata(data), name)(*arguments, **options)
