"""No plain attack finds more than is printed: on average over draws, for every kind of file."""

import numpy as np
import pytest

import attacked_releases as releases

DRAWS = range(40_000, 40_006)
SIZES = {
    "rank_swap": {"n": 300},
    "rank_swap_two_columns": {"n": 300},
    "rank_swap_tails": {"n": 300},
    "rank_swap_strata": {"n": 300},
    "rank_swap_known_75": {"n": 300},
    "rank_swap_known_50": {"n": 300},
    "p_distribution_swap": {"n": 300},
    "wealth_beside_swaps": {"n": 300},
    "panel_by_month": {"firms": 40},
    "panel_rows": {"firms": 40},
    "multiplicative_noise": {"n": 300},
    "outlier_noise": {"n": 300, "runs": 100},
    "kim_noise": {"n": 300},
    "moment_preserving_noise": {"n": 300},
    "romm": {"n": 300},
    "three_releases": {"n": 300},
    "sure_links": {"n": 300},
    "secret_rotation": {"n": 300},
    "noise": {"n": 300},
    "correlated_noise": {"n": 300},
    "zero_preserving_noise": {"n": 300},
    "rank_noise": {"n": 300},
}


@pytest.mark.parametrize("line", SIZES)
def test_printed_is_not_below_the_attack(line):
    files = [releases.LINES[line](draw, **SIZES[line]) for draw in DRAWS]
    printed = np.mean([file.printed() for file in files])
    assert printed >= 0.95 * np.mean([file.found for file in files])


def test_records_given_away_by_missing_cells_count_as_sure():
    file = releases.missing_cells()
    assert file.printed() >= 0.95 * file.found


@pytest.mark.parametrize("method", releases.LEAVING)
def test_second_release_is_refused_where_the_one_who_left_can_be_read(method):
    file = releases.leaving(7, method, n=300)
    assert file.found >= 0.5
    assert file.printed() == 1
