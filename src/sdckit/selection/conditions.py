"""Roles, rules and rounding that all maskings of a search share and that a release must repeat."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sdckit.core.text import shortened
from sdckit.metrics.original import Original

if TYPE_CHECKING:
    from sdckit.core.roles import Roles


@dataclass(frozen=True)
class Conditions:
    """Column roles, edit rules, rules for ties and missing cells, and rounding of a search.

    `weights` are the survey weights if they were given as numbers; None if a column has them.
    """

    roles: Roles
    weights: Any = field(default=None, compare=False)
    rules: Any = None
    ties: str = "average"
    missing: str = "pairwise"
    decimals: int | str | None = None

    @classmethod
    def of(cls, original: Original, **more: Any) -> Conditions:
        """Return the conditions of a search on prepared data, with its rules and options."""
        numbers = original.weights if original.roles.weights is None else None
        return cls(original.roles, numbers, **more)

    def prepare(self, data: Any) -> Original:
        """Prepare data for a release with these roles; raise ValueError if prepared with other roles."""
        roles = self.roles
        weights = self.weights if roles.weights is None else roles.weights
        original = Original.of(
            data, columns=roles.variables, weights=weights, by=roles.by or None, na=roles.na or None
        )
        for what, ours, theirs in (
            ("strata by", original.roles.by, roles.by),
            ("missing codes", original.roles.na, roles.na),
        ):
            if set(ours) != set(theirs):
                found, wanted = (shortened([str(one) for one in names]) or "none" for names in (ours, theirs))
                raise ValueError(
                    f"the data are prepared with {what} {found} and the recommendation is for {wanted}; "
                    "apply it to the data that it was made with"
                )
        return original
