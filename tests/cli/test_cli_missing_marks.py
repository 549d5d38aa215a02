"""What stands in missing cells, such as NA, an empty cell or .a, is published and so known to an intruder."""

import csv
import json

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from command import good
from intruder import linkage
from intruder_release import describe

N = 80
COLUMNS = ("a", "b", "c", "d")
NOISE = ["--set", "percent=120", "--seed", "1", "--na", "NA", "--metrics", "linkage", "--json"]


def write_file(folder, words):
    """Write data.csv: amounts, in a third of the cells one of some words instead."""
    rng = np.random.default_rng(3)
    with (folder / "data.csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        for _ in range(N):
            cells = rng.lognormal(3, size=4).round(2)
            lines.writerow([rng.choice(words) if rng.random() < 0.33 else cell for cell in cells])


def slow_table(path):
    """From a CSV, a dict of columns for the slow intruder: numbers, words, or None for an empty cell."""
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    return {name: [as_cell(row[j]) for row in rows] for j, name in enumerate(head)}


def as_cell(text):
    """From the text of a cell, a number, a word, or None."""
    return text if text in {"NA", "NaN"} else float(text) if text else None


def printed(folder, *words):
    """From the words of a command, the linkage that it prints."""
    rows = json.loads(good(folder, *words, *NOISE).stdout)["table"]
    return next(row["value"] for row in rows if row["metric"] == "linkage")


def test_words_for_missing_cells_are_facts(tmp_path):
    write_file(tmp_path, ["", "NA", "NaN"])
    masked = printed(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "noise")
    assert {"", "NA", "NaN"} <= set((tmp_path / "out.csv").read_text().replace("\n", ",").split(","))
    tables = [slow_table(tmp_path / name) for name in ("data.csv", "out.csv")]
    release = describe(tables[0], "noise", {"percent": 120}, COLUMNS)
    slow = linkage(*tables, release, list(range(N)))["linkage"]
    assert slow - 1e-9 <= masked <= slow + 0.1  # sdckit tries a few distances more
    evaluated = printed(tmp_path, "evaluate", "data.csv", "out.csv", "--made-by", "noise")
    assert evaluated == masked
    alike = (tmp_path / "out.csv").read_text().replace("NaN", "NA").replace("NA", "")
    (tmp_path / "alike.csv").write_text(alike)
    assert printed(tmp_path, "evaluate", "data.csv", "alike.csv", "--made-by", "noise") < masked - 0.1


def test_words_in_an_unmasked_column_are_facts(tmp_path):
    write_file(tmp_path, ["", "NA"])
    text = pl.read_csv(tmp_path / "data.csv", infer_schema=False)
    steady = pl.Series("d", ["7", "", "NA", "7"] * (N // 4))
    text.with_columns(steady).select("a", "d").write_csv(tmp_path / "data.csv")
    roles = ["--columns", "a", "--untouched", "d"]
    found = printed(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "noise", *roles)
    tables = [slow_table(tmp_path / name) for name in ("data.csv", "out.csv")]
    release = describe(tables[0], "noise", {"percent": 120}, ("a",), untouched=("d",))
    assert found >= linkage(*tables, release, list(range(N)))["linkage"] - 1e-9


@pytest.mark.parametrize("keep_order", [True, False])
def test_a_release_tells_no_nan_from_null(keep_order):
    cells = [None, float("nan"), 1.0, 2.0, 3.0, 4.0]
    data = pl.DataFrame({"a": cells, "b": [float("nan"), 2.0, 3.0, 4.0, 5.0, 6.0]}, strict=False)
    made = sdc.release(data, "noise", percent=50, metrics="brmae", keep_order=keep_order)
    assert made.data["a"].null_count() == 2
    assert made.data["b"].is_nan().sum() == 1


def test_words_for_missing_cells_tell_no_records_of_a_group_apart(tmp_path):
    write_file(tmp_path, ["", "NA", "NaN", "-9"])
    words = "mask data.csv -o out.csv --method mdav --set k=4 --na NA --na -9 --groups group --quiet"
    for more in ([], ["--release"], ["--set", "gaps=merge"]):
        good(tmp_path, *words.split(), *more, "--overwrite")
        with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
            _, *rows = csv.reader(file)
        counts = {row[-1]: sum(other == row for other in rows) for row in rows}
        if "gaps=merge" in more:
            assert {"NA", "-9"} <= {cell for row in rows for cell in row}
            assert min(counts.values()) == 1
        else:
            assert not {"NA", "NaN", "-9"} & {cell for row in rows for cell in row}
            assert min(counts.values()) >= 4
            assert "0" not in counts
