"""One file, one risk: Python, the command line, the report and a second look print the same numbers.

For every method with a window on three files, and for every method under edit rules and within strata on one
of them: the released table, given what its masking discloses and the order of its rows, has the
figures that `sdckit mask --release` prints and its report shows.
"""

import json
from itertools import cycle

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sdckit as sdc
from calls import called
from cases import few
from command import good
from contract import strong
from read_page import Read
from sdckit.core.registry import parameters_text
from sdckit.core.text import number
from sdckit.io.files import read
from sdckit.metrics.publishable import public_evaluation
from secret_bytes import drawn_from, entropy

SEED = 5
STEP = 8  # one of so many records: linkage of whole files takes long
RULE = "total = a + b"
WINDOW = [method for method in sdc.METHODS.values() if method.window]
HANDED_OUT = ["--release", "--crosswalk", "order.csv"]
NOT_MASKED = "ignore:not masked, every value"
FILES = ("sample", "tarragona", "census")


@pytest.fixture(scope="module")
def files(tarragona, census):
    sample = sdc.load_sample()
    columns = {
        "sample": (sample, ["domestic_sales", "export_sales", "wages"]),
        "tarragona": (tarragona, tarragona.columns[:3]),
        "census": (census, ["PEARNVAL", "POTHVAL", "AFNLWGT"]),
    }
    found = {}
    for name, (table, (a, b, c)) in columns.items():
        part = table.gather_every(STEP).select(a=pl.col(a).round(2), b=pl.col(b).round(2), c=pl.col(c))
        strata = pl.Series(["north", "south, and east", "west"])[[i % 3 for i in range(part.height)]]
        total = (pl.col("a") + pl.col("b")).round(2)
        found[name] = part.with_columns(total=total, region=strata)
    return found


@pytest.fixture(params=FILES)
def folder(request, files, tmp_path):
    files[request.param].write_csv(tmp_path / "data.csv")
    return tmp_path


def parameters_of(method):
    return {"given": ("c",)} if method.paired_by else strong(method)


def words_of(parameters):
    return [word for name in parameters for word in ("--set", parameters_text({name: parameters[name]}))]


def masked_by(folder, method, *more, metrics):
    words = ["data.csv", "-o", "out.csv", "--method", method.name, *words_of(parameters_of(method))]
    shown = ["--metrics", ",".join(metrics), "--json", "--report", "out.html", *HANDED_OUT]
    with drawn_from(SEED):
        return json.loads(good(folder, "mask", *words, *shown, *more).stdout)


def metrics_of(method):
    return ["brmae", "linkage", "linkage_outliers"] if method.keeps_pairing(parameters_of(method)) else ["ks"]


def assert_one_risk(folder, method, *, by=None, rules=None):
    """Compare what the command printed with everything else that can be said about the file."""
    metrics, parameters = metrics_of(method), method.defaults() | parameters_of(method)
    roles = [*(["--by", by] if by else []), *(["--rule", rules] if rules else [])]
    printed = masked_by(folder, method, *roles, metrics=metrics)
    original, written = (read(folder / name).frame for name in ("data.csv", "out.csv"))
    release = sdc.Microdata(original, by=by, rules=rules).release(
        method.name, metrics=metrics, entropy=entropy(SEED), **parameters_of(method)
    )
    expected = release.evaluation.table
    rows = pl.DataFrame(printed["table"], schema=expected.schema)
    assert_frame_equal(rows, expected, check_exact=True)
    assert printed["meaning"] == release.evaluation.meaning
    assert_frame_equal(written, release.data, check_dtypes=False, check_exact=True)
    how = {"metrics": metrics, "rows": release.rows}
    again = called("evaluate", original, written, disclosure=release.disclosure, **how)
    assert_frame_equal(again.table, expected, check_exact=True)
    known = {"method": method.name, "parameters": parameters}
    named = called("evaluate", original, written, by=by, rules=rules, **how, **known)
    assert_frame_equal(named.table, expected, check_exact=True)
    words = ["--made-by", method.name, *words_of(parameters_of(method))]
    words += ["--metrics", ",".join(metrics), "--json", *roles, "--crosswalk", "order.csv"]
    elsewhere = json.loads(good(folder, "evaluate", "data.csv", "out.csv", *words).stdout)
    assert elsewhere["table"] == printed["table"]
    assert_shown(folder / "out.html", release.evaluation, metrics)
    return release


def assert_shown(path, evaluation, metrics):
    cells = {cell for row in Read(path.read_text(encoding="utf-8")).rows for cell in row}
    for metric in metrics:
        assert number(evaluation[metric]) in cells, metric


PAIRS = [
    pytest.param(file, method, id=f"{file}-{method.name}")
    for file, method in zip(cycle(FILES), sdc.METHODS.values(), strict=False)
]
every_method = pytest.mark.parametrize(("folder", "method"), few(PAIRS, 3), indirect=["folder"])


@pytest.mark.filterwarnings(NOT_MASKED)
@pytest.mark.parametrize("method", few(WINDOW, 2), ids=lambda method: method.name)
def test_a_window(folder, method):
    release = assert_one_risk(folder, method)
    assert release.evaluation.parts["linkage"]["guess"] > 1 / release.data.height  # the window is a fact


@pytest.mark.filterwarnings(NOT_MASKED, "ignore:rows of .* stand for no original record")
@every_method
def test_strata_and_rules(folder, method):
    release = assert_one_risk(folder, method, by="region", rules=RULE)
    strata = release.evaluation.table["stratum"].unique().sort().to_list()
    assert strata == ["all", "north", "south, and east", "west"]
    assert list(release.disclosure.rules.texts) == [RULE]


@pytest.mark.long
def test_a_number_that_differs_from_stratum_to_stratum(folder):
    widths = {"north": 0.05, "south, and east": 0.3, "west": 0.1}
    original = read(folder / "data.csv").frame
    release = sdc.Microdata(original, by="region").release(
        "rank_swap", metrics=["linkage"], entropy=entropy(SEED), p=widths
    )
    word = 'p=north:0.05,"south, and east:0.3",west:0.1'
    words = ["-o", "out.csv", "--method", "rank_swap", "--set", word, "--by", "region"]
    with drawn_from(SEED):
        done = good(folder, "mask", "data.csv", *words, "--metrics", "linkage", "--json", "--release")
    assert json.loads(done.stdout)["table"] == release.evaluation.table.rows(named=True)
    assert release.disclosure.parameters["p"] == widths
    turned = original.reverse()  # strata in another order of appearance
    rows = original.height - 1 - release.rows
    again = sdc.evaluate(turned, release.data, made_by=release.disclosure, metrics=["linkage"], rows=rows)
    assert again["linkage"] == pytest.approx(release.evaluation["linkage"], rel=1e-12)


@pytest.mark.long
def test_strata_are_those_of_the_masking_unless_it_is_said_that_they_are_not(folder):
    metrics = ["--metrics", "linkage:attacks=nearest", "--json"]  # of the method, these use the window alone
    words = ["-o", "out.csv", "--method", "rank_swap", "--set", "p=0.15", "--by", "region", "--seed", SEED]
    printed = json.loads(good(folder, "mask", "data.csv", *words, *metrics).stdout)["table"]
    words = ["data.csv", "out.csv", "--made-by", "rank_swap", "--set", "p=0.15", "--by", "region", *metrics]
    tables = [
        json.loads(good(folder, "evaluate", *words, *more).stdout)["table"]
        for more in ([], ["--stratified"], ["--unstratified"])
    ]
    assert tables[0] == tables[1] == printed
    window = ["data.csv", "out.csv", "--window", "0.15", "--by", "region", *metrics]
    assert tables[2] == json.loads(good(folder, "evaluate", *window).stdout)["table"]
    assert tables[2] != printed


@pytest.mark.long
def test_some_of_the_columns(folder):
    words = ["-o", "out.csv", "--method", "rank_swap", "--set", "p=0.15", "--columns", "a,c"]
    with drawn_from(SEED):
        printed = json.loads(good(folder, "mask", "data.csv", *words, "--json", "--release").stdout)
    original, written = (read(folder / name).frame for name in ("data.csv", "out.csv"))
    release = sdc.Microdata(original, columns=["a", "c"]).release("rank_swap", entropy=entropy(SEED), p=0.15)
    again = sdc.evaluate(original, written, made_by=release)
    assert_frame_equal(again.table, release.evaluation.table, check_exact=True)
    assert printed["table"] == public_evaluation(again).table.rows(named=True)
    risks = [row for row in printed["table"] if row["family"] == "risk"]  # of which none is withheld
    assert risks == again.table.filter(family="risk").rows(named=True)


@pytest.mark.parametrize("name", ["mdav", "individual_ranking", "top_bottom_code"])
def test_a_recommendation_has_the_numbers_of_its_release(files, name):
    """Methods that draw nothing are measured in the search as they are released."""
    data = files["census"]
    how = {"by": "region", "decimals": "original", "workers": 1}
    choice = called(
        "recommend", data, max_risk={"linkage": 1.0, "linkage_sure": 1.0}, plan={name: None}, **how
    )
    release = choice.release()
    assert release.disclosure.deterministic
    assert {metric: release.evaluation[metric] for metric in choice.point.values} == choice.point.values
