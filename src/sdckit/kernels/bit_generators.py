"""Tell generators that are fast from those that are cryptographic."""

import numpy as np

NUMPYS = (np.random.PCG64, np.random.PCG64DXSM, np.random.SFC64, np.random.MT19937, np.random.Philox)


def is_fast(rng: np.random.Generator) -> bool:
    """Return True for a generator on one of numpy's bit generators, none of which is cryptographic."""
    return isinstance(rng.bit_generator, NUMPYS)
