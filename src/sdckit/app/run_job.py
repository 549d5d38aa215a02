"""The job that is run for a state of the page, spelled as on the command line, with its folder of runs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit.core.registry import value_text
from sdckit.io.formats import suffix_of
from sdckit.request.toml import Job, check_job, job_of_request, job_text, request_of_job
from sdckit.selection.limits import search_sampling
from sdckit.selection.task import SOFTWARE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sdckit.app.state import Pick, State, WorkFolder

PLAN = ("methods", "grid")  # keys of [search] that say which settings are tried
LIMITS = ("max_risk", "max_loss")
DIGITS = 8  # of the digest in the name of a search's folder


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
        name: value if isinstance(value, (int, float)) else value_text(_as_set(value))
        for name, value in pick.parameters.items()
    }


def _as_set(value: Any) -> Any:
    """Return the value of a parameter as methods have it: JSON has made lists of tuples."""
    return tuple(value) if isinstance(value, list) else value
