"""The job of the page: with its data, as it is run, and as the line for the shell that does the same."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit.core.registry import value_text
from sdckit.core.scenarios import checked_scenarios, limits_of
from sdckit.io import files
from sdckit.io.formats import suffix_of
from sdckit.request.checks import check, search_options
from sdckit.request.toml import check_job, job_of_request, job_text, request_of_job
from sdckit.request.words import words_of_job
from sdckit.selection.limits import search_sampling
from sdckit.selection.task import SOFTWARE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sdckit.app.state import Pick, State, WorkFolder
    from sdckit.core.scenarios import Scenario
    from sdckit.io.files import Source
    from sdckit.metrics.original import Original
    from sdckit.request.checks import Checked
    from sdckit.request.options import Request
    from sdckit.request.toml import Job

COMMAND = "recommend"
PLAN = ("methods", "grid")  # keys of [search] that say which settings are tried
LIMITS = ("max_risk", "max_loss")
DIGITS = 8  # of the digest in the name of a search's folder
OUTPUT = "--output"
SHORT = {OUTPUT: "-o"}


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


def effective_job(state: State, work: WorkFolder, records: int, columns: Collection[str] = ()) -> Job:
    """Return the job that is run for a state: only its chosen setting, if any, and the folder of its search.

    `records` and `columns` are those of the data file. Nothing is read or written.
    """
    content = dict(state.job)
    if state.pick is not None:
        others = {key: value for key, value in content["search"].items() if key not in PLAN}
        content["search"] = others | {"grid": {state.pick.method: _grid_of(state.pick)}}
    job = canonical(check_job(content), columns)
    folder = f"{work.relative}/search-{search_digest(job, work.stamp.sha256, records)}"
    private = dict(job.content.get("private", {})) | {"folder": folder}
    return canonical(check_job(dict(job.content) | {"private": private}), columns)


def search_digest(job: Job, sha256: str, records: int) -> str:
    """Return digits that differ for searches whose measured runs cannot stand for each other.

    They cover all that `Task.identity` covers. Which settings are tried, how often, and by how many cores is
    left out; so are the values of limits, unless samples of the records are judged by them.
    """
    search, scenarios = job.content["search"], job.content.get("scenario", ())
    limits = {
        **{risk: value for key in LIMITS for risk, value in search.get(key, {}).items()},
        **{
            f"{risk} ({one['name']})": value
            for one in scenarios
            for risk, value in one.get("max_risk", {}).items()
        },
    }
    size = job.content.get("measures", {}).get("sample_queries")
    source = {key: value for key, value in job.content["input"].items() if key != "data"}
    counted = {
        "data": [sha256, suffix_of(Path(job.content["input"]["data"])), source],
        "roles": [job.content.get(section) for section in ("roles", "recode", "rules", "measures")],
        "metrics": [search.get("minimise"), *(list(search.get(key, {})) for key in LIMITS)],
        "scenarios": [[one["name"], one["known"], list(one.get("max_risk", {}))] for one in scenarios],
        "decimals": job.content["output"].get("decimals"),
        "sampling": repr(search_sampling(size, records, limits)),
        "version": SOFTWARE,
    }
    return hashlib.sha256(json.dumps(counted).encode()).hexdigest()[:DIGITS]


def canonical(job: Job, columns: Collection[str] = (), folder: Path = Path()) -> Job:
    """Return a job as the command line writes it, for a job file in a folder relative to the start folder.

    Defaults are left out. `columns` are those of the data file, for names with blanks at their ends.
    """
    return job_of_request(request_of_job(job), folder, columns)


def job_file_text(job: Job, folder: Path = Path(), columns: Collection[str] = ()) -> str:
    """Return what `--save-job` writes to a file in a folder, which is relative to the start folder."""
    return job_text(canonical(job, columns, folder))


def _grid_of(pick: Pick) -> Mapping[str, Any]:
    """Return the parameters of a chosen setting as a grid of one point: numbers as they are, else as text."""
    return {
        name: value
        if isinstance(value, (int, float))
        else value_text(tuple(value) if isinstance(value, list) else value)  # JSON has made lists of tuples
        for name, value in pick.parameters.items()
    }


def command_text(job: Job) -> str:
    """Return the line of `sdckit recommend` that does what a job says, to be run in the start folder.

    The data and the file to write come first; lists of columns are one word.
    """
    *options, _, data = words_of_job(job)
    options.sort(key=lambda word: not word.startswith(f"{OUTPUT}="))
    words = [part for word in options for part in _parts(word)]
    whole = [*words, "--", data] if data.startswith("-") else [data, *words]
    return shlex.join(["sdckit", COMMAND, *whole])


def _parts(word: str) -> list[str]:
    """Return name and value of an option; a value that is empty or begins with a dash is tied to its name."""
    name, _, value = word.partition("=")
    return [SHORT.get(name, name), value] if value and not value.startswith("-") else [word]
