"""Options of the command line as a job, and a job as words of the command line."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit.cli import parsing
from sdckit.cli.parsing import parse_settings
from sdckit.cli.scenario_options import parse_scenarios
from sdckit.job.fields import Field, fields_of
from sdckit.job.read import Job
from sdckit.selection.plan import plan_of_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import click

PATHS = ("path", "paths")
TABLES = ("limits", "losses", "settings", "recodings")
ARGUMENTS = {"evaluate": {"data": "original"}}  # arguments that are not named like their key
RELEASE = ("output", "release")  # a job hands its file out unless it says otherwise


def job_of_options(
    command: click.Command, given: Mapping[str, Any], folder: Path = Path(), columns: Collection[str] = ()
) -> Job:
    """Return the job that does what a command does with these options; defaults are left out.

    `given` has options and arguments by the names that click knows them by, `columns` are those of the file.
    Relative paths become relative to `folder`, the one of the job file.
    """
    name = str(command.name)
    defaults = {parameter.name: parameter.default for parameter in command.params}
    content: dict[str, Any] = {"command": name}
    for field in fields_of(name):
        value = given[_parameter_name(name, field)]
        is_release = (field.section, field.key) == RELEASE
        if value in (None, (), False, defaults.get(field.name)) and not is_release:
            continue
        found = _value_of(field, value, folder, columns)
        if not field.key:
            content[field.section] = found
        else:
            content.setdefault(field.section, {})[field.key] = found
    return Job(name, content, folder)


def input_section(data: Path, given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the section on the input of a job in a folder: the original file, and how to read it."""
    defaults = (None, (), False, "utf-8")
    fields = [field for field in fields_of("recommend") if field.section == "input" and field.key != "data"]
    values = {field.key: (field, given[field.name]) for field in fields if given[field.name] not in defaults}
    others = {key: _value_of(field, value, folder, ()) for key, (field, value) in values.items()}
    return {"data": _relative(data, folder)} | others


def words_of_job(job: Job, command: click.Command) -> list[str]:
    """Return the arguments and options of the command line that a job stands for."""
    options, arguments = [], {}
    flags = {parameter.name: parameter for parameter in command.params}
    for field, value in job.values():
        parameter = flags[_parameter_name(job.command, field)]
        words = _words_of(field, value, job.folder)
        if parameter.param_type_name == "argument":
            arguments[parameter.name] = words
        elif field.kind == "flag":
            options += [parameter.opts[-1]] * bool(value)
        else:
            options += [f"{_long_name(parameter)}={word}" for word in words]
    if job.command == "mask" and "release" not in job.content.get("output", {}):
        options.append("--release")
    ordered = [arguments.get(p.name, []) for p in command.params if p.param_type_name == "argument"]
    return [*options, "--", *(word for words in ordered for word in words)]


def _parameter_name(command: str, field: Field) -> str:
    """Return the name that click knows the option or argument of a field by."""
    return ARGUMENTS.get(command, {}).get(field.name, field.name)


def _long_name(parameter: click.Parameter) -> str:
    """Return an option as it is written out, such as --max-risk."""
    return next(name for name in parameter.opts if name.startswith("--"))


def _value_of(field: Field, given: Any, folder: Path, columns: Collection[str]) -> Any:
    """Return an option as a job has it."""
    if field.kind in PATHS:
        found = [_relative(Path(path), folder) for path in (given if field.kind == "paths" else [given])]
        return found if field.kind == "paths" else found[0]
    if field.kind in TABLES:
        option = "--set" if field.kind == "settings" else "--max-risk"  # where the equals sign is looked for
        return {name: plain_value(text) for name, text in parse_settings(given, option).items()}
    convert: dict[str, Callable[[], Any]] = {
        "names": lambda: parsing.parse_names(given, columns),
        "name": lambda: parsing.parse_name(given, columns),
        "grid": lambda: _grid_value(given),
        "scenarios": lambda: [_scenario_value(*one) for one in parse_scenarios(given, columns).items()],
        "codes": lambda: [plain_value(code) for code in given],
        "texts": lambda: list(given),
        "number": lambda: plain_value(str(given)),
    }
    return convert.get(field.kind, lambda: given)()


def _grid_value(words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the grids of --grid by method and parameter."""
    plan = plan_of_words(words)
    return {method: {name: plain_value(text) for name, text in grid.items()} for method, grid in plan.items()}


def _scenario_value(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario as a job has it."""
    limits = {risk: plain_value(limit) for risk, limit in entry["max_risk"].items()}
    return {"name": name, "known": entry["known"] or []} | ({"max_risk": limits} if limits else {})


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


def _words_of(field: Field, value: Any, folder: Path) -> list[str]:
    """Return the values of an option as the command line gives them, one for each time it is given."""
    if field.kind in PATHS:
        return [str(folder / path) for path in _several(value)]
    if field.kind == "names":
        return [parsing.quoted_name(name) for name in _several(value)]
    if field.kind in TABLES:
        return [f"{name}={_word(one)}" for name, one in value.items()]
    if field.kind == "grid":
        return [word for method, grid in value.items() for word in _grid_words(method, grid)]
    if field.kind == "scenarios":
        return [_scenario_word(entry) for entry in value]
    return [_word(one) for one in _several(value)]


def _several(value: Any) -> Sequence[Any]:
    """Return a list unchanged, and one value as a list."""
    return value if isinstance(value, list) else [value]


def _word(value: Any) -> str:
    """Return a value of TOML as a word of the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _grid_words(method: str, grid: Mapping[str, Any]) -> list[str]:
    """Return the words of --grid for one method."""
    lists = {name: ",".join(map(_word, _several(values))) for name, values in grid.items()}
    return [f"{method}.{name}={text}" for name, text in lists.items()] or [method]


def _scenario_word(entry: Mapping[str, Any]) -> str:
    """Return the word of --scenario for one scenario of a job."""
    if "=" in entry["name"]:
        raise ValueError(f"[[scenario]] name is {entry['name']!r}, with an equals sign; give another name")
    known = ",".join(map(_quoted, _several(entry["known"])))
    limits = [parsing.quoted_name(f"{risk}={_word(one)}") for risk, one in entry.get("max_risk", {}).items()]
    return f"{entry['name']}={known}" + (f":{','.join(limits)}" if limits else "")


def _quoted(name: str) -> str:
    """Return the name of a column for --scenario: in quotation marks where it has a colon, too."""
    quoted = parsing.quoted_name(name)
    return f'"{name}"' if ":" in name and quoted == name else quoted
