"""The JSON schema of job files, made from the table of their keys."""

from __future__ import annotations

from typing import Any

from sdckit.job.fields import COMMANDS, FIELDS, KINDS, SECTIONS, Field

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
