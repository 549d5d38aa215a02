"""Job files: what a command does, as a TOML file that is read, checked, written and repeated."""

from __future__ import annotations

import math
import os
import re
import tomllib
import warnings
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from sdckit.core import checks
from sdckit.io import atomic
from sdckit.request.options import (
    COMMANDS,
    GONE,
    HIDDEN,
    JOB_OPTIONS,
    KINDS,
    SECTIONS,
    TABLES,
    Option,
    Request,
    job_options,
)
from sdckit.request.words import several, spelled, word_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping


WIDTH = 100  # characters of a line up to which a list stays on it
DRAFT = "https://json-schema.org/draft/2020-12/schema"
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

    def values(self) -> Iterator[tuple[Option, Any]]:
        """Yield each key that the job gives, with its value, in the order of the table of keys."""
        for option in job_options(self.command):
            found = self.content.get(option.section)
            if found is not None and not option.key:
                yield option, found
            elif found is not None and option.key in found:
                yield option, found[option.key]


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
    for option in _given(content):
        _require_fitting(option, command)
    for option in job_options(command):
        if command in option.needed and not content.get(option.section, {}).get(option.key):
            raise ValueError(f"{option.path} is missing; add {EXAMPLES[option.key]} for {command}")
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
    options = [option for option in JOB_OPTIONS if option.section == section]
    if not options[0].key:
        _require_kind(options, entries)
    elif not isinstance(entries, dict):
        fact = f"[{section}] is {_value_text(section, entries)}"
        raise ValueError(f"{fact}; write [{section}] on a line, and its keys below it")
    else:
        for key, value in entries.items():
            _require_kind(_options_named(section, key, options), value)


def _options_named(section: str, key: str, options: Collection[Option]) -> list[Option]:
    """Return the options of a key in a section; raise ValueError if there is none."""
    found = [option for option in options if option.key == key]
    elsewhere = [option.path for option in JOB_OPTIONS if option.key == key]
    if not found and elsewhere:
        raise ValueError(f"[{section}] {key} is in the wrong section; it belongs to {elsewhere[0]}")
    if not found:
        raise _unknown("key", f"[{section}] {key}", list(dict.fromkeys(option.path for option in options)))
    return found


def _unknown(what: str, given: str, known: Collection[str]) -> ValueError:
    """Return the error for a section or a key that no job has, with the most similar one."""
    close = get_close_matches(given, known, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return ValueError(f"unknown {what} {given}{hint}; choose from: {', '.join(known)}")


def _require_kind(options: Collection[Option], value: Any) -> None:
    """Raise ValueError unless a value is of the kind of one of the options that share a key."""
    faults = [next(_faults(value, KINDS[option.kind][1], option.path), None) for option in options]
    if all(faults):
        option, fault = next(zip(options, faults, strict=True))
        raise ValueError(f"{fault}; give {KINDS[option.kind][0]}")


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


def _given(content: Mapping[str, Any]) -> Iterator[Option]:
    """Yield the options that a job gives; of those that share a key, each."""
    for option in JOB_OPTIONS:
        entries = content.get(option.section)
        if entries and (not option.key or option.key in entries):
            yield option


def _command_of(content: Mapping[str, Any]) -> str:
    """Return the command of a job: the one it names, else by whether it has a method or limits."""
    method = "method" in content.get("masking", {})
    searched = [option.path for option in _given(content) if option.section == "search"]
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


def _require_fitting(option: Option, command: str) -> None:
    """Raise ValueError for a key that the command of the job has no option for."""
    same = [one for one in JOB_OPTIONS if (one.section, one.key) == (option.section, option.key)]
    if not any(command in one.jobs for one in same):
        others = ", ".join(dict.fromkeys(name for one in same for name in one.jobs))
        raise ValueError(f"{option.path} is not for {command} but for {others}; drop it, or name the command")


HEAD = "# A job for sdckit: run it with sdckit run FILE. Paths are relative to the folder of this file.\n\n"
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
    for option, value in job.values():
        if option.section in HIDDEN:
            continue
        found = _file_names(value) if option.kind in PATHS else value
        if option.kind == "settings" and strata:
            found = {name: one for name, one in value.items() if ":" not in str(one)}
        if not option.key:
            content[option.section] = found
        else:
            content.setdefault(option.section, {})[option.key] = found
    return toml_text(content)


def _file_names(value: Any) -> Any:
    """Return a path, or a list of them, without folders."""
    return [PurePath(one).name for one in value] if isinstance(value, list) else PurePath(value).name


def request_of_job(job: Job, **more: Any) -> Request:
    """Return the request that a job stands for; `more` has options that no job has, such as quiet."""
    found = {option.name: _of_job(option, value, job.folder) for option, value in job.values()}
    if job.command == "mask":  # a job hands its file out unless it says otherwise
        found = {"release": True} | found
    return Request(command=job.command, **found, **more)


def _of_job(option: Option, value: Any, folder: Path) -> Any:  # noqa: PLR0911 - one for each kind
    """Return the value of an option from that of a job."""
    if option.kind == "path":
        return folder / value
    if option.kind == "paths":
        return tuple(folder / path for path in value)
    if option.kind in {"names", "texts", "codes"}:
        found = tuple(word_of(one) for one in several(value))
        kept = tuple(name for name in found if name.strip()) if option.kind == "names" else found
        return kept if found else None
    if option.kind in TABLES:
        return {name.strip(): _filled(option, name, one) for name, one in value.items()} or None
    if option.kind == "grid":
        return {
            method: {name: word_of(one) for name, one in grid.items()} for method, grid in value.items()
        } or None
    if option.kind == "scenarios":
        return _scenarios(value)
    return value if option.kind == "flag" else word_of(value)


def _filled(option: Option, name: str, value: Any) -> str:
    """Return an entry of a table of a job as a text; raise ValueError if name or value are empty."""
    text = word_of(value).strip()
    if not name.strip() or not text:
        raise ValueError(f"{option.path} has {name!r} = {value!r}; give {KINDS[option.kind][0]}")
    return text


def _scenarios(entries: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the scenarios of a job by name."""
    found: dict[str, Any] = {}
    for entry in entries:
        name = entry["name"].strip()
        if not name or "=" in name:
            fact = f"[[scenario]] name is {entry['name']!r}{', with an equals sign' * bool(name)}"
            raise ValueError(f"{fact}; give another name")
        if name in found:
            raise ValueError(f"[[scenario]] gives {name!r} twice; give it once")
        limits = {risk.strip(): word_of(one) for risk, one in entry.get("max_risk", {}).items()}
        found[name] = {"known": list(several(entry["known"])), "max_risk": limits}
    return found


def job_of_request(request: Request, folder: Path = Path(), columns: Collection[str] = ()) -> Job:
    """Return the job that does what a request says; defaults are left out.

    Relative paths become relative to `folder`, the one of the job file; `columns` are those of the file.
    """
    content: dict[str, Any] = {"command": request.command}
    content |= _sections(request, job_options(request.command), folder, columns)
    return Job(request.command, content, folder)


def input_section(request: Request, folder: Path) -> dict[str, Any]:
    """Return the section on the input of a job in a folder: the original file, and how to read it."""
    options = [one for one in job_options("recommend") if one.section == "input"]
    return dict(_sections(request, options, folder, ())["input"])


def _sections(
    request: Request, options: Iterable[Option], folder: Path, columns: Collection[str]
) -> dict[str, Any]:
    """Return the sections of a job with these options, as far as they are given."""
    found: dict[str, Any] = {}
    for option in options:
        value = request.given(option)
        if option.name == "release":
            value = request.release
        if value is None:
            continue
        entry = _to_job(option, value, folder, columns)
        if option.key:
            found.setdefault(option.section, {})[option.key] = entry
        else:
            found[option.section] = entry
    return found


def _to_job(  # noqa: PLR0911 - one for each kind
    option: Option, value: Any, folder: Path, columns: Collection[str]
) -> Any:
    """Return the value of an option as a job has it."""
    if option.kind == "path":
        return _relative(value, folder)
    if option.kind == "paths":
        return [_relative(path, folder) for path in value]
    if option.kind in {"name", "names"}:
        found = spelled(several(value) if option.kind == "name" else value, columns)
        return found if option.kind == "names" else found[0]
    if option.kind in TABLES:
        return {name: plain_value(text) for name, text in value.items()}
    if option.kind == "grid":
        return {
            method: {name: plain_value(text) for name, text in grid.items()} for method, grid in value.items()
        }
    if option.kind == "scenarios":
        return [_scenario_to_job(name, entry, columns) for name, entry in value.items()]
    if option.kind == "codes":
        return [plain_value(code) for code in value]
    if option.kind == "number":
        return plain_value(value)
    return list(value) if option.kind == "texts" else value


def _scenario_to_job(name: str, entry: Mapping[str, Any], columns: Collection[str]) -> dict[str, Any]:
    """Return a scenario as a job has it."""
    limits = {risk: plain_value(limit) for risk, limit in entry["max_risk"].items()}
    found = {"name": name, "known": spelled(entry["known"], columns)}
    return found | ({"max_risk": limits} if limits else {})


def plain_value(text: str) -> int | float | str:
    """Return a text as the number it spells if the number is written back as the same text, else the text."""
    for kind in (int, float):
        try:
            number = kind(text)
            if math.isfinite(number) and repr(number) == text:
                return number
        except (OverflowError, ValueError):  # no number, or a whole one beyond all floating ones
            continue
    return text


def _relative(path: Path, folder: Path) -> str:
    """Return a path relative to the folder of a job; an absolute path stays as it is."""
    if path.is_absolute() or folder == Path():
        return str(path)
    return str(path.absolute()) if folder.is_absolute() else os.path.relpath(path, folder)


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
    options = [option for option in JOB_OPTIONS if option.section == section]
    if not options[0].key:
        return KINDS[options[0].kind][1] | {"description": SECTIONS[section]}
    properties: dict[str, dict[str, Any]] = {}
    for one in options:
        about = {"description": f"{one.text} ({', '.join(one.jobs)})"}
        properties.setdefault(one.key, {"anyOf": []})["anyOf"].append(KINDS[one.kind][1] | about)
    return {
        "type": "object",
        "description": SECTIONS[section],
        "properties": {
            key: found["anyOf"][0] if len(found["anyOf"]) == 1 else found for key, found in properties.items()
        },
        "additionalProperties": False,
    }
