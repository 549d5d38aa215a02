"""Tables of the reproduced study: small cases by hand, exact counts, scipy and R's figures as yardsticks."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

import naive
from sdckit.paper import correlations as study
from sdckit.paper import verdicts
from sdckit.paper.design import NOTE_METHODS
from sdckit.paper.verdicts import (
    PRINTED,
    all_distances,
    distance_counts,
    distance_facts,
    permutation_table,
    random_distances,
    rankings,
    table_is_right,
)

COUNTS = {
    5: [1, 4, 12, 24, 35, 24, 20],
    6: [1, 5, 18, 46, 93, 137, 148, 136, 100, 36],
    7: [1, 6, 25, 76, 187, 366, 591, 744, 884, 832, 716, 360, 252],
}
ABSOLUTE = {n: {2 * i: count for i, count in enumerate(counts)} for n, counts in COUNTS.items()}
METHODS = ("mdav", "noise", "correlated_noise", "rank_swap", "rank_swap_no_tails")
LOSSES = [f"{metric}_{ties}" for ties in study.TIES for metric in study.BOUNDED] + list(study.UNBOUNDED)


# --- rankings ---


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_every_ranking_is_listed_once(n):
    found = [tuple(ranking) for ranking in rankings(n).tolist()]
    assert sorted(found) == sorted(itertools.permutations(range(1, n + 1)))


def test_the_order_is_that_of_the_note():
    assert [rankings(4)[i].tolist() for i in (5, 6, 15, 22)] == [
        [1, 4, 2, 3],
        [1, 3, 4, 2],
        [4, 1, 3, 2],
        [4, 2, 3, 1],
    ]
    lexicographic = np.array(list(itertools.permutations(range(1, 5))))
    assert not np.array_equal(rankings(4), lexicographic)


def test_the_tables_of_the_note_are_right_and_a_wrong_one_is_found(monkeypatch):
    assert table_is_right(3)
    assert table_is_right(4)
    right = PRINTED[3]
    monkeypatch.setitem(PRINTED, 3, right._replace(squared="0 2 2 6 8 8"))
    assert not table_is_right(3)
    assert verdicts.judge_claims(series())["verdict"][1] == "holds in part"


def test_a_table_as_printed():
    table = permutation_table(3)
    assert table.columns == ["row", "1", "2", "3", "4", "5", "6"]
    ranks, gaps = [f"r2[{i}]" for i in (1, 2, 3)], [f"r1-r2[{i}]" for i in (1, 2, 3)]
    assert table["row"].to_list() == [*ranks, *gaps, "absolute", "squared", "brmae", "brmse"]
    assert table["5"].to_list() == ["2", "3", "1", "-1", "-1", "2", "4", "6", "1.0000", "0.7500"]


@pytest.mark.parametrize("n", ABSOLUTE)
def test_exact_counts_of_absolute_distances(n):
    counts = distance_counts(all_distances(n)).filter(metric="brmae")
    assert dict(counts.select("distance", "count").iter_rows()) == ABSOLUTE[n]
    assert counts["value"].to_list() == pytest.approx([distance / (n * n // 2) for distance in ABSOLUTE[n]])


def test_facts_for_captions():
    facts = distance_facts(pl.concat(map(all_distances, range(3, 8))))
    absolute, squared = (facts.filter(metric=metric) for metric in study.BOUNDED)
    assert absolute["at_largest"].to_list() == [3, 4, 20, 36, 252]
    assert squared["at_largest"].to_list() == [1, 1, 1, 1, 1]
    assert squared["distinct"].to_list() == [4, 11, 21, 36, 57]
    assert absolute["mean"].to_list()[2:] == pytest.approx([2 / 3, 35 / 54, 2 / 3])
    assert squared["mean"].to_list() == pytest.approx([0.5] * 5)
    assert squared["sd"].to_list() == pytest.approx([0.5 / math.sqrt(n - 1) for n in range(3, 8)])


def test_distances_equal_the_slow_twin():
    for ranking, row in zip(rankings(5), all_distances(5).rows(), strict=True):
        assert row[2:4] == naive.ranking_distances(ranking.tolist())


def test_random_rankings():
    found = random_distances(100, 2000, rng=3)
    assert found["kind"].to_list() == ["identity", *["random"] * 2000, "reversal"]
    assert found.select("brmae", "brmse").row(0) == (0, 0)
    assert found.select("brmae", "brmse").row(-1) == (1, 1)
    drawn = found.filter(kind="random")
    mean, sd = 2 / 3 * (1 - 1e-4), math.sqrt(101 * 20007 / 45) / 5000
    assert abs(drawn["brmae"].mean() - mean) < 5 * sd / math.sqrt(2000)
    assert abs(drawn["brmse"].mean() - 0.5) < 5 * 0.5 / math.sqrt(99 * 2000)
    assert drawn["brmae"].std() == pytest.approx(sd, rel=0.1)
    assert found.equals(random_distances(100, 2000, rng=3))


@pytest.mark.parametrize("n", [1, 10])
def test_too_few_or_too_many_records(n):
    with pytest.raises(ValueError, match=f"n is {n}; give 2 to 9"):
        all_distances(n)


# --- correlations ---


def series(methods=METHODS, datasets=("Tarragona", "Census"), replications=3, points=30, seed=5):
    """A made-up study in which every loss follows its grid with some noise, IL1 with most."""
    rng = np.random.default_rng(seed)
    frames = []
    for dataset, method in itertools.product(datasets, methods):
        for replication in range(1, (1 if method == "mdav" else replications) + 1):
            size = points - 10 if method == "mdav" else points
            grid = np.arange(1, size + 1) / 10
            noisy = {name: grid + rng.normal(0, 0.3 if name == "il1" else 0.06, size) for name in LOSSES}
            bounded = {name: loss / 10 for name, loss in noisy.items() if name.startswith("br")}
            labels = {"dataset": dataset, "method": method, "setting": grid, "replication": replication}
            frames.append(pl.DataFrame(labels | noisy | bounded))
    return pl.concat(frames)


def value_of(table, column="spearman", **labels):
    return table.filter(**labels)[column].item()


def test_correlations_equal_scipy_with_ties():
    measured = series(points=40).with_columns(pl.col(*LOSSES, "setting").round(1))
    one = measured.filter(dataset="Census", method="noise", replication=2)
    assert one["mse"].n_unique() < 40  # there are ties
    found = study.correlations(measured).filter(dataset="Census", method="noise", replication=2)
    for (metric, ties), (reference, column) in itertools.product(
        [("mse", "-"), ("brmse", "expected")], [("parameter", "setting")]
    ):
        name = metric if ties == "-" else f"{metric}_{ties}"
        expected = stats.spearmanr(one[name], one[column]).statistic
        assert value_of(found, metric=metric, ties=ties, reference=reference) == pytest.approx(expected)
    expected = stats.spearmanr(one["il1"], one["brmae_average"]).statistic
    assert value_of(found, metric="il1", ties="average", reference="brmae") == pytest.approx(expected)


def test_correlations_have_one_row_per_case():
    measured = series()
    found = study.correlations(measured)
    assert found.columns == [*study.CASE, "replication", "spearman"]
    assert found.select(*study.CASE, "replication").is_unique().all()
    assert found.height == 2 * (1 + 4 * 3) * (6 + 4 + 3 * 2 * 4)


def test_no_correlation_of_constant_or_missing_losses():
    measured = series(methods=("noise",), datasets=("a",), replications=1)
    for loss in (0.1, None, math.nan):
        changed = (
            pl.when(pl.col("setting") > (0 if loss == 0.1 else 2.95)).then(pl.lit(loss)).otherwise("mae")
        )
        found = study.correlations(measured.with_columns(mae=changed))
        assert found.filter(metric="mae")["spearman"].is_null().all()
        assert found.filter(pl.col("metric") != "mae")["spearman"].is_not_null().all()


def test_five_numbers_are_those_of_type_7():
    values = [0.3, 0.1, 0.8, 0.4]
    labels = dict.fromkeys(study.CASE, "x")
    found = study.summarise_replications(
        pl.DataFrame([labels | {"spearman": value} for value in [*values, None]])
    )
    assert found.columns == [*study.CASE, "replications", "min", "q25", "median", "q75", "max"]
    assert found.row(0)[5:] == pytest.approx((4, 0.1, 0.25, 0.35, 0.5, 0.8))


def test_disagreement_equals_the_slow_twin_and_weighs_pairs():
    measured = series().with_columns(pl.col(*LOSSES).round(1))
    found = study.disagreement(measured, ties="average", replication=1).filter(dataset="Census")
    chosen = measured.filter(pl.col("method").is_in(NOTE_METHODS), dataset="Census", replication=1)
    expected = naive.ordered_differently(*(chosen[c].to_list() for c in ("method", "brmae_average", "il1")))
    case = {"metric": "brmae", "other_metric": "il1"}
    assert value_of(found, "share", method="all", **case) == pytest.approx(expected)
    parts = found.filter(pl.col("method") != "all", **case)
    assert parts.height == 6
    assert parts["pairs"].sum() == value_of(found, "pairs", method="all", **case) == 3 * 20 * 30 + 3 * 30 * 30


def test_disagreement_of_one_method_has_no_rows():
    found = study.disagreement(series(methods=("noise",)))
    assert found.height == 0
    assert found.columns == list(study.SHARES)


# --- beside R ---

R_METHODS = dict(zip(("mdav", "additive", "correlated", "rankswap", "rankswap0"), METHODS, strict=True))
R_METRICS = dict(
    zip(
        ("brMAE_first", "brMSE_first", "MAE", "MSE", "IL1_drop", "IL1s"),
        (*study.BOUNDED, *study.UNBOUNDED),
        strict=True,
    )
)


def test_figures_of_r_are_those_measured(golden):
    ours = verdicts.sdcmicro_correlations()
    assert ours.height == 2 * 5 * (6 + 2 * 4)
    runs = {row[:5]: row[5] for row in pl.read_csv(golden / "spearman.csv").iter_rows()}
    names = ("dataset", "method", "metric", "min", "q25", "median", "q75", "max")
    rows = pl.read_csv(golden / "replications.csv").select(names).iter_rows()
    replicated = {row[:3]: row[3:] for row in rows}
    methods, metrics = ({value: key for key, value in names.items()} for names in (R_METHODS, R_METRICS))
    for dataset, method, metric, reference, run, *five in ours.iter_rows():
        grid = reference == "parameter"
        kind, other = ("vs_parameter", reference) if grid else ("vs_bounded_metric", metrics[reference])
        theirs = methods[method], metrics[metric]
        assert run == pytest.approx(runs[dataset, *theirs, kind, other], abs=6e-7)
        expected = replicated.get((dataset, *theirs)) if grid else None
        assert five == ([None] * 5 if expected is None else pytest.approx(list(expected), abs=6e-7))


def as_in_r(replications=30):
    """Correlations that equal R's: the run first, then the median as often as it takes."""
    frames = []
    for row in verdicts.sdcmicro_correlations().iter_rows(named=True):
        labels = {name: row[name] for name in verdicts.KEY} | {"ties": "first"}
        values = [row["spearman"], *[row["median"]] * (replications - 1 if row["median"] else 0)]
        frames += [labels | {"replication": i + 1, "spearman": value} for i, value in enumerate(values)]
    return pl.DataFrame(frames, infer_schema_length=None)


def changed(method, metric, reference, by, *, first_only=False):
    here = (pl.col("method") == method) & (pl.col("metric") == metric) & (pl.col("reference") == reference)
    here &= (pl.col("dataset") == "Tarragona") & ((pl.col("replication") == 1) if first_only else True)
    table = as_in_r().with_columns(spearman=pl.when(here).then(pl.col("spearman") + by).otherwise("spearman"))
    found = verdicts.compare_with_sdcmicro(table)
    assert found.columns == list(verdicts.COLUMNS)
    assert found.filter(pl.col("met") == (pl.col("explanation") != "")).height == 0
    return found.filter(~pl.col("met"))


def test_figures_of_r_meet_every_rule():
    found = verdicts.compare_with_sdcmicro(as_in_r())
    assert found.height == 140
    assert found["met"].all()
    assert found["difference"].abs().max() == 0


@pytest.mark.parametrize(
    ("case", "by", "fine", "why"),
    [
        (("mdav", "mae", "parameter"), -0.006, -0.004, "single precision"),
        (("noise", "il1", "parameter"), -0.004, -0.002, "no cause known"),
        (("rank_swap", "il1", "parameter"), 0.006, 0.002, "IL1 depends on the few smallest values"),
        (("noise", "mse", "brmae"), -0.03, -0.01, "no cause known"),
    ],
)
def test_a_correlation_off_its_rule_is_found_and_explained(case, by, fine, why):
    assert changed(*case, fine).height == 0
    missed = changed(*case, by)
    assert missed.select("dataset", "method", "metric", "reference").rows() == [("Tarragona", *case)]
    assert why in missed["explanation"].item()


def test_one_replication_far_outside_is_found():
    assert changed("noise", "il1", "parameter", 0.012, first_only=True).height == 1


def test_a_missing_correlation_is_a_miss():
    missed = changed("noise", "il1", "brmae", None)
    assert missed["explanation"].item().startswith("no correlation")


# --- verdicts ---


def verdict_on(table, words):
    return table.filter(pl.col("claim").str.contains(words, literal=True)).row(0, named=True)


@pytest.mark.parametrize(("datasets", "replications"), [(("sample",), 1), (("Tarragona", "Census"), 3)])
def test_every_claim_gets_a_verdict(datasets, replications):
    table = verdicts.judge_claims(series(datasets=datasets, replications=replications))
    assert table.columns == ["claim", "where", "measured", "verdict"]
    assert table.height == len(verdicts.CLAIMS)
    assert set(table["verdict"]) <= {"holds", "holds in part", "does not hold"}
    assert verdict_on(table, "ten distinct")["verdict"] == "does not hold"
    for dataset in datasets:
        assert dataset in verdict_on(table, "IL1 follows")["measured"]


def test_claims_on_rankings():
    table = verdicts.judge_claims(series())
    assert table["verdict"].to_list()[:6] == ["holds"] * 4 + ["does not hold", "holds in part"]
    assert "3, 4, 20, 36 and 252" in verdict_on(table, "Several")["measured"]
    assert "11 distinct" in verdict_on(table, "ten distinct")["measured"]


def worse(measured, column, dataset=None, method=None):
    """The same study with one loss in an order that has nothing to do with the grid."""
    here = pl.lit(value=True)
    here &= (pl.col("dataset") == dataset) if dataset else True
    here &= (pl.col("method") == method) if method else True
    return measured.with_columns(
        pl.when(here).then((pl.col("setting") * 1e4).sin()).otherwise(column).alias(column)
    )


def test_the_weakest_metric():
    measured = series()
    assert verdict_on(verdicts.judge_claims(measured), "IL1 follows")["verdict"] == "holds"
    part = verdicts.judge_claims(worse(measured, "mse", "Census", "rank_swap"))
    row = verdict_on(part, "IL1 follows")
    assert row["verdict"] == "holds in part"
    assert "rank swapping MSE" in row["measured"]
    none = verdicts.judge_claims(worse(measured, "mse"))
    assert verdict_on(none, "IL1 follows")["verdict"] == "does not hold"


def test_the_best_metric_under_swapping():
    exact = [pl.col("setting").alias(f"{metric}_first") for metric in study.BOUNDED]
    claim = "best under swapping"
    assert verdict_on(verdicts.judge_claims(series().with_columns(exact)), claim)["verdict"] == "holds"
    tied = series().with_columns(*exact, mae=pl.col("setting"))
    row = verdict_on(verdicts.judge_claims(tied), claim)
    assert row["verdict"] == "holds in part"
    assert "near tie" in row["measured"]
    lost = worse(series(), "brmse_first")
    assert verdict_on(verdicts.judge_claims(lost), claim)["verdict"] == "does not hold"


def test_claims_that_correlations_are_high():
    good, bad = series(), worse(series(), "il1", "Census", "noise")
    for words in ("Loss tends to grow", "correlate highly", "go together"):
        assert verdict_on(verdicts.judge_claims(good), words)["verdict"] == "holds"
        assert verdict_on(verdicts.judge_claims(bad), words)["verdict"] == "holds in part"
    untailed = worse(series(), "il1", "Census", "rank_swap_no_tails")
    row = verdict_on(verdicts.judge_claims(untailed), "correlate highly")
    assert row["verdict"] == "holds"
    assert "Not counted" in row["measured"]


def test_similar_within_methods_but_not_across():
    claim = "much as the others"
    measured = series().with_columns(il1="mae")
    assert verdict_on(verdicts.judge_claims(measured), claim)["verdict"] == "holds"
    shifted = pl.when(pl.col("method") == "mdav").then(pl.col("mse") + 100).otherwise("mse").alias("mse")
    row = verdict_on(verdicts.judge_claims(measured.with_columns(shifted)), claim)
    assert row["verdict"] == "holds in part"
    assert "64 of 64" in row["measured"]


def test_the_scale_is_not_used_to_its_end():
    row = verdict_on(verdicts.judge_claims(series()), "share the scale")
    assert row["verdict"] == "holds in part"
    assert "0.66" in row["measured"]


def test_claims_without_files_are_not_measured():
    table = verdicts.judge_claims(series(methods=("mdav",)))
    assert verdict_on(table, "under noise")["verdict"] == "not measured"
    assert verdict_on(table, "under swapping")["verdict"] == "not measured"
    assert verdict_on(table, "correlate highly")["verdict"] == "holds"
