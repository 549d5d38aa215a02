"""The number of exposed records at the top of a report, and no probability of a single record in it."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from read_page import Read, specs
from sdckit.core.scenarios import exposed_of
from sdckit.metrics.pair import pair_of
from sdckit.report import build
from secret_bytes import entropy

DEFAULT = "default: a tenth of the limit on linkage"
METRICS = ["brmae", "linkage", "linkage_sure"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    return pl.DataFrame({name: rng.lognormal(5, 0.8, 100).round(2) for name in "abc"})


@pytest.fixture(scope="module")
def masked(data):
    return sdc.mask(data, "noise", percent=15, rng=4)


@pytest.fixture(scope="module")
def evaluation(data, masked):
    return sdc.evaluate(data, masked, metrics=METRICS, per_record=True)


def header(page):
    return Read(page.split("<header>")[1].split("</header>")[0]).text


def test_the_header_says_how_many_records_are_exposed(data, masked, evaluation):
    found = exposed_of(evaluation.parts)
    assert found.records > 0
    with_pair = build.report_on_evaluation(evaluation, name="m.csv", pair=pair_of(data, masked))
    assert f"{found.records} of 100 records are exposed" in header(with_pair)
    assert f"(above 0.9: {found.above_90})" in header(with_pair)
    assert f"{found.records} records are exposed" in header(evaluation.to_html())


def test_a_report_without_sure_links_says_nothing_of_exposed_records(data, masked):
    assert "exposed" not in header(sdc.evaluate(data, masked, metrics=["brmae", "linkage"]).to_html())


def test_each_of_several_files_has_its_number(data, evaluation):
    groups = sdc.evaluate(data, sdc.mask(data, "mdav", k=5), metrics=METRICS)
    found = header(build.report_on_files({"a.csv": evaluation, "b.csv": groups}, records=100))
    assert f"a.csv: {exposed_of(evaluation.parts).records} of 100 records are exposed" in found
    assert "b.csv: No record is exposed" in found


def test_no_page_has_the_probability_of_a_record(data, masked, evaluation):
    page = build.report_on_evaluation(evaluation, name="m.csv", pair=pair_of(data, masked))
    assert "at-risk" in specs(page)  # a histogram of the records by their risk is shown
    probabilities = evaluation.records["linkage_sure"].to_numpy()
    uncertain = probabilities[(probabilities > 0.001) & (probabilities < 0.999)]
    assert uncertain.size > 10
    for digits in (4, 6):
        assert not [one for one in uncertain if f"{one:.{digits}f}" in page]


def test_a_limit_that_is_a_default_is_named_so(data):
    limited = {"max_risk": {"linkage": 0.3}, "entropy": entropy(3), "metrics": METRICS}
    made = sdc.release(data, "mdav", k=5, **limited)
    page = Read(build.report_on_release(made)).text
    assert f"limit 0.03 ({DEFAULT}): met" in page
    assert f"at most 0.03 ({DEFAULT})" in page
    limited["max_risk"] = {"linkage": 0.3, "linkage_sure": 0.5}
    page = Read(build.report_on_release(sdc.release(data, "mdav", k=5, **limited))).text
    assert "limit 0.5: met" in page
    assert DEFAULT not in page


def test_the_report_on_a_search_lists_the_default_limit(data):
    choice = sdc.recommend(data, max_risk={"linkage": 0.3}, plan={"mdav": {"k": [3, 5, 8]}}, rng=1, workers=1)
    page = Read(build.report_on_choice(choice, name="data")).text
    assert f"sure links at most 0.03 ({DEFAULT})" in page
    assert f"limit on sure links is the {DEFAULT}" in page
