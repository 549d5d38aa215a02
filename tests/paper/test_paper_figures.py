"""Every figure is drawn from its table, shows something in every panel and can share a page."""

import re

import numpy as np
import polars as pl
import pytest
import vl_convert

from pictures import pixels, points
from sdckit.paper.figures import all_figures, parts
from sdckit.paper.risks import ATTACKS, Risks
from sdckit.paper.study import Study
from sdckit.report import charts

GRIDS = {
    "mdav": [1.0, 2.0, 10.0, 20.0, 30.0],
    "noise": [1.0, 50.0, 100.0, 200.0, 300.0],
    "correlated_noise": [1.0, 50.0, 100.0, 200.0, 300.0],
    "rank_swap": [0.001, 0.05, 0.1, 0.2, 0.3],
    "rank_swap_no_tails": [0.001, 0.05, 0.1, 0.2, 0.3],
}
NOTE = [f"figure-{number}" for number in range(1, 11)]
OURS = ["tie-range", "disagreement", "risk-map-tarragona", "risk-map-census"]
COLUMNS = {"figure-1": 3, "figure-2": 2, "figure-5": 3, "figure-6": 3, "tie-range": 2, "disagreement": 1}
COLUMNS |= {name: 1 for name in OURS if name.startswith("risk-")}


def measured(*datasets, replications=3):
    rng = np.random.default_rng(3)
    rows = []
    for dataset in datasets:
        for method, grid in GRIDS.items():
            for replication in range(1, 2 if method == "mdav" else replications + 1):
                for place, setting in enumerate(grid):
                    loss = place / (place + 2) * 0.5 + 0.03 * rng.random() * (place > 0)
                    row = {
                        "dataset": dataset,
                        "method": method,
                        "setting": setting,
                        "replication": replication,
                    }
                    for shift, ties in ((0.001, "first"), (0.0, "average"), (0.002, "expected")):
                        row |= {f"brmae_{ties}": loss + shift, f"brmse_{ties}": loss**2 + shift}
                    row |= {
                        "mae": 3e4 * loss,
                        "mse": 1e10 * loss**2,
                        "il1": 9 * loss * rng.random(),
                        "il1s": loss,
                    }
                    rows.append(row)
    return pl.DataFrame(rows)


def levels(*datasets):
    return pl.DataFrame(
        {"dataset": dataset, "method": method, "ties": ties, "brmae": brmae, "brmse": brmse}
        for dataset in datasets
        for method in GRIDS
        for ties, brmae, brmse in (("first", 2 / 3, 0.5), ("average", 0.65, 0.48), ("expected", 0.6, 0.4))
    )


def tie_range(*datasets):
    return pl.DataFrame(
        {
            "dataset": d,
            "setting": k,
            "metric": metric,
            "value": 0.2,
            "tie_low": 0.1,
            "tie_high": 0.1 + k / 100,
        }
        for d in datasets
        for k in GRIDS["mdav"]
        for metric in ("brmae", "brmse")
    )


def risks(*datasets):
    """Risk falls as loss grows, microaggregation's fastest; rank swapping is found out by its window."""
    rows = []
    for dataset in datasets:
        for method, settings in GRIDS.items():
            for place, setting in enumerate(settings):
                loss = place / (place + 2) * (0.3 if method == "mdav" else 0.6)
                row = {"dataset": dataset, "method": method, "parameters": f"x={setting}", "setting": setting}
                row |= {"replication": 1, "brmae": loss, "brmse": loss**2}
                found = dict.fromkeys(ATTACKS, 1 - 1.5 * loss) | {"window": None}
                found |= {"matching": 0.9 * found["dbrl"], "dbrl_rank": 0.5}
                found |= {"window": 1 - loss} if method.startswith("rank") else {}
                row |= {"linkage": max(value for value in found.values() if value is not None)}
                rows.append(row | {"linkage_outliers": 0.9 - loss * (1 + (method == "noise"))} | found)
    return Risks(pl.DataFrame(rows, infer_schema_length=None))


def draw(*datasets, replications=3):
    tables = (
        measured(*datasets, replications=replications),
        levels(*datasets),
        tie_range(*datasets),
        risks(*datasets),
    )
    return {figure.name: figure for figure in all_figures(Study(*tables), rng=1, draws=50)}


@pytest.fixture(scope="module")
def figures():
    return draw("Tarragona", "Census")


@pytest.fixture(scope="module")
def pictures(figures):
    return {name: charts.svg(figure.chart) for name, figure in figures.items()}


def test_the_ten_figures_come_first_then_ours(figures):
    assert list(figures) == NOTE + OURS
    assert [figure.number for figure in figures.values()] == [
        *(str(number) for number in range(1, 11)),
        *(f"A{number}" for number in range(1, len(OURS) + 1)),
    ]
    for name, figure in figures.items():
        assert figure.ours == figure.title.startswith("Ours: ") == (name in OURS)
        assert figure.caption.endswith(".")
        assert re.search(r"\b0\b", figure.caption), "a caption says what 0 means"


@pytest.mark.parametrize("name", NOTE + OURS)
def test_every_panel_shows_something(figures, pictures, name):
    picture = pixels(vl_convert.svg_to_png(pictures[name], scale=1))
    inked = (picture < 200).any(axis=2)
    coloured = picture.max(axis=2) - picture.min(axis=2) > 60
    columns = COLUMNS.get(name, 4)
    rows = len(figures[name].chart.to_dict()["concat"]) // columns
    for i in range(rows):
        for j in range(columns):
            part = np.s_[
                i * picture.shape[0] // rows : (i + 1) * picture.shape[0] // rows,
                j * picture.shape[1] // columns : (j + 1) * picture.shape[1] // columns,
            ]
            assert inked[part].sum() > 200
            assert coloured[part].sum() > (5 if name != "disagreement" else -1)


def test_all_pictures_can_share_a_page(figures, pictures):
    ids = [name for svg in pictures.values() for name in re.findall(r'\bid="([^"]+)"', svg)]
    assert len(ids) == len(set(ids)) >= len(figures)
    for name, svg in pictures.items():
        assert "http" not in svg.replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert svg.startswith("<svg ")
        assert f'<title id="{name}-title">{figures[name].title}</title>'.replace("'", "") in svg.replace(
            "'", ""
        )


def test_charts_are_valid_and_hold_nothing_but_their_table(figures):
    for name, figure in figures.items():
        figure.chart.to_dict()  # altair checks it against the schema of Vega-Lite
        drawn = sum(len(rows) for rows in figure.chart["datasets"].values())
        assert drawn == figure.table.height, name
        assert figure.table.height > 10


@pytest.mark.parametrize("name", ["figure-3", "figure-4", "figure-7", "figure-10"])
def test_every_row_of_a_scatterplot_is_a_point(figures, pictures, name):
    assert points(pictures[name]) == figures[name].table.height


def test_figure_1_counts_all_rankings(figures):
    table = figures["figure-1"].table
    counts = table.filter(metric="brmae", n=5)["count"].to_list()
    assert counts == [1, 4, 12, 24, 35, 24, 20]
    assert table.filter(metric="brmse")["n"].value_counts(sort=True)["count"].to_list() == [57, 36, 21]
    assert table.group_by("n", "metric").agg(pl.col("last").max()).sort("n")["last"].to_list() == [
        120, 120, 720, 720, 5040, 5040,
    ]  # fmt: skip
    assert (table["last"] - table["first"] + 1).to_list() == table["count"].to_list()
    assert table.filter(n=6)["mean"].unique().sort().to_list() == pytest.approx([0.5, 35 / 54])


def test_figure_2_marks_both_ends(figures):
    table = figures["figure-2"].table
    assert table["count"].sum() == 2 * 52
    assert table.filter(pl.col("kind") != "random")["value"].to_list() == [0, 1, 0, 1]
    assert figures["figure-2"].table.equals(draw("Tarragona")["figure-2"].table), (
        "the same seed, the same draws"
    )


def test_figures_3_and_4_hold_one_run_with_its_correlations(figures):
    table, source = figures["figure-4"].table, measured("Tarragona", "Census")
    run = source.filter(dataset="Census", method="noise", replication=1)
    panel = table.filter(method="noise", metric="brmse")
    assert panel["value"].to_list() == run["brmse_first"].to_list()
    assert panel["panel"].unique().to_list() == [5]
    assert panel["unrelated"].unique().to_list() == [0.5]
    ranks = [run[name].rank().to_numpy() for name in ("setting", "il1")]
    expected = np.corrcoef(*ranks)[0, 1]
    assert table.filter(method="noise", metric="il1")["spearman"][0] == pytest.approx(expected)
    assert table.filter(metric="mae")["unrelated"].null_count() == 20


def test_figures_print_letters_correlations_and_levels(pictures):
    for letter in "abcdefghijklmnopqrstuvwx":
        assert f">{letter}</text>" in pictures["figure-3"]
    assert pictures["figure-3"].count("unrelated order 0.667") == 4
    assert pictures["figure-3"].count("unrelated order 0.500") == 4
    assert len(re.findall(r">r [=&].*?</text>", pictures["figure-3"])) == 24


def test_scales_of_correlations_end_at_one():
    assert parts.padded_correlation_range(pl.Series([0.9, 1.0])) == pytest.approx((0.895, 1.0))
    assert parts.padded_correlation_range(pl.Series([0.98, 0.98])) == pytest.approx((0.979, 0.981))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.98764, "r = 0.9876"),
        (0.99996, "r > 0.9999"),
        (-0.99996, "r < -0.9999"),
        (1.0, "r = 1.0000"),
        (None, "r undefined"),
        (float("nan"), "r undefined"),
    ],
)
def test_a_correlation_is_never_rounded_to_one(value, text):
    assert parts.correlation_text(value) == text


@pytest.mark.parametrize(
    ("dataset", "numbers"), [("sample", ["3", "5", "7", "8"]), ("Census", ["4", "6", "9", "10"])]
)
def test_one_dataset_takes_its_place_in_the_note(dataset, numbers):
    found = draw(dataset)
    assert [figure.number for figure in found.values() if not figure.ours] == ["1", "2", *numbers]
    assert ("the bundled sample" in found[f"figure-{numbers[0]}"].title) == (dataset == "sample")


def test_three_datasets_are_refused():
    with pytest.raises(ValueError, match="3 datasets measured; give one or two"):
        draw("Tarragona", "Census", "sample")


@pytest.mark.parametrize("replications", [1, 6])
def test_few_and_many_replications_are_drawn(replications):
    found = draw("Tarragona", replications=replications)
    picture = pixels(charts.png(found["figure-5"].chart, 1))
    assert (picture < 200).any(axis=2).sum() > 1000
    assert f"(number: {replications})" in found["figure-5"].caption


# --- loss against risk ---


def test_a_map_has_every_setting_its_frontier_and_both_levels(figures, pictures):
    name = "risk-map-census"
    table, svg = figures[name].table, pictures[name]
    assert points(svg) == table.height == sum(map(len, GRIDS.values()))
    costs = table.select("brmae", "linkage").rows()
    beaten = [any(x <= a and y <= b and (x, y) != (a, b) for x, y in costs) for a, b in costs]
    assert table["frontier"].to_list() == [not worse for worse in beaten]
    assert 0 < table["frontier"].sum() < table.height
    for text in ("better", "unrelated order 0.650", "information loss (brMAE)", "additive noise", "300 %"):
        assert f">{text}</text>" in svg
    assert figures[name].risk
    assert "Ringed points" in figures[name].caption


def test_a_map_reaches_from_0_to_1(pictures):
    for axis in ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0"):
        assert pictures["risk-map-census"].count(f">{axis}</text>") == 2


def test_a_study_without_attacks_has_no_figures_of_risk():
    bare = Study(measured("Census"), levels("Census"), tie_range("Census"))
    assert not any(figure.risk for figure in all_figures(bare, rng=1, draws=50))
    with pytest.raises(ValueError, match="were not attacked"):
        _ = bare.required_risks
