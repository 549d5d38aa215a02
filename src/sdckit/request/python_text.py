"""A job of `recommend` as a Python script that does the same."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from sdckit.core.checks import as_number
from sdckit.core.roles import SEVERAL
from sdckit.io.formats import CSV_SUFFIXES, EXCEL_SUFFIXES, LABELLED_SUFFIXES, suffix_of
from sdckit.request.options import SINGLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.request.toml import Job

WIDTH = 100
INDENT = "    "
SCRIPT = """\
import sdckit as sdc
{imports}

# {note}
original = {read}.frame

data = {data}
choice = {recommend}
print(choice)

release = {release}
print(release.evaluation)
print({publish})
"""
CSV_NOTE = "As the commands read it: codes such as 007 stay text, which pl.read_csv would make numbers."
STAT_NOTE = "As the commands read it; labels of variables and values are kept by the command only."
NOTES = dict.fromkeys(CSV_SUFFIXES + EXCEL_SUFFIXES, CSV_NOTE) | dict.fromkeys(LABELLED_SUFFIXES, STAT_NOTE)
DIALECT = "# The command writes CSV as the original is written; this script with commas and decimal points.\n"
MORE = "# The command also writes {names}.\n"
WRITTEN = (
    "delimiter",
    "decimal_comma",
    "escape_formulas",
    "encoding",
)  # keys of [input] on how CSV is written
ONLY_COMMAND = (("output", "report"), ("private", "crosswalk"), ("private", "private_report"))


def python_text(job: Job) -> str:
    """Return a Python script that searches, masks and publishes as `sdckit recommend` does for a job.

    It is to be run in the folder that the paths of the job are relative to.
    """
    if job.command != "recommend":
        raise ValueError(f"a job of {job.command} has no script; give one of recommend")
    content = job.content
    output, private = (content.get(section, {}) for section in ("output", "private"))
    file, dialect = content["input"]["data"], _dialect(content["input"])
    imports = ["from sdckit.io.formats import Dialect"] if dialect else []
    text = SCRIPT.format(
        imports="\n".join([*imports, "from sdckit.io.files import read"]),
        note=NOTES.get(suffix_of(PurePath(file)), "As the commands read it."),
        read=_call("read", [_path(job, file), *dialect], {}),
        data=_call("sdc.Microdata", ["original"], _stated_arguments(job)),
        recommend=_call("data.recommend", [], _search_arguments(job)),
        release=_call("choice.release", [], _given(output, "keep_order", "numbered", "calibrate")),
        publish=_call("release.publish", [_path(job, output["output"])], _paths(job, private, "private")),
    )
    others = [content.get(section, {}).get(key) for section, key in ONLY_COMMAND]
    names = " and ".join(ascii(str(name)) for name in others if name)
    text += DIALECT if _given(content["input"], *WRITTEN) else ""
    return text + (MORE.format(names=names) if names else "")


def _stated_arguments(job: Job) -> dict[str, Any]:
    """Return the arguments of `Microdata` but the data, by name, where they are not the defaults."""
    content = job.content
    roles, measures = (content.get(section, {}) for section in ("roles", "measures"))
    found: dict[str, Any] = {role: _several(roles[role]) for role in SEVERAL if role in roles}
    found |= _given(roles, *SINGLE) | {
        "na": [one for one in _several(content["input"].get("na")) if as_number(one) is not None]
    }
    found |= {
        "recode": dict(content.get("recode", {})),
        "estimates": _several(measures.get("estimates")),
        "rules": _several(content.get("rules", {}).get("rule")),
        "intruders": _intruders(content.get("scenario", ())),
    }
    return _without_defaults(found | _given(measures, "ties", "missing"))


def _search_arguments(job: Job) -> dict[str, Any]:
    """Return the arguments of `Microdata.recommend`, by name, where they are not the defaults."""
    content = job.content
    search, measures = (content.get(section, {}) for section in ("search", "measures"))
    decimals = content["output"].get("decimals", "original")
    found = _given(search, "max_risk", "max_loss", "minimise") | {"plan": _plan(search)}
    found |= _given(search, "replications") | _given(measures, "sample_queries") | _given(search, "workers")
    found |= _paths(job, content.get("private", {}), "folder")
    return _without_defaults(found) | {"decimals": None if str(decimals).lower() == "none" else decimals}


def _without_defaults(found: dict[str, Any]) -> dict[str, Any]:
    """Return arguments without those that are empty."""
    return {name: value for name, value in found.items() if value not in (None, [], {})}


def _plan(search: Mapping[str, Any]) -> Any:
    """Return the methods and grids to try as the library takes them; None for the default methods."""
    methods = _several(search.get("methods"))
    named = _Code("dict.fromkeys(sdc.METHODS)") if "all" in methods else dict.fromkeys(methods)
    grid = {method: dict(values) or None for method, values in search.get("grid", {}).items()}
    if isinstance(named, _Code):
        return _Code(f"{named!r} | {grid!r}") if grid else named
    return named | grid


def _intruders(entries: Any) -> dict[str, Any]:
    """Return other intruders by name, as code: what each knows, and the limits for him."""
    return {
        one["name"]: _Code(
            _call("sdc.Intruder", [], {"known": _several(one["known"])} | _given(one, "max_risk"))
        )
        for one in entries
    }


def _dialect(source: Mapping[str, Any]) -> list[str]:
    """Return the dialect of the file as Python code, in a list that is empty for the usual one."""
    given = _given(source, *WRITTEN, "table")
    codes = tuple(str(code) for code in _several(source.get("na")))
    given |= {"missing": codes} if codes else {}
    return [_call("Dialect", [], given)] if given else []


def _given(section: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return those of some keys that a section has."""
    return {key: section[key] for key in keys if key in section}


def _paths(job: Job, section: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the path that a section has under a key, by that key; nothing if it has none."""
    return {key: str(job.folder / section[key])} if key in section else {}


def _path(job: Job, path: str) -> str:
    """Return a path of a job as Python code."""
    return repr(str(job.folder / path))


def _several(value: Any) -> list[Any]:
    """Return a list unchanged, one value as a list, and None as an empty one."""
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


class _Code(str):
    """A text that is Python code and stands in a call as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _call(function: str, arguments: list[str], named: Mapping[str, Any]) -> str:
    """Return a call as Python code, on one line if it fits there; `arguments` are code, `named` values."""
    short = [*arguments, *(f"{name}={value!r}" for name, value in named.items())]
    line = f"{function}({', '.join(short)})"
    if len(line) <= WIDTH - 20:  # room for what stands before the call
        return line
    long = [*arguments, *(f"{name}={_formatted(value)}" for name, value in named.items())]
    return "\n".join([f"{function}(", *(f"{INDENT}{argument}," for argument in long), ")"])


def _formatted(value: Any) -> str:
    """Return a value as Python code inside a call; a long list or dict has a line for each entry."""
    text = repr(value)
    if len(text) <= WIDTH - 20 or not isinstance(value, (dict, list)):
        return text
    entries = (
        [f"{key!r}: {one!r}" for key, one in value.items()] if isinstance(value, dict) else map(repr, value)
    )
    first, last = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([first, *(f"{2 * INDENT}{entry}," for entry in entries), f"{INDENT}{last}"])
