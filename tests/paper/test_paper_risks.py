"""Loss against risk: tables beside a sweep of one's own, safe settings by hand, words that follow."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sdckit as sdc
from sdckit.paper import risks
from sdckit.paper.design import STUDY_METHODS
from sdckit.paper.risks import safe_rows, safety_sentence
from sdckit.selection.points import weakest_safe_position
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
        for limit in risks.LIMITS:
            place = weakest_safe_position(line, {risks.NEAREST["linkage"]: limit})
            row = attacked.safe.filter(method=method, limit=limit).row(0, named=True)
            assert (row["safe"] == "none") == (place is None)
            if place is not None:
                assert [row[name] for name in LOSSES_AND_RISKS] == list(line[place].values.values())
                assert row["setting"] == own["setting"][place]
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


def test_the_same_seed_gives_the_same_files_and_another_does_not(tiny, attacked):
    plan = risks.attack_plan(["noise", "rank_swap_no_tails"], every=5)
    one, two, other = (
        risks.measure_risks(tiny, plan, name="tiny", replications=2, seed=seed, workers=1)
        for seed in (4, 4, 5)
    )
    assert_frame_equal(one, two)
    assert not one["brmae"].equals(other["brmae"])
    assert_frame_equal(one, attacked.measured.join(one, on=[*risks.KEYS, "replication"], how="semi"))


def test_finished_files_are_kept(tiny, tmp_path, monkeypatch):
    plan = risks.attack_plan(["noise"], every=4)
    how = {"name": "tiny", "replications": 1, "seed": 4, "workers": 1, "folder": tmp_path / "risk"}
    part = risks.measure_risks(tiny, {"noise": [{"percent": [300]}]}, **how)
    whole = risks.measure_risks(tiny, plan, **how)
    assert_frame_equal(part, whole[-1:])
    monkeypatch.setattr("sdckit.selection.task.Task.measure", lambda *_: pytest.fail("measured again"))
    assert_frame_equal(risks.measure_risks(tiny, plan, **how), whole)


def test_few_replications_try_few_settings(tiny):
    quick = risks.run_attacks({"tiny": tiny}, replications=3, workers=1)
    assert quick.measured.height == 10 + 4 * 7
    assert quick.replications == 1


def test_each_dataset_keeps_its_work_in_a_folder_of_its_own(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(risks, "attack_plan", lambda **_: {"mdav": [{"k": [3, 4]}]})
    risks.run_attacks({"One": tiny, "two": tiny}, folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one-risk", "two-risk"]


# --- safe settings by hand ---

WAVERING = [  # method, setting, brMAE, linkage, linkage of outliers
    ("mdav", 2, 0.1, 0.4, 0.5),
    ("mdav", 3, 0.2, 0.09, 0.3),  # below 0.1, but the next one is not
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


def test_a_setting_is_safe_only_if_every_stronger_one_is():
    found = made_up(*WAVERING)
    assert found.safe.select("limit", "method", "safe", "brmae", "brmse").rows() == [
        (0.3, "mdav", "k = 3", 0.2, 0.1),
        (0.1, "mdav", "k = 5", 0.4, 0.2),
        (0.05, "mdav", "none", None, None),
        (0.02, "mdav", "none", None, None),
        (0.3, "noise", "50 %", 0.3, 0.15),
        (0.1, "noise", "100 %", 0.5, 0.25),
        (0.05, "noise", "100 %", 0.5, 0.25),
        (0.02, "noise", "none", None, None),
    ]
    assert found.points["frontier"].to_list() == [True, True, False, True, False, True]


def test_the_words_follow_from_the_numbers():
    assert safety_sentence(made_up(*WAVERING), "Census") == (
        "Least loss on Census under limits of linkage: MDAV microaggregation at 0.3 (k = 3, brMAE 0.200) "
        "and 0.1 (k = 5, brMAE 0.400); additive noise at 0.05 (100 %, brMAE 0.500); "
        "no setting tried is safe at 0.02."
    )
    unsafe = [(*row[:3], 0.9, 1.0) for row in WAVERING]
    assert safety_sentence(made_up(*unsafe), "Census") == (
        "Least loss on Census under limits of linkage: no setting tried is safe at 0.3, 0.1, 0.05 and 0.02."
    )


def test_the_page_marks_the_least_loss_under_each_limit():
    rows = safe_rows(made_up(*WAVERING), "Census")
    assert [row["method"] for row in rows] == ["MDAV microaggregation", "additive noise"]
    assert [[cell["best"] for cell in row["cells"]] for row in rows] == [
        [True, True, False, False],
        [False, False, True, False],
    ]


def test_the_worst_attack_is_named():
    found = made_up(*WAVERING).measured.with_columns(
        matching=pl.when(pl.col("setting") == 3).then(0.95).otherwise("matching"),
        dbrl=pl.when(pl.col("setting") == 4).then(0.0).otherwise("dbrl"),
    )
    expected = ["dbrl", "matching", "dbrl_mahalanobis", "dbrl", "dbrl", "dbrl"]
    assert risks.Risks(found).points["worst"].to_list() == expected
