"""List the releases of the private record, and check a file against its record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sdckit.core.scenarios import default_note
from sdckit.core.settings import method_text
from sdckit.core.text import plural, shortened
from sdckit.record.private_files import digest_of_file

if TYPE_CHECKING:
    from pathlib import Path

    from sdckit.record.entry import Entry
    from sdckit.record.store import Store


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
    rows = [_release_row(entry) for entry in entries]
    return rows + [dict.fromkeys(_FIELDS, "") | {"id": one, "limits": "record is damaged"} for one in broken]


_FIELDS = ("id", "time", "file", "records", "masking", "limits")


def _release_row(entry: Entry) -> dict[str, Any]:
    """Return the row of one release."""
    limits = limits_of_entry(entry)
    missed = [str(one) for one in limits if not one.met]
    return {
        "id": entry.id,
        "time": entry.time,
        "file": entry.output["name"],
        "records": entry.output["rows"],
        "masking": method_text(entry.method, entry.parameters),
        "limits": "; ".join(missed) if missed else "met" if limits else "none",
    }
