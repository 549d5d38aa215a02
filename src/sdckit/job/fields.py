"""The keys of a job file, in one table, and their schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

COMMANDS = ("mask", "evaluate", "sweep", "recommend")
MASKS = ("mask", "sweep", "recommend")
RELEASES = ("mask", "recommend")
LEFT_OUT = {  # options that no job has, and why
    "seed": "a release draws its own random numbers",
    "overwrite": "give it to sdckit run",
    "quiet": "give it to sdckit run",
    "as_json": "give it to sdckit run",
    "as_csv": "give it to sdckit run",
    "save_job": "it names the job itself",
    "made_by_command": "no job file starts a program",
    "made_by_seconds": "no job file starts a program",
}
GONE = {  # keys of older jobs, which are ignored, and what to use in their place
    ("measures", "ranks"): 'metrics = ["rank_mae", "brmae"] and variables = true',
}
SECTIONS = {
    "input": "the files to read, and how",
    "roles": "what each column is",
    "recode": "columns that are published coarsened",
    "rules": "edit rules",
    "scenario": "another intruder",
    "masking": "how the file is masked, or was",
    "search": "which maskings are tried, and the limits",
    "measures": "what is measured, and how",
    "engine": "where the work is done",
    "output": "the files to write",
    "private": "files for you alone",
}


@dataclass(frozen=True)
class Field:
    """A key of a job file: its section, its kind (see `KINDS`), the option it stands for, and the commands.

    `key` is empty where the whole section is the value, as in [recode]. `option` is the name that click knows
    the option by, `needed` the commands that cannot do without.
    """

    section: str
    key: str
    kind: str
    commands: tuple[str, ...]
    text: str
    option: str = ""
    needed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the option as click knows it."""
        return self.option or self.key

    @property
    def path(self) -> str:
        """The key as errors name it, such as "[search] grid"."""
        brackets = f"[[{self.section}]]" if self.kind == "scenarios" else f"[{self.section}]"
        return f"{brackets} {self.key}".rstrip()


KINDS: dict[str, tuple[str, dict[str, Any]]] = {  # what to give, and its JSON schema
    "text": ("a text in quotation marks", {"type": "string"}),
    "path": ("a path in quotation marks", {"type": "string"}),
    "paths": ("a list of paths", {"type": "array", "items": {"type": "string"}}),
    "flag": ("true or false", {"type": "boolean"}),
    "number": ("a number", {"type": ["number", "string"]}),
    "name": ("the name of one column", {"type": "string"}),
    "names": (
        'names in a list, such as ["a", "b"]',
        {"type": ["array", "string"], "items": {"type": "string"}},
    ),
    "texts": ("texts in a list", {"type": ["array", "string"], "items": {"type": "string"}}),
    "codes": (
        'codes in a list, such as [-999, "NA"]',
        {"type": ["array", "string", "number"], "items": {"type": ["string", "number"]}},
    ),
    "limits": (
        "a table such as { linkage = 0.1 }",
        {"type": "object", "additionalProperties": {"type": ["number", "string"]}},
    ),
    "losses": (
        "a table such as { suppressed = 0.01 }",
        {"type": "object", "additionalProperties": {"type": ["number", "string"]}},
    ),
    "settings": (
        "a table such as { k = 5 }",
        {"type": "object", "additionalProperties": {"type": ["number", "string", "boolean"]}},
    ),
    "recodings": (
        'a table such as { age = 5, born = "year" }',
        {"type": "object", "additionalProperties": {"type": ["number", "string"]}},
    ),
    "grid": (
        'a table such as { mdav = { k = "2:30" } }',
        {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": {
                    "type": ["number", "string", "array"],
                    "items": {"type": ["number", "string"]},
                },
            },
        },
    ),
    "scenarios": (
        "tables with name, known and max_risk",
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "what the intruder is called"},
                    "known": {
                        "type": ["array", "string"],
                        "items": {"type": "string"},
                        "description": "columns that he knows",
                    },
                    "max_risk": {
                        "type": "object",
                        "additionalProperties": {"type": ["number", "string"]},
                        "description": "largest risks allowed",
                    },
                },
                "required": ["name", "known"],
                "additionalProperties": False,
            },
        },
    ),
}


def _roles() -> tuple[Field, ...]:
    """Return the keys of the section on roles."""
    several = {
        "columns": "variables to mask",
        "key": "columns that identify records",
        "by": "columns whose values form strata",
        "untouched": "columns published as they are",
        "known": "what the intruder knows",
        "unknown": "published columns unknown to the intruder",
        "confidential": "columns that the intruder wants to learn",
        "drop": "columns that are not published",
    }
    one = {"weights": "column of survey weights", "unit": "column of households, firms or persons"}
    return (
        *(Field("roles", key, "names", COMMANDS, text) for key, text in several.items()),
        *(Field("roles", key, "name", COMMANDS, text) for key, text in one.items()),
    )


_EVALUATE = ("evaluate",)
FIELDS: tuple[Field, ...] = (
    Field("input", "data", "path", COMMANDS, "the original file", needed=COMMANDS),
    Field("input", "masked", "paths", _EVALUATE, "the masked files", needed=_EVALUATE),
    Field("input", "na", "codes", COMMANDS, "codes of missing cells"),
    Field("input", "delimiter", "text", COMMANDS, "character between cells of CSV files"),
    Field("input", "decimal_comma", "flag", COMMANDS, "numbers look like 1,5"),
    Field("input", "encoding", "text", COMMANDS, "encoding of CSV files"),
    Field("input", "table", "text", COMMANDS, "sheet of an Excel file or data frame of an R file"),
    *_roles(),
    Field("recode", "", "recodings", MASKS, "how to coarsen columns that are not masked", "recode"),
    Field("rules", "rule", "texts", COMMANDS, "rules of the records", "rules"),
    Field("scenario", "", "scenarios", ("evaluate", "recommend"), "other intruders", "scenario"),
    Field("masking", "method", "text", ("mask",), "how to mask", needed=("mask",)),
    Field("masking", "made_by", "text", _EVALUATE, "method that masked the file"),
    Field("masking", "set", "settings", ("mask", "evaluate"), "parameters of the method", "settings"),
    Field("masking", "window", "number", _EVALUATE, "largest move in ranks, a share of the records"),
    Field("masking", "stratified", "flag", _EVALUATE, "each stratum was masked by itself"),
    Field("masking", "unstratified", "flag", _EVALUATE, "the file was masked as a whole"),
    Field("masking", "unpaired", "flag", _EVALUATE, "rows stand for no original record"),
    Field(
        "search",
        "max_risk",
        "limits",
        ("evaluate", "recommend"),
        "largest risks allowed",
        "limits",
        needed=("recommend",),
    ),
    Field("search", "max_loss", "losses", ("evaluate", "recommend"), "largest losses allowed", "loss_limits"),
    Field("search", "minimise", "text", ("recommend",), "loss to minimise"),
    Field("search", "methods", "texts", ("sweep", "recommend"), "methods to try with their default grids"),
    Field("search", "grid", "grid", ("sweep", "recommend"), "values to try, by method", "grids"),
    Field("search", "plan", "path", ("sweep",), "file with the grids"),
    Field("search", "replications", "number", ("sweep", "recommend"), "draws of each random masking"),
    Field("search", "draws", "text", ("sweep",), "common or fresh"),
    Field("search", "workers", "number", ("sweep", "recommend"), "cores to use"),
    Field("measures", "metrics", "names", ("mask", "evaluate", "sweep"), "metrics"),
    Field("measures", "ties", "text", COMMANDS, "how equal values are ranked"),
    Field("measures", "missing", "text", COMMANDS, "rule for missing cells"),
    Field(
        "measures", "sample_queries", "number", ("evaluate", "sweep", "recommend"), "records to estimate on"
    ),
    Field("measures", "known_share", "number", _EVALUATE, "share of the persons whom an intruder holds"),
    Field("measures", "estimates", "texts", COMMANDS, "what users of the file compute"),
    Field("measures", "variables", "flag", ("evaluate", "sweep"), "also each variable"),
    Field("measures", "together", "flag", _EVALUATE, "linkage of several releases together"),
    Field("measures", "detail", "flag", ("sweep",), "also random-order levels and tie ranges"),
    Field("measures", "no_measure", "flag", ("mask",), "only mask"),
    Field("engine", "engine", "text", ("mask", "evaluate"), "memory, local or spark"),
    Field("engine", "memory", "text", ("mask", "evaluate"), "limit for the engine local"),
    Field("engine", "master", "text", ("mask", "evaluate"), "address of a Spark cluster"),
    Field("engine", "scratch", "path", ("mask", "evaluate"), "folder for intermediate files"),
    Field("output", "output", "path", MASKS, "the file, or of a sweep the folder, to write", needed=MASKS),
    Field("output", "release", "flag", ("mask",), "a file that can be handed out; true unless it says false"),
    Field("output", "keep_order", "flag", RELEASES, "leave the rows in the order of the original"),
    Field("output", "numbered", "text", RELEASES, "name of a column of fresh record numbers"),
    Field("output", "decimals", "number", RELEASES, "decimals of masked cells"),
    Field("output", "groups", "text", ("mask",), "name of a column of group numbers"),
    Field("output", "calibrate", "texts", RELEASES, "totals of the original that hold in the file"),
    Field("output", "format", "text", ("sweep",), "parquet or csv", "form"),
    Field("output", "report", "path", COMMANDS, "HTML report"),
    Field("private", "private", "path", ("mask", "evaluate", "recommend"), "folder of the private record"),
    Field("private", "crosswalk", "path", RELEASES, "original row of each published row"),
    Field(
        "private",
        "crosswalk",
        "paths",
        _EVALUATE,
        "original row of each masked row",
        "crosswalks",
    ),
    Field(
        "private",
        "private_report",
        "path",
        ("mask", "evaluate", "recommend"),
        "HTML report with exact statistics",
    ),
    Field("private", "folder", "path", ("recommend",), "folder for the runs of the search"),
    Field("private", "records", "path", _EVALUATE, "each record's risk and share of the losses"),
    Field("private", "private_output", "flag", _EVALUATE, "also figures that one record dominates"),
)


def fields_of(command: str) -> list[Field]:
    """Return the keys of the jobs of a command."""
    return [field for field in FIELDS if command in field.commands]


DRAFT = "https://json-schema.org/draft/2020-12/schema"


def job_schema() -> dict[str, Any]:
    """Return the JSON schema of a job file, as read from TOML."""
    command = {
        "enum": list(COMMANDS),
        "description": "by default recommend where there are limits, mask where there is a method",
    }
    return {
        "$schema": DRAFT,
        "title": "sdckit job",
        "type": "object",
        "properties": {"command": command} | {section: _section_schema(section) for section in SECTIONS},
        "required": ["input"],
        "additionalProperties": False,
    }


def _section_schema(section: str) -> dict[str, Any]:
    """Return the schema of one section."""
    fields = [field for field in FIELDS if field.section == section]
    whole = [field for field in fields if not field.key]
    if whole:
        return KINDS[whole[0].kind][1] | {"description": SECTIONS[section]}
    properties: dict[str, dict[str, Any]] = {}
    for field in fields:
        properties.setdefault(field.key, {"anyOf": []})["anyOf"].append(_field_schema(field))
    return {
        "type": "object",
        "description": SECTIONS[section],
        "properties": {
            key: found["anyOf"][0] if len(found["anyOf"]) == 1 else found for key, found in properties.items()
        },
        "additionalProperties": False,
    }


def _field_schema(field: Field) -> dict[str, Any]:
    """Return the schema of one key; its description names the commands that know it."""
    return KINDS[field.kind][1] | {"description": f"{field.text} ({', '.join(field.commands)})"}
