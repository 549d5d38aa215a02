"""The commands replay, releases and check, which read the private record of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit import terminal
from sdckit.core.checks import warn
from sdckit.core.registry import method_text
from sdckit.core.version import INTRUDER_VERSION
from sdckit.record.checking import (
    NotInRecord,
    check_file,
    intruder_note,
    limits_of_entry,
    measure_again,
    release_rows,
)
from sdckit.record.replay import check_suffix, replay
from sdckit.record.store import Store, require_apart
from sdckit.request.checks import check_output
from sdckit.request.results import as_json as json_text

if TYPE_CHECKING:
    from pathlib import Path

    from sdckit.record.checking import Change
    from sdckit.record.entry import Entry


def run_replay(
    release: str, data: Path, *, output: Path, private: Path | None, overwrite: bool, quiet: bool
) -> None:
    """Run `sdckit replay`: make the file of a release again; print what was written."""
    store = Store.at(private)
    check_suffix(store.read(release), output)
    check_output(output, [data], overwrite=overwrite)
    require_apart(store, output)
    entry = replay(store, release, data, output, overwrite=overwrite)
    if not quiet:
        terminal.print_note(f"wrote {output}: the same bytes as release {entry.id} of {entry.time}")


def run_releases(*, private: Path | None, as_json: bool, as_csv: bool) -> None:
    """Run `sdckit releases`: list the releases of the private record."""
    store = Store.at(private)
    rows = release_rows(store)
    if terminal.show_rows(rows, as_json=as_json, as_csv=as_csv):
        return
    if not rows:
        terminal.print_note(f"no releases in '{store.folder}'")
    else:
        cells = [[str(value) for value in row.values()] for row in rows]
        terminal.print_tables([terminal.table_of(list(rows[0]), cells, right=3, left=2)])


def run_check(masked: Path, data: Path | None, *, private: Path | None, as_json: bool, as_csv: bool) -> None:
    """Run `sdckit check`: compare a file with its record, its measured values with their limits.

    With the original, its risks are measured again and compared with those of the record.
    """
    store = Store.at(private)
    entry, limits = check_file(store, masked)
    note, changes = intruder_note(entry), None
    if data is not None:
        again, changes = measure_again(store, entry, data)
        limits = limits_of_entry(again)
        note = note and note.partition(":")[0]
    rows = [
        {"metric": one.metric, "value": one.value, "limit": one.limit, "met": one.met}
        | ({"together_with": list(one.together_with)} if one.together_with else {})
        for one in limits
    ]
    if as_json:
        _print_check_json(masked, entry, rows, changes)
    elif as_csv:
        lines = [f"{row['metric']},{row['value']},{row['limit']},{str(row['met']).lower()}" for row in rows]
        terminal.print_line("\n".join(["metric,value,limit,met", *lines]))
    else:
        masking = method_text(entry.method, entry.parameters)
        terminal.print_note(f"'{masked}' is release {entry.id} of {entry.time}, byte for byte")
        terminal.print_note(f"{entry.output['rows']} records, masked by {masking}")
        for line in [*([note] if note else []), *(f"- {one}" for one in changes or ())]:
            terminal.print_note(line)
        for line in [str(one) for one in limits] or ["no limits were set"]:
            terminal.print_note(f"- {line}")
    if note and data is None and (as_json or as_csv):
        warn(note)
    if missed := [str(one) for one in limits if not one.met]:
        raise NotInRecord(f"release {entry.id} misses a limit: {'; '.join(missed)}; do not hand it out")


def _print_check_json(
    masked: Path, entry: Entry, limits: list[dict[str, Any]], changes: list[Change] | None
) -> None:
    """Print what is known of a release as JSON; `intruder` is the version that measured the limits."""
    facts: dict[str, Any] = {
        "id": entry.id,
        "time": entry.time,
        "file": str(masked),
        "sha256": entry.output["sha256"],
        "records": entry.output["rows"],
        "masking": method_text(entry.method, entry.parameters),
        "intruder": entry.intruder if changes is None else INTRUDER_VERSION,
        "limits": limits,
    }
    if changes is not None:
        facts |= {"recorded_intruder": entry.intruder, "changes": [one.to_dict() for one in changes]}
    terminal.print_line(json_text(facts))
