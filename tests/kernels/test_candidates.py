"""Searches inside facts: every answer equals that of a look at all records."""

import numpy as np
import pytest

import naive_candidates
from sdckit.kernels import candidates
from sdckit.kernels.candidates import Side

TOLERANCE = 1e-9


def points_of(rng, n, p, missing):
    """Records and queries near them: many ties, many missing cells, records without any value."""
    kind = rng.integers(0, 3)
    points = rng.normal(size=(n, p)) if kind else rng.integers(0, 3, (n, p)).astype(float)
    queries = points + rng.choice([0.0, 0.3, 2.0], (n, 1)) * rng.normal(size=(n, p))
    if kind == 2:
        queries = np.round(queries)
    for values in (points, queries):
        values[rng.random((n, p)) < missing] = np.nan
        values[rng.random(n) < missing / 3] = np.nan
    return points, queries


def side_of(rng, n, blocks, q):
    """Facts about n records in about so many blocks; some intervals are unbounded, some are points."""
    middle = rng.integers(0, 9, (n, q)).astype(float)
    width = rng.choice([0.0, 0.5, 2.0, np.inf], (n, q))
    return Side(
        rng.integers(0, blocks, n) * 7 - 3, middle - width, middle + rng.choice([0.0, 1.0], (n, q)) + width
    )


def facts_of(rng, n, blocks, q):
    """Facts about targets and queries; most queries share the facts of their true record."""
    targets, other = side_of(rng, n, blocks, q), side_of(rng, n, blocks, q)
    same = rng.random(n) < 0.8
    queries = Side(
        *(
            np.where(same if part.ndim == 1 else same[:, None], part, new)
            for part, new in zip(targets, other, strict=True)
        )
    )
    return targets, queries


def case_of(seed, n, p, blocks, q, missing):
    """Targets, queries, truth and facts, where query i belongs to target truth[i]."""
    rng = np.random.default_rng(seed)
    points, queries = points_of(rng, n, p, missing)
    targets, asked = facts_of(rng, n, blocks, q)
    truth = rng.permutation(n)
    back = Side(*(part[truth] for part in asked))
    return points, queries[truth], truth, (targets, back)


def check_closer(case, places, sample=slice(None)):
    points, queries, truth, facts = case
    found = candidates.count_closer(points, queries, truth, facts, TOLERANCE, places)
    some = Side(*(part[sample] for part in facts[1]))
    expected = naive_candidates.count_closer(
        points, queries[sample], truth[sample], (facts[0], some), TOLERANCE, places
    )
    assert np.array_equal(found[:, sample], expected)


def check_counts(targets, queries):
    found, prints = candidates.count_candidates(targets, queries)
    fits = [naive_candidates.candidates(targets, queries, i) for i in range(len(queries.blocks))]
    assert found.tolist() == [each.sum() for each in fits]
    sets = [each.tobytes() for each in fits]
    assert len(set(sets)) == len(set(zip(sets, prints.tolist(), strict=True))) == len(set(prints.tolist()))


SIZES = (1, 2, 3, 10, 63, 64, 65, 130, 300)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("q", [0, 1, 3])
@pytest.mark.parametrize("missing", [0.0, 0.1, 0.5])
def test_counts_equal_a_look_at_all_records(n, q, missing):
    for blocks in {1, 4, n}:
        for places in (1, 2, 3):
            case = case_of(places, n, 1 + places, blocks, q, missing)
            check_closer(case, places)
            check_counts(*case[3])
