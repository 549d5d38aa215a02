"""Roles, rules and rounding that all maskings of a search share and that a release must repeat."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sdckit.core.frame_kinds import USUAL
from sdckit.core.roles import OPTIONS, Roles
from sdckit.core.scenarios import Scenario  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.original import Original

COMPARED = {  # roles that decide the risk, in the words of an error
    option: {"by": "strata by", "na": "missing codes"}.get(option, option)
    for option in OPTIONS
    if option not in {"columns", "weights"}
}


@dataclass(frozen=True)
class Conditions:
    """Column roles, edit rules, rules for ties and missing cells, rounding and scenarios of a search.

    `weights` are the survey weights if they were given as numbers; None if a column has them. `records` and
    `kind` are the number of records of the data and the type of their dataframe, for results; `too_few` says
    which stratum is too small for settings that were left out, and is empty if none was.
    """

    roles: Roles
    weights: Any = field(default=None, compare=False)
    rules: Any = None
    ties: str = "average"
    missing: str = "pairwise"
    decimals: int | str | None = None
    scenarios: tuple[Scenario, ...] = ()
    records: int = field(default=0, compare=False)
    kind: str = field(default=USUAL, compare=False)
    too_few: str = field(default="", compare=False)

    @classmethod
    def of(cls, original: Original, **more: Any) -> Conditions:
        """Return the conditions of a search on prepared data, with its rules and options."""
        numbers = original.weights if original.roles.weights is None else None
        return cls(original.roles, numbers, records=original.n, kind=original.kind, **more)

    def prepare(self, data: Any) -> Original:
        """Prepare data for a release with these roles; raise ValueError if prepared with other roles."""
        roles = self.roles
        options: dict[str, Any] = {
            option: getattr(roles, option) or None for option in OPTIONS if option != "columns"
        }
        if roles.weights is None:
            options["weights"] = self.weights
        original = Original.of(data, columns=roles.variables, **options)
        for option, what in COMPARED.items():
            ours, theirs = (set(names.columns_with(option)) for names in (original.roles, roles))
            if ours != theirs:
                found, wanted = (", ".join(sorted(map(str, names))) or "none" for names in (ours, theirs))
                raise ValueError(
                    f"the data are prepared with {what} {found} and the recommendation is for {wanted}; "
                    "apply it to the data that it was made with"
                )
        return original
