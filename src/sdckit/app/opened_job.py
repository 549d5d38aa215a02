"""A job with its data: the request that it stands for, checked as the command line checks it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sdckit.core.scenarios import checked_scenarios, limits_of
from sdckit.io import files
from sdckit.request.checks import check, search_options
from sdckit.request.toml import request_of_job

if TYPE_CHECKING:
    from sdckit.core.scenarios import Scenario
    from sdckit.io.files import Source
    from sdckit.metrics.original import Original
    from sdckit.request.checks import Checked
    from sdckit.request.options import Request
    from sdckit.request.toml import Job

COMMAND = "recommend"


@dataclass(frozen=True)
class OpenedJob:
    """A job, the request that it stands for and what was checked of it, and its file."""

    job: Job
    given: Request
    checked: Checked
    source: Source

    def search_options(self) -> dict[str, Any]:
        """Return the arguments of `recommend`, the folder included; check them."""
        return dict(self._search_options)

    @cached_property
    def _search_options(self) -> dict[str, Any]:
        """The arguments of `recommend`: the map asks for them again and again, and grids are long."""
        return search_options(self.given) | {
            "rules": self.checked.rules,
            "scenarios": self.checked.scenarios,
            "ties": self.given.ties,
            "missing": self.checked.missing,
            "folder": self.given.folder,
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


def open_job(job: Job, source: Source | None = None) -> OpenedJob:
    """Check the request of a job and read its file, unless it was read before with the same dialect."""
    given = request_of_job(job)
    checked = check(given)
    if source is None:
        source = files.read(given.data, checked.dialect)
    return OpenedJob(job, given, checked.with_columns_of(given, source.frame.columns), source)
