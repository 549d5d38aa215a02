"""Check and measure again what was released."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sdckit.core import registry
from sdckit.core.registry import method_text
from sdckit.core.scenarios import default_note, risk_of
from sdckit.core.text import plural, shortened
from sdckit.core.version import INTRUDER_VERSION
from sdckit.io import crosswalk, files
from sdckit.masking import Masking
from sdckit.record import ledger
from sdckit.record.ledger import find_overlaps
from sdckit.record.publish import Published, measured_figures
from sdckit.record.replay import check_input, read_input, read_original
from sdckit.record.store import digest_of_file, read_table
from sdckit.selection.calibration import with_larger_risks
from sdckit.selection.release import ReleasePlan

if TYPE_CHECKING:
    from pathlib import Path

    from sdckit.evaluation.result import Evaluation
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.record.entry import Entry
    from sdckit.record.store import Store


SAME = 1e-9  # figures that differ by less are the same


def intruder_note(entry: Entry) -> str | None:
    """Return a line on a release whose risks other attacks measured than those of today; None otherwise."""
    if entry.intruder == INTRUDER_VERSION:
        return None
    return (
        f"its risks were measured by version {entry.intruder} of the intruder, and this is version "
        f"{INTRUDER_VERSION}: do not compare them with those of today; give the original file, too, to "
        "measure again"
    )


@dataclass(frozen=True)
class Change:
    """A risk as it is recorded, and as it is measured today; None where one of them has no value."""

    metric: str
    recorded: float | None
    now: float | None
    together_with: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """True if both figures are the same."""
        if self.recorded is None or self.now is None:
            return self.recorded is self.now
        return math.isclose(self.recorded, self.now, rel_tol=SAME, abs_tol=SAME)

    def __str__(self) -> str:
        values = ["no value" if one is None else f"{one:.4f}" for one in (self.recorded, self.now)]
        others = f" together with {', '.join(self.together_with)}" if self.together_with else ""
        if self.same:
            return f"{self.metric}{others} {values[1]}, unchanged"
        return f"{self.metric}{others} {values[0]} as recorded, {values[1]} now"

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON has it."""
        found = {"metric": self.metric, "recorded": self.recorded, "now": self.now}
        return found | ({"together_with": list(self.together_with)} if self.together_with else {})


def measure_again(store: Store, entry: Entry, data: Path) -> tuple[Entry, list[Change]]:
    """Return the entry of a release with the risks measured today in the place of its own, and the changes.

    Losses are those of the record. Raise ValueError unless `data` is the original of the release, unchanged.
    """
    check_input(entry, data)
    source = read_input(entry, data)
    check_input(entry, data, source)
    original = read_original(entry, source)
    pair, result = _measured(store, entry, original)
    figures = measured_figures(result) + _together(store, entry, pair)
    losses = [row for row in entry.measured if not _is_risk(row["metric"])]
    again = replace(entry, measured=losses + figures, intruder=INTRUDER_VERSION)
    return again, _changes(entry, figures)


def _measured(store: Store, entry: Entry, original: Original) -> tuple[Pair, Evaluation]:
    """Return the published file beside its original, and its risks as they are measured today."""
    names = [name for row in entry.measured if _is_risk(name := row["metric"]) and name == risk_of(name)]
    limits = {name: limit for name, limit in entry.limits.items() if _is_risk(name)}
    scenarios = entry.read_scenarios()
    plan = ReleasePlan(**entry.plan_options(), metrics=names, limits=limits, scenarios=scenarios)
    written = files.read(store.published(entry), entry.read_dialect()).frame
    rows = read_table(store.crosswalk(entry))[crosswalk.ORIGINAL].to_numpy() - 1
    masking = Masking(written, [], ledger.disclosure_of(entry))
    pair = plan.pair(original, written, Published(masking, rows))
    generator, secret, ties = plan.random_sources(entry.entropy_bytes, entry.draws)
    result = plan.evaluate(pair, masking, ties)
    if not entry.calibrate:
        return pair, result
    undone = plan.mask(original, generator).uncalibrated
    assert undone is not None  # noqa: S101 - a calibrated masking has one
    return pair, with_larger_risks(result, plan.evaluate_undone(undone, original, secret, ties))


def _together(store: Store, entry: Entry, pair: Pair) -> list[dict[str, Any]]:
    """Return the risks together with the releases that the record judged this one together with."""
    others = {one for row in entry.measured for one in row.get("together_with", ())}
    earlier = [one for one in store.entries()[0] if one.id in others]
    overlaps, _ = find_overlaps(store, pair.original, store.secret(), earlier)
    plan = ReleasePlan(**entry.plan_options(), scenarios=entry.read_scenarios())
    found = ledger.measure_together(store, plan, pair, ledger.disclosure_of(entry), overlaps)
    return [joint.to_dict() for joint in found]


def _is_risk(label: str) -> bool:
    """Return True for the name of a risk, also of one in a scenario."""
    found = registry.METRICS.get(risk_of(label))
    return found is not None and found.family == "risk"


def _changes(entry: Entry, figures: list[dict[str, Any]]) -> list[Change]:
    """Return each risk as it is recorded and as it is now."""

    def by_name(rows: list[dict[str, Any]]) -> dict[tuple[str, tuple[str, ...]], float | None]:
        """Return the risks among the figures by name and by releases that are judged together."""
        risks = [row for row in rows if _is_risk(row["metric"])]
        return {(row["metric"], tuple(sorted(row.get("together_with", ())))): row["value"] for row in risks}

    recorded, now = by_name(entry.measured), by_name(figures)
    return [
        Change(metric, recorded.get((metric, others)), now.get((metric, others)), others)
        for metric, others in recorded | now
    ]


class NotInRecord(ValueError):  # noqa: N818 - the file is what is wrong
    """Error raised for a file that is none of the releases, or misses a limit of its record."""

    exit_code = 1


@dataclass(frozen=True)
class Limit:
    """A limit of a release and the value that was measured, perhaps together with earlier releases."""

    metric: str
    limit: float
    value: float | None
    together_with: tuple[str, ...] = ()
    note: str = ""  # says that the limit is a default

    @property
    def met(self) -> bool:
        """True if the measured value is not above the limit."""
        return self.value is not None and self.value <= self.limit

    def __str__(self) -> str:
        value = "no value" if self.value is None else f"{self.value:.4f}"
        others = f" together with {shortened(self.together_with)}" if self.together_with else ""
        limit = f"limit {self.limit:g}{self.note} {'met' if self.met else 'not met'}"
        return f"{self.metric}{others} {value}, {limit}"


def limits_of_entry(entry: Entry) -> list[Limit]:
    """Return the limits of a release with the values measured; the upper end counts of an estimate."""
    found = []
    for row in entry.measured:
        if row["metric"] in entry.limits:
            upper = row["value"] if row.get("ci_high") is None else row["ci_high"]
            others = tuple(row.get("together_with", ()))
            found.append(Limit(row["metric"], entry.limits[row["metric"]], upper, others))
    measured = {one.metric for one in found}
    found += [Limit(name, entry.limits[name], None) for name in entry.limits if name not in measured]
    return [replace(one, note=default_note(one.metric, entry.limits)) for one in found]


def check_file(store: Store, masked: Path) -> tuple[Entry, list[Limit]]:
    """Return the entry of a published file and its limits; raise an error if it is no release or damaged."""
    digest = digest_of_file(masked)
    entry = store.find(digest)
    if entry is None:
        broken = store.entries()[1]
        doubt = ""
        if broken:
            doubt = f" (damaged {plural(len(broken), 'record')}: {shortened(broken)})"
        raise NotInRecord(
            f"'{masked}' is none of the releases in '{store.folder}'{doubt}; it was changed or made elsewhere"
        )
    for verify in (store.crosswalk, store.fingerprints, store.originals, store.published):
        verify(entry)
    return entry, limits_of_entry(entry)


def release_rows(store: Store) -> list[dict[str, Any]]:
    """Return a row for each release: ID, time, file, records, method and limits; damaged ones at the end."""
    entries, broken = store.entries()
    rows = []
    for entry in entries:
        limits = limits_of_entry(entry)
        missed = [str(one) for one in limits if not one.met]
        row = {"id": entry.id, "time": entry.time, "file": entry.output["name"]}
        row |= {"records": entry.output["rows"], "masking": method_text(entry.method, entry.parameters)}
        rows.append(row | {"limits": "; ".join(missed) if missed else "met" if limits else "none"})
    empty = dict.fromkeys(("id", "time", "file", "records", "masking", "limits"), "")
    return rows + [empty | {"id": one, "limits": "record is damaged"} for one in broken]
