"""Normal draws: the words are those of numpy's SFC64, the layers have equal areas, the law is normal."""

import math

import numpy as np
import pytest
from scipy import stats

from sdckit.kernels import draws as module
from sdckit.kernels.draws import EDGE, LAYERS, SHARE, WIDTH, normals
from sdckit.kernels.jit import kernel

N = 2_000_000


@kernel
def words(seed, out):
    state = seed[0], seed[1], seed[2], seed[3]
    for i in range(out.size):
        out[i], state = module._next_word(state)  # noqa: SLF001 - the twin of numpy's


def test_words_are_those_of_numpys_generator():
    source = np.random.SFC64(5)
    state = source.state["state"]["state"].copy()
    out = np.empty(1000, np.uint64)
    words(state, out)
    np.testing.assert_array_equal(out, source.random_raw(1000))


def test_layers_have_one_area_and_close_at_the_top():
    height = np.exp(-(WIDTH**2) / 2)
    areas = WIDTH[1:LAYERS] * (height[2:] - height[1:-1])
    tail = math.sqrt(2 * math.pi) * stats.norm.sf(EDGE)
    np.testing.assert_allclose(areas, EDGE * math.exp(-EDGE * EDGE / 2) + tail, rtol=1e-9)
    assert WIDTH[LAYERS] == 0
    assert ((SHARE >= 0) & (SHARE < 1)).all()


@pytest.fixture(scope="module")
def draws():
    return normals(np.random.default_rng(7), (N,))


def test_moments_are_those_of_the_normal_law(draws):
    for power, expected, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((draws**power).mean() - expected) < 5 * math.sqrt(variance / N)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 5 / math.sqrt(N)


def test_every_part_of_the_law_has_its_share(draws):
    assert stats.kstest(draws, "norm").pvalue > 1e-4
    cuts = stats.norm.ppf(np.linspace(0, 1, 1001)[1:-1])
    counts = np.bincount(np.searchsorted(cuts, draws), minlength=1000)
    assert stats.chisquare(counts).pvalue > 1e-4
    for edge in (3.0, 3.5, EDGE, 4.0):  # before, at and in the tail
        expected = 2 * stats.norm.sf(edge) * N
        assert abs((np.abs(draws) > edge).sum() - expected) < 5 * math.sqrt(expected)


def test_the_same_generator_gives_the_same_draws_and_moves_on():
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    first = normals(one, (4, 5))
    np.testing.assert_array_equal(first, normals(other, (4, 5)))
    assert not np.isin(normals(one, (4, 5)), first).any()
    assert normals(one, (0, 3)).shape == (0, 3)
