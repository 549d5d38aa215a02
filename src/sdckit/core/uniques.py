"""What known columns that are not masked give away by themselves: uniques and the floor of the risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sdckit.core.classes import Uniques, cell_numbers, class_numbers, uniques_of
from sdckit.core.text import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sdckit.core.prepared import PreparedTable
    from sdckit.core.roles import Roles
    from sdckit.kernels.jit import Ints

RAISED = 0.01  # rise of the floor from which survey weights are named by themselves


@dataclass(frozen=True)
class Floor:
    """Uniques and floor of the known untouched columns: together, of each alone, and without each.

    No masking of the other columns brings the risk of linkage below `floor`, the mean of 1 / class size.
    """

    columns: tuple[str, ...]
    together: Uniques
    alone: Mapping[str, Uniques]
    without: Mapping[str, Uniques]

    @property
    def share(self) -> float:
        """Share of the records that stand alone on these columns."""
        return self.together.share

    @property
    def floor(self) -> float:
        """Mean of 1 / class size, the least risk of linkage."""
        return self.together.floor

    def raising(self, weights: str | None = None) -> list[str]:
        """Return the columns by how much they raise the floor, most first; survey weights before all."""
        return sorted(
            self.columns,
            key=lambda name: (name != weights, self.without[name].floor, -self.alone[name].floor),
        )


def known_untouched(columns: Iterable[str], roles: Roles) -> list[str]:
    """Return those of a table's columns that are published without masking and known to the intruder."""
    return [name for name in roles.known_columns(roles.published(columns)) if name not in roles.variables]


def others_of(numbers: Sequence[Ints], n: int) -> list[Ints]:
    """Return, for each of the numbered columns, the classes of all the other ones."""
    before = [class_numbers([], n)]
    after = [class_numbers([], n)]
    for one in numbers[:-1]:
        before.append(class_numbers([before[-1], one], n))
    for one in reversed(numbers[1:]):
        after.append(class_numbers([after[-1], one], n))
    return [class_numbers(pair, n) for pair in zip(before, reversed(after), strict=True)] if numbers else []


def floor_of(numbers: Mapping[str, Ints], n: int, others: Sequence[Ints] | None = None) -> Floor:
    """Return the floor of columns given by the number of each cell; `others` are those of `others_of`."""
    rest = others_of(list(numbers.values()), n) if others is None else others
    return Floor(
        tuple(numbers),
        uniques_of(class_numbers(numbers.values(), n)),
        {name: uniques_of(class_numbers([one], n)) for name, one in numbers.items()},
        {name: uniques_of(one) for name, one in zip(numbers, rest, strict=True)},
    )


def floor_of_data(data: PreparedTable, roles: Roles | None = None) -> Floor:
    """Return the floor of prepared data: of its known columns that are not masked, as they are published.

    Other `roles` than those of the data tell what the intruder of a scenario knows.
    """
    named = data.table is not None and data.table.frame is not None
    names = known_untouched(data.table.names, roles or data.roles) if data.table and named else []
    return floor_of({name: cell_numbers(data.published_column(name)) for name in names}, data.n)


def floor_text(columns: Sequence[str], found: Uniques, variables: Sequence[str]) -> str:
    """Return the sentence on what untouched columns give away by themselves, with remedies."""
    if not columns:
        return "no untouched column is published and known, so that the masked columns alone decide the risk"
    word = "columns" if len(columns) > 1 else "column"
    what = f"masking of {shortened(variables)}" if variables else "masking"
    return (
        f"the untouched {word} {', '.join(columns)} alone single{'' if len(columns) > 1 else 's'} out "
        f"{found.share:.0%} of the records; no {what} can bring the risk below {found.floor:.2g}. "
        "Recode or drop them, or declare them unknown"
    )


def weights_text(floor: Floor, weights: str | None) -> str | None:
    """Return the sentence on survey weights that raise the floor; None where they do not."""
    if weights is None or weights not in floor.columns:
        return None
    without = floor.without[weights].floor
    if floor.floor - without < RAISED:
        return None
    return (
        f"the survey weights {weights} alone raise the least possible risk from {without:.2g} to "
        f"{floor.floor:.2g}; round them, drop them or declare them unknown"
    )
