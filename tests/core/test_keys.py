"""Keys with missing values: no record is called absent or repeated that has no key at all."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import command
import sdckit as sdc
from calls import called

NAN = float("nan")


def keyed(key):
    return pl.DataFrame({"firm": key, "a": [1.5, 2.0, 3.0, 4.0]})


WHOLE = keyed([1, 2, 3, 4])
ONE = "key 'firm' is missing in 1 record of the original data; complete it or drop these records"
TWO = "key 'firm' is missing in 2 records of the original data; complete it or drop these records"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ([1, 2, 3, None], ONE),
        ([1, 2, None, None], TWO),
        ([1.0, 2.0, NAN, None], TWO),
        (["u", None, "w", None], TWO),
    ],
)
def test_a_missing_key_is_called_missing(key, message):
    table = keyed(key)
    for frame in (table, table.to_pandas(), table.to_arrow()):
        with pytest.raises(ValueError, match=f"^{message}$"):
            sdc.Microdata(frame, key="firm").evaluate(frame, metrics="mae")
    with pytest.raises(ValueError, match=message.replace("original", "masked")):
        sdc.Microdata(keyed([str(i) for i in range(4)] if key[0] == "u" else range(4)), key="firm").evaluate(
            table
        )


def test_missing_cells_of_pandas_are_missing_keys():
    for gap in (pd.NA, None, NAN, np.nan):
        frame = WHOLE.to_pandas().astype({"firm": object})
        frame.loc[3, "firm"] = gap
        with pytest.raises(ValueError, match=f"^{ONE}$"):
            sdc.Microdata(frame, key="firm").evaluate(frame, metrics="mae")


def test_each_part_of_a_key_is_needed():
    frame = keyed([1, 1, 2, 2]).with_columns(person=pl.Series([1, None, 1, 2]))
    with pytest.raises(ValueError, match=r"^key 'firm, person' is missing in 1 record of the original"):
        sdc.Microdata(frame, key=["firm", "person"]).evaluate(frame, metrics="mae")


def test_the_commands_call_it_missing_too(tmp_path):
    keyed([1, 2, None, None]).write_csv(tmp_path / "firms.csv")
    for words in (
        ["mask", "firms.csv", "-o", "out.csv", "--method", "noise"],
        ["evaluate", "firms.csv", "firms.csv"],
    ):
        done = command.run_here(tmp_path, *words, "--key", "firm")
        assert done.returncode == 2
        assert TWO in done.stderr


def test_a_release_without_its_key_is_measured_or_explained():
    data = pl.DataFrame({"firm": range(20), "a": [7 * i % 20 + 0.5 for i in range(20)]})
    release = sdc.Microdata(data, key="firm").release("mdav", k=4, entropy=bytes(range(32)))
    with pytest.raises(ValueError, match=r"^the masked table has no key 'firm'; a release has none:"):
        sdc.Microdata(data, key="firm").evaluate(release.data)
    for given in ({"masked": release}, {"masked": release.data, "disclosure": release}):
        found = called("evaluate", data, **given, key="firm", metrics=["brmae", "linkage"])
        assert found["brmae"] == release.evaluation["brmae"]
        assert found["linkage"] == release.evaluation["linkage"]
