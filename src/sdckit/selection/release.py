"""Releases: planned, masked, measured, published."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from sdckit.arrays import Ints
from sdckit.core import notebook, randomness, registry
from sdckit.core.cells import cell_numbers, missing_cells, number_values
from sdckit.core.checks import collect_warnings
from sdckit.core.notebook import WrittenReport  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.core.randomness import secret_order
from sdckit.core.registry import check_new_column, method_text
from sdckit.core.scenarios import Scenario, limits_text, risk_of
from sdckit.core.table import Table, numbered_series
from sdckit.core.text import draws_text
from sdckit.estimation.compare import declared_of
from sdckit.evaluation.measure import Measuring, evaluate_pair
from sdckit.evaluation.result import Evaluation  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.io.atomic import AnyPath  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.masking import Masking, mask_prepared
from sdckit.masking.disclosure import Disclosure
from sdckit.metrics.original import Original  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.pair import (
    Pair,
    pair_by_row,
)
from sdckit.progress import ProgressCallback, Report, reported_to, track
from sdckit.record.publish import Published, publish_release
from sdckit.report import build
from sdckit.report.signing import method_sentence
from sdckit.selection.calibration import (
    CalibrationTask,
    calibrate_masking,
    calibration_task,
    with_larger_risks,
)
from sdckit.selection.limits import (
    LimitsMissed,
    loss_limits,
    release_sampling,
    require_limits,
    require_tied_rows,
    warn_of_units,
)

if TYPE_CHECKING:
    import narwhals as nw

    from sdckit.arrays import Bools, Floats
    from sdckit.selection.points import Conditions


def _with_record_numbers(table: Table, name: str, secret: bytes) -> Any:
    """Return a table with one more column, the numbers of its records in an order of their own."""
    numbers = (secret_order(table.n, secret, "records") + 1).astype(np.float64)
    if table.frame is None:
        return np.column_stack([table.array, numbers])
    return table.with_columns([numbered_series(table.column(table.names[0]).alias(name), numbers)])


def _with_alike_gaps(table: Table) -> Any:
    """Return a table in which NaN is null in the columns that have both: which of them tells nothing."""
    columns = [table.column(name) for name in table.names] if table.frame is not None else []
    mixed = [one for one in columns if one.dtype.is_float() and _has_both_gaps(one)]
    return table.with_columns([one.fill_nan(None) for one in mixed]) if mixed else table.native


def _has_both_gaps(column: nw.Series[Any]) -> bool:
    """Return True if a column of floats has cells that are NaN and cells that are null."""
    null = column.is_null()
    return bool(null.any()) and bool((column.is_nan().fill_null(value=False) & ~null).any())


def _with_fresh_units(table: Table, unit: str, secret: bytes) -> Any:
    """Return a table with new numbers for the units; a missing unit stays missing."""
    column = table.column(unit)
    fresh = _fresh_numbers(cell_numbers(column), missing_cells(column), secret, "units")
    return table.with_columns([numbered_series(column, fresh)])


def _with_fresh_groups(table: Table, groups: str, secret: bytes) -> Any:
    """Return a table with new numbers for the groups of records; records without a group keep their 0."""
    array = table.frame is None  # the last column of an array has the numbers
    old = table.array[:, -1] if array else table.floats([groups])[:, 0]
    fresh = np.nan_to_num(_fresh_numbers(number_values(old), old == 0, secret, "groups"))
    if array:
        return np.column_stack([table.array[:, :-1], fresh])
    return table.with_columns([numbered_series(table.column(groups), fresh)])


def _fresh_numbers(classes: Ints, left_out: Bools, secret: bytes, purpose: str) -> Floats:
    """Return a number from 1 for each class, in random order, and NaN for the records that are left out."""
    numbers = np.full(classes.size, np.nan)
    found = number_values(classes[~left_out])
    numbers[~left_out] = secret_order(int(found.max(initial=-1)) + 1, secret, purpose)[found] + 1
    return numbers


TRIES = 20  # largest number of tables that a random method draws for one release


@dataclass(frozen=True)
class ReleasePlan:
    """How to mask a table, which limits it must meet, and how to measure it.

    `limits` has the largest value allowed of some risks and losses. A random method is drawn at most `tries`
    times. The limits of `scenarios` are among them, under names such as "linkage (press)".
    What is handed out has no key, and its rows are shuffled unless `keep_order`; with `in_place`, the table
    is a working copy that keeps its key and the order of its rows. `numbered` names a column to add, with
    fresh numbers of the records. `calibrate` has totals of the original that shall hold in the table.
    """

    method: str
    parameters: Mapping[str, Any]
    rules: Any = None
    decimals: int | str | None = None
    groups: str | None = None
    metrics: str | Iterable[str] | None = None
    ties: str = "average"
    missing: str = "pairwise"
    limits: Mapping[str, float] = field(default_factory=dict)
    tries: int = TRIES
    per_record: bool = False
    scenarios: Sequence[Scenario] = ()
    keep_order: bool = False
    in_place: bool = False
    numbered: str | None = None
    calibrate: Sequence[str] = ()

    def __str__(self) -> str:
        return method_text(self.method, self.parameters)

    def mask(
        self, original: Original, rng: np.random.Generator, task: CalibrationTask | None = None
    ) -> Masking:
        """Mask the data once with the planned method and calibrate them; limits are not checked here.

        `task` is what `calibration` returns, for a caller that masks several times.
        """
        made = mask_prepared(
            original,
            self.method,
            rng=rng,
            decimals=self.decimals,
            rules=self.rules,
            groups=self.groups,
            parameters=dict(self.parameters),
        )
        if not self.calibrate:
            return made
        return calibrate_masking(made, task or self.calibration(original), original, rng)

    def calibration(self, original: Original) -> CalibrationTask:
        """Return how maskings of the data are calibrated; raise ValueError for totals that are not safe."""
        return calibration_task(self.calibrate, self.rules, original)

    def random_sources(
        self, entropy: bytes, draw: int, rng: Any = None
    ) -> tuple[np.random.Generator, bytes, Any]:
        """Return the generator that masks, the secret for the order of rows, and the seed for random ties.

        A working copy takes them from `rng`; a release from its entropy and the number of the draw alone, so
        that its last table can be made again without those before it.
        """
        if self.in_place:
            return randomness.generator(rng), b"", rng
        order, ties = (randomness.derived(entropy, f"{purpose} {draw}") for purpose in ("order", "ties"))
        return randomness.draw_generator(entropy, draw), order, int.from_bytes(ties, "big")

    def publish(self, made: Masking, original: Original, secret: bytes = b"") -> Published:
        """Return a masked table as it is handed out: without its key, rows shuffled unless `keep_order`.

        Cells that are NaN, and not null as others of their column, become null. Units, and the groups of
        records that the column `groups` numbers, get fresh numbers from 1 in random order, as their old ones
        may follow the order of the rows. The new column `numbered`, if one is named, numbers the records from
        1 in an order that neither the published rows nor the original ones have. All orders follow from the
        bytes of `secret`. A working copy keeps its key, and its rows where they are.
        """
        if self.in_place:
            return Published(made, np.arange(original.n))
        rows = np.arange(original.n) if self.keep_order else secret_order(original.n, secret, "rows")
        unit, groups, numbered = original.roles.unit, self.groups, self.numbered
        data = made.data if unit is None else _with_fresh_units(Table(made.data), unit, secret)
        data = data if groups is None else _with_fresh_groups(Table(data), groups, secret)
        table = Table(_with_alike_gaps(Table(data)))
        shuffled = table.take(original.roles.published(table.names), rows)
        if numbered is not None:
            shuffled = _with_record_numbers(Table(shuffled), numbered, secret)
        renumbered = tuple(name for name in (unit, groups, numbered) if name is not None)
        return Published(replace(made, data=shuffled), rows, renumbered)

    def pair(self, original: Original, written: Any, published: Published) -> Pair:
        """Return the original and the table as written, aligned by the order of the published rows."""
        kept = self.in_place or self.keep_order
        return pair_by_row(original, written, rows=None if kept else published.rows)

    def evaluate(self, pair: Pair, made: Masking, rng: Any) -> Evaluation:
        """Measure a masked table; return its evaluation with the masking's notes added."""
        result = evaluate_pair(pair, made.disclosure, self._measuring(pair, made, rng))
        return replace(result, notes=(*result.notes, *made.notes))

    def evaluate_undone(self, made: Masking, original: Original, secret: bytes, rng: Any) -> Evaluation:
        """Measure the risks of a masking before its calibration, published in the same order of rows."""
        published = self.publish(made, original, secret)
        pair = self.pair(original, published.data, published)
        how = self._measuring(pair, made, rng)
        risks = [metric for metric in how.metrics if metric.family == "risk"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # given for the calibrated table
            return evaluate_pair(pair, made.disclosure, replace(how, metrics=risks))

    def _measuring(self, pair: Pair, made: Masking, rng: Any) -> Measuring:
        """Return how a masked table is measured."""
        return Measuring.of(
            self.metrics,
            made.disclosure,
            ties=self.ties,
            missing=self.missing,
            per_record=self.per_record,
            rng=rng,
            scenarios=self.scenarios,
            sampling=release_sampling(pair.original.n, self.limits, random=not made.disclosure.deterministic),
        )

    def limits_error(self, draws: int) -> LimitsMissed:
        """Return the error that says that a limit was still missed after so many draws."""
        often = f"in all of {draws} draws" if draws > 1 else "in the one table drawn"
        remedy = "loosen a limit" if loss_limits(self.limits) else "allow more risk"
        return LimitsMissed(
            f"{self} missed {limits_text(self.limits)} {often}, so nothing is released; "
            f"{remedy} or take a stronger setting"
        )


def plan_of_search(
    conditions: Conditions,
    method: str,
    parameters: Mapping[str, Any],
    *,
    minimise: str,
    limits: Mapping[str, float],
    **more: Any,
) -> ReleasePlan:
    """Return the plan to release a setting of a search; `more` are further fields of the plan."""
    return ReleasePlan(
        method=method,
        parameters=parameters,
        rules=conditions.rules,
        decimals=conditions.decimals,
        metrics=metrics_of_release(None, [minimise, *limits]),
        scenarios=conditions.scenarios,
        ties=conditions.ties,
        missing=conditions.missing,
        limits=limits,
        **more,
    )


def metrics_of_release(metrics: str | Iterable[str] | None, needed: Sequence[str]) -> list[str] | None:
    """Return the names of the metrics asked for and those needed for limits; None for the default ones.

    Risks of scenarios are measured with the scenarios.
    """
    needed = [name for name in needed if name == risk_of(name)]
    if metrics is None:
        default = {metric.name for metric in registry.metrics_named(None)}
        if default.issuperset(needed):
            return None
        chosen = registry.shown_metrics("headline")
    else:
        chosen = registry.metrics_named(metrics)
    return list(dict.fromkeys([*(metric.name for metric in chosen), *needed]))


Measure = Callable[[Any], "Release[Any]"]  # of a table as it is handed out
AGAIN = 0.25  # share of the progress that is left for further draws after each draw

Frame = TypeVar("Frame")
Handed = TypeVar("Handed")


class MadeFrom(NamedTuple):
    """How and from which data a release was made, and the pair of tables that was measured."""

    plan: ReleasePlan
    original: Original
    pair: Pair


@dataclass(frozen=True)
class Release(Generic[Frame]):
    """A masked table that meets its limits, with its own evaluation.

    The rows of `data` are shuffled, and its key is gone. `rows` has the number, from 0, of the original row
    that each published row comes from: keep it secret. Where masked rows stand for no original record
    (`disclosure.paired` is False), only the cells beside the masked ones come from that row. `disclosure` is
    what the masking publishes about itself; `draws` counts the tables drawn until one met the limits,
    `warnings` has the texts of the warnings issued meanwhile. All that is random follows from `entropy`,
    with which the masking can be undone: keep it secret, too. `made_from` has the original and the plan of
    the release, for its private record.
    """

    data: Frame
    evaluation: Evaluation
    disclosure: Disclosure
    rows: Ints = field(repr=False)
    draws: int
    warnings: tuple[str, ...] = ()
    entropy: bytes = field(default=b"", repr=False)
    made_from: MadeFrom | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        """Return how the table was made, its measures, and the warnings."""
        return "\n".join([*self._head(), repr(self.evaluation), *self._warnings()])

    def _repr_html_(self) -> str:
        """Return what `print` shows, for notebooks; `data` shows itself."""
        head, warned = (notebook.paragraphs(lines) for lines in (self._head(), self._warnings()))
        return notebook.block(head, self.evaluation._repr_html_(), warned)

    def _head(self) -> list[str]:
        """Return sentences on the method, on the number of draws, and on the limits that are met."""
        limits = {} if self.made_from is None else self.made_from.plan.limits
        return [
            method_sentence(self.disclosure),
            f"{len(self.rows):,} records, {draws_text(self.draws)}.",
            *([f"It meets {limits_text(limits)}."] if limits else []),
        ]

    def _warnings(self) -> list[str]:
        """Return the warnings as lines of text."""
        return [f"warning: {text}" for text in self.warnings]

    def report(
        self,
        path: AnyPath,
        *,
        name: str | None = None,
        file: AnyPath | None = None,
        overwrite: bool = False,
    ) -> WrittenReport:
        """Write a self-contained HTML report to publish with the table, without original records.

        Parameters
        ----------
        path : str or Path
            A file ending in .html or .htm; on an error no file is left.
        name : str, optional
            What the report calls the table; by default the name of the file.
        file : str or Path, optional
            The file that `publish` wrote: the report states its hash, statistics and what was not measured,
            for those who sign.
        overwrite : bool
            Replace a report that exists.

        Returns
        -------
        WrittenReport
            The path, which a notebook shows as the report itself.

        Raises
        ------
        FileExistsError
            The report exists, and `overwrite` is not set.
        ValueError
            The file does not hold the table.
        """
        return build.write_report(
            path, lambda: build.report_on_release(self, name=name, file=file), overwrite=overwrite
        )

    def publish(self, path: AnyPath, private: AnyPath | None = None, *, overwrite: bool = False) -> str:
        """Write the table to a file that can be handed out, and keep its private record.

        The record has the order of the rows, the entropy and a copy of the file, for its owner alone: with it
        `sdckit replay` makes the file again, byte for byte. A warning announces records that earlier releases
        of the same record hold.

        Parameters
        ----------
        path : str or Path
            A file ending in .csv, .parquet, .dta, .sav or another suffix that sdckit writes.
        private : str or Path, optional
            Folder of the private record; by default that in the user's state directory.
        overwrite : bool
            Replace a file that exists.

        Returns
        -------
        str
            The ID of the release in the private record.

        Raises
        ------
        ValueError
            Together with earlier releases of the same records, a limit is missed, or cells of records that
            left, joined or changed follow; nothing is written.
        """
        return publish_release(self, path, private, overwrite=overwrite)


def _unwritten(published: Published, measure: Measure) -> Release[Any]:
    """Return a release that is kept in memory; the default for `hand_out`."""
    return measure(published.data)


def make_release(
    plan: ReleasePlan,
    original: Original,
    *,
    entropy: bytes | None = None,
    rng: Any = None,
    hand_out: Callable[[Published, Measure], Handed] = _unwritten,  # type: ignore[assignment]
    progress: ProgressCallback | None = None,
    warned: Iterable[str] = (),
) -> Handed:
    """Mask and measure until a masked table meets its limits; raise `LimitsMissed` after the last draw.

    All draws follow from `entropy`, secret bytes, or fresh ones for None; those of a working copy (a plan
    with `in_place`) follow from `rng`, a seed or None, instead.
    `hand_out(published, measure)` writes a table, calls `measure` with what is read back, which returns the
    release or raises `LimitsMissed`, and returns what this function does; `record.publish.publish` does so.
    `progress(step, share)` is called during the work. `warned` are the texts of earlier warnings.
    """
    declared_of(original)  # raises an error for an estimate that the data do not allow
    task = plan.calibration(original) if plan.calibrate else None  # or an error, for totals that are not safe
    secrets = b"" if plan.in_place else randomness.checked_entropy(entropy)
    if plan.numbered is not None:
        known = [*([] if original.table is None else original.table.names), plan.groups or ""]
        check_new_column("record numbers", plan.numbered, known)
    if plan.limits and not Disclosure.of(plan.method, plan.parameters, by=original.roles.by).paired:
        require_tied_rows(plan.method, original)
    tries = plan.tries if plan.limits and registry.method_named(plan.method).random else 1
    texts = list(warned)

    def draw(count: int, heard: ExitStack, step: Report) -> Handed:
        """Mask the data with the draws of this number, and hand them out if they meet the limits."""
        heard.enter_context(collect_warnings(texts))
        step(0.0, 9.0, "masking")
        generator, secret, ties = plan.random_sources(secrets, count, rng)
        made = plan.mask(original, generator, task)
        step(9.0, 2.0, "writing")
        published = plan.publish(made, original, secret)

        def measure(written: Any) -> Release[Any]:
            """Return the release whose table was written and read back; or raise `LimitsMissed`."""
            pair = plan.pair(original, written, published)
            step(11.0, 8.0, "measuring")
            result = plan.evaluate(pair, made, ties)
            if made.uncalibrated is not None:
                undone = plan.evaluate_undone(made.uncalibrated, original, secret, ties)
                result = with_larger_risks(result, undone)
            step(19.0)
            heard.close()  # issues the warnings
            require_limits(plan.limits, result)
            with collect_warnings(texts):
                warn_of_units(plan.limits, result)
            made_from = MadeFrom(plan, original, pair)
            rows, told = published.rows, made.disclosure
            return Release(written, result, told, rows, count, tuple(texts), secrets, made_from)

        return hand_out(published, measure)

    with reported_to(progress), track("masking", 1.0) as shown:
        for count in range(1, tries + 1):
            left = AGAIN ** (count - 1)
            shown(1 - left, left if tries == 1 else left * (1 - AGAIN))
            with suppress(LimitsMissed), track("masking", 20.0) as step, ExitStack() as heard:
                return draw(count, heard, step)
    raise plan.limits_error(tries)
