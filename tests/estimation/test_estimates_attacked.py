"""No value of the original follows from the public rows of estimates; without the guard many do."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from estimates_intruder import interval, is_told, sums_of, total_of, value_of
from sdckit.estimation.compare import measure
from sdckit.estimation.guards import Class, Guard, Protection, public_rows, public_table, summary_sentences
from sdckit.estimation.models import levels_of
from sdckit.estimation.parse import parse_estimates
from sdckit.estimation.survey_file import survey_files

NEAR = 1.0005  # a masking that changes so little that all changes are in the first classes


class Told:
    """Public rows on a file whose values of x a masking has multiplied; `guarded` with the guard."""

    def __init__(self, data, texts, *, factor=NEAR, guarded=True, sums=(), unit=None, weights=None):
        factors = factor if isinstance(factor, list) else [factor] * data.width
        masked = data.with_columns(
            pl.col(name) * one
            for name, one in zip(data.columns, factors, strict=True)
            if data[name].dtype == pl.Float64 and name != weights
        )
        file, _ = survey_files(data, [], weights=weights, strata=None, unit=unit, na=None)
        requests = parse_estimates(texts)
        levels = levels_of(file, requests)
        self.protection = Protection(file, requests, levels, measure(file, requests, levels), sums)
        other, _ = survey_files(masked, [], weights=weights, strata=None, unit=unit, na=None)
        guards = self.protection.guards(measure(other, requests, levels))
        self.guards = guards if guarded else dict.fromkeys(guards, Guard())
        self.found = replace(
            sdc.estimates(data, masked, texts, unit=unit, weights=weights), guards=self.guards
        )
        self.public = public_rows(self.found)
        self.rows = list(public_table(self.public).iter_rows(named=True))
        self.of = {(row["estimate"], row["domain"]): row for row in self.rows}
        table = self.found.table
        exact = table.select("se_original", "original").rows()
        self.exact = dict(zip(table.select("estimate", "domain").rows(), exact, strict=True))

    def reason(self, text, domain="all"):
        return self.of[text, domain]["withheld"]


def members(data, texts, column="x"):
    """The records that each total or mean of a column is over."""
    found = {}
    for text in texts:
        by = text.partition(" by ")[2].split(", ") if " by " in text else []
        if f"({column})" not in text:
            continue
        labels = [", ".join(map(str, row)) for row in data.select(by).rows()] if by else ["all"] * data.height
        for place, label in enumerate(labels):
            found.setdefault((text, label), set()).add(place)
    return found


def attacked(data, texts, **options):
    """Names of the small domains, and numbers of the records, whose values the public rows tell."""
    told, x = Told(data, texts, **options), data["x"].to_numpy()
    own = members(data, texts)
    sums = sums_of(told.rows, own, told.exact)
    small = {key: inside for key, inside in own.items() if len(inside) < 10}
    domains = {
        key[1]
        for key, inside in small.items()
        if is_told(total_of(inside, sums, len(x)), x[list(inside)].sum())
    }
    records = {place for place in range(len(x)) if is_told(value_of(place, x, sums), x[place])}
    return domains, records


def even(sizes, seed=1):
    """A file of groups with so many records each, of values that are much alike."""
    rng = np.random.default_rng(seed)
    groups = [label for label, size in sizes.items() for _ in range(size)]
    return pl.DataFrame({"x": np.round(rng.uniform(80, 120, len(groups)), 2), "g": groups})


def test_domains_of_one_and_nine_records_are_withheld_and_one_of_ten_is_not():
    data, texts = even({"one": 1, "nine": 9, "ten": 10, "many": 60}), ["total(x) by g", "mean(x) by g"]
    bare, _ = attacked(data, texts, guarded=False)
    assert bare == {"one", "nine"}
    assert attacked(data, texts) == (set(), set())
    told = Told(data, texts)
    for text in texts:
        assert told.reason(text, "one") == told.reason(text, "nine") == "fewer than ten records"
        assert told.reason(text, "ten") is told.reason(text, "many") is None
    assert told.of["total(x) by g", "ten"]["change"] == "below 5 %"  # a record has more than a tenth of it
    assert told.of["total(x) by g", "many"]["change"] == "below 1 %"
    assert told.found.some_withheld


ONE, TWO = [3000.0], [1200.0, 1150.0]


@pytest.mark.parametrize(
    ("text", "large"),
    [
        *(
            (text, large)
            for text in ("total(x)", "mean(x)", "ratio(x, one)", "gini(x)")
            for large in (ONE, TWO)
        ),
        ("correlation(x, z)", ONE),
    ],
)
def test_what_one_record_dominates_is_withheld(text, large):
    small = [1.0 + place / 9 for place in range(20 - len(large))]
    x = np.array([*large, *small])
    data = pl.DataFrame({"x": x, "one": np.ones(20), "z": x[::-1] + 0.5 * x})
    bare = Told(data, [text], guarded=False)
    second = sum(large[1:])  # the second largest contributor looks for the largest value
    if text == "total(x)":
        low, high = interval(bare.rows[0], *bare.exact[text, "all"])
        assert is_told((low - second - sum(small), high - second), large[0])
    assert bare.reason(text) is None
    assert Told(data, [text]).reason(text) == "one record or unit dominates"


def test_a_unit_with_many_records_counts_as_one():
    data = pl.DataFrame(
        {
            "x": [100.0 + place % 7 for place in range(120)],
            "firm": [f"f{place // 12}" for place in range(120)],
            "state": ["a"] * 60 + ["b"] * 60,
        }
    )
    told = Told(data, ["total(x) by state", "mean(x)"], unit="firm")
    assert told.reason("total(x) by state", "a") == "fewer than ten units"
    assert told.reason("mean(x)") is None
    large = data.with_columns(x=pl.when(pl.col("firm") == "f1").then(pl.col("x") * 20).otherwise("x"))
    assert Told(large, ["mean(x)"], unit="firm").reason("mean(x)") == "one record or unit dominates"
    assert Told(large, ["mean(x)"]).reason("mean(x)") is None  # none of its twelve records does


@pytest.mark.parametrize(("size", "count", "follows"), [(1, 1, False), (30, 1, True), (6, 5, True)])
def test_a_withheld_domain_does_not_follow_by_subtraction(size, count, follows):
    data = even({"many": 60, "others": 40, "few": count}).with_columns(
        x=pl.when(pl.col("g") == "few").then(100.0 * size).otherwise("x")
    )
    for texts in (["total(x)", "total(x) by g"], ["mean(x)", "total(x) by g"], ["total(x)", "mean(x) by g"]):
        told, few = Told(data, texts), set(range(100, 100 + count))
        own = members(data, texts)
        naive = [row if row["withheld"] else told_freely for row, told_freely in _both(told, data, texts)]
        found = total_of(few, sums_of(naive, own, told.exact), data.height)
        assert is_told(found, 100.0 * size * count) == follows  # classes alone hide small values only
        assert attacked(data, texts) == (set(), set())


def _both(told, data, texts):
    """Each guarded row beside the same without the guard."""
    return zip(told.rows, Told(data, texts, guarded=False).rows, strict=True)


def test_nested_and_other_domains_do_not_tell_a_small_one():
    data = even({"many": 60, "lone": 1}).with_columns(
        x=pl.when(pl.col("g") == "lone").then(2500.0).otherwise("x"),
        state=pl.Series(["a"] * 30 + ["b"] * 31),
        area=pl.Series(["a"] * 30 + ["b"] * 30 + ["a"]),  # differs from the state in one record
    )
    for texts in (
        ["total(x) by state", "total(x) by state, g"],
        ["total(x) by state", "total(x) by area"],
    ):
        assert attacked(data, texts, guarded=False)[1] == {60}
        assert attacked(data, texts) == (set(), set())


def test_a_sum_and_its_parts_do_not_tell_a_small_domain():
    x = pl.when(pl.col("g") == "few").then(1200.0).otherwise("x")
    data = even({"many": 60, "few": 5}).with_columns(x=x, y=100.0 + pl.int_range(65) % 5)
    data = data.with_columns(t=pl.col("x") + pl.col("y"))
    texts, n = ["total(t)", "total(y)", "total(x) by g"], data.height
    own = {("total(t)", "all"): set(range(2 * n)), ("total(y)", "all"): set(range(n, 2 * n))}
    own |= members(data, texts[2:])
    for sums, follows in (((), True), ([("t", "x", "y")], False)):
        told = Told(data, texts, sums=sums)
        found = total_of(set(range(60, 65)), sums_of(told.rows, own, told.exact), 2 * n)
        assert is_told(found, 6000.0) == follows
        assert told.reason("total(x) by g", "few") == "fewer than ten records"


def test_both_classes_of_a_coefficient_together_do_not_tell_a_record():
    rng = np.random.default_rng(5)
    v = rng.uniform(1, 2, 40)
    data = pl.DataFrame({"x": 20 * v + rng.normal(0, 4, 40), "v": v})
    joined = 0
    for shift in np.linspace(0.9, 1.1, 41):
        told = Told(data, ["model: x ~ v"], factor=[shift, 1.0])
        for share in told.protection.shares:
            row, (error, truth) = told.of[share.key], told.exact[share.key]
            if row["withheld"] or truth < 0:
                continue
            low, high = interval(row, error, truth)
            assert max(truth - low, high - truth) >= 0.1 * share.hidden * truth - 1e-9
            joined += told.guards[share.key] != told.protection.first[share.key]
    assert joined


FACTORS = [NEAR, 1.03, 0.93, NEAR, 1.07, 0.97, 1.06, 1.09]


@pytest.mark.parametrize(("seed", "factor"), list(enumerate(FACTORS)))
def test_no_value_of_a_skewed_file_is_told(seed, factor):
    rng = np.random.default_rng(seed)
    n = 90
    data = pl.DataFrame(
        {
            "x": np.round(rng.lognormal(4, rng.uniform(0.3, 1.8), n), 2),
            "a": rng.choice(["p", "q", "r"], n, p=[0.5, 0.38, 0.12]),
            "b": rng.choice(["u", "v"], n, p=[0.9, 0.1]),
        }
    )
    texts = ["total(x)", "total(x) by a", "mean(x) by a, b", "total(x) by b"]
    bare, guarded = (attacked(data, texts, guarded=on, factor=factor) for on in (False, True))
    assert any(map(len, bare))
    assert guarded == (set(), set())


def test_few_records_in_a_class_tell_no_coefficient():
    data = even({"a": 30, "b": 30, "z": 4}).with_columns(v=pl.int_range(64) * 1.0)
    model, flat = "model: x ~ g + v", "model: x ~ g"
    told = Told(data, [model, flat])
    assert told.reason(f"{model} [g[T.z]]") == "fewer than ten records differ in the term"
    assert told.reason(f"{model} [g[T.b]]") is told.reason(f"{model} [v]") is None
    first = data.with_columns(g=pl.when(pl.int_range(64) < 63).then("g").otherwise(pl.lit("0")))
    bare = Told(first, [flat], guarded=False)  # the intercept is the one record of the first class
    key = f"{flat} [Intercept]"
    assert is_told(interval(bare.of[key, "all"], *bare.exact[key, "all"]), first["x"][63])
    assert all("compared with" in row["withheld"] for row in Told(first, [flat]).rows)
    lever = data.with_columns(v=pl.when(pl.int_range(64) == 5).then(1e6).otherwise("v"))
    assert Told(lever, ["model: x ~ v"]).reason("model: x ~ v [v]") == "one record or unit dominates"


def test_shares_quantiles_and_logits_of_few_records_are_withheld():
    data = pl.DataFrame({"x": [float(place + 1) for place in range(100)]}).with_columns(
        y=(pl.col("x") > 95).cast(pl.Int64), half=(pl.col("x") * 37 % 101 > 50).cast(pl.Int64)
    )
    texts = ["share(x > 95)", "share(x < 96)", "share(x > 50)", "quantile(x, 0.97)", "median(x)"]
    texts += ["logit: y ~ x", "logit: half ~ x"]
    told = Told(data, texts, factor=1.0)
    reasons = {row["estimate"]: row["withheld"] for row in told.rows}
    assert reasons["share(x > 95)"] == reasons["share(x < 96)"] == "fewer than ten records contribute"
    assert reasons["quantile(x, 0.97)"] == "fewer than ten records lie on one side of it"
    assert reasons["share(x > 50)"] is reasons["median(x)"] is reasons["logit: half ~ x [x]"] is None
    assert reasons["logit: y ~ x [x]"] == "fewer than ten records have one of both responses"


def test_public_rows_have_no_direction_and_no_original_figure():
    data = even({"many": 60, "one": 1})
    for factor, change in ((1.08, "5 to 10 %"), (0.92, "5 to 10 %"), (1.3, "above 10 %"), (0.97, "1 to 5 %")):
        told = Told(data, ["total(x) by g"], factor=factor)
        row = told.of["total(x) by g", "many"]
        assert row["change"] == change
        assert (row["sign"], row["significance"]) == ("kept", "kept")
        table = told.found.table.row(0, named=True)
        exact = [table[name] for name in ("original", "se_original", "change", "change_in_se", "overlap")]
        assert not {*exact, *map(abs, exact), table["records_original"]} & set(row.values())
    unguarded = public_rows(replace(told.found, guards={}))
    assert [row.withheld for row in unguarded] == ["fewer than ten records"] * 2
    assert summary_sentences(unguarded) == ["How far the 2 declared estimates moved is withheld."]


def test_sentences_count_no_withheld_estimate_as_unmoved():
    told = Told(even({"many": 60, "more": 60, "one": 1}), ["total(x) by g"], factor=1.5)
    rows = public_rows(told.found)
    gone = [row for row in rows if row.withheld]
    assert len(gone) == 1
    told_rows = [row for row in rows if not row.withheld]
    sentences = summary_sentences(rows)
    assert (
        sentences[0]
        .split(" moved by")[0]
        .endswith(f"of the {len(told_rows)} declared estimates whose change in standard errors is told")
    )
    assert sentences[-1].startswith("How far 1 of 3 moved is withheld")
    rough = [replace(row, change_in_se=Class(0.0, 2.0)) for row in told_rows]
    assert not any("by less than half" in one for one in summary_sentences(rough))


def test_a_large_weight_counts_as_a_large_value():
    data = even({"a": 30}).with_columns(w=pl.Series([40.0, *[1.0] * 29]))
    assert (
        Told(data, ["mean(x)"], factor=1.0, weights="w").reason("mean(x)") == "one record or unit dominates"
    )
    assert Told(data, ["mean(x)"], factor=1.0).reason("mean(x)") is None
