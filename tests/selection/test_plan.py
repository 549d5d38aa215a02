"""Plans: what a grid's words, lists and files mean, and which of them are refused in one line."""

from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdckit as sdc
from cases import each
from sdckit.core.randomness import entropy_of
from sdckit.selection.plan import (
    LARGEST_GRID,
    Run,
    grid_values,
    plan_of_file,
    plan_of_words,
    runs_of,
    settings_of,
)

METHODS = sdc.METHODS
K = next(parameter for parameter in METHODS["mdav"].parameters if parameter.name == "k")
P = next(parameter for parameter in METHODS["rank_swap"].parameters if parameter.name == "p")
SCALE = next(p for p in METHODS["correlated_noise"].parameters if p.name == "scale")


def texts(plan):
    return [f"{setting.method.name}({setting.text})" for setting in settings_of(plan)]


def put(folder, content):
    path = folder / "plan.toml"
    path.write_text(content, encoding="utf-8")
    return path


# --- the values of one parameter ---


@each(
    ("given", "expected"),
    [
        ("2:5", [2, 3, 4, 5]),
        ("3,5, 10", [3, 5, 10]),
        ("2:4,9,20:30:5", [2, 3, 4, 9, 20, 25, 30]),
        ("5:2:-1", [5, 4, 3, 2]),
        ("7:7", [7]),
        ("2:9:3", [2, 5, 8]),
        (" 2 : 4 ", [2, 3, 4]),
        (4, [4]),
        (4.0, [4]),
        (np.int64(4), [4]),
        (range(2, 5), [2, 3, 4]),
        ((2, "3"), [2, 3]),
        (np.array([3, 2]), [3, 2]),
        ((k for k in (5, 6)), [5, 6]),
    ],
)
def test_a_grid_is_a_value_a_list_a_range_or_their_mixture(given, expected):
    found = grid_values(K, given)
    assert found == expected
    assert all(type(value) is int for value in found)


def test_ranges_count_in_decimals():
    found = grid_values(P, "0.001:0.3:0.001")
    assert found == [i / 1000 for i in range(1, 301)] == list(P.grid)
    assert grid_values(P, "0.1:0.3:0.1") == [0.1, 0.2, 0.3]  # in floats, 0.1 + 2 * 0.1 is above 0.3
    assert grid_values(P, "0.05:0.3:0.1") == [0.05, 0.15, 0.25]
    assert grid_values(P, "1e-3:2e-3:5e-4") == [0.001, 0.0015, 0.002]


@given(st.integers(0, 900), st.integers(1, 60), st.integers(0, 80))
def test_a_range_has_both_ends_and_equal_steps(first, step, count):
    last = first + step * count
    text = f"{Decimal(first) / 1000}:{Decimal(last) / 1000}:{Decimal(step) / 1000}"
    wanted = [(first + step * i) / 1000 for i in range(count + 1)]
    if last <= 1000:
        assert grid_values(P, text) == wanted


def test_choices_are_a_grid_too():
    assert grid_values(SCALE, "sd, variance") == grid_values(SCALE, ["sd", "variance"]) == ["sd", "variance"]
    assert grid_values(SCALE, "sd") == ["sd"]


NO_RANGES = ["5:2", "0:1:0", "3:3:0", "a:b", ":", ":5", "5:", "2:30:", "1:2:3:4", "2:5:-1", "2;3:5", "1:inf"]
STRANGE = ["inf:5", "nan:5", "2:nan", "2:5:nan", "2:5:inf", "inf:inf", "0:1e999999:1e-999999", "-inf:inf:inf"]


@each("text", [*NO_RANGES, *STRANGE])
def test_what_is_no_range_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"^the grid k=.* is no range; write FROM:TO or .* such as 2:30$"):
        grid_values(K, text)


def test_a_range_narrower_than_its_step_asks_for_one():
    with pytest.raises(
        ValueError, match=r"p=0.001:0.3 is narrower than its step of 1; add .*0.001:0.3:0.01$"
    ):
        grid_values(P, "0.001:0.3")
    assert grid_values(P, "0:1") == [0.0, 1.0]


@pytest.mark.parametrize("given", ["", " , ", [], (), range(0), np.array([])])
def test_an_empty_grid_is_refused(given):
    with pytest.raises(ValueError, match=r"^the grid of k is empty; give a value, a list or a range"):
        grid_values(K, given)


def test_a_grid_that_would_take_too_long_is_refused():
    with pytest.raises(ValueError, match=f"the grid of rank_swap has .* points; give at most {LARGEST_GRID}"):
        settings_of({"rank_swap": {"p": "0:1:0.0001", "tails": "0:0.49:0.001"}})


# --- plans ---


def test_a_grid_is_the_product_of_its_parameters_in_the_order_given():
    plan = {"rank_swap": {"p": [0.1, 0.2], "bound": ["inclusive", "exclusive"]}, "mdav": {"k": "3,2"}}
    assert texts(plan) == [
        "rank_swap(p=0.1, bound=inclusive)",
        "rank_swap(p=0.1, bound=exclusive)",
        "rank_swap(p=0.2, bound=inclusive)",
        "rank_swap(p=0.2, bound=exclusive)",
        "mdav(k=3)",
        "mdav(k=2)",
    ]


def test_several_grids_of_one_method_meet_without_repetition():
    plan = {"mdav": [{"k": [2, 3]}, {"k": "3:4"}, {"k": 2.0}]}
    assert texts(plan) == ["mdav(k=2)", "mdav(k=3)", "mdav(k=4)"]
    assert len(settings_of({"noise": [{"percent": 10}, None]})) == 300


def test_the_default_spelt_out_is_the_same_setting():
    plain, spelt = (settings_of({"rank_swap": grid})[0] for grid in ({"p": 0.1}, {"p": 0.1, "tails": 0}))
    assert plain.identity == spelt.identity
    assert Run(plain, 1).key == Run(spelt, 1).key
    assert len(settings_of({"rank_swap": [{"p": 0.1}, {"p": 0.1, "tails": 0.0}]})) == 1


def test_names_alone_take_the_grid_of_the_registry():
    usual = [f"k={k}" for k in next(p.grid for p in METHODS["mdav"].parameters if p.name == "k")]
    for plan in ("mdav", ["mdav"], {"mdav": None}, {"mdav": {}}, {"mdav": [None]}):
        assert [setting.text for setting in settings_of(plan)] == usual
    every = settings_of(None)
    known = [name for name, method in METHODS.items() if method.default]
    assert [setting.identity for setting in every] == [setting.identity for setting in settings_of(known)]
    assert list(dict.fromkeys(setting.method.name for setting in every)) == known


def test_what_an_intruder_undoes_is_tried_only_where_it_is_named():
    names = {setting.method.name for setting in settings_of(None)}
    assert "rank_noise" in names
    assert names.isdisjoint({"rank_swap", "p_distribution_swap"})
    assert {setting.method.name for setting in settings_of("rank_swap")} == {"rank_swap"}


def test_setting_is_the_number_that_varies():
    def values(grid, method="rank_swap"):
        return [setting.value for setting in settings_of({method: grid})]

    assert values({"p": [0.1, 0.2], "tails": 0.05}) == [0.1, 0.2]
    assert values({"p": 0.1, "tails": [0.0, 0.05]}) == [0.0, 0.05]
    assert values({"p": 0.1}) == [0.1]
    assert values({"p": 0.1, "start": ["lowest", "highest"]}) == [0.1, 0.1]
    assert values({"p": [0.1, 0.2], "tails": [0.0, 0.05]}) == [None] * 4
    assert values({"p": 0.1, "tails": 0.05}) == [None]
    assert values({"start": ["lowest", "highest"]}) == [None] * 2
    assert values({"k": [3, 4]}, "mdav") == [3.0, 4.0]


def test_numbers_are_shown_as_they_were_written():
    assert texts({"rank_swap": {"p": "0.1:0.3:0.1"}}) == [
        "rank_swap(p=0.1)",
        "rank_swap(p=0.2)",
        "rank_swap(p=0.3)",
    ]
    assert texts({"noise": {"percent": [100, 1e-5]}}) == ["noise(percent=100)", "noise(percent=1e-05)"]


@each(
    ("plan", "kind", "text"),
    [
        ("mdaw", ValueError, r"unknown method 'mdaw' \(did you mean 'mdav'\?\)"),
        ({"mdav": {"q": 3}}, ValueError, "method 'mdav' has no parameter 'q'; choose from: k"),
        ({"mdav": 5}, TypeError, r"the grid of mdav is 5; give parameters, such as \{'k': \[3, 5\]\}"),
        ({"mdav": "k=5"}, TypeError, "the grid of mdav is 'k=5'; give parameters"),
        ({"mdav": [5]}, TypeError, "the grid of mdav is 5; give parameters"),
        ({}, ValueError, "the plan is empty; name at least one method"),
        ([], ValueError, "the plan is empty; name at least one method"),
        ({"mdav": []}, ValueError, "the plan is empty; name at least one method"),
        ([3], ValueError, "unknown method 3; choose from"),
        (5, TypeError, "^the plan is 5; "),
    ],
)
def test_plans_that_mean_nothing_are_refused(plan, kind, text):
    with pytest.raises(kind, match=text):
        settings_of(plan)


# --- runs ---


def test_only_random_methods_are_repeated():
    runs = runs_of(settings_of({"mdav": {"k": [2, 3]}, "noise": {"percent": [5, 6]}}), 3)
    assert Counter((c.setting.text, c.replication) for c in runs).most_common(1)[0][1] == 1
    assert [c.replication for c in runs if not c.setting.method.random] == [1, 1]
    assert [c.replication for c in runs if c.setting.method.random] == [1, 2, 3, 1, 2, 3]


def test_no_two_cells_share_a_key_and_none_a_fresh_stream():
    runs = runs_of(settings_of(None), 30)
    assert len({run.key for run in runs}) == len(runs) > 21_000
    assert len({tuple(run.stream("fresh")) for run in runs}) == len(runs)
    assert all(0 <= run.key < 2**64 for run in runs)


def test_common_streams_belong_to_method_and_replication():
    runs = runs_of(settings_of({"noise": {"percent": "1:9"}, "rank_swap": {"p": [0.1, 0.2]}}), 4)
    streams = {(c.setting.method.name, c.replication, *c.stream("common")) for c in runs}
    assert len(streams) == len({stream[2:] for stream in streams}) == 2 * 4


def test_keys_and_streams_are_the_same_for_ever():
    """Folders of earlier sweeps, and published seeds, depend on them."""
    run = Run(settings_of({"noise": {"percent": 10}})[0], 2)
    assert run.setting.identity == "noise(percent=10.0)"
    assert run.key == 6941608174423981576
    assert run.stream("common") == [160384494, 1421149093, 3059567466, 2435747970]
    assert run.stream("fresh")[:2] == [run.key >> 32, run.key & 0xFFFFFFFF]


def test_the_entropy_behind_a_sweep():
    assert entropy_of(5) == entropy_of(np.int64(5)) == 5
    assert entropy_of(0) == 0
    assert entropy_of(2**200) == 2**200
    assert entropy_of(None) != entropy_of(None)
    assert entropy_of(None).bit_length() > 64
    assert entropy_of(np.random.default_rng(1)) == entropy_of(np.random.default_rng(1))
    for bad in (-1, True, "5", 1.5):
        with pytest.raises((TypeError, ValueError), match=r"^(the seed|rng) is .*; give"):
            entropy_of(bad)


# --- words ---


def test_words_of_one_method_belong_to_one_grid():
    words = ["mdav.k=2:30", "rank_swap.p = 0.1,0.2", "noise", "rank_swap.tails=0.05"]
    assert plan_of_words(words) == {
        "mdav": {"k": "2:30"},
        "rank_swap": {"p": "0.1,0.2", "tails": "0.05"},
        "noise": {},
    }
    assert plan_of_words([]) == {}
    assert plan_of_words(["mdav", "mdav.k=3"]) == {"mdav": {"k": "3"}}


@pytest.mark.parametrize("word", ["mdav=5", "mdav.k", "mdav.k=", "mdav.=5", "mdav=", "mdav.k= "])
def test_unclear_words_are_refused(word):
    with pytest.raises(ValueError, match=r"is unclear; write METHOD.PARAMETER=VALUES, as in mdav.k=2:30$"):
        plan_of_words([word])


@pytest.mark.parametrize("word", ["", "=5", ".k=5", "mdaw.k=5", "k=5", "MDAV.k=3"])
def test_words_without_a_known_method_are_refused(word):
    with pytest.raises(ValueError, match=r"^unknown method '.*; choose from: mdav, "):
        plan_of_words([word])


def test_a_parameter_given_twice_is_refused():
    with pytest.raises(ValueError, match=r"^the grid gives 'mdav.k' twice; join its values with a comma$"):
        plan_of_words(["mdav.k=2", "noise.percent=5", "mdav.k=3"])


# --- files ---

EXAMPLE = """
replications = 30
draws = "fresh"
metrics = ["brmae:ties=first", "il1:zeros=drop"]

[mdav]
k = "2:4"

[[rank_swap]]
p = [0.1, 0.2]

[[rank_swap]]
p = 0.3
tails = 0.05

[noise]
"""


def test_a_file_holds_grids_and_settings(tmp_path):
    plan, said = plan_of_file(put(tmp_path, EXAMPLE))
    assert said == {"replications": 30, "draws": "fresh", "metrics": "brmae:ties=first,il1:zeros=drop"}
    found = texts(plan)
    assert found[:6] == [
        "mdav(k=2)",
        "mdav(k=3)",
        "mdav(k=4)",
        "rank_swap(p=0.1)",
        "rank_swap(p=0.2)",
        "rank_swap(p=0.3, tails=0.05)",
    ]
    assert len(found) == 6 + 300
    assert plan_of_file(put(tmp_path, 'metrics = "mae,mse"\n[mdav]\n')) == (
        {"mdav": {}},
        {"metrics": "mae,mse"},
    )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("mdav = [", r"'.*plan.toml' is no TOML file: .*; see the reference"),
        ("[mdav]\nk = 2:30\n", "is no TOML file"),
        ("[mdaw]\nk = 3\n", r"unknown entry of '.*plan.toml' 'mdaw' \(did you mean 'mdav'\?\); choose from"),
        ("replication = 3\n[mdav]\n", r"'replication' \(did you mean 'replications'\?\)"),
        ("seed = 3\n[mdav]\n", "unknown entry of '.*plan.toml' 'seed'"),
        ("metrics = 5\n[mdav]\n", "^metrics in .* is 5; give names"),
    ],
)
def test_broken_files_are_refused_by_name(tmp_path, content, text):
    with pytest.raises((TypeError, ValueError), match=text) as caught:
        plan_of_file(put(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_missing_and_unreadable_files_are_refused_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^no file '.*none.toml'; check its name and folder$"):
        plan_of_file(tmp_path / "none.toml")
    with pytest.raises(ValueError, match=r"^cannot read '.*' as text: .*; give a TOML file$"):
        plan_of_file(tmp_path)
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"^cannot read '.*' as text: .*; give a TOML file$"):
        plan_of_file(tmp_path / "plan.toml")


@settings(max_examples=80)
@given(st.text(alphabet="0123456789.:,-+einfa ", max_size=12))
def test_no_text_breaks_the_reader_of_grids(text):
    """Any text is a list of valid values, or refused with a remedy."""
    try:
        found = grid_values(P, text)
    except ValueError as error:
        assert "; " in str(error)  # noqa: PT017 - either way is right
    else:
        assert all(0 <= value <= 1 for value in found)


def test_a_plan_of_too_many_files_is_refused_before_they_are_listed():
    settings = settings_of({"noise": {"percent": "1:300"}})
    with pytest.raises(ValueError, match="the plan has 300000000000 masked files; give fewer"):
        runs_of(settings, 10**9)
