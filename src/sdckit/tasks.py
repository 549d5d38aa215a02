"""The work behind a sweep: measure one cell, or all of them, on several threads."""

from __future__ import annotations

import hashlib
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit import __version__, checks, masking
from sdckit.evaluation import FIGURES, figures, whole_figures
from sdckit.pairs import Original, Pair
from sdckit.progress import track

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.compiled import Floats, Ints
    from sdckit.journal import Journal
    from sdckit.plans import Cell, Setting
    from sdckit.registry import Method, Metric

LOOK = 0.1  # seconds between two looks at the progress


@dataclass(frozen=True)
class Stratum:
    """Records that are measured, and where there are strata also masked, by themselves."""

    name: str
    original: Original
    rows: Ints | None = None  # None for the whole file
    bases: dict[str, Any] = field(default_factory=dict)

    def basis(self, method: Method) -> Any:
        """What the method needs to know of the original, computed once."""
        if method.name not in self.bases:
            self.bases[method.name] = method.basis(self.original.values) if method.basis else None
        return self.bases[method.name]

    def masked(self, setting: Setting, rng: np.random.Generator) -> Floats:
        """The masked values of these records."""
        method = setting.method
        return masking.apply(method, self.original.values, setting.options, rng, self.basis(method))


@dataclass(frozen=True)
class Task:
    """What all cells of a sweep share."""

    whole: Stratum
    strata: Sequence[Stratum]
    metrics: Sequence[Metric]
    ties: str
    missing: str
    draws: str
    per_variable: bool
    detail: bool

    @property
    def groups(self) -> list[Stratum]:
        """Everything that is measured: the whole file first."""
        return [self.whole, *self.strata]

    @property
    def variables(self) -> list[str]:
        """The rows of one metric and group: the whole file, and each variable on request."""
        return ["all", *(self.whole.original.columns if self.per_variable else ())]

    @property
    def length(self) -> int:
        """How many numbers one cell gives."""
        return len(self.metrics) * len(self.groups) * len(self.variables) * len(FIGURES)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What must be the same for finished cells to be used again."""
        original = self.whole.original
        digest = hashlib.sha256(repr(original.columns).encode())
        digest.update(original.turned.tobytes())
        digest.update(b"" if original.weights is None else original.weights.tobytes())
        for stratum in self.strata:
            digest.update(stratum.name.encode() + np.asarray(stratum.rows).tobytes())
        return {
            "data": digest.hexdigest(),
            "metrics": [metric.name for metric in self.metrics],
            "ties": self.ties,
            "missing": self.missing,
            "draws": self.draws,
            "per variable": self.per_variable,
            "detail": self.detail,
            "version": f"sdckit {__version__}, numpy {np.__version__}",
        }

    def check(self, settings: Iterable[Setting]) -> None:
        """Refuse, before any work, what some cell would refuse."""
        for metric in self.metrics:
            if metric.random and self.whole.original.weights is not None:
                checks.no_weights_with(str(metric.settled.get("ties", self.ties)), True)
        for setting in settings:
            for stratum in self.strata or [self.whole]:
                what = f"stratum {stratum.name!r}" if self.strata else "the file"
                masking.enough_records(setting.method, stratum.original.values, setting.options, what)

    def measure(self, cell: Cell, entropy: int) -> Floats:
        """Mask and measure: a line of numbers."""
        rng = np.random.default_rng([entropy, *cell.stream(self.draws)])
        masked = self._masked(cell.setting, rng)
        checks.representable(masked, self.whole.original.columns, cell.setting.method.name)
        options = {"ties": self.ties, "missing": self.missing, "rng": rng}
        pairs = [Pair(g.original, masked if g.rows is None else masked[g.rows]) for g in self.groups]
        describe = figures if self.per_variable else whole_figures
        found = [
            describe(pair, metric.score_with(pair, options, detail=self.detail))
            for metric in self.metrics
            for pair in pairs
        ]
        return np.array(found).ravel()

    def _masked(self, setting: Setting, rng: np.random.Generator) -> Floats:
        if not self.strata:
            return self.whole.masked(setting, rng)
        masked = np.empty_like(self.whole.original.values)
        for stratum in self.strata:
            masked[stratum.rows] = stratum.masked(setting, rng)
        return masked


def run(
    task: Task, cells: Sequence[Cell], entropy: int, workers: int, journal: Journal | None = None
) -> Floats:
    """Measure all cells that the journal does not have; one line of numbers for each.

    Every cell draws from its own stream, so that neither order nor number of workers matters.
    """
    found = np.empty((len(cells), task.length))
    pending = []
    for place, cell in enumerate(cells):
        kept = journal.found.get(cell.key) if journal else None
        if kept is None:
            pending.append(place)
        else:
            found[place] = kept
    todo, lock, stop = iter(pending), Lock(), Event()
    finished = [len(cells) - len(pending)]

    def work() -> None:
        while not stop.is_set():
            with lock:
                place = next(todo, None)
            if place is None:
                return
            values = task.measure(cells[place], entropy)
            if journal is not None:
                journal.add(cells[place].key, values)
            found[place] = values
            finished[0] += 1  # for the progress only: a lost count does no harm

    with track("sweeping", len(cells)) as report, ThreadPoolExecutor(workers) as pool:
        threads = [pool.submit(work) for _ in range(min(workers, len(pending)))]
        try:
            while not _over(threads):
                report(finished[0])
        finally:
            stop.set()  # after Ctrl-C or an error the others finish their cell
        for thread in threads:
            thread.result()
    return found


def _over(threads: list[Future[None]]) -> bool:
    """Wait a moment; whether all threads are done, or one has failed."""
    done, others = wait(threads, LOOK, FIRST_EXCEPTION)
    return not others or any(thread.exception() for thread in done)
