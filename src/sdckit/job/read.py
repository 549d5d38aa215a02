"""Read a job file, and check every key of it, before any work."""

from __future__ import annotations

import tomllib
import warnings
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit.core import checks
from sdckit.job.fields import COMMANDS, FIELDS, GONE, KINDS, SECTIONS, Field, fields_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

EXAMPLES = {
    "data": 'data = "data.csv"',
    "masked": 'masked = ["masked.csv"]',
    "method": 'method = "mdav"',
    "max_risk": "max_risk = { linkage = 0.1 }",
    "output": 'output = "masked.csv"',
}
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


@dataclass(frozen=True)
class Job:
    """A checked job: the command it is for, its sections, and the folder that its paths are relative to."""

    command: str
    content: Mapping[str, Any]
    folder: Path = Path()

    def values(self) -> Iterator[tuple[Field, Any]]:
        """Yield each key that the job gives, with its value, in the order of the table of keys."""
        for field in fields_of(self.command):
            found = self.content.get(field.section)
            if found is not None and not field.key:
                yield field, found
            elif found is not None and field.key in found:
                yield field, found[field.key]


def read_job(path: Path) -> Job:
    """Read a job file; raise ValueError, with the key's path, for whatever is unknown, missing or unfit."""
    content = _parse(path)
    for (section, key), use in GONE.items():
        entries = content.get(section)
        if isinstance(entries, dict) and key in entries:
            del entries[key]
            warnings.warn(f"'{path}': [{section}] {key} is gone and ignored; give {use}", stacklevel=2)
    try:
        return check_job(content, path.parent)
    except ValueError as error:
        raise ValueError(f"'{path}': {error}") from error


def check_job(content: Mapping[str, Any], folder: Path = Path()) -> Job:
    """Return the job that a dict of sections describes; raise ValueError if it is none."""
    for section, entries in content.items():
        if section != "command":
            _check_section(section, entries)
    command = _command_of(content)
    for field in _given(content):
        _require_fitting(field, command)
    for field in fields_of(command):
        if command in field.needed and not content.get(field.section, {}).get(field.key):
            raise ValueError(f"{field.path} is missing; add {EXAMPLES[field.key]} for {command}")
    return Job(command, content, folder)


def _parse(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; errors of its syntax have the number of the line."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"no file '{path}'; check its name and folder") from error
    except (OSError, UnicodeError) as error:
        raise ValueError(f"cannot read '{path}' as text: {error}; give a TOML file") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        remedy = "mend that line, or start with sdckit describe"
        raise ValueError(f"'{path}' is no TOML file: {error}; {remedy}") from error


def _check_section(section: str, entries: Any) -> None:
    """Raise ValueError for an unknown section or key, and for a value of a wrong type."""
    if section not in SECTIONS:
        raise _unknown("section", f"[{section}]", [f"[{name}]" for name in SECTIONS])
    fields = [field for field in FIELDS if field.section == section]
    if not fields[0].key:
        _require_kind(fields, entries)
    elif not isinstance(entries, dict):
        fact = f"[{section}] is {_value_text(section, entries)}"
        raise ValueError(f"{fact}; write [{section}] on a line, and its keys below it")
    else:
        for key, value in entries.items():
            _require_kind(_fields_named(section, key, fields), value)


def _fields_named(section: str, key: str, fields: Collection[Field]) -> list[Field]:
    """Return the fields of a key in a section; raise ValueError if there is none."""
    found = [field for field in fields if field.key == key]
    elsewhere = [field.path for field in FIELDS if field.key == key]
    if not found and elsewhere:
        raise ValueError(f"[{section}] {key} is in the wrong section; it belongs to {elsewhere[0]}")
    if not found:
        raise _unknown("key", f"[{section}] {key}", list(dict.fromkeys(field.path for field in fields)))
    return found


def _unknown(what: str, given: str, known: Collection[str]) -> ValueError:
    """Return the error for a section or a key that no job has, with the most similar one."""
    close = get_close_matches(given, known, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return ValueError(f"unknown {what} {given}{hint}; choose from: {', '.join(known)}")


def _require_kind(fields: Collection[Field], value: Any) -> None:
    """Raise ValueError unless a value is of the kind of one of the fields that share a key."""
    faults = [next(_faults(value, KINDS[field.kind][1], field.path), None) for field in fields]
    if all(faults):
        field, fault = next(zip(fields, faults, strict=True))
        raise ValueError(f"{fault}; give {KINDS[field.kind][0]}")


def _faults(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield what is wrong with a value by its JSON schema, as texts that begin with its path."""
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    fitting = any(isinstance(value, TYPES[kind]) for kind in kinds)
    if not fitting or (isinstance(value, bool) and "boolean" not in kinds):
        yield f"{path} is {_value_text(path, value)}"
    elif isinstance(value, list):
        for one in value:
            yield from _faults(one, schema["items"], f"{path}, an entry of the list,")
    elif isinstance(value, dict):
        yield from _faults_of_table(value, schema, path)


def _value_text(path: str, value: Any) -> str:
    """Return a value of a job for an error, only its type if it names a private place."""
    return f"of type {type(value).__name__}" if path.lstrip("[").startswith("private") else repr(value)


def _faults_of_table(value: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield what is wrong with a table by its JSON schema: keys missing or unknown, unfit values."""
    known = schema.get("properties")
    for key in schema.get("required", ()):
        if key not in value:
            yield f"{path} has no {key}"
    for key, one in value.items():
        if known is None:
            yield from _faults(one, schema["additionalProperties"], f"{path} {key}")
        elif key in known:
            yield from _faults(one, known[key], f"{path} {key}")
        else:
            yield str(_unknown("key", f"{path} {key}", [f"{path} {name}" for name in known]))


def _given(content: Mapping[str, Any]) -> Iterator[Field]:
    """Yield the fields that a job gives; of those that share a key, each."""
    for field in FIELDS:
        entries = content.get(field.section)
        if entries and (not field.key or field.key in entries):
            yield field


def _command_of(content: Mapping[str, Any]) -> str:
    """Return the command of a job: the one it names, else by whether it has a method or limits."""
    method = "method" in content.get("masking", {})
    searched = [field.path for field in _given(content) if field.section == "search"]
    if method and searched:
        raise ValueError(
            f"[masking] method and {searched[0]} exclude each other, as a job masks with one setting or "
            "searches for one; drop one of them"
        )
    if "command" in content:
        return checks.one_of("command", content["command"], COMMANDS)
    if "masked" in content.get("input", {}):
        return "evaluate"
    if not method and not searched:
        raise ValueError(
            f"section [search] is missing; add it with {EXAMPLES['max_risk']}, or [masking] with "
            f"{EXAMPLES['method']}"
        )
    return "mask" if method else "recommend"


def _require_fitting(field: Field, command: str) -> None:
    """Raise ValueError for a key that the command of the job has no option for."""
    same = [one for one in FIELDS if (one.section, one.key) == (field.section, field.key)]
    if not any(command in one.commands for one in same):
        others = ", ".join(dict.fromkeys(name for one in same for name in one.commands))
        raise ValueError(f"{field.path} is not for {command} but for {others}; drop it, or name the command")
