"""Limits on losses, suppressed cells in what is minimised, and what the demo's own release loses."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from sdckit.cli.demo import LIMITS, MINIMISE, PLAN
from secret_bytes import entropy

NAN = float("nan")


@pytest.fixture(scope="module")
def gappy():
    """300 records of three related variables, a tenth of the cells missing."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 3))
    return pl.DataFrame(np.where(rng.random(values.shape) < 0.1, NAN, values), schema=["a", "b", "c"])


SUPPRESS = {"mdav": {"k": [5, 10], "gaps": ["suppress"]}}
BOTH = {"mdav": {"k": [5, 10], "gaps": ["merge", "suppress"]}}
RISKS = {"linkage": 0.5, "linkage_sure": 1.0}  # places of missing cells expose records of merged groups


def test_a_setting_that_suppresses_much_does_not_look_cheap(gappy):
    honest = sdc.recommend(gappy, max_risk=RISKS, plan=BOTH)
    assert honest.options["gaps"] == "merge"
    assert honest.point.values["suppressed"] == 0.0
    blind = sdc.Microdata(gappy, missing="pairwise").recommend(max_risk=RISKS, plan=BOTH)
    assert blind.options["gaps"] == "suppress"  # an explicit rule wins
    assert blind.point.values["brmae"] < honest.point.values["brmae"]


def test_the_sentences_say_what_suppressed_cells_count(gappy):
    def second(**options):
        return called("recommend", gappy, max_risk=RISKS, plan=SUPPRESS, **options).sentences[1]

    choice = sdc.recommend(gappy, max_risk=RISKS, plan=SUPPRESS)
    share = f"It suppresses {100 * choice.point.values['suppressed']:.2g} of 100 cells; "
    assert second() == f"{share}brmae counts each as the largest loss."
    assert second(missing="pairwise") == f"{share}brmae leaves them out."
    assert second(minimise="il1s") == f"{share}il1s leaves them out."
    merging = {"mdav": {"k": range(2, 31), "gaps": ["merge"]}}
    assert "suppresses" not in repr(sdc.recommend(gappy, max_risk=RISKS, plan=merging))


def test_the_release_has_the_loss_that_was_minimised(gappy):
    choice = sdc.recommend(gappy, max_risk=RISKS, plan=SUPPRESS)
    assert choice.release().evaluation["brmae"] == choice.point.values["brmae"]
    masked = sdc.mask(gappy, "mdav", **choice.options)
    assert sdc.brmae(gappy, masked, missing="penalise") == choice.point.values["brmae"]


def test_a_loss_can_be_limited(gappy):
    limits = {"max_risk": RISKS, "max_loss": {"suppressed": 0.05}}
    choice = sdc.Microdata(gappy, missing="pairwise").recommend(plan=BOTH, **limits)
    assert choice.options["gaps"] == "merge"
    assert choice.limits == RISKS | {"suppressed": 0.05}
    assert "suppressed 0.0000 (limit 0.05)" in choice.sentences[0]
    assert choice.to_dict()["limits"] == choice.limits
    found = sdc.Microdata(gappy, missing="pairwise").sweep(BOTH, metrics=["brmae", *RISKS, "suppressed"])
    again = found.recommend(limits["max_risk"], max_loss=limits["max_loss"])
    assert again.setting == choice.setting
    none = sdc.recommend(gappy, plan=SUPPRESS, **limits)
    assert not none.met
    assert (
        "linkage of at most 0.5 and linkage_sure of at most 1 and suppressed of at most 0.05"
        in none.sentences[0]
    )
    assert none.sentences[0].endswith("allow more risk or loss or try other methods and other settings.")


def test_a_stronger_setting_is_taken_if_the_weakest_safe_one_loses_too_much(gappy):
    found = sdc.sweep(gappy, {"mdav": {"k": [3, 10]}}, metrics=["brmae", "ks", "linkage"])
    weak, strong = (curve.values["brmae"] for curve in found.curves[0])
    assert weak < strong
    assert found.recommend({"linkage": 1.0}, max_loss={"brmae": strong}).parameters == {"k": 3}
    assert not found.recommend({"linkage": 1.0}, max_loss={"brmae": weak / 2}).met


def test_a_release_must_meet_limits_on_loss(gappy):
    with pytest.raises(
        sdc.LimitsMissed, match=r"suppressed of at most 0.01 in the one table drawn.*loosen a limit"
    ):
        sdc.release(gappy, "mdav", k=5, gaps="suppress", max_loss={"suppressed": 0.01})
    merged = sdc.release(gappy, "mdav", k=5, gaps="merge", max_loss={"suppressed": 0.01})
    assert merged.evaluation["suppressed"] == 0.0


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"linkage": 0.1}, "'linkage' is a risk; limit a loss, such as brmae, and limit the risk"),
        ({"suppressed": 2}, "the limit of suppressed is 2; give a number from 0 to 1"),
        ({"mae": -1}, "the limit of mae is -1; give a number of at least 0"),
        ({"ci_overlap": 0.1}, "'ci_overlap' is best at 1; limit a loss whose best value is 0"),
        ({"supressed": 0.1}, "did you mean 'suppressed'"),
    ],
)
def test_bad_limits_get_one_line(gappy, limits, message):
    with pytest.raises(ValueError, match=message):
        sdc.recommend(gappy, max_risk=RISKS, max_loss=limits)


# --- the bundled sample ---


@pytest.mark.long
def test_the_demo_keeps_cells_and_totals():
    sample = sdc.load_sample()
    names = [name for name in sample.columns if name not in {"firm", "sector", "weight"}]
    roles = {"key": "firm", "by": "sector", "untouched": "weight", "unknown": "weight"}
    prepared = sdc.Microdata(sample, **roles)
    assert list(prepared.original.columns) == names
    choice = prepared.sweep(PLAN, rng=20).recommend(LIMITS, MINIMISE)
    release = choice.release(entropy=entropy(20), decimals="original")
    masked = release.data
    assert release.evaluation["suppressed"] < 0.05
    assert sum(masked.select(names).null_count().row(0)) < sum(sample.null_count().row(0)) + 0.05 * 10_000
    for name in names:  # groups with a gap lose the variable, and its total, in all their records
        before, after = sample[name].sum(), masked[name].sum()
        assert abs(after - before) < (0.35 if sample[name].null_count() else 0.03) * abs(before), name
    whole = {"key": "firm", "untouched": ["sector", "weight"]}
    suppressing = sdc.Microdata(sample, **whole).mask("mdav", k=10, gaps="suppress")
    assert sample["wages"].sum() * 0.79 > suppressing["wages"].sum()  # a fifth was lost that way
