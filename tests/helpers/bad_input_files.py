"""What users get wrong with Stata, SPSS and SAS files: the files, the command, what its line must say."""

import tempfile
from pathlib import Path

import polars as pl

from bad_input import PEOPLE, mask, text
from sdckit.io.files import write


def stored(suffix, frame=PEOPLE):
    """The bytes of a table in this format."""
    with tempfile.TemporaryDirectory() as folder:
        write(path := Path(folder, f"x{suffix}"), frame)
        return path.read_bytes()


LONG = {"data.csv": text(PEOPLE.with_columns(pl.lit(1.5).alias("a" * 40)))}
BLANK = {"data.csv": text(PEOPLE.rename({"region": "home region"}))}

FILE_CASES = {
    **{
        f"cut-off {suffix}": (
            {f"data{suffix}": stored(suffix)[:-90]},
            mask(data=f"data{suffix}"),
            rf"'data\{suffix}' is no whole {program} file.*; copy or export it again",
        )
        for suffix, program in {".dta": "Stata", ".sav": "SPSS", ".zsav": "SPSS", ".xpt": "SAS"}.items()
    },
    **{
        f"{suffix} that is a CSV": (
            {f"data{suffix}": text(PEOPLE)},
            mask(data=f"data{suffix}"),
            rf"'data\{suffix}' is no whole {program} file.*; copy or export it again",
        )
        for suffix, program in {".dta": "Stata", ".por": "SPSS", ".sas7bdat": "SAS"}.items()
    },
    "empty .sav": ({"data.sav": ""}, mask(data="data.sav"), "'data.sav' is empty; give a file"),
    "no such .dta": ({}, mask(data="none.dta"), "no file 'none.dta'; check its name and folder"),
    "output in sas7bdat": (
        {},
        mask(output="out.sas7bdat"),
        r"cannot write 'out.sas7bdat': .sas7bdat is for reading only; use .xpt instead",
    ),
    "long name in Stata": (
        LONG,
        mask(output="out.dta"),
        "column 'a{40}' has no name for Stata, which takes at most 32.*; rename it or write CSV",
    ),
    "long name in SAS": (LONG, mask(output="out.xpt"), "column 'a{40}' has no name for SAS.*; rename it"),
    "blank in a name in SPSS": (
        BLANK,
        mask(output="out.sav"),
        "column 'home region' has no name for SPSS, which takes at most 64 bytes.*; rename it",
    ),
    "texts alone in SPSS": (
        {"data.sav": stored(".sav", PEOPLE.select("id", "region"))},
        ["mask", "data.sav", "-o", "out.sav", "--method", "noise"],
        "no numeric column left; name some with columns",
    ),
}
