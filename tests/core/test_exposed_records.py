"""Exposed records in numbers and in words, and limits that are defaults."""

import math

import pytest

from sdckit.core.scenarios import (
    Exposed,
    default_limits,
    default_note,
    exposed_content,
    exposed_of,
    with_sure_limit,
)


@pytest.mark.parametrize(
    ("found", "n", "begins", "ends"),
    [
        (Exposed(0, 0), 1000, "no record is exposed", "above one half"),
        (Exposed(1, 0), 1000, "1 of 1,000 records is exposed", "(above 0.9: 0)"),
        (Exposed(1234, 1000), 5000, "1,234 of 5,000 records are exposed", "(above 0.9: 1,000)"),
        (Exposed(2, 1), None, "2 records are exposed", "(above 0.9: 1)"),
    ],
)
def test_the_sentence_has_both_numbers(found, n, begins, ends):
    assert found.sentence(n).startswith(begins)
    assert found.sentence(n).endswith(ends)


def test_numbers_come_from_the_parts_of_sure_links_and_are_null_without_them():
    parts = {"linkage_sure": {"exposed": 3.0, "exposed above 0.9": 1, "claimed": math.nan}}
    assert exposed_of(parts) == Exposed(3, 1)
    assert exposed_content(parts) == {"exposed": 3, "exposed_above_90": 1}
    unknown = {"linkage_sure": {"exposed": math.nan, "exposed above 0.9": 1}}
    for other in ({}, {"linkage": {"dbrl": 0.1}}, {"linkage_sure": {}}, unknown):
        assert exposed_of(other) is None
        assert exposed_content(other) == {"exposed": None, "exposed_above_90": None}


def test_the_default_limit_is_a_tenth_and_is_said():
    limits = with_sure_limit({"linkage": 0.3, "uniques": 0.1})
    assert limits["linkage_sure"] == 0.03
    assert default_limits(limits) == ("linkage_sure",)
    assert "default" in default_note("linkage_sure", limits)
    assert default_note("linkage", limits) == ""


@pytest.mark.parametrize("limits", [{"linkage": 0.3, "linkage_sure": 1.0}, {"linkage_sure": 0.01}, {}])
def test_a_limit_that_was_set_is_no_default(limits):
    assert with_sure_limit(limits) == limits
    assert default_limits(limits) == ()
    assert default_note("linkage_sure", limits) == ""
