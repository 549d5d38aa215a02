"""Build reports from evaluations, sweeps and recommendations."""

from __future__ import annotations

import platform
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks, registry
from sdckit.core.text import plural
from sdckit.core.version import VERSION
from sdckit.io import atomic
from sdckit.metrics.evaluation import WHOLE
from sdckit.report import Points, charts, report
from sdckit.selection import wording
from sdckit.selection.points import KEYS, metrics_by_setting, nondominated_rows, table_of_points

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from sdckit.metrics.evaluation import Evaluation
    from sdckit.metrics.pair import Pair
    from sdckit.selection.choice import Choice
    from sdckit.selection.plan import Setting
    from sdckit.selection.sweeping import Sweep

NONE: Mapping[str, str] = MappingProxyType({})
# The axes of the map where nothing else is asked for.
LOSS, RISK = (registry.shown_metrics("headline", family=family)[0].name for family in ("loss", "risk"))


def write(path: Path, page: str, *, overwrite: bool) -> None:
    """Write a page to a file, completely or not at all."""
    with atomic.atomic(path, overwrite=overwrite) as draft:
        draft.write_text(page, encoding="utf-8")


def of_evaluation(
    result: Evaluation, *, name: str, pair: Pair | None = None, facts: Mapping[str, str] = NONE
) -> str:
    """Return a report on one masked file."""
    return report(
        title=f"Loss and risk of {name}",
        done=[f"The masked file {name} was compared with its original{_size(pair)}."],
        evaluation=result,
        pair=pair,
        facts=_facts(facts),
    )


def of_several(results: Mapping[str, Evaluation], *, records: int, facts: Mapping[str, str] = NONE) -> str:
    """Return a report with one risk-utility map for several masked files of the same original."""
    checks.require_reportable_size(records)
    values = {name: _values(result) for name, result in results.items()}
    points = [{"method": name, "parameters": "", **found} for name, found in values.items()]
    notes = [f"{name}: {note}" for name, result in results.items() for note in result.notes]
    return report(
        title=f"{len(results)} masked files beside each other",
        done=[f"{len(results)} masked files were compared with one original of {records:,} records."],
        points=points_map(pl.DataFrame(points), records=records),
        notes=notes,
        facts=_facts(facts),
    )


def chart_of_sweep(sweep: Sweep, metrics: str | Sequence[str] | None = None) -> Any:
    """Return an altair chart of loss against the parameter of each method, for all or some metrics."""
    table = sweep.table.filter(WHOLE)
    if metrics is not None:
        known = table["metric"].unique(maintain_order=True).to_list()
        names = map(registry.current_name, [metrics] if isinstance(metrics, str) else metrics)
        wanted = [checks.one_of("metric", metric, known) for metric in names]
        table = table.filter(pl.col("metric").is_in(wanted))
    return charts.sweep_chart(table)


def of_sweep(
    found: Sweep,
    *,
    name: str,
    choice: Choice | None = None,
    release: Evaluation | None = None,
    pair: Pair | None = None,
    facts: Mapping[str, str] = NONE,
) -> str:
    """Return a report on a sweep and, where a setting was chosen, on that release."""
    checks.enough_to_report(found.records)
    settings = metrics_by_setting(found.summary)
    done = [f"Masked in {settings.height:,} ways, by {_methods(settings)}, and measured each time."]
    if found.files > settings.height:
        done.append(
            f"With replications, that made {found.files:,} masked files; the map shows medians over them."
        )
    return report(
        title=f"{'A release' if release else 'Maskings'} of {name}",
        done=[*done, *_released(release)],
        points=points_map(
            settings, made=found.settings, choice=choice, records=found.records, release=release
        ),
        evaluation=release,
        pair=pair,
        choice=choice.describe(wording.title_of) if choice else (),
        notes=[f"among all maskings: {note}" for note in found.notes] if release else found.notes,
        facts=_facts(facts),
    )


def of_choice(
    choice: Choice, release: Evaluation, *, name: str, draws: int, pair: Pair, facts: Mapping[str, str] = NONE
) -> str:
    """Return a report on a recommended release."""
    settings = table_of_points(choice.points)
    found = (
        f"least {wording.title_of(choice.minimise)} within the limits; it took {choice.maskings} maskings."
    )
    done = [
        f"Settings of {_methods(settings)} were searched for the {found}",
        *_released(release),
        f"It took {wording.draws_text(draws)} to meet the limits.",
    ]
    return report(
        title=f"A release of {name}",
        done=done,
        points=points_map(
            settings,
            made=[point.setting for point in choice.points],
            choice=choice,
            records=pair.original.n,
            release=release,
        ),
        evaluation=release,
        pair=pair,
        choice=choice.describe(wording.title_of),
        facts=_facts(facts),
    )


def points_map(
    settings: pl.DataFrame,
    *,
    records: int,
    made: Iterable[Setting] = (),
    choice: Choice | None = None,
    release: Evaluation | None = None,
) -> Points | None:
    """Return the risk-utility map of settings; None without a bounded loss or without a risk.

    `made` are the settings of masked files that were made here; rows of others stand for records.
    """
    loss = _axis(settings, "loss", choice.minimise if choice else LOSS)
    risk = _axis(
        settings, "risk", RISK if choice is None or RISK in choice.limits else next(iter(choice.limits))
    )
    if loss is None or risk is None:
        return None
    chosen = choice.point if choice else None
    kept = settings.select("method", "parameters", loss=pl.col(loss), risk=pl.col(risk)).with_columns(
        pl.col("loss", "risk").fill_nan(None)
    )
    level = _level(loss, records, release)
    apart = registry.metrics_named([loss])[0].paired  # a loss that unpaired rows have no value of
    lost = {(setting.method.name, setting.text) for setting in made if not setting.paired}
    unpaired = pl.Series([row in lost for row in settings.select("method", "parameters").rows()])
    table = kept.with_columns(
        loss=pl.when(unpaired & apart).then(level).otherwise("loss"),
        risk=pl.when(unpaired).then(1 / records).otherwise("risk"),  # a blind guess
        frontier=nondominated_rows(kept.fill_null(np.nan), ["loss", "risk"]),
        unpaired=unpaired,
        chosen=(pl.col("method") == (chosen.method if chosen else ""))
        & (pl.col("parameters") == (chosen.parameters if chosen else "")),
    )
    return Points(table, loss, risk, dict(choice.limits) if choice else {}, level)


def _axis(settings: pl.DataFrame, family: str, wanted: str) -> str | None:
    """Return the wanted metric or, where it was not measured, the first of its family from 0 (best) to 1."""
    if wanted in settings.columns:
        return wanted
    known = {name: registry.metrics_named([name])[0] for name in settings.columns if name not in KEYS}
    fitting = [m.name for m in known.values() if m.family == family and m.bounded and m.best == 0]
    return fitting[0] if fitting else None


def _level(loss: str, records: int, release: Evaluation | None) -> float | None:
    """Return the loss of an unrelated order: as measured on the release, else the level without ties."""
    if release is not None:
        found = release.summary.filter(pl.col("metric") == loss)["random"].to_list()
        return found[0] if found else None
    formula = registry.metrics_named([loss])[0].untied_level
    return None if formula is None else formula(records)


def _values(result: Evaluation) -> dict[str, float]:
    return dict(result.summary.select("metric", "value").rows())


def _methods(settings: pl.DataFrame) -> str:
    names = [wording.title_of(name) for name in settings["method"].unique(maintain_order=True)]
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]


def _released(release: Evaluation | None) -> list[str]:
    return [] if release is None else ["Every figure of the release was measured on the file as written."]


def _size(pair: Pair | None) -> str:
    if pair is None:
        return ""
    return f", {pair.original.n:,} records and {pair.p} {plural(pair.p, 'variable')}"


def _facts(facts: Mapping[str, str]) -> dict[str, str]:
    versions = f"sdckit {VERSION}, numpy {np.__version__}, Python {platform.python_version()}"
    return {name: value for name, value in facts.items() if value} | {"versions": versions}
