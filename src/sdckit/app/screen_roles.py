"""The screen of roles: one row a column, and what the columns that stay untouched give away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import JSONResponse

from sdckit.app.screen import REFUSALS, Form, Page, checked, kept, message_of, shown
from sdckit.app.session import describe
from sdckit.app.state import roles_of_job
from sdckit.core.text import number
from sdckit.request.options import SINGLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.responses import Response

    from sdckit.app.session import OpenFile
    from sdckit.core.description import Description

ROLES = {
    "columns": "mask it",
    "untouched": "publish it as it is",
    "recode": "publish it coarsened",
    "by": "publish it, and mask each group separately",
    "weights": "survey weight, published",
    "key": "identifies a record: not published",
    "unit": "household, firm or person: publish new numbers",
    "drop": "do not publish it",
}
KNOWS = {
    "": "knows it if it is published",
    "unknown": "does not know it",
    "confidential": "wants to learn it",
}
MEANINGS = {
    "mask it": "Its numbers are changed, so that records are hard to find by them: amounts, above all.",
    "publish it as it is": "Such as sex or region. A record that shares its values with nobody can be found.",
    "publish it coarsened": "The same, but coarser: 10 makes bands of ten, year keeps the year of a date, "
    "rare:20 merges values of fewer than 20 records.",
    "mask each group separately": "Records are mixed only with others of the same value, such as a sector.",
    "survey weight": "Measures of loss use it. It is published; say whether an intruder knows it.",
    "identifies a record": "A name or a number that one record alone has. It is never published.",
    "household, firm or person": "A number that several records share. The release has new ones.",
    "do not publish it": "The column is left out of the release.",
}
GUESSES = {  # by the name of the role that is proposed
    "variable": "mask it",
    "untouched": "publish it as it is",
    "key": "identifies a record",
    "unit": "household, firm or person",
    "weights": "survey weight",
    "drop": "do not publish it",
}


class Choice(NamedTuple):
    """What was chosen for a column: its role, how it is coarsened, and what the intruder knows of it."""

    role: str = ""
    recode: str = ""
    knows: str = ""


async def show(page: Page) -> Response:
    """Show the columns with their roles, or with what a refused form says."""
    file = page.file
    found = await page.work(describe, file.source, file.state.roles)
    columns, job = file.source.frame.columns, file.state.job
    choices = choices_of_form(page.form, columns) if page.refused else choices_of_job(job)
    return page.render(
        "roles",
        title="Roles of the columns",
        columns=_rows(file, choices),
        roles=ROLES.items(),
        knows=KNOWS.items(),
        meanings=MEANINGS.items(),
        records=f"{file.source.frame.height:,}",
        uniques=uniques_text(found, file.source.frame.height),
        undecided=undecided_text(found, job),
        floor=number(found.floor),
        recodings=[
            {"text": f"{row['option']} {row['value']}", "floor": number(row["floor"])}
            for row in found.steps.iter_rows(named=True)
        ],
    )


def _rows(file: OpenFile, choices: Mapping[str, Choice]) -> list[dict[str, Any]]:
    """Return one row for each column: what it looks like, the proposal, and what was chosen for it."""
    return [
        {
            "name": row["column"],
            "type": row["type"],
            "missing": f"{row['missing']:,}",
            "distinct": f"{row['distinct']:,}",
            **choices.get(row["column"], Choice())._asdict(),
            "guess": GUESSES.get(row["role"], row["role"]),
            "reason": row["reason"],
        }
        for row in file.guess.table.iter_rows(named=True)
    ]


def role_by_column(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the role that a job gives to each column, as the form names it."""
    roles = job.get("roles", {})
    found: dict[str, str] = {}
    for role in ("untouched", "columns", "by", "weights", "key", "unit", "drop"):
        names = roles.get(role, ())
        found |= dict.fromkeys([names] if isinstance(names, str) else names, role)
    return found | dict.fromkeys(job.get("recode", ()), "recode")


def choices_of_job(job: Mapping[str, Any]) -> dict[str, Choice]:
    """Return what a job says of each column that it names."""
    roles, recode = role_by_column(job), job.get("recode", {})
    knows = {
        name: what for what in ("unknown", "confidential") for name in job.get("roles", {}).get(what, ())
    }
    return {
        name: Choice(roles.get(name, ""), str(recode.get(name, "")), knows.get(name, ""))
        for name in {*roles, *knows}
    }


def choices_of_form(form: Form, names: Sequence[str]) -> dict[str, Choice]:
    """Return what a form says of each column."""
    return {
        name: Choice(*(form.text(f"{field}-{place}") for field in Choice._fields))
        for place, name in enumerate(names)
    }


def job_of_form(form: Form, names: Sequence[str]) -> dict[str, Any]:
    """Return the sections on roles and recodings that a form gives; raise ValueError if they cannot be.

    A column without a role is left out: it is not decided.
    """
    lists: dict[str, Any] = {}
    recode: dict[str, Any] = {}
    for name, (role, way, knows) in choices_of_form(form, names).items():
        if role == "recode":
            if not way:
                raise ValueError(f"column {name!r} has no way to be coarsened; give 10, year or rare:20")
            recode[name] = int(way) if way.isdecimal() else way
        elif role in SINGLE:
            if role in lists:
                raise ValueError(f"{lists[role]!r} and {name!r} are both the {role}; choose one of them")
            lists[role] = name
        elif role:
            lists.setdefault(role, []).append(name)
        if knows and role not in ("key", "unit", "drop"):
            lists.setdefault(knows, []).append(name)
    return {"roles": lists} | ({"recode": recode} if recode else {})


async def check(page: Page) -> Response:
    """Answer what the roles in the form would mean, without keeping them."""
    source = page.file.source
    try:
        job = job_of_form(page.form, source.frame.columns)
        found = await page.work(describe, source, roles_of_job(job))
    except REFUSALS as error:
        return JSONResponse({"uniques": message_of(error).text, "undecided": ""})
    return JSONResponse(
        {"uniques": uniques_text(found, source.frame.height), "undecided": undecided_text(found, job)}
    )


async def keep(page: Page) -> Response:
    """Keep the roles of the form; go on to the rules once every column is decided."""
    file = page.file
    parts = job_of_form(page.form, file.source.frame.columns)
    found = await page.work(describe, file.source, roles_of_job(parts))
    job = {name: part for name, part in file.state.job.items() if name not in ("roles", "recode")} | parts
    done = await page.keep(job, "rules")
    text = undecided_text(found, parts)
    return page.go_to("roles", text) if text else done


def uniques_text(found: Description, records: int) -> str:
    """Return the live line: how many records stand alone on what stays untouched."""
    alone = round(found.uniques * records)
    verb = "record is" if alone == 1 else "records are"
    return (
        f"{alone:,} {verb} unique on what stays untouched and an intruder knows; the risk of linkage is "
        f"{number(found.floor)} at least, however strongly the other columns are masked."
    )


def undecided_text(found: Description, job: Mapping[str, Any]) -> str:
    """Return a sentence that names the columns that need a decision; an empty text if none does.

    A column that the job gives no role needs one, too: else numbers would be published as they are.
    """
    roles = role_by_column(job)
    names = [
        row["column"]
        for row in found.table.iter_rows(named=True)
        if not row["decided"] or row["column"] not in roles
    ]
    return f"Choose a role for: {', '.join(names)}. The search needs all of them." if names else ""


ROUTES = [shown("/roles", show), kept("/roles", keep, show), checked("/roles/check", check)]
