"""Random generators from a user's seed, for the runs of a sweep, and from the secret bytes of a release.

Sweeps and working copies draw from fast generators, whose numbers can be found again by who finds their seed.
A release draws from AES-128 in counter mode, and everything random about it follows from its entropy: secret
bytes that nobody can find by trying.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from sdckit.kernels.draws import is_fast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.arrays import Ints

ENTROPY = 32  # bytes of a secret that nobody can find by trying


def generator(rng: object) -> np.random.Generator:
    """Return a numpy Generator: `rng` itself, one seeded by a number, or an unpredictable one for None."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, (bool, np.bool_)) or not (rng is None or isinstance(rng, (int, np.integer))):
        raise TypeError(
            f"rng is {type(rng).__name__} {rng!r}; give None, a whole number or a numpy Generator"
        )
    if rng is not None and rng < 0:
        raise ValueError("the seed is below 0; give a whole number of at least 0")
    return np.random.default_rng(rng)


def entropy_of(rng: object) -> int:
    """Return a whole number to seed all runs of a sweep: the given seed, or one drawn from `rng`."""
    if isinstance(rng, (int, np.integer)) and generator(rng):
        return int(rng)
    return int.from_bytes(generator(rng).bytes(16), "big")


class _Digest(ISeedSequence):
    """Seed sequence for numpy made from the SHA-256 digest of a text, faster to build than numpy's own."""

    def __init__(self, text: str) -> None:
        self.words = np.frombuffer(hashlib.sha256(text.encode()).digest(), "<u8").astype(np.uint64)

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> Any:
        """Return the first `n_words` words of the digest as an array of the given type."""
        return self.words[:n_words].astype(dtype)


def stream_generator(entropy: int, stream: Sequence[int]) -> np.random.Generator:
    """Return the random generator of one run of a sweep, from the sweep's seed and the run's numbers."""
    return np.random.Generator(np.random.SFC64(_Digest(f"{entropy} {stream}")))  # type: ignore[arg-type]


def fresh_entropy() -> bytes:
    """Return bytes from the operating system that decide all draws of a release."""
    return secrets.token_bytes(ENTROPY)


def checked_entropy(entropy: object) -> bytes:
    """Return the entropy of a release, fresh bytes for None; TypeError or ValueError for a weak one."""
    if entropy is None:
        return fresh_entropy()
    remedy = f"give at least {ENTROPY} secret bytes, or None for fresh ones"
    if not isinstance(entropy, bytes):
        raise TypeError(f"entropy is of type {type(entropy).__name__}, and seeds can be guessed; {remedy}")
    if len(entropy) < ENTROPY:
        raise ValueError(f"entropy has {len(entropy)} bytes and can be guessed; {remedy}")
    return entropy


def derived(entropy: bytes, purpose: str) -> bytes:
    """Return secret bytes for one purpose; they tell nothing of the entropy or of those for others."""
    key = hashlib.blake2b(entropy).digest()  # as long as a key may be, however long the entropy is
    return hashlib.blake2b(purpose.encode(), key=key, digest_size=ENTROPY).digest()


def draw_generator(entropy: bytes, draw: int) -> np.random.Generator:
    """Return the cryptographic generator that masks the table of a draw, counted from 1, of a release."""
    return _aes_generator(derived(entropy, f"masking {draw}"))


def _aes_generator(secret: bytes) -> np.random.Generator:
    """Return a generator of AES-128 in counter mode: 16 bytes are the key, 16 the first counter."""
    from randomgen import AESCounter  # noqa: PLC0415 - only releases need it

    key, counter = (int.from_bytes(part, "little") for part in (secret[:16], secret[16:32]))
    return np.random.Generator(AESCounter(key=key, counter=counter))


def column_generators(rng: np.random.Generator, columns: int) -> list[np.random.Generator]:
    """Return an independent generator for each column: cryptographic ones if the given one is not numpy's."""
    if is_fast(rng):
        return [np.random.default_rng(seed) for seed in rng.integers(2**63, size=(columns,))]
    return [_aes_generator(rng.bytes(ENTROPY)) for _ in range(columns)]


def secret_order(n: int, secret: bytes, purpose: str) -> Ints:
    """Return the numbers from 0 to n - 1 in an order that follows from secret bytes; any order is as likely.

    Nothing that is seen of one order tells about the rest of it, or about the order for another purpose.
    """
    drawn = hashlib.shake_256(purpose.encode() + b"\0" + secret).digest(8 * n)
    return np.argsort(np.frombuffer(drawn, "<u8"), kind="stable")
