"""The same seed gives the same file on every CPU: instruction sets of numpy and numba are lowered."""

import numpy as np
import pytest

import instruction_sets

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def here():
    return instruction_sets.results()


@pytest.mark.long
@pytest.mark.parametrize("setting", [*instruction_sets.NUMPY, instruction_sets.NUMBA])
def test_sums_and_masked_files_are_the_same_to_the_bit(setting, here, tmp_path):
    there, features = instruction_sets.results_under(setting, tmp_path)
    assert not set(features) & set(setting.partition("=")[2].split())  # the setting was taken
    assert there.keys() == here.keys()
    different = [name for name in here if here[name].tobytes() != there[name].tobytes()]
    assert different == []


@pytest.mark.long
def test_matrix_algebra_moves_masked_cells_in_their_last_bits_at_most(here, tmp_path):
    # BLAS takes other code on another CPU and adds in another order.
    there, _ = instruction_sets.results_under(instruction_sets.BLAS, tmp_path)
    for name, values in here.items():
        if name.startswith("sums"):
            assert np.array_equal(values, there[name])
            continue
        with np.errstate(invalid="ignore"):
            spread = np.nanmax(np.abs(values), axis=0)
        difference = np.nan_to_num(np.abs(values - there[name]))
        assert (difference <= 1e-12 * spread).all(), name
