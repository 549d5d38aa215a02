"""No public output of any command holds an original record, extreme or name, a thin bin or the seed."""

import json
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from command import good
from leaks import leaks
from read_page import Read
from sdckit.cli.demo import ENTROPY
from sdckit.cli.demo import SEED as DEMO_SEED
from sdckit.core.randomness import derived, secret_order
from sdckit.metrics.pair import pair_of
from sdckit.metrics.publishable import statistics_of
from sdckit.report.charts import bundle

SEED = 918273645
VARIABLES = ["turnover", "wages", "profit", "materials"]
ROLES = ["--key", "firm", "--columns", ",".join(VARIABLES), "--unknown", "weight"]
WORDS = ["--seed", str(SEED), *ROLES]
GRIDS = ["--grid", "mdav.k=4:20:4", "--grid", "noise.percent=20:200:60", "--grid", "rank_swap.p=0.1:0.4:0.1"]
METRICS = ["--metrics", "brmae,brmse,il1s,mse_marginal,linkage,linkage_outliers,dbrl,sdid,rid"]


def figures_of(*tables):
    """Return the measured figures, which an output is meant to print."""
    return [
        value
        for table in tables
        for name in table.columns
        if table[name].dtype == pl.Float64 and name != "setting"
        for value in table[name].drop_nulls()
    ]


def figures_of_json(found):
    """Return the figures that a JSON is meant to print: measures, points of the map, masked statistics."""
    statistics = [*found["statistics"]["variables"], *found["statistics"]["correlations"]]
    return [
        *figures_of(pl.DataFrame(found["table"], infer_schema_length=None)),
        *(value for part in found["parts"].values() for value in part.values()),
        *(value for point in found.get("choice", {}).get("points", ()) for value in point["values"].values()),
        *(row["after"] for row in statistics),
    ]


@pytest.fixture(scope="module")
def original():
    """Six hundred firms of the sample: a record is four distinctive numbers and a name."""
    frame = sdc.load_sample().head(600)
    return frame.select("firm", "sector", "weight", *VARIABLES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, original):
    place = tmp_path_factory.mktemp("leaks")
    original.write_csv(place / "data.csv")
    return place


def assert_silent(output, original, *, figures=(), masked=None, seed=SEED):
    """Nothing leaks; and the search is awake: a record planted into this very output is found."""
    secret = original.drop("weight", strict=False)
    text = output.decode() if isinstance(output, bytes) else output
    given = {"masked": masked, "known": [bundle()], "figures": figures}
    assert leaks(text, secret, seed, **given) == []
    planted = ", ".join(map(str, secret.row(17)))
    assert any(hit.startswith("original ") for hit in leaks(f"{text}\n{planted}", secret, seed, **given))
    assert "the seed" in leaks(f"{text} seed={seed}", secret, seed, **given)


# --- demo ---


def test_the_demo_leaks_nothing(demo):
    place, done = demo
    original, masked = (pl.read_csv(place / f"{name}.csv") for name in ("original", "masked"))
    variables = [name for name in original.columns if name not in {"firm", "sector", "weight"}]
    swept = pl.read_csv(place / "sweep.csv")
    draws = int(
        Read((place / "report.html").read_text()).text.partition("draws of the release")[2].split()[0]
    )
    rows = secret_order(original.height, derived(ENTROPY, f"order {draws}"), "rows")
    roles = {"columns": variables, "key": "firm", "by": "sector", "unknown": "weight"}
    released = sdc.Microdata(original, **roles).evaluate(masked, rows=rows)
    counts = [count for name in swept.columns if name.startswith("n_") for count in swept[name].unique()]
    statistics = statistics_of(pair_of(original, masked, rows=rows, **roles))
    after = [row.after for row in (*statistics.rows, *statistics.correlations)]
    figures = [*figures_of(swept, released.table), *counts, *after]
    secret = original.select("firm", "sector", "weight", *variables)
    for output in ((place / "report.html").read_text(), (place / "sweep.csv").read_text(), done.stdout):
        assert_silent(output, secret, figures=figures, seed=DEMO_SEED)
    assert masked["turnover"].to_list() != original["turnover"].to_list()


# --- sweep ---


@pytest.fixture(scope="module")
def swept(folder):
    words = ["sweep", "data.csv", "-o", "out", *GRIDS, *METRICS, *WORDS, "--workers", "1", "--format", "csv"]
    done = good(folder, *words, "--replications", "3", "--variables", "--report", "sweep.html")
    return done, pl.read_csv(folder / "out" / "sweep.csv"), pl.read_csv(folder / "out" / "summary.csv")


@pytest.mark.long
@pytest.mark.parametrize("name", ["out/sweep.csv", "out/summary.csv", "out/sweep.svg", "sweep.html", "-"])
def test_a_sweep_leaks_nothing(folder, original, swept, name):
    done, table, summary = swept
    output = done.stdout if name == "-" else (folder / name).read_text()
    if name.endswith("svg"):  # its texts only: coordinates on the sheet disclose nothing
        found = ET.fromstring(output).iter()  # noqa: S314 - written just now
        parts = [[part.text, part.get("aria-label"), part.get("href")] for part in found]
        output = "\n".join(text for part in parts for text in part if text)
    assert len(output) > 500
    assert_silent(output, original, figures=figures_of(table, summary))


def test_the_table_of_a_sweep_in_parquet_leaks_nothing(folder, original):
    words = ["sweep", "data.csv", "-o", "parquet", *GRIDS, "--metrics", "brmae,dbrl", *WORDS]
    good(folder, *words, "--workers", "1")
    path = folder / "parquet" / "sweep.parquet"
    table = pl.read_parquet(path)
    assert_silent(table.write_csv(), original, figures=figures_of(table))
    assert str(SEED).encode() not in path.read_bytes()
    assert SEED.to_bytes(8, "little") not in path.read_bytes()


def test_the_private_folder_is_where_the_seed_is(folder, swept):
    assert swept
    kept = (folder / "out" / "private" / "sweep.json").read_text()
    assert "the seed" in leaks(kept, pl.DataFrame({"x": [1.0]}), SEED)


# --- recommend ---


@pytest.mark.long
@pytest.mark.parametrize("method", ["mdav", "rank_swap", "noise"])
def test_a_recommendation_leaks_nothing(folder, original, method):
    grid = GRIDS[GRIDS.index(next(word for word in GRIDS if word.startswith(method)))]
    words = ["recommend", "data.csv", "--max-risk", "linkage=1", "--max-risk", "linkage_sure=1"]
    words += ["--grid", grid, *ROLES, "--workers", "1"]
    options = ["--report", f"{method}.html", "--replications", "1", "--overwrite", "--json", "-o"]
    done = good(folder, *words, *options, f"{method}.csv")
    people = good(folder, *words, "-o", f"{method}.csv", "--replications", "1", "--overwrite")
    figures = figures_of_json(json.loads(done.stdout))
    for output in ((folder / f"{method}.html").read_text(), done.stdout, people.stdout):
        assert_silent(output, original, figures=figures)


def test_a_recommendation_that_is_not_met_leaks_nothing(folder, original):
    from command import run_here

    words = ["recommend", "data.csv", "--max-risk", "linkage=0.0001", *GRIDS, *ROLES, "--workers", "1"]
    done = run_here(folder, *words, "-o", "none.csv", "--replications", "1")
    assert done.returncode == 1
    assert_silent(done.stderr, original)


# --- evaluate ---


@pytest.fixture(scope="module")
def maskings(folder, original):
    for method, options in {"mdav": {"k": 6}, "rank_swap": {"p": 0.2}, "noise": {"percent": 40}}.items():
        roles = {"columns": VARIABLES, "key": "firm", "unknown": "weight"}
        masked = called("mask", original, method, **roles, rng=SEED, decimals="original", **options)
        masked.write_csv(folder / f"{method}-masked.csv")
    return [f"{method}-masked.csv" for method in ("mdav", "rank_swap", "noise")]


@pytest.mark.parametrize("place", range(3))
def test_an_evaluation_leaks_nothing(folder, original, maskings, place):
    words = ["evaluate", "data.csv", maskings[place], *WORDS, *METRICS, "--by", "sector"]
    done = good(folder, *words, "--report", f"{place}.html", "--json", "--overwrite")
    people = good(folder, *words)
    figures = figures_of_json(json.loads(done.stdout))
    for output in ((folder / f"{place}.html").read_text(), done.stdout, people.stdout):
        assert_silent(output, original, figures=figures)


@pytest.mark.long
def test_a_map_of_several_files_leaks_nothing(folder, original, maskings):
    words = ["evaluate", "data.csv", *maskings, *WORDS, *METRICS, "--overwrite"]
    done = good(folder, *words, "--report", "map.html", "--json")
    files = json.loads(done.stdout)["files"]
    figures = figures_of(*(pl.DataFrame(one["table"], infer_schema_length=None) for one in files.values()))
    for output in ((folder / "map.html").read_text(), done.stdout, good(folder, *words).stdout):
        assert_silent(output, original, figures=figures)


@pytest.mark.long
def test_a_report_on_heavy_tails_shows_no_extreme(tmp_path):
    """One giant among small firms, a code at the end, many zeros: no bin, axis or sentence tells of them."""
    rng = np.random.default_rng(2)
    values = rng.lognormal(3, 1, 300).round(3)
    values[7] = 987654.321
    frame = pl.DataFrame(
        {
            "turnover": values,
            "debts": np.where(rng.random(300) < 0.6, 0, rng.integers(1000, 99999, 300)),
            "year": [1871, *rng.integers(1990, 2020, 299)],
        }
    )
    frame.write_csv(tmp_path / "data.csv")
    for method in ("mdav", "rank_swap", "noise"):
        masked = sdc.mask(frame, method, rng=3, decimals="original")
        masked.write_csv(tmp_path / "m.csv")
        words = ["evaluate", "data.csv", "m.csv", "--report", "r.html", "--json", "--overwrite"]
        found = json.loads(good(tmp_path, *words).stdout)
        figures = figures_of_json(found)
        assert_silent((tmp_path / "r.html").read_text(), frame, figures=figures)
