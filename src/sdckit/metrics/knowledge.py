"""What an intruder is assumed to know of the people in a published file, and what was published unmasked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sdckit.core.text import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sdckit.core.roles import Roles
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair


@dataclass(frozen=True)
class Knowledge:
    """Columns of a published file that the intruder knows and does not know, and those not masked.

    Lists of columns are never shortened. `unmasked` says in parentheses what else is known of a column: that
    it was recoded, that it numbers units, or that it is a key, which no release has.
    """

    known: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    unmasked: tuple[str, ...] = ()
    named: bool = False  # the user named the known columns

    @property
    def sentence(self) -> str:
        """What the risks assume, such as "assumes that the intruder knows: all 12 published columns"."""
        rest = f"; not: {', '.join(self.unknown)}" if self.unknown else ""
        if self.named or not self.known:
            return f"assumes that the intruder knows: {', '.join(self.known) or 'no column'}{rest}"
        count = len(self.known)
        every = "" if self.unknown else "all " if count > 1 else "the "
        return f"assumes that the intruder knows: {every}{count} published {plural(count, 'column')}{rest}"

    @property
    def unmasked_sentence(self) -> str:
        """Names of the columns published without masking, as a sentence."""
        if not self.unmasked:
            return "published unmasked: no column"
        return f"published unmasked: {', '.join(self.unmasked)}"

    def to_dict(self) -> dict[str, list[str]]:
        """Return the lists of columns, JSON-ready."""
        return {"known": list(self.known), "unknown": list(self.unknown), "unmasked": list(self.unmasked)}


def knowledge_of_pair(pair: Pair) -> Knowledge:
    """Return what the intruder knows of the people in a published file, by the roles of its columns."""
    names = pair.original.table_names if pair.table is None else pair.table.names
    masked = pair.disclosure.columns or pair.columns
    return knowledge_of_columns(pair.original.roles, dict.fromkeys([*names, *pair.columns]), masked)


def knowledge_of_releases(original: Original) -> Knowledge:
    """Return what the intruder will know of the people in a release of prepared data."""
    names = original.roles.published(dict.fromkeys([*original.table_names, *original.columns]))
    return knowledge_of_columns(original.roles, names, original.columns)


def knowledge_of_columns(roles: Roles, published: Iterable[str], masked: Collection[str]) -> Knowledge:
    """Return the knowledge of the intruder from the roles and names of the published columns."""
    names = list(published)
    known = roles.known_columns(names)
    others = {*known, *roles.key, *roles.columns_with("unit")}
    remarks = dict.fromkeys(roles.columns_with("recode"), "recoded")
    remarks |= dict.fromkeys(roles.columns_with("unit"), "unit") | dict.fromkeys(roles.key, "key")
    return Knowledge(
        known=tuple(known),
        unknown=tuple(name for name in names if name not in others),
        unmasked=tuple(
            f"{name} ({remarks[name]})" if name in remarks else name for name in names if name not in masked
        ),
        named=roles.known is not None,
    )
