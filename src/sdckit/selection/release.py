"""Make a release: mask, write, read back, evaluate, check the limits, report, and then name the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, overload

import numpy as np  # noqa: TC002 - typing.get_type_hints looks for it

from sdckit.core import checks, randomness, registry, settings
from sdckit.core.disclosure import Disclosure
from sdckit.core.prepared import PreparedTable  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.core.scenarios import (
    Scenario,
    checked_risk_limits,
    checked_scenarios,
    limits_of,
    risk_of,
)
from sdckit.core.warning_texts import collect_warnings
from sdckit.kernels.jit import Floats, Ints  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.masking import Masking, mask_prepared
from sdckit.metrics.evaluation import evaluate_pair
from sdckit.metrics.evaluation_result import Evaluation  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.measuring import Measuring
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair, pair_by_row
from sdckit.metrics.scenario_risks import require_columns
from sdckit.progress import ProgressCallback, reported_to, track
from sdckit.selection import wording
from sdckit.selection.limits import (
    LimitsMissed,
    check_loss_limits,
    loss_limits,
    require_limits,
    require_tied_rows,
    warn_of_units,
)
from sdckit.selection.publishing import Published, leave_in_place, publish

TRIES = 20  # largest number of tables that a random method draws for one release
AGAIN = 0.25  # share of the progress that is left for further draws after each draw

Frame = TypeVar("Frame")
Store = Callable[[Published], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Release(Generic[Frame]):
    """A masked table that meets its limits, with its own evaluation.

    The rows of `data` are shuffled, and its key is gone. `rows` has the number, from 0, of the original row
    that each published row comes from: keep it secret. Where masked rows stand for no original record
    (`disclosure.paired` is False), only the cells beside the masked ones come from that row. `disclosure` is
    what the masking publishes about itself; `draws` counts the tables drawn until one met the limits,
    `warnings` has the texts of the warnings issued meanwhile.
    """

    data: Frame
    evaluation: Evaluation
    disclosure: Disclosure
    rows: Ints = field(repr=False)
    draws: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReleasePlan:
    """How to mask a table, which limits it must meet, and how to measure it.

    `limits` has the largest value allowed of some risks and losses. A random method is drawn at most `tries`
    times. The limits of `scenarios` are among them, under names such as "linkage (press)".
    What is handed out has no key, and its rows are shuffled unless `keep_order`; with `in_place`, the table
    is a working copy that keeps its key and the order of its rows.
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

    def __str__(self) -> str:
        return settings.method_text(self.method, self.parameters)

    def mask(self, original: Original, rng: np.random.Generator) -> Masking:
        """Mask the data once with the planned method; limits are not checked here."""
        return mask_prepared(
            original,
            self.method,
            rng=rng,
            decimals=self.decimals,
            rules=self.rules,
            groups=self.groups,
            parameters=dict(self.parameters),
        )

    def publish(self, made: Masking, original: Original, rng: Any) -> Published:
        """Return a masked table as it is handed out, with the order of its rows."""
        if self.in_place:
            return leave_in_place(made, original)
        return publish(made, original, rng, keep_order=self.keep_order, groups=self.groups)

    def pair(self, original: Original, written: Any, published: Published) -> Pair:
        """Return the original and the table as written, aligned by the order of the published rows."""
        kept = self.in_place or self.keep_order
        return pair_by_row(original, written, rows=None if kept else published.rows)

    def evaluate(self, pair: Pair, made: Masking, rng: Any) -> Evaluation:
        """Measure a masked table; return its evaluation with the masking's notes added."""
        how = Measuring.of(
            self.metrics,
            made.disclosure,
            ties=self.ties,
            missing=self.missing,
            per_record=self.per_record,
            rng=rng,
            scenarios=self.scenarios,
        )
        result = evaluate_pair(pair, made.disclosure, how)
        return replace(result, notes=(*result.notes, *made.notes))

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
    rng: Any = None,
    store: Store = keep_in_memory,
    report: Callable[[Release[Any], Pair], None] | None = None,
    progress: ProgressCallback | None = None,
    warned: Iterable[str] = (),
) -> Release[Any]:
    """Mask and measure until a masked table meets its limits; raise `LimitsMissed` after the last draw.

    `store(published)` writes a table, yields it as read back, and renames the file if the block raises no
    error. `report(release, pair)` is called before that: if it fails, no file is left. `progress(step,
    share)` is called during the work. `warned` are the texts of earlier warnings.
    """
    generator = randomness.generator(rng)
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
                    made = plan.mask(original, generator)
                    step(9.0, 2.0, "writing")
                    published = plan.publish(made, original, rng)
                    written = leaving.enter_context(store(published))
                    pair = plan.pair(original, written, published)
                    step(11.0, 8.0, "measuring")
                    result = plan.evaluate(pair, made, rng)
                    step(19.0)
                require_limits(plan.limits, result)
                with collect_warnings(warned):
                    warn_of_units(plan.limits, result)
                release = Release(written, result, made.disclosure, published.rows, count, tuple(warned))
                if report is not None:
                    report(release, pair)
                leaving.close()  # renames the temporary file
                return release
    raise plan.limits_error(tries)


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


@overload
def release(data: list[Any] | tuple[Any, ...], method: str, **options: Any) -> Release[Floats]: ...


@overload
def release(data: PreparedTable, method: str, **options: Any) -> Release[Any]: ...  # of the type prepared


@overload
def release(
    data: Frame,
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
    rules: Any = None,
    groups: str | None = None,
    metrics: str | Iterable[str] | None = None,
    ties: str = "average",
    missing: str = "pairwise",
    max_risk: dict[str, float] | None = None,
    max_loss: dict[str, float] | None = None,
    scenarios: Mapping[str, Any] | None = None,
    tries: int = TRIES,
    keep_order: bool = False,
    rng: Any = None,
    decimals: int | str | None = "original",
    progress: ProgressCallback | None = None,
    **parameters: Any,
) -> Release[Frame]: ...


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
    rules: Any = None,
    groups: str | None = None,
    metrics: str | Iterable[str] | None = None,
    ties: str = "average",
    missing: str = "pairwise",
    max_risk: dict[str, float] | None = None,
    max_loss: dict[str, float] | None = None,
    scenarios: Mapping[str, Any] | None = None,
    tries: int = TRIES,
    keep_order: bool = False,
    rng: Any = None,
    decimals: int | str | None = "original",
    progress: ProgressCallback | None = None,
    **parameters: Any,
) -> Release[Any]:
    """Mask data and return the masked table with its losses and risks; draw again until limits are met.

    The table can be handed out: its rows are shuffled, it has neither the key nor dropped columns, and units
    have fresh numbers. The figures are those that `sdckit mask --release` prints for the same file.

    Parameters
    ----------
    data : table
        pandas, polars, pyarrow or numpy; or what `prepare` returns, with its roles.
    method : str
        A name from `sdc.METHODS`.
    columns, key, by, na, rules, groups
        As for `mask`.
    weights : str or array, optional
        Survey weights of the losses; a column of that name is not masked.
    untouched, known, unknown, confidential, unit, drop, recode
        Other roles of columns, as for `prepare`.
    metrics, ties, missing
        As for `evaluate`.
    max_risk : dict, optional
        Limits by risk, such as `{"linkage": 0.1}`: a random method is drawn again while it misses one.
    max_loss : dict, optional
        Limits by loss, such as `{"suppressed": 0.01}`, treated alike.
    scenarios : dict, optional
        Other intruders, as for `evaluate`; their limits are met, too.
    tries : int
        How many tables to draw at most.
    keep_order : bool
        Leave the rows in the order of the original, which an intruder may use; the figures count that.
    rng : None, int or numpy Generator
        None draws fresh entropy. Keep a seed secret: with it the masking can be undone.
    decimals : int, "original" or None
        Round masked cells, by default to the decimals that each column shows; None does not round.
    progress : function, optional
        Called as `progress(step, share)` during the work: the name of the step, and the share of the whole
        work that is done, which rises from 0 to 1.
    **parameters
        Parameters of the method, such as `k=5`; with strata also `k={"north": 5, "south": 3}`.

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
    >>> again = sdc.evaluate([1.0, 2.0, 30.0, 31.0], release.data, rows=release.rows, disclosure=release)
    >>> again["linkage"]
    0.5
    """
    others = checked_scenarios(scenarios)
    limits = ({} if max_risk is None else checked_risk_limits(max_risk)) | check_loss_limits(max_loss)
    limits |= limits_of(others)
    plan = ReleasePlan(
        method=method,
        parameters=parameters,
        rules=rules,
        decimals=decimals,
        groups=groups,
        metrics=metrics_of_release(metrics, list(limits)),
        ties=ties,
        missing=missing,
        limits=limits,
        scenarios=others,
        tries=checks.checked_count("tries", tries),
        keep_order=keep_order,
    )
    warned: list[str] = []
    with collect_warnings(warned):
        original = Original.of(
            data,
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
    require_columns(others, original)
    return make_release(plan, original, rng=rng, progress=progress, warned=warned)
