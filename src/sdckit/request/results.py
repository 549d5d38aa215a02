"""What a request brought, its JSON, and the schemas of that."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from sdckit.core import checks
from sdckit.core.scenarios import KEYS, default_limits, exposed_content, with_sure_limit
from sdckit.core.version import INTRUDER_VERSION, VERSION
from sdckit.estimation import compare, guards
from sdckit.evaluation.measure import RISKS_SCHEMA
from sdckit.evaluation.result import SCHEMA
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


_FILES = {
    "version": "version of sdckit",
    "intruder": "version of the attacks; risks of two versions cannot be compared",
    "n": "number of records of the original",
    "original": "name of the original file",
    "masked": "names of the masked files",
    "notes": "warnings and remarks on the figures",
}
_DESCRIBED = {
    "columns": "one entry a column of the file",
    "column": "name of the column",
    "type": "type of its values",
    "role": "role that it has or would get",
    "reason": "why",
    "missing": "number of missing cells",
    "distinct": "number of distinct values",
    "unique": "number of values that occur once",
    "decided": "false if somebody has to name the role before a release",
    "floor_alone": "floor of the risk by this column alone, for known columns that are not masked",
    "floor_without": "floor of the risk without this column",
    "recodings": "recodings worth trying, with uniques and floor before and after",
    "steps": "a way to a floor of 0.05, by recoding and dropping one column after the other",
    "uniques": "share of the records that stand alone on the known untouched columns",
    "floor": "mean of 1 / class size on these columns: no masking of the others brings linkage below it",
    "options": "roles, given and proposed, by option",
}
_MEASURED = {
    "exposed": "number of exposed records: the intruder gives the true original a probability above 1/2; "
    "null where linkage_sure is not measured",
    "exposed_above_90": "number of those whose true original has a probability above 0.9",
    "table": "one entry a metric, variable and stratum",
    "metric": "name of the metric",
    "family": "loss or risk",
    "variable": 'name of the variable; "all" is the whole file',
    "stratum": 'name of the stratum; "all" is all records',
    "value": "measured value; null where it cannot be given",
    "random": "value that masked records in an unrelated order would have; null for metrics without one",
    "tie_low": "least value over all orders of equal values; null for metrics without one",
    "tie_high": "largest value over all orders of equal values; null for metrics without one",
    "ci_low": "lower end of the 95 % interval of a value that is estimated on a sample of records",
    "ci_high": "upper end of that interval",
    "n_used": "number of cells or records that the value is computed from",
    "n_left_out": "number of cells or records that are left out of it",
    "n_suppressed": "number of cells that the original has and the masked file lacks",
    "n_imputed": "number of cells that the masked file has and the original lacks",
    "n_both_missing": "number of cells that neither file has",
    "meaning": "a sentence that explains the value, by metric",
    "parts": "components of the value, by metric and name",
    "knowledge": "columns in lists: known and unknown to the intruder, and unmasked; null without a risk",
    "files": "measures of each file, by its name",
}
_LIMITS = {
    "limits": "limits, met or missed",
    "limit": "largest value allowed; null without a limit",
    "met": "true if every limit is met",
    "file": "name of the masked file",
    "scenarios": "with --scenario: one entry a scenario and risk",
    "scenario": "name of the intruder",
    "known": "columns that he knows",
}
_SUMMARY = {
    "summary": "what an office signs",
    "sha256": "SHA-256 of the masked file",
    "date": "day on which the file was measured (UTC)",
    "method": "how the file was masked, in words",
    "original_sha256": "SHA-256 of the original, in private output only",
    "records": "number of records of the masked file",
    "variables": "number of masked variables",
    "suppressed": "number of suppressed cells, by variable; null where rows stand for no original record",
    "working_copy": "true for a file that is not made to be handed out",
    "rules": "edit rules that the records satisfy",
    "not_measured": "sentences on what the figures leave out",
    "statistics": "statistics of each variable before and after masking",
    "exact": "true with --private-output; else figures of the original are rounded or withheld",
    "statistic": "name of the statistic",
    "before": "figure of the original; null where it is withheld",
    "after": "figure of the masked file",
    "step": "step to which the figure of the original is rounded; null for exact ones",
    "correlations": "correlations of the first twelve variables",
    "other": "name of the second variable",
}
_CHOICE = {
    "choice": "the masking that the search chose, or the nearest miss",
    "parameters": "parameters of the method",
    "values": "measured losses and risks, by metric",
    "default_limits": "names of the limits that have their default value",
    "minimise": "loss that the search makes least",
    "binding": "limits that the next weaker setting breaks",
    "maskings": "number of masked tables that were measured",
    "sentences": "the choice in words",
    "points": "all measured settings",
    "draws": "number of tables drawn until one met the limits",
}
KNOWN_TEXTS = _FILES | _DESCRIBED | _MEASURED | _LIMITS | _SUMMARY | _CHOICE
ESTIMATES = {
    "estimates": "with --estimate: one entry an estimate and domain; classes of change, or with "
    "--private-output exact figures",
    "estimate": "what is computed, as declared",
    "domain": 'values of the columns after "by"; "all" is all records',
    "original": "estimate of the original",
    "se_original": "its standard error",
    "masked": "estimate of the masked file",
    "se_masked": "its standard error",
    "change": "change in percent of the original, or its class in words",
    "change_in_se": "change in standard errors of the original, or its class in words",
    "overlap": "overlap of the 95 % intervals, from 0 to 1",
    "low_original": "lower end of the original's 95 % interval",
    "high_original": "upper end of the original's 95 % interval",
    "low_masked": "lower end of the masked file's 95 % interval",
    "high_masked": "upper end of the masked file's 95 % interval",
    "spread": "standard deviation of the masked estimate over replications; null without any",
    "se_inflated": "standard error that also counts the masking, from replications; null without any",
    "low_inflated": "lower end of the interval by that error",
    "high_inflated": "upper end of the interval by that error",
    "sign": "kept or changed",
    "significance": "kept, lost, gained or none",
    "records_original": "records behind the estimate of the original",
    "records_masked": "records behind the estimate of the masked file",
    "reason": "why something is absent",
    "withheld": "why no change is given; empty otherwise",
}
STATISTICS = {"variables": "one entry a variable and statistic"}
EACH_LIMIT = {"met": "true if this limit is met", "limit": "largest value allowed"}
EACH_SCENARIO = EACH_LIMIT | {"limit": "largest value allowed; null without a limit"}
OF_CHOICE = {
    "method": "name of the method; null without any",
    "reason": "why no setting meets the limits",
    "limits": "largest values allowed, by metric",
}


FOLDER = "schemas"
NAMES = ("job", "describe", "mask", "evaluate", "recommend")
Schema = dict[str, Any]
TEXT, WHOLE, NUMBER, FLAG = (Schema(type=kind) for kind in ("string", "integer", "number", "boolean"))
SOME: Schema = {"type": ["number", "null", "string"]}  # null where there is none; infinite ones are texts
TEXTS = {"type": "array", "items": TEXT}
OPEN = {"type": ["string", "null"]}
COUNT = {"type": ["integer", "null"]}
EXPOSED = dict.fromkeys(KEYS, COUNT)
ABOUT = {"version": TEXT, "intruder": WHOLE, "n": WHOLE, "original": TEXT}
NO_TEXTS: dict[str, str] = {}


def read(name: str) -> str:
    """Return the text of a schema: of a job file, or of what a command prints with --json."""
    checks.one_of("schema", name, NAMES)
    return (resources.files("sdckit.request") / FOLDER / f"{name}.json").read_text(encoding="utf-8").rstrip()


def schemas() -> dict[str, Schema]:
    """Return all schemas by name, as `tools/make_reference.py` writes them."""
    outputs = {
        "describe": _described(),
        "mask": _object(ABOUT | {"masked": TEXTS} | _measured(), optional=("scenarios", "estimates")),
        "evaluate": {"anyOf": [_evaluated(), _several()]},
        "recommend": {"anyOf": [_recommended(), _missed()]},
    }
    texts = {name: f"what sdckit {name} --json prints" for name in outputs}
    heads = {name: {"$schema": DRAFT, "title": title} for name, title in texts.items()}
    return {"job": job_schema()} | {name: heads[name] | schema for name, schema in outputs.items()}


def text_of(schema: Schema) -> str:
    """Return the text of a schema as its file has it."""
    return json.dumps(schema, indent=1) + "\n"


def _object(
    properties: Schema, optional: tuple[str, ...] = (), texts: Mapping[str, str] = NO_TEXTS
) -> Schema:
    """Return the schema of an object that has these entries and no other; `texts` describe some of them."""
    known = KNOWN_TEXTS | {"estimates": ESTIMATES["estimates"]} | dict(texts)
    described = {name: schema | {"description": known[name]} for name, schema in properties.items()}
    needed = [name for name in properties if name not in optional]
    return {"type": "object", "properties": described, "required": needed, "additionalProperties": False}


def _rows(properties: Schema, texts: Mapping[str, str] = NO_TEXTS) -> Schema:
    """Return the schema of a list of such objects."""
    return {"type": "array", "items": _object(properties, texts=texts)}


def _by_name(schema: Schema) -> Schema:
    """Return the schema of an object with values of one kind, by name."""
    return {"type": "object", "additionalProperties": schema}


def _table(columns: Mapping[str, Any], texts: Mapping[str, str] = NO_TEXTS) -> Schema:
    """Return the schema of a table by the types of its columns, which may be empty but for texts."""
    kinds: dict[Any, Schema] = {pl.String: TEXT, pl.Float64: SOME}
    kinds |= {pl.Int64: COUNT, pl.Boolean: {"type": ["boolean", "null"]}}
    return _rows({name: kinds[kind] for name, kind in columns.items()}, texts)


def _knowledge() -> Schema:
    """Return the schema of what the intruder is assumed to know."""
    return {"type": ["object", "null"]}


def _measured() -> Schema:
    """Return the entries on the measures of one file."""
    return EXPOSED | {
        "table": _table(SCHEMA),
        "meaning": _by_name(TEXT),
        "parts": _by_name(_by_name(SOME)),
        "knowledge": _knowledge(),
        "notes": TEXTS,
        "scenarios": _table(RISKS_SCHEMA, EACH_SCENARIO),
        "summary": _summary(),
        "statistics": _statistics(),
        "estimates": _estimates(),
    }


def _estimates() -> Schema:
    """Return the schema of declared estimates: classes of change or, with --private-output, exact ones."""
    kinds: dict[Any, Schema] = {pl.String: OPEN, pl.Float64: SOME, pl.Int64: WHOLE}
    tables = (guards.SCHEMA, compare.SCHEMA)
    rows = [{name: kinds[kind] for name, kind in one.items()} for one in tables]
    return {"anyOf": [_rows(one, ESTIMATES) for one in rows]}


def _summary() -> Schema:
    """Return the schema of what an office signs."""
    found = dict.fromkeys(("file", "sha256", "date", "method", "original_sha256"), TEXT)
    found |= dict.fromkeys(("records", "variables"), WHOLE)
    found |= {"suppressed": {"type": ["object", "null"], "additionalProperties": WHOLE}}
    found |= {"working_copy": FLAG, "rules": TEXTS, "not_measured": TEXTS}
    return _object(found, optional=("original_sha256",))


def _statistics() -> Schema:
    """Return the schema of the statistics of original and masked file."""
    figures = dict.fromkeys(("before", "after", "step"), SOME)
    of_one, of_two = ({"variable": TEXT, name: TEXT} | figures for name in ("statistic", "other"))
    entries = {"exact": FLAG, "variables": _rows(of_one), "correlations": _rows(of_two)}
    return _object(entries, texts=STATISTICS)


def _limits(*more: str) -> Schema:
    """Return the schema of limits met or missed."""
    return _rows(
        {"metric": TEXT, "value": SOME, "limit": NUMBER, "met": FLAG} | dict.fromkeys(more, TEXT),
        EACH_LIMIT,
    )


def _evaluated() -> Schema:
    """Return the schema of what `evaluate` prints on one file, or on releases together."""
    more = {"limits": _limits()}
    entries = ABOUT | {"masked": TEXTS} | _measured() | more
    return _object(entries, optional=("scenarios", "limits", "summary", "statistics", "estimates"))


def _several() -> Schema:
    """Return the schema of what `evaluate` prints on several files."""
    table = _table(SCHEMA)
    one = _object(EXPOSED | {"table": table, "meaning": _by_name(TEXT), "knowledge": _knowledge()})
    entries = {"masked": TEXTS, "files": _by_name(one), "notes": TEXTS, "limits": _limits("file")}
    return _object(ABOUT | entries, optional=("limits",))


def _choice(**more: Any) -> Schema:
    """Return the schema of the masking that a search chose, or of the nearest miss."""
    found = {"met": FLAG, "method": OPEN, "parameters": {"type": "object"}, "values": _by_name(SOME)}
    found |= {"limits": _by_name(NUMBER), "default_limits": TEXTS, "minimise": TEXT}
    found |= {"binding": TEXTS, "maskings": WHOLE}
    one = {"method": TEXT, "parameters": TEXT, "values": _by_name(SOME)}
    points = _rows(one, OF_CHOICE)
    entries = found | {"sentences": TEXTS, "points": points} | more
    return _object(entries, texts=OF_CHOICE)


def _recommended() -> Schema:
    """Return the schema of what `recommend` prints if a setting meets the limits."""
    entries = ABOUT | {"masked": TEXTS} | _measured() | {"choice": _choice(draws=WHOLE)}
    return _object(entries, optional=("scenarios", "estimates"))


def _missed() -> Schema:
    """Return the schema of what `recommend` prints if no setting meets the limits."""
    return _object(ABOUT | {"masked": TEXTS, "choice": _choice(reason=TEXT)})


def _described() -> Schema:
    """Return the schema of what `describe` prints."""
    column = dict.fromkeys(("column", "type", "role", "reason"), TEXT)
    column |= dict.fromkeys(("missing", "distinct", "unique"), WHOLE)
    column |= {"decided": FLAG, "floor_alone": SOME, "floor_without": SOME}
    entries = {
        "columns": _rows(column),
        "recodings": {"type": "array", "items": {"type": "object"}},
        "steps": {"type": "array", "items": {"type": "object"}},
        "uniques": SOME,
        "floor": SOME,
        "options": _by_name(TEXTS),
        "notes": TEXTS,
    }
    return _object(ABOUT | entries)


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
