"""What a sweep offers: the frontier of its settings, and a recommendation by the rule."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdckit as sdc
from sdckit.report.risk_map import metrics_by_setting, nondominated_rows
from sweeps import frame

NAN = float("nan")


# --- the frontier ---


@given(
    st.lists(
        st.tuples(*[st.sampled_from([0.0, 0.25, 0.5, 1.0, NAN]) | st.floats(0, 1)] * 3),
        max_size=25,
    )
)
def test_the_frontier_is_what_nobody_beats(rows):
    kept = []
    for mine in rows:
        beaten = any(
            all(a <= b for a, b in zip(other, mine, strict=True))
            and any(a < b for a, b in zip(other, mine, strict=True))
            for other in rows
        )
        kept.append(not beaten and not any(map(math.isnan, mine)))
    table = pl.DataFrame(rows, schema=dict.fromkeys("abc", pl.Float64), orient="row")
    assert nondominated_rows(table, ["a", "b", "c"]).to_list() == kept


@pytest.fixture(scope="module")
def found():
    plan = {"mdav": {"k": [2, 3, 5, 10]}, "noise": {"percent": [10, 40, 90]}}
    metrics = ["brmae", "mae", "ci_overlap", "dbrl", "dbrl_rank"]
    return sdc.sweep(frame(), plan, metrics=metrics, replications=3, rng=2, workers=1)


def test_the_frontier_of_a_sweep(found):
    table = found.frontier("brmae", "dbrl")
    wide = metrics_by_setting(found.summary)
    losses, risks = wide["brmae"].to_numpy(), wide["dbrl"].to_numpy()
    better = [
        ((losses <= loss) & (risks <= risk) & ((losses < loss) | (risks < risk))).any()
        for loss, risk in zip(losses, risks, strict=True)
    ]
    assert table.equals(wide.filter(~pl.Series(better)))
    assert 0 < table.height <= wide.height
    more = found.frontier(["brmae", "mae"], ["dbrl", "dbrl_rank"])
    assert set(table["parameters"]) <= set(more["parameters"])


def test_the_frontier_knows_that_overlap_is_best_at_one(found):
    best = metrics_by_setting(found.summary).sort("ci_overlap")["parameters"][-1]
    assert best in found.frontier("ci_overlap", "dbrl")["parameters"].to_list()


def test_the_frontier_of_what_was_not_measured_is_refused(found):
    with pytest.raises(ValueError, match=r"unknown metric of this sweep 'linkage'; choose from: brmae, mae"):
        found.frontier()
    with pytest.raises(ValueError, match="unknown metric 'brmea'"):
        found.frontier("brmea", "dbrl")


# --- recommendations of a sweep ---


def test_a_sweep_in_which_a_metric_has_no_value_anywhere_recommends_nothing():
    plan = {"noise": {"percent": [10, 90]}}
    found = sdc.sweep(frame(9), plan, metrics=["brmae", "rmdid", "dbrl"], rng=1, workers=1)
    assert found.recommend({"dbrl": 1}).met
    with pytest.raises(ValueError, match=r"^rmdid has no value for any of these maskings; choose another"):
        found.recommend({"rmdid": 1})


def test_a_sweep_recommends_by_the_rule_on_medians(found):
    choice = found.recommend({"dbrl": 0.3})
    wide = metrics_by_setting(found.summary).sort("method", "setting")
    safe = []
    for _, settings in wide.group_by("method", maintain_order=True):
        met = (settings["dbrl"] <= 0.3).to_list()
        places = [i for i in range(len(met)) if all(met[i:])]
        safe += [settings.row(places[0], named=True)] if places else []
    best = min(safe, key=lambda row: row["brmae"])
    assert (choice.point.method, choice.point.parameters) == (best["method"], best["parameters"])
    assert choice.point.values["dbrl"] == best["dbrl"]
    assert len(choice.safe) == len(safe)
    assert choice.maskings == 4 + 3 * 3


@pytest.mark.parametrize(
    ("limits", "minimise", "text"),
    [
        ({"dbrrl": 0.1}, "brmae", r"^unknown metric 'dbrrl' \(did you mean 'dbrl'\?\); choose from: "),
        ({"brmae": 0.1}, "brmae", r"^'brmae' is a loss; limit a risk, such as linkage, and minimise the "),
        ({"dbrl": 0.1}, "dbrl", r"^'dbrl' is a risk; minimise a loss, such as brmae, and limit the risk$"),
        ({"dbrl": 0.1}, "brmea", r"^unknown metric 'brmea'"),
        ({"linkage": 0.1}, "brmae", r"^the sweep has not measured 'linkage', only brmae, .*; add it to its"),
        ({"dbrl": 0.1}, "mse", r"^the sweep has not measured 'mse', only brmae"),
        ({"dbrl": 0.1}, "ci_overlap", r"^'ci_overlap' is best at 1; minimise a loss whose best value is 0$"),
        (
            {"window": 0.1},
            "brmae",
            r"^window cannot be limited by itself; limit linka",
        ),
        ({"dbrl": 1.1}, "brmae", r"^the limit of dbrl is 1.1; give a share from 0 to 1, such as 0.05$"),
        ({"dbrl": -0.1}, "brmae", r"^the limit of dbrl is -0.1; give a share"),
        ({"dbrl": NAN}, "brmae", r"^the limit of dbrl is nan; give a share"),
        ({"dbrl": "much"}, "brmae", r"^the limit of dbrl is 'much'; give a share"),
        ({"dbrl": True}, "brmae", r"^the limit of dbrl is True; give a share"),
        ({}, "brmae", r"^max_risk is \{\}; give limits by metric, such as \{'linkage': 0.1\}$"),
        (0.1, "brmae", r"^max_risk is 0.1; give limits by metric"),
        ({3: 0.1}, "brmae", r"^unknown metric 3; choose from"),
    ],
)
def test_what_cannot_be_recommended_is_refused_in_one_line(found, limits, minimise, text):
    with pytest.raises((ValueError, TypeError), match=text) as refusal:
        found.recommend(limits, minimise)
    assert "\n" not in str(refusal.value)
