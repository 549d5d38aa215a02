"""Random generators from a user's seed or generator, and independent ones for the runs of a sweep."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Floats, Ints

SECRET = 32  # bytes of a secret that no one can find by trying


def generator(rng: object) -> np.random.Generator:
    """Return a numpy Generator: `rng` itself, one seeded by a number, or an unpredictable one for None."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, (bool, np.bool_)) or not (rng is None or isinstance(rng, (int, np.integer))):
        raise TypeError(
            f"rng is {type(rng).__name__} {rng!r}; give None, a whole number or a numpy Generator"
        )
    if rng is not None and rng < 0:
        raise ValueError(f"the seed is {rng}; give a whole number of at least 0")
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


def release_secret(rng: object, original: Floats) -> bytes:
    """Return the bytes that decide the order of a release: fresh ones, or made from a seed and the original.

    A seed alone may be so small that it is found by trying, until the rows are sorted; together with the
    original values, which are not published, it cannot be tried. A Generator is asked for random bytes.
    """
    if rng is None:
        return secrets.token_bytes(SECRET)
    seed = rng.bytes(SECRET) if isinstance(rng, np.random.Generator) else str(entropy_of(rng)).encode()
    return hashlib.blake2b(original.tobytes("F"), key=hashlib.sha256(seed).digest()).digest()


def secret_order(n: int, secret: bytes, purpose: str) -> Ints:
    """Return the numbers from 0 to n - 1 in an order that follows from secret bytes; any order is as likely.

    Nothing that is seen of one order tells about the rest of it, or about the order for another purpose.
    """
    drawn = hashlib.shake_256(purpose.encode() + b"\0" + secret).digest(8 * n)
    return np.argsort(np.frombuffer(drawn, "<u8"), kind="stable")
