"""The page on metrics is true: its examples run, its numbers are those we compute."""

import doctest
import importlib.util
import math
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl
import pytest

import sdckit as sdc
from sdckit.kernels.ranks import TIES
from sdckit.paper import study
from sdckit.paper.correlations import disagreement
from sdckit.paper.design import NOTE_METHODS
from sdckit.paper.verdicts import (
    CLAIMS,
    all_distances,
    compare_with_sdcmicro,
    distance_facts,
    random_distances,
)

HERE = Path(__file__).parent.parent
DOCS = HERE / "docs"
PAGE = (DOCS / "explanation" / "metrics.md").read_text(encoding="utf-8")
EXAMPLES = " ".join(re.findall(r"```.*?```", PAGE, flags=re.DOTALL))
PROSE = " ".join(re.sub(r"```.*?```", " ", PAGE, flags=re.DOTALL).split())

# Numbers of the prose that are not measured: settings of the methods, and an example of a wrong reading.
SETTINGS = {"5 %", "10 %", "100 %", "300 %", "0.001", "0.1", "0.3", "0.6", "40 %"}
VERSION = "sdcMicro 5.8.1"


# --- the page itself ---


def test_the_examples_run():
    failed, tried = doctest.testfile(
        str(DOCS / "explanation" / "metrics.md"),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE,
    )
    assert failed == 0
    assert tried > 20


# --- the tables worked by hand ---


def test_the_five_firms():
    rows = re.findall(r"\| ([A-E]) \|" + r" (\d+) \|" * 6, PROSE)
    original, r, masked, s, gaps, squares = ([int(row[i]) for row in rows] for i in range(1, 7))
    assert [sorted(original).index(x) + 1 for x in original] == r
    assert [sorted(masked).index(y) + 1 for y in masked] == s
    assert [abs(a - b) for a, b in zip(r, s, strict=True)] == gaps
    assert [gap**2 for gap in gaps] == squares
    assert f"| sum | | | | | {sum(gaps)} | {sum(squares)} |" in PROSE
    sums, largest = (sum(gaps), sum(squares)), (5 * 5 // 2, 5 * 24 // 3)
    assert f"largest sums for n = 5 are {largest[0]} and {largest[1]}" in PROSE
    assert sdc.brmae(original, masked) == pytest.approx(sums[0] / largest[0])
    assert sdc.brmse(original, masked) == pytest.approx(sums[1] / largest[1])


@pytest.mark.parametrize("rule", [rule for rule in TIES if rule != "random"])
def test_the_table_of_tie_rules(rule):
    files = [1, 1, 1, 1, 2, 3], [1, 1, 2, 1, 1, 1]
    sums = [round(6 * mean(*files, ties=rule), 9) for mean in (sdc.rank_mae, sdc.rank_mse)]
    shares = [round(metric(*files, ties=rule), 4) for metric in (sdc.brmae, sdc.brmse)]
    cells = f"{sums[0]:g} | {shares[0]} | {sums[1]:g} | {shares[1]} |"
    assert re.search(rf"`{rule}`\*{{0,2}} \| [^|]+ \| {re.escape(cells)}", PROSE)


# --- the figures ---


def test_the_folder_holds_what_the_page_shows():
    spec = importlib.util.spec_from_file_location("make_figures", HERE / "tools" / "make_figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files = sorted((DOCS / "figures").iterdir())
    assert [path.name for path in files] == module.linked()
    assert sum(path.stat().st_size for path in files) < 600_000


@pytest.mark.parametrize("name", re.findall(r"\((?:\.\./)*([^)]+\.svg)\)", PAGE))
def test_a_figure_stands_alone(name):
    text = (DOCS / name).read_text(encoding="utf-8")
    for element in ET.fromstring(text).iter():  # noqa: S314 - our own file
        assert element.tag.split("}")[1] in {"svg", "title", "g", "rect", "line", "path", "text", "circle"}
        assert not [key for key in element.attrib if key.endswith(("href", "src"))]
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"url\((?!#)|@import|<!ENTITY", text)


# --- the numbers: fragments of the page, written anew from what we compute ---


@pytest.fixture(scope="module")
def one_run(tarragona, census):
    """The study with one replication, which is the first of the thirty."""
    data = {"Tarragona": sdc.Microdata(tarragona).original, "Census": sdc.Microdata(census).original}
    return study.run_study(data, replications=1)


def of_rankings():
    seven = {row["metric"]: row for row in distance_facts(all_distances(7)).iter_rows(named=True)}
    brmae, brmse = seven["brmae"], seven["brmse"]
    drawn = random_distances(100, 10_000, rng=1).filter(kind="random")
    low, high = ({m: drawn[m].quantile(share) for m in ("brmae", "brmse")} for share in (0.05, 0.95))
    assert brmse["at_largest"] == 1
    return [
        f"{brmae['distinct']} for seven records, where brMSE takes {brmse['distinct']}",
        f"{brmae['at_largest']} of the {brmae['rankings']:,} rankings of seven records",
        f"between {low['brmae']:.2f} and {high['brmae']:.2f} in brMAE",
        f"between {low['brmse']:.2f} and {high['brmse']:.2f} in brMSE",
    ]


def of_files(tarragona, census):
    capital = tarragona.select("PAID.UP.CAPITAL")
    (value, block), *_ = capital.to_series().value_counts(sort=True).iter_rows()
    n = tarragona.height
    pairs = [(table, table) for table in (capital, tarragona, census)]
    drawn, worst = ([sdc.brmae(*pair, ties=rule) for pair in pairs] for rule in ("expected", "max"))
    assert all(sdc.brmae(*pair) == 0 for pair in pairs)
    groups = sdc.mask(tarragona, "mdav", k=2)
    tails = sdc.mask(tarragona, "rank_swap", p=0.001, tails=0.05, bound="exclusive", rng=1)
    il1 = sdc.evaluate(tarragona, sdc.mask(tarragona, "mdav", k=3), metrics="il1").table
    share = dict(il1.select("variable", "value").iter_rows())
    whole = share.pop("all")
    zeros = sum((tarragona[name] == 0).sum() for name in tarragona.columns)

    def losses(masked):
        brmae, brmse, il1s, mse = (
            getattr(sdc, name)(tarragona, masked) for name in ("brmae", "brmse", "il1s", "mse")
        )
        return f"{brmae:.3f} | {brmse:.4f} | {il1s:.3f} | {mse / 1e10:.2f}e10 |"

    return [
        f"a file of {n} firms with {tarragona.width} variables",
        f"Census ({census.height:,} persons, {census.width} variables)",
        f"| microaggregation, k = 2 | {losses(groups)}",
        f"| the 5 % at each end replaced by their mean, nothing else | {losses(tails)}",
        f"Two files, of {n} and {census.height:,} records, with {census.width} numeric variables each",
        f"Tarragona has {zeros} zeros",
        f"an IL1 of {whole:.2f}, as if the average cell had changed by {whole:.0%}".replace("%", " %"),
        f"TREASURY, has {share['TREASURY']:.1f}",
        f"the median variable has {pl.Series(share.values()).median():.2f}",
        f"Of the {n} firms, {block} have exactly the same paid-up capital, {value:,.0f}",
        f"only {capital.n_unique()} distinct values",
        f"| random, on average | {drawn[0]:.3f} | {drawn[1]:.4f} | {drawn[2]:.4f} |",
        f"| random, the worst draw | {worst[0]:.3f} | {worst[1]:.4f} | {worst[2]:.4f} |",
        f"The group of {block} adds {(block**2 - 1) / 3 / (n * n // 2):.3f}",
    ]


def of_ties(one_run):
    found = []
    for dataset, k in (("Tarragona", 3), ("Tarragona", 30), ("Census", 30)):
        row = one_run.tie_range.row(
            by_predicate=(pl.col("dataset") == dataset)
            & (pl.col("setting") == k)
            & (pl.col("metric") == "brmae"),
            named=True,
        )
        found.append(
            f"| {dataset}, k = {k} | {row['value']:.3f} | {row['tie_low']:.3f} to {row['tie_high']:.3f} |"
        )
    rules = ["brmae_first", "brmae_average", "brmae_expected"]
    gap = one_run.measured.filter(method="mdav").select(pl.max_horizontal(rules) - pl.min_horizontal(rules))
    assert gap.max().item() < 0.005
    return [*found, "stay within 0.005 of one another"]


def of_one_run(one_run):
    tarragona = one_run.measured.filter(dataset="Tarragona")
    rows = {
        "microaggregation, k = 3": ("mdav", 3),
        "microaggregation, k = 30": ("mdav", 30),
        "noise of 10 % of the standard deviation": ("noise", 10),
        "noise of 100 %": ("noise", 100),
        "noise of 300 %": ("noise", 300),
        "rank swapping, P = 0.1, with tails replaced": ("rank_swap", 0.1),
        "rank swapping, P = 0.3, with tails replaced": ("rank_swap", 0.3),
    }
    found = []
    for label, (method, setting) in rows.items():
        row = tarragona.filter((pl.col("setting") - setting).abs() < 1e-9, method=method)
        losses = [f"{row[name].item():.2f}" for name in ("brmae_average", "brmse_average", "il1s")]
        found.append(f"| {label} | {' | '.join(losses)} |")
    noisy = tarragona.filter(method="noise", setting=300)["brmae_first"].item()
    assert noisy > 0.9 * one_run.unrelated_level("Tarragona", "noise", "brmae")
    orders = disagreement(one_run.measured).filter(method="all")

    def differ(metric, other):
        shares = dict(orders.filter(metric=metric, other_metric=other).select("dataset", "share").iter_rows())
        return [f"{100 * shares[name]:.0f} %" for name in ("Tarragona", "Census")]

    ours, theirs = differ("brmae", "mse"), differ("mae", "mse")
    lowest = one_run.spearman("Tarragona", "mdav", "il1", "brmae")
    return [
        *found,
        "noise of 300 % brings brMAE to more than nine tenths of its level",
        f"in {ours[0]} of the pairs on Tarragona and in {ours[1]} on Census",
        f"MAE and MSE in {theirs[0]} and {theirs[1]} of the pairs",
        f"up to {differ('brmse', 'mse')[0]} of pairs differ",
        f"weakest correlation is {lowest:.3f}, brMAE with IL1 under microaggregation of Tarragona",
    ]


# What only thirty replications tell is kept beside the figures, written by the same run.


def stored(name):
    return pl.read_csv(DOCS / "figures" / name)


def of_thirty_runs():
    table, claims = stored("comparison.csv"), stored("verdicts.csv")
    on_grid = table.filter(dataset="Tarragona", reference="parameter")
    medians = dict(on_grid.filter(method="correlated_noise").select("metric", "median").iter_rows())
    (widest,) = on_grid.filter(method="rank_swap_no_tails", metric="il1").iter_rows(named=True)
    error = math.sqrt(math.pi / 2 / 30) * (widest["r_q75"] - widest["r_q25"]) / 1.349
    assert error > 0.003
    untailed = table.filter(method="rank_swap_no_tails").height
    counts = dict(claims["verdict"].value_counts().iter_rows())
    scores = re.findall(r"largest brMAE ([\d.]+), brMSE ([\d.]+)", claims["measured"][-1])
    largest = [math.ceil(100 * max(map(float, column))) / 100 for column in zip(*scores, strict=True)]
    between = table.filter(pl.col("reference") != "parameter")
    assert between.row(between["median"].arg_min(), named=True)["metric"] == "il1"
    assert table.filter(method="mdav")["difference"].abs().max() < 1e-6
    return [
        f"none has more than {largest[0]:.2f} in brMAE or {largest[1]:.2f} in brMSE",
        f"IL1s {medians['il1s']:.3f}, brMAE {medians['brmae']:.3f}, IL1 {medians['il1']:.3f}, medians of 30",
        f"Tarragona: {max(medians.values()) - min(medians.values()):.2f} from best to weakest",
        f"The study checks {claims.height} claims of the note: {counts['holds']} hold",
        f"{counts['holds in part']} hold in part, {counts['does not hold']} does not hold",
        f"gives {table.height} correlations to compare, {untailed} of them for rank swapping without",
        f"{table['met'].sum()} of the {table.height}",
        f"has a standard error of {error:.3f}, more than the limit of 0.003",
    ]


def of_figure_2():
    text = (DOCS / "figures" / "figure-2.svg").read_text(encoding="utf-8")
    brmae, brmse = re.findall(r"([\d,]+) distinct values", text)
    return [f"{brmae} distinct values of brMAE and {brmse} of brMSE"]


def check(facts):
    missing = "\n".join(fact for fact in facts if fact not in PROSE)
    assert not missing, f"run tools/make_figures.py, then write into docs/explanation/metrics.md:\n{missing}"


def test_numbers_of_rankings():
    check(of_rankings() + of_figure_2())


def test_numbers_of_the_files(tarragona, census):
    check(of_files(tarragona, census))


@pytest.mark.long
def test_numbers_of_ties(one_run):
    check(of_ties(one_run))


@pytest.mark.long
def test_numbers_of_one_run(one_run):
    check(of_one_run(one_run))


def test_numbers_of_thirty_runs():
    check(of_thirty_runs())


def test_verdicts_are_those_of_the_study():
    table = stored("verdicts.csv")
    assert table["claim"].to_list() == [claim for claim, _, _ in CLAIMS]
    shown = dict(re.findall(r"\| ([^|]+) \| (holds in part|does not hold) \|", PROSE))
    doubted = table.filter(pl.col("verdict") != "holds")
    assert shown == dict(doubted.select("claim", "verdict").iter_rows())


def test_the_number_of_masked_files():
    files = {"mdav": 30} | dict.fromkeys(("noise", "correlated_noise", "rank_swap"), 300 * 30)
    assert set(files) == set(NOTE_METHODS)
    total = f"{2 * sum(files.values()):,} masked files"
    check([f"of the {total}", f"{total}, six metrics each"])


@pytest.mark.long
def test_what_is_stored_is_what_we_compute(one_run):
    keys = ["dataset", "method", "metric", "reference"]
    kept = stored("comparison.csv").select(*keys, "r_single", "single").sort(keys)
    found = compare_with_sdcmicro(one_run.correlations).select(*keys, "r_single", "single").sort(keys)
    assert kept.select(keys).equals(found.select(keys))
    for name in ("r_single", "single"):
        assert kept[name].to_list() == pytest.approx(found[name].to_list(), abs=1e-5)
    text = (DOCS / "figures" / "figure-3.svg").read_text(encoding="utf-8")
    for method in NOTE_METHODS:
        for metric in ("brmae", "brmse", "mae", "mse", "il1", "il1s"):
            assert f"r = {one_run.spearman('Tarragona', method, metric):.4f}" in text


@pytest.mark.long
def test_no_number_escapes(tarragona, census, one_run):
    facts = of_rankings() + of_figure_2() + of_files(tarragona, census)
    facts += of_ties(one_run) + of_one_run(one_run) + of_thirty_runs()
    rest = PROSE.replace(VERSION, "")
    for fact in sorted(facts, key=len, reverse=True):
        rest = rest.replace(fact, " ")
    numbers = set(re.findall(r"\d+\.\d+(?:e\d+)?(?: ?%)?|\d+ ?%", rest))
    printed = {number for number in numbers if re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", EXAMPLES)}
    assert numbers - printed - SETTINGS == set()
