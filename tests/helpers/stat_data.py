"""A small survey as Stata, SPSS and SAS keep it, written by pyreadstat itself, and its files read by it."""

import numpy as np
import polars as pl
import pyreadstat
from pyreadstat.pyreadstat import parser_entry_point

N = 40
PARSERS = {".dta": "dta", ".sav": "sav/zsav", ".zsav": "sav/zsav", ".por": "por", ".xpt": "xport"}
ABOUT = [
    *["column_names", "column_labels", "file_label", "table_name", "notes", "variable_value_labels"],
    *["original_variable_types", "original_variable_informats", "readstat_variable_types"],
    *["missing_ranges", "missing_user_values", "variable_storage_width", "variable_display_width"],
    *["variable_alignment", "variable_measure"],
]
LABELS = {"age": "Alter in Jahren", "income": "Einkommen in €"}
SEX = {1: "männlich", 2: "weiblich"}


def survey():
    """Forty people; in some cells there is no number."""
    rng = np.random.default_rng(11)
    return pl.DataFrame(
        {
            "town": ["Köln", "Łódź", "", "Bonn "] * (N // 4),
            "sex": (1 + rng.integers(0, 2, N)).astype(float),
            "age": rng.integers(18, 90, N).astype(float),
            "income": [None, *rng.lognormal(7, 1, N - 1).round(2)],
            "born": rng.integers(-9000, 15_000, N).astype(float),
        }
    )


def put_spss(path):
    """Ages 98 and 99 and sex 9 are missing; town has 20 bytes; births are dates."""
    frame = survey().with_columns(
        pl.Series("town", ["Köln".ljust(19), *survey()["town"][1:]]),
        pl.Series("sex", [9.0, *survey()["sex"][1:]]),
        pl.Series("age", [99.0, 98.0, -1.0, None, *survey()["age"][4:]]),
        pl.col("born") * 86_400 + 12_219_379_200,
    )
    pyreadstat.write_sav(
        frame,
        path,
        compress=path.suffix == ".zsav",
        file_label="Umfrage",
        note=["erste Welle", "zweite Welle"],
        column_labels=LABELS,
        variable_value_labels={
            "sex": SEX | {9: "k. A."},
            "age": {99: "weigert sich"},
            "town": {"Köln": "am Rhein"},
        },
        missing_ranges={"sex": [9], "age": [{"lo": 98, "hi": 99}, -1], "town": ["Bonn"]},
        variable_format={"age": "F3.0", "born": "EDATE10", "income": "COMMA12.2", "town": "A20"},
        variable_measure={"sex": "nominal", "age": "scale"},
        variable_display_width={"age": 14},
    )
    return path


def put_stata(path):
    """Ages .a and .z, a sex .b, whole numbers, a month and a day."""
    ages = ["a", "z", None, *survey()["age"][3:].cast(pl.Int64)]
    frame = survey().with_columns(
        pl.Series("sex", ["b", *survey()["sex"][1:].cast(pl.Int64)], dtype=pl.Object),
        pl.Series("age", ages, dtype=pl.Object),
        pl.col("born").cast(pl.Int32),
        pl.Series("month", range(600, 600 + N), dtype=pl.Int32),
        pl.Series("moment", [1e12 + 1_234.0 * i for i in range(N)]),
    )
    pyreadstat.write_dta(
        frame,
        path,
        version=14,
        file_label="Umfrage ü",
        column_labels=LABELS,
        variable_value_labels={"sex": SEX | {"b": "k. A."}, "age": {"a": "weigert sich", "c": "nie"}},
        missing_user_values={"sex": ["b"], "age": ["a", "c", "z"]},
        variable_format={
            "born": "%tdCCYY-NN-DD",
            "month": "%tm",
            "moment": "%tc",
            "income": "%9.2f",
            "town": "%-20s",
        },
    )
    return path


def put_sas(path, version=5):
    """An age .A and a plain missing one; births are dates."""
    frame = survey().with_columns(pl.Series("age", [None, None, *survey()["age"][2:]]))
    pyreadstat.write_xport(
        frame,
        path,
        file_format_version=version,
        file_label="Survey",
        table_name="PEOPLE",
        column_labels={"age": "Age", "income": "Income"},
        variable_format={"born": "DATE9.", "income": "COMMA12.2"},
        variable_informat={"born": "DATE9."},
    )
    data = bytearray(path.read_bytes())
    record = data.index(b"HEADER RECORD*******OBS") + 80
    place = record + 7 + 8  # after the longest town, in bytes, and the sex
    assert data[place : place + 8] == b"." + bytes(7)
    data[place] = ord("A")
    path.write_bytes(data)
    return path


MAKERS = {".sav": put_spss, ".zsav": put_spss, ".dta": put_stata, ".xpt": put_sas}


def raw(path):
    """Return the cells as stored, and the metadata of the file by name."""
    cells, meta = parser_entry_point(
        str(path),
        PARSERS[path.suffix],
        user_missing=True,
        disable_datetime_conversion=True,
        output_format="dict",
    )
    return dict(cells), {name: getattr(meta, name) for name in ABOUT}
