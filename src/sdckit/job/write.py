"""Write a job file, and the copy of a job that a report shows."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from sdckit.io import atomic
from sdckit.job.fields import SECTIONS
from sdckit.job.toml_text import toml_text

if TYPE_CHECKING:
    from pathlib import Path

    from sdckit.job.read import Job

HEAD = "# A job for sdckit: run it with sdckit run FILE. Paths are relative to the folder of this file.\n\n"
HIDDEN = ("private", "engine")  # sections with files and addresses that are nobody else's business
PATHS = ("path", "paths")


def job_text(job: Job) -> str:
    """Return a job as TOML, its sections in the order of the table of keys."""
    order = ["command", *SECTIONS]
    return HEAD + toml_text({name: job.content[name] for name in order if name in job.content})


def write_job(path: Path, text: str, *, overwrite: bool) -> None:
    """Write the text of a job to a file; on an error no file is left."""
    with atomic.atomic(path, overwrite=overwrite) as draft:
        draft.write_text(text, encoding="utf-8")


def public_job_text(job: Job) -> str:
    """Return a job as a report shows it: no private section, no folder of any file, no value of a stratum."""
    content: dict[str, Any] = {"command": job.command}
    strata = bool(job.content.get("roles", {}).get("by"))
    for field, value in job.values():
        if field.section in HIDDEN:
            continue
        found = _file_names(value) if field.kind in PATHS else value
        if field.kind == "settings" and strata:
            found = {name: one for name, one in value.items() if ":" not in str(one)}
        if not field.key:
            content[field.section] = found
        else:
            content.setdefault(field.section, {})[field.key] = found
    return toml_text(content)


def _file_names(value: Any) -> Any:
    """Return a path, or a list of them, without folders."""
    return [PurePath(one).name for one in value] if isinstance(value, list) else PurePath(value).name
