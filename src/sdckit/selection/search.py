"""Search the setting with the least loss within the limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import registry
from sdckit.core.checks import collect_warnings, warn
from sdckit.core.scenarios import checked_scenarios, limits_of, risk_of
from sdckit.evaluation.measure import require_columns
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair
from sdckit.metrics.score import sampling_of
from sdckit.progress import reported_to, track
from sdckit.risk.facts import untouched_names
from sdckit.selection.choice import choose
from sdckit.selection.limits import (
    SUPPRESSED,
    LimitsMissed,
    check_limits_and_loss,
    require_reachable,
    risk_limits,
    search_replications,
    search_sampling,
    unpaired_rows_error,
    unpaired_rows_fact,
)
from sdckit.selection.plan import runs_of, settings_of
from sdckit.selection.points import Conditions, Point, by_strength, loosened
from sdckit.selection.runner import SEARCH, WorkerPool, kept_runs, opened, run_all
from sdckit.selection.task import make_task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sdckit.arrays import Floats
    from sdckit.io.atomic import AnyPath
    from sdckit.progress import ProgressCallback
    from sdckit.selection.choice import Choice
    from sdckit.selection.plan import Setting
    from sdckit.selection.runner import Checkpoint
    from sdckit.selection.task import Task


GUARDED = 100  # for each hundred settings of a grid, one stronger setting is measured as a check


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
    def steps(self) -> float:
        """How many settings are measured at most, about, before the answer is known."""
        size = len(self.settings)
        return 2 + math.log2(size) + size // GUARDED

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


def add_guaranteed_alternatives(choice: Choice, bisections: list[Bisection]) -> Choice:
    """Return the choice with settings added that a proven risk bound allows under doubled limits."""
    looser = dict(choice.looser)
    for bisection in bisections:
        for risk in choice.binding if choice.point in bisection.points else ():
            relaxed = bisection.limits | {risk: loosened(choice.limits[risk])}
            position = replace(bisection, limits=relaxed).first_guaranteed
            if position < min(bisection.measured, default=len(bisection.settings)):
                setting = bisection.settings[position]
                looser[risk] = Point(setting, {})
    return replace(choice, looser=looser)


@dataclass(frozen=True)
class MethodProgress:
    """How many settings of a method are measured, how many are expected in all, and if that is all."""

    method: str
    done: int
    expected: int
    finished: bool


def progress_by_method(bisections: Sequence[Bisection]) -> list[MethodProgress]:
    """Return how far the bisections of each method are; some methods have several grids."""
    found: dict[str, MethodProgress] = {}
    for bisection in bisections:
        method, done = bisection.settings[0].method.name, len(bisection.measured)
        finished = bisection.next_position() is None
        likely = min(len(bisection.settings), round(bisection.steps))
        expected = done if finished else max(done + 1, likely)
        last = found.get(method, MethodProgress(method, 0, 0, finished=True))
        found[method] = MethodProgress(
            method, last.done + done, last.expected + expected, last.finished and finished
        )
    return list(found.values())


if TYPE_CHECKING:
    Observer = Callable[[list[MethodProgress]], None]  # gets how far each method is


@dataclass(frozen=True)
class Kept:
    """What the folder of a search holds: settings whose runs are all there, and what follows from them.

    `points` are the measured settings of the plan in its order, also those that earlier limits asked for.
    `choice` is what the search would end with, None as long as a run is missing that it would ask for.
    `methods` tells how far it is with each method, and `runs` is the number of finished runs.
    """

    points: tuple[Point, ...]
    choice: Choice | None
    methods: tuple[MethodProgress, ...]
    runs: int


@dataclass(frozen=True)
class Search:
    """Checked data, settings and limits of a search for the masking of least loss.

    Each of `grids` has settings of one method that differ in one parameter, from weak to strong; `limits` are
    those of scenarios, too; `replications` counts the tables that are drawn with a random setting.
    """

    task: Task
    grids: Sequence[Sequence[Setting]]
    limits: Mapping[str, float]
    minimise: str
    replications: int
    conditions: Conditions
    warnings: tuple[str, ...] = ()
    _points: dict[str, tuple[bytes, Point]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        original: Any,
        *,
        max_risk: dict[str, float],
        max_loss: dict[str, float] | None = None,
        minimise: str = "brmae",
        plan: Any = None,
        ties: str = "average",
        missing: str = "penalise",
        scenarios: Mapping[str, Any] | None = None,
        rules: Any = None,
        decimals: int | str | None = "original",
        replications: int | None = None,
        sample_queries: int | None = None,
        **roles: Any,
    ) -> Search:
        """Check the arguments of `recommend`, those that tell how to run it apart, and prepare the data."""
        limits = check_limits_and_loss(max_risk, minimise, max_loss=max_loss)
        sampling_of(sample_queries)  # raises an error for what is no number of records
        minimise, others = registry.current_name(minimise), checked_scenarios(scenarios, limited=True)
        search_replications(replications, 0)  # raises an error for what is no number of tables
        measured = registry.metrics_named([minimise, *limits, SUPPRESSED])
        if registry.may_be_withheld(minimise):  # a public map has another loss
            measured = [*measured, *registry.shown_metrics("headline", family="loss")[:1]]
        options = {"metrics": measured, "draws": "common"}
        warned: list[str] = []
        with collect_warnings(warned):
            wanted = drop_unpaired_methods(settings_of(plan))
            prepared = Original.of(original, **roles)
            require_columns(others, prepared)
            conditions = Conditions(
                prepared, rules=rules, ties=ties, missing=missing, decimals=decimals, scenarios=others
            )
            task, settings, too_few = make_task(
                prepared, conditions, wanted, searched=True, **options, per_variable=False, detail=False
            )
            conditions = replace(conditions, too_few=too_few)
            if too_few and not all(setting.usual for setting in wanted):
                warn(f"{too_few}: settings that need more are left out of the search")
        limits |= limits_of(others)
        sampling = search_sampling(sample_queries, prepared.n, risk_limits(limits))
        return cls(
            replace(task, sampling=sampling),
            by_strength(settings, lambda setting: (setting.method.name, setting.options)),
            limits,
            minimise,
            search_replications(replications, prepared.n),
            conditions,
            tuple(warned),
        )

    def run(
        self,
        folder: AnyPath | None = None,
        rng: Any = None,
        workers: int = 1,
        progress: ProgressCallback | None = None,
        observe: Observer | None = None,
    ) -> Choice:
        """Measure the settings that decide the search, and return what it recommends.

        Parameters
        ----------
        folder, rng, progress
            As for `recommend`.
        workers : int
            Cores to use.
        observe : callable, optional
            Called with how far each method is, before the first round of measurements and after each.

        Returns
        -------
        Choice
        """
        self._require_reachable()
        require_values(self.task)
        bisections = self._bisections()
        place = opened(SEARCH, folder, self.task.identity, rng, self.task.length)
        with reported_to(progress), place as (entropy, checkpoint):
            self._measure(bisections, entropy, workers, checkpoint, observe)
        return self._choice(bisections)

    def kept(self, folder: AnyPath) -> Kept:
        """Return what the folder of this search holds; another process may be filling it.

        The folder is neither locked nor changed, and nothing is measured. Raises ValueError if it holds
        another search, or if its plan is damaged.
        """
        records = kept_runs(SEARCH, folder, self.task.identity, self.task.length)
        bisections = self._bisections()
        known: dict[str, Point] = {}
        for bisection in bisections if records else ():
            for setting in bisection.settings:
                rows = [records.get(key) for key in self._keys[setting.identity]]
                found = [row for row in rows if row is not None]
                if len(found) == len(rows):
                    known[setting.identity] = self._known_point(bisection, setting, found)
            while (position := bisection.next_position()) is not None:
                point = known.get(bisection.settings[position].identity)
                if point is None:
                    break
                bisection.measured[position] = point
        methods = tuple(progress_by_method(bisections))
        choice = None
        if all(one.finished for one in methods):
            with suppress(ValueError):  # no masking meets a limit, or a metric has no value for any setting
                self._require_reachable()
                choice = self._choice(bisections)
        return Kept(tuple(known.values()), choice, methods, len(records))

    def _bisections(self) -> list[Bisection]:
        """Return a bisection of each grid, with nothing measured."""
        safe = risk_limits(self.limits)
        return [Bisection(list(grid), safe, bounded=self._bounded) for grid in self.grids]

    @cached_property
    def _bounded(self) -> bool:
        """True if the proven bounds of methods on their risk hold for the data."""
        return groups_bound_risk(self.task)

    @cached_property
    def _keys(self) -> dict[str, list[int]]:
        """The keys of the runs of each setting in a checkpoint."""
        settings = [setting for grid in self.grids for setting in grid]
        return {one.identity: [run.key for run in runs_of([one], self.replications)] for one in settings}

    def _require_reachable(self) -> None:
        """Raise `LimitsMissed` if columns that are published unmasked alone exceed a limit."""
        if self._in_the_way is not None:
            raise LimitsMissed(self._in_the_way)

    @cached_property
    def _in_the_way(self) -> str | None:
        """Why no masking can meet the limits, None where one may; asked again and again by the page."""
        original = self.task.original
        who = ""
        try:
            require_reachable(self.limits, original)
            for one in self.conditions.scenarios:
                who = f"scenario {one.name}: "
                require_reachable(one.limits, original, one.roles(original.roles))
        except LimitsMissed as reason:
            return f"{who}{reason}"
        return None

    def _known_point(self, bisection: Bisection, setting: Setting, found: list[Floats]) -> Point:
        """Return a measured setting from the numbers of its runs; the same ones are not computed twice."""
        content = b"".join(row.tobytes() for row in found)
        before = self._points.get(setting.identity)
        if before is None or before[0] != content:
            point = bisection.bounded_point(self.task.point(setting, np.array(found)))
            before = self._points[setting.identity] = content, point
        return before[1]

    def _measure(
        self,
        bisections: list[Bisection],
        entropy: int,
        workers: int,
        checkpoint: Checkpoint | None,
        observe: Observer | None,
    ) -> None:
        """Measure the settings that all bisections ask for, round by round."""
        done = 0
        with (
            track("searching", sum(bisection.steps for bisection in bisections)) as report,
            WorkerPool() as processes,
        ):
            while pending := [
                (bisection, position)
                for bisection in bisections
                if (position := bisection.next_position()) is not None
            ]:
                if observe is not None:
                    observe(progress_by_method(bisections))
                report(done, len(pending))
                runs = runs_of(
                    [bisection.settings[position] for bisection, position in pending], self.replications
                )
                found = run_all(self.task, runs, entropy, workers, checkpoint, processes)
                for bisection, position in pending:
                    setting = bisection.settings[position]
                    rows = [i for i, run in enumerate(runs) if run.setting is setting]
                    point = self.task.point(setting, found[rows])
                    bisection.measured[position] = bisection.bounded_point(point)
                done += len(pending)
        if observe is not None:
            observe(progress_by_method(bisections))

    def _choice(self, bisections: list[Bisection]) -> Choice:
        """Return what finished bisections lead to.

        Runs that a folder held count as well, so that a resumed search ends as one that was not stopped.
        """
        points = [bisection.points for bisection in bisections]
        measured = [point.setting for curve in points for point in curve]
        maskings = len(runs_of(measured, self.replications))
        choice = choose(points, self.limits, self.minimise, maskings=maskings, conditions=self.conditions)
        return replace(add_guaranteed_alternatives(choice, bisections), warnings=self.warnings)


def drop_unpaired_methods(settings: list[Setting]) -> list[Setting]:
    """Return the settings whose masked rows each stand for one original record; warn of the others."""
    lost = [setting.method.name for setting in settings if not setting.paired]
    left = [setting for setting in settings if setting.paired]
    if not left:
        raise unpaired_rows_error(lost)
    if lost:
        warn(f"{unpaired_rows_fact(lost)}; left out of the search")
    return left


def require_values(task: Task) -> None:
    """Raise an error, with its reason, for a metric that has no value on these data at all."""
    pair = Pair(task.original, task.original.values)
    for metric in task.metrics:
        if not metric.any_data:
            metric.score(pair)


def groups_bound_risk(task: Task) -> bool:
    """Return True if no record of a group of k is found with more than 1/k, whatever is published with it.

    That needs complete cells, and no known column, strata apart, that tells members of a group apart; nor
    units, whose rows tell more together.
    """
    originals = [task.original, *(known for _, known in task.scenarios)]
    units = task.original.roles.unit in task.original.roles.published(task.original.table_names)
    return (
        not units
        and task.original.complete
        and all(
            set(untouched_names(original, original.table_names)) <= {*original.roles.by}
            for original in originals
        )
    )
