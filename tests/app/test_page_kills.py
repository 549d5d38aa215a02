"""The page, killed in the middle of its work and started again; tools/kills.py does it more often."""

import random
import sys

import pytest

import kills

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("killed").resolve()


@pytest.fixture(scope="module")
def expected(home):
    return kills.undisturbed(home, 200, ["mdav", "rank_swap"])


def test_a_search_goes_on_where_the_server_was_killed(home, expected):
    assert len(expected.points) > 5
    assert kills.broken_search(home, random.Random(3), expected, kills=2) == []


def test_a_killed_release_is_whole_or_not_there(home, expected):
    given = {"seconds": None, "all_at_once": True}
    assert kills.broken_release(home, random.Random(1), expected, **given) == []


def test_roles_that_were_taken_survive_a_kill(home, expected):
    assert kills.broken_roles(home, random.Random(2), expected) == []
