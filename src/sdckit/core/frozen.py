"""Dictionaries and lists that cannot be changed, for records that are frozen as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn


class FrozenDict(dict[str, Any]):
    """A dictionary that cannot be changed after it is made; dictionaries and lists in it cannot either.

    `dict(frozen)` is a copy that can be changed.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__({name: frozen(value) for name, value in given.items()})

    def __hash__(self) -> int:  # type: ignore[override]  # plain dictionaries have none
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make the dictionary again, for pickles and copies: not by setting its items."""
        return FrozenDict, (dict(self),)

    def refuse_change(self, *_given: Any, **_named: Any) -> NoReturn:
        """Raise TypeError; it takes the place of every method that changes a dictionary."""
        raise TypeError("these values cannot be changed; make a copy with dict()")

    __setitem__ = __delitem__ = __ior__ = refuse_change
    clear = pop = popitem = setdefault = update = refuse_change


def frozen(value: Any) -> Any:
    """Return a dictionary as `FrozenDict`, a list as tuple, both with all that they hold; else the value."""
    if isinstance(value, Mapping):
        return FrozenDict(value)
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value
