"""The state of the page: a job and perhaps a setting chosen on the map; and the history of such states."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath
from threading import Lock
from typing import TYPE_CHECKING, Any

from sdckit.io import atomic
from sdckit.io.atomic import PREFIX, PRIVATE_FOLDER, checksum, sha256_of, sweep_drafts
from sdckit.io.formats import stem_of
from sdckit.request.draft import draft_content
from sdckit.request.options import job_options
from sdckit.request.toml import check_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sdckit.core.description import Description


MOST_STATES = 200  # that undo can go back over
DAMAGE = (AttributeError, KeyError, RecursionError, TypeError, ValueError)  # of reading a damaged history
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
        except DAMAGE as error:
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
                kept = (*self._past.states[: self._past.position + 1], state)[-MOST_STATES:]
                self._become(kept, len(kept) - 1)

    def move(self, by: int, seen: int | None = None) -> None:
        """Go to an earlier state (-1) or one that was undone (1), if there is one; `seen` as for `add`."""
        with self._changing(seen):
            if self.can_redo if by > 0 else self.can_undo:
                self._become(self._past.states, self._past.position + by)

    @contextmanager
    def _changing(self, seen: int | None) -> Iterator[None]:
        """Let one thread at a time change the history; raise an error for a change of what is no more."""
        with self._lock:
            if seen not in (None, self.version):
                raise StaleError("the job was changed meanwhile, perhaps in another tab; reload this page")
            yield

    def _become(self, states: tuple[State, ...], position: int) -> None:
        """Store other states with the position of the current one, then take them over."""
        past = Past(states, position, self.version + 1)
        if self._store is not None:
            self._store(past)
        self._past = past


HISTORY, FORMAT = "history.json", 1
DAMAGED = "history-damaged-{}.json"
SUFFIX = "-sdckit"
REMEDY = "rename it, or the data file"


@dataclass(frozen=True)
class Stamp:
    """Name, size, time of change, inode and SHA-256 of a file as it was opened."""

    name: str
    size: int
    mtime_ns: int
    inode: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Return the stamp of a file; one that changes meanwhile differs from it."""
        found = path.stat()  # before the content, so that a later change has another time
        return cls(path.name, found.st_size, found.st_mtime_ns, found.st_ino, sha256_of(path))

    def looks_equal(self, path: Path) -> bool:
        """Return True if size, time and inode of a file are those of the stamp; its content is not read."""
        found = path.stat()
        return (self.size, self.mtime_ns, self.inode) == (found.st_size, found.st_mtime_ns, found.st_ino)


class WorkFolder:
    """The folder for the work on one data file, beside it; it is made when first needed.

    Parameters
    ----------
    start
        The folder that paths of jobs are relative to.
    data
        The data file, absolute or relative to `start`. Make the work folder before the data are read: then a
        change of the file is noticed, whenever it happens.

    Raises
    ------
    OSError
        There is a link, a file, a folder of another user or one with other files in its place.
    """

    def __init__(self, start: Path, data: Path | str) -> None:
        self.start: Path = start.absolute()
        self.data: Path = self.start / data
        self.path: Path = self.data.with_name(f"{stem_of(self.data)}{SUFFIX}")
        self.stamp: Stamp = Stamp.of(self.data)
        self._other: Stamp | None = None  # of the data file after a change
        self._written: tuple[int, int] | None = None  # of the file of the history as last read or written
        self._refuse_other_folder()
        self._refuse_other_data()

    @property
    def relative(self) -> str:
        """Path of the folder as jobs have it, relative to the start folder."""
        return os.path.relpath(self.path, self.start)

    @property
    def is_stored(self) -> bool:
        """True if a history was written."""
        return (self.path / HISTORY).exists()

    def ensure(self) -> Path:
        """Make the folder, for its owner alone, unless it is there; return its path."""
        self._refuse_other_folder()
        with atomic.explain_write_errors(self.path):
            self.path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            self.path.chmod(PRIVATE_FOLDER)  # whatever the umask, and whoever opened it up
        return self.path

    def open_history(self, first: State) -> History:
        """Return the stored history; one that begins with the state `first` if there is none.

        A damaged history stays under another name; the message of the new one says so.
        """
        file = self.path / HISTORY
        sweep_drafts(self.path)
        if not file.exists():
            return History(Past((first,)), self._store)
        try:
            past, self.stamp = self._read(file)
            return History(past, self._store)
        except DAMAGE:
            aside = self._set_aside(file)
            fresh = Past((first,))
            self._written = _identity_of(file)
            self._store(fresh)
            fact = f"the history of '{self.data.name}' was damaged"
            return History(fresh, self._store, f"{fact}; it is kept as '{aside.name}', and a new one begins")

    def stored_dialect(self) -> dict[str, Any]:
        """Return the section on the input of the stored job without the path; empty if nothing is stored."""
        try:
            past, _ = self._read(self.path / HISTORY)
        except (OSError, *DAMAGE):
            return {}
        section = past.states[past.position].job["input"]
        return {name: value for name, value in section.items() if name != "data"}

    def changed_on_disk(self) -> bool:
        """Return True if the data file is another one than when it was opened, or gone.

        Its content is read only where size, time or inode differ.
        """
        try:
            if self.stamp.looks_equal(self.data):
                return False
            if self._other is not None and self._other.looks_equal(self.data):
                return True
            found = Stamp.of(self.data)
        except OSError:
            return True
        if found.sha256 != self.stamp.sha256:
            self._other = found  # not read again to find that out
            return True
        self.stamp = found  # a copy of the same content: not read again
        return False

    def accept_data(self, history: History) -> None:
        """Take the data file as it is now for the one that was opened, and store the history."""
        self.stamp = Stamp.of(self.data)
        self.store(history)

    def store(self, history: History) -> None:
        """Write the history, also one that was not changed yet."""
        self._store(history.past)

    def _refuse_other_folder(self) -> None:
        """Raise an error if what has the name of the folder is not the folder for the work on this file."""
        path = self.path
        if path.is_symlink():
            raise FileExistsError(f"'{path}' is a link and no folder for the page; {REMEDY}")
        if not path.exists():
            return
        if not path.is_dir():
            raise FileExistsError(f"'{path}' is a file and no folder for the page; {REMEDY}")
        if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            raise PermissionError(f"folder '{path}' belongs to another user; {REMEDY}")
        file = path / HISTORY
        if file.is_symlink() or (
            not file.is_file() and any(not one.name.startswith(PREFIX) for one in path.iterdir())
        ):
            raise FileExistsError(f"folder '{path}' holds other files; {REMEDY}")

    def _refuse_other_data(self) -> None:
        """Raise an error if the folder is for a data file of another name, such as survey.parquet."""
        name = _data_name(self.path / HISTORY)
        if name not in (None, self.data.name):
            raise FileExistsError(f"folder '{self.path}' is for '{name}', another data file; {REMEDY}")

    def _read(self, file: Path) -> tuple[Past, Stamp]:
        """Return the stored states, their paths relative to the start folder of now, and the data's stamp."""
        written = _identity_of(file)
        content = json.loads(file.read_text(encoding="utf-8"))
        stated = content.pop("checksum")
        if stated != checksum(content) or content["format"] != FORMAT:
            raise ValueError("wrong checksum")
        start = Path(os.path.normpath(self.path / content["start"]))
        states = (State.from_json(one) for one in content["states"])
        moved = tuple(replace(one, job=_moved_paths(one.job, start, self.start)) for one in states)
        past = Past(moved, content["position"], content["version"])
        stamp = Stamp(**content["data"])
        self._written = written
        return past, stamp

    def _store(self, past: Past) -> None:
        """Write the history completely or not at all; raise an error if another program has changed it."""
        file = self.ensure() / HISTORY
        if _identity_of(file) != self._written:
            raise FileExistsError(f"'{file}' was changed by another sdckit app; close this page or that one")
        content: dict[str, Any] = {
            "format": FORMAT,
            "start": os.path.relpath(self.start, self.path),
            "data": asdict(self.stamp),
            "position": past.position,
            "version": past.version,
            "states": [state.to_json() for state in past.states],
        }
        content["checksum"] = checksum(content)
        with atomic.atomic(file, overwrite=True, private=True) as draft:
            draft.write_text(json.dumps(content, indent=1), encoding="utf-8")
        self._written = _identity_of(file)

    def _set_aside(self, file: Path) -> Path:
        """Copy a damaged history to a free name; the file itself stays, as it marks the folder as ours."""
        number = 1
        while (aside := self.path / DAMAGED.format(number)).exists():
            number += 1
        with atomic.explain_write_errors(aside):
            shutil.copy2(file, aside)
        return aside


def _identity_of(file: Path) -> tuple[int, int] | None:
    """Return inode and time of change of a file, by which a replaced one is known; None if there is none."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _data_name(file: Path) -> str | None:
    """Return the name of the data file that a history is about; None if that cannot be read."""
    try:
        return str(json.loads(file.read_text(encoding="utf-8"))["data"]["name"])
    except (OSError, *DAMAGE):
        return None


def _moved_paths(job: Mapping[str, Any], before: Path, now: Path) -> dict[str, Any]:
    """Return the content of a job whose relative paths lead from another folder to the same files."""
    content = {name: dict(section) if isinstance(section, dict) else section for name, section in job.items()}
    for option in job_options("recommend") if before != now else ():
        value = content.get(option.section, {}).get(option.key) if option.kind == "path" else None
        if value is not None and not Path(value).is_absolute():
            content[option.section][option.key] = os.path.relpath(before / value, now)
    return content
