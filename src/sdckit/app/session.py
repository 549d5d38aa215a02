"""What the page works on: the start folder, the open file with the states of its job, and running work."""

from __future__ import annotations

import asyncio
import secrets
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sdckit.app import folders
from sdckit.app.job import effective_job, job_file_text, open_job
from sdckit.app.running import Running
from sdckit.app.state import State, WorkFolder, first_state, judged
from sdckit.core.description import describe_table
from sdckit.core.roles import asked_roles
from sdckit.core.table import Table
from sdckit.io import atomic, files
from sdckit.io.formats import Dialect
from sdckit.selection.search import Search

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sdckit.app.job import OpenedJob
    from sdckit.app.state import History
    from sdckit.arrays import Floats
    from sdckit.core.description import Description
    from sdckit.io.files import Source
    from sdckit.metrics.original import Original
    from sdckit.request.toml import Job
    from sdckit.selection.search import Kept

Result = TypeVar("Result")
SAMPLE = "sample.csv"
JOB = "job.toml"  # in the work folder: the job as it is now
CHANGED = "{} was changed on disk after it was opened; what is shown here is about the file as it was"
GONE = "{} is not there any more; what is shown here is about the file as it was"


@dataclass
class OpenFile:
    """A file that was read, the roles that sdckit proposes for its columns, and the states of its job."""

    path: Path
    name: str  # its path from the start folder, as the job has it
    source: Source
    work: WorkFolder
    history: History  # the states of the job, for undo and redo
    guess: Description
    edges: dict[str, Floats] = field(default_factory=dict)  # of its histograms, whatever the roles
    _made: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def state(self) -> State:
        """The current state of the job."""
        return self.history.current

    def once(self, what: str, key: Any, make: Callable[[], Any]) -> Any:
        """Return what `make` returns, called again only where the key is another one than the last time."""
        if what not in self._made or self._made[what][0] != key:
            self._made[what] = key, make()
        return self._made[what][1]

    def job(self, *, picked: bool = True) -> Job:
        """Return the job of the current state with paths from the start folder; `picked`: with the pick."""
        state = self.state if picked else State(self.state.job)
        return effective_job(state, self.work, self.source.frame.height, self.source.frame.columns)

    def change(self, job: Mapping[str, Any], seen: int | None = None) -> None:
        """Make another job the current one; a setting chosen on the map is kept if only outputs differ.

        `seen` is the version of the history that the job was made from; see `History.add`.
        """
        self.become(self.state.with_job(job), seen)

    def become(self, state: State, seen: int | None = None) -> None:
        """Make another state the current one, and keep it on disk."""
        self.history.add(state, seen)
        self._write_job()

    def move(self, *, forward: bool) -> None:
        """Undo the last change, or do again what was undone; at the end of the states nothing happens."""
        before = self.history.version
        self.history.move(1 if forward else -1)
        if self.history.version != before:
            self._write_job()

    def keep(self) -> None:
        """Write history and job into the work folder, from which the page goes on after a crash."""
        self.work.store(self.history)
        self._write_job()

    def _write_job(self) -> None:
        """Write the job as it is now into the work folder, as a job file; the history is there before it."""
        if not self.work.is_stored:  # an unchanged proposal adds no state
            self.work.store(self.history)
        text = job_file_text(self.job(), Path(self.work.relative), self.source.frame.columns)
        with atomic.atomic(self.work.path / JOB, overwrite=True, private=True) as draft:
            draft.write_text(text, encoding="utf-8")

    def repair(self) -> None:
        """Write the job again if a stored history is there: a kill may have left the job of the state before.

        A folder that cannot be written is left as it is; the next change says so.
        """
        if self.work.is_stored:
            with suppress(OSError):
                self._write_job()


class Session:
    """All that the page knows while it runs; what must survive is on disk."""

    def __init__(self, start: Path, data: Path | None = None, preview: bool = True) -> None:  # noqa: FBT001, FBT002
        self.start = start
        self.data = data
        self.preview = preview
        self.file: OpenFile | None = None
        self.openings: int = 0  # of files, since the start
        self.notes: list[tuple[str, str]] = []  # kind and text of messages for the next screen
        self.secret: bytes = secrets.token_bytes(32)  # of the maskings that panels show
        self.search: Running = Running(start, "search", self.announce)
        self.release: Running = Running(start, "release", self.announce)
        self._changes, self._changed = 0, asyncio.Event()
        self._worker = ThreadPoolExecutor(1)  # one thread: prepared data and warnings are not shared safely

    def busy(self) -> bool:
        """Return True while a search or a release runs."""
        return self.search.running or self.release.running

    def close(self) -> None:
        """Stop what is running; a search keeps what it measured, and no release is left half written."""
        self.search.interrupt()
        self.release.interrupt()
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def work(self, function: Callable[..., Result], *values: Any) -> Result:
        """Call a function in the thread that reads and measures data; its warnings are not printed."""

        def quiet() -> Result:
            """Call the function without printing warnings, which may hold cells of the file."""
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return function(*values)

        return await asyncio.get_running_loop().run_in_executor(self._worker, quiet)

    def announce(self) -> None:
        """Wake the event streams up: something that they show has changed."""
        self._changes += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def moment(self) -> int:
        """Return a number that rises with every change that event streams show."""
        return self._changes

    async def next_change(self, seen: int) -> None:
        """Wait until something has changed that event streams show since an earlier moment."""
        while self._changes == seen:
            await self._changed.wait()

    def start_search(self) -> None:
        """Start the search of the current job; one that runs is left alone."""
        self.search.start({"job": self.require_file().job(picked=False).content}, self._searchable())

    def report(self) -> Path | None:
        """Return the path of the report that the last release has written; None without one."""
        if not self.release.state.report:
            return None
        return self.start / str(self.release.about[1].job["output"]["report"])

    def search_is_current(self) -> bool:
        """Return True if the last search was for the job and the data as they are now."""
        return self.file is not None and self.search.about == self._searchable()

    def _searchable(self) -> Any:
        """Return what a search depends on: the data and the sections that settings are judged by."""
        file = self.require_file()
        return file.path, file.work.stamp.sha256, judged(file.state.job)

    def tell(self, text: str, kind: str = "info") -> None:
        """Show a message on the next screen."""
        self.notes.append((kind, text))

    def open(self, name: str, dialect: Mapping[str, Any] | None = None) -> None:
        """Read a file below the start folder, and go on with the job that was begun on it, if there is one.

        `dialect` has the entries of the section on the input of a job, but for the path; None: those of the
        job that was begun, else the defaults.
        """
        path = folders.confined(self.start, name)
        if path.exists() and not path.is_file():  # reading a pipe would wait for ever
            raise ValueError(f"'{name}' is no file; choose one that holds a table")
        relative = path.relative_to(self.start).as_posix()
        with files.explain_read_errors(path):
            work = WorkFolder(self.start, path)  # before the data are read: then a change is noticed
        dialect = work.stored_dialect() if dialect is None else dialect
        source = files.read(path, dialect_of(dialect))
        guess = describe(source, {})
        first = first_state(guess, relative, dialect)
        history = work.open_history(first)
        if history.message:
            self.tell(history.message, "error")
        if work.changed_on_disk():
            work.accept_data(history)
        if history.current.job["input"] != first.job["input"] or not fits(source, history.current):
            history.add(first)
        self.file = OpenFile(path, relative, source, work, history, guess)
        self.openings += 1
        self.file.repair()

    def open_sample(self) -> str:
        """Copy the bundled sample into the start folder unless it is there; return its name."""
        content = resources.files("sdckit.data").joinpath(SAMPLE).read_bytes()
        for number in range(1, 100):
            path = self.start / (SAMPLE if number == 1 else f"sample-{number}.csv")
            if not path.exists():
                path.write_bytes(content)
            if path.read_bytes() == content:
                return path.name
        raise FileExistsError(f"'{self.start}' has 99 other files named like the sample; open it elsewhere")

    def move(self, *, forward: bool) -> None:
        """Undo the last change, or do again what was undone; read the file as the job then says."""
        file = self.require_unchanged()
        before = file.state.job["input"]
        file.move(forward=forward)
        if file.state.job["input"] != before:
            self.open(file.name)

    def changed(self) -> str:
        """Return a sentence if the open file was changed on disk or is gone, else an empty text."""
        file = self.file
        if file is None or not file.work.changed_on_disk():
            return ""
        return (CHANGED if file.path.exists() else GONE).format(file.name)

    def require_unchanged(self) -> OpenFile:
        """Return the open file; raise ValueError if there is none or if it was changed on disk."""
        file = self.require_file()
        if text := self.changed():
            raise ValueError(f"{text}; nothing was done; read it again first")
        return file

    def require_file(self) -> OpenFile:
        """Return the open file; raise ValueError if there is none."""
        if self.file is None:
            raise ValueError("no file is open; open one first")
        return self.file

    def opened(self) -> OpenedJob:
        """Return the current job with its data, without the pick; roles and options are checked."""
        file = self.require_file()

        def read() -> OpenedJob:
            """Check the job."""
            return open_job(replace(file.job(picked=False), folder=self.start), file.source)

        found: OpenedJob = file.once("opened", file.state, read)
        return found

    def limits(self) -> dict[str, float]:
        """Return all limits of the current job by name, those of scenarios included."""
        return self.opened().limits()

    def judged_job(self) -> dict[str, Any]:
        """Return the sections of the job that the figures of a setting depend on."""
        job = self.require_file().state.job
        return {name: part for name, part in job.items() if name != "private"}

    def roles_key(self) -> str:
        """Return what the prepared data depend on: the sections on input, roles and estimates."""
        job = self.require_file().state.job
        sections = [job.get(name) for name in ("input", "roles", "recode")]
        return repr([*sections, job.get("measures", {}).get("estimates")])

    def original(self) -> Original:
        """Return the data of the current job, prepared once for each set of roles."""
        found: Original = self.require_file().once("original", self.roles_key(), self.opened().prepare)
        return found

    def kept(self) -> Kept:
        """Return what the current search has measured so far, read from its folder."""
        return self.current_search().kept(self.opened().search_options()["folder"])

    def current_search(self) -> Search:
        """Return the search of the current job, made once for each set of its options."""
        opened, original = self.opened(), self.original()
        left_out = ("folder", "workers")
        options = {name: one for name, one in opened.search_options().items() if name not in left_out}
        key = self.roles_key(), repr(sorted((name, repr(value)) for name, value in options.items()))
        found: Search = self.require_file().once("search", key, lambda: Search.of(original, **options))
        return found


def dialect_of(section: Mapping[str, Any]) -> Dialect:
    """Return the dialect that the section on the input of a job gives."""
    return Dialect(
        section.get("delimiter"),
        bool(section.get("decimal_comma", False)),
        str(section.get("encoding", "utf-8")),
        missing=tuple(str(code) for code in section.get("na", ())),
        table=section.get("table"),
        escape_formulas=bool(section.get("escape_formulas", False)),
    )


def fits(source: Source, state: State) -> bool:
    """Return True if the roles of a job can be given to the columns of a file."""
    try:
        describe(source, state.roles)
    except (ValueError, TypeError):
        return False
    return True


def describe(source: Source, roles: Mapping[str, Any]) -> Description:
    """Describe a file with the roles that are decided so far, by argument name."""
    table = Table(source.frame)
    return describe_table(table, asked_roles(table, **roles), source.labelled)
