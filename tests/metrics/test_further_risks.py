"""Risks beside linkage equal the slow ones that were written from the definitions alone."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from cases import each
from intruder_cases import drawn_case
from intruder_disclosure import floor, uniques
from sdckit.risk.groups import score_uniques

SEEDS = range(48)


@pytest.mark.filterwarnings("ignore::UserWarning")  # coarse files: values kept, codes hit
@each("seed", SEEDS)
def test_uniques_and_floor_equal_the_slow_ones(seed):
    case = drawn_case(seed)
    found = score_uniques(case.pair, per_record=True)
    assert found.value.overall == pytest.approx(uniques(case.published, case.release), abs=1e-12)
    slow = floor(case.published, case.release, case.original)
    assert found.parts["floor"] == pytest.approx(slow, abs=1e-12)
    assert found.records.mean() == pytest.approx(found.value.overall)


# --- what cannot be reached is said at once ---


def survey(n=60):
    return pl.DataFrame(
        {
            "income": [float(7 * i % n) for i in range(n)],
            "town": [f"t{i % 20}" for i in range(n)],
            "sex": ["f", "m"] * (n // 2),
            "w": [1.0 + i / n for i in range(n)],
        }
    )


def test_uniques_stand_beside_linkage_with_the_floor():
    made = sdc.Microdata(survey(), columns="income", drop="w").release("mdav", k=5)
    assert made.evaluation["uniques"] == 0
    floor = made.evaluation.parts["uniques"]["floor"]
    assert floor == 20 / 60
    assert made.evaluation["linkage"] >= floor
    said = made.evaluation.meaning["uniques"]
    assert said == (
        "0 of 100 records stand alone on what is published unmasked, town, sex; "
        "no masking of the others brings linkage below 0.333"
    )


@pytest.mark.filterwarnings("ignore::UserWarning")  # of the changed column
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_linkage_is_never_below_the_floor_where_unmasked_cells_were_changed(share):
    rng = np.random.default_rng(3)
    town, sex = rng.integers(0, 40, 200).astype(str), rng.integers(0, 2, 200).astype(str)
    data = pl.DataFrame({"income": rng.lognormal(5, 1, 200), "town": town, "sex": sex})
    masked = (
        sdc.Microdata(data, columns="income")
        .mask("noise", percent=300, rng=1)
        .with_columns(town=pl.Series(np.where(rng.random(200) < share, rng.permutation(town), town)))
    )
    found = sdc.Microdata(data, columns="income").evaluate(masked, metrics=["linkage", "uniques"])
    assert found["linkage"] >= found.parts["uniques"]["floor"]
    assert found.parts["uniques"]["floor"] == 2 / 200  # of sex alone


def test_recommend_says_at_once_what_cannot_be_reached():
    options = {"columns": "income", "max_risk": {"linkage": 0.1}}
    with pytest.raises(sdc.LimitsMissed) as failure:
        called("recommend", survey(), weights="w", untouched="w", **options)
    text = str(failure.value)
    assert text.startswith("no masking meets linkage of at most 0.1. The survey weights w alone raise ")
    assert "The untouched columns w, " in text
    assert "single out 100% of the records; no masking of income can bring the risk below 1. " in text
    assert text.endswith("Recode or drop them, or declare them unknown")
    with pytest.raises(sdc.LimitsMissed, match=r"untouched columns town, sex .* below 0\.33"):
        called("recommend", survey(), drop="w", **options)
    choice = called("recommend", survey(), drop=["w", "town"], plan={"mdav": {"k": [10, 20]}}, **options)
    assert choice.met


def test_a_limit_on_uniques_is_checked_before_the_search():
    with pytest.raises(sdc.LimitsMissed, match=r"^no masking meets uniques of at most 0\.5\. "):
        sdc.Microdata(survey(), columns="income", untouched="w").recommend(max_risk={"uniques": 0.5})
