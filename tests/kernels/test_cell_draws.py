"""Draws that belong to cells: published test vectors, numpy's own, a slow twin, and the laws."""

import math

import numpy as np
import pytest
from scipy import stats

import naive_cell_draws as naive
from sdckit.kernels.draws import CellDraws, entropy_bytes, fill_words, normals

ONES = 2**64 - 1
PI = (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89)
PI_KEY = (0x452821E638D01377, 0xBE5466CF34E90C6C)
DRAWS = CellDraws.of(b"a key of the tests")
N = 200_000


def words_at(counter, key):
    out = np.empty((1, 4), np.uint64)
    row, place = np.array(counter[:1], np.uint64), np.array(counter[1:], np.uint64)
    fill_words(np.array(key, np.uint64), row, place, out)
    return out[0].tolist()


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # kat_vectors of Random123 1.14
        ((0,) * 4, (0,) * 2, "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b"),
        ((ONES,) * 4, (ONES,) * 2, "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0"),
        (PI, PI_KEY, "a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6"),
    ],
)
def test_words_are_the_published_ones(counter, key, expected):
    wanted = [int(word, 16) for word in expected.split()]
    assert words_at(counter, key) == naive.philox(counter, key) == wanted


def test_words_are_those_of_numpy_and_of_the_twin():
    rng = np.random.default_rng(4)
    for _ in range(50):
        *counter, k0, k1 = rng.integers(0, ONES, 6, np.uint64, endpoint=True).tolist()
        assert words_at(counter, (k0, k1)) == naive.philox(counter, (k0, k1))
    source = np.random.Philox(counter=[0, 3, 5, 0], key=[7, 8])  # numpy counts up before it draws
    assert source.random_raw(4).tolist() == words_at((1, 3, 5, 0), (7, 8))


def test_a_cell_has_its_number_whatever_else_is_drawn():
    rows = np.array([5, 2**40, 17, 0])
    together = normals(DRAWS.at(rows), (3, 4))
    for i, row in enumerate(rows):
        alone = normals(DRAWS.at(np.array([row])).of_column(1), (1, 1))
        assert alone[0, 0] == together[1, i]
    assert np.unique(together).size == 12
    assert not np.isin(normals(DRAWS.at(rows, stream=1), (3, 4)), together).any()
    with pytest.raises(ValueError, match="draws for 4 rows are asked for 5"):
        normals(DRAWS.at(rows), (1, 5))


def test_a_sequence_is_the_same_in_pieces():
    whole = DRAWS.sequence().random(out=np.empty(100))
    pieces = DRAWS.sequence()
    parts = [pieces.random(out=np.empty(size)) for size in (1, 6, 64, 29)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert not np.isin(DRAWS.of_column(1).sequence().random(out=np.empty(100)), whole).any()


def test_laws():
    found = normals(DRAWS, (2, N))
    assert stats.kstest(found.ravel(), "norm").pvalue > 1e-4
    assert abs(np.corrcoef(found)[0, 1]) < 5 / math.sqrt(N)
    assert abs(np.corrcoef(found[0, 1:], found[0, :-1])[0, 1]) < 5 / math.sqrt(N)
    for uniforms in (DRAWS.uniforms(np.arange(N), 3), DRAWS.sequence().random(out=np.empty(N))):
        assert stats.kstest(uniforms, "uniform").pvalue > 1e-4
        assert 0 <= uniforms.min() < uniforms.max() < 1


def test_keys_come_from_a_seed_or_from_fresh_entropy():
    assert CellDraws.of(entropy_bytes(1)) == CellDraws.of(entropy_bytes(1)) != CellDraws.of(entropy_bytes(2))
    fresh = entropy_bytes(None)
    assert len(fresh) == 32
    assert fresh != entropy_bytes(None)


def test_the_secret_key_is_not_shown():
    shown = repr(DRAWS.in_stream(3))
    assert "stream=3" in shown
    assert not any(str(word) in shown for word in DRAWS.key)
