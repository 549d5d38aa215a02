"""Integers and decimals come back in the type they had, in any dataframe, if it holds the masked cells."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sdckit as sdc
from cases import each
from sdckit.core.table import Table, holds_decimals, holds_integers
from sdckit.masking.mask_table import mask_prepared
from sdckit.metrics.original import Original

WIDTHS = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
CELLS = [12, 55, None, 31, 47, 60, 25, 18]
MONEY = [None if cell is None else Decimal(cell) / 4 for cell in CELLS]
KEPT = [None if cell is None else Decimal(10) ** 25 + cell for cell in CELLS]  # more digits than a float has


def polars_table():
    columns = [pl.Series(width, CELLS, getattr(pl, width)) for width in WIDTHS]
    money = pl.Series("money", MONEY, pl.Decimal(9, 2))
    return pl.DataFrame([*columns, money, pl.Series("kept", KEPT, pl.Decimal(38, 2))])


def tables():
    table = polars_table()
    arrow = table.to_arrow()
    nullable = pd.DataFrame({width: pd.array(CELLS, dtype=width) for width in WIDTHS})
    return {
        "polars": table,
        "pyarrow": arrow,
        "pandas of pyarrow": arrow.to_pandas(types_mapper=pd.ArrowDtype),
        "pandas": nullable,
        "numpy": nullable.fillna(40).astype({width: width.lower() for width in WIDTHS}),
    }


def types(table):
    """The types of the columns as the library itself writes them, by name."""
    if isinstance(table, pd.DataFrame):
        return table.dtypes.astype(str).to_dict()
    if isinstance(table, pa.Table):
        return {field.name: str(field.type) for field in table.schema}
    return {name: str(kind) for name, kind in table.schema.items()}


def masked(table, **options):
    left = ["kept"] if "kept" in types(table) else None
    return sdc.Microdata(table, untouched=left).mask("rank_swap", p=0.5, rng=3, **options)


@pytest.mark.long
@each("kind", list(tables()))
@each("decimals", ["original", 0])
def test_rounded_columns_keep_their_type(kind, decimals):
    table = tables()[kind]
    made = masked(table, decimals=decimals)
    assert types(made) == types(table)
    assert Table(made).floats(["Int8"]).tolist() != Table(table).floats(["Int8"]).tolist()
    gaps = np.isnan(Table(made).floats(WIDTHS))
    assert (gaps == np.isnan(Table(table).floats(WIDTHS))).all()
    if "kept" in types(table):
        kept, found = (Table(made).column(name).to_arrow().to_pylist() for name in ("kept", "money"))
        assert kept == KEPT
        assert [cell is None for cell in found] == [cell is None for cell in MONEY]
        assert {str(cell) for cell in found} <= {f"{cell:.2f}" for cell in MONEY if cell is not None} | {
            *(f"{round(cell)}.00" for cell in MONEY if cell is not None),
            "None",
        }


def test_columns_that_are_not_rounded_are_floats_of_the_same_library():
    floats = {"polars": "Float64", "pyarrow": "double", "pandas of pyarrow": "double[pyarrow]"}
    floats |= {"pandas": "Float64", "numpy": "float64"}
    for kind, table in tables().items():
        found = types(masked(table))
        assert {found[name] for name in WIDTHS} == {floats[kind]}, kind


def test_cells_that_do_not_fit_widen_the_type_and_a_note_says_so():
    table = pl.DataFrame({"a": pl.Series([0, 255, 3, 250, 1, 254], dtype=pl.UInt8), "b": [1, 2, 3, 4, 5, 6]})
    options = {"rng": 1, "decimals": 0, "parameters": {"percent": 200}}
    made = mask_prepared(Original.of(table, warn=False), "noise", **options)
    assert made.data.schema == {"a": pl.Int64, "b": pl.Int64}
    assert "column 'a' is Int64, since UInt8 cannot hold its masked cells" in made.notes
    small = pl.Series(
        [Decimal("9.99"), Decimal("-9.98"), Decimal("9.01"), Decimal("-9.5")], dtype=pl.Decimal(3, 2)
    )
    made = mask_prepared(
        Original.of(pl.DataFrame({"a": small}), warn=False), "noise", **options | {"decimals": 2}
    )
    assert made.data.schema == {"a": pl.Float64}
    assert any(note.startswith("column 'a' is Float64, since Decimal") for note in made.notes)


@each(
    ("kind", "values", "fits"),
    [
        (pl.Int8, [-128.0, 127.0], True),
        (pl.Int8, [128.0], False),
        (pl.Int8, [-129.0], False),
        (pl.UInt8, [0.0, 255.0, np.nan], True),
        (pl.UInt8, [-1.0], False),
        (pl.UInt64, [2.0**53], True),
        (pl.Int128, [-(2.0**53)], True),
        (pl.Int16, [np.nan], True),
        (pl.String, [1.0], False),
    ],
)
def test_room_in_integers(kind, values, fits):
    assert holds_integers(kind(), np.array(values)) == fits


@pytest.mark.parametrize(
    ("values", "fits"),
    [([9.99, np.nan], True), ([-9.99], True), ([10.0], False), ([0.001], False), ([np.nan], True)],
)
def test_room_in_decimals(values, fits):
    assert holds_decimals(3, 2, np.array(values)) == fits


@pytest.mark.parametrize("precision", [10, 38])
def test_decimals_round_alike_in_all_libraries(precision):
    cells = [None, *(Decimal(7 * i * i % 9973 + 10).scaleb(-2) for i in range(60))]
    arrow = pa.table({"a": pa.array(cells, pa.decimal128(precision, 2))})
    pandas = arrow.to_pandas(types_mapper=pd.ArrowDtype)
    for table in (arrow, pandas, pl.from_arrow(arrow)):
        assert Table(table).floats(["a"])[1:, 0].tolist() == [float(cell) for cell in cells[1:]]
        masked = sdc.mask(table, "mdav", k=3, decimals="original")
        assert types(masked) == types(table)
        assert Table(masked).floats(["a"])[1, 0] != float(cells[1])


def test_decimals_of_many_digits_are_read_exactly():
    cells = [Decimal("0.1234567890123"), None, Decimal("-3.25"), Decimal("1E-30")]
    table = pa.table({"a": pa.array(cells, pa.decimal128(38, 30))})
    assert Table(table).floats(["a"])[[0, 2, 3], 0].tolist() == [0.1234567890123, -3.25, 1e-30]


def test_decimals_as_python_objects_are_refused_with_a_remedy():
    data = pd.DataFrame({"a": [Decimal(i) / 4 for i in range(8)]})
    with pytest.raises(TypeError, match=r"^column 'a' is not numeric but Python objects; convert it with"):
        sdc.Microdata(data, columns=["a"]).mask("mdav")
    assert sdc.Microdata(data.astype(float), columns=["a"]).mask("mdav").shape == (8, 1)
