"""The commands with every method: parameters by column and stratum, groups, rows that are not paired."""

import json

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sdckit as sdc
from command import good, put, put_survey, run_here
from sdckit.io.files import read

pytestmark = pytest.mark.usefixtures("survey")

KEYED = ["--key", "id", "--columns", "income,age"]
BESIDE = "grade,region,weight,rooms"  # columns that tie rows to records where they are known
UNPAIRED = [name for name, method in sdc.METHODS.items() if not method.paired]
GROUPING = [name for name, method in sdc.METHODS.items() if method.groups is not None]
PAIRED = {name for name, metric in sdc.METRICS.items() if metric.paired}


@pytest.fixture
def survey(tmp_path):
    return put_survey(tmp_path)


def mask(folder, method, *more, metrics="brmae", output="out.csv"):
    words = ["mask", "data.csv", "-o", output, "--method", method, *KEYED, "--metrics", metrics]
    return good(folder, *words, *more, "--overwrite")


def values(done):
    """The values of the whole file."""
    rows = json.loads(done.stdout)["table"]
    return {row["metric"]: row["value"] for row in rows if row["variable"] == row["stratum"] == "all"}


# the list


# groups


@pytest.mark.parametrize("method", GROUPING)
def test_groups_are_numbered(tmp_path, survey, method):
    done = mask(tmp_path, method, "--groups", " group ", "--set", "k=5")
    frame = read(tmp_path / "out.csv").frame
    assert frame.columns == [*survey.columns, "group"]
    sizes = frame["group"].value_counts()
    assert sizes["count"].min() >= 5
    assert sorted(sizes["group"]) == list(range(1, sizes.height + 1))
    assert frame.select("group", "income", "age").n_unique() == sizes.height
    assert "note: the column 'group' numbers the groups of records\n" in done.stdout
    without = good(tmp_path, "evaluate", "data.csv", "out.csv", *KEYED, "--metrics", "brmae", "--json")
    assert 0 < values(without)["brmae"] < 1


# parameters by stratum and by column


def test_k_by_stratum(tmp_path, survey):
    words = ["--by", "region", "--groups", "g"]
    mask(tmp_path, "mdav", *words, "--set", "k=nord:3,süd:5, west:10")
    frame = read(tmp_path / "out.csv").frame
    found = frame.group_by("region", "g").len().group_by("region").agg(pl.col("len").min())
    assert dict(found.rows()) == {"nord": 3, "süd": 5, "west": 10}
    expected = sdc.Microdata(survey, columns=["income", "age"], key="id", by="region").mask(
        "mdav", k={"nord": 3, "süd": 5, "west": 10}, decimals="original"
    )
    assert_frame_equal(frame.select("income", "age"), expected.select("income", "age"))


def test_given_columns_stay_without_a_warning(tmp_path, survey):
    done = mask(tmp_path, "shuffle", "--set", "given=age")
    frame = read(tmp_path / "out.csv").frame
    assert frame["age"].equals(survey["age"])
    assert sorted(frame["income"]) == sorted(survey["income"])
    assert not frame["income"].equals(survey["income"])
    assert "not changed by the method: age" in done.stdout
    assert done.stderr == ""


def test_a_name_with_an_equals_sign(tmp_path):
    put(tmp_path, "data.csv", "a=b,c\n" + "".join(f"{i}.5,{i * i % 7}.5\n" for i in range(20)))
    done = good(tmp_path, "mask", "data.csv", "-o", "o.csv", "--method", "shuffle", "--set", "given=a=b")
    assert "not changed by the method: a=b" in done.stdout


def test_names_with_commas_go_into_quotation_marks(tmp_path, survey):
    table = survey.rename({"age": "age, years"}).with_columns(sex=pl.Series(["f", "m"] * 30))
    put(tmp_path, "data.csv", table.write_csv())
    words = [
        *("mask", "data.csv", "-o", "out.csv", "--key", "id"),
        *("--metrics", "brmae", "--overwrite", "--columns"),
    ]
    both = '"age, years",income'
    good(tmp_path, *words, both, "--method", "shuffle", "--set", 'given="age, years"')
    assert read(tmp_path / "out.csv").frame["age, years"].equals(survey["age"])
    good(tmp_path, *words, both, "--method", "mdav", "--set", 'variable_weights="age, years":4,income:2')
    sizes = {
        f"{region}, {sex}": k
        for k, (region, sex) in enumerate(table.select("region", "sex").unique().rows(), 2)
    }
    given = ",".join(f'"{name}:{k}"' for name, k in sizes.items())
    good(
        tmp_path,
        *words,
        both,
        *("--method", "mdav", "--by", "region,sex", "--groups", "g"),
        "--set",
        f"k={given}",
    )
    frame = read(tmp_path / "out.csv").frame
    found = frame.group_by("region", "sex", "g").len().group_by("region", "sex").agg(pl.col("len").min())
    assert all(smallest >= sizes[f"{region}, {sex}"] for region, sex, smallest in found.rows())
    assert found["len"].n_unique() > 2


def test_the_window_of_each_stratum_is_known_to_intruders(tmp_path):
    words = ["--by", "region", "--seed", "3", "--json"]
    near, far, mixed = (
        values(mask(tmp_path, "rank_swap", *words, "--set", f"p={p}", metrics="window"))["window"]
        for p in ("0.06", "0.9", "nord:0.06,süd:0.9,west:0.9")
    )
    assert far < mixed < near
    assert mixed == pytest.approx((near + 2 * far) / 3, abs=0.1)


# rows that are not paired


@pytest.mark.parametrize("method", UNPAIRED)
def test_only_metrics_that_make_sense(tmp_path, method):
    roles = [*KEYED, "--unknown", BESIDE]
    done = good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", method, *roles, "--json")
    printed = json.loads(done.stdout)
    assert not {row["metric"] for row in printed["table"]} & PAIRED
    (left,) = [note for note in printed["notes"] if note.startswith("left out because rows are not paired: ")]
    default = {name for name, metric in sdc.METRICS.items() if metric.default and not metric.experimental}
    assert set(left.partition(": ")[2].split(", ")) == PAIRED & default
    assert any("no risk was measured" in note for note in printed["notes"])
    assert not any("cells in 2 masked columns are equal to the original" in note for note in printed["notes"])
    assert (
        f"warning: rows of {method} stand for no original record, and columns beside them are original: "
        "'id', 'grade', 'region'" in done.stderr
    )
    again = json.loads(
        good(tmp_path, "evaluate", "data.csv", "out.csv", *roles, "--unpaired", "--json").stdout
    )
    assert again["table"] == printed["table"]
    assert again["meaning"] == printed["meaning"]


def test_a_mix_of_metrics_names_what_is_left_out(tmp_path):
    done = mask(tmp_path, "copula", metrics="brmae,ks,linkage")
    assert "note: left out because rows are not paired: brmae\n" in done.stdout
    assert " ks " in done.stdout
    assert " linkage " in done.stdout, "by columns beside those of the new rows"


def test_nothing_is_warned_of_where_all_columns_are_new(tmp_path):
    put(tmp_path, "data.csv", "a,b\n" + "".join(f"{i}.5,{i * 7 % 31}\n" for i in range(40)))
    words = ["mask", "data.csv", "-o", "out.csv", "--method", "copula", "--metrics", "ks"]
    assert good(tmp_path, *words).stderr == ""


def test_a_search_goes_on_without_unpaired_methods(tmp_path):
    words = [
        *("recommend", "data.csv", "-o", "out.csv"),
        *KEYED,
        "--drop",
        BESIDE,
        *("--max-risk", "linkage=0.5", "--grid", "mdav.k=2:9"),
        *("--drop", "grade,region,weight,rooms"),
    ]
    done = good(tmp_path, *words, "--method", "copula", "--json")
    assert done.stderr == (
        "warning: rows of copula stand for no original record, so that no risk can be measured; "
        "left out of the search\n"
    )
    choice = json.loads(done.stdout)["choice"]
    assert choice["method"] == "mdav"
    assert choice["maskings"] <= 4


@pytest.mark.parametrize(
    "grid", ["mdav.variable_weights=age:4", "top_bottom_code.above=income:900", "shuffle.given=age"]
)
def test_parameters_of_columns_in_a_search(tmp_path, grid):
    words = ["recommend", "data.csv", "-o", "out.csv", *KEYED, "--max-risk", "linkage=1"]
    words += ["--max-risk", "linkage_sure=1", "--grid", grid]
    done = good(tmp_path, *words, "--json")
    choice = json.loads(done.stdout)["choice"]
    method, _, rest = grid.partition(".")
    name, _, value = rest.partition("=")
    assert choice["method"] == method
    expected = ["age"] if name == "given" else {value.partition(":")[0]: float(value.partition(":")[2])}
    assert choice["parameters"][name] == expected


# everything at once


@pytest.mark.long
def test_every_method_is_swept_and_in_the_report(tmp_path):
    words = ["--method", "all", "--metrics", "brmae,linkage", "--format", "csv", "--report", "map.html"]
    done = good(tmp_path, "sweep", "data.csv", "-o", "sweep", *KEYED, *words)
    table = pl.read_csv(tmp_path / "sweep" / "sweep.csv")
    assert table["method"].unique(maintain_order=True).to_list() == list(sdc.METHODS)
    lost = table.filter(pl.col("value").is_null())
    assert sorted(lost["method"].unique()) == sorted(UNPAIRED)
    assert lost["metric"].unique().to_list() == ["brmae"], "columns beside the new rows are known"
    named = ", ".join(UNPAIRED)
    assert f"note: rows of {named} stand for no original record: no value of brmae\n" in done.stdout
    assert "left out" not in done.stdout
    page = (tmp_path / "map.html").read_text()
    assert all(method.title in page for method in sdc.METHODS.values())


def test_what_a_tiny_file_does_not_allow_is_left_out_and_named(tmp_path):
    put(tmp_path, "data.csv", "a,b\n1.5,2\n2.5,9\n7.5,4\n")
    done = good(
        tmp_path, "sweep", "data.csv", "-o", "s", "--method", "all", "--metrics", "ks", "--format", "csv"
    )
    left = set(sdc.METHODS) - set(pl.read_csv(tmp_path / "s" / "sweep.csv")["method"])
    assert left
    assert "ipso" in left
    (note,) = [line for line in done.stdout.splitlines() if "too few records for them" in line]
    assert set(note.rpartition(": ")[2].split(", ")) == left
    (part,) = [line for line in done.stdout.splitlines() if "settings that need more records" in line]
    assert "mdav" in part


def test_a_method_named_alone_is_refused_for_a_tiny_file(tmp_path):
    put(tmp_path, "data.csv", "a,b\n1.5,2\n2.5,9\n7.5,4\n")
    done = run_here(tmp_path, "sweep", "data.csv", "-o", "s", "--method", "ipso", "--metrics", "ks")
    assert done.returncode == 2
    assert "the file has 3 records and ipso needs " in done.stderr
