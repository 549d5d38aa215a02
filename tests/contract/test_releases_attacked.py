"""A limit holds for the whole published file: releases of mixed files, attacked by the slow intruder.

He gets every published column, the method and its parameters. A file that cannot be made safe is not written,
and the columns that stand in the way are named.
"""

import json

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from command import good, run_here
from intruder import linkage
from intruder_cases import slow_table
from intruder_release import describe
from mixed_files import FILES
from sdckit.io.files import read
from sdckit.masking.disclosure import Disclosure
from secret_bytes import entropy

LIMIT = 0.1
LUCK = 0.02  # of 200 records; attacks that look for the nearest record may find so many more than the law
SAFE = [name for name, make in FILES.items() if not (make().in_the_way or "unit" in make().roles)]
HOPELESS = [name for name, make in FILES.items() if make().in_the_way]
REFUSED = {  # columns on which a user has to decide first
    "households": ("hhid", "sex", "roof"),
    "dates_and_text": ("patient", "born", "comment"),
    "sorted_rows": ("firm_id",),
    "demographics": ("q0", "q1", "q2", "q3", "q4", "q5", "q6"),
}
SEARCH = ["recommend", "data.csv", "-o", "out.csv", "--max-risk", f"linkage={LIMIT}", "--workers", "1"]


def attacked(original, published, rows, disclosure, roles):
    """From both files, the order of published rows, method and roles, the linkage of the slow intruder."""
    variables, na = list(disclosure.columns), roles.get("na")
    by, unknown = ((roles[role],) if role in roles else () for role in ("by", "unknown"))
    table = slow_table(original, variables, na)
    aligned = slow_table(published[np.argsort(rows)], variables, na)
    others = tuple(name for name in published.columns if name not in variables)
    known = {"untouched": others, "unknown": unknown, "unit": roles.get("unit"), "by": by}
    release = describe(table, disclosure.method, dict(disclosure.parameters), variables, **known)
    return linkage(table, aligned, release, one_to_one=True)["linkage"]


@pytest.mark.long
@pytest.mark.parametrize("name", SAFE)
def test_a_recommended_release_meets_its_limit_against_the_slow_intruder(name):
    mixed = FILES[name]()
    choice = sdc.Microdata(mixed.data, **mixed.roles).recommend(max_risk={"linkage": LIMIT}, rng=1, workers=1)
    release = choice.release(entropy=entropy(2))
    slow = attacked(mixed.data, release.data, release.rows, release.disclosure, mixed.roles)
    nearest = "linkage:attacks=nearest"
    again = sdc.Microdata(mixed.data, **mixed.roles).evaluate(release, metrics=nearest)
    assert slow <= again[nearest] + 1e-9
    assert slow - LUCK <= release.evaluation["linkage"] + 1e-9 <= LIMIT + 2e-9


@pytest.mark.long
@pytest.mark.parametrize("name", HOPELESS)
def test_nothing_is_recommended_where_columns_stand_in_the_way(name):
    mixed = FILES[name]()
    with pytest.raises(sdc.LimitsMissed) as failure:
        sdc.Microdata(mixed.data, **mixed.roles).recommend(max_risk={"linkage": LIMIT}, workers=1)
    assert_named(str(failure.value), mixed.in_the_way)


def assert_named(text, columns):
    """Check that a text lists the untouched columns that stand in the way."""
    listed = text.partition("The untouched columns ")[2].partition(" alone")[0].split(", ")
    assert set(columns) <= set(listed)


# --- the command line ---


def words_of(roles):
    """From roles as Python takes them, the options of the command line."""
    words = [word for name, how in roles.get("recode", {}).items() for word in ("--recode", f"{name}={how}")]
    for role, names in roles.items():
        for name in [] if role == "recode" else [names] if isinstance(names, str) else names:
            words += [f"--{role}", str(name)]
    return words


@pytest.fixture
def folder(tmp_path, name):
    FILES[name]().data.write_csv(tmp_path / "data.csv")
    return tmp_path


@pytest.mark.parametrize("name", REFUSED)
def test_undecided_columns_are_refused_and_nothing_is_written(folder, name):
    done = run_here(folder, *SEARCH)
    assert done.returncode == 2
    head = f"error: a release needs a decision on {len(REFUSED[name])} column"
    assert done.stderr.startswith(head)
    assert all(f"'{column}' looks like " in done.stderr for column in REFUSED[name])
    assert [path.name for path in folder.iterdir()] == ["data.csv"]


@pytest.mark.parametrize("name", HOPELESS)
def test_no_file_is_written_where_columns_stand_in_the_way(folder, name):
    mixed = FILES[name]()
    done = run_here(folder, *SEARCH, *words_of(mixed.roles))
    assert done.returncode == 1
    assert_named(done.stderr, mixed.in_the_way)
    assert [path.name for path in folder.iterdir()] == ["data.csv"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["dates_and_text", "coded_gaps", "sorted_rows"])
def test_a_written_release_meets_its_limit_against_the_slow_intruder(folder, name):
    roles = FILES[name]().roles
    more = ["--crosswalk", "order.csv", "--json"]
    printed = json.loads(good(folder, *SEARCH, *words_of(roles), *more).stdout)
    original, written = (read(folder / file).frame for file in ("data.csv", "out.csv"))
    rows = pl.read_csv(folder / "order.csv")["original_row"].to_numpy() - 1
    assert not {"order", roles.get("key"), *roles.get("drop", ())} & {*written.columns}
    choice = printed["choice"]
    (note,) = (note for note in printed["notes"] if note.startswith("masked: "))
    masked = note.removeprefix("masked: ").partition(";")[0].split(", ")
    known = Disclosure.of(choice["method"], choice["parameters"], columns=masked)
    slow = attacked(original, written, rows, known, roles)
    assert slow - LUCK <= max(printed["parts"]["linkage"].values()) + 1e-9 <= LIMIT + 2e-9


# --- units ---


def test_nothing_is_recommended_where_published_households_are_found():
    mixed = FILES["households"]()
    roles = {role: columns for role, columns in mixed.roles.items() if role != "unit"}
    choice = sdc.Microdata(mixed.data, **mixed.roles).recommend(
        max_risk={"linkage": 0.2}, plan="mdav", workers=1
    )
    assert choice.point is None  # each person is in a group of k, and the groups of a household tell it apart
    roles |= {"drop": [*roles["drop"], "hhid"]}
    choice = sdc.Microdata(mixed.data, **roles).recommend(max_risk={"linkage": 0.2}, plan="mdav", workers=1)
    assert choice.point is not None


def test_a_limit_on_rows_warns_of_units_that_are_found():
    rng = np.random.default_rng(40)
    income = np.repeat(rng.lognormal(size=30), 4)  # of the household: its rows are not told apart
    data = pl.DataFrame({"hhid": np.repeat(np.arange(30), 4), "income": income})
    roles = {"unit": "hhid", "columns": "income"}
    with pytest.warns(UserWarning, match="rows of a unit together lead to the right unit with linkage_units"):
        found = sdc.Microdata(data, **roles).release(
            "mdav", k=5, max_risk={"linkage": 0.1}, metrics=["linkage", "linkage_units"]
        )
    assert found.evaluation["linkage"] <= 0.1
    assert found.evaluation["linkage_units"] > 0.1
    assert "limit linkage_units, too, or drop the units" in found.warnings[-1]
