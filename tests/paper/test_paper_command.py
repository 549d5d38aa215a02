"""The study from one end to the other, on the bundled sample: every table, figure, caption and the page."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from command import run, run_here
from sdckit.io.atomic import fill_folder
from sdckit.paper import command, study
from sdckit.report import charts

pytestmark = pytest.mark.long

NOTE = {"figure-1", "figure-2", "figure-3", "figure-5", "figure-7", "figure-8"}  # what one data set fills
OURS = {"tie-range", "disagreement", "risk-map-sample"}
ATTACKED = 10 + 4 * 7  # every third setting, once
REPLICATIONS = 2
FILES = 30 + 4 * 300 * REPLICATIONS + ATTACKED  # microaggregation once, four random maskings repeatedly
VOID = {"meta"}  # elements that have no end


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """The folder that the command leaves, and what it printed."""
    folder = tmp_path_factory.mktemp("paper")
    words = ["--data", "sample", "--replications", REPLICATIONS, "--formats", "svg,png,pdf"]
    done = run(folder, "paper", "-o", "out", *words)
    assert done.returncode == 0, done.stderr
    return folder / "out", done


def test_it_tells_what_it_did_and_where_it_is(sample):
    _, done = sample
    assert f"{FILES:,} masked files measured in " in done.stdout
    assert "Claims of the note: " in done.stdout
    assert "sdcMicro" not in done.stdout  # there are no figures of R for the sample
    assert "out/index.html" in done.stdout


def test_every_figure_has_numbers_a_caption_and_a_picture_in_each_format(sample):
    folder, _ = sample
    names = {file.stem for file in folder.glob("*.svg")}
    assert names == NOTE | OURS
    for name in names:
        assert pl.read_csv(folder / f"{name}.csv").height
        assert (folder / f"{name}.txt").read_text(encoding="utf-8").startswith("Figure ")
        ET.fromstring((folder / f"{name}.svg").read_text(encoding="utf-8"))  # noqa: S314 - our own
        assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_the_tables_of_the_note_are_written(sample):
    folder, _ = sample
    table = pl.read_csv(folder / "table-2.csv", infer_schema=False)
    assert table.width == 1 + 24
    squared = table.filter(pl.col("row") == "squared").row(0)[1:]
    assert squared[:5] == ("0", "2", "2", "2", "4")
    assert len(set(squared)) == 11
    assert "lists 11" in (folder / "table-2.txt").read_text(encoding="utf-8")
    verdicts = pl.read_csv(folder / "verdicts.csv")
    assert verdicts.height >= 12
    assert set(verdicts["verdict"]) <= {"holds", "holds in part", "does not hold", "not measured"}
    assert pl.read_csv(folder / "comparison.csv").height == 0


def test_every_attacked_file_is_written_and_its_map_shown(sample):
    folder, _ = sample
    assert pl.read_csv(folder / "risks.csv").height == ATTACKED
    text = (folder / "index.html").read_text(encoding="utf-8")
    section = text[text.index('<h2 id="risk">Loss against risk') : text.index('id="conventions"')]
    assert section.count("<svg") == 1  # the map of the one data set


class Page(HTMLParser):
    """Checks that elements nest, and collects ids and links."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links = [], [], []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given[name] for name in ("href", "src", "xlink:href") if name in given]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing(sample):
    folder, _ = sample
    text = (folder / "index.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert not page.open
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        assert link[1:] in page.ids if link.startswith("#") else (folder / link).is_file(), link
    assert "<script" not in text
    assert not re.search(r"(https?:)?//(?!www\.w3\.org/2000/svg)", re.sub(r"<!doctype.*?>", "", text))
    assert text.count("<svg") == len(list(folder.glob("*.svg")))
    assert not re.search(r"\bseed\b", text)


def test_the_same_command_reuses_finished_work(sample, monkeypatch):
    folder, _ = sample
    kept = ["measured.parquet", "index.html", *(file.name for file in folder.glob("*.csv"))]
    before = {name: (folder / name).read_bytes() for name in kept}
    drawn = {file.stem: file.read_text(encoding="utf-8") for file in folder.glob("*.svg")}
    draw = charts.svg

    def draw_some(chart):  # a chart whose table and caption are the same gives the same picture
        return draw(chart) if chart.name in {"figure-5", "risk-map-sample"} else drawn[chart.name]

    monkeypatch.setattr(charts, "svg", draw_some)
    done = run_here(
        folder.parent, "paper", "-o", "out", "--data", "sample", "--replications", REPLICATIONS, "-q"
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert {name: (folder / name).read_bytes() for name in kept} == before


def test_without_the_data_one_line_says_how_to_get_them(tmp_path):
    found = {
        "SDCKIT_DATA": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
        "https_proxy": "http://127.0.0.1:9",
    }
    done = run(tmp_path, "paper", "-o", "out", **found)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "SDCKIT_DATA" in done.stderr
    assert "--data sample" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "iris"], "unknown data set 'iris'"),
        (["--data", "sample,tarragona,census"], "3 data sets named"),
        (["--data", "sample", "--formats", "gif"], "unknown format 'gif'"),
        (["--data", "sample", "--replications", "0"], "replications is 0"),
        (["--data", "sample", "--workers", "none"], "workers is 'none'"),
        (["--data", "sample", "--seed", "-1"], "the seed is below 0"),
    ],
)
def test_bad_words_are_refused_in_one_line(tmp_path, words, message):
    done = run_here(tmp_path, "paper", "-o", "out", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="holds other files"):
        command.run(tmp_path, data=["sample"], replications=1)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_the_level_of_row_order_lies_between_what_shuffles_score():
    original = study.load_data_sets(["sample"])["sample"]
    levels = study._unrelated_levels(original, "mdav", 1, "sample")  # noqa: SLF001 - the figure's dashed line
    level = levels.filter(ties="first")["brmae"][0]
    rng = np.random.default_rng(3)
    masked = sdc.mask(original.values, "mdav", k=30)
    scores = [sdc.brmae(original.values, rng.permuted(masked, axis=0), ties="first") for _ in range(60)]
    assert abs(np.mean(scores) - level) < 4 * np.std(scores) / np.sqrt(60)


def test_what_has_no_successor_goes_and_everything_else_stays(tmp_path):
    for names in (["a.csv", "b.csv"], ["b.csv", "c.csv"]):
        with fill_folder(tmp_path, "mark.txt", "ours") as draft:
            for name in names:
                (draft / name).write_text(name)
        (tmp_path / "mine.csv").write_text("mine")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["b.csv", "c.csv", "mark.txt", "mine.csv"]
