"""Several releases of one file together: no less is found than by the slow intruder who aligns them."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from intruder_cases import (
    CODES,
    MASKINGS,
    changed_column,
    drawn_codes,
    drawn_columns,
    drawn_strata,
    drawn_variables,
    slow_table,
)
from intruder_release import describe
from intruder_together import linkage_together
from sdckit.masking.disclosure import Disclosure
from sdckit.metrics.original import Original
from sdckit.metrics.pair import pair_by_row
from sdckit.risk.attacks import attacks_together
from secret_bytes import entropy

NAMES = {"euclid": "dbrl", "plain": "guess"}
TIED = [one for one in MASKINGS if one[0] not in {"shuffle", "copula"}]  # cells belong to their records
SEEDS = range(0, 2 * len(TIED), 3)
NOISE = {"method": "noise", "parameters": {"percent": 50}}


@dataclass
class Releases:
    """Some releases of one file: tables for the slow intruder, frames and disclosures for the fast one."""

    original: dict
    slow: list
    frame: pl.DataFrame
    roles: dict
    frames: list
    disclosures: list


def drawn_releases(seed):
    """From a seed, a random file and two or three releases of it, by any methods."""
    rng = np.random.default_rng(seed)
    table, variables = drawn_variables(rng, "noise")
    by = drawn_strata(rng, table)
    others = drawn_columns(rng, table, by)
    na = [*CODES] if rng.random() < 0.3 else None
    frame = pl.DataFrame({name: drawn_codes(rng, c, name in variables and na) for name, c in table.items()})
    hidden = [*variables[1:], *others]  # the slow intruder needs a variable that he knows
    unknown = [str(rng.choice(hidden))] if hidden and rng.random() < 0.2 else []
    original = slow_table(frame, variables, na)
    made = Releases(original, [], frame, {"columns": variables, "na": na, "unknown": unknown or None}, [], [])
    for number in range(int(rng.integers(2, 4))):
        method, parameters = TIED[(seed + 7 * number * int(rng.integers(0, 2))) % len(TIED)]
        options = {"columns": variables, "by": by or None, "na": na, "rng": 100 * seed + number}
        masked = called("mask", frame, method, **options, **parameters)
        masked = masked.with_columns(changed_column(rng, masked[name]) for name in others)
        roles = {"untouched": (*by, *others), "by": tuple(by), "unknown": tuple(unknown)}
        release = describe(original, method, parameters, variables, **roles)
        made.slow.append((slow_table(masked, variables, na), release))
        made.frames.append(masked)
        made.disclosures.append(Disclosure.of(method, parameters, by=by, columns=variables))
    made.roles["by"] = by or None
    return made


def prepared_pairs(case):
    """From drawn releases, the pairs that attacks on all of them take; rows count as shuffled."""
    original = Original.of(case.frame, **case.roles, warn=False)
    pairs = []
    for frame, disclosure in zip(case.frames, case.disclosures, strict=True):
        pair = pair_by_row(original, frame, rows=np.arange(original.n))
        pair.disclose(disclosure)
        if not disclosure.by:
            pair.window = disclosure.width("all", original.values, original.columns)
        pairs.append(pair)
    return pairs


def fast_label(name):
    """From the name of a slow attack, the label of the fast one; None where only the law is tried."""
    kind, _, number = name.partition(" of release ")
    if kind not in NAMES:
        return None
    return f"{NAMES[kind]} of release {int(number) + 1}" if number else NAMES[kind]


def check_nearest(case, slow):
    """Plain guesses and nearest records inside the facts of all releases equal the slow ones."""
    found = {(a.label, a.result.direction): a.result for a in attacks_together(prepared_pairs(case))}
    for (name, direction), expected in slow["credits"].items():
        if label := fast_label(name):
            credit = found[label, direction].credits.expected
            assert credit == pytest.approx(expected, abs=1e-9), (name, direction)


@pytest.mark.filterwarnings("ignore::UserWarning")  # coarse files: values kept, codes hit
def test_releases_together_are_read_as_by_the_slow_intruder_or_better():
    found, expected = [], []
    for seed in SEEDS:
        case = drawn_releases(seed)
        slow = linkage_together(case.original, case.slow)
        check_nearest(case, slow)
        result = sdc.Microdata(case.frame, **case.roles).evaluate(
            case.frames, made_by=case.disclosures, together=True, per_record=True
        )
        assert result["linkage"] == pytest.approx(max(result.parts["linkage"].values()))
        assert result.records["linkage"].mean() == pytest.approx(result["linkage"])
        found.append(result["linkage"])
        expected.append(slow["linkage"])
    assert np.mean(found) >= np.mean(expected) - 0.01


def noisy_releases(count, n=150):
    """From a number, a file of three variables and so many releases with fresh noise."""
    x = np.exp(np.random.default_rng(3).normal(size=(n, 3)))
    return x, [sdc.mask(x, "noise", percent=50, rng=i) for i in range(count)]


def test_noise_averages_out():
    x, releases = noisy_releases(10)
    alone = [called("evaluate", x, one, metrics="linkage", **NOISE)["linkage"] for one in releases]
    found = called("evaluate", x, releases, together=True, **NOISE)
    assert found["linkage"] > 2 * max(alone)
    parts = found.parts["linkage"]
    assert [parts[f"release {i} alone"] for i in range(1, 11)] == pytest.approx(alone)
    assert "who can align the 10 releases" in found.meaning["linkage"]
    assert found.notes[-1].startswith("only linkage is measured for several releases together")
    assert found.table["metric"].to_list() == ["linkage"]


def test_facts_of_all_releases_hold_at_once():
    n = 12
    frame = pl.DataFrame(
        {"v": np.arange(n) * 1.0, "a": [i % 4 for i in range(n)], "b": [i % 3 for i in range(n)]}
    )
    releases = [frame.select(pl.col("v").shuffle(seed), name) for seed, name in enumerate("ab")]
    options = {"columns": "v", "paired": False, "metrics": "linkage"}
    alone = [called("evaluate", frame, one, **options)["linkage"] for one in releases]
    assert alone == pytest.approx([4 / n, 3 / n])
    assert called("evaluate", frame, releases, together=True, **options)["linkage"] == 1.0


def test_an_unchanged_release_outweighs_the_others():
    x, releases = noisy_releases(2)
    known = [Disclosure("noise", {"percent": 50})] * 2 + [Disclosure()]
    parts = sdc.evaluate(x, [*releases, x], made_by=known, together=True).parts["linkage"]
    assert parts["folds of all releases"] == 1.0


def test_releases_may_have_one_disclosure_for_all_or_one_each():
    x, releases = noisy_releases(2)
    known = Disclosure("noise", {"percent": 50})
    one = sdc.evaluate(x, releases, made_by=known, together=True)
    each = sdc.evaluate(x, releases, made_by=[known, known], together=True)
    assert (
        one["linkage"]
        == each["linkage"]
        == called("evaluate", x, releases, together=True, **NOISE)["linkage"]
    )
    assert one.notes == each.notes == (one.notes[-1],)


@pytest.mark.long
def test_shuffled_releases_are_aligned_by_their_rows():
    x, _ = noisy_releases(1)
    releases = [
        sdc.release(x, "noise", percent=50, entropy=entropy(i), decimals=None, metrics="linkage")
        for i in (1, 2)
    ]
    tables = [release.data for release in releases]
    found = sdc.evaluate(x, tables, made_by=releases, together=True)
    placed = [release.data[np.argsort(release.rows)] for release in releases]
    in_place = called("evaluate", x, placed, together=True, **NOISE)
    assert found.parts["linkage"] == pytest.approx(in_place.parts["linkage"])
    known = [release.disclosure for release in releases]
    rows = [release.rows for release in releases]
    assert sdc.evaluate(x, tables, made_by=known, together=True, rows=rows).parts == found.parts


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"masked": [0]}, "together needs at least two releases; give them in a list, or leave together out"),
        ({"disclosure": [Disclosure()]}, "there are 2 releases and made_by is given for 1; give one"),
        ({"metrics": ["linkage", "brmae"]}, "brmae: several releases together have a linkage only"),
    ],
)
def test_what_does_not_fit_several_releases_is_refused(options, text):
    x, releases = noisy_releases(2)
    given = {"masked": releases, "together": True} | options
    with pytest.raises(ValueError, match=text):
        called("evaluate", x, **given)


def test_noise_is_read_inside_the_groups_of_another_release():
    rng = np.random.default_rng(4)
    x = rng.multivariate_normal(np.zeros(4), 0.5 + 0.5 * np.eye(4), 200)
    groups = sdc.mask(x, "mdav", k=5)
    found, printed = [], []
    for draw in range(4):
        noisy = sdc.mask(x, "noise", percent=100, rng=draw)
        same = (groups[:, None] == groups[None]).all(axis=2)  # he runs the second method himself
        fit = (((noisy[:, None] - x[None]) / x.std(axis=0, ddof=1)) ** 2).sum(axis=2)
        found.append(np.mean(np.where(same, fit, np.inf).argmin(axis=1) == np.arange(200)))
        made_by = [sdc.Disclosure("noise", {"percent": 100}), sdc.Disclosure("mdav", {"k": 5})]
        result = sdc.evaluate(x, [noisy, groups], made_by=made_by, together=True, metrics="linkage")
        printed.append(result["linkage"])
    assert np.mean(printed) >= 0.95 * np.mean(found)
