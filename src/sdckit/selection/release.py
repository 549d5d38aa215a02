"""Make a release: mask, write, read back, evaluate, check the limits, report, and then name the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

from sdckit.core import notebook, randomness, registry, settings
from sdckit.core.disclosure import Disclosure
from sdckit.core.notebook import WrittenReport  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.core.warning_texts import collect_warnings
from sdckit.estimation.compare import declared_of
from sdckit.io.atomic import AnyPath  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.kernels.jit import Ints  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.evaluation_result import Evaluation  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.original import Original  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.pair import Pair  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.progress import ProgressCallback, reported_to, track
from sdckit.selection import wording
from sdckit.selection.calibration import with_larger_risks
from sdckit.selection.limits import (
    LimitsMissed,
    require_limits,
    require_tied_rows,
    warn_of_units,
)
from sdckit.selection.page_builder import page_builder
from sdckit.selection.publishing import Published
from sdckit.selection.release_plan import ReleasePlan  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.summary import method_sentence

AGAIN = 0.25  # share of the progress that is left for further draws after each draw

Frame = TypeVar("Frame")
Store = Callable[[Published], AbstractContextManager[Any]]


class MadeFrom(NamedTuple):
    """How and from which data a release was made, and the pair of tables that was measured."""

    plan: ReleasePlan
    original: Original
    pair: Pair


@dataclass(frozen=True)
class Release(Generic[Frame]):
    """A masked table that meets its limits, with its own evaluation.

    The rows of `data` are shuffled, and its key is gone. `rows` has the number, from 0, of the original row
    that each published row comes from: keep it secret. Where masked rows stand for no original record
    (`disclosure.paired` is False), only the cells beside the masked ones come from that row. `disclosure` is
    what the masking publishes about itself; `draws` counts the tables drawn until one met the limits,
    `warnings` has the texts of the warnings issued meanwhile. All that is random follows from `entropy`,
    with which the masking can be undone: keep it secret, too. `made_from` has the original and the plan of
    the release, for its private record.
    """

    data: Frame
    evaluation: Evaluation
    disclosure: Disclosure
    rows: Ints = field(repr=False)
    draws: int
    warnings: tuple[str, ...] = ()
    entropy: bytes = field(default=b"", repr=False)
    made_from: MadeFrom | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        """Return how the table was made, its measures, and the warnings."""
        return "\n".join([*self._head(), repr(self.evaluation), *self._warnings()])

    def _repr_html_(self) -> str:
        """Return what `print` shows, for notebooks; `data` shows itself."""
        head, warned = (notebook.paragraphs(lines) for lines in (self._head(), self._warnings()))
        return notebook.block(head, self.evaluation._repr_html_(), warned)

    def _head(self) -> list[str]:
        """Return sentences on the method, on the number of draws, and on the limits that are met."""
        limits = {} if self.made_from is None else self.made_from.plan.limits
        return [
            method_sentence(self.disclosure),
            f"{len(self.rows):,} records, {wording.draws_text(self.draws)}.",
            *([f"It meets {wording.limits_text(limits)}."] if limits else []),
        ]

    def _warnings(self) -> list[str]:
        """Return the warnings as lines of text."""
        return [f"warning: {text}" for text in self.warnings]

    def report(
        self,
        path: AnyPath,
        *,
        name: str | None = None,
        file: AnyPath | None = None,
        overwrite: bool = False,
    ) -> WrittenReport:
        """Write a self-contained HTML report to publish with the table, without original records.

        Parameters
        ----------
        path : str or Path
            A file ending in .html or .htm; on an error no file is left.
        name : str, optional
            What the report calls the table; by default the name of the file.
        file : str or Path, optional
            The file that `publish` wrote: the report states its hash, statistics and what was not measured,
            for those who sign.
        overwrite : bool
            Replace a report that exists.

        Returns
        -------
        WrittenReport
            The path, which a notebook shows as the report itself.

        Raises
        ------
        FileExistsError
            The report exists, and `overwrite` is not set.
        ValueError
            The file does not hold the table.
        """
        build = page_builder()
        written: WrittenReport = build.write_report(
            path, lambda: build.report_on_release(self, name=name, file=file), overwrite=overwrite
        )
        return written

    def publish(self, path: AnyPath, private: AnyPath | None = None, *, overwrite: bool = False) -> str:
        """Write the table to a file that can be handed out, and keep its private record.

        The record has the order of the rows, the entropy and a copy of the file, for its owner alone: with it
        `sdckit replay` makes the file again, byte for byte. A warning announces records that earlier releases
        of the same record hold.

        Parameters
        ----------
        path : str or Path
            A file ending in .csv, .parquet, .dta, .sav or another suffix that sdckit writes.
        private : str or Path, optional
            Folder of the private record; by default that in the user's state directory.
        overwrite : bool
            Replace a file that exists.

        Returns
        -------
        str
            The ID of the release in the private record.

        Raises
        ------
        ValueError
            Together with earlier releases of the same records, a limit is missed, or cells of records that
            left, joined or changed follow; nothing is written.
        """
        from sdckit.record.publish import publish_release  # noqa: PLC0415 - above this package

        return publish_release(self, path, private, overwrite=overwrite)


@contextmanager
def keep_in_memory(published: Published) -> Iterator[Any]:
    """Yield a published table as it is, without writing a file; the default for `store`."""
    yield published.data


def make_release(
    plan: ReleasePlan,
    original: Original,
    *,
    entropy: bytes | None = None,
    rng: Any = None,
    store: Store = keep_in_memory,
    report: Callable[[Release[Any], Pair], object] | None = None,
    progress: ProgressCallback | None = None,
    warned: Iterable[str] = (),
) -> Release[Any]:
    """Mask and measure until a masked table meets its limits; raise `LimitsMissed` after the last draw.

    All draws follow from `entropy`, secret bytes, or fresh ones for None; those of a working copy (a plan
    with `in_place`) follow from `rng`, a seed or None, instead.
    `store(published)` writes a table, yields it as read back, and renames the file if the block raises no
    error. `report(release, pair)` is called before that: if it fails, no file is left. `progress(step,
    share)` is called during the work. `warned` are the texts of earlier warnings.
    """
    declared_of(original)  # raises an error for an estimate that the data do not allow
    task = plan.calibration(original) if plan.calibrate else None  # or an error, for totals that are not safe
    entropy = b"" if plan.in_place else randomness.checked_entropy(entropy)
    if plan.numbered is not None:
        known = [*([] if original.table is None else original.table.names), plan.groups or ""]
        settings.check_new_column("record numbers", plan.numbered, known)
    if plan.limits and not Disclosure.of(plan.method, plan.parameters, by=original.roles.by).paired:
        require_tied_rows(plan.method, original)
    tries = plan.tries if plan.limits and registry.method_named(plan.method).random else 1
    warned = list(warned)
    with reported_to(progress), track("masking", 1.0) as shown:
        for count in range(1, tries + 1):
            left = AGAIN ** (count - 1)
            shown(1 - left, left if tries == 1 else left * (1 - AGAIN))
            with suppress(LimitsMissed), ExitStack() as leaving:
                step = leaving.enter_context(track("masking", 20.0))
                with collect_warnings(warned):
                    step(0.0, 9.0, "masking")
                    generator, secret, ties = plan.random_numbers(entropy, count, rng)
                    made = plan.mask(original, generator, task)
                    step(9.0, 2.0, "writing")
                    published = plan.publish(made, original, secret)
                    written = leaving.enter_context(store(published))
                    pair = plan.pair(original, written, published)
                    step(11.0, 8.0, "measuring")
                    result = plan.evaluate(pair, made, ties)
                    if made.uncalibrated is not None:
                        undone = plan.evaluate_undone(made.uncalibrated, original, secret, ties)
                        result = with_larger_risks(result, undone)
                    step(19.0)
                require_limits(plan.limits, result)
                with collect_warnings(warned):
                    warn_of_units(plan.limits, result)
                release = Release(
                    written, result, made.disclosure, published.rows, count, tuple(warned), entropy
                )
                release = (
                    release if plan.in_place else replace(release, made_from=MadeFrom(plan, original, pair))
                )
                if report is not None:
                    report(release, pair)
                leaving.close()  # renames the temporary file
                return release
    raise plan.limits_error(tries)
