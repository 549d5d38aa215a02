"""What to look at before a release is written: roles, limits, order, suppressed cells, earlier releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sdckit.app import folders
from sdckit.app.screen_roles import undecided_text, uniques_text
from sdckit.app.session import describe
from sdckit.core.checks import listed, shortened
from sdckit.record.ledger import find_overlaps
from sdckit.record.store import Store
from sdckit.request.options import job_options
from sdckit.selection.limits import SUPPRESSED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.app.session import Session
    from sdckit.core.description import Description
    from sdckit.selection.points import Point

NO_IDENTIFIER = "All columns are published: none is an identifier, none is left out. Check the roles."
MET = "This setting meets every limit. The released file is measured again; it is not kept if it misses one."
UNITS = "There is no limit on finding whole households, firms or persons; set one on the screen Goal."
TOGETHER = "The new file is measured together with them; it is not kept if it then misses a limit."
UNSEEN = "No screen shows some choices of this job: {}. Look at them under Copy as command."
SHOWN = {  # keys of a job that the screens show; the name of a folder of runs follows from them
    "input": ("data", "na", "delimiter", "decimal_comma", "encoding", "table"),
    "roles": ("columns", "key", "by", "untouched", "unknown", "confidential", "drop", "weights", "unit"),
    "recode": ("",),
    "rules": ("rule",),
    "scenario": ("",),
    "search": ("max_risk", "max_loss", "minimise", "methods"),
    "measures": ("estimates",),
    "output": ("output", "report", "keep_order"),
    "private": ("private", "private_report", "folder"),
}
MARKS = {"good": "✓", "look": "!", "bad": "✗"}


class Item(NamedTuple):
    """A line of the checklist: in order, to look at, or in the way of a release."""

    state: str
    text: str

    @property
    def mark(self) -> str:
        """The sign before the line."""
        return MARKS[self.state]


def checklist(session: Session, point: Point) -> list[Item]:
    """Return the lines of the checklist for a setting."""
    file = session.require_file()
    roles = file.state.job.get("roles", {})
    found = describe(file.source, file.state.roles)
    gone = [*roles.get("key", ()), *roles.get("drop", ())]
    limits = session.limits()
    undecided = undecided_text(found, file.state.job)
    items = [
        Item("bad", undecided) if undecided else Item("good", "Every column has a role."),
        Item("good", f"Not published: {shortened(gone)}.") if gone else Item("look", NO_IDENTIFIER),
        Item("good", MET) if point.meets(limits) else Item("bad", "This setting misses a limit."),
    ]
    if file.state.job["output"].get("keep_order"):
        items.append(Item("look", "The rows stay in the order of the original, which an intruder may use."))
    else:
        items.append(Item("good", "The rows will be shuffled."))
    if roles.get("unit") and "linkage_units" not in limits:
        items.append(Item("look", UNITS))
    if unseen := unseen_choices(file.state.job):
        items.append(Item("look", UNSEEN.format(listed(unseen))))
    items.append(_suppressed(point))
    return [*items, _uniques(found, file.source.frame.height), _earlier(session)]


def unseen_choices(job: Mapping[str, Any]) -> list[str]:
    """Return the keys of a job that no screen shows; a job from elsewhere may have any, as [roles] known.

    Sections that are values themselves, such as [recode], have a key without a name.
    """
    return [
        field.path
        for field in job_options("recommend")
        if field.key in job.get(field.section, ()) and field.key not in SHOWN.get(field.section, ())
    ]


def _uniques(found: Description, records: int) -> Item:
    """Return the line on records that stand alone on what is published as it is."""
    return Item("look" if round(found.uniques * records) else "good", uniques_text(found, records))


def _suppressed(point: Point) -> Item:
    """Return the line on suppressed cells."""
    share = point.values.get(SUPPRESSED, 0.0)
    if share > 0:
        return Item("look", f"{100 * share:.2g} of 100 cells are suppressed.")
    return Item("good", "No cell is suppressed.")


def _earlier(session: Session) -> Item:
    """Return the line on earlier releases of the same records."""
    private = session.require_file().state.job.get("private", {}).get("private")
    store = Store.at(folders.confined(session.start, private) if private else None)
    entries, broken = store.entries() if store.folder.exists() else ([], [])
    if not entries and not broken:
        return Item("good", "No earlier release is in the private record.")
    overlaps, lost = find_overlaps(store, session.original(), store.secret(), entries)
    if damaged := [*broken, *lost]:
        return Item(
            "bad", f"Records of releases are damaged: {shortened(damaged)}; restore them from a copy."
        )
    if overlaps:
        named = listed([one.entry.id for one in overlaps[:5]])
        return Item("look", f"Released before: {named}. {TOGETHER}")
    return Item("good", "By the private record, none of these records was released before.")
