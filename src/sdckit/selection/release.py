"""Make a release: mask, write, read back, evaluate, check the limits, report, and then name the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sdckit.core import checks, randomness, registry, settings
from sdckit.core.disclosure import Disclosure  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.core.warned import collect_warnings
from sdckit.kernels.jit import Ints  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.masking import Masking, mask_prepared
from sdckit.metrics.evaluation import Evaluation, Measuring, evaluate_pair
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair, pair_by_row
from sdckit.progress import ProgressCallback, reported_to
from sdckit.selection import wording
from sdckit.selection.limits import LimitsMissed, limits_of, require

TRIES = 20  # draws of a random masking before a release is given up

Store = Callable[[Masking], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Release:
    """A masked table that meets its limits, with its own evaluation.

    `disclosure` is what the masking publishes about itself, `rows` the number of the original row behind
    each row, from 0; `draws` counts the draws that it took to meet the limits, `warnings` are those that
    were given on the way.
    """

    data: Any
    evaluation: Evaluation
    disclosure: Disclosure
    rows: Ints = field(repr=False)
    draws: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReleasePlan:
    """What to release and how to measure it.

    `limits` has the largest value allowed of some risks. A random method is drawn at most `tries` times.
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

    def __str__(self) -> str:
        return settings.method_text(self.method, self.parameters)

    def mask(self, original: Original, rng: np.random.Generator) -> Masking:
        """Mask the data once, whatever the limits say."""
        return mask_prepared(
            original,
            self.method,
            rng=rng,
            decimals=self.decimals,
            rules=self.rules,
            groups=self.groups,
            parameters=dict(self.parameters),
        )

    def evaluate(self, pair: Pair, made: Masking, rng: Any) -> Evaluation:
        """Measure a masked table, with the notes of the masking beside those of the measures."""
        how = Measuring.of(
            self.metrics,
            made.disclosure,
            ties=self.ties,
            missing=self.missing,
            per_record=self.per_record,
            rng=rng,
        )
        result = evaluate_pair(pair, made.disclosure, how)
        return replace(result, notes=(*result.notes, *made.notes))

    def given_up(self, draws: int) -> LimitsMissed:
        """Return the error after the last draw."""
        often = f"in all of {draws} draws" if draws > 1 else "when measured afresh"
        return LimitsMissed(
            f"{self} missed {wording.limits(self.limits)} {often}, so no file is handed out; "
            "allow more risk or take a stronger setting"
        )


@contextmanager
def in_memory(made: Masking) -> Iterator[Any]:
    """Keep a masked table as it is, without a file."""
    yield made.data


def carry_out(
    plan: ReleasePlan,
    original: Original,
    *,
    rng: Any = None,
    store: Store = in_memory,
    report: Callable[[Release, Pair], None] | None = None,
    progress: ProgressCallback | None = None,
    warned: Iterable[str] = (),
) -> Release:
    """Draw until a masked table meets its limits; after the last draw, raise `LimitsMissed`.

    `store(masking)` writes a table, yields it as read back, and gives the file its name when the block has
    ended well. `report(release, pair)` runs before that: where it fails, no file is left. `progress(step,
    share)` is called while work goes on. `warned` are the warnings that were given before.
    """
    generator = randomness.generator(rng)
    tries = plan.tries if plan.limits and registry.method_named(plan.method).random else 1
    warned = list(warned)
    with reported_to(progress):
        for count in range(1, tries + 1):
            with suppress(LimitsMissed), ExitStack() as leaving:
                with collect_warnings(warned):
                    made = plan.mask(original, generator)
                    written = leaving.enter_context(store(made))
                    pair = pair_by_row(original, written)  # as masked, whatever the key
                    result = plan.evaluate(pair, made, rng)
                require(plan.limits, result)
                rows = np.arange(original.n)
                release = Release(written, result, made.disclosure, rows, count, tuple(warned))
                if report is not None:
                    report(release, pair)
                leaving.close()  # gives the file its name
                return release
    raise plan.given_up(tries)


def metrics_with(metrics: str | Iterable[str] | None, needed: Sequence[str]) -> list[str] | None:
    """Return the metrics of a release: those asked for, or the default ones, and those that limits need."""
    if metrics is None:
        default = {metric.name for metric in registry.metrics_named(None)}
        if default.issuperset(needed):
            return None
        chosen = registry.shown_metrics("headline")
    else:
        chosen = registry.metrics_named(metrics)
    return list(dict.fromkeys([*(metric.name for metric in chosen), *needed]))


def release(
    data: Any,
    method: str,
    *,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: Any = None,
    by: str | Sequence[str] | None = None,
    na: Any = None,
    rules: Any = None,
    groups: str | None = None,
    metrics: str | Iterable[str] | None = None,
    ties: str = "average",
    missing: str = "pairwise",
    max_risk: dict[str, float] | None = None,
    tries: int = TRIES,
    rng: Any = None,
    decimals: int | str | None = "original",
    progress: ProgressCallback | None = None,
    **parameters: Any,
) -> Release:
    """Mask data, measure the result as an intruder sees it, and return both; draw again to meet limits.

    The figures are those that `sdckit mask` prints for the same file.

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
    metrics, ties, missing
        As for `evaluate`.
    max_risk : dict, optional
        Limits by risk, such as `{"linkage": 0.1}`: a random method is drawn again while it misses one.
    tries : int
        How often to draw at most.
    rng : None, int or numpy Generator
        None draws fresh entropy. Keep a seed secret: whoever has it can undo the masking.
    decimals : int, "original" or None
        Round masked cells, by default to the decimals that each column shows; None does not round.
    progress : function, optional
        Called as `progress(step, share)` while work goes on: the name of the step, and how much of it is
        done, from 0 to 1.
    **parameters
        Parameters of the method, such as `k=5`; with strata also `k={"north": 5, "south": 3}`.

    Returns
    -------
    Release
        The masked table, its evaluation, what the masking discloses, and the warnings. Nothing is handed
        out that misses a limit: after the last draw, `LimitsMissed` is raised.

    Examples
    --------
    >>> import sdckit as sdc
    >>> release = sdc.release([1.0, 2.0, 30.0, 31.0], "mdav", k=2)
    >>> print(release.data, release.evaluation["linkage"])
    [ 2.  2. 30. 30.] 0.5
    """
    limits = {} if max_risk is None else limits_of(max_risk)
    plan = ReleasePlan(
        method=method,
        parameters=parameters,
        rules=rules,
        decimals=decimals,
        groups=groups,
        metrics=metrics_with(metrics, list(limits)),
        ties=ties,
        missing=missing,
        limits=limits,
        tries=checks.checked_count("tries", tries),
    )
    warned: list[str] = []
    with collect_warnings(warned):
        original = Original.of(data, columns=columns, key=key, weights=weights, by=by, na=na)
    return carry_out(plan, original, rng=rng, progress=progress, warned=warned)
