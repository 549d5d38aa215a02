"""Attribute disclosure equals the slow one by the nearest record, and by the law learns as much or more."""

from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from cases import later
from intruder_cases import drawn_case
from intruder_disclosure import attribute, rightness, share_right, vote, vote_is_right
from intruder_distances import cell_distances, reverse_links
from intruder_facts import facts
from sdckit.risk.attribute_disclosure import (
    Confidential,
    confidential_of,
    explain_attribute,
    learn,
    number_cells,
    score_attribute,
    votes_right,
)

SEEDS = range(24)


def with_confidential(case, name):
    """The case with one of its columns declared confidential."""
    roles = replace(case.pair.original.roles, confidential=(name,))
    pair = replace(case.pair, original=case.pair.original.with_roles(roles, None), cache={})
    return pair, replace(case.release, confidential=(name,))


def judged(case, name):
    """Whether the slow attack takes the column: no dates, and no codes, which it would learn like texts."""
    cells = [*case.original[name], *case.published[name]]
    return not any(isinstance(cell, date) or str(cell).startswith("code ") for cell in cells)


def drawn_columns(seed):
    """Yield a case and its slow and fast figures for some of its columns, each in turn confidential."""
    case = drawn_case(seed)
    names = [name for name in case.original if judged(case, name) and name not in case.release.by]
    for name in names[:: max(len(names) - 1, 1)]:
        pair, release = with_confidential(case, name)
        slow = attribute(case.original, case.published, release, name)
        yield case, release, name, slow, learn(pair, confidential_of(pair)[name], name)


@pytest.mark.filterwarnings("ignore::UserWarning")  # coarse files: values kept, codes hit
@pytest.mark.parametrize("seeds", [SEEDS[::8], later(SEEDS)])
def test_attribute_equals_the_slow_one(seeds):
    found, expected = [], []
    for seed in seeds:
        for case, release, name, slow, fast in drawn_columns(seed):
            for part in ("random", "constant", "groups"):
                assert getattr(fast, part) == pytest.approx(slow[part], abs=1e-9), case.name
            candidates = facts(case.original, case.published, release).certain
            correct = rightness(case.original[name], case.published[name])
            for made in cell_distances(case.original, case.published, release)[:1]:
                nearest = share_right(reverse_links(candidates, made), correct)
                assert fast.attacks["dbrl"] == pytest.approx(nearest, abs=1e-9), case.name
            assert fast.value == pytest.approx(max(fast.attacks.values(), default=fast.groups)), case.name
            found.append(fast.value)
            expected.append(slow["attribute"])
    assert np.mean(found) >= np.mean(expected) - 0.01


def test_votes_equal_slow_ones():
    rng = np.random.default_rng(8)
    for _ in range(60):
        n, voters = 40, 7
        numbers = rng.choice([rng.normal(size=n).round(1), rng.integers(-3, 12, n), rng.lognormal(0, 0.2, n)])
        gone = rng.random(n) < 0.1
        cells = number_cells(np.where(gone, np.nan, numbers))
        of_row, weights = rng.integers(0, voters, n), rng.random(n).round(1)
        of_original = rng.integers(0, voters, n)
        found = votes_right(Confidential(cells, cells), of_row, np.arange(n), weights, of_original)
        texts = [None if lost else float(one) for lost, one in zip(gone, numbers, strict=True)]
        for i in range(n):
            mine = np.flatnonzero(of_row == of_original[i])
            guess = vote([texts[u] for u in mine], weights[mine])
            assert found[i] == vote_is_right(guess, texts[i])


@pytest.mark.long
@pytest.mark.parametrize(("method", "parameters"), [("mdav", {"k": 10}), ("noise", {"percent": 80})])
def test_a_value_that_many_probable_records_share_is_learnt(method, parameters):
    rng = np.random.default_rng(6)
    base = rng.normal(size=300)
    data = pl.DataFrame({"a": base + rng.normal(size=300), "b": base + rng.normal(size=300)})
    data = data.with_columns(grade=pl.Series((3 + base).round().clip(1, 6).astype(int)))
    roles = {"columns": ["a", "b"], "untouched": "grade", "confidential": "grade"}
    printed, found = [], []
    for draw in range(4):
        masked = sdc.Microdata(data, columns=["a", "b"], untouched="grade").mask(
            method, rng=draw, **parameters
        )
        printed.append(
            sdc.Microdata(data, **roles).evaluate(
                masked, made_by=sdc.Method(method, **parameters), metrics="attribute"
            )["attribute"]
        )
        near = np.linalg.norm(data.to_numpy()[:, None, :2] - masked.to_numpy()[None, :, :2], axis=2)
        grades = masked["grade"].to_numpy()
        votes = np.stack([(np.exp(-(near**2)) * (grades == grade)).sum(axis=1) for grade in range(7)], 1)
        found.append(np.mean(votes.argmax(axis=1) == data["grade"].to_numpy()))
    assert np.mean(printed) >= 0.95 * np.mean(found)


def survey():
    rng = np.random.default_rng(5)
    income = rng.lognormal(8, 1, 200).round()
    ill = np.where(income < 2000, "yes", "no")
    return pl.DataFrame({"income": income, "age": rng.integers(20, 80, 200), "ill": ill})


def test_value_baselines_and_excess_are_printed():
    data = survey()
    masked = sdc.Microdata(data, columns=["income", "age"]).mask("mdav", k=5)
    roles = {"columns": ["income", "age"], "confidential": "ill"}
    result = sdc.Microdata(data, **roles).evaluate(masked, made_by=sdc.Method("mdav", k=5))
    parts = result.parts["attribute"]
    assert set(parts) == {"ill", *(f"ill {part}" for part in ("random", "constant", "excess", "groups"))}
    assert parts["ill excess"] == pytest.approx(
        parts["ill"] - max(parts["ill random"], parts["ill constant"])
    )
    assert result["attribute"] == parts["ill"]
    said = result.meaning["attribute"]
    assert said.startswith("someone who links a person by what he knows learns ill, within 10%, in ")
    for part in ("ill", "ill excess", "ill groups"):
        assert f"{100 * parts[part]:.3g}" in said


def test_the_largest_of_several_confidential_columns_counts():
    data = survey().with_columns(debt=pl.col("income") / 7)
    roles = {"columns": ["income", "age"], "confidential": ["ill", "debt"]}
    score = score_attribute(sdc.metrics.pair.pair_of(sdc.Microdata(data, **roles).original, data))
    assert score.value.overall == max(score.parts["ill"], score.parts["debt"]) == 1.0
    assert score.subject in explain_attribute(score)


def test_a_confidential_variable_is_masked_and_not_linked_by():
    data = survey().select("income", "age").cast(float)
    masked = data.with_columns(age=pl.col("age").reverse())
    roles = {"columns": ["income", "age"], "confidential": "income"}
    blind = sdc.attribute(sdc.Microdata(data, **roles), masked)  # linked by ages that tell nothing
    assert blind < 0.2
    assert sdc.attribute(sdc.Microdata(data, columns=["income", "age"], confidential="age"), data) > 0.99
