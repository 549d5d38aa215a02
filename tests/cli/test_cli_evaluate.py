"""`sdckit evaluate` on several files, with reports and windows: what is printed and what is written."""

import json
import re

import polars as pl
import pytest

import sdckit as sdc
from calls import called
from command import ROLES, VARIABLES, contents, good, put_survey, run_here
from sdckit.io.files import read
from secret_bytes import entropy

pytestmark = pytest.mark.usefixtures("survey")

FILES = ["a.csv", "b.csv", "c.csv"]
METRICS = ["--metrics", "brmae,il1s,dbrl,linkage"]
FILE_KEYS = ("exposed", "exposed_above_90", "table", "meaning", "knowledge")  # of one file of several


@pytest.fixture
def survey(tmp_path):
    """The survey and three masked files of it; the last in another order."""
    data = put_survey(tmp_path)
    for name, (method, options) in zip(
        FILES, [("mdav", {"k": 3}), ("noise", {"percent": 30}), ("rank_swap", {"p": 0.2})], strict=True
    ):
        masked = called(
            "mask", data, method, columns=VARIABLES, key="id", rng=5, decimals="original", **options
        )
        order = masked.sample(fraction=1, shuffle=True, seed=2) if name == "c.csv" else masked
        order.write_csv(tmp_path / name)
    return data


def several(folder, *words, files=FILES):
    return good(folder, "evaluate", "data.csv", *files, *ROLES, *words)


# --- several files ---


@pytest.mark.long
def test_several_files_stand_beside_each_other_as_each_alone(tmp_path):
    before = contents(tmp_path)
    found = json.loads(several(tmp_path, *METRICS, "--json").stdout)
    assert list(found["files"]) == FILES
    for name in FILES:
        alone = json.loads(several(tmp_path, *METRICS, "--json", files=[name]).stdout)
        assert found["files"][name] == {key: alone[key] for key in FILE_KEYS}
    assert contents(tmp_path) == before


def test_several_releases_together(tmp_path):
    found = json.loads(several(tmp_path, "--together", "--json").stdout)
    frames = [read(tmp_path / name).frame for name in ("data.csv", *FILES)]
    known = sdc.Microdata(frames[0], key="id", weights="weight").evaluate(frames[1:], together=True)
    assert [(row["metric"], row["value"]) for row in found["table"]] == [("linkage", known["linkage"])]
    assert found["parts"] == known.parts
    assert found["notes"][-3:] == [f"release {number}: {name}" for number, name in enumerate(FILES, 1)]
    assert "who can align the 3 releases" in several(tmp_path, "--together").stdout


@pytest.mark.parametrize(
    ("words", "files", "text"),
    [
        ([], ["a.csv"], "--together needs at least two masked files and there is 1; name the others"),
        (["--report", "x.html"], FILES, "--together and --report exclude each other; drop one of them"),
        (["--metrics", "brmae"], FILES, "brmae: several releases together have a linkage only; evaluate"),
    ],
)
def test_what_does_not_fit_releases_together_is_refused(tmp_path, words, files, text):
    found = run_here(tmp_path, "evaluate", "data.csv", *files, *ROLES, "--together", *words)
    assert found.returncode == 2
    assert text in found.stderr


def test_notes_say_which_file_they_are_about(tmp_path, survey):
    gaps = survey.with_columns(income=pl.when(pl.arange(60) < 5).then(None).otherwise(pl.col("income")))
    gaps.write_csv(tmp_path / "b.csv")
    done = several(tmp_path, *METRICS)
    assert "\nnote: b.csv: suppressed cells, left out of every metric: 5 " in done.stdout
    assert not re.search(r"^note: c\.csv: suppressed", done.stdout, re.MULTILINE)


def test_a_metric_that_one_file_alone_lacks_is_a_dash(tmp_path, survey):
    """A file without a single value has no loss, the others have."""
    survey.with_columns(pl.lit(None).alias(name) for name in VARIABLES).write_csv(tmp_path / "b.csv")
    lines = several(tmp_path, *METRICS).stdout.splitlines()
    brmae = next(line.split() for line in lines if line.startswith(" brmae"))
    assert brmae[2] == "-"
    assert "-" not in (brmae[1], brmae[3])


# --- reports ---


def test_the_report_of_one_file(tmp_path):
    done = several(tmp_path, "--report", "r.html", "--by", "region", files=["a.csv"])
    assert "not for publication" not in done.stdout
    page = (tmp_path / "r.html").read_text()
    for word in ("Loss and risk of a.csv", "60 records and 3 variables", "income", "rule for ties", "region"):
        assert word in page, word
    assert done.stdout.endswith("note: wrote r.html\n")
    assert sorted(contents(tmp_path)) == ["a.csv", "b.csv", "c.csv", "data.csv", "r.html"]


def test_report_and_records_at_once(tmp_path):
    done = several(tmp_path, *METRICS, "--report", "r.html", "--records", "r.csv", files=["c.csv"])
    assert pl.read_csv(tmp_path / "r.csv").columns == ["id", "brmae", "il1s", "dbrl", "linkage"]
    assert "not for publication" in done.stdout
    assert (tmp_path / "r.html").stat().st_size > 10_000
    assert (tmp_path / "r.csv").stat().st_mode & 0o777 == 0o600  # shares of single records are private


@pytest.mark.parametrize("rows", [2, 9, 10])
def test_a_report_needs_ten_records(tmp_path, rows):
    frame = pl.DataFrame({"x": [i * 7 % 11 + 0.5 for i in range(rows)], "y": range(rows)})
    frame.write_csv(tmp_path / "data.csv")
    frame.with_columns(pl.col("x") + 1).write_csv(tmp_path / "m.csv")
    before = contents(tmp_path)
    done = run_here(tmp_path, "evaluate", "data.csv", "m.csv", "--report", "r.html")
    if rows == 10:
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "r.html").stat().st_size > 10_000
        return
    assert done.returncode == 2
    assert done.stderr == (
        f"error: a report needs at least 10 records and the data have {rows}; print the measures instead\n"
    )
    assert (done.stdout, contents(tmp_path)) == ("", before)
    good(tmp_path, "evaluate", "data.csv", "m.csv")


def test_a_report_names_the_file_and_not_its_folder(tmp_path):
    place = tmp_path / "secret" / "place"
    place.mkdir(parents=True)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).rename(place / name)
    files = [f"secret/place/{name}" for name in ("a.csv", "b.csv")]
    several(tmp_path, *METRICS, "--report", "one.html", files=files[:1])
    several(tmp_path, *METRICS, "--report", "two.html", files=files)
    for page in ((tmp_path / name).read_text() for name in ("one.html", "two.html")):
        assert "a.csv" in page
        assert "secret" not in page


def test_files_of_the_same_name_keep_their_folders(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name[0]).mkdir()
        (tmp_path / name).rename(tmp_path / name[0] / "m.csv")
    several(tmp_path, *METRICS, "--report", "r.html", files=["a/m.csv", "b/m.csv"])
    rows = (tmp_path / "r.html").read_text().split('id="points"')[1].split("</table>")[0]
    assert "a/m.csv" in rows
    assert "b/m.csv" in rows


# --- windows ---


def linkage(folder, *words):
    done = good(folder, "evaluate", "data.csv", "c.csv", *ROLES, "--metrics", "linkage,window", *words)
    return {row["metric"]: row["value"] for row in json.loads(done.stdout)["table"]}


def test_a_published_window_helps_the_attacker(tmp_path):
    blind, known, wider = (
        linkage(tmp_path, "--json", *words) for words in ([], ["--window", "0.2"], ["--window", "0.9"])
    )
    assert known["window"] > wider["window"]
    assert known["linkage"] == max(known["linkage"], known["window"], blind["linkage"])
    assert wider["linkage"] == blind["linkage"]


@pytest.mark.long
@pytest.mark.parametrize("gaps", [False, True])
def test_the_method_behind_a_file_tells_its_window(tmp_path, survey, gaps):
    data = survey if gaps else survey.with_columns(pl.col("rooms").fill_null(7))
    data.write_csv(tmp_path / "data.csv")
    sdc.Microdata(data, columns=VARIABLES, key="id").mask("rank_swap", p=0.3, rng=1).write_csv(
        tmp_path / "c.csv"
    )
    made = ["--made-by", "rank_swap", "--set", "p=0.3"]
    told, stated = (linkage(tmp_path, "--json", *words) for words in (made, ["--window", "0.3"]))
    if gaps:  # the method swaps within 30 % of the cells that a column has, not of all records
        assert told["window"] > stated["window"]
        assert told["linkage"] >= stated["linkage"]
    else:
        assert told == stated
    notes = {
        name: good(tmp_path, "evaluate", "data.csv", "c.csv", *ROLES, "--metrics", "linkage", *words).stdout
        for name, words in {"blind": [], "known": made}.items()
    }
    said = "learnt from folds of the release alone; for a sharper figure give --made-by or --made-by-command"
    assert said in " ".join(notes["blind"].split())
    assert "nobody said" not in notes["known"]


def test_a_window_is_that_of_the_file_whatever_the_strata(tmp_path, survey):
    masked = sdc.Microdata(survey, columns=VARIABLES, key="id").mask("rank_swap", p=0.3, rng=1)
    masked.write_csv(tmp_path / "c.csv")
    words = ["evaluate", "data.csv", "c.csv", *ROLES, "--by", "region", "--window", "0.3", "--json"]
    rows = json.loads(good(tmp_path, *words, "--metrics", "linkage").stdout)["table"]
    expected = sdc.Microdata(survey, columns=VARIABLES, key="id", weights="weight", by="region").evaluate(
        masked, made_by=sdc.Method(window=0.3), metrics="linkage"
    )
    assert {row["stratum"]: row["value"] for row in rows} == pytest.approx(
        dict(expected.table.select("stratum", "value").rows())
    )


@pytest.mark.parametrize("known", [["--made-by", "rank_swap"], ["--window", "0.1"], []])
def test_stratified_needs_strata(tmp_path, known):
    words = ["evaluate", "data.csv", "c.csv", *ROLES, "--stratified", *known]
    done = run_here(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --stratified needs strata; name their column with --by\n"
    done = run_here(tmp_path, *words, "--by", "region", "--unstratified")
    assert done.stderr == "error: --stratified and --unstratified exclude each other; drop one of them\n"


@pytest.mark.long
def test_a_parameter_by_stratum_is_one_of_the_strata(tmp_path, survey):
    widths = {name: 0.1 * (i + 1) for i, name in enumerate(survey["region"].unique(maintain_order=True))}
    roles = {"columns": VARIABLES, "key": "id", "weights": "weight", "by": "region"}
    release = sdc.Microdata(survey, **roles).release(
        "rank_swap", p=widths, entropy=entropy(1), metrics="linkage"
    )
    release.data.with_columns(survey["id"].gather(release.rows)).write_csv(tmp_path / "c.csv")
    words = ["evaluate", "data.csv", "c.csv", *ROLES, "--metrics", "linkage", "--json"]
    word = "p=" + ",".join(f"{name}:{width}" for name, width in widths.items())
    found = json.loads(
        good(tmp_path, *words, "--by", "region", "--made-by", "rank_swap", "--set", word).stdout
    )
    assert found["table"] == release.evaluation.table.rows(named=True)
    done = run_here(tmp_path, *words, "--made-by", "rank_swap", "--set", word)
    assert "and there are no strata; give one number, or strata" in done.stderr


def test_parts_stand_beside_the_table_in_json(tmp_path):
    words = ["--window", "0.2", "--unknown", "grade,region,weight"]
    found = json.loads(several(tmp_path, "--json", *words, files=["c.csv"]).stdout)
    about = {"version", "intruder", "n", "original", "masked", "summary", "statistics"}
    shown = {"table", "meaning", "notes", "parts", "knowledge", "exposed", "exposed_above_90"}
    assert set(found) == about | shown
    attacks = found["parts"]["linkage"]
    assert {"dbrl", "folds", "guess"} <= set(attacks)
    worst = next(row["value"] for row in found["table"] if row["metric"] == "linkage")
    assert max(attacks.values()) == worst


def test_variables_that_have_no_value_of_their_own(tmp_path):
    """Risks belong to the file as a whole: the tables of variables and strata leave them out or blank."""
    words = ["evaluate", "data.csv", "a.csv", *ROLES, "--by", "region"]
    done = run_here(tmp_path, *words, "--metrics", "brmae,linkage,rid", "--variables")
    assert done.returncode == 0, done.stderr
    (head,) = [line for line in done.stdout.splitlines() if line.startswith(" variable")]
    assert head.split()[1:] == ["brmae", "rid"]
    (head,) = [line for line in done.stdout.splitlines() if line.startswith(" stratum")]
    assert head.split()[1:] == ["brmae", "linkage", "rid"]


@pytest.mark.long
def test_strata_that_a_metric_does_not_suit(tmp_path):
    frame = pl.DataFrame({"g": ["a"] * 2 + ["b"] * 28, "x": [i * 7 % 31 + 0.5 for i in range(30)]})
    frame.write_csv(tmp_path / "data.csv")
    frame.with_columns(pl.col("x") + 1).write_csv(tmp_path / "m.csv")
    done = run_here(
        tmp_path, "evaluate", "data.csv", "m.csv", "--by", "g", "--metrics", "brmae,rmdid", "--json"
    )
    assert done.returncode == 0, done.stderr
    done = run_here(tmp_path, "evaluate", "data.csv", "m.csv", "--by", "g", "--metrics", "brmae,rmdid")
    assert done.returncode == 0, done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.startswith(" a ")]
    assert row.split()[-1] == "-"


# --- samples ---


def test_linkage_is_estimated_on_sampled_records(tmp_path, survey):
    words = ["evaluate", "data.csv", "b.csv", *ROLES, "--metrics", "linkage", "--json"]
    found = json.loads(good(tmp_path, *words, "--sample-queries", "50").stdout)
    (row,) = (row for row in found["table"] if row["variable"] == "all" and row["stratum"] == "all")
    full = json.loads(good(tmp_path, *words).stdout)["table"][0]["value"]
    assert row["ci_low"] <= full <= row["ci_high"]
    assert f"estimated on 50 of {survey.height} records" in found["meaning"]["linkage"]
    refused = run_here(tmp_path, "evaluate", "data.csv", *FILES, "--together", "--sample-queries", "50")
    assert refused.returncode == 2
    assert "--together and --sample-queries exclude each other; drop one of them" in refused.stderr
