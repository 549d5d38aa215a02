"""What is measured for one setting, and for all of a sweep."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks, registry
from sdckit.core.randomness import stream_generator
from sdckit.core.registry import function_options
from sdckit.core.version import INTRUDER_VERSION, VERSION
from sdckit.estimation.compare import declared_of, withheld_losses
from sdckit.evaluation.measure import measure, original_in
from sdckit.evaluation.result import FIGURES, SCHEMA, table_figures, whole_file_figures
from sdckit.kernels.ranks import TIES
from sdckit.masking.mask_table import Job, column_steps, kept_columns, require_whole_units
from sdckit.metrics import METRICS
from sdckit.metrics.pair import Pair
from sdckit.risk.attribute_disclosure import digest_of_columns, keep_columns
from sdckit.rules.rules import edits_of
from sdckit.selection.points import Point

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.arrays import Floats
    from sdckit.core.registry import Metric
    from sdckit.core.scenarios import Scenario
    from sdckit.core.table import Step
    from sdckit.masking.disclosure import Disclosure
    from sdckit.metrics.original import Original
    from sdckit.metrics.score import Sampling, Score
    from sdckit.rules.rules import Edits
    from sdckit.selection.plan import Run, Setting
    from sdckit.selection.points import Conditions
    from sdckit.selection.runner import Checkpoint


SOFTWARE = f"sdckit {VERSION}, numpy {np.__version__}"  # other versions may measure other numbers


@dataclass(frozen=True)
class Task:
    """Data, metrics and options that all runs of a sweep share."""

    original: Original
    metrics: Sequence[Metric]
    ties: str
    missing: str
    draws: str
    per_variable: bool
    detail: bool
    steps: tuple[Step, ...] | None = None  # between the masked values of each column; None does not round
    edits: Edits | None = None  # rules that masked records are made to obey
    scenarios: Sequence[tuple[Scenario, Original]] = ()  # the data as other intruders know them
    sampling: Sampling | None = None  # of the records on which linkage is estimated; None: all
    bases: dict[tuple[str, str], Any] = field(default_factory=dict)  # see `Job`
    published: dict[str, Any] = field(default_factory=dict)  # what settings disclose, by identity

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Name and size of all groups of records that are measured: the file first, then each stratum."""
        return [("all", self.original.n), *((name, len(rows)) for name, rows, _ in self.original.parts)]

    @property
    def variables(self) -> list[str]:
        """Names of the rows of one metric: "all" for the file and, with `per_variable`, each column."""
        return ["all", *(self.original.columns if self.per_variable else ())]

    @property
    def length(self) -> int:
        """How many numbers one run yields: metrics x groups x variables x figures."""
        return len(self.labels) * len(self.groups) * len(self.variables) * len(FIGURES)

    @property
    def labels(self) -> list[str]:
        """Names of all that is measured: the metrics, and those of scenarios, such as "linkage (press)"."""
        others = [one.label(metric.name) for one, _ in self.scenarios for metric in one.metrics]
        return [*(metric.name for metric in self.metrics), *others]

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Digest of the data and all options; finished runs are used again only if it is equal."""
        original, declared = self.original, declared_of(self.original)
        digest = hashlib.sha256(repr(original.columns).encode())
        digest.update(original.by_variable.tobytes())
        digest.update(b"" if original.weights is None else original.weights.tobytes())
        for name, rows, _ in original.parts:
            digest.update(name.encode() + np.asarray(rows).tobytes())
        digest.update(digest_of_columns(original))
        digest.update(repr(sorted(original.roles.known_columns(original.columns))).encode())
        for _, known in self.scenarios:
            digest.update(digest_of_columns(known))
        if self.edits is not None:  # rules also look at columns that are not masked
            digest.update(self.edits.values.T[~self.edits.free].tobytes())
        digest.update(b"" if declared is None else declared.digest)
        scenarios = [
            [one.name, [*one.known], [one.label(metric.name) for metric in one.metrics]]
            for one, _ in self.scenarios
        ]
        return {
            "data": digest.hexdigest(),
            "metrics": [metric.name for metric in self.metrics],
            "ties": self.ties,
            "missing": self.missing,
            "draws": self.draws,
            "per variable": self.per_variable,
            "detail": self.detail,
            "steps": None if self.steps is None else [[step.decimals, step.multiple] for step in self.steps],
            "rules": self.edits and list(self.edits.rules.texts),  # a list, as JSON stores it
            "scenarios": scenarios or None,
            "sample queries": None if self.sampling is None else repr(self.sampling),
            "version": SOFTWARE,
            "version of the intruder": INTRUDER_VERSION,
        }

    def job(self, setting: Setting) -> Job:
        """Return how the data are masked with a setting, which may leave some columns unmasked."""
        edits = self.edits and self.edits.keeping(kept_columns(setting.method, setting.options))
        options = [setting.options] * max(len(self.original.parts), 1)
        return Job(setting.method, self.original, options, self.steps, edits, self.bases)

    def _too_few_records(self, job: Job) -> ValueError | None:
        """Return the error for a setting that needs more records or units than the smallest stratum has."""
        parts: list[Any] = [(name, rows, part.values) for name, rows, part in self.original.parts]
        units: Any = self.original.units
        for name, rows, values in sorted(
            parts or [("all", slice(None), self.original.values)], key=lambda part: len(part[2])
        ):
            try:
                job.require_records(name, values, job.options[0], None if units is None else units[rows])
            except ValueError as error:
                return error
        return None

    def allowed_settings(
        self, settings: Iterable[Setting], *, searched: bool = False
    ) -> tuple[list[Setting], str]:
        """Return the settings that the data allow, and which stratum is too small for others, if one is.

        Raise an error for a setting that the caller named. Those of a default grid that a small file does not
        allow are dropped without an error; so are those of any grid that is `searched` where a stratum has
        too few records.
        """
        for metric in self.metrics:
            if metric.random and self.original.weights is not None:
                checks.require_midranks_for_weights(str(metric.fixed_options.get("ties", self.ties)), True)
        left, refused, too_few = [], None, ""
        for setting in settings:
            job = self.job(setting)
            small = self._too_few_records(job)
            too_few = too_few or str(small or "").rpartition(";")[0]  # without the remedy
            try:
                if small is not None:
                    raise small
                function_options(setting.method, setting.options, self.original.columns)
                if job.edits is not None:
                    job.edits.refuse_split_groups(setting.method)
            except ValueError as error:
                if not (setting.usual or (searched and error is small)):
                    raise
                refused = refused or error
            else:
                left.append(setting)
        if refused is not None and not left:
            raise refused
        return left, too_few

    def point(self, setting: Setting, found: Floats) -> Point:
        """Return a setting with the medians of its runs, from the numbers of each run."""
        width = len(FIGURES) * len(self.groups) * len(self.variables)
        first = found.reshape(len(found), -1, width)  # run x label x figure of the whole file, and others
        values, ends = (first[:, :, FIGURES.index(name)] for name in ("value", "ci_high"))
        exact = np.isnan(ends)
        upper = np.median(np.where(exact, values, ends), axis=0)
        return Point(
            setting,
            dict(zip(self.labels, np.median(values, axis=0).tolist(), strict=True)),
            {label: float(upper[i]) for i, label in enumerate(self.labels) if not exact[:, i].all()},
            self.withheld,
        )

    @cached_property
    def withheld(self) -> frozenset[str]:
        """Names of the losses over declared estimates that are not published."""
        return withheld_losses(self.original, None if self.edits is None else self.edits.rules)

    def measure(self, run: Run, entropy: int) -> Floats:
        """Mask the data as one run says and measure the masked data; return all numbers as one array."""
        setting, rng = run.setting, stream_generator(entropy, run.stream(self.draws))
        job, paired = self.job(setting), setting.paired
        masked = job.released(rng)
        options = {"ties": self.ties, "missing": self.missing, "rng": rng}
        none = [np.nan] * (len(self.variables) * len(FIGURES))
        labels = iter(self.labels)
        found: list[float] = []
        asked = [(self.metrics, self.original), *((one.metrics, known) for one, known in self.scenarios)]
        for metrics, original in asked:
            pairs = self._pairs(masked, setting, job, original)
            for metric in metrics:
                label = next(labels)
                scores: list[Score | None] = [None] * len(pairs)
                if paired or not metric.paired:
                    scores = measure(
                        metric, pairs, options, label=label, sampling=self.sampling, detail=self.detail
                    )
                for pair, score in zip(pairs, scores, strict=True):
                    found += none if score is None else self._figures(pair, score)
            for pair in pairs:  # what it keeps refers to it, so that its memory would be freed late
                pair.cache.clear()
        return np.array(found)

    def _figures(self, pair: Pair, score: Score) -> list[float]:
        """Return the numbers of one metric for one group of records."""
        if self.per_variable:
            return table_figures(pair, score).ravel().tolist()
        return whole_file_figures(pair, score)

    def _pairs(self, masked: Floats, setting: Setting, job: Job, original: Original) -> list[Pair]:
        """Return the pairs of original and masked values, of the whole file and of each stratum.

        `original` has the roles of the default intruder, or of a scenario's. A release has its rows shuffled,
        so the order of the rows tells nothing here.
        """
        parts = self.original.parts
        disclosure, windows = self._published(setting)
        whole = Pair(
            original,
            masked,
            rules=None if job.edits is None else job.edits.public_rules,
            disclosure=disclosure,
            strata=[(name, rows) for name, rows, _ in parts],
            remask=job.released,
            trial=True,
        )
        pairs = [whole, *(whole.take(rows, part) for _, rows, part in parts)]
        for pair, window in zip(pairs, windows, strict=True):
            pair.window = window
        return pairs

    def _published(self, setting: Setting) -> tuple[Disclosure, list[Any]]:
        """Return what a setting discloses, and the window of each group of records; for all replications."""
        if setting.identity not in self.published:
            parts, told = self.original.parts, setting.disclosure
            groups = [(name, part.values) for name, _, part in parts] or [("all", self.original.values)]
            windows = [told.width(name, values, self.original.columns) for name, values in groups]
            disclosure = replace(told, by=self.original.roles.by) if parts else told
            self.published[setting.identity] = disclosure, [*([None] if parts else []), *windows]
        return self.published[setting.identity]

    def measure_and_record(self, run: Run, entropy: int, checkpoint: Checkpoint | None) -> Floats:
        """Measure one run, append its numbers to the checkpoint if there is one, and return them."""
        values = self.measure(run, entropy)
        if checkpoint is not None:
            checkpoint.add(run.key, values)
        return values

    def without_table(self) -> Task:
        """Return the same task without data frames, to be sent to another process."""
        original = _without_table(self.original)
        parts = [(name, rows, part.without_table()) for name, rows, part in self.original.parts]
        vars(original).update(strata=self.original.strata, units=self.original.units, parts=parts)
        scenarios = [(one, _without_table(known)) for one, known in self.scenarios]
        return replace(self, original=original, scenarios=scenarios, bases={}, published={})


def _without_table(original: Original) -> Original:
    """Return prepared data without the data frame they came from; what risks read of it is kept."""
    keep_columns(original)
    return original.without_table()


DRAWS = ("common", "fresh")
HEAD = {
    "dataset": pl.String,
    "method": pl.String,
    "parameters": pl.String,
    "setting": pl.Float64,
    "replication": pl.Int64,
}


def make_task(
    original: Original,
    conditions: Conditions,
    settings: Iterable[Setting],
    *,
    searched: bool = False,
    **options: Any,
) -> tuple[Task, list[Setting], str]:
    """Return data, metrics and options that all runs share, checked, and `Task.allowed_settings`."""
    decimals = checks.checked_decimals(conditions.decimals)
    require_whole_units(original)
    declared_of(original)  # before threads ask for it, and for its errors
    edits = edits_of(conditions.rules, original)
    ruled = () if edits is None else edits.rules.columns
    task = Task(
        original,
        edits=edits,
        steps=None if decimals is None else column_steps(original.values, original.columns, decimals, ruled),
        ties=checks.one_of("rule for ties", conditions.ties, TIES),
        missing=checks.one_of("rule for missing cells", conditions.missing, checks.MISSING),
        scenarios=[(one, original_in(original, one)) for one in conditions.scenarios],
        **options,
    )
    return task, *task.allowed_settings(settings, searched=searched)


def chosen_metrics(names: str | Iterable[str] | None, settings: Iterable[Setting]) -> list[Metric]:
    """Return the metrics to measure; by default with metrics for unpaired rows if a method needs them."""
    chosen = registry.metrics_named(names)
    if not any(setting.paired for setting in settings):
        registry.metrics_for_rows(names, paired=False)  # raises for metrics without any value
    if names is None and not all(setting.paired for setting in settings):
        chosen += [metric for metric in METRICS.values() if metric.default_unpaired]
    return chosen


def available_cores() -> int:
    """Return how many processor cores this process may use."""
    known = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(known(0)) if known else os.cpu_count() or 1


def results_table(task: Task, runs: Sequence[Run], found: Floats, name: str) -> pl.DataFrame:
    """Return the numbers of all runs as a table with one row per run, metric, group and variable."""
    labelled = [
        (metric.name, metric.family, variable, group)
        for metric in task.metrics
        for group, _ in task.groups
        for variable in task.variables
    ]
    heads = pl.DataFrame(
        {
            "dataset": [name] * len(runs),
            "method": [run.setting.method.name for run in runs],
            "parameters": [run.setting.text for run in runs],
            "setting": [run.setting.value for run in runs],
            "replication": [run.replication for run in runs],
        },
        schema=HEAD,
    )
    labels = pl.DataFrame(labelled, schema=list(SCHEMA)[:4], orient="row")
    numbers = pl.DataFrame(found.reshape(-1, len(FIGURES)), schema=FIGURES).with_columns(
        pl.all().fill_nan(None)
    )
    rows = np.arange(len(runs) * len(labelled))
    table = pl.concat([heads[rows // len(labelled)], labels[rows % len(labelled)], numbers], how="horizontal")
    whole = [metric.name for metric in task.metrics if not metric.by_variable]
    kept = (pl.col("variable") == "all") | ~pl.col("metric").is_in(whole)
    return table.filter(kept).select(*HEAD, *SCHEMA).cast(SCHEMA)
