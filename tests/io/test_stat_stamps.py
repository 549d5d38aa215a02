"""Stata, SPSS and SAS files hold no time of writing: the same table gives the same bytes."""

import re

import polars as pl
import pytest

from sdckit.io import files

pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
FRAME = pl.DataFrame({"a": [1.5, 2.0], "b": ["x", "01 Jan 2020 10:10"], "c": [1, None]})
YEAR_NOW = rb"20[2-9]\d |\d\d[A-Z]{3}[2-7]\d:|\d\d [A-Z][a-z]{2} [2-7]\d"


@pytest.mark.parametrize("suffix", [".dta", ".sav", ".zsav", ".xpt"])
def test_the_header_has_no_time_and_the_cells_are_as_given(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    files.write(path, FRAME.drop("b"))
    assert not re.search(YEAR_NOW, path.read_bytes())
    assert re.search(rb"01 ?Jan ?(19)?80", path.read_bytes(), re.IGNORECASE)
    files.write(path, FRAME, overwrite=True)  # with text that looks like a time
    assert files.read(path).frame.rows() == FRAME.rows()
