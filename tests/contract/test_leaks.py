"""The report holds no original record, extreme or name, no thin bin and no seed; planted ones are found."""

import json
import re

import numpy as np
import polars as pl
import pytest

import reports
import sdckit as sdc
from leaks import digits, leaks
from sdckit.core.text import number
from sdckit.metrics.pair import pair_of
from sdckit.report import report
from sdckit.report.charts import bundle

LEVELS = ("value", "random", "tie_low", "tie_high")


def figures_shown():
    """Return the measured figures, which the page is meant to print."""
    table = reports.evaluation().table
    points = reports.points()
    figures = [value for name in LEVELS for value in table[name]]
    return [*figures, *points.table["loss"], *points.table["risk"], points.random, 0.1, 0.3]


def search(output, **options):
    given = {
        "masked": reports.masked().select(reports.VARIABLES),
        "known": [bundle()],
        "figures": figures_shown(),
    }
    return leaks(output, reports.original(), reports.SEED, **given | options)


def leaking(text):
    """A real report with a sentence too many."""
    return reports.full(notes=[text])


def planted(**rows):
    """A real report whose first chart has data too many."""
    return reports.full().replace('"data":{"values":[{', f'"data":{{"values":[{json.dumps(rows)},{{', 1)


def first_record():
    return reports.original().select(reports.VARIABLES).row(17)


def test_the_report_leaks_nothing():
    assert search(reports.full()) == []
    assert search(reports.full().encode()) == []


def test_the_report_leaks_nothing_even_where_masked_values_count_as_secret():
    assert search(reports.full(), masked=None) == []


def test_a_measured_report_leaks_nothing():
    found = sdc.Microdata(reports.original(), columns=reports.VARIABLES, **reports.ROLES).evaluate(
        reports.masked(), metrics=["brmae", "il1s", "linkage", "linkage_outliers"], per_record=True
    )
    page = reports.full(evaluation=found)
    figures = [value for name in LEVELS for value in found.table[name]]
    assert "Records by their risk of being linked" in page
    assert search(page, figures=[*figures_shown(), *figures], masked=None) == []


@pytest.mark.parametrize("method", ["noise", "rank_swap", "individual_ranking"])
def test_no_masking_makes_the_report_leak(method):
    roles = {"columns": reports.VARIABLES, **reports.ROLES}
    masked = sdc.Microdata(reports.original(), **roles).mask(method, rng=reports.SEED)
    measured = sdc.Microdata(reports.original(), **roles).evaluate(masked, metrics=["brmae", "il1s"])
    page = report(title="t", done=[], evaluation=measured, pair=pair_of(reports.original(), masked, **roles))
    figures = [value for name in LEVELS for value in measured.table[name]]
    assert search(page, figures=figures, masked=None) == []


@pytest.mark.parametrize("mark", [", ", "; ", " | ", "\t", "</td><td>", "\n"])
def test_a_record_is_found_whatever_separates_its_cells(mark):
    found = search(reports.full() + mark.join(map(str, first_record())))
    assert any(line.startswith("original record") for line in found)


def test_a_record_is_found_in_chart_data():
    assert any(
        "original record" in line for line in search(planted(**dict(zip("abc", first_record(), strict=True))))
    )


def test_a_record_of_short_numbers_is_found():
    data = pl.DataFrame({"age": [34, 51, 27, 66], "rooms": [12, 13, 15, 14], "income": [310, 480, 220, 150]})
    assert leaks("someone of 51 with 13 rooms and 480", data) == ["original record with 51, 13, 480"]
    assert leaks("someone of 51 with 14 rooms and 480", data) == []


def test_a_column_in_its_order_is_found():
    ages = np.random.default_rng(1).integers(20, 90, 40)
    output = "ages: " + " ".join(map(str, ages[5:25]))
    assert any("original column" in line for line in leaks(output, pl.DataFrame({"age": ages})))


@pytest.mark.long
def test_a_distinctive_value_is_found():
    value = reports.original()["turnover"].sort()[500]
    assert digits(value) >= 4
    for written in (f"{value}", f"{value:,}", f"{value:.10e}"):
        assert f"original value {value:.15g}" in search(leaking(f"about {written} or so")), written


def test_a_value_cut_by_some_digits_is_found():
    assert leaks("it was 123456.8", pl.DataFrame({"x": [123456.789, 2.0]})) == ["original value 123456.789"]


@pytest.mark.parametrize("end", ["min", "max"])
def test_an_extreme_is_found(end):
    value = getattr(reports.original()["profit"], end)()
    found = search(leaking(f"profits from {value:,}"))
    assert f"original {end}imum of profit: {value:.15g}" in found


def test_a_short_extreme_is_found_at_the_edge_of_a_bin():
    data = pl.DataFrame({"rooms": [2.0, 3.0, 9.0]})
    page = '<script type="application/json">{"edges": ["below 2", "2 to 9"]}</script>'
    assert leaks(page, data) == ["original minimum of rooms: 2", "original maximum of rooms: 9"]
    assert leaks("2 tables, 9 figures", data) == []


def test_a_key_is_found():
    key = reports.original()["firm"][41]
    assert search(leaking(f"the firm {key} stands alone")) == [f"original firm {key}"]


@pytest.mark.parametrize("name", ["records", "original", "masked"])
def test_a_thin_bin_is_found(name):
    assert search(planted(**{name: 7})) == ["bin with 7 records"]
    assert search(planted(**{name: 10})) == search(planted(**{name: 0})) == []


@pytest.mark.parametrize("form", ["{}", "{:,}", "{:x}", "--seed {}", "rng={}"])
def test_the_seed_is_found(form):
    assert "the seed" in search(leaking("made with " + form.format(reports.SEED)))


def test_a_short_seed_is_found_beside_its_name():
    data = pl.DataFrame({"x": [1.0, 2.0]})
    assert leaks('{"seed": 20}', data, 20) == leaks("--seed=20", data, 20) == ["the seed"]
    assert leaks("20 records", data, 20) == []


def test_what_the_masked_file_has_is_public():
    data = pl.DataFrame({"a": [12345.0, 77777.0, 3.0], "b": [54321.0, 11111.0, 9.0]})
    csv = data.head(1).write_csv()
    assert leaks(csv, data)
    assert leaks(csv, data, masked=data) == []


def test_the_search_reads_csv_json_and_svg():
    row = dict(zip(reports.VARIABLES, first_record(), strict=True))
    svg = "<svg>" + "".join(f'<text x="3">{value}</text>' for value in row.values()) + "</svg>"
    for output in (pl.DataFrame([row]).write_csv(), json.dumps(row), svg):
        assert any("original record" in line for line in search(output)), output


def test_a_report_of_a_tiny_file_shows_no_bins():
    few = reports.original().head(15)
    roles = {"columns": reports.VARIABLES, **reports.ROLES}
    masked = sdc.Microdata(few, **roles).mask("mdav", k=3)
    page = report(title="t", done=[], pair=pair_of(few, masked, **roles))
    assert len(re.findall("Not shown: too few records", page)) == len(reports.VARIABLES)
    assert leaks(page, few, figures=[10]) == []


def test_no_value_can_be_computed_from_the_loss_of_a_single_cell():
    """In a variable of one cell, the loss is a known function of the original and the masked value."""
    wages = pl.when(pl.arange(0, pl.len()) == 5).then("wages")
    data = reports.original().select(reports.VARIABLES).with_columns(wages=wages)
    masked = data.with_columns(pl.col("wages") + 1.5)
    found = sdc.evaluate(data, masked, metrics=["il_variables:scale=raw"])
    (own,) = found.table.filter(variable="wages")["value"]
    page = report(title="t", done=[], evaluation=found)
    assert own > 0
    assert number(own) not in page.replace(bundle(), "")
    shown = dict(re.findall(r'<th scope="row">([^<]*)</th><td class="n[^"]*">([^<]*)<', page))
    assert shown["wages"] == "-"
    assert list(shown.values()).count("-") == 2, "one more, or the whole file would give it away"
