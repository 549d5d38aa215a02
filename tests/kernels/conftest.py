"""Short columns sorted both ways: plainly, as users get them, and as packed keys, like long columns."""

import pytest

from sdckit.kernels import rank_distance, tie_rules


@pytest.fixture(scope="module", params=["plain", "packed"])
def short_columns(request):
    """Sort columns of any length as packed keys in half of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "packed":
            patch.setattr(rank_distance, "SMALL", 0)
            patch.setattr(tie_rules, "SMALL", 0)
        yield
