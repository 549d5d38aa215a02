"""Loss against risk: tables beside a sweep of one's own, the frontier and the worst attack by hand."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from sdckit.paper import risks
from sdckit.paper.design import STUDY_METHODS
from secret_bytes import entropy

LOSSES_AND_RISKS = ["brmae", "brmse", "linkage", "linkage_outliers"]
MEASURED = ["brmae", "brmse", *risks.NEAREST.values()]


@pytest.fixture(scope="module")
def tiny():
    """Sixty records, so that every attack is quick."""
    rng = np.random.default_rng(8)
    common = rng.lognormal(size=(60, 1))
    return sdc.Microdata(np.round(common + rng.lognormal(size=(60, 3)), 2)).original


@pytest.fixture(scope="module")
def attacked(tiny):
    return risks.run_attacks({"tiny": tiny}, replications=20, seed=4, workers=1)


def test_thinned_grids_are_part_of_the_study():
    for label, study_method in STUDY_METHODS.items():
        whole = {setting.identity for setting in risks.settings_of({study_method.method: study_method.grid})}
        ours = risks.settings_of(risks.attack_plan([label]))
        assert {setting.identity for setting in ours} <= whole
        assert len(ours) >= 20
        few = risks.settings_of(risks.attack_plan([label], every=2))
        assert 2 * len(few) == len(ours)
        assert few[-1].identity == ours[-1].identity


def test_the_numbers_are_those_of_a_sweep(tiny, attacked):
    swapping = {"p": "0.015:0.3:0.015", "tails": 0.05, "bound": "exclusive", "start": "highest"}
    plan = {"rank_swap": swapping, "mdav": {"k": "1:30"}}
    found = sdc.sweep(tiny, plan, metrics=MEASURED, replications=2, rng=4)
    for method in plan:
        line = next(line for line in found.curves if line[0].method == method)
        own = attacked.points.filter(method=method)
        assert own.select(LOSSES_AND_RISKS).rows() == [tuple(point.values.values()) for point in line]
    frontier = sdc.sweep(tiny, {"mdav": {"k": "1:30"}}, metrics=["brmae", risks.NEAREST["linkage"]]).frontier(
        risks=risks.NEAREST["linkage"]
    )
    alone = risks.Risks(attacked.measured.filter(method="mdav"))
    assert alone.points.filter("frontier")["setting"].to_list() == frontier["setting"].to_list()


def test_linkage_is_the_worst_attack_on_each_file(attacked, tiny):
    # Single attacks are measured in one direction; linkage takes both, and guesses among all candidates.
    worst = attacked.measured.select(pl.max_horizontal(risks.ATTACKS)).to_series()
    assert (worst <= attacked.measured["linkage"]).all()
    assert (worst == attacked.measured["linkage"]).mean() > 0.5
    release = sdc.release(tiny, "rank_swap", p=0.1, entropy=entropy(1), metrics="linkage")
    assert release.evaluation["linkage"] == max(release.evaluation.parts["linkage"].values())
    swapped = attacked.measured["method"].str.starts_with("rank_swap")
    assert (attacked.measured["window"].is_not_null() == swapped).all()
    bounded = attacked.points.filter(method="mdav")
    assert (bounded["linkage"] <= 1 / bounded["setting"] + 1e-12).all()


def test_few_replications_try_few_settings(tiny):
    quick = risks.run_attacks({"tiny": tiny}, replications=3, workers=1)
    assert quick.measured.height == 10 + 4 * 7
    assert quick.replications == 1


def test_each_dataset_keeps_its_work_in_a_folder_of_its_own(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(risks, "attack_plan", lambda **_: {"mdav": [{"k": [3, 4]}]})
    risks.run_attacks({"One": tiny, "two": tiny}, folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one-risk", "two-risk"]


WAVERING = [  # method, setting, brMAE, linkage, linkage of outliers
    ("mdav", 2, 0.1, 0.4, 0.5),
    ("mdav", 3, 0.2, 0.09, 0.3),
    ("mdav", 4, 0.3, 0.11, 0.2),
    ("mdav", 5, 0.4, 0.08, 0.1),
    ("noise", 50, 0.3, 0.25, 1.0),
    ("noise", 100, 0.5, 0.04, 1.0),
]


def made_up(*lines):
    rows = []
    for method, setting, loss, linkage, outliers in lines:
        row = {
            "dataset": "Census",
            "method": method,
            "parameters": f"{STUDY_METHODS[method].varied}={setting:g}",
        }
        row |= {"setting": float(setting), "replication": 1, "brmae": loss, "brmse": loss / 2}
        row |= {"linkage": linkage, "linkage_outliers": outliers}
        rows.append(row | dict.fromkeys(risks.ATTACKS, linkage) | {"window": None, "matching": 0.0})
    return risks.Risks(pl.DataFrame(rows, schema_overrides={"window": pl.Float64}))


def test_the_worst_attack_and_the_frontier_are_named():
    assert made_up(*WAVERING).points["frontier"].to_list() == [True, True, False, True, False, True]
    found = made_up(*WAVERING).measured.with_columns(
        matching=pl.when(pl.col("setting") == 3).then(0.95).otherwise("matching"),
        dbrl=pl.when(pl.col("setting") == 4).then(0.0).otherwise("dbrl"),
    )
    expected = ["dbrl", "matching", "dbrl_mahalanobis", "dbrl", "dbrl", "dbrl"]
    assert risks.Risks(found).points["worst"].to_list() == expected
