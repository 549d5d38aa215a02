"""Edit rules as a user gives them: the file obeys to the last digit, and the command says what it did."""

import json
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from cases import few
from command import contents, good, put, run_here
from sdckit.io.files import read

SUM = "total = wages + `other pay`"
BOUNDS = ["total >= 0", "wages >= 0", "`other pay` >= 0"]
RULES = [SUM, *BOUNDS]
FAST = ["--metrics", "brmae", "--overwrite", "--key", "id"]


def words(rules):
    return [word for rule in rules for word in ("--rule", rule)]


def survey(n=48):
    rng = np.random.default_rng(3)
    cents = [rng.lognormal(9, 1, n).round().astype(int), rng.lognormal(7, 2, n).round().astype(int)]
    cents[1][::6] = 0
    return pl.DataFrame(
        {
            "id": [f"r{i}" for i in range(n)],
            "region": ["north", "south", "south"] * (n // 3),
            "total": [f"{c / 100:.2f}" for c in sum(cents)],
            "wages": [f"{c / 100:.2f}" for c in cents[0]],
            "other pay": [f"{c / 100:.2f}" for c in cents[1]],
            "age": [str(v) for v in rng.integers(16, 90, n)],
        }
    )


@pytest.fixture
def data(tmp_path):
    put(tmp_path, "data.csv", survey().write_csv())
    return tmp_path


def decimals(path, name, na=()):
    """The cells of a column as they stand in the file; None for missing ones."""
    frame = pl.read_csv(path, infer_schema=False) if path.suffix == ".csv" else pl.read_parquet(path)
    cells = (None if cell is None else Decimal(str(cell)) for cell in frame[name])
    return [None if cell is None or cell in na else cell for cell in cells]


def obeys(path, na=()):
    """Whether total = wages + other pay and nothing is negative, in decimal arithmetic on the text."""
    columns = [decimals(path, name, na) for name in ("total", "wages", "other pay")]
    known = [row for row in zip(*columns, strict=True) if None not in row]
    bounded = all(cell >= 0 for column in columns for cell in column if cell is not None)
    return bounded and all(total == a + b for total, a, b in known) and len(known) > len(columns[0]) / 3


def mask(folder, *more, method="noise", output="out.csv", data="data.csv"):
    fast = FAST[2:] if "--metrics" in more else FAST
    return good(folder, "mask", data, "-o", output, "--method", method, *fast, *more)


def test_the_check_itself_sees_a_cent(data):
    assert obeys(data / "data.csv")
    table = (data / "data.csv").read_text().splitlines()
    cells = table[5].split(",")
    cells[2] = str(Decimal(cells[2]) + Decimal("0.01"))
    put(data, "wrong.csv", "\n".join([*table[:5], ",".join(cells), *table[6:]]))
    assert not obeys(data / "wrong.csv")
    put(data, "negative.csv", (data / "data.csv").read_text().replace(",0.00,", ",-0.01,"))
    assert not obeys(data / "negative.csv")


# every method


@pytest.mark.parametrize("method", few(sdc.METHODS, 4))
def test_every_method_leaves_no_violation_in_the_file(data, method):
    before = (data / "data.csv").read_bytes()
    done = mask(data, *words(RULES), "--metrics", "ks", method=method)
    assert obeys(data / "out.csv")
    assert "note: edit rules hold in every record (total = wages + `other pay`; total >= 0; " in done.stdout
    assert read(data / "out.csv").frame["age"].dtype == pl.Int64
    assert (data / "data.csv").read_bytes() == before
    assert not read(data / "out.csv").frame["wages"].equals(read(data / "data.csv").frame["wages"])


def test_without_rules_noise_breaks_them(data):
    mask(data, "--set", "percent=100")
    assert not obeys(data / "out.csv")


# what can be asked for


@pytest.mark.parametrize("places", ["none", "2", "1", "0"])
def test_decimals(data, places):
    done = mask(data, *words(RULES), "--decimals", places, "--set", "percent=60")
    text = pl.read_csv(data / "out.csv", infer_schema=False)
    if places != "none":
        assert obeys(data / "out.csv")
        longest = max(len(cell.partition(".")[2]) for cell in text["wages"])
        assert longest <= int(places)
    values = read(data / "out.csv").frame
    gap = values["total"] - values["wages"] - values["other pay"]
    assert gap.abs().max() <= 1e-12 * values["total"].abs().max()
    assert "masked cells were changed" in done.stdout


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_discovered_rules(data, suffix):
    read(data / "data.csv").frame.write_parquet(data / "data.parquet")
    done = mask(
        data, "--rule", "discover", "--set", "percent=90", data=f"data.{suffix}", output=f"out.{suffix}"
    )
    assert obeys(data / f"out.{suffix}")
    assert f"({SUM}; total >= 0; wages >= 0; `other pay` >= 0; age >= 0)" in done.stdout


def test_strata_and_groups_of_microaggregation_stay_equal(data):
    mask(data, *words(RULES), "--by", "region", "--set", "k=4", "--groups", "group", method="mdav")
    assert obeys(data / "out.csv")
    frame = read(data / "out.csv").frame
    for _, rows in frame.group_by("group"):
        assert rows.height >= 4
        assert rows.select("region", "total", "wages", "other pay", "age").n_unique() == 1


def test_codes_stay_codes_and_take_no_part(data):
    table = survey()
    gaps = pl.when(pl.int_range(pl.len()) % 5 == 0)
    table = table.with_columns(wages=gaps.then(pl.lit("-999")).otherwise("wages"))
    put(data, "data.csv", table.write_csv())
    done = mask(data, *words(RULES), "--na", "-999", "--set", "percent=80")
    assert obeys(data / "out.csv", na=(-999,))
    ours, theirs = (decimals(data / f"{name}.csv", "wages") for name in ("data", "out"))
    assert [cell == -999 for cell in theirs] == [cell == -999 for cell in ours]
    assert "breaks the rule" not in done.stderr
    done = mask(data, "--rule", "wages >= 0")
    assert (
        "warning: the original itself breaks the rule wages >= 0 in 10 records; the masked file"
        in done.stderr
    )
    assert "-999" not in (data / "out.csv").read_text()


def test_the_note_counts_the_cells_that_changed(data):
    for name, rules in {"with": RULES, "without": []}.items():
        done = mask(data, *words(rules), "--seed", "5", "--set", "percent=70", output=f"{name}.csv")
        if rules:
            shown = done.stdout
    ours, theirs = (pl.read_csv(data / f"{name}.csv", infer_schema=False) for name in ("with", "without"))
    columns = ["total", "wages", "other pay", "age"]
    changed = sum(
        Decimal(a) != Decimal(b) for name in columns for a, b in zip(ours[name], theirs[name], strict=True)
    )
    assert f": {changed} of 192 masked cells were changed\n" in shown
    assert changed > 48


def test_the_report_says_it_too(data):
    done = mask(data, *words(RULES), "--report", "r.html", "--set", "percent=70")
    (note,) = [line[6:] for line in done.stdout.splitlines() if "edit rules hold" in line]
    page = (data / "r.html").read_text()
    assert note.replace(">", "&gt;") in page
    assert "edit rules" in page
    assert SUM in page


def test_json_has_the_note_and_the_figures_of_the_written_file(data):
    printed = json.loads(mask(data, *words(RULES), "--metrics", "linkage", "--json").stdout)
    assert any(note.startswith("edit rules hold in every record") for note in printed["notes"])
    again = [
        *("evaluate", "data.csv", "out.csv", "--key", "id"),
        *("--made-by", "noise", "--metrics", "linkage", "--json"),
        *words(RULES),
    ]
    assert json.loads(good(data, *again).stdout)["table"] == printed["table"]


# columns that are not masked


def test_a_rule_with_columns_that_stay(data):
    done = mask(data, "--columns", "wages", "--rule", "wages <= total", "--set", "percent=90")
    ours, theirs = (pl.read_csv(data / f"{name}.csv", infer_schema=False) for name in ("data", "out"))
    assert theirs.drop("wages").equals(ours.drop("wages"))
    assert all(Decimal(a) <= Decimal(b) for a, b in zip(theirs["wages"], theirs["total"], strict=True))
    assert done.stderr == ""


@pytest.mark.parametrize("method", ["noise", "copula"])
def test_a_warning_where_rules_bring_the_original_back(data, method):
    done = mask(data, "--columns", "wages", "--rule", SUM, "--metrics", "ks", method=method)
    assert (
        "warning: not masked, the edit rules bring every original value back: 'wages'; also mask"
        in done.stderr
    )
    assert "48 of 48 masked cells were changed" in done.stdout


def test_a_rule_may_name_the_column_of_strata(data):
    table = survey().with_columns(region=pl.Series(["1", "2"] * 24))
    put(data, "data.csv", table.write_csv())
    mask(data, "--by", "region", "--rule", "age >= 15 + region", "--set", "percent=200")
    frame = read(data / "out.csv").frame
    assert (frame["age"] >= 15 + frame["region"]).all()


# measuring, sweeping, choosing


def test_evaluate_counts_records_that_break_rules(data):
    mask(data, "--set", "percent=50", "--seed", "3")
    call = ["evaluate", "data.csv", "out.csv", "--key", "id", "--metrics", "linkage", *words(RULES)]
    printed = json.loads(good(data, *call, "--json").stdout)
    frame = pl.read_csv(data / "out.csv", infer_schema=False)
    negative = sum(Decimal(cell) < 0 for cell in frame["other pay"])
    assert f"the rule `other pay` >= 0 is broken in {negative} masked records" in printed["notes"]
    assert any(note.startswith(f"the rule {SUM} is broken in ") for note in printed["notes"])
    plain = json.loads(good(data, *call[:7], "--json").stdout)
    assert not any(note.startswith("the rule ") for note in plain["notes"])


def test_evaluate_with_rules_on_columns_that_are_not_measured(data):
    mask(data, "--columns", "wages", "--set", "percent=50", "--seed", "3")
    call = ["evaluate", "data.csv", "out.csv", "--metrics", "linkage", "--columns", "wages", "--json"]
    plain = json.loads(good(data, *call).stdout)
    for key in ([], ["--key", "id"]):
        printed = json.loads(good(data, *call, *key, "--rule", SUM).stdout)
        assert f"the rule {SUM} is broken in 48 masked records" in printed["notes"]
        assert printed["table"] == plain["table"]  # the rule cannot be applied to wages alone


def test_recommend_releases_a_file_that_obeys(data):
    call = ["recommend", "data.csv", "-o", "out.csv", "--key", "id", "--max-risk", "linkage=0.3"]
    call += ["--grid", "rank_swap.p=0.1:0.9:0.2", "--grid", "mdav.k=2:8", *words(RULES), "--drop", "region"]
    printed = json.loads(good(data, *call, "--report", "r.html", "--json").stdout)
    assert obeys(data / "out.csv")
    assert any(note.startswith("edit rules hold in every record") for note in printed["notes"])
    assert "edit rules hold in every record" in (data / "r.html").read_text()
    point = printed["choice"]
    assert point["method"] == "mdav"
    rows = {row["metric"]: row["value"] for row in printed["table"] if row["variable"] == "all"}
    assert rows["linkage"] == pytest.approx(point["values"]["linkage"], abs=0)
    assert rows["brmae"] == pytest.approx(point["values"]["brmae"], abs=1e-15)


def test_a_sweep_measures_what_mask_writes(data):
    more = ["--key", "id", "--metrics", "brmae,linkage", *words(RULES)]
    call = ["sweep", "data.csv", "-o", "sweep", "--format", "csv", "--grid", "mdav.k=3", *more]
    shown = good(data, *call).stdout
    assert "note: edit rules hold in every masked file (total = wages + `other pay`; total >= 0; " in shown
    swept = pl.read_csv(data / "sweep" / "sweep.csv")
    written = ["mask", "data.csv", "-o", "out.csv", "--method", "mdav", "--set", "k=3", "--decimals", "none"]
    printed = json.loads(good(data, *written, *more, "--json").stdout)
    values = {row["metric"]: row["value"] for row in printed["table"] if row["variable"] == "all"}
    assert dict(swept.select("metric", "value").rows()) == pytest.approx(values, abs=1e-12)


def test_a_sweep_goes_on_with_the_same_rules_only(data):
    call = ["sweep", "data.csv", "-o", "sweep", "--key", "id", "--metrics", "brmae", "--columns", "wages,age"]
    good(data, *call, "--grid", "noise.percent=3,4", "--rule", "wages <= total")
    cells = (data / "sweep" / "private" / "cells.bin").read_bytes()
    good(data, *call, "--grid", "noise.percent=3,4,5", "--rule", "wages <= total")
    grown = (data / "sweep" / "private" / "cells.bin").read_bytes()
    assert grown.startswith(cells)
    assert len(grown) > len(cells)
    before = contents(data)
    for rules in ([], ["--rule", "wages <= 2*total"], ["--rule", "wages <= total", "--rule", "age >= 0"]):
        done = run_here(data, *call, "--grid", "noise.percent=3,4", *rules)
        assert done.returncode == 2
        assert "holds another sweep (different: " in done.stderr
        assert "rules" in done.stderr
    assert contents(data) == before


def test_a_sweep_does_not_go_on_where_a_column_of_a_rule_has_changed(data):
    call = ["sweep", "data.csv", "-o", "sweep", "--key", "id", "--metrics", "brmae", "--columns", "wages,age"]
    call += ["--grid", "noise.percent=3", "--rule", "wages <= total"]
    good(data, *call)
    table = survey().with_columns(total=pl.lit("1.00"))
    put(data, "data.csv", table.write_csv())
    done = run_here(data, *call)
    assert done.returncode == 2
    assert "holds another sweep (different: data); " in done.stderr.splitlines()[-1]
