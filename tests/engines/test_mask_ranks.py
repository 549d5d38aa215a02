"""Rank swapping and individual ranking in blocks: the partners of ranks, buckets of values, law of moves."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from cases import each
from file_transport import FileTransport, engine
from sdckit.engines.group_masking import find_buckets
from sdckit.engines.masking import mask_files
from sdckit.engines.source import Source
from sdckit.engines.transport import Reads
from sdckit.kernels.draws import CellDraws
from sdckit.masking.swapping import partner_ranks, rank_swap, swap_ranks

DRAWS = CellDraws.of(b"swaps")
N = 100_000


@each("window", [0, 1, 3, 40, 999, 5000])
@each("stretch", [64, 100, 1000, 10_000])
def test_partners_are_those_of_swapping_in_memory(window, stretch):
    n = 1000
    expected = np.arange(n, dtype=np.float64)
    swap_ranks(expected, window, DRAWS.sequence())
    parts = list(partner_ranks(n, window, DRAWS.sequence(), stretch))
    assert all(part.size == stretch for part in parts[:-1])
    partners = np.concatenate(parts)
    np.testing.assert_array_equal(partners, expected)
    np.testing.assert_array_equal(partners[partners], np.arange(n))
    assert np.abs(partners - np.arange(n)).max() <= window


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("ranks") / "values.parquet"
    pl.DataFrame({"x": np.random.default_rng(2).lognormal(0, 1, N)}).write_parquet(path)
    return path


def moves(original, masked):
    """The move in ranks of the value that each rank gets."""
    order = np.argsort(original, kind="stable")
    return np.searchsorted(original[order], masked[order]) - np.arange(order.size)


def table_of(found, window):
    """How many values move up by how much, by the rank that they come to; each pair of values once."""
    at = np.flatnonzero(found > 0)
    edges = np.linspace(0, found.size, 7), np.linspace(0, window + 1, 21)
    return np.histogram2d(at, found[at], bins=edges)[0].ravel()


def test_moves_follow_the_law_of_memory(file, tmp_path):
    made = mask_files(
        file,
        "rank_swap",
        transport=engine(blocks=11, bucket_rows=9000),
        output=tmp_path / "out.parquet",
        rng=8,
        roles={"columns": "x"},
        parameters={"p": 0.02},
    )
    original, masked = (pl.read_parquet(path)["x"].to_numpy() for path in (file, made.path))
    window = int(0.02 * N)
    ours = moves(original, masked)
    assert np.abs(ours).max() <= window
    np.testing.assert_array_equal(np.sort(masked), np.sort(original))
    memory = rank_swap(original[:, None], p=0.02, rng=np.random.default_rng(9))[:, 0]
    both = np.stack([table_of(ours, window), table_of(moves(original, memory), window)])
    assert stats.chi2_contingency(both[:, both.sum(axis=0) > 0]).pvalue > 1e-4


@pytest.mark.parametrize("largest", [7, 50, 5000])
@pytest.mark.parametrize("blocks", [1, 9])
def test_buckets_hold_intervals_of_ranks(tmp_path, largest, blocks):
    rng = np.random.default_rng(3)
    ties = np.where(rng.random(900) < 0.5, 0.0, rng.integers(-3, 40, 900))  # a value that fills buckets
    gaps = np.where(rng.random(900) < 0.3, np.nan, rng.normal(size=900))
    pl.DataFrame({"ties": ties, "gaps": gaps}).write_parquet(tmp_path / "in.parquet")
    transport = FileTransport(Source.of(tmp_path / "in.parquet"), blocks=blocks, bucket_rows=largest)
    sizes = [900, int((~np.isnan(gaps)).sum())]
    buckets = find_buckets(transport, ("ties", "gaps"), sizes, largest)
    for piece, values in enumerate((ties, gaps)):
        found, seen = buckets.pieces[piece], np.flatnonzero(~np.isnan(values))
        assert found.starts[-1] == seen.size
        order = seen[np.argsort(values[seen], kind="stable")]
        rank = np.empty(900, np.int64)
        rank[order] = np.arange(order.size)
        for ref in transport.refs:
            block = transport.source.read(ref, Reads(("ties", "gaps")))
            column = block.original["ties" if piece == 0 else "gaps"]
            here = np.flatnonzero(~np.isnan(column))
            numbers = found.of_values(column[here], here + ref.first)
            np.testing.assert_array_equal(numbers, found.of_ranks(rank[here + ref.first]))
            assert {buckets.piece_of(int(number)) for number in numbers} <= {piece}
    assert np.diff(buckets.pieces[0].starts).max() <= largest  # whole numbers: no bucket is too large
