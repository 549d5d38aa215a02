"""Random generators: from a user's seed or generator, and one for each stream of a sweep."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

if TYPE_CHECKING:
    from collections.abc import Sequence


def generator(rng: object) -> np.random.Generator:
    """Return a generator: fresh entropy for None, a seed or a Generator otherwise."""
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
    """Return the seed of a sweep's streams: fresh for None, the seed itself, or drawn from a Generator."""
    if isinstance(rng, (int, np.integer)) and generator(rng):
        return int(rng)
    return int.from_bytes(generator(rng).bytes(16), "big")


class _Digest(ISeedSequence):
    """A seed sequence from a digest, as good as numpy's SeedSequence and much faster to build."""

    def __init__(self, text: str) -> None:
        self.words = np.frombuffer(hashlib.sha256(text.encode()).digest(), "<u8").astype(np.uint64)

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> Any:
        """Return the first words of the digest."""
        return self.words[:n_words].astype(dtype)


def stream_generator(entropy: int, stream: Sequence[int]) -> np.random.Generator:
    """Return an independent generator for each seed and stream."""
    return np.random.Generator(np.random.SFC64(_Digest(f"{entropy} {stream}")))  # type: ignore[arg-type]
