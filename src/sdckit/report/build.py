"""Build the HTML report on an evaluation, several files, a sweep or a recommended release."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks, registry
from sdckit.core.cells import as_polars, same_values
from sdckit.core.notebook import WrittenReport
from sdckit.core.registry import title_of
from sdckit.core.scenarios import limits_text
from sdckit.core.text import draws_text, listed, plural
from sdckit.core.version import INTRUDER_VERSION, VERSION
from sdckit.io import atomic, files
from sdckit.metrics.publishable import WHOLE, public_evaluation, rounded_losses
from sdckit.report import Points, charts, report
from sdckit.report.measures import metric_of
from sdckit.report.page import NO_FACTS, NO_LIMITS, exposed_sentence
from sdckit.report.risk_map import KEYS, map_chart, metrics_by_setting, nondominated_rows, table_of_points
from sdckit.report.signing import summary_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sdckit.evaluation.result import Evaluation
    from sdckit.metrics.pair import Pair
    from sdckit.report.signing import Summary
    from sdckit.selection.choice import Choice
    from sdckit.selection.plan import Setting
    from sdckit.selection.release import Release
    from sdckit.selection.sweep_result import Sweep

UNNAMED = "the masked file"
AS_WRITTEN = "Every figure of the release was measured on the file as written."
# Default axes of the risk-utility map.
LOSS, RISK = (registry.shown_metrics("headline", family=family)[0].name for family in ("loss", "risk"))


def write_page(path: Path, page: str, *, overwrite: bool, private: bool = False) -> None:
    """Write an HTML page to a file, which others cannot read if `private`; on an error no file is left."""
    with atomic.atomic(path, overwrite=overwrite, private=private) as draft:
        draft.write_text(page, encoding="utf-8")


def write_report(path: atomic.AnyPath, make_page: Callable[[], str], *, overwrite: bool) -> WrittenReport:
    """Write the page that `make_page` returns, which is not called for a path that cannot be written."""
    target = Path(path)
    atomic.check_target(target, overwrite, atomic.PAGE_SUFFIXES)
    write_page(target, make_page(), overwrite=overwrite)
    return WrittenReport(target)


def report_on_evaluation(
    result: Evaluation,
    *,
    name: str,
    pair: Pair | None = None,
    limits: Mapping[str, float] = NO_LIMITS,
    **parts: Any,
) -> str:
    """Return the HTML report on one masked file; `parts` are further ones of the page, as `report` has them.

    `limits` are those that the file was checked to meet.
    """
    named = UNNAMED if name == UNNAMED else f"{UNNAMED} {name}"
    size = f", {pair.original.n:,} records and {pair.p} {plural(pair.p, 'variable')}" if pair else ""
    return _page(
        title=f"Loss and risk of {name}",
        done=[
            f"{named[0].upper()}{named[1:]} was compared with its original{size}.",
            *([f"It meets {limits_text(limits, title_of)}."] if limits else []),
        ],
        evaluation=result,
        pair=pair,
        limits=limits,
        **parts,
    )


def report_on_release(
    release: Release[Any], *, name: str | None = None, file: atomic.AnyPath | None = None
) -> str:
    """Return the HTML report on a release made in Python; with the hash of its file, for those who sign."""
    if release.made_from is None:
        raise ValueError("this release does not know the data it was made from; make it with release()")
    pair, result = release.made_from.pair, release.evaluation
    limits = release.made_from.plan.limits
    if file is None:
        return report_on_evaluation(result, name=name or UNNAMED, pair=pair, limits=limits)
    own, digest = Path(file).name, require_file_of(release, file, pair.columns)
    summary = summary_of(pair, result, file=own, sha256=digest)
    return report_on_evaluation(result, name=name or own, pair=pair, summary=summary, limits=limits)


def require_file_of(release: Release[Any], path: atomic.AnyPath, columns: Sequence[str]) -> str:
    """Return the digest of a file; raise ValueError unless it holds the masked columns of a release."""
    source, frame = files.read(path), as_polars(release.data)
    written = source.frame
    if not set(columns) <= set(written.columns) or not all(
        written[name].dtype.is_numeric() and same_values(written, frame, name) for name in columns
    ):
        raise ValueError(f"'{path}' does not hold this release; give the file that publish() wrote")
    return source.sha256


def report_on_files(results: Mapping[str, Evaluation], *, records: int, **parts: Any) -> str:
    """Return the HTML report on several masked files of one original, with a risk-utility map."""
    checks.require_reportable_size(records)
    notes = [f"{name}: {note}" for name, result in results.items() for note in result.notes]
    known = {name: result.knowledge for name, result in results.items() if result.knowledge is not None}
    exposed = {name: exposed_sentence(result, records) for name, result in results.items()}
    common = set(known.values())
    if len(common) > 1:
        notes += [f"{name}: risk {one.sentence}; {one.unmasked_sentence}" for name, one in known.items()]
    return _page(
        title=f"Comparison of {len(results)} masked files",
        done=[
            f"{len(results)} masked files were compared with one original of {records:,} records.",
            *(f"{name}: {line}" for name, line in exposed.items() if line),
        ],
        points=map_points(_points_of_files(results), records=records),
        knowledge=common.pop() if len(common) == 1 else None,
        notes=notes,
        **parts,
    )


def chart_of_sweep(sweep: Sweep, metrics: str | Sequence[str] | None = None) -> Any:
    """Return an altair chart of loss against the parameter of each method, for all or some metrics.

    Losses over declared estimates are those that may be published, as a chart holds its figures.
    """
    table = sweep.public().table.filter(WHOLE)
    if metrics is not None:
        known = sweep.table["metric"].unique(maintain_order=True).to_list()
        names = map(registry.current_name, [metrics] if isinstance(metrics, str) else metrics)
        wanted = [checks.one_of("metric", metric, known) for metric in names]
        withheld = [name for name in wanted if name in sweep.withheld]
        if withheld:
            raise ValueError(f"{withheld[0]} is not for publication; take its values from table")
        table = table.filter(pl.col("metric").is_in(wanted))
    return charts.sweep_chart(table)


def report_on_sweep(
    found: Sweep,
    *,
    name: str,
    choice: Choice | None = None,
    release: Evaluation | None = None,
    **parts: Any,
) -> str:
    """Return the HTML report on a sweep and, if a setting was chosen, on its release."""
    checks.require_reportable_size(found.records)
    choice = choice and choice.public(release)
    settings = _public_settings(found, release)
    done = [f"The data were masked with {settings.height:,} settings of {_method_titles(settings)}."]
    if found.files > settings.height:
        done.append(
            f"With replications, {found.files:,} masked files were measured; the map shows their medians."
        )
    return _page(
        title=f"{'A release' if release else 'Maskings'} of {name}",
        done=[*done, *([AS_WRITTEN] if release else [])],
        points=map_points(
            settings, own_settings=found.settings, choice=choice, records=found.records, release=release
        ),
        evaluation=release,
        choice=choice.describe(title_of) if choice else (),
        notes=[f"among all maskings: {note}" for note in found.notes] if release else found.notes,
        **parts,
    )


def _public_settings(found: Sweep, release: Evaluation | None = None) -> pl.DataFrame:
    """Return a row for each setting of a sweep, without the losses that are not published."""
    settings = metrics_by_setting(rounded_losses(found.summary))
    hidden = found.withheld | (release.withheld if release else frozenset())
    return settings.with_columns(
        pl.lit(None, pl.Float64).alias(name)
        for name in settings.columns
        if registry.may_be_dominated(name) or name in hidden
    )


def _points_of_files(results: Mapping[str, Evaluation]) -> pl.DataFrame:
    """Return the values of masked files as they may be published, each file in place of a method."""
    rows = []
    for name, result in results.items():
        values = public_evaluation(result).summary.select("metric", "value").rows()
        rows.append({"method": name, "parameters": "", **dict(values)})
    return pl.DataFrame(rows)


def map_of_files(results: Mapping[str, Evaluation], records: int) -> Any:
    """Return the map of several masked files of one original as an altair chart."""
    return map_chart(map_points(_points_of_files(results), records=records))


def map_of_sweep(found: Sweep, choice: Choice | None = None, files: Evaluation | None = None) -> Any:
    """Return the map of a sweep as an altair chart, with the limit and the setting of a choice.

    `files` are masked files that were made elsewhere.
    """
    settings = _public_settings(found)
    if files is not None:
        others = _points_of_files(files.files or {"the masked file": files})
        settings = pl.concat([settings, others], how="diagonal_relaxed")
    points = map_points(
        settings,
        own_settings=found.settings,
        choice=choice and choice.public(),
        records=found.records,
    )
    return map_chart(points)


def map_of_choice(choice: Choice, records: int) -> Any:
    """Return the map of all settings that a search measured as an altair chart."""
    return map_chart(_points_of_choice(choice.public(), records))


def _points_of_choice(choice: Choice, records: int, release: Evaluation | None = None) -> Points | None:
    """Return the points of the map of all settings that a search measured."""
    return map_points(
        table_of_points(choice.points),
        own_settings=[point.setting for point in choice.points],
        choice=choice,
        records=records,
        release=release,
    )


def report_on_choice(
    choice: Choice,
    release: Evaluation | None = None,
    *,
    name: str,
    draws: int = 0,
    summary: Summary | None = None,
    **parts: Any,
) -> str:
    """Return the HTML report on the settings that were searched, and on the release if one was made."""
    records = choice.required_conditions.original.n
    checks.require_reportable_size(records)
    if summary is None or not summary.private:
        choice = choice.public(release)
    methods, goal = _method_titles(table_of_points(choice.points)), title_of(choice.minimise)
    done = [
        f"Settings of {methods} were searched for the least {goal} within the limits.",
        f"{choice.maskings} maskings were measured.",
    ]
    if release is not None:
        done += [AS_WRITTEN, f"It took {draws_text(draws)} to meet the limits."]
    return _page(
        title=f"Choice of a masking of {name}" if release is None else f"A release of {name}",
        done=done,
        points=_points_of_choice(choice, records, release),
        evaluation=release,
        choice=choice.describe(title_of),
        summary=summary,
        **parts,
    )


def map_points(
    settings: pl.DataFrame,
    *,
    records: int,
    own_settings: Iterable[Setting] = (),
    choice: Choice | None = None,
    release: Evaluation | None = None,
) -> Points | None:
    """Return the points of a risk-utility map; None without a bounded loss or without a risk.

    `own_settings` are the settings whose files were masked here; the rows of all other files are taken to
    stand for original records.
    """
    loss = _axis_metric(settings, "loss", choice.minimise if choice else LOSS)
    risk = _axis_metric(settings, "risk", main_risk(choice.limits) if choice else RISK)
    if loss is None or risk is None:
        return None
    chosen = choice.point if choice else None
    kept = settings.select("method", "parameters", loss=pl.col(loss), risk=pl.col(risk)).with_columns(
        pl.col("loss", "risk").fill_nan(None)
    )
    level = _unrelated_level(loss, records, release)
    apart = registry.metrics_named([loss])[0].paired  # a loss that unpaired rows have no value of
    lost = {(setting.method.name, setting.text) for setting in own_settings if not setting.paired}
    unpaired = pl.Series([row in lost for row in settings.select("method", "parameters").rows()])
    table = kept.with_columns(
        loss=pl.when(unpaired & apart).then(level).otherwise("loss"),
        risk=pl.when(unpaired).then(pl.col("risk").fill_null(1 / records)).otherwise("risk"),  # of guessing
        no_risk=unpaired & pl.col("risk").is_null(),  # nothing ties rows to records
        frontier=nondominated_rows(kept.fill_null(np.nan), ["loss", "risk"]),
        unpaired=unpaired,
        chosen=(pl.col("method") == (chosen.method if chosen else ""))
        & (pl.col("parameters") == (chosen.parameters if chosen else "")),
    )
    return Points(table, loss, risk, dict(choice.limits) if choice else {}, level)


def main_risk(limits: Mapping[str, float]) -> str:
    """Return the risk that a map shows: the usual one if it is limited, else the first of the limits."""
    return RISK if RISK in limits else next(iter(limits))


def _axis_metric(settings: pl.DataFrame, family: str, wanted: str) -> str | None:
    """Return the wanted metric, the usual one, or the first measured one of its family from 0 (best) to 1.

    None without any. One whose values are all withheld is not taken.
    """
    shown = [name for name in settings.columns if name not in KEYS and not _withheld(settings[name])]
    for name in (wanted, {"loss": LOSS, "risk": RISK}[family]):
        if name in shown:
            return name
    measured = [name for name in shown if metric_of(name)]  # by no scenario
    known = registry.metrics_named(measured) if measured else []
    fitting = [m.name for m in known if m.family == family and m.bounded and m.best == 0]
    return fitting[0] if fitting else None


def _withheld(column: pl.Series) -> bool:
    """Return True if all values of a metric are missing, of one that is not always published."""
    return registry.may_be_withheld(column.name) and column.fill_nan(None).count() == 0


def _unrelated_level(loss: str, records: int, release: Evaluation | None) -> float | None:
    """Return the loss of a file in an order unrelated to the original; None if the loss has no such level."""
    if release is not None:
        found = release.summary.filter(pl.col("metric") == loss)["random"].to_list()
        return found[0] if found else None
    formula = registry.metrics_named([loss])[0].untied_level
    return None if formula is None else formula(records)


def _method_titles(settings: pl.DataFrame) -> str:
    """Return the titles of all methods in a table as text, such as "MDAV, noise and rank swapping"."""
    names = [title_of(name) for name in settings["method"].unique(maintain_order=True)]
    return listed(names)


def _page(*, facts: Mapping[str, str] = NO_FACTS, **parts: Any) -> str:
    """Return a page with the facts that are not empty, and the versions of sdckit, numpy and Python."""
    versions = f"sdckit {VERSION} (intruder {INTRUDER_VERSION}), numpy {np.__version__}"
    versions += f", Python {platform.python_version()}"
    known = {name: value for name, value in facts.items() if value} | {"versions": versions}
    return report(facts=known, **parts)
