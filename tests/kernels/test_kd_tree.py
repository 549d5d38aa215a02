"""Trees: every answer equals that of a look at all records, whatever lies where."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from maskings import fails
from sdckit.kernels import candidates, trees
from sdckit.kernels.candidates import Targets, no_facts

TOLERANCE = 1e-9


def points_of(kind, n, p, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "normal":
        return rng.normal(size=(n, p))
    if kind == "skewed":
        return np.exp(3 * rng.normal(size=(n, p)))
    if kind == "integers":
        return rng.integers(0, 4, (n, p)).astype(float)
    if kind == "duplicates":
        return rng.normal(size=(max(n // 5, 1), p))[rng.integers(0, max(n // 5, 1), n)]
    if kind == "sorted":
        return np.arange(n * p, dtype=float).reshape(n, p)
    assert kind == "equal"
    return np.full((n, p), 3.0)


KINDS = ("normal", "skewed", "integers", "duplicates", "sorted", "equal")


def slow_beaten(points, queries, truth, places):
    """All distances, sums in the order of the variables, as the tree adds them."""
    found = []
    for query, true in zip(queries, truth, strict=True):
        distances = np.zeros(len(points))
        for j in range(points.shape[1]):
            distances += (points[:, j] - query[j]) ** 2
        own = distances[true]
        closer = (distances < own * (1 - TOLERANCE)).sum()
        tied = ((distances >= own * (1 - TOLERANCE)) & (distances <= own * (1 + TOLERANCE))).sum()
        found.append((closer, tied) if closer < places else (places, 0))
    return np.array(found).T


def check_tree(points):
    grown = Targets(points, no_facts(len(points))).forest
    assert sorted(grown.rows) == list(range(len(points)))
    nodes, p = grown.low.shape
    for node, (first, last) in enumerate(grown.starts):
        inside = points[grown.rows[first:last]]
        assert np.array_equal(grown.low[node], inside.min(0))
        assert np.array_equal(grown.high[node], inside.max(0))
        if 2 * node + 2 < nodes:
            middle = grown.starts[2 * node + 2, 0]
            assert grown.starts[2 * node + 1 : 2 * node + 3].tolist() == [[first, middle], [middle, last]]
            parted = inside[:, grown.axis[node]]
            assert np.isnan(grown.cut[node]) or (
                parted[: middle - first].max() <= grown.cut[node] <= parted[middle - first :].min()
            )
        else:
            assert 0 < last - first <= trees.WIDTH
            assert np.array_equal(grown.columns[first * p : last * p].reshape(p, -1), inside.T)
            assert (grown.leaf[first:last] == node).all()


@each("kind", KINDS)
@each(("n", "p"), [(1, 1), (2, 3), (63, 2), (64, 2), (65, 1), (129, 4), (3001, 13)])
def test_a_tree_holds_every_record_once_in_boxes_that_fit(kind, n, p):
    check_tree(points_of(kind, n, p))


def asked(kind, n, p, seed=0):
    """Queries near their records, far outside, on other records; an assignment of true records."""
    points = points_of(kind, n, p, seed)
    rng = np.random.default_rng(seed + 1)
    queries = points + rng.choice([0.0, 0.05, 1.0, 50.0], (n, 1)) * rng.normal(size=(n, p))
    on = rng.random(n) < 0.3
    queries[on] = points[rng.permutation(n)][on]
    halfway = rng.random(n) < 0.2
    queries[halfway] = ((points + points[rng.permutation(n)]) / 2)[halfway]
    truth = np.arange(n) if seed % 2 else rng.permutation(n)
    return points, queries, truth


def check_beaten(points, queries, truth, places, sample=slice(None)):
    facts = no_facts(len(points))
    found = candidates.count_closer(points, queries, truth, (facts, facts), TOLERANCE, places)
    expected = slow_beaten(points, queries[sample], truth[sample], places)
    assert np.array_equal(found[:, sample], expected)


@each("kind", KINDS)
@each(("n", "p"), [(2, 1), (3, 13), (40, 2), (64, 1), (65, 3), (500, 6), (1000, 1), (5000, 4), (5000, 13)])
def test_the_tree_answers_as_a_look_at_all_records(kind, n, p):
    sample = slice(None, None, max(n // 400, 1))
    for places in (1, 2, 3):
        check_beaten(*asked(kind, n, p, seed=places), places, sample)


def test_many_queries_are_answered_part_by_part():
    points, queries, truth = asked("integers", 2 * trees.PART + 3, 2, seed=1)
    check_beaten(points, queries, truth, 1, slice(None, None, 401))


small = st.sampled_from([0.0, 1.0, 1.0 + 1e-12, 2.0, -3.0, 1e-150, 1e70]) | st.floats(-5, 5)


@given(st.integers(1, 4), st.integers(1, 3), st.data())
def test_answers_for_any_numbers(p, places, data):
    n = data.draw(st.integers(1, 80))
    values = data.draw(st.lists(small, min_size=2 * n * p, max_size=2 * n * p))
    points, queries = np.array(values).reshape(2, n, p)
    check_beaten(points, queries, np.array(data.draw(st.permutations(range(n)))), places)


def test_the_check_sees_a_search_that_leaves_branches_out(monkeypatch):
    def short_sighted(*arguments):
        closer, tied = beaten(*arguments)
        return np.array([closer, np.minimum(tied, 1)])

    beaten = candidates.count_closer
    arguments = (*asked("duplicates", 300, 2, seed=1), 1)
    check_beaten(*arguments)
    monkeypatch.setattr(candidates, "count_closer", short_sighted)
    assert fails(check_beaten, *arguments)
