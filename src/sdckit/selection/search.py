"""The search for the masking of least loss within limits: made once, run, and read from its folder."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import registry
from sdckit.core.scenarios import checked_scenarios, limits_of
from sdckit.core.warning_texts import collect_warnings, warn
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair
from sdckit.metrics.query_sample import sampling_of
from sdckit.metrics.scenario_risks import require_columns
from sdckit.progress import reported_to, track
from sdckit.risk.facts import untouched_names
from sdckit.selection import sweeping
from sdckit.selection.bisection import (
    Bisection,
    MethodProgress,
    add_guaranteed_alternatives,
    progress_by_method,
    settings_by_strength,
)
from sdckit.selection.choosing import choose
from sdckit.selection.conditions import Conditions
from sdckit.selection.limits import (
    SUPPRESSED,
    LimitsMissed,
    check_limits_and_loss,
    require_reachable,
    require_reachable_in,
    risk_limits,
    search_replications,
    search_sampling,
    unpaired_rows_error,
    unpaired_rows_fact,
)
from sdckit.selection.plan import runs_of, settings_of
from sdckit.selection.runner import run_all
from sdckit.selection.sweep_folder import SearchFolder, opened
from sdckit.selection.worker import WorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sdckit.io.atomic import AnyPath
    from sdckit.kernels.jit import Floats
    from sdckit.progress import ProgressCallback
    from sdckit.selection.checkpoint import Checkpoint
    from sdckit.selection.choice import Choice
    from sdckit.selection.plan import Setting
    from sdckit.selection.points import Point
    from sdckit.selection.task import Task

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
            conditions = Conditions.of(
                prepared, rules=rules, ties=ties, missing=missing, decimals=decimals, scenarios=others
            )
            task, settings, too_few = sweeping.make_task(
                prepared, conditions, wanted, searched=True, **options, per_variable=False, detail=False
            )
            conditions = replace(conditions, too_few=too_few)
            if too_few and not all(setting.usual for setting in wanted):
                warn(f"{too_few}: settings that need more are left out of the search")
        limits |= limits_of(others)
        sampling = search_sampling(sample_queries, prepared.n, risk_limits(limits))
        return cls(
            replace(task, sampling=sampling),
            settings_by_strength(settings),
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
        place = opened(SearchFolder, folder, self.task.identity, rng, self.task.length)
        with reported_to(progress), place as (entropy, checkpoint):
            self._measure(bisections, entropy, workers, checkpoint, observe)
        return self._choice(bisections)

    def kept(self, folder: AnyPath) -> Kept:
        """Return what the folder of this search holds; another process may be filling it.

        The folder is neither locked nor changed, and nothing is measured. Raises ValueError if it holds
        another search, or if its plan is damaged.
        """
        records = SearchFolder.read_records(folder, self.task.identity, self.task.length)
        bisections = self._bisections()
        known: dict[str, Point] = {}
        for bisection in bisections if records else ():
            for setting in bisection.settings:
                rows = [records.get(key) for key in self._keys[setting.identity]]
                found = [row for row in rows if row is not None]
                if len(found) == len(rows):
                    known[setting.identity] = self._known_point(bisection, setting, found)
            _replay(bisection, known)
        methods = tuple(progress_by_method(bisections))
        choice = None
        if all(one.finished for one in methods) and self._reachable:
            with suppress(ValueError):  # a metric without a value for any setting: the search ends with that
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
        original = self.task.whole.original
        require_reachable(self.limits, original)
        require_reachable_in(self.conditions.scenarios, original)

    @cached_property
    def _reachable(self) -> bool:
        """False if columns that are published unmasked alone exceed a limit."""
        try:
            self._require_reachable()
        except LimitsMissed:
            return False
        return True

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
            while pending := _next_settings(bisections):
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


def _next_settings(bisections: Sequence[Bisection]) -> list[tuple[Bisection, int]]:
    """Return the bisections that are not finished, each with the position that it asks for."""
    asked = [(bisection, bisection.next_position()) for bisection in bisections]
    return [(bisection, position) for bisection, position in asked if position is not None]


def _replay(bisection: Bisection, known: Mapping[str, Point]) -> None:
    """Let a bisection go on as far as the settings that it asks for are known, by identity."""
    while (position := bisection.next_position()) is not None:
        point = known.get(bisection.settings[position].identity)
        if point is None:
            return
        bisection.measured[position] = point


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
    pair = Pair(task.whole.original, task.whole.original.values)
    for metric in task.metrics:
        if not metric.any_data:
            metric.score(pair)


def groups_bound_risk(task: Task) -> bool:
    """Return True if no record of a group of k is found with more than 1/k, whatever is published with it.

    That needs complete cells, and no known column, strata apart, that tells members of a group apart; nor
    units, whose rows tell more together.
    """
    originals = [task.whole.original, *(one.whole.original for one in task.scenarios)]
    units = task.whole.original.roles.unit in task.whole.original.roles.published(
        task.whole.original.table_names
    )
    return (
        not units
        and task.whole.original.complete
        and all(
            set(untouched_names(original, original.table_names)) <= {*original.roles.by}
            for original in originals
        )
    )
