"""The state of the page: a job and perhaps a setting chosen on the map; and the history of such states."""

from __future__ import annotations

from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import PurePath
from threading import Lock
from typing import TYPE_CHECKING, Any

from sdckit.job.draft import draft_content
from sdckit.job.read import check_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sdckit.core.description import Description

MOST_STATES = 200  # that undo can go back over
UNJUDGED = ("output", "private")  # sections that no setting is judged by


@dataclass(frozen=True)
class Pick:
    """A setting that was chosen on the map: a method and the values of its parameters."""

    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or not isinstance(self.parameters, dict):
            raise ValueError(f"the chosen setting is {self.method!r}; choose one on the map")  # noqa: TRY004
        object.__setattr__(self, "parameters", deepcopy(self.parameters))


@dataclass(frozen=True)
class State:
    """The content of a `recommend` job, its paths relative to the start folder, and the chosen setting.

    Without a chosen setting, the recommended one is meant. A content that is no job is refused, and a copy of
    it is kept, so that a state never changes.
    """

    job: Mapping[str, Any]
    pick: Pick | None = None

    def __post_init__(self) -> None:
        check_job(self.job)
        object.__setattr__(self, "job", deepcopy(dict(self.job)))

    @property
    def roles(self) -> dict[str, Any]:
        """Roles and recodings of the job by the names of arguments."""
        return roles_of_job(self.job)

    def with_section(self, name: str, entries: Any) -> State:
        """Return the state with another section; without entries the section is dropped.

        The chosen setting is dropped, too, where it was chosen under other conditions.
        """
        others = {section: found for section, found in self.job.items() if section != name}
        return self.with_job(others | ({name: entries} if entries else {}))

    def with_job(self, job: Mapping[str, Any]) -> State:
        """Return the state with another job; the chosen setting is kept if only outputs differ."""
        return State(job, self.pick if judged(job) == judged(self.job) else None)

    def to_json(self) -> dict[str, Any]:
        """Return the state as a JSON-ready dict."""
        pick = self.pick and {"method": self.pick.method, "parameters": deepcopy(self.pick.parameters)}
        return {"job": deepcopy(self.job), "pick": pick}

    @classmethod
    def from_json(cls, found: Any) -> State:
        """Return the state that a dict made by `to_json` describes; raise ValueError if it describes none."""
        try:
            job, pick = found["job"], found["pick"]
            return cls({**job}, None if pick is None else Pick(pick["method"], pick["parameters"]))
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"a stored state is damaged ({error}); start with a fresh one") from error


def judged(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections of a job that its settings are judged by."""
    return {name: part for name, part in job.items() if name not in UNJUDGED}


def roles_of_job(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the roles and recodings of a job by the names of arguments."""
    return dict(job.get("roles", {})) | ({"recode": job["recode"]} if job.get("recode") else {})


def first_state(found: Description, data: str, source: Mapping[str, Any]) -> State:
    """Return the state that the work on a file begins with: the draft that `sdckit describe` writes.

    `data` is the path of the file relative to the start folder, `source` the section on the input. Columns
    whose role is not decided have none.
    """
    return State(draft_content(found, dict(source) | {"data": data}, PurePath(data)))


@dataclass(frozen=True)
class Past:
    """States, oldest first, the position of the current one, and how often anything was changed."""

    states: tuple[State, ...]
    position: int = 0
    version: int = 1

    def __post_init__(self) -> None:
        whole = all(type(number) is int for number in (self.position, self.version))
        if not (whole and 0 <= self.position < len(self.states) <= MOST_STATES and self.version >= 1):
            where = f"{self.position} of {len(self.states)}"
            raise ValueError(f"the history is at state {where}; start with a fresh one")

    def with_state(self, state: State) -> Past:
        """Return the history with a new current state, without those that were undone."""
        kept = (*self.states[: self.position + 1], state)[-MOST_STATES:]
        return Past(kept, len(kept) - 1, self.version + 1)

    def moved(self, by: int) -> Past:
        """Return the history at an earlier or a later state."""
        return Past(self.states, self.position + by, self.version + 1)


class StaleError(ValueError):
    """A change was made from a state that is not the current one any more."""


class History:
    """States that can be undone and done again; each change is stored before it counts.

    `store` is called with the new content before it takes the place of the old one: if it raises an error,
    nothing has changed. `message` says what was wrong with a history that was read, None if nothing.
    """

    def __init__(
        self, past: Past, store: Callable[[Past], None] | None = None, message: str | None = None
    ) -> None:
        self._past = past
        self._store = store
        self._lock = Lock()
        self.message = message

    @property
    def past(self) -> Past:
        """All states with the position of the current one."""
        return self._past

    @property
    def current(self) -> State:
        """The state that the page shows."""
        return self._past.states[self._past.position]

    @property
    def version(self) -> int:
        """A number that rises with every change, so that a form made from an older state is recognised."""
        return self._past.version

    @property
    def can_undo(self) -> bool:
        """True if there is an earlier state."""
        return self._past.position > 0

    @property
    def can_redo(self) -> bool:
        """True if a state was undone."""
        return self._past.position + 1 < len(self._past.states)

    def add(self, state: State, seen: int | None = None) -> None:
        """Make a state the current one and drop those that were undone; an equal one changes nothing.

        `seen` is the version that the change was made from: `StaleError` is raised unless it is the present
        one. Without it, nothing is checked.
        """
        with self._changing(seen):
            if state != self.current:
                self._become(self._past.with_state(state))

    def undo(self, seen: int | None = None) -> None:
        """Go back to the earlier state, if there is one; `seen` as for `add`."""
        with self._changing(seen):
            if self.can_undo:
                self._become(self._past.moved(-1))

    def redo(self, seen: int | None = None) -> None:
        """Go on to the state that was undone, if there is one; `seen` as for `add`."""
        with self._changing(seen):
            if self.can_redo:
                self._become(self._past.moved(1))

    @contextmanager
    def _changing(self, seen: int | None) -> Iterator[None]:
        """Let one thread at a time change the history; raise an error for a change of what is no more."""
        with self._lock:
            if seen not in (None, self.version):
                raise StaleError("the job was changed meanwhile, perhaps in another tab; reload this page")
            yield

    def _become(self, past: Past) -> None:
        """Store other content, then take it over."""
        if self._store is not None:
            self._store(past)
        self._past = past
