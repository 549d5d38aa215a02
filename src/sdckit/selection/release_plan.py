"""How a release is made: method, parameters and limits, and how a masked table is published and measured."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np  # noqa: TC002 - typing.get_type_hints looks for it

from sdckit.core import randomness, registry, settings
from sdckit.core.scenarios import (
    Scenario,
    risk_of,
)
from sdckit.masking import Masking, mask_prepared
from sdckit.metrics.evaluation import evaluate_pair
from sdckit.metrics.evaluation_result import Evaluation  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.measuring import Measuring
from sdckit.metrics.original import Original  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.pair import Pair, pair_by_row
from sdckit.selection import wording
from sdckit.selection.calibration import (
    CalibrationTask,
    calibrate_masking,
    calibration_task,
)
from sdckit.selection.conditions import Conditions  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.limits import (
    LimitsMissed,
    loss_limits,
    release_sampling,
)
from sdckit.selection.publishing import Published, leave_in_place, publish

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
            sampling=release_sampling(pair.original.n, self.limits, random=not made.disclosure.deterministic),
        )

    def limits_error(self, draws: int) -> LimitsMissed:
        """Return the error that says that a limit was still missed after so many draws."""
        often = f"in all of {draws} draws" if draws > 1 else "in the one table drawn"
        remedy = "loosen a limit" if loss_limits(self.limits) else "allow more risk"
        return LimitsMissed(
            f"{self} missed {wording.limits_text(self.limits)} {often}, so nothing is released; "
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
