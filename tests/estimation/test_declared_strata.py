"""Declared estimates of strata in a sweep: measured once in the original, and those of each stratum alone."""

import pytest

import sdckit as sdc

TEXTS = ["median(wages)", "model: log(wages) ~ log(turnover)", "share(turnover > 1000)"]
ROLES = {"columns": ["turnover", "wages"], "weights": "weight", "by": "sector"}


def test_losses_of_strata_are_those_of_their_records():
    data = sdc.load_sample().select("turnover", "wages", "weight", "sector")
    swept = (
        sdc.Microdata(data, estimates=TEXTS, **ROLES)
        .sweep({"mdav": {"k": [3, 20]}}, metrics="estimates", rng=1, workers=1)
        .table
    )
    for k in (3, 20):
        masked = sdc.Microdata(data, **ROLES).mask("mdav", k=k)
        for sector in ("trade", "services"):
            own = [table.filter(sector=sector) for table in (data, masked)]
            expected = 1 - sdc.estimates(*own, TEXTS, weights="weight").table["overlap"].mean()
            found = swept.filter(parameters=f"k={k}", stratum=sector)["value"].item()
            assert found == pytest.approx(expected, abs=1e-9)
