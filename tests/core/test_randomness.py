"""The cryptographic generator of releases: its words, its keys, and that nothing weaker stands behind it."""

import hashlib

import numpy as np
import pytest
from scipy import stats

import naive_aes
import sdckit as sdc
from calls import called
from contract import strong
from sdckit.core import randomness
from sdckit.core.randomness import derived, draw_generator
from sdckit.kernels.draws import normals
from secret_bytes import entropy

SECRET = entropy(1)
N = 20_000


# --- words ---


VECTORS = {  # FIPS 197, appendices B and C.1: key, block and encrypted block
    "2b7e151628aed2a6abf7158809cf4f3c": "3243f6a8885a308d313198a2e0370734 3925841d02dc09fbdc118597196a0b32",
    "000102030405060708090a0b0c0d0e0f": "00112233445566778899aabbccddeeff 69c4e0d86a7b0430d8cdb78070b4c55a",
}


def library_words(key, counter, n):
    """The words of the library's generator: key and counter are read from their lowest byte on."""
    from randomgen import AESCounter

    return AESCounter(key=int.from_bytes(key, "little"), counter=counter).random_raw(n)


@pytest.mark.parametrize("key", VECTORS)
def test_words_are_those_of_the_standard(key):
    block, expected = (bytes.fromhex(text) for text in VECTORS[key].split())
    key = bytes.fromhex(key)
    assert naive_aes.encrypted(block, key) == expected
    assert library_words(key, int.from_bytes(block, "little"), 2).astype("<u8").tobytes() == expected


@pytest.mark.parametrize("counter", [0, 2**64 - 3, 2**128 - 6, 0x0123456789ABCDEFFEDCBA9876543210])
def test_words_are_those_of_the_twin_where_the_counter_carries(counter):
    key = bytes(range(100, 116))
    assert library_words(key, counter, 21).tolist() == naive_aes.counter_words(key, counter, 21)


def test_a_draw_has_a_key_and_a_counter_of_its_own():
    for draw in (1, 2):
        key = hashlib.blake2b(SECRET).digest()
        secret = hashlib.blake2b(f"masking {draw}".encode(), key=key, digest_size=32).digest()
        expected = naive_aes.counter_words(secret[:16], int.from_bytes(secret[16:], "little"), 9)
        assert draw_generator(SECRET, draw).bit_generator.random_raw(9).tolist() == expected


def test_secrets_of_purposes_differ_and_long_entropy_counts_in_full():
    purposes = ["order 1", "order 2", "ties 1", "masking 1"]
    found = [derived(secret, purpose) for secret in (SECRET, 5 * SECRET) for purpose in purposes]
    assert len({*found}) == 8
    assert {len(one) for one in found} == {32}
    assert derived(5 * SECRET, "order 1") != derived(4 * SECRET + bytes(32), "order 1")


# --- what is taken for entropy ---


@pytest.mark.parametrize("given", [7, np.int64(7), "x" * 32, bytearray(32), np.random.default_rng(1), True])
def test_only_bytes_are_entropy(given):
    text = "entropy is .*, and seeds can be guessed; give at least 32 secret bytes, or None for fresh ones$"
    with pytest.raises(TypeError, match=text):
        sdc.release([1.0, 2.0, 3.0], "noise", entropy=given)


def test_too_few_bytes_are_refused_and_not_shown():
    with pytest.raises(
        ValueError, match="entropy has 31 bytes and can be guessed; give at least 32"
    ) as error:
        sdc.release([1.0, 2.0, 3.0], "noise", entropy=b"s" * 31)
    assert "sss" not in str(error.value)
    for secret in ("s" * 64, bytearray(b"s" * 32)):
        with pytest.raises(TypeError, match="entropy is of type") as error:
            sdc.release([1.0, 2.0, 3.0], "noise", entropy=secret)
        assert "sss" not in str(error.value)
    with pytest.raises(TypeError, match="rng is no option of a release, as seeds can be guessed; drop it or"):
        sdc.release([1.0, 2.0, 3.0], "noise", rng=1)


def test_fresh_entropy_comes_from_the_operating_system(monkeypatch):
    monkeypatch.undo()  # what keeps tests from depending on luck
    found = {randomness.fresh_entropy() for _ in range(50)}
    assert len(found) == 50
    assert {len(one) for one in found} == {randomness.ENTROPY}


# --- what the generator draws ---


def test_normals_take_every_word_from_the_generator():
    found = normals(draw_generator(SECRET, 1), (2, N))
    np.testing.assert_array_equal(found, draw_generator(SECRET, 1).standard_normal((2, N)))
    assert stats.kstest(found.ravel(), "norm").pvalue > 1e-4


@pytest.mark.parametrize(
    "method", [one for one in sdc.METHODS.values() if one.random], ids=lambda one: one.name
)
def test_no_masking_of_a_release_seeds_a_weaker_generator(method, monkeypatch):
    data = np.random.default_rng(5).lognormal(size=(60, 3))
    options = strong(method)
    expected, other = (
        called("mask", data, method.name, rng=draw_generator(SECRET, draw), **options) for draw in (1, 2)
    )

    def refuse(*_, **__):
        raise AssertionError("a weaker generator is made")

    for name in ("default_rng", "SFC64", "PCG64", "Philox", "RandomState"):
        monkeypatch.setattr(np.random, name, refuse)
    again = called("mask", data, method.name, rng=draw_generator(SECRET, 1), **options)
    np.testing.assert_array_equal(again, expected)
    assert not np.array_equal(expected, other)
