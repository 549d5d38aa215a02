"""No public output has an exact figure of an estimate, the name of an original domain, or a hidden weight."""

import json
import re

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from command import good, run_here
from sdckit.estimation.guards import public_rows

ESTIMATES = ["total(x) by g", "mean(y)", "correlation(x, y)", "model: log(y) ~ log(x)"]
WORDS = ["--key", "id", "--columns", "x,y", *(word for text in ESTIMATES for word in ("--estimate", text))]
SEARCH = ["--grid", "mdav.k=5:10:5", "--max-risk", "linkage=1", "--minimise", "estimates", "--workers", "1"]


def survey(n=150):
    """A file with a group of five records, and weights."""
    rng = np.random.default_rng(5)
    x = np.round(rng.lognormal(5, 0.6, n), 1)
    group = np.where(np.arange(n) < 5, "Z", rng.choice(["A", "B"], n))
    columns = {"x": x, "y": np.round(x * rng.lognormal(0, 0.4, n), 1), "w": np.round(rng.uniform(1, 9, n), 3)}
    return pl.DataFrame({"id": np.arange(n), "g": group, **columns})


def told(output, secrets):
    """The secrets that an output has with four significant digits or more, wherever their point stands."""
    words = {re.sub(r"\D", "", word).strip("0") for word in re.findall(r"\d[\d,]*\.?\d*", output)}
    shown = {digits for digits in words if len(digits) >= 4}
    return {one for one in secrets if shown & {digits_of(one, count) for count in range(4, 18)}}


def digits_of(value, count):
    """So many significant digits of a number, without zeros at the end."""
    return f"{value:.{count - 1}e}".partition("e")[0].replace(".", "").strip("0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("estimates")
    survey().drop("w").write_csv(place / "d.csv")
    return place


def test_a_release_and_a_missed_limit_tell_no_exact_figure(folder):
    words = ["recommend", "d.csv", *SEARCH, *WORDS, "--private", "p", "--json"]
    done = good(folder, *words, "-o", "r.csv", "--report", "r.html", "--max-loss", "estimates_worst=1")
    exact = json.loads(
        good(
            folder, "evaluate", "d.csv", "r.csv", *WORDS, "--private", "p", "--json", "--private-output"
        ).stdout
    )
    names = ("original", "se_original", "change", "change_in_se", "overlap", "low_original", "high_original")
    secrets = {abs(row[name]) for row in exact["estimates"] for name in names if row[name]}
    secrets |= {row["value"] for row in exact["table"] if row["metric"].startswith("estimates")}
    public = {abs(row[name]) for row in exact["estimates"] for name in ("masked", "se_masked") if row[name]}
    secrets = {one for one in secrets if not any(f"{one:.3e}" == f"{other:.3e}" for other in public)}
    assert len(secrets) > 20
    assert told(json.dumps(exact), secrets) >= {one for one in secrets if len(digits_of(one, 17)) > 3}
    secrets |= {1 - one for one in secrets if one < 1} - {0.0, 1.0}
    page = re.sub(r"<script>.{50000,}?</script>", "", (folder / "r.html").read_text(), flags=re.DOTALL)
    assert told(page.partition('<section id="estimates">')[2].partition("</section>")[0], secrets) == set()
    found = json.loads(done.stdout)
    assert (
        told(json.dumps([found[name] for name in ("estimates", "choice", "meaning", "parts")]), secrets)
        == set()
    )
    missed = run_here(folder, *words, "-o", "m.csv", "--max-loss", "estimates_worst=0.0001")
    choice = json.loads(missed.stdout)["choice"]
    for text in (choice["reason"], *choice["sentences"], missed.stderr):
        assert "estimates_worst withheld (limit 0.0001)" in text


def test_the_files_of_a_sweep_have_no_withheld_loss(folder):
    good(folder, "sweep", "d.csv", "-o", "s", *SEARCH[:2], *WORDS, "--workers", "1", "--format", "csv")
    for name in ("sweep.csv", "summary.csv", "sweep.svg"):
        assert "estimates" not in (folder / "s" / name).read_text()
    kept = pl.read_csv(folder / "s" / "private" / "estimates.csv")
    assert set(kept["metric"]) == {"estimates", "estimates_worst"}


def test_a_loss_over_many_estimates_is_rounded():
    data = survey().filter(pl.col("g") != "Z").drop("w")
    texts = [f"{kind}({name}){by}" for kind in ("total", "mean") for name in "xy" for by in ("", " by g")]
    swept = sdc.Microdata(data, key="id", estimates=texts).sweep(
        {"mdav": {"k": [5]}}, metrics=["estimates", "linkage"]
    )
    assert swept.withheld == {"estimates_worst"}
    exact, public = (one.summary.filter(metric="estimates")["value"][0] for one in (swept, swept.public()))
    point = swept.curves[0][0]
    assert exact != public == round(exact, 2) == point.public().values["estimates"]
    made = (
        sdc.Microdata(data, key="id", estimates=texts).release("mdav", k=5, metrics=["estimates"]).evaluation
    )
    assert made.public()["estimates"] == round(made["estimates"], 2) != made["estimates"]


def test_the_plot_of_a_sweep_has_no_withheld_loss():
    swept = sdc.Microdata(
        survey().drop("w"), key="id", columns=["x", "y"], estimates=["mean(y)", "total(x)"]
    ).sweep({"mdav": {"k": [5]}}, metrics=["estimates", "estimates_worst", "brmae"])
    assert swept.withheld == {"estimates", "estimates_worst"}
    secrets = set(swept.table.filter(pl.col("metric").is_in(list(swept.withheld)))["value"])
    drawn = json.dumps(swept.plot().to_dict())
    assert told(drawn, secrets) == set()
    assert told(drawn, set(swept.table.filter(metric="brmae")["value"]))
    with pytest.raises(
        ValueError, match="estimates_worst is not for publication; take its values from table"
    ):
        swept.plot(["brmae", "estimates_worst"])


@pytest.mark.parametrize("text", ["total(y) by x", "model: y ~ C(x)"])
def test_domains_that_only_the_original_has_are_not_named(text):
    data = survey(60).drop("w")
    made = sdc.Microdata(data, key="id", estimates=[text, "mean(y)"]).release(
        "mdav", k=5, metrics=["estimates"]
    )
    masked = set(made.data["x"].to_list())
    lost = [one for one in data["x"].to_list() if one not in masked]
    assert len(lost) > 40
    names = [row.name for row in public_rows(made.evaluation.estimates)]
    own = [row["domain"] + row["estimate"] for row in made.evaluation.estimates.table.rows(named=True)]
    assert any(str(one) in name for one in lost for name in own)
    labels = {float(one) for name in names for one in re.findall(r"\d+(?:\.\d+)?", name)}
    assert not labels & set(lost)


def test_figures_with_weights_that_are_not_published_are_not_told():
    options = {"key": "id", "weights": "w", "estimates": "total(x) by g", "metrics": ["estimates"]}
    open_, closed = (
        called("release", survey(), "mdav", k=5, columns=["x", "y"], **more, **options).evaluation.estimates
        for more in ({"unknown": "w"}, {"drop": "w"})
    )
    assert all(row.masked is not None for row in public_rows(open_))
    assert all(row.masked is row.se_masked is None for row in public_rows(closed))
    assert any(row.change_in_se is not None for row in public_rows(closed))
