"""Make a release: mask, write, read back, evaluate, check the limits, report, and then name the file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np  # noqa: TC002 - typing.get_type_hints looks for it

from sdckit.core import randomness, registry, settings
from sdckit.core.disclosure import Disclosure
from sdckit.core.scenarios import (
    Scenario,
    risk_of,
)
from sdckit.core.warning_texts import collect_warnings
from sdckit.io.atomic import AnyPath  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.kernels.jit import Ints  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.masking import Masking, mask_prepared
from sdckit.metrics.estimates.declared import declared_of
from sdckit.metrics.evaluation import evaluate_pair
from sdckit.metrics.evaluation_result import Evaluation  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.measuring import Measuring
from sdckit.metrics.original import Original  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.pair import Pair, pair_by_row
from sdckit.progress import ProgressCallback, reported_to, track
from sdckit.selection import wording
from sdckit.selection.calibrated_release import calibrate_masking, calibration_task, with_larger_risks
from sdckit.selection.calibration import CalibrationTask  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.conditions import Conditions  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.limits import (
    LimitsMissed,
    loss_limits,
    release_sampling,
    require_limits,
    require_tied_rows,
    warn_of_units,
)
from sdckit.selection.publishing import Published, leave_in_place, publish

TRIES = 20  # largest number of tables that a random method draws for one release
AGAIN = 0.25  # share of the progress that is left for further draws after each draw

Frame = TypeVar("Frame")
Store = Callable[[Published], AbstractContextManager[Any]]


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
            Together with earlier releases of the same records, a limit is missed; nothing is written.
        """
        from sdckit.record.publish import publish_release  # noqa: PLC0415 - above this package

        return publish_release(self, path, private, overwrite=overwrite)


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
        return settings.method_text(self.method, self.parameters)

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

    def random_numbers(
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
        """Return a masked table as it is handed out, with the order of its rows, made from secret bytes."""
        if self.in_place:
            return leave_in_place(made, original)
        return publish(
            made,
            original,
            secret,
            keep_order=self.keep_order,
            groups=self.groups,
            numbered=self.numbered,
        )

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
            sampling=release_sampling(pair.original.n, self.limits),
        )

    def limits_error(self, draws: int) -> LimitsMissed:
        """Return the error that says that a limit was still missed after so many draws."""
        often = f"in all of {draws} draws" if draws > 1 else "in the one table drawn"
        remedy = "loosen a limit" if loss_limits(self.limits) else "allow more risk"
        return LimitsMissed(
            f"{self} missed {wording.limits_text(self.limits)} {often}, so nothing is released; "
            f"{remedy} or take a stronger setting"
        )


@contextmanager
def keep_in_memory(published: Published) -> Iterator[Any]:
    """Yield a published table as it is, without writing a file; the default for `store`."""
    yield published.data


def make_release(
    plan: ReleasePlan,
    original: Original,
    *,
    entropy: bytes | None = None,
    rng: Any = None,
    store: Store = keep_in_memory,
    report: Callable[[Release[Any], Pair], object] | None = None,
    progress: ProgressCallback | None = None,
    warned: Iterable[str] = (),
) -> Release[Any]:
    """Mask and measure until a masked table meets its limits; raise `LimitsMissed` after the last draw.

    All draws follow from `entropy`, secret bytes, or fresh ones for None; those of a working copy (a plan
    with `in_place`) follow from `rng`, a seed or None, instead.
    `store(published)` writes a table, yields it as read back, and renames the file if the block raises no
    error. `report(release, pair)` is called before that: if it fails, no file is left. `progress(step,
    share)` is called during the work. `warned` are the texts of earlier warnings.
    """
    declared_of(original)  # raises an error for an estimate that the data do not allow
    task = plan.calibration(original) if plan.calibrate else None  # or an error, for totals that are not safe
    entropy = b"" if plan.in_place else randomness.checked_entropy(entropy)
    if plan.numbered is not None:
        known = [*([] if original.table is None else original.table.names), plan.groups or ""]
        settings.check_new_column("record numbers", plan.numbered, known)
    if plan.limits and not Disclosure.of(plan.method, plan.parameters, by=original.roles.by).paired:
        require_tied_rows(plan.method, original)
    tries = plan.tries if plan.limits and registry.method_named(plan.method).random else 1
    warned = list(warned)
    with reported_to(progress), track("masking", 1.0) as shown:
        for count in range(1, tries + 1):
            left = AGAIN ** (count - 1)
            shown(1 - left, left if tries == 1 else left * (1 - AGAIN))
            with suppress(LimitsMissed), ExitStack() as leaving:
                step = leaving.enter_context(track("masking", 20.0))
                with collect_warnings(warned):
                    step(0.0, 9.0, "masking")
                    generator, secret, ties = plan.random_numbers(entropy, count, rng)
                    made = plan.mask(original, generator, task)
                    step(9.0, 2.0, "writing")
                    published = plan.publish(made, original, secret)
                    written = leaving.enter_context(store(published))
                    pair = plan.pair(original, written, published)
                    step(11.0, 8.0, "measuring")
                    result = plan.evaluate(pair, made, ties)
                    if made.uncalibrated is not None:
                        undone = plan.evaluate_undone(made.uncalibrated, original, secret, ties)
                        result = with_larger_risks(result, undone)
                    step(19.0)
                require_limits(plan.limits, result)
                with collect_warnings(warned):
                    warn_of_units(plan.limits, result)
                release = Release(
                    written, result, made.disclosure, published.rows, count, tuple(warned), entropy
                )
                release = (
                    release if plan.in_place else replace(release, made_from=MadeFrom(plan, original, pair))
                )
                if report is not None:
                    report(release, pair)
                leaving.close()  # renames the temporary file
                return release
    raise plan.limits_error(tries)


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
