"""`sdckit describe`, and the way from there to a file with recoded columns."""

import io
import json

import polars as pl
import pytest

import command
import described_files
from sdckit.cli.describe import options_text


@pytest.fixture
def folder(tmp_path):
    described_files.households(600).write_csv(tmp_path / "survey.csv")
    return tmp_path


def test_describe_prints_columns_recodings_and_what_to_do(folder):
    done = command.run_here(folder, "describe", "survey.csv", "--drop", "isco,pid,education")
    assert done.returncode == 0, done.stderr
    assert "hhid" in done.stdout
    assert "unit?" in done.stdout
    assert "--recode wgt=round:" in done.stdout
    assert "the survey weights wgt alone raise the least possible risk" in done.stdout
    assert "options for these roles: --unit hhid --weights wgt --untouched region,urban,sex," in done.stdout
    assert "options that bring the floor to 0.0" in done.stdout
    assert list(folder.iterdir()) == [folder / "survey.csv"]


def test_describe_as_json_and_csv(folder):
    done = command.run_here(folder, "describe", "survey.csv", "--json", "--untouched", "age")
    found = json.loads(done.stdout)
    assert found["floor"] >= found["uniques"] > 0.9
    assert found["options"]["unit"] == ["hhid"]
    done = command.run_here(folder, "describe", "survey.csv", "--csv", "--untouched", "age")
    table = pl.read_csv(io.StringIO(done.stdout))
    assert table.rows(named=True) == found["columns"]


def test_recoding_and_dropping_lower_the_floor(folder):
    roles = "--unit hhid --drop isco,pid,wgt,rooms,education,region --columns income,rent,food,transfers"
    recode = "--recode age=20 --recode marital=rare:100"
    floors = []
    for more in ("", roles, f"{roles} {recode}"):
        done = command.run_here(folder, "describe", "survey.csv", "--json", *more.split())
        floors.append(json.loads(done.stdout)["floor"])
    assert floors[0] > 0.95 > floors[1] > 2 * floors[2]
    done = command.run_here(
        folder, "mask", "survey.csv", "-o", "out.csv", "--method", "mdav", *f"{roles} {recode}".split()
    )
    assert done.returncode == 0, done.stderr
    masked, original = pl.read_csv(folder / "out.csv"), pl.read_csv(folder / "survey.csv")
    assert masked["age"].to_list() == (original["age"] // 20 * 20).to_list()
    assert masked["sex"].to_list() == original["sex"].to_list()
    assert masked["income"].to_list() != original["income"].to_list()


def test_a_stata_file_keeps_labels_of_recoded_columns(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = described_files.labelled(300)
    pyreadstat.write_dta(
        frame.to_pandas(), str(tmp_path / "data.dta"), variable_value_labels=described_files.LABELS
    )
    done = command.run_here(tmp_path, "describe", "data.dta", "--csv")
    roles = dict(pl.read_csv(io.StringIO(done.stdout)).select("column", "role").rows())
    assert [roles[name] for name in ("caseid", "region", "health", "income")] == [
        "key",
        "untouched",
        "untouched",
        "variable",
    ]
    words = "mask data.dta -o out.dta --method mdav --key caseid --weights pweight"
    recode = "--recode region=rare:12 --recode yob=10"
    done = command.run_here(tmp_path, *f"{words} {recode}".split())
    assert done.returncode == 0, done.stderr
    found, meta = pyreadstat.read_dta(str(tmp_path / "out.dta"))
    assert set(found["yob"]) <= set(range(1930, 2001, 10))
    assert found["region"].max() == 99
    assert meta.variable_value_labels["region"][1] == "region 1"


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["dta", "sav"])
@pytest.mark.parametrize("way", ["year", "month"])
def test_dates_of_stata_and_spss_files_are_recoded(tmp_path, suffix, way):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = described_files.labelled(100).select("caseid", "sex", "savings")
    born = described_files.patients(100)["born"].str.to_date()
    write, read = (getattr(pyreadstat, f"{verb}_{suffix}") for verb in ("write", "read"))
    labels = {"born": "date of birth"}
    write(frame.with_columns(born).to_pandas(), str(tmp_path / f"a.{suffix}"), column_labels=labels)
    words = f"mask a.{suffix} -o b.{suffix} --method mdav --key caseid --untouched sex --recode born={way}"
    done = command.run_here(tmp_path, *words.split())
    assert done.returncode == 0, done.stderr
    found, meta = read(str(tmp_path / f"b.{suffix}"))
    assert found["born"].tolist() == [day.year if way == "year" else f"{day:%Y-%m}" for day in born]
    assert meta.column_names_to_labels["born"] == "date of birth"


def test_the_printed_options_lead_to_the_printed_floor(folder):
    start = command.run_here(folder, "describe", "survey.csv", "--drop", "isco,pid,education")
    *_, floor, options = (
        start.stdout.splitlines()[-1].removeprefix("options that bring the floor to ").split(" ", 1)
    )
    done = command.run_here(folder, "describe", "survey.csv", "--json", *options.removeprefix(": ").split())
    assert json.loads(done.stdout)["floor"] == pytest.approx(float(floor.rstrip(":")), abs=1e-4)


def test_a_household_survey_gets_to_a_release_by_describing_recoding_and_dropping(folder):
    amounts = "income,rent,food,transfers"
    search = "--max-risk linkage=0.2 --grid noise.percent=500 --replications 1"

    def recommended(roles):
        """Search with the options that `describe` prints last for these roles."""
        first = command.run_here(folder, "describe", "survey.csv", "--columns", amounts, *roles.split())
        options = first.stdout.splitlines()[-1].partition(": ")[2]
        words = f"recommend survey.csv -o out.csv {options} {search}"
        return command.run_here(folder, *words.split())

    done = recommended("--drop isco,pid,education --recode age=40 --recode region=10")
    assert done.returncode == 1, done.stderr  # the sexes and ages of its members give a household away
    assert not (folder / "out.csv").exists()
    done = recommended("--drop isco,pid,education,sex,age,roof,marital,wgt --recode region=10")
    assert done.returncode == 0, done.stderr
    released = pl.read_csv(folder / "out.csv")
    assert not {"isco", "pid", "education", "sex", "age", "roof", "marital", "wgt"} & {*released.columns}
    assert {*amounts.split(",")} < {*released.columns}
    assert sorted(released["hhid"].unique()) != sorted(pl.read_csv(folder / "survey.csv")["hhid"].unique())


def test_options_are_quoted_where_the_shell_needs_it():
    options = {"key": ["a b", 'c,"d'], "unit": ["x y"], "recode": ["born on=year"]}
    assert options_text(options) == """--key 'a b,"c,""d"' --unit 'x y' --recode 'born on=year'"""
    assert options_text({}) == "none are needed"
