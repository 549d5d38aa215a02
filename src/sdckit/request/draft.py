"""The draft of a job that `sdckit describe` writes: decided roles as they are, questions as comments."""

from __future__ import annotations

import tomllib
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from sdckit.core.text import number
from sdckit.io.formats import READ_ONLY, stem_of, suffix_of
from sdckit.request.options import SINGLE
from sdckit.request.toml import entry_text, key_text, section_text, string_text, value_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sdckit.core.description import Description

HEAD = """\
# A job for sdckit, started by sdckit describe; nothing is masked yet. Edit it, then: sdckit run {name}
# Paths are relative to the folder of this file.
"""
UNDECIDED = """\
# Decide on {names}:
# take away the # before one line of each, or name it in another role: columns, key, untouched,
# drop, by, unknown, confidential (lists), weights or unit (one name), or in [recode].
"""
LISTS = ("columns", "key", "untouched", "drop")  # roles of several columns that describe proposes
ASKED = ("by", "known", "unknown", "confidential")  # roles that only a user can give
QUESTIONS = {
    "columns": "is it an amount to mask?",
    "key": "does it identify a record? then it is not published",
    "untouched": "is it published as it is?",
    "drop": "is it not published?",
    "weights": "is it the survey weight?",
    "unit": "does it number households, firms or persons? then they get fresh numbers",
}
ABOUT = {
    "columns": "masked",
    "key": "identify records; not published",
    "untouched": "published as they are",
    "drop": "not published",
}
REST = """\
# Another intruder, who knows some columns only, and the largest risk allowed for him:
# [[scenario]]
# name = "press"
# known = [{known}]
# max_risk = {{ linkage = 0.05 }}

[search]
# Largest share of the records that an intruder may re-identify, and the loss to make small.
# linkage_sure, the share of which he may be sure, is a tenth of it unless it is set here, too.
max_risk = {{ linkage = 0.1 }}
minimise = "brmae"
# methods = ["mdav", "noise", "rank_noise"]  # sdckit methods lists all
# grid = {{ mdav = {{ k = "2:30" }} }}
# max_loss = {{ suppressed = 0.01 }}

[output]
output = {output}
report = {report}
"""


class _Column(NamedTuple):
    """A column of a description: its name, the key of a job for its role, whether it is decided, and why."""

    name: str
    key: str
    decided: bool
    reason: str


def draft_text(found: Description, path: PurePath, source: Mapping[str, Any], data: PurePath) -> str:
    """Return the text of a job file for described data.

    `source` has the entries of the section on the input, `data` is the original file, `path` the job file.
    """
    columns = _columns_of(found)
    known = [one.name for one in columns if one.key == "untouched"] or [columns[0].name]
    stem, suffix = stem_of(data), suffix_of(data)
    masked = f"{stem}-masked{READ_ONLY.get(suffix, data.name[len(stem) :])}"
    rest = REST.format(
        known=string_text(known[0]),
        output=string_text(masked),
        report=string_text(f"{stem}-report.html"),
    )
    parts = [HEAD.format(name=path.name) + 'command = "recommend"\n', section_text("[input]", source) + "\n"]
    return "\n".join([*parts, _roles_text(columns, found), _recode_text(found), rest])


def draft_content(found: Description, source: Mapping[str, Any], data: PurePath) -> dict[str, Any]:
    """Return the sections of the job that `draft_text` writes, without questions and empty sections.

    A column whose role is not decided has none here.
    """
    content = tomllib.loads(draft_text(found, PurePath("job.toml"), source, data))
    content["roles"] = {role: names for role, names in content["roles"].items() if names}
    return {section: entries for section, entries in content.items() if entries}


def _columns_of(found: Description) -> list[_Column]:
    """Return the columns of a description with the keys that a job has for their roles."""
    return [
        _Column(
            row["column"],
            {"variable": "columns"}.get(row["role"], row["role"]),
            row["decided"],
            row["reason"],
        )
        for row in found.table.iter_rows(named=True)
    ]


def _with_roles(columns: Iterable[_Column], found: Description) -> list[_Column]:
    """Return the columns that stand in a role of a draft: not those recoded, nor in a role of the user."""
    recoded = _given_recodings(found)
    return [
        one
        for one in columns
        if one.key not in ASKED and not (one.name in recoded and one.key == "untouched")
    ]


def _given_recodings(found: Description) -> dict[str, str]:
    """Return the recodings that the user gave, by column."""
    given = [entry.rpartition("=") for entry in found.options.get("recode", ())]
    return {name: way for name, _, way in given}


def _roles_text(columns: Sequence[_Column], found: Description) -> str:
    """Return the section on roles; a column without a decision stands in comments."""
    open_names = [one.name for one in columns if one.key not in ASKED and not one.decided]
    columns = _with_roles(columns, found)
    lines = [UNDECIDED.format(names=", ".join(map(_comment, open_names))).rstrip()] if open_names else []
    for key in LISTS:
        lines += _list_lines(key, columns)
    for key in SINGLE:
        lines += [_single_line(one) for one in columns if one.key == key]
    lines += [entry_text(key, list(found.options[key])) for key in ASKED if key in found.options]
    return "\n".join(["[roles]", *lines]) + "\n"


def _list_lines(key: str, columns: Iterable[_Column]) -> list[str]:
    """Return the lines of a role of several columns: each column with the reason, or with a question."""
    lines = []
    for one in columns:
        if one.key == key and one.decided:
            lines.append(f"    {string_text(one.name)},  # {_comment(one.reason)}")
        elif one.key == key:
            lines.append(f"    # {string_text(one.name)},  # {_comment(one.reason)}: {QUESTIONS[key]}")
        elif key == "drop" and not one.decided:
            lines.append(f"    # {string_text(one.name)},  # or {QUESTIONS[key]}")
    return [f"{key} = [  # {ABOUT[key]}", *lines, "]"] if lines else []


def _single_line(one: _Column) -> str:
    """Return the line of a role of one column, as a question if it is not decided."""
    entry = f"{one.key} = {string_text(one.name)}  # {_comment(one.reason)}"
    return entry if one.decided else f"# {entry}: {QUESTIONS[one.key]}"


def _recode_text(found: Description) -> str:
    """Return the section on recodings: those given, and as comments steps that lower the risk's floor."""
    lines = [f"{key_text(name)} = {value_text(way)}" for name, way in _given_recodings(found).items()]
    if found.steps.height:
        last = found.steps["floor"][-1]
        lines.append(f"# By columns that are not masked, the risk is {number(found.floor)} at least.")
        lines.append(f"# These steps, one after the other, bring that floor to {number(last)}:")
    for row in found.steps.iter_rows(named=True):
        if row["option"] == "recode":
            name, _, way = row["value"].rpartition("=")
            lines.append(f"# {key_text(name)} = {value_text(way)}  # floor {number(row['floor'])}")
        else:
            step = f"name {_comment(row['value'])} in [roles] {row['option']}"
            lines.append(f"# ({step}: floor {number(row['floor'])})")
    return "\n".join(["[recode]", *lines]) + "\n"


def _comment(text: str) -> str:
    """Return a text as a comment can have it: on one line, without what cannot be printed."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
