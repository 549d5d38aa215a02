"""Job files: reading and writing them."""

from __future__ import annotations

import re
import tomllib
import warnings
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from sdckit.core import checks
from sdckit.io import atomic
from sdckit.job.fields import COMMANDS, FIELDS, GONE, KINDS, SECTIONS, Field, fields_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


WIDTH = 100  # characters of a line up to which a list stays on it
BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(content: Mapping[str, Any]) -> str:
    """Return a dict as TOML: plain values first, then a section for each dict, alone or in a list."""
    plain = [f"{key_text(key)} = {value_text(value)}" for key, value in content.items() if not _nested(value)]
    parts = ["\n".join(plain)] if plain else []
    for key, value in content.items():
        if isinstance(value, dict):
            parts.append(section_text(f"[{key_text(key)}]", value))
        elif _nested(value):
            parts += [section_text(f"[[{key_text(key)}]]", entry) for entry in value]
    return "\n\n".join(parts) + "\n"


def section_text(head: str, entries: Mapping[str, Any]) -> str:
    """Return a section: its head, then a line for each entry."""
    return "\n".join([head, *(entry_text(key, value) for key, value in entries.items())])


def entry_text(key: str, value: Any) -> str:
    """Return a key and its value as a line; a long list has a line for each of its values."""
    line = f"{key_text(key)} = {value_text(value)}"
    if isinstance(value, list) and len(line) > WIDTH:
        return "\n".join([f"{key_text(key)} = [", *(f"    {value_text(one)}," for one in value), "]"])
    return line


def key_text(key: str) -> str:
    """Return a key, in quotation marks unless it has letters, digits, dashes and underscores only."""
    return key if BARE.fullmatch(key) and key.isascii() else string_text(key)


def value_text(value: Any) -> str:
    """Return a value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        inner = ", ".join(f"{key_text(key)} = {value_text(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(value_text, value))}]"
    return string_text(str(value))


def string_text(text: str) -> str:
    """Return a string in quotation marks; what cannot be printed, such as a mark of direction, is escaped."""
    return f'"{"".join(map(_letter_text, text))}"'


def _letter_text(letter: str) -> str:
    """Return a character as a TOML string has it."""
    if letter in '"\\':
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    code = ord(letter)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"a name has the byte {code & 0xFF:#04x}, which is no UTF-8 text; rename it")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _nested(value: Any) -> bool:
    """Return True for a dict, and for a list of dicts."""
    return isinstance(value, dict) or (isinstance(value, list) and value != [] and isinstance(value[0], dict))


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
