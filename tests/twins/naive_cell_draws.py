"""Slow, obvious twins of draws that belong to cells, and of exact sums; the standard library only."""

from fractions import Fraction

WORD = 2**64


def philox(counter, key):
    """Philox4x64-10 of four counter words and two key words, in whole numbers of any size."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        first, second = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (
            (second // WORD) ^ c1 ^ k0,
            second % WORD,
            (first // WORD) ^ c3 ^ k1,
            first % WORD,
        )
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) % WORD, (k1 + 0xBB67AE8584CAA73B) % WORD
    return [c0, c1, c2, c3]


def exact_sum(values):
    """Sum of finite numbers as a fraction, missing ones left out."""
    return sum((Fraction(value) for value in values if value == value), Fraction(0))  # noqa: PLR0124
