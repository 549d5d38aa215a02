"""The comparison with sdcMicro that the guide for its users shows is what both programs compute."""

import csv
import re
from pathlib import Path

import polars as pl
import pytest

import sdckit as sdc

PAGE = Path(__file__).parent.parent / "docs" / "coming-from" / "sdcmicro.md"
THEIRS = {
    "IL1": "dUtility_IL1",
    "IL1s": "dUtility_IL1s",
    "dRisk, k = 0.05": "dRisk_k0.05",
    "recordLinkage": "recordLinkage_gower_correct_match_rate",
    "eigen": "dUtility_eigen",
    "IL_correl": "IL_correl",
    "IL_variables": "IL_variables",
}
OURS = dict(
    zip(THEIRS, ["il1", "il1s", "sdid", "matching", "eigen", "il_correl", "il_variables"], strict=True)
)


@pytest.fixture(scope="module")
def shown():
    """What the table of the page shows: by measure, sdcMicro's figure and ours, as texts."""
    rows = re.findall(
        r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {measure: (theirs, ours) for measure, theirs, ours in rows}


@pytest.fixture(scope="module")
def masked(tarragona, golden):
    """Tarragona as sdcMicro microaggregates it with k = 3."""
    found = pl.read_csv(golden / "Tarragona_mdav_k3.csv", infer_schema_length=None).cast(pl.Float64)
    return found.rename(dict(zip(found.columns, tarragona.columns, strict=True)))


def printed(value, like):
    """Return a number with as many decimals as a text has."""
    return f"{value:.{len(like.partition('.')[2])}f}"


def test_the_page_shows_what_sdcmicro_computes(shown, golden):
    with (golden / "metrics.csv").open(encoding="utf-8") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["dataset"], row["masking"]) == ("Tarragona", "mdav_k3")
        ]
    found = {row["metric"]: float(row["value"]) for row in rows}
    assert {name: printed(found[THEIRS[name]], theirs) for name, (theirs, _) in shown.items()} == {
        name: theirs for name, (theirs, _) in shown.items()
    }
    assert shown.keys() == THEIRS.keys()


def test_the_page_shows_what_sdckit_computes(shown, tarragona, masked):
    measured = sdc.evaluate(
        tarragona, masked, made_by=sdc.Method("mdav", k=3), metrics=[*OURS.values(), "linkage"]
    )
    assert {name: printed(measured[OURS[name]], ours) for name, (_, ours) in shown.items()} == {
        name: ours for name, (_, ours) in shown.items()
    }
    assert any("linkage is 0.999 with the order of the rows, 0.333" in note for note in measured.notes)


def test_their_conventions_are_options(shown, tarragona, masked):
    assert printed(sdc.sdid(tarragona, masked, scale="masked"), "0.0000") == shown["dRisk, k = 0.05"][0]
    assert printed(sdc.il_variables(tarragona, masked, scale="raw"), "0.0000") == shown["IL_variables"][0]
    zeros = int((tarragona == 0).sum().sum_horizontal().item())
    cells = tarragona.height * tarragona.width
    assert printed(100 * (cells - zeros) * sdc.il1(tarragona, masked), "0") == shown["IL1"][0]
    assert printed(cells * sdc.il1s(tarragona, masked), "0.00") == shown["IL1s"][0]
