"""Short columns sorted both ways: by numpy, as users get them, and digit by digit, like long columns."""

import pytest

from sdckit.kernels import ranks


@pytest.fixture(scope="module", params=["numpy", "digits"])
def short_columns(request):
    """Sort columns of any length digit by digit in half of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "digits":
            patch.setattr(ranks, "SMALL", 0)
        yield
