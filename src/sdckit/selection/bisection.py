"""Find the weakest safe setting of each method by bisection: few maskings, the answer of a full grid.

Measured risk falls, by and large, as a parameter grows, and with common random numbers nearly without
wavering. So each grid is halved until a setting that breaks a limit and one that meets all stand side by
side; a few stronger settings are measured as a guard against wavering. Where a method bounds its own risk,
settings beyond that bound need no measuring at all.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks, randomness, registry
from sdckit.metrics.evaluation import FIGURES
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair
from sdckit.progress import track
from sdckit.selection import sweeping, wording
from sdckit.selection.choice import Choice, choose
from sdckit.selection.conditions import Conditions
from sdckit.selection.limits import checked_limits
from sdckit.selection.plan import Run, settings_of
from sdckit.selection.points import Point, grouped
from sdckit.selection.runner import run_all
from sdckit.selection.worker import WorkerPool

if TYPE_CHECKING:
    from sdckit.selection.plan import Setting
    from sdckit.selection.task import Task

GUARDED = 100  # one stronger setting is measured as a guard for so many of the grid
REPLICATIONS = 3


def recommend(
    original: Any,
    *,
    max_risk: dict[str, float],
    minimise: str = "brmae",
    plan: Any = None,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: Any = None,
    by: str | Sequence[str] | None = None,
    ties: str = "average",
    missing: str = "pairwise",
    na: Any = None,
    rules: Any = None,
    decimals: int | str | None = None,
    replications: int = REPLICATIONS,
    rng: Any = None,
    workers: int | None = None,
) -> Choice:
    """Find the masking with the least loss that meets limits of risk, without trying everything.

    Parameters
    ----------
    original : table
        pandas, polars, pyarrow or numpy; or what `prepare` returns, with its roles.
    max_risk : dict
        Limits by risk, such as `{"linkage": 0.1, "linkage_outliers": 0.3}`.
    minimise : str
        The loss to keep small.
    plan : dict, optional
        Methods and grids, as for `sweep`; by default every method with its usual grid.
    columns, key, weights, by, ties, missing, na, rules, workers
        As for `sweep`.
    decimals : int or "original", optional
        Round as `mask` does, also in the release: settings are judged by what would be released.
    replications : int
        How often a random method is drawn at each setting; the median decides.
    rng : None, int or numpy Generator
        None draws fresh entropy.

    Returns
    -------
    Choice
        With `apply`, which masks the data, measures the result and hands it out only if it meets the limits.

    Examples
    --------
    >>> import sdckit as sdc
    >>> x = [[i, (7 * i) % 40] for i in range(40)]
    >>> choice = sdc.recommend(x, max_risk={"linkage": 0.2}, plan="mdav")
    >>> choice.point.parameters, choice.maskings
    ('k=5', 2)
    >>> release = choice.apply(x)
    >>> bool(release.evaluation["linkage"] <= 0.2)
    True
    """
    limits, minimise = checked_limits(max_risk, minimise), registry.current_name(minimise)
    repeated = checks.checked_count("replications", replications)
    threads = sweeping.cores() if workers is None else checks.checked_count("workers", workers)
    settings = paired_alone(settings_of(plan))
    metrics = registry.metrics_named([minimise, *limits])
    prepared = Original.of(original, columns=columns, key=key, weights=weights, by=by, na=na)
    conditions = Conditions.of(prepared, rules=rules, ties=ties, missing=missing, decimals=decimals)
    task, settings = sweeping.task_of(
        prepared,
        conditions,
        settings,
        metrics=metrics,
        draws="common",
        per_variable=False,
        detail=False,
    )
    check_suited(task)
    lines = [Searched(line, limits) for line in lines_of(settings)]
    maskings = search(task, lines, repeated, randomness.entropy_of(rng), threads)
    points = [line.points for line in lines]
    choice = choose(points, limits, minimise, maskings=maskings, conditions=conditions)
    return with_bounds(choice, lines)


def paired_alone(settings: list[Setting]) -> list[Setting]:
    """Return the settings whose risk can be measured: those with one row per original record."""
    lost = ", ".join(dict.fromkeys(s.method.name for s in settings if not s.paired))
    left = [setting for setting in settings if setting.paired]
    fact = f"rows of {lost} stand for no original record, so that no risk can be measured"
    if not left:
        raise ValueError(f"{fact}; name other methods, or mask without a limit")
    if lost:
        warnings.warn(f"{fact}; searched without it", stacklevel=3)
    return left


def with_bounds(choice: Choice, lines: list[Searched]) -> Choice:
    """Add what a looser limit would allow by the method's bound, beyond the measured settings."""
    looser = dict(choice.looser)
    for line in lines:
        for risk in choice.binding if choice.point in line.points else ():
            relaxed = choice.limits | {risk: wording.looser(choice.limits[risk])}
            place = replace(line, limits=relaxed).certain
            if place < min(line.measured, default=len(line.settings)):
                setting = line.settings[place]
                looser[risk] = Point(setting, {})
    return replace(choice, looser=looser)


def lines_of(settings: Sequence[Setting]) -> list[list[Setting]]:
    """Settings by method and fixed parameters, each line from the weakest to the strongest."""
    found = grouped([(setting.method.name, setting.options) for setting in settings])
    return [[settings[place] for place in line] for line in found]


def check_suited(task: Task) -> None:
    """Raise an error, with its reason, for a metric that has no value for these data at all."""
    pair = Pair(task.whole.original, task.whole.original.values)
    for metric in task.metrics:
        if not metric.any_data:
            metric.score(pair)


@dataclass
class Searched:
    """One line of settings, from the weakest to the strongest, with the measurements made so far."""

    settings: list[Setting]
    limits: dict[str, float]
    measured: dict[int, Point] = field(default_factory=dict)

    @property
    def points(self) -> list[Point]:
        """Measured settings, from the weakest to the strongest."""
        return [self.measured[place] for place in sorted(self.measured)]

    @property
    def certain(self) -> int:
        """First position from which the method's bound guarantees every limit; past the end without one.

        Missing cells can weaken the bound, by little; what is recommended is measured in any case.
        """
        largest = self.settings[0].method.largest_linkage
        risks = registry.metrics_named(self.limits)
        if largest is not None and all(risk.bounded_by_method for risk in risks):
            for place, setting in enumerate(self.settings):
                if largest(setting.options) <= min(self.limits.values()):
                    return place
        return len(self.settings)

    def wanted(self) -> int | None:
        """Return the next position to measure; None once the answer is known."""
        meets = {place: point.meets(self.limits) for place, point in self.measured.items()}
        certain, last = self.certain, len(self.settings) - 1
        low = max((place for place, met in meets.items() if not met), default=-1)
        high = min([*(place for place, met in meets.items() if met and place > low), max(certain, low + 1)])
        if high > last:
            return last if last not in meets else None
        if high - low > 1 and low < 0 and certain <= last:
            return max(2 * high - certain - 1, 0)  # the bound is nearly attained: look close below it first
        if high - low > 1:
            return (low + high) // 2
        guard = range(high, min(high + len(self.settings) // GUARDED, certain - 1, last) + 1)
        return next((place for place in [high, *guard] if place not in meets), None)


def search(task: Task, lines: list[Searched], replications: int, entropy: int, workers: int) -> int:
    """Measure the settings that the bisection needs, round by round; return the number of maskings."""
    maskings = done = 0
    steps = [2 + math.log2(len(line.settings)) + len(line.settings) // GUARDED for line in lines]
    with track("searching", sum(steps)) as report, WorkerPool() as processes:
        while wanted := [(line, place) for line in lines if (place := line.wanted()) is not None]:
            runs = [
                Run(line.settings[place], i)
                for line, place in wanted
                for i in range(1, 1 + (replications if line.settings[place].method.random else 1))
            ]
            found = run_all(task, runs, entropy, workers, processes=processes)[
                :, :: len(FIGURES) * len(task.groups)
            ]
            for line, place in wanted:
                setting = line.settings[place]
                rows = [i for i, run in enumerate(runs) if run.setting is setting]
                medians = np.median(found[rows], axis=0)
                values = {metric.name: float(v) for metric, v in zip(task.metrics, medians, strict=True)}
                line.measured[place] = Point(setting, values)
            maskings += len(runs)
            done += len(wanted)
            report(min(done, sum(steps)))
    return maskings
