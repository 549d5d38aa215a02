"""What the tests of single methods share."""

import numpy as np
from hypothesis import strategies as st

NAN = float("nan")
cell = st.sampled_from([0.0, -0.0, 1.0, 2.0, 1e9, 1e9 + 2**-22, -5.5]) | st.floats(-1e6, 1e6)


def generator(seed=0):
    return np.random.default_rng(seed)


def fails(check, *arguments):
    """Whether a check refuses what it is shown."""
    try:
        check(*arguments)
    except AssertionError:
        return True
    return False


def check_missing_kept(before, after):
    assert np.array_equal(np.isnan(before), np.isnan(after))
