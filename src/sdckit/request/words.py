"""Requests as words of a command line, read and written; names of columns as files spell them."""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sdckit.request.options import OPTIONS, TABLES, Option, Request, options_of
from sdckit.selection.plan import plan_of_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from sdckit.request.toml import Job

ROLES = tuple(one for one in OPTIONS.values() if one.section == "roles")


def request_of_words(command: str, given: Mapping[str, Any]) -> Request:
    """Return the request of a command line; `given` has what click found, by the names of the options."""
    found = {one.name: _of_words(one, given[one.name]) for one in options_of(command) if one.name in given}
    return Request(command=command, **found)


def _of_words(option: Option, given: Any) -> Any:
    """Return the value of an option from its words."""
    if option.kind == "paths" or given != ():
        if option.kind == "names":
            return tuple(name for text in given for name in split_names(text))
        if option.kind in TABLES:
            return parse_settings(given, option.flag, TABLES[option.kind])
        if option.kind == "grid":
            return plan_of_words(given)
        return parse_scenarios(given) if option.kind == "scenarios" else given
    return None


def spelled_as(request: Request, columns: Collection[str]) -> Request:
    """Return a request whose names of columns are as the file, which has these columns, spells them."""
    found: dict[str, Any] = {}
    for option in ROLES:
        given = getattr(request, option.name)
        if given is not None:
            names = spelled(given if option.kind == "names" else [given], columns)
            found[option.name] = tuple(names) if option.kind == "names" else names[0]
    if request.metrics is not None:
        found["metrics"] = tuple(spelled(request.metrics))
    if request.scenario is not None:
        found["scenario"] = {
            name: entry | {"known": spelled(entry["known"], columns)}
            for name, entry in request.scenario.items()
        }
    return replace(request, **found)


def spelled(names: Iterable[str], known: Collection[str] = ()) -> list[str]:
    """Return names, each once, without blanks at their ends unless a known name has them."""
    found = (next((one for one in (name, name.lstrip(" ")) if one in known), name.strip()) for name in names)
    return list(dict.fromkeys(found))


def split_names(text: str) -> list[str]:
    """Return the names in a text with commas between them; one with a comma is put in quotation marks.

    Blanks around a name are kept, as a column may have them: see `spelled`.
    """
    try:
        exact, found = (next(csv.reader([text], skipinitialspace=skip), []) for skip in (False, True))
    except csv.Error as error:
        raise ValueError(
            f"{text!r} is no list of names ({error}); put names with line ends or commas in quotation marks"
        ) from error
    if len(exact) != len(found):  # a blank before a quotation mark
        exact = found
    pairs = zip(exact, found, strict=True)
    return [raw if raw.strip() == cell.strip() else cell for raw, cell in pairs if cell.strip()]


def parse_names(texts: Sequence[str]) -> list[str]:
    """Return the names given by a repeatable option, each once, without blanks at their ends."""
    return spelled(name for text in texts for name in split_names(text))


def quoted_name(name: str) -> str:
    """Return a name as `split_names` takes it: quoted if it has a comma, a quotation mark or a line end."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if any(mark in name for mark in ',"\r\n') else name


def parse_settings(words: Sequence[str], option: str = "--set", example: str = "k=5") -> dict[str, str]:
    """Parse words of the form NAME=VALUE, such as the parameters of a method; return a dict of texts."""
    found: dict[str, str] = {}
    for word in words:
        split = word.partition if option == "--set" else word.rpartition  # names of metrics may contain =
        name, _, value = (part.strip() for part in split("="))
        if not name or not value:
            raise ValueError(
                f"{option} {word!r} has no name or no value; write NAME=VALUE, such as {example}"
            )
        if name in found:
            raise ValueError(f"{option} gives {name!r} twice; give it once")
        found[name] = value
    return found


FORM = "write NAME=COLUMNS:RISK=LIMIT, such as press=sex,age:linkage=0.1"


def parse_scenarios(words: Sequence[str]) -> dict[str, Any]:
    """Return scenarios by name from words such as "press=sex,age:linkage=0.1".

    The limits after the colon may be left out; a name of a column with a colon is put in quotation marks.
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, rest = word.partition("=")
        if not name.strip() or not equals:
            raise ValueError(f"--scenario {word!r} has no name or no columns; {FORM}")
        if name.strip() in found:
            raise ValueError(f"--scenario gives {name.strip()!r} twice; give it once")
        columns, limits = _split_at_colon(rest)
        found[name.strip()] = {"known": split_names(columns), "max_risk": _parse_limits(word, limits)}
    return found


def _split_at_colon(text: str) -> tuple[str, str]:
    """Return what stands before and after the first colon that is not in quotation marks."""
    quoted = False
    for place, letter in enumerate(text):
        quoted ^= letter == '"'
        if letter == ":" and not quoted:
            return text[:place], text[place + 1 :]
    return text, ""


def _parse_limits(word: str, text: str) -> dict[str, str]:
    """Return limits by risk from a text such as "linkage=0.1,uniques=0.2"."""
    limits = {}
    for part in split_names(text):
        risk, _, limit = (piece.strip() for piece in part.rpartition("="))  # names of metrics may contain =
        if not risk or not limit:
            raise ValueError(f"--scenario {word!r} has a limit without a name or a number; {FORM}")
        limits[risk] = limit
    return limits


def words_of_job(job: Job) -> list[str]:
    """Return the words of the command line that does what a job says, to be copied."""
    options: list[str] = []
    arguments: list[str] = []
    for option, value in job.values():
        words = _words_of(option, value, job.folder)
        if option.argument:
            arguments += words
        elif option.kind == "flag":
            options += [option.flag] * bool(value)
        else:
            options += [f"{option.flag}={word}" for word in words]
    if job.command == "mask" and "release" not in job.content.get("output", {}):
        options.append("--release")
    return [*options, "--", *arguments]


def _words_of(option: Option, value: Any, folder: Path) -> list[str]:
    """Return the values of an option as the command line gives them, one for each time it is given."""
    if option.kind in {"path", "paths"}:
        return [str(folder / path) for path in several(value)]
    if option.kind == "names":
        return [",".join(map(quoted_name, several(value)))] if value else []
    if option.kind in TABLES:
        return [f"{name}={word_of(one)}" for name, one in value.items()]
    if option.kind == "grid":
        return [
            word
            for method, grid in value.items()
            for word in [f"{method}.{name}={word_of(one)}" for name, one in grid.items()] or [method]
        ]
    if option.kind == "scenarios":
        return [_scenario_word(entry) for entry in value]
    return [word_of(one) for one in several(value)]


def several(value: Any) -> Sequence[Any]:
    """Return a list unchanged, and one value as a list."""
    return value if isinstance(value, list) else [value]


def word_of(value: Any) -> str:
    """Return a value of TOML as a word of the command line; values in a list have commas between them."""
    if isinstance(value, list):
        return ",".join(map(word_of, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scenario_word(entry: Mapping[str, Any]) -> str:
    """Return the word of --scenario for one scenario of a job."""
    known = ",".join(
        f'"{name}"' if ":" in name and quoted_name(name) == name else quoted_name(name)
        for name in several(entry["known"])
    )
    limits = [quoted_name(f"{risk}={word_of(one)}") for risk, one in entry.get("max_risk", {}).items()]
    return f"{entry['name']}={known}" + (f":{','.join(limits)}" if limits else "")
