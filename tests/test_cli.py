"""The commands on good input: what they print, what they write, and what they never show."""

import io
import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sdckit as sdc
from command import arguments, contents, environment, good, put, run
from sdckit.checks import MISSING
from sdckit.files import read
from sdckit.ties import TIES

SHARED = """--columns --key --weights --by --na --metrics --ties --missing --seed --delimiter --decimal-comma
--encoding --json --csv --quiet --overwrite"""
COMMANDS = {
    "demo": ["--output", "--quiet"],
    "mask": f"--output --method --set --decimals {SHARED}".split(),
    "evaluate": f"--variables --ranks --records {SHARED}".split(),
    "metrics": ["--json", "--csv"],
    "methods": ["--json", "--csv"],
}
SEED = "918273645"
HEAVY = ("numpy", "numba", "polars", "narwhals", "rich")


@pytest.fixture
def survey(tmp_path):
    """Sixty records with a key, codes, strata, weights, missing cells and three variables."""
    rng = np.random.default_rng(7)
    n = 60
    frame = pl.DataFrame(
        {
            "id": [f"{i:03d}" for i in range(n)],
            "grade": ["1.50", "NA", "x"] * (n // 3),
            "region": ["nord", "süd", "west"] * (n // 3),
            "weight": rng.uniform(1, 9, n).round(1),
            "income": rng.lognormal(7, 1, n).round(2),
            "age": rng.integers(16, 90, n),
            "rooms": [None if i % 10 == 0 else int(v) for i, v in enumerate(rng.integers(1, 400, n))],
        }
    )
    put(tmp_path, "data.csv", frame.write_csv())
    return frame


ROLES = ["--key", "id", "--weights", "weight"]
VARIABLES = ["income", "age", "rooms"]


# help


def test_no_arguments_show_the_help(tmp_path):
    done = good(tmp_path)
    assert done.stdout == good(tmp_path, "--help").stdout
    assert done.stdout.startswith("Usage: sdckit ")
    for name in COMMANDS:
        assert re.search(rf"^  {name} +[A-Z].*\w\.$", done.stdout, re.MULTILINE), "cut off"
    assert "sdckit mask data.csv -o masked.csv" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_and_examples_are_shown(tmp_path, name):
    text = good(tmp_path, name, "--help").stdout
    assert set(re.findall(r"--[a-z-]+", text.split("Options:")[1].split("Examples:")[0])) - {"--help"} >= set(
        COMMANDS[name]
    )
    for option in COMMANDS[name]:
        assert re.search(rf"{option}\b.*?  +\S", text, re.DOTALL)
    assert f"Examples:\n    sdckit {name}" in text
    if name in {"mask", "evaluate"}:
        assert all(rule in text for rule in (*TIES, *MISSING))


def test_version(tmp_path):
    assert good(tmp_path, "--version").stdout == f"sdckit {sdc.__version__}\n"


def test_help_loads_nothing_heavy(tmp_path, record_property):
    code = (
        "import sys\nfrom sdckit.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit as stop:\n"
        f"    print([name for name in {HEAVY!r} if name in sys.modules], stop.code)"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    record_property("seconds", round(time.monotonic() - started, 3))
    assert done.stdout.endswith("[] 0\n")


# demo, metrics, methods


def test_demo_repeats_itself(tmp_path):
    first = good(tmp_path, "demo")
    left = contents(tmp_path)
    masked = [f"masked-{method}.csv" for method in ("mdav", "noise", "correlated_noise", "rank_swap")]
    names = ["original.csv", "losses.csv", "made-by-sdckit-demo.txt", *masked]
    assert set(left) == {"sdckit-demo", *(f"sdckit-demo/{name}" for name in names)}
    for word in ("mdav", "rank_swap", "brmae", "unrelated order", "sdckit-demo/"):
        assert word in first.stdout
    assert first.stderr == ""
    assert good(tmp_path, "demo").stdout == first.stdout
    assert contents(tmp_path) == left
    assert good(tmp_path, "demo", "-o", "some/where", "--quiet").stdout == ""
    other = contents(tmp_path / "some" / "where")
    assert other == contents(tmp_path / "sdckit-demo")


@pytest.mark.parametrize(("name", "registry"), [("metrics", sdc.METRICS), ("methods", sdc.METHODS)])
def test_lists_hold_the_whole_registry(tmp_path, name, registry):
    shown = good(tmp_path, name, COLUMNS="80").stdout
    rows = json.loads(good(tmp_path, name, "--json").stdout)
    table = pl.read_csv(io.StringIO(good(tmp_path, name, "--csv").stdout), infer_schema=False)
    assert [row[name[:-1]] for row in rows] == table[name[:-1]].to_list() == list(registry)
    assert max(map(len, shown.splitlines())) <= 80
    for record in registry.values():
        assert f"{record.name} - {record.title}\n" in shown
        assert record.summary in table.row(list(registry).index(record.name))
    if name == "methods":
        for record in registry.values():
            assert all(f"{parameter.name}=" in shown for parameter in record.parameters)


# mask


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("method", sdc.METHODS)
def test_mask_every_method(tmp_path, survey, method, suffix):
    if suffix == "parquet":
        survey.write_parquet(tmp_path / "data.parquet")
    before = (tmp_path / f"data.{suffix}").read_bytes()
    done = good(tmp_path, "mask", f"data.{suffix}", "-o", f"out.{suffix}", "--method", method, *ROLES)
    ours, theirs = read(tmp_path / f"data.{suffix}"), read(tmp_path / f"out.{suffix}")
    others = ["id", "grade", "region", "weight"]
    assert_frame_equal(theirs.frame.select(others), ours.frame.select(others))
    assert theirs.frame.columns == ours.frame.columns
    assert not theirs.frame["income"].equals(ours.frame["income"])
    assert theirs.frame["rooms"].null_count() >= 6
    assert "note: wrote out" in done.stdout
    assert done.stderr == ""
    assert (tmp_path / f"data.{suffix}").read_bytes() == before


@pytest.mark.parametrize(("source", "target"), [("csv", "parquet"), ("parquet", "csv"), ("csv", "tsv")])
def test_mask_from_one_format_into_another(tmp_path, survey, source, target):
    survey.write_parquet(tmp_path / "data.parquet")
    good(tmp_path, "mask", f"data.{source}", "-o", f"out.{target}", "--method", "noise", *ROLES)
    done = good(tmp_path, "evaluate", f"data.{source}", f"out.{target}", *ROLES, "--json")
    assert 0 < json.loads(done.stdout)["table"][0]["value"] < 0.5


def test_other_columns_keep_every_letter(tmp_path):
    rows = [f'00{i},1.{i}0,NA,"a ""b"", c",{i * 1.25}' for i in range(10)]
    put(tmp_path, "data.csv", "\n".join(["code,fixed,word,quoted,x", *rows, ""]))
    good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "mdav", "--columns", "x")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines[1:]] == [row.rsplit(",", 1)[0] for row in rows]


@pytest.mark.parametrize(
    ("options", "encoding", "delimiter", "mark"),
    [
        (["--decimal-comma"], "utf-8", ";", ","),
        (["--delimiter", ";"], "utf-8", ";", "."),
        (["--encoding", "latin-1"], "latin-1", ",", "."),
        (["--delimiter", "\\t"], "utf-8", "\t", "."),
        (["--decimal-comma", "--delimiter", "|", "--encoding", "utf-16"], "utf-16", "|", ","),
    ],
)
def test_dialects(tmp_path, options, encoding, delimiter, mark):
    rows = [f"Köln{delimiter}{i}{mark}{i * 7 % 10}{i * 3 % 10}" for i in range(20)]
    put(tmp_path, "data.csv", "\n".join([f"Ort{delimiter}Wert", *rows, ""]).encode(encoding))
    done = good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "noise", *options)
    lines = (tmp_path / "out.csv").read_bytes().decode(encoding).splitlines()
    assert lines[0] == f"Ort{delimiter}Wert"
    town, value = lines[5].split(delimiter)
    assert town == "Köln"
    assert re.fullmatch(rf"-?\d+{re.escape(mark)}\d+", value)
    assert "1 masked column " in done.stdout
    assert "brmae" in good(tmp_path, "evaluate", "data.csv", "out.csv", *options).stdout


@pytest.mark.parametrize(
    ("decimals", "pattern"), [("original", r"\.\d{1,2}"), ("0", r"\.0"), ("none", r"\.\d{3,}")]
)
def test_decimals(tmp_path, survey, decimals, pattern):
    words = ["mask", "data.csv", "-o", "out.csv", "--method", "noise", *ROLES, "--decimals", decimals]
    good(tmp_path, *words)
    source = read(tmp_path / "out.csv")
    found = [bool(re.fullmatch(rf"-?\d+{pattern}", cell)) for cell in source.text["income"]]
    assert np.mean(found) > 0.9
    if decimals == "original":
        assert source.frame["age"].dtype == source.frame["rooms"].dtype == pl.Int64
    assert survey.height == source.frame.height


@pytest.mark.parametrize("method", ["mdav", "rank_swap"])
def test_figures_are_those_of_the_written_file(tmp_path, survey, method):
    words = ["data.csv", "-o", "out.csv", "--method", method, *ROLES, "--by", "region", "--overwrite"]
    printed = json.loads(good(tmp_path, "mask", *words, "--json").stdout)
    expected = sdc.evaluate(
        read(tmp_path / "data.csv").frame,
        read(tmp_path / "out.csv").frame,
        key="id",
        weights="weight",
        by="region",
    )
    rows = pl.DataFrame(printed["table"], schema=expected.table.schema)
    assert_frame_equal(rows, expected.table)
    assert printed["meaning"] == expected.meaning
    assert survey["region"][1] == rows["stratum"].unique(maintain_order=True)[2]
    again = good(tmp_path, "evaluate", "data.csv", "out.csv", *ROLES, "--by", "region", "--csv").stdout
    assert_frame_equal(pl.read_csv(io.StringIO(again), schema=expected.table.schema), expected.table)


def test_another_process_prints_and_writes_the_same(tmp_path, survey):
    assert survey.height
    words = ["mask", "data.csv", "--method", "noise", "--seed", SEED, *ROLES, "-o"]
    apart, here = run(tmp_path, *words, "a.csv"), good(tmp_path, *words, "b.csv")
    assert apart.returncode == 0
    assert apart.stdout.replace("a.csv", "b.csv") == here.stdout
    assert apart.stderr == here.stderr
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_quiet_prints_nothing(tmp_path, survey):
    done = good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "noise", "--quiet", *ROLES)
    assert (done.stdout, done.stderr) == ("", "")
    done = good(tmp_path, "evaluate", "data.csv", "out.csv", "--quiet", *ROLES)
    assert (done.stdout, done.stderr) == ("", "")
    assert survey.height == read(tmp_path / "out.csv").frame.height


def test_seeds_repeat_and_never_show(tmp_path, survey):
    assert survey.height
    words = ["mask", "data.csv", "--method", "rank_swap", "--set", "p=0.3", *ROLES]
    printed = ""
    for name, more in {"a": ["--seed", SEED], "b": ["--seed", SEED, "--json"], "c": []}.items():
        done = good(tmp_path, *words, "-o", f"{name}.csv", *more)
        printed += done.stdout + done.stderr
    files = contents(tmp_path)
    assert files["a.csv"] == files["b.csv"]
    assert len({files[f"{name}.csv"] for name in "ac"}) == 2
    assert SEED not in printed
    assert all(SEED.encode() not in content for content in files.values())


@pytest.mark.parametrize("code", ["-999", "NA", "nan", "n/a"])
def test_missing_codes_stay_where_they_were(tmp_path, code):
    cells = [code if i % 5 == 0 else str(i * 7 % 23) for i in range(40)]
    put(tmp_path, "data.csv", "\n".join(["x,y", *(f"{cell},{i}.5" for i, cell in enumerate(cells)), ""]))
    done = good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "noise", "--na", code, "--json")
    lines = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert [line.split(",")[0] == code for line in lines] == [cell == code for cell in cells]
    counts = {
        row["variable"]: row["n_used"] for row in json.loads(done.stdout)["table"] if row["metric"] == "mae"
    }
    assert (counts["x"], counts["y"]) == (32, 40)
    again = good(tmp_path, "evaluate", "data.csv", "out.csv", "--na", code, "--json")
    assert json.loads(again.stdout)["table"] == json.loads(done.stdout)["table"]


def test_strata_are_masked_apart(tmp_path, survey):
    words = ["--by", "region", "--columns", "income,age", "--set", "k=4", "--decimals", "none"]
    good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "mdav", *words)
    masked = read(tmp_path / "out.csv").frame
    means = [
        frame.group_by("region", maintain_order=True).agg(pl.mean("income", "age"))
        for frame in (survey, masked)
    ]
    assert_frame_equal(*means)
    assert masked["rooms"].equals(survey["rooms"])


def test_a_name_with_a_comma_goes_into_quotation_marks(tmp_path):
    put(tmp_path, "data.csv", '"a,b",c\n' + "".join(f"{i}.5,{i}\n" for i in range(9)))
    words = ["data.csv", "-o", "out.csv", "--method", "noise", "--columns", '"a,b"', "--csv"]
    table = pl.read_csv(io.StringIO(good(tmp_path, "mask", *words).stdout))
    assert table["variable"].unique().sort().to_list() == ["a,b", "all"]


def test_a_column_suppressed_from_top_to_bottom_is_still_a_number(tmp_path):
    put(tmp_path, "data.csv", "a,b\n" + "".join(f"{i * i}.5,{i if i < 3 else ''}\n" for i in range(20)))
    done = good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "mdav", "--set", "k=5", "--json")
    assert json.loads(done.stdout)["table"][2]["n_suppressed"] == 3
    again = good(tmp_path, "evaluate", "data.csv", "out.csv", "--json")
    assert json.loads(again.stdout)["table"] == json.loads(done.stdout)["table"]


def test_columns_that_stayed_the_same_are_named(tmp_path):
    put(tmp_path, "data.csv", "flat,x\n" + "".join(f"5,{i}.5\n" for i in range(12)))
    done = good(tmp_path, "mask", "data.csv", "-o", "a.csv", "--method", "noise")
    assert done.stderr == "warning: not masked, every value is as in the original: 'flat'\n"
    done = good(tmp_path, "mask", "data.csv", "-o", "b.csv", "--method", "rank_swap", "--set", "p=0")
    assert done.stderr.endswith("as in the original: 'flat', 'x'\n")
    assert "24 of 24 cells in 2 masked columns" in done.stdout


def test_names_are_no_markup(tmp_path):
    put(tmp_path, "data.csv", "[/b],:smile:,g\n" + "".join(f"{i}.5,{i * i}.5,[red]\n" for i in range(12)))
    done = good(tmp_path, "evaluate", "data.csv", "data.csv", "--variables", "--by", "g")
    assert all(name in done.stdout for name in ("[/b]", ":smile:", "[red]"))


# columns of numbers that are read as text


@pytest.mark.parametrize(
    ("cell", "options", "warning"),
    [
        (
            lambda i: "NA" if i < 15 else i,
            [],
            "because of 'NA' in 15 cells and is not masked; declare it with --na NA",
        ),
        (
            lambda i: "NA" if i < 4 else "." if i < 5 else i,
            [],
            "because of 'NA' in 4 cells and '.' in 1 cell and is not masked; declare it with --na NA --na .",
        ),
        (lambda i: "not asked" if i < 9 else i, [], "; declare it with --na 'not asked'"),
        (
            lambda i: f"{i};5".replace(";", ",") if i % 2 else i,
            ["--delimiter", ";"],
            "; set --decimal-comma or write",
        ),
        (
            lambda i: f"1.{i + 100}",
            ["--decimal-comma"],
            "because of the points in its numbers and is not masked",
        ),
        (
            lambda i: f"{i}k" if i < 7 else i,
            [],
            "of '0k' and the like in 7 cells and is not masked; write plain",
        ),
        (
            lambda i: 10**19 + i,
            [],
            "because of integers with more than 18 digits and is not masked; name it as",
        ),
        (lambda i: f"0{i}", [], None),
        (lambda i: f"A{i}" if i % 3 else i, [], None),
        (lambda i: "NA" if i < 15 else i, ["--na", "NA"], None),
        (lambda i: "NA" if i < 15 else i, ["--columns", "x"], None),
        (lambda i: "NA" if i < 15 else i, ["--by", "s"], None),
    ],
)
def test_a_warning_names_text_that_is_nearly_numbers(tmp_path, cell, options, warning):
    mark = ";" if {"--delimiter", "--decimal-comma"} & set(options) else ","
    put(tmp_path, "data.csv", f"s{mark}x\n" + "".join(f"{cell(i)}{mark}{i * i % 31}\n" for i in range(40)))
    done = good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "noise", *options)
    if warning is None:
        assert done.stderr == ""
        return
    assert done.stderr.startswith("warning: column 's' is read as text because ")
    assert warning in done.stderr
    assert done.stderr.count("\n") == 1
    assert "1 masked column " in done.stdout


def test_the_warning_in_evaluate_and_for_parquet(tmp_path):
    frame = pl.DataFrame({"s": [str(i) for i in range(20)], "x": [i * 7 % 13 for i in range(20)]})
    frame.write_parquet(tmp_path / "data.parquet")
    done = good(tmp_path, "evaluate", "data.parquet", "data.parquet")
    assert done.stderr == (
        "warning: column 's' is read as text because the file stores it so and is not measured; "
        "store it as numbers first\n"
    )


# evaluate


@pytest.fixture
def pair(tmp_path, survey):
    masked = sdc.mask(survey, "noise", percent=30, columns=VARIABLES, rng=5, decimals="original")
    masked.write_csv(tmp_path / "masked.csv")
    masked.sample(fraction=1, shuffle=True, seed=3).write_csv(tmp_path / "shuffled.csv")
    return survey, masked


def test_a_key_puts_shuffled_records_in_order(tmp_path, pair):
    assert len(pair) == 2
    words = ["--weights", "weight", "--json"]
    ordered = json.loads(good(tmp_path, "evaluate", "data.csv", "masked.csv", "--key", "id", *words).stdout)
    shuffled = json.loads(
        good(tmp_path, "evaluate", "data.csv", "shuffled.csv", "--key", "id", *words).stdout
    )
    unpaired = json.loads(good(tmp_path, "evaluate", "data.csv", "shuffled.csv", *words).stdout)
    assert ordered == shuffled
    assert unpaired["table"][0]["value"] > ordered["table"][0]["value"]


def test_records(tmp_path, pair):
    words = ["evaluate", "data.csv", "shuffled.csv", "--columns", "income,age", "--metrics", "brmae,mae"]
    done = good(tmp_path, *words, "--key", "id", "--records", "r.csv")
    records = pl.read_csv(tmp_path / "r.csv", schema_overrides={"id": pl.String})
    assert records.columns == ["id", "brmae", "mae"]
    assert records["id"].equals(pair[0]["id"])
    assert "note: wrote r.csv" in done.stdout
    good(tmp_path, *words, "--records", "r.csv", "--overwrite")
    assert pl.read_csv(tmp_path / "r.csv")["record"].to_list() == list(range(1, 61))


@pytest.mark.parametrize("columns", ["80", "120"])
def test_tables_for_people(tmp_path, pair, columns):
    assert pair[0].columns == pair[1].columns
    words = ["evaluate", "data.csv", "masked.csv", *ROLES, "--by", "region", "--variables", "--ranks"]
    shown = good(tmp_path, *words, COLUMNS=columns).stdout
    assert max(map(len, shown.splitlines())) <= int(columns)
    for word in (*VARIABLES, "süd", "brmae", "il1s", "random order", "expected", "tie_sd", "what it means"):
        assert re.search(rf"\b{word}\b", shown), word


def test_ranks_in_json(tmp_path, pair):
    done = good(tmp_path, "evaluate", "data.csv", "masked.csv", *ROLES, "--ranks", "--json")
    expected = sdc.rank_table(*pair, columns=VARIABLES)
    assert json.loads(done.stdout)["ranks"] == expected.rows(named=True)


def test_identical_files_lose_nothing(tmp_path, survey):
    assert survey.height
    done = good(tmp_path, "evaluate", "data.csv", "data.csv", "--key", "id", "--json")
    assert {row["value"] for row in json.loads(done.stdout)["table"]} == {0}
    assert done.stderr.startswith("warning: column 'weight' looks like a survey weight; ")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    words = arguments(["metrics", "--json"])
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), cwd=tmp_path
    ) as process:
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_names_that_the_screen_cannot_show(tmp_path):
    put(tmp_path, "data.csv", "größe\n" + "".join(f"{i}.5\n" for i in range(9)))
    done = run(tmp_path, "evaluate", "data.csv", "data.csv", "--variables", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "gr\\xf6\\xdfe" in done.stdout


# long work


@pytest.fixture
def long_work(tmp_path):
    """A masking of the better part of a minute: distances over missing cells are slow."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({f"v{j}": rng.normal(size=60_000).round(4) for j in range(4)})
    holes = pl.Series(np.arange(60_000) % 3 == 0)
    frame = frame.with_columns(v0=pl.when(holes).then(None).otherwise(pl.col("v0")))
    frame.write_csv(tmp_path / "data.csv")
    return [*["mask", "data.csv", "-o", "out.csv", "--method", "mdav", "--set", "k=3"]]


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopping_leaves_nothing(tmp_path, long_work, sent, code):
    before = contents(tmp_path)
    with subprocess.Popen(
        arguments(long_work),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        cwd=tmp_path,
        text=True,
    ) as process:
        progress = process.stderr.readline()  # appears after two seconds, in the middle of the work
        assert re.fullmatch(r"MDAV: \d+%, about \d+ s left\n", progress)
        process.send_signal(sent)
        started = time.monotonic()
        output, errors = process.communicate(timeout=60)
        assert time.monotonic() - started < 10  # two seconds at rest; the machine may be busy
    assert process.returncode == code
    lines = [line for line in errors.splitlines() if line and not line.startswith("MDAV: ")]
    assert lines == (["stopped: interrupted; no unfinished file is left"] if code == 130 else [])
    assert output == ""
    assert contents(tmp_path) == before


def test_quiet_shows_no_progress(tmp_path, long_work):
    with subprocess.Popen(
        [*arguments(long_work), "--quiet"], stderr=subprocess.PIPE, env=environment(), cwd=tmp_path, text=True
    ) as process:
        time.sleep(5)  # more than the two seconds after which progress would appear
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
    assert "MDAV" not in errors
    assert process.returncode == 130
