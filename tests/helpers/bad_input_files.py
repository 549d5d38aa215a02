"""What users get wrong with other files than CSV: the files, the command, what its line must say."""

import tempfile
from pathlib import Path

import polars as pl

from bad_input import PEOPLE, mask, text
from foreign_files import stored as foreign
from sdckit.io.files import write
from workbooks import LOCKED, xlsx


def stored(suffix, frame=PEOPLE):
    """The bytes of a table in this format."""
    with tempfile.TemporaryDirectory() as folder:
        write(path := Path(folder, f"x{suffix}"), frame)
        return path.read_bytes()


LONG = {"data.csv": text(PEOPLE.with_columns(pl.lit(1.5).alias("a" * 40)))}
BLANK = {"data.csv": text(PEOPLE.rename({"region": "home region"}))}

WORKBOOK = xlsx(Data=[PEOPLE.columns, *map(list, PEOPLE.rows())], Notes=[["read me"]])

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
    **{
        f"cut-off {suffix}": (
            {f"data{suffix}": stored(suffix)[:-9]},
            mask(data=f"data{suffix}"),
            rf"'data\{suffix}' is no whole {form} file \(cut off.*; copy ",
        )
        for suffix, form in {
            ".csv.gz": ".gz",
            ".csv.xz": ".xz",
            ".csv.zst": ".zst",
            ".arrow": "Arrow",
        }.items()
    },
    **{
        f"{suffix} that is a CSV": (
            {f"data{suffix}": text(PEOPLE)},
            mask(data=f"data{suffix}"),
            rf"'data\{suffix}' is no whole {form} file \(cut off.*; copy ",
        )
        for suffix, form in {".csv.bz2": ".bz2", ".feather": "Arrow", ".xlsx": "Excel", ".rds": "R"}.items()
    },
    "cut-off .xlsx": (
        {"data.xlsx": WORKBOOK[:-80]},
        mask(data="data.xlsx"),
        r"'data.xlsx' is no whole Excel file.*; copy or save it again",
    ),
    "locked .xlsx": (
        {"data.xlsx": LOCKED},
        mask(data="data.xlsx"),
        "'data.xlsx' is locked by a password; save it without one",
    ),
    "empty sheet": (
        {"data.xlsx": xlsx(Data=[])},
        mask(data="data.xlsx"),
        "sheet 'Data' of 'data.xlsx' is empty; give one with column names and records",
    ),
    "several sheets": (
        {"data.xlsx": WORKBOOK},
        mask(data="data.xlsx"),
        "'data.xlsx' holds 2 sheets with cells: 'Data', 'Notes'; choose one, such as --table Data",
    ),
    "unknown sheet": (
        {"data.xlsx": WORKBOOK},
        mask("--table data", data="data.xlsx"),
        "'data.xlsx' holds no sheet 'data'; choose from: 'Data', 'Notes'",
    ),
    "several data frames": (
        {"data.rda": foreign("several.rda")},
        mask(data="data.rda"),
        "'data.rda' holds 2 data frames: 'survey', 'other'; choose one, such as --table survey",
    ),
    "no data frame": (
        {"data.rds": foreign("number.rds")},
        mask(data="data.rds"),
        "'data.rds' holds no data frame; save one",
    ),
    "output in Excel": (
        mask(output="out.xlsx"),
        "cannot write 'out.xlsx': .xlsx is for reading only; use .csv instead",
    ),
    "output in R": (mask(output="out.rds"), "'out.rds': .rds is for reading only; use .parquet instead"),
    "empty .sav": ({"data.sav": ""}, mask(data="data.sav"), "'data.sav' is empty; give a file"),
    "no such .dta": (mask(data="none.dta"), "no file 'none.dta'; check its name and folder"),
    "output in sas7bdat": (
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
