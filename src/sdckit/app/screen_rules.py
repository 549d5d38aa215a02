"""The screen of edit rules: those found in the file, with their counts, and the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from starlette.responses import JSONResponse

from sdckit.app.screen import REFUSALS, Form, Page, checked, kept, message_of, shown
from sdckit.rules.discover import discovered
from sdckit.rules.parse import parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response

    from sdckit.app.session import OpenFile
    from sdckit.metrics.original import Original

SHOWN = 60  # most rules that are listed


class Checked(NamedTuple):
    """A line with a rule of the user: what it says about the file, or what is wrong with it."""

    text: str
    error: bool


async def show(page: Page) -> Response:
    """Show the rules of the file and of the job, or what a refused form says."""
    file, form = page.file, page.form
    original = await page.work(page.session.original)
    found = await page.work(found_rules, file, original)
    listed = [one["rule"] for one in found]
    now = file.state.job.get("rules", {}).get("rule", [])
    ticked = set(ticked_rules(form, listed) if page.refused else now)
    own = form.lines("own") if page.refused else [rule for rule in now if rule not in listed]
    return page.render(
        "rules",
        title="Edit rules",
        found=[one | {"ticked": one["rule"] in ticked} for one in found],
        typed="\n".join(own),
        checks=await page.work(checked_rules, original, own),
    )


def found_rules(file: OpenFile, original: Original) -> list[dict[str, Any]]:
    """Return the rules that hold in the file, found once for each set of variables."""

    def find() -> list[dict[str, Any]]:
        """Find the rules, and count the records that have all of their columns."""
        rules = discovered(original.columns, original.values)[:SHOWN]
        complete = [~np.isnan(original.matrix(list(rule.columns))).any(axis=1) for rule in rules]
        return [
            {"rule": rule.text, "text": f" holds in all {np.count_nonzero(seen):,} records"}
            for rule, seen in zip(rules, complete, strict=True)
        ]

    return file.once("rules", original.columns, find)


def ticked_rules(form: Form, listed: Sequence[str]) -> list[str]:
    """Return the ticked ones of the rules that were found in the file."""
    places = [int(word) for word in form.texts("found") if word.isdecimal()]
    return [listed[place] for place in places if place < len(listed)]


def checked_rules(original: Original, rules: Sequence[str]) -> list[Checked]:
    """Return what each rule says about the file: how many records obey it, or what is wrong with it."""
    found = []
    for rule in rules:
        try:
            found.append(Checked(f"{rule}: {_obeyed_text(original, rule)}", error=False))
        except REFUSALS as error:
            found.append(Checked(message_of(error).text, error=True))
    return found


def _obeyed_text(original: Original, given: str) -> str:
    """Return how many records obey the rules in a text, which may be several such as 0 <= A <= B."""
    table = original.table
    if table is None:
        raise ValueError("the file is not there any more; open it again")
    rules = parsed(given, list(table.numeric_names))
    breaks = [rule.broken(list(original.matrix(list(rule.columns)).T)) for rule in rules]
    broken = int(np.any(breaks, axis=0).sum())
    if not broken:
        return f"all {original.n:,} records obey it"
    verb = "record breaks" if broken == 1 else "records break"
    return f"{broken:,} {verb} it of {original.n:,}; the release will obey it"


async def check(page: Page) -> Response:
    """Answer what the rules in the form say about the file, without keeping them."""
    original = await page.work(page.session.original)
    checks = await page.work(checked_rules, original, page.form.lines("own"))
    return JSONResponse({"checks": [one._asdict() for one in checks]})


async def keep(page: Page) -> Response:
    """Keep the ticked rules and the user's own, unless one of them is wrong."""
    file = page.file
    original = await page.work(page.session.original)
    listed = [one["rule"] for one in await page.work(found_rules, file, original)]
    rules = [*ticked_rules(page.form, listed), *page.form.lines("own")]
    for one in await page.work(checked_rules, original, rules):
        if one.error:
            raise ValueError(one.text)
    job = {name: part for name, part in file.state.job.items() if name != "rules"}
    return await page.keep(job | ({"rules": {"rule": list(dict.fromkeys(rules))}} if rules else {}), "goal")


ROUTES = [
    shown("/rules", show, back="roles"),
    kept("/rules", keep, show),
    checked("/rules/check", check),
]
