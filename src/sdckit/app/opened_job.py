"""A job with its data: the options that `sdckit recommend` would get, checked as it checks them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sdckit import cli
from sdckit.cli import request
from sdckit.cli.request import words_of_job
from sdckit.core.scenarios import checked_scenarios, limits_of
from sdckit.io import files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.cli.request import CheckedOptions
    from sdckit.core.scenarios import Scenario
    from sdckit.io.files import Source
    from sdckit.job.toml import Job
    from sdckit.metrics.original import Original

COMMAND = "recommend"


@dataclass(frozen=True)
class OpenedJob:
    """A job, its options as the command line gives them and as they were checked, and its file."""

    job: Job
    given: Mapping[str, Any]
    checked: CheckedOptions
    source: Source

    def search_options(self) -> dict[str, Any]:
        """Return the arguments of `recommend`, the folder included; check them."""
        return dict(self._search_options)

    @cached_property
    def _search_options(self) -> dict[str, Any]:
        """The arguments of `recommend`: the map asks for them again and again, and grids are long."""
        return request.check_search_options(dict(self.given)) | {
            "scenarios": self.checked.scenarios,
            "ties": self.checked.ties,
            "missing": self.checked.missing,
            "folder": self.given["folder"],
        }

    def intruders(self) -> tuple[Scenario, ...]:
        """Return the other intruders of the job, each with limits of his own."""
        return checked_scenarios(self.checked.scenarios, limited=True)

    def limits(self) -> dict[str, float]:
        """Return all limits of the job by name, those of other intruders included."""
        options = self.search_options()
        return {**options["max_risk"], **options["max_loss"], **limits_of(self.intruders())}

    def prepare(self) -> Original:
        """Return the original with its roles checked, as the command line prepares it."""
        return self.checked.prepare(self.source, "masked")


def options_of(job: Job) -> dict[str, Any]:
    """Return the options of `sdckit recommend` that a job stands for, by click's names of them."""
    command = cli.sdckit.commands[COMMAND]
    with command.make_context(COMMAND, words_of_job(job, command)) as context:
        return dict(context.params)


def open_job(job: Job, source: Source | None = None) -> OpenedJob:
    """Check the options of a job and read its file, unless it was read before with the same dialect."""
    given = options_of(job)
    checked = request.check_options(given | {"metrics": ()}, "penalise")
    if source is None:
        source = files.read(given["data"], checked.dialect)
    return OpenedJob(job, given, checked.with_columns_of(given, source.frame.columns), source)
