"""The commands replay, releases and check, which read the private record of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit.cli import json_output, request, terminal
from sdckit.cli.tables import fitting_tables
from sdckit.core.settings import method_text
from sdckit.record.checking import NotInRecord, check_file, release_rows
from sdckit.record.replay import check_suffix, replay
from sdckit.record.store import Store, require_apart

if TYPE_CHECKING:
    from pathlib import Path


def run_replay(release: str, data: Path, output: Path, given: dict[str, Any]) -> None:
    """Run `sdckit replay`: make the file of a release again; print what was written."""
    store = Store.at(given["private"])
    check_suffix(store.read(release), output)
    request.check_output(output, [data], overwrite=given["overwrite"])
    require_apart(store, output)
    entry = replay(store, release, data, output, overwrite=given["overwrite"])
    if not given["quiet"]:
        terminal.print_note(f"wrote {output}: the same bytes as release {entry.id} of {entry.time}")


def run_releases(given: dict[str, Any]) -> None:
    """Run `sdckit releases`: list the releases of the private record."""
    store = Store.at(given["private"])
    rows = release_rows(store)
    if terminal.show_rows(rows, given):
        return
    if not rows:
        terminal.print_note(f"no releases in '{store.folder}'")
    else:
        cells = [[str(value) for value in row.values()] for row in rows]
        terminal.print_tables(fitting_tables(list(rows[0]), cells, right=3, left=2))


def run_check(masked: Path, given: dict[str, Any]) -> None:
    """Run `sdckit check`: compare a file with its record, and its measured values with their limits."""
    terminal.check_format(given)
    entry, limits = check_file(Store.at(given["private"]), masked)
    facts: dict[str, Any] = {
        "id": entry.id,
        "time": entry.time,
        "file": str(masked),
        "sha256": entry.output["sha256"],
        "records": entry.output["rows"],
        "masking": method_text(entry.method, entry.parameters),
    }
    rows = [
        {"metric": one.metric, "value": one.value, "limit": one.limit, "met": one.met}
        | ({"together_with": list(one.together_with)} if one.together_with else {})
        for one in limits
    ]
    if given["as_json"]:
        terminal.print_line(json_output.as_json(facts | {"limits": rows}))
    elif given["as_csv"]:
        lines = [f"{row['metric']},{row['value']},{row['limit']},{str(row['met']).lower()}" for row in rows]
        terminal.print_line("\n".join(["metric,value,limit,met", *lines]))
    else:
        terminal.print_note(f"'{masked}' is release {entry.id} of {entry.time}, byte for byte")
        terminal.print_note(f"{facts['records']} records, masked by {facts['masking']}")
        for line in [str(one) for one in limits] or ["no limits were set"]:
            terminal.print_note(f"- {line}")
    if missed := [str(one) for one in limits if not one.met]:
        raise NotInRecord(f"release {entry.id} misses a limit: {'; '.join(missed)}; do not hand it out")
