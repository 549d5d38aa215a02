"""The recommended setting and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl  # noqa: TC002 - typing.get_type_hints looks for it

from sdckit.core import checks, notebook, randomness, registry
from sdckit.core.scenarios import DEFAULT_SURE, default_limits, limits_text
from sdckit.core.table import USUAL_KIND, names_of
from sdckit.core.text import listed
from sdckit.evaluation.result import Evaluation  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.io.atomic import AnyPath, check_target
from sdckit.progress import ProgressCallback  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.report import build
from sdckit.report.result import ReportedResult
from sdckit.report.risk_map import table_of_points
from sdckit.selection.limits import SUPPRESSED, LimitsMissed, loss_limits, risk_limits
from sdckit.selection.plan import Setting  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.points import (
    Conditions,
    Curve,
    Point,
    loosened,
    risks_text,
    setting_text,
    weakest_safe_position,
)
from sdckit.selection.release import TRIES, Release, ReleasePlan, make_release, plan_of_search

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Choice(ReportedResult):
    """A recommended masking, the limits that decided it, and the alternatives.

    `limits` has the largest risks allowed, then the largest losses. `point` is the weakest safe setting with
    the least loss; None where no setting meets the limits, and `nearest` is then the one that misses them
    least. `weaker` is the next weaker setting, `binding` names the limits that it breaks, `runner_up` is the
    best setting of the other methods, `looser` has, for each binding limit, the setting that twice that
    limit would allow. `safe` has the weakest safe setting of each method, `points` all measured settings;
    `maskings` is the number of masked tables that were measured, `minimise` the loss that was made least.
    `conditions` are the roles and rules of all maskings, `warnings` the texts of the warnings issued.
    """

    point: Point | None
    limits: dict[str, float]
    minimise: str
    nearest: Point
    weaker: Point | None = None
    binding: tuple[str, ...] = ()
    runner_up: Point | None = None
    looser: dict[str, Point] = field(default_factory=dict)
    safe: tuple[Point, ...] = ()
    points: tuple[Point, ...] = ()
    maskings: int = 0
    conditions: Conditions | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = field(default=(), repr=False)  # also issued as Python warnings

    @property
    def met(self) -> bool:
        """True if at least one measured setting meets all limits."""
        return self.point is not None

    @property
    def method(self) -> registry.Method:
        """The recommended masking method, or the nearest miss if no setting meets the limits."""
        return self.setting.method

    @property
    def setting(self) -> Setting:
        """The recommended method with its parameters, or the nearest miss if none meets the limits."""
        return (self.point or self.nearest).setting

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of `setting` that the plan gives values for, by name."""
        return self.setting.parameters

    @property
    def options(self) -> dict[str, Any]:
        """All parameters of `setting` by name, defaults included."""
        return self.setting.options

    @property
    def sentences(self) -> list[str]:
        """The recommendation in English sentences, with the metric names of the registry."""
        return self.describe()

    def describe(self, label: Callable[[str], str] = str) -> list[str]:
        """Return sentences: the recommended setting, the binding limit, the next best, a looser limit's gain.

        `label` turns the name of a method or metric into the text to print.
        """
        if self.point is None:
            return [f"{self.describe_miss(label)}."]
        least = self._loss_text(self.point, label)
        risks = risks_text(self.point, self.limits, label)
        sentences = [f"{setting_text(self.point, label)} loses least within the limits: {least}, {risks}."]
        sentences += [
            f"The limit on {label(risk)} is the {DEFAULT_SURE}." for risk in default_limits(self.limits)
        ]
        sentences += self._suppressed_sentences(label)
        if self.weaker is None:
            sentences.append("It is the weakest setting of its method that was measured.")
        else:
            broken = risks_text(self.weaker, {risk: self.limits[risk] for risk in self.binding}, label)
            weaker = setting_text(self.weaker, label)
            sentences.append(f"What binds: one step weaker, {weaker}, has {broken}.")
        if self.runner_up is not None:
            sentences.append(f"Next best: {self._setting_with_loss(self.runner_up, label)}.")
        elif len({point.method for point in self.points}) > 1:
            sentences.append("No other method meets the limits.")
        for risk, point in self.looser.items():
            limit = f"{label(risk)} up to {loosened(self.limits[risk]):g}"
            sentences.append(
                f"A looser limit, {limit}, would allow at least {self._setting_with_loss(point, label)}."
            )
        return sentences

    def _suppressed_sentences(self, label: Callable[[str], str]) -> list[str]:
        """Return a sentence on suppressed cells, and on what they count; none if no cell is suppressed."""
        share = 0.0 if self.point is None else self.point.values.get(SUPPRESSED, 0.0)
        if not share > 0:
            return []
        (loss,) = registry.metrics_named([self.minimise])
        rule = loss.fixed_options.get("missing", self.conditions.missing if self.conditions else None)
        counted = loss.bounded and "missing" in (*loss.open_options, *loss.fixed_options)
        what = "counts each as the largest loss" if counted and rule == "penalise" else "leaves them out"
        return [f"It suppresses {100 * share:.2g} of 100 cells; {label(self.minimise)} {what}."]

    def _setting_with_loss(self, point: Point, label: Callable[[str], str]) -> str:
        """Return text such as "mdav (k=5), brmae 0.0312"; without the loss if it was not measured."""
        loss = f", {self._loss_text(point, label)}" if self.minimise in point.values else ""
        return setting_text(point, label) + loss

    def _loss_text(self, point: Point, label: Callable[[str], str]) -> str:
        """Return the loss of a setting as text; `public` withholds losses that one record may dominate."""
        value = point.values[self.minimise]
        return f"{label(self.minimise)} {'withheld' if math.isnan(value) else f'{value:.4f}'}"

    def describe_miss(self, label: Callable[[str], str] = str) -> str:
        """Return a text saying that no setting meets the limits, which one comes nearest, and what to do."""
        risks = risks_text(self.nearest, self.limits, label)
        more, others = ("risk or loss", "other") if loss_limits(self.limits) else ("risk", "stronger")
        small = "" if self.conditions is None else self.conditions.too_few
        remedy = f" or try other methods and {others} settings"
        if small:
            merge = ", merge strata" if small.startswith("stratum") else ""
            remedy = f"{merge} or try other methods ({small})"
        return (
            f"no setting meets {limits_text(self.limits, label)}; the nearest miss is "
            f"{setting_text(self.nearest, label)} with {risks}: allow more {more}"
            f"{remedy}{self._more_to_read()}"
        )

    def _more_to_read(self) -> str:
        """Return words on published columns that may stand in the way, though nobody knows their cells."""
        if self.conditions is None or not any(
            risk.startswith(("linkage", "attribute")) for risk in self.limits
        ):
            return ""
        roles = self.conditions.original.roles
        names = dict.fromkeys((*roles.unknown, *roles.confidential, *roles.columns_with("unit")))
        plain = [name for name in names if name not in {*roles.variables, *roles.columns_with("recode")}]
        if not plain:
            return ""
        return f"; or drop or recode {listed(plain)}, which may tell about records even where nobody knows it"

    def public(self, release: Evaluation | None = None) -> Choice:
        """Return a copy to publish, without losses that one record may dominate (see `Evaluation.public`).

        What is withheld of the release that the choice led to is withheld of all settings.
        """
        hidden = () if release is None else release.withheld
        return replace(
            self,
            point=self.point and self.point.public(hidden),
            nearest=self.nearest.public(hidden),
            weaker=self.weaker and self.weaker.public(hidden),
            runner_up=self.runner_up and self.runner_up.public(hidden),
            looser={risk: point.public(hidden) for risk, point in self.looser.items()},
            safe=tuple(point.public(hidden) for point in self.safe),
            points=tuple(point.public(hidden) for point in self.points),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the recommendation as a JSON-ready dict."""
        point = self.point or self.nearest
        return {
            "met": self.met,
            "method": point.method,
            "parameters": self.parameters,
            "values": point.values,
            "limits": self.limits,
            "default_limits": list(default_limits(self.limits)),
            "minimise": self.minimise,
            "binding": list(self.binding),
            "maskings": self.maskings,
            "sentences": self.sentences,
            "points": [
                {"method": one.method, "parameters": one.parameters, "values": one.values}
                for one in self.points
            ],
        }

    def __repr__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        """Return the sentences, for notebooks."""
        return notebook.block(notebook.paragraphs(self.sentences))

    def map(self) -> Any:
        """Return the map of loss and risk of all measured settings as an altair chart, the chosen one marked.

        Notebooks show it without a network, as a picture; `save` writes it to a file.
        """
        return build.map_of_choice(self, self.required_conditions.original.n)

    @property
    def table(self) -> pl.DataFrame:
        """Method, parameters and measures of each measured setting."""
        return table_of_points(self.points)

    @property
    def kind(self) -> str:
        """The type of the original's dataframe, which `to_frame` returns."""
        return USUAL_KIND if self.conditions is None else self.conditions.original.kind

    def to_html(self, name: str | None = None) -> str:
        """Return a report on the search and its choice as one self-contained HTML page.

        The table that `release` returns has a report of its own.
        """
        return build.report_on_choice(self, name=name or "the data")

    def release(
        self,
        path: AnyPath | None = None,
        *,
        private: AnyPath | None = None,
        overwrite: bool = False,
        entropy: bytes | None = None,
        decimals: int | str | None = None,
        tries: int = TRIES,
        keep_order: bool = False,
        numbered: str | None = None,
        calibrate: str | Sequence[str] = (),
        progress: ProgressCallback | None = None,
    ) -> Release[Any]:
        """Mask the data as recommended, measure the masked table, and write it if a path is given.

        Parameters
        ----------
        path : str or Path, optional
            A file ending in .csv, .parquet, .dta, .sav or another suffix that sdckit writes, with its private
            record: see `Release.publish`. Without it nothing is written.
        private : str or Path, optional
            Folder of the private record; by default that in the user's state directory.
        overwrite : bool
            Replace a file that exists.
        entropy, decimals, tries, keep_order, numbered, calibrate, progress
            As for `Microdata.release`; `decimals` by default as in the search.

        Returns
        -------
        Release
            The masked table, its own evaluation, the order of its rows and the number of draws. A table
            that misses a limit is not returned: after the last draw, `LimitsMissed` is raised.

        Examples
        --------
        >>> import sdckit as sdc
        >>> data = sdc.Microdata([[i, (7 * i) % 40] for i in range(40)])
        >>> release = data.recommend(max_risk={"linkage": 0.2}, plan="mdav").release()
        >>> release.disclosure.method, release.draws
        ('mdav', 1)
        """
        self.require_met()
        if path is not None:
            check_target(path, overwrite)
        entropy = randomness.checked_entropy(entropy)
        plan = self.release_plan(
            decimals=decimals,
            tries=checks.checked_count("tries", tries),
            keep_order=keep_order,
            numbered=numbered,
            calibrate=calibrate,
        )
        made: Release[Any] = make_release(
            plan, self.required_conditions.original, entropy=entropy, progress=progress
        )
        if path is not None:
            made.publish(path, private, overwrite=overwrite)
        return made

    def __getattr__(self, name: str) -> Any:
        gone = "; choice.release() masks the data, which it knows" if name == "apply" else ""
        raise AttributeError(f"a Choice has no {name}{gone}")

    @property
    def required_conditions(self) -> Conditions:
        """The roles and rules of the search; ValueError if this choice was made without data."""
        if self.conditions is None:
            raise ValueError(
                "this choice was made without data, so nothing can be released; make it with recommend()"
            )
        return self.conditions

    def release_plan(
        self,
        *,
        decimals: int | str | None = None,
        tries: int = TRIES,
        per_record: bool = False,
        keep_order: bool = False,
        numbered: str | None = None,
        calibrate: str | Sequence[str] = (),
    ) -> ReleasePlan:
        """Return the plan for a release: recommended method and parameters, limits, rules of the search."""
        conditions = self.required_conditions
        return plan_of_search(
            conditions if decimals is None else replace(conditions, decimals=decimals),
            self.method.name,
            self.parameters,
            minimise=self.minimise,
            limits=self.limits,
            tries=tries,
            per_record=per_record,
            keep_order=keep_order,
            numbered=numbered,
            calibrate=tuple(names_of(calibrate)),
        )

    def require_met(self) -> None:
        """Raise `LimitsMissed`, in words that may be published, if no setting meets the limits."""
        if not self.met:
            raise LimitsMissed(self.public().describe_miss())


def choose(
    curves: Iterable[Curve],
    limits: Mapping[str, float],
    minimise: str,
    *,
    maskings: int = 0,
    conditions: Conditions | None = None,
) -> Choice:
    """Return the weakest safe setting with the least loss of all methods, and the alternatives to it.

    A curve has the measured settings of one method that differ in one parameter, from weak to strong. A
    setting is safe if it and all stronger ones of its curve meet the limits on risk; of these, the weakest
    one that also meets the limits on loss is compared.
    """
    curves, limits = [curve for curve in curves if curve], dict(limits)
    safe = _weakest_safe_points(curves, limits, minimise)
    points = tuple(point for curve in curves for point in curve)
    for metric in (*limits, minimise):
        if all(math.isnan(point.values[metric]) for point in points):
            raise ValueError(f"{metric} has no value for any of these maskings; choose another metric")
    nearest = min(points, key=lambda point: (point.excess(limits), point.cost(minimise)))
    if not safe:
        return Choice(
            None, limits, minimise, nearest, points=points, maskings=maskings, conditions=conditions
        )
    best, curve, position = safe[0]
    weaker = curve[position - 1] if position else None
    binding = tuple(weaker.broken_limits(limits)) if weaker else ()
    others = [point for point, other, _ in safe[1:] if other[0].method != best.method]
    looser = {}
    for risk in binding:
        allowed = _weakest_safe_points(curves, limits | {risk: loosened(limits[risk])}, minimise)
        if allowed and allowed[0][0].cost(minimise) < best.cost(minimise):
            looser[risk] = allowed[0][0]
    return Choice(
        best,
        limits,
        minimise,
        nearest,
        weaker,
        binding,
        others[0] if others else None,
        looser,
        tuple(point for point, _, _ in safe),
        points,
        maskings,
        conditions,
    )


def _weakest_safe_points(
    curves: Sequence[Curve], limits: Mapping[str, float], minimise: str
) -> list[tuple[Point, Curve, int]]:
    """Return (setting, its curve, its position) of each curve's weakest safe setting, least loss first."""
    risks, losses = risk_limits(limits), loss_limits(limits)
    positions = [(curve, weakest_safe_position(curve, risks, losses)) for curve in curves]
    found = [(curve[position], curve, position) for curve, position in positions if position is not None]
    found = [entry for entry in found if entry[0].cost(minimise) < math.inf]
    return sorted(found, key=lambda entry: entry[0].cost(minimise))
