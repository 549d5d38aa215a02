"""What a request brought, its JSON, and the schemas of that."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from sdckit.core import checks
from sdckit.core.scenarios import default_limits, exposed_content, with_sure_limit
from sdckit.core.version import INTRUDER_VERSION, VERSION
from sdckit.estimation import guards
from sdckit.metrics.publishable import public_evaluation
from sdckit.request.checks import limits_of_request
from sdckit.request.toml import DRAFT, job_schema

if TYPE_CHECKING:
    from pathlib import Path

    from sdckit.evaluation.result import Evaluation, Knowledge
    from sdckit.request.limits import Verdict
    from sdckit.request.options import Request
    from sdckit.selection.choice import Choice
    from sdckit.selection.sweep_result import Sweep


SCHEMAS = ("job", "describe", "mask", "evaluate", "recommend")


def schema_text(name: str) -> str:
    """Return the text of a schema: of a job file, or of what a command prints with --json."""
    checks.one_of("schema", name, SCHEMAS)
    return json.dumps(schemas()[name], indent=1)


def schemas() -> dict[str, dict[str, Any]]:
    """Return all schemas by name: that of jobs from the options, those of outputs from `outputs.json`."""
    found = json.loads((resources.files("sdckit.request") / "outputs.json").read_text(encoding="utf-8"))
    shared = found.pop("$defs")
    outputs = {
        name: {"$schema": DRAFT, "title": f"what sdckit {name} --json prints"} | _resolved(schema, shared)
        for name, schema in found.items()
    }
    return {"job": job_schema()} | outputs


def _resolved(schema: Any, shared: Mapping[str, Any]) -> Any:
    """Return a schema with the definitions that it refers to in their places."""
    if isinstance(schema, list):
        return [_resolved(one, shared) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _resolved(shared[schema["$ref"].rpartition("/")[2]], shared)
    return {key: _resolved(one, shared) for key, one in schema.items()}


def as_json(content: Any) -> str:
    """Return content as JSON text, with null for NaN."""
    return json.dumps(_json_ready(content), indent=2, ensure_ascii=False, allow_nan=False)


def _json_ready(content: Any) -> Any:
    """Return nested dicts and lists with None for NaN and text for infinite numbers."""
    if isinstance(content, dict):
        return {key: _json_ready(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_json_ready(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None if math.isnan(content) else str(content)
    return content


def file_facts(n: int, original: Path, *masked: Path) -> dict[str, Any]:
    """Return what every JSON output begins with: versions, number of records, and names of files."""
    return data_facts(n, original) | {"masked": [path.name for path in masked]}


def data_facts(n: int, original: Path) -> dict[str, Any]:
    """Return the versions of the program and of its attacks, the number of records, and the file's name."""
    return {"version": VERSION, "intruder": INTRUDER_VERSION, "n": n, "original": original.name}


class Listener(NamedTuple):
    """Who is told what happens while a request runs; by default nobody."""

    ready: Callable[[], object] = lambda: None  # the input has passed all checks: warnings may be shown
    note: Callable[[str], object] = lambda _text: None  # is to be said at once


@dataclass(frozen=True)
class Result:
    """What a request brought: measures by masked file, what was written, and whether limits are met."""

    request: Request
    about: Mapping[str, Any] = field(default_factory=dict)  # what the JSON begins with
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    notes: Sequence[str] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)  # what an office signs, for JSON only
    verdicts: Sequence[Verdict] = ()
    choice: Choice | None = None
    draws: int | None = None  # tables that the release took
    sweep: Sweep | None = None
    knowledge: Knowledge | None = None  # of a sweep
    missed: ValueError | None = None  # the error to raise, where limits are not met

    @property
    def alone(self) -> Evaluation:
        """The measures of the only file."""
        (found,) = self.evaluations.values()
        return found

    @property
    def public(self) -> dict[str, Evaluation]:
        """The measures without figures that one record dominates, unless they are asked for."""
        if self.request.private_output:
            return dict(self.evaluations)
        return {name: public_evaluation(one) for name, one in self.evaluations.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as a JSON-ready dict."""
        if not self.evaluations:
            return dict(self.about) | {"choice": self._nearest()}
        private = self.request.private_output
        found = self.public
        if len(found) > 1:
            content: dict[str, Any] = {"files": {name: _short_content(one) for name, one in found.items()}}
            content["notes"] = list(self.notes)
        else:
            (one,) = found.values()
            content = evaluation_content(one, private=private)
            content["notes"] = [*one.notes, *self.notes]
        if self.verdicts:
            content["limits"] = [one.to_dict(private=private) for one in self.verdicts]
        if self.choice is not None:
            told = self.choice.public(self.alone).to_dict()
            return {**self.about, **content, **self.summary, "choice": told | {"draws": self.draws}}
        return {**self.about, **content, **self.summary}

    def _nearest(self) -> dict[str, Any]:
        """Return the nearest miss of a search, or what is to be said of one that tried no masking.

        Without a choice, columns that are published unmasked already exceed a limit.
        """
        if self.choice is not None:
            nearest = self.choice.public().to_dict()
        else:
            limits = with_sure_limit(limits_of_request(self.request))
            nearest = {"method": None, "parameters": {}, "values": {}, "limits": limits}
            nearest |= {"default_limits": list(default_limits(limits)), "minimise": self.request.minimise}
            nearest |= {"binding": [], "maskings": 0, "sentences": [], "points": []}
        reason = getattr(self.missed, "in_public", str(self.missed))
        return nearest | {"met": False, "reason": reason}


def evaluation_content(result: Evaluation, *, private: bool = False) -> dict[str, Any]:
    """Return the measures of one file as a JSON-ready dict."""
    content: dict[str, Any] = dict(exposed_content(result.parts))
    content |= {"table": result.table.rows(named=True), "meaning": result.meaning, "parts": result.parts}
    others = {} if result.scenarios is None else {"scenarios": result.scenarios.rows(named=True)}
    if result.estimates is not None:
        others["estimates"] = guards.told_table(result.estimates, private=private).rows(named=True)
    return content | {"knowledge": _known_columns(result)} | others


def _short_content(result: Evaluation) -> dict[str, Any]:
    """Return the measures of one of several files as a JSON-ready dict."""
    measured = {"table": result.table.rows(named=True), "meaning": result.meaning}
    return exposed_content(result.parts) | measured | {"knowledge": _known_columns(result)}


def _known_columns(result: Evaluation) -> Any:
    """Return the columns that the intruder is assumed to know, JSON-ready; None without a risk."""
    return None if result.knowledge is None else result.knowledge.to_dict()
