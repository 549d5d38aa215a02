"""The screen of edit rules: rules that hold are offered, and own rules counted with their tolerance."""

from types import SimpleNamespace

import numpy as np
import polars as pl

from sdckit.app.screen_rules import checked_rules, found_rules
from sdckit.metrics.original import Original


def test_rules_that_hold_are_offered_and_own_ones_counted_with_their_tolerance():
    rng = np.random.default_rng(8)
    parts = np.round(rng.lognormal(6, 1, (500, 2)))
    total = parts.sum(axis=1) + 2 * (np.arange(500) % 25 == 0)
    whole = np.where(np.arange(500) == 3, np.nan, parts.sum(axis=1))
    original = Original.of(pl.DataFrame({"T": total, "A": parts[:, 0], "B": parts[:, 1], "D": whole}))
    file = SimpleNamespace(once=lambda _what, _key, make: make())
    offered = found_rules(file, original)
    assert [one["rule"] for one in offered] == ["D = A + B", "T >= 0", "A >= 0", "B >= 0", "D >= 0"]
    assert [one["text"] for one in offered[:2]] == [" holds in all 499 records", " holds in all 500 records"]
    good = checked_rules(original, ["T = A + B +- 2", "T = A + B +- 1.5"])
    assert [one.text for one in good] == [
        "T = A + B +- 2: all 500 records obey it",
        "T = A + B +- 1.5: 20 records break it of 500; the release will obey it",
    ]
    (bad,) = checked_rules(original, ["T <= A +- 2"])
    assert bad.error
    assert bad.text.startswith("Rule 'T <= A +- 2' has a tolerance but is not one equation; ")
