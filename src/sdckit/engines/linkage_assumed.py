"""What linkage of files read in blocks assumes: which columns the intruder knows, and what is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sdckit.metrics.knowledge import Knowledge, knowledge_of_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.disclosure import Disclosure
    from sdckit.core.roles import Roles


@dataclass(frozen=True)
class Assumed:
    """What linkage on an engine is about: known variables and unmasked columns, and what is published.

    `variables` are all that are measured, `known` those of them that the intruder knows, `cells` the known
    columns that were not masked, `names` all that he knows.
    """

    variables: tuple[str, ...]
    known: tuple[str, ...]
    cells: tuple[str, ...]
    names: frozenset[str]
    disclosure: Disclosure
    knowledge: Knowledge
    coded: bool = False  # numbers stand for missing cells, which differ but are read alike
    by_position: bool = True  # rows are paired by their order, which is published
    stratified: bool = False  # columns that form strata are named, so that strata can be searched

    @classmethod
    def of(
        cls, roles: Roles, original: Sequence[str], masked: Sequence[str], disclosure: Disclosure
    ) -> Assumed:
        """Return what is known, from the roles and the names of the columns of both files."""
        names = frozenset(roles.known_columns([*roles.variables, *masked]))
        others = {*roles.variables, *disclosure.columns}
        return cls(
            roles.variables,
            tuple(name for name in roles.variables if name in names),
            tuple(n for n in roles.known_columns(masked) if n not in others and n in original),
            names,
            disclosure,
            knowledge_of_columns(
                roles, dict.fromkeys([*masked, *roles.variables]), disclosure.columns or roles.variables
            ),
            bool(roles.na),
            not roles.key,
            bool(roles.by),
        )

    @property
    def again(self) -> bool:
        """True if the intruder can run the method again: it draws nothing, and he knows what it reads."""
        one = self.disclosure
        reads = {*one.by, *(() if one.one_by_one else one.columns or self.variables)}
        return bool(one.deterministic and self.known and reads <= self.names)
