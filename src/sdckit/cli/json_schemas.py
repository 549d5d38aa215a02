"""JSON schemas of job files and of what the commands print with --json; shipped as files of this package."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.cli import json_keys
from sdckit.core import checks, exposed_records
from sdckit.estimation import compare, guards
from sdckit.job.schema import DRAFT, job_schema
from sdckit.metrics import evaluation_table, scenario_risks

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "schemas"
NAMES = ("job", "describe", "mask", "evaluate", "recommend")
Schema = dict[str, Any]
TEXT, WHOLE, NUMBER, FLAG = (Schema(type=kind) for kind in ("string", "integer", "number", "boolean"))
SOME: Schema = {"type": ["number", "null", "string"]}  # null where there is none; infinite ones are texts
TEXTS = {"type": "array", "items": TEXT}
OPEN = {"type": ["string", "null"]}
COUNT = {"type": ["integer", "null"]}
EXPOSED = dict.fromkeys(exposed_records.KEYS, COUNT)
ABOUT = {"version": TEXT, "intruder": WHOLE, "n": WHOLE, "original": TEXT}
NO_TEXTS: dict[str, str] = {}


def read(name: str) -> str:
    """Return the text of a schema: of a job file, or of what a command prints with --json."""
    checks.one_of("schema", name, NAMES)
    return (resources.files("sdckit.cli") / FOLDER / f"{name}.json").read_text(encoding="utf-8").rstrip()


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
    known = json_keys.TEXTS | {"estimates": json_keys.ESTIMATES["estimates"]} | dict(texts)
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
        "table": _table(evaluation_table.SCHEMA),
        "meaning": _by_name(TEXT),
        "parts": _by_name(_by_name(SOME)),
        "knowledge": _knowledge(),
        "notes": TEXTS,
        "scenarios": _table(scenario_risks.SCHEMA, json_keys.EACH_SCENARIO),
        "summary": _summary(),
        "statistics": _statistics(),
        "estimates": _estimates(),
    }


def _estimates() -> Schema:
    """Return the schema of declared estimates: classes of change or, with --private-output, exact ones."""
    kinds: dict[Any, Schema] = {pl.String: OPEN, pl.Float64: SOME, pl.Int64: WHOLE}
    tables = (guards.SCHEMA, compare.SCHEMA)
    rows = [{name: kinds[kind] for name, kind in one.items()} for one in tables]
    return {"anyOf": [_rows(one, json_keys.ESTIMATES) for one in rows]}


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
    return _object(entries, texts=json_keys.STATISTICS)


def _limits(*more: str) -> Schema:
    """Return the schema of limits met or missed."""
    return _rows(
        {"metric": TEXT, "value": SOME, "limit": NUMBER, "met": FLAG} | dict.fromkeys(more, TEXT),
        json_keys.EACH_LIMIT,
    )


def _evaluated() -> Schema:
    """Return the schema of what `evaluate` prints on one file, or on releases together."""
    more = {"limits": _limits()}
    entries = ABOUT | {"masked": TEXTS} | _measured() | more
    return _object(entries, optional=("scenarios", "limits", "summary", "statistics", "estimates"))


def _several() -> Schema:
    """Return the schema of what `evaluate` prints on several files."""
    table = _table(evaluation_table.SCHEMA)
    one = _object(EXPOSED | {"table": table, "meaning": _by_name(TEXT), "knowledge": _knowledge()})
    entries = {"masked": TEXTS, "files": _by_name(one), "notes": TEXTS, "limits": _limits("file")}
    return _object(ABOUT | entries, optional=("limits",))


def _choice(**more: Any) -> Schema:
    """Return the schema of the masking that a search chose, or of the nearest miss."""
    found = {"met": FLAG, "method": OPEN, "parameters": {"type": "object"}, "values": _by_name(SOME)}
    found |= {"limits": _by_name(NUMBER), "default_limits": TEXTS, "minimise": TEXT}
    found |= {"binding": TEXTS, "maskings": WHOLE}
    one = {"method": TEXT, "parameters": TEXT, "values": _by_name(SOME)}
    points = _rows(one, json_keys.OF_CHOICE)
    entries = found | {"sentences": TEXTS, "points": points} | more
    return _object(entries, texts=json_keys.OF_CHOICE)


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
