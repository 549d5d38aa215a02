"""Find the weakest setting of each method that meets limits on risk, by bisection of its parameter grid.

Measured risk falls nearly monotonically as a parameter grows if all settings use common random numbers. So
each grid is halved until a setting that breaks a limit and one that meets all limits are neighbours; a few
stronger settings are measured as a check. Where a method has a proven bound on its risk, the settings beyond
that bound are not measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit.core import checks, registry
from sdckit.core.scenarios import checked_scenarios, limits_of, risk_of
from sdckit.core.warning_texts import collect_warnings, warn
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair
from sdckit.metrics.query_sample import sampling_of
from sdckit.metrics.risk.untouched import untouched_names
from sdckit.metrics.scenario_risks import require_columns
from sdckit.progress import ProgressCallback, reported_to, track
from sdckit.selection import sweeping, wording
from sdckit.selection.choice import Choice, choose
from sdckit.selection.conditions import Conditions
from sdckit.selection.limits import (
    SUPPRESSED,
    check_limits_and_loss,
    require_reachable,
    require_reachable_in,
    risk_limits,
    search_replications,
    search_sampling,
    unpaired_rows_error,
    unpaired_rows_fact,
)
from sdckit.selection.plan import Run, settings_of
from sdckit.selection.points import Point, positions_by_strength
from sdckit.selection.runner import run_all
from sdckit.selection.sweep_folder import SearchFolder, opened
from sdckit.selection.worker import WorkerPool

if TYPE_CHECKING:
    from sdckit.selection.checkpoint import Checkpoint
    from sdckit.selection.plan import Setting
    from sdckit.selection.task import Task

GUARDED = 100  # for each hundred settings of a grid, one stronger setting is measured as a check


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
    scenarios: Mapping[str, Any] | None = None,
    rules: Any = None,
    decimals: int | str | None = None,
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
        Limits by risk, such as `{"linkage": 0.1, "linkage_outliers": 0.3}`.
    max_loss : dict, optional
        Limits by loss, such as `{"suppressed": 0.01}` for at most 1 % suppressed cells.
    minimise : str
        The loss to keep small.
    plan : dict, optional
        Methods and grids, as for `sweep`; by default the same methods with their default grids.
    columns, key, weights, by, ties, missing, na, rules, workers, progress
        As for `sweep`.
    untouched, known, unknown, confidential, unit, drop, recode
        Other roles of columns, as for `prepare`.
    scenarios : dict, optional
        Other intruders by name, each with what he knows in place of `known` and limits of his own, as in
        `{"press": {"known": ["sex", "age"], "max_risk": {"linkage": 0.05}}}`: all limits are met together.
    decimals : int or "original", optional
        Round as `mask` does, also in the release: settings are judged by what would be released.
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
    ('k=5', 2)
    >>> release = choice.apply(x)
    >>> bool(release.evaluation["linkage"] <= 0.2)
    True
    """
    limits = check_limits_and_loss(max_risk, minimise, max_loss=max_loss)
    sampling_of(sample_queries)  # raises an error for what is no number of records
    minimise, others = registry.current_name(minimise), checked_scenarios(scenarios, limited=True)
    search_replications(replications, 0)  # raises an error for what is no number of tables
    threads = sweeping.available_cores() if workers is None else checks.checked_count("workers", workers)
    options = {"metrics": registry.metrics_named([minimise, *limits, SUPPRESSED]), "draws": "common"}
    warned: list[str] = []
    with collect_warnings(warned):
        settings = drop_unpaired_methods(settings_of(plan))
        prepared = Original.of(
            original,
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
        )
        require_columns(others, prepared)
        conditions = Conditions.of(
            prepared, rules=rules, ties=ties, missing=missing, decimals=decimals, scenarios=others
        )
        task, settings = sweeping.make_task(
            prepared, conditions, settings, **options, per_variable=False, detail=False
        )
    require_reachable(limits, prepared)
    require_reachable_in(others, prepared)
    require_values(task)
    limits |= limits_of(others)
    safe, bounded = risk_limits(limits), groups_bound_risk(task)
    task = replace(task, sampling=search_sampling(sample_queries, prepared.n, safe))
    repeated = search_replications(replications, prepared.n)
    bisections = [Bisection(grid, safe, bounded=bounded) for grid in settings_by_strength(settings)]
    place = opened(SearchFolder, folder, task.identity, rng, task.length)
    with reported_to(progress), place as (entropy, checkpoint):
        maskings = run_bisections(task, bisections, repeated, entropy, threads, checkpoint)
    points = [bisection.points for bisection in bisections]
    choice = choose(points, limits, minimise, maskings=maskings, conditions=conditions)
    return replace(add_guaranteed_alternatives(choice, bisections), warnings=tuple(warned))


def drop_unpaired_methods(settings: list[Setting]) -> list[Setting]:
    """Return the settings whose masked rows each stand for one original record; warn of the others."""
    lost = [setting.method.name for setting in settings if not setting.paired]
    left = [setting for setting in settings if setting.paired]
    if not left:
        raise unpaired_rows_error(lost)
    if lost:
        warn(f"{unpaired_rows_fact(lost)}; left out of the search")
    return left


def add_guaranteed_alternatives(choice: Choice, bisections: list[Bisection]) -> Choice:
    """Return the choice with settings added that a proven risk bound allows under doubled limits."""
    looser = dict(choice.looser)
    for bisection in bisections:
        for risk in choice.binding if choice.point in bisection.points else ():
            relaxed = bisection.limits | {risk: wording.loosened(choice.limits[risk])}
            position = replace(bisection, limits=relaxed).first_guaranteed
            if position < min(bisection.measured, default=len(bisection.settings)):
                setting = bisection.settings[position]
                looser[risk] = Point(setting, {})
    return replace(choice, looser=looser)


def settings_by_strength(settings: Sequence[Setting]) -> list[list[Setting]]:
    """Group settings by method and fixed parameters; order each group from weakest to strongest."""
    found = positions_by_strength([(setting.method.name, setting.options) for setting in settings])
    return [[settings[position] for position in grid] for grid in found]


def require_values(task: Task) -> None:
    """Raise an error, with its reason, for a metric that has no value on these data at all."""
    pair = Pair(task.whole.original, task.whole.original.values)
    for metric in task.metrics:
        if not metric.any_data:
            metric.score(pair)


def groups_bound_risk(task: Task) -> bool:
    """Return True if no record of a group of k is found with more than 1/k, whatever is published with it.

    That needs complete cells, and no known column, strata apart, that tells members of a group apart.
    """
    originals = [task.whole.original, *(one.whole.original for one in task.scenarios)]
    return task.whole.original.complete and all(
        set(untouched_names(original, original.table_names)) <= {*original.roles.by} for original in originals
    )


@dataclass
class Bisection:
    """State of a search for the weakest safe setting in one grid, which is ordered from weak to strong.

    `bounded` is True where `Method.largest_linkage` holds for the data.
    """

    settings: list[Setting]
    limits: dict[str, float]
    measured: dict[int, Point] = field(default_factory=dict)
    bounded: bool = True

    @property
    def points(self) -> list[Point]:
        """The settings measured so far, from the weakest to the strongest."""
        return [self.measured[position] for position in sorted(self.measured)]

    @property
    def first_guaranteed(self) -> int:
        """First position in the grid from which a proven bound meets every limit; its length if none."""
        largest = self.settings[0].method.largest_linkage if self.bounded else None
        risks = registry.metrics_named([risk_of(name) for name in self.limits])
        if largest is not None and all(risk.bounded_by_method for risk in risks):
            for position, setting in enumerate(self.settings):
                if largest(setting.options) <= min(self.limits.values()):
                    return position
        return len(self.settings)

    def bounded_point(self, point: Point) -> Point:
        """Return a measured setting, estimates and their upper ends cut at a proven bound on the risk.

        Rounding can bring the mean of a sample above it, in the last digit.
        """
        largest = point.setting.method.largest_linkage if self.bounded else None
        if largest is None:
            return point
        bound = largest(point.setting.options)
        known = {name: registry.metrics_named([risk_of(name)])[0] for name in point.upper}
        names = [name for name in point.upper if known[name].bounded_by_method]
        values, upper = ({name: min(of[name], bound) for name in names} for of in (point.values, point.upper))
        return replace(point, values=point.values | values, upper=point.upper | upper)

    def next_position(self) -> int | None:
        """Return the position of the setting to measure next; None once the answer is known."""
        meets = {position: point.meets(self.limits) for position, point in self.measured.items()}
        guaranteed, last = self.first_guaranteed, len(self.settings) - 1
        low = max((position for position, met in meets.items() if not met), default=-1)
        safe = [position for position, met in meets.items() if met and position > low]
        high = min([*safe, max(guaranteed, low + 1)])
        if high > last:
            return last if last not in meets else None
        if high - low > 1 and low < 0 and guaranteed <= last:
            # Risks are often close to the bound: measure just below it first.
            return max(2 * high - guaranteed - 1, 0)
        if high - low > 1:
            return (low + high) // 2
        guard = range(high, min(high + len(self.settings) // GUARDED, guaranteed - 1, last) + 1)
        return next((position for position in [high, *guard] if position not in meets), None)


def run_bisections(
    task: Task,
    bisections: list[Bisection],
    replications: int,
    entropy: int,
    workers: int,
    checkpoint: Checkpoint | None = None,
) -> int:
    """Measure the settings that all bisections ask for, round by round; return the number of maskings.

    Runs that the checkpoint holds count as well, so that a resumed search ends as one that was not stopped.
    """
    maskings = done = 0
    sizes = [len(bisection.settings) for bisection in bisections]
    steps = [2 + math.log2(size) + size // GUARDED for size in sizes]
    with track("searching", sum(steps)) as report, WorkerPool() as processes:
        while pending := [
            (bisection, position)
            for bisection in bisections
            if (position := bisection.next_position()) is not None
        ]:
            report(done, len(pending))
            runs = [
                Run(bisection.settings[position], i)
                for bisection, position in pending
                for i in range(1, 1 + (replications if bisection.settings[position].method.random else 1))
            ]
            found = run_all(task, runs, entropy, workers, checkpoint, processes)
            for bisection, position in pending:
                setting = bisection.settings[position]
                rows = [i for i, run in enumerate(runs) if run.setting is setting]
                bisection.measured[position] = bisection.bounded_point(task.point(setting, found[rows]))
            maskings += len(runs)
            done += len(pending)
    return maskings
