"""Searches inside facts: every answer equals that of a look at all records."""

import numpy as np
import pytest

import naive_candidates
from cases import later
from maskings import fails
from sdckit.kernels import candidates, trees
from sdckit.kernels.candidates import Side, no_facts, take

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
    alone = candidates.Targets(points, facts[0])
    assert np.array_equal(
        alone.count_closer(queries[sample], truth[sample], some, TOLERANCE, places), expected
    )


def check_counts(targets, queries):
    found, prints = candidates.count_candidates(targets, queries)
    fits = [naive_candidates.candidates(targets, queries, i) for i in range(len(queries.blocks))]
    assert found.tolist() == [each.sum() for each in fits]
    sets = [each.tobytes() for each in fits]
    assert len(set(sets)) == len(set(zip(sets, prints.tolist(), strict=True))) == len(set(prints.tolist()))


@pytest.mark.parametrize("n", [1, 2, 64, later(65), later(300)])
@pytest.mark.parametrize("q", [0, 1, 3])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_counts_equal_a_look_at_all_records(n, q, missing):
    for places, blocks in enumerate((1, 4, n), start=1):
        case = case_of(n + places, n, 1 + places, blocks, q, missing)
        check_closer(case, places)
        check_counts(*case[3])


LARGE = [  # blocks, interval dimensions, share of missing cells
    (1, 0, 0.0),
    (1, 0, 0.05),
    (1, 0, 0.6),
    (1, 2, 0.0),
    (1, 2, 0.1),
    (7, 0, 0.0),
    (7, 1, 0.1),
    (900, 0, 0.05),
    (9000, 1, 0.0),
]


@pytest.mark.long
@pytest.mark.parametrize(("blocks", "q", "missing"), LARGE)
def test_trees_answer_as_a_look_at_all_records(blocks, q, missing):
    for places in (1, 3):
        check_closer(case_of(places, 9000, 5, blocks, q, missing), places, slice(None, None, 97))


def test_many_queries_are_answered_part_by_part():
    case = case_of(1, 2 * trees.PART + 5, 3, 50, 1, 0.05)
    check_closer(case, 2, slice(None, None, 997))


@pytest.mark.parametrize("q", [0, 1, 4])
def test_candidates_are_counted_in_trees(q):
    targets, queries = facts_of(np.random.default_rng(0), 5000, 3, q)
    check_counts(targets, take(queries, slice(None, None, 17)))


def test_narrow_windows_among_many_records():
    rng = np.random.default_rng(1)
    ranks = np.argsort(rng.random((3, 4000))).T.astype(float)
    targets = Side(np.zeros(4000, np.int64), ranks, ranks + rng.integers(0, 3, ranks.shape))
    moved = ranks + rng.integers(-300, 300, ranks.shape)
    queries = Side(np.zeros(4000, np.int64), moved - 300, moved + 300)
    check_counts(targets, take(queries, slice(None, None, 13)))
    case = ranks / 1000, moved / 1000, np.arange(4000), (targets, queries)
    check_closer(case, 1, slice(None, None, 13))


def test_many_columns_have_more_patterns_than_a_word_has_bits():
    check_closer(case_of(3, 400, 70, 1, 0, 0.3), 1)
    check_closer(case_of(4, 400, 40, 2, 30, 0.01), 2)


def found_by(points, queries, truth, targets, asked, places=1):
    values = (np.array(values, float).reshape(len(values), -1) for values in (points, queries))
    return candidates.count_closer(*values, np.array(truth), (targets, asked), TOLERANCE, places).T.tolist()


def in_blocks(*blocks):
    return no_facts(len(blocks))._replace(blocks=np.array(blocks))


def test_a_true_record_that_is_no_candidate_is_never_found():
    found = found_by([0, 1, 2], [0, 1, 2], [0, 1, 2], in_blocks(4, 4, 5), in_blocks(4, 5, 6), places=3)
    assert found == [[0, 1], [3, 0], [3, 0]]
    ones = np.ones((1, 1))
    apart = no_facts(1)._replace(low=ones, high=ones), no_facts(1)._replace(low=2 * ones, high=3 * ones)
    assert found_by([[0]], [[0]], [0], *apart) == [[1, 0]]


def test_records_without_shared_cells_are_infinitely_far():
    nothing = [[np.nan, np.nan]]
    two, one = no_facts(2), no_facts(1)
    assert found_by(2 * nothing, nothing, [0], two, one) == [[0, 2]]
    assert found_by([[1.0, np.nan], *nothing], [[np.nan, 1.0]], [0], two, one) == [[0, 2]]
    assert found_by([[9.0, 1.0], *nothing], [[np.nan, 1.0]], [1], two, one) == [[1, 0]]
    assert found_by([[9.0, 1.0], *nothing], [[np.nan, 1.0]], [1], two, one, places=2) == [[1, 1]]
    assert found_by([[9.0, 1.0], *nothing], [[np.nan, 5.0]], [0], two, one) == [[0, 1]]


def test_distances_are_scaled_to_all_cells():
    points = [[1.0, np.nan], [1.0, 1.0], [1.1, np.nan]]  # squared: 2, 2, 2.42
    assert found_by(points, [[0.0, 0.0]], [0], no_facts(3), no_facts(1)) == [[0, 2]]
    assert found_by(points, [[0.0, 0.0]], [2], no_facts(3), no_facts(1), places=3) == [[2, 1]]


def test_some_of_the_queries_may_be_asked_and_true_records_may_repeat():
    points, queries, truth, facts = case_of(5, 300, 2, 3, 1, 0.1)
    rows = np.random.default_rng(0).integers(0, 300, 120)
    check_closer((points, queries[rows], truth[rows], (facts[0], take(facts[1], rows))), 2)
    no_rows = np.empty(0, np.int64)
    check_closer((points, queries[no_rows], truth[no_rows], (facts[0], take(facts[1], no_rows))), 2)


def test_targets_are_prepared_once_for_many_assignments():
    points, queries, _, facts = case_of(6, 200, 2, 1, 0, 0.0)
    prepared = candidates.Targets(points, facts[0])
    for seed in range(3):
        truth = np.random.default_rng(seed).permutation(200)
        found = prepared.count_closer(queries, truth, facts[1], TOLERANCE)
        assert np.array_equal(found, candidates.count_closer(points, queries, truth, facts, TOLERANCE))
        check_closer((points, queries, truth, facts), 1)


def test_block_numbers_may_be_far_apart():
    far = 2**62
    targets, queries = in_blocks(-far, far, far, 0), in_blocks(far, 0, 1)
    assert candidates.count_candidates(targets, queries)[0].tolist() == [2, 1, 0]


def test_records_in_column_order_are_compared_alike():
    points, queries, truth, facts = case_of(7, 300, 3, 2, 2, 0.1)
    turned = [np.asfortranarray(values) for values in (points, queries)]
    sides = tuple(Side(each.blocks, *map(np.asfortranarray, each[1:])) for each in facts)
    check_closer((*turned, truth, sides), 1)
    check_counts(*sides)


def test_the_check_sees_a_search_that_leaves_candidates_out(monkeypatch):
    case = case_of(8, 300, 1, 2, 0, 0.3)
    check_closer(case, 3)
    count = candidates.count_closer
    monkeypatch.setattr(candidates, "count_closer", lambda *given: np.minimum(count(*given), 1))
    assert fails(check_closer, case, 3)
