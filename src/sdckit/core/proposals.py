"""Propose a role for each column of a table, and recodings worth trying, from what the columns look like."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core import cells
from sdckit.core.recode import Recoding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import narwhals as nw

    from sdckit.core.guesses import Guess
    from sdckit.core.roles import Roles

RARE = 20  # records of a category below which merging it is proposed
LONG_CODE = 100  # code from which the first digits are taken for coarser classes
BANDS = 12  # bands into which the middle nine tenths of the values are proposed to fall


class Proposal(NamedTuple):
    """The role that a column would get, whether it is decided, and why."""

    role: str
    decided: bool
    reason: str


def propose_roles(guesses: Mapping[str, Guess], asked: Roles) -> dict[str, Proposal]:
    """Return the role of each column: the one asked for, else what its looks suggest."""
    taken = {"unit": asked.unit is not None, "weights": asked.weights is not None, "key": bool(asked.key)}
    found = {}
    for name, guess in guesses.items():
        given = _given_role(name, asked)
        if given is not None:
            found[name] = Proposal(given, decided=True, reason=f"as asked; {guess.reason}")
            continue
        role = _role_for(guess)
        if role == "variable" and asked.variables:  # other columns are named to be masked
            role = "untouched"
        if taken.get(role):  # one column has this role already
            role = "drop" if role == "key" else "untouched"
        taken |= {role: True} if role in taken else {}
        reason = f"{guess.reason}; masked unless named" if role == "weights" else guess.reason
        found[name] = Proposal(role, not guess.undecided, reason)
    return found


def _given_role(name: str, asked: Roles) -> str | None:
    """Return the role that the user gave to a column; None without one."""
    for role in ("key", "unit", "drop", "weights", "by", "untouched", "recode", "variables"):
        if name in asked.columns_with(role):
            return {"variables": "variable", "recode": "untouched"}.get(role, role)
    return None


def _role_for(guess: Guess) -> str:
    """Return the role to propose for a column that looks so: codes and dates stay untouched."""
    if guess.role == "nested" or (guess.role == "text" and guess.near_unique):
        return "drop"
    return {"code": "untouched", "date": "untouched", "text": "untouched"}.get(guess.role, guess.role)


def roles_with(asked: Roles, proposals: Mapping[str, Proposal]) -> Roles:
    """Return the roles that hold if all proposals are accepted."""
    names: dict[str, list[str]] = {}
    for name, proposal in proposals.items():
        names.setdefault(proposal.role, []).append(name)
    recoded = set(asked.columns_with("recode"))
    return replace(
        asked,
        variables=tuple(names.get("variable", ())),
        key=asked.key or tuple(names.get("key", ())),
        drop=tuple(names.get("drop", ())),
        untouched=tuple(name for name in names.get("untouched", ()) if name not in recoded),
        unit=next(iter(names.get("unit", ())), None),
        weights=next(iter(names.get("weights", ())), None),
    )


def propose_recodings(
    name: str, column: nw.Series[Any], guess: Guess, na: Sequence[float], *, weights: bool
) -> list[Recoding]:
    """Return recodings of a column that may be worth trying, coarser ones last; none for identifiers.

    Survey weights (`weights`) are rounded, other numbers are put into bands.
    """
    if guess.role in {"key", "unit", "nested"}:
        return []
    if guess.role == "date":
        return [Recoding(name, "month"), Recoding(name, "year"), Recoding(name, "year", 10)]
    if guess.role in {"variable", "weights"} and column.dtype.is_numeric():
        return _band_recodings(name, cells.as_floats(column, na), "round" if weights else "band")
    return [Recoding(name, "rare", RARE), *_digit_recodings(name, column, na)]


def _band_recodings(name: str, values: Any, way: str) -> list[Recoding]:
    """Return bands, or rounding, to about a twelfth and a fourth of the spread of the values."""
    seen = values[~np.isnan(values)]
    if seen.size < 2:
        return []
    low, high = np.quantile(seen, [0.05, 0.95])  # the extremes stay private
    sizes = dict.fromkeys(round_size((high - low) / parts) for parts in (BANDS, BANDS / 3) if high > low)
    return [Recoding(name, way, size) for size in sizes]


def _digit_recodings(name: str, column: nw.Series[Any], na: Sequence[float]) -> list[Recoding]:
    """Return bands of 10, 100 ... that keep the first digits of long codes; none for short codes and text."""
    if not column.dtype.is_numeric() or cells.beyond_floats(column):
        return []
    largest = np.fmax.reduce(cells.as_floats(column, na))
    powers = [10.0**power for power in range(1, 16) if 10.0**power <= largest]
    return [Recoding(name, "band", size) for size in powers] if largest >= LONG_CODE else []


def round_size(size: float) -> float:
    """Return the nearest of 1, 2, 5, 10, 20, 50 ... and of 0.1, 0.2, 0.5 ... to a positive number."""
    power = 10.0 ** math.floor(math.log10(size))
    digit = min((1, 2, 5, 10), key=lambda d: abs(math.log(size / power / d)))
    return float(f"{digit * power:.1g}")
