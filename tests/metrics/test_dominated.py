"""Figures from which the value of one record follows are not published."""

import json
from itertools import product

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from cases import each
from command import good
from naive_risk import dominated_sum
from sdckit.metrics.blocks import Contributions
from sdckit.metrics.publishable import fails_p_rule, is_dominated

CHANGES = ["mae", "mse", "mse_marginal", "mse_permutation", "il1", "il1s"]


def largest_by(name, value, masked, k):
    """The largest original value by an intruder who takes all changes for those of the top group."""
    top, n = masked.max(), len(masked)
    return top + (np.sqrt(n * value * (k - 1) / k) if name == "mse" else n * value / 2)


def public_values(folder):
    """The losses that JSON and CSV of `sdckit evaluate` print for the whole file, by name; and the report."""
    command = ["evaluate", "original.csv", "masked.csv", "--metrics", ",".join(CHANGES)]
    as_json = json.loads(good(folder, *command, "--json").stdout)
    as_csv = pl.read_csv(good(folder, *command, "--csv").stdout.encode())
    good(folder, *command, "--report", "report.html", "-q")
    rows = [row for row in as_json["table"] if row["value"] is not None]
    assert as_csv["value"].is_not_null().sum() == len(rows)
    return {row["metric"]: row["value"] for row in rows}, (folder / "report.html").read_text()


@pytest.mark.long
def test_no_largest_value_follows_from_losses_of_one_variable(tarragona):
    found = tried = 0
    for column, k in product(tarragona.columns, (2, 3, 5)):
        original = tarragona.select(column)
        masked = sdc.mask(original, "mdav", k=k)
        result = sdc.evaluate(original, masked, metrics=CHANGES)
        public, x, y = result.public(), original[column].to_numpy(), masked[column].to_numpy()
        for name in ("mae", "mse"):
            tried += abs(largest_by(name, result[name], y, k) / x.max() - 1) < 0.1
            found += abs(largest_by(name, public[name], y, k) / x.max() - 1) < 0.1
            if np.isnan(public[name]):
                assert public.meaning[name].startswith("withheld")
    assert tried >= 20  # the attack works on what is measured
    assert found == 0


@pytest.mark.long
def test_commands_and_report_withhold_what_one_record_dominates(tmp_path):
    rng = np.random.default_rng(1)
    values = np.round(np.append(rng.uniform(1, 2, 199), 1e6), 3)
    original = pl.DataFrame({"income": rng.permutation(values)})
    masked = sdc.mask(original, "mdav", k=3)
    original.write_csv(tmp_path / "original.csv")
    masked.write_csv(tmp_path / "masked.csv")
    shown, page = public_values(tmp_path)
    result = sdc.evaluate(original, masked, metrics=CHANGES)
    assert not set(shown) & {"mae", "mse", "mse_marginal", "il1s"}
    assert result["mse"] > 0  # Python objects keep it
    assert f"{result['mse']:.3e}" not in page
    assert "one record dominates" in page
    command = ["evaluate", "original.csv", "masked.csv", "--metrics", "mse", "--json", "--private-output"]
    private = good(tmp_path, *command)
    assert json.loads(private.stdout)["table"][0]["value"] == pytest.approx(result["mse"])


def test_a_sum_is_withheld_with_its_parts():
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "even": rng.normal(size=200),
            "odd": np.append(rng.normal(size=199), 1e6),
            "region": ["n", "s"] * 100,
        }
    )
    masked = frame.with_columns(odd=pl.col("odd") * 1.5 + 0.1, even=pl.col("even") + rng.normal(size=200))
    result = sdc.Microdata(frame, by="region").evaluate(masked, metrics=["mae", "brmae"])
    public = result.public().table
    hidden = public.filter(pl.col("value").is_null()).select("metric", "stratum", "variable").rows()
    assert set(hidden) == {("mae", s, v) for s in ("all", "s") for v in ("all", "odd")}


@each("seed", range(40))
def test_rules_of_dominance_are_those_of_the_twin(seed):
    rng = np.random.default_rng(seed)
    values = rng.lognormal(sigma=rng.uniform(0, 4), size=rng.integers(1, 30)) * rng.choice([-1, 1])
    found = Contributions.of(values)
    assert (fails_p_rule(found), is_dominated(found)) == dominated_sum(values.tolist())


def test_unchanged_values_are_not_dominated():
    assert not is_dominated(Contributions.of(np.zeros(5)))
    assert not is_dominated(Contributions.of(np.empty(0)))


def test_recommendations_withhold_losses_that_one_record_may_dominate(tmp_path):
    rng = np.random.default_rng(3)
    pl.DataFrame({"income": rng.permutation(np.append(rng.uniform(1, 2, 99), 1e6))}).write_csv(
        tmp_path / "data.csv"
    )
    command = ["recommend", "data.csv", "--method", "mdav", "--max-risk", "linkage=0.34", "--minimise", "mse"]
    done = good(tmp_path, *command, "-o", "masked.csv", "--report", "report.html", "--json")
    found = json.loads(done.stdout)
    assert found["choice"]["values"]["mse"] is None
    assert "MSE withheld" in (tmp_path / "report.html").read_text()
    assert not [row for row in found["table"] if row["metric"] == "mse" and row["value"] is not None]
    assert "mse withheld" in " ".join(found["choice"]["sentences"])
