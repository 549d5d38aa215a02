"""Files that are handed out: shuffled, without key and dropped columns, every other cell as it was."""

import json
import os
import re
import stat
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

from command import contents, good, put, run_here
from full_disk import full_disk
from sdckit.io import atomic, crosswalk
from sdckit.io.files import read
from secret_bytes import drawn_from
from stat_data import MAKERS, raw

pytestmark = pytest.mark.usefixtures("cells")

N = 60
HEADER = "id,code,amount,note,income,age,gone"
ROLES = ["--key", "id", "--drop", "gone", "--columns", "income,age", "--unknown", "code,amount,note"]
MASK = ["mask", "data.csv", "-o", "out.csv", "--method", "noise", *ROLES]
RELEASE = [*MASK, "--release"]
ORDER = ["--crosswalk", "order.csv"]
RECOMMEND = ["recommend", "data.csv", "-o", "out.csv", "--max-risk", "linkage=0.9", *ROLES]
RECOMMEND += ["--max-risk", "linkage_sure=1", "--workers", "1"]
RECOMMEND += ["--grid", "mdav.k=3:5", "--grid", "mdav.gaps=merge"]  # which keeps the marks of missing cells
WRITERS = {"mask": RELEASE, "recommend": RECOMMEND}


@pytest.fixture
def cells(tmp_path):
    """The cells of a CSV as text, some of which no program would write like that."""
    rng = np.random.default_rng(5)
    lines = [
        [
            *(f"{i:03d}", f"0{i % 4}", f" {i}.50", '"a, ""b"""' if i % 7 == 0 else f"ü{i}"),
            *(f"{rng.lognormal(7, 1):.2f}", "NA" if i % 9 == 0 else str(rng.integers(16, 90)), f"gone{i}"),
        ]
        for i in range(N)
    ]
    put(tmp_path, "data.csv", "\n".join([HEADER, *(",".join(line) for line in lines)]) + "\n")
    return lines


def original_rows(folder, name="order.csv"):
    return (read(folder / name).frame["original_row"].to_numpy() - 1).tolist()


# --- what a file holds ---


@pytest.mark.parametrize("command", WRITERS)
def test_unmasked_cells_are_written_character_by_character(tmp_path, cells, command):
    good(tmp_path, *WRITERS[command], *ORDER, "--na", "NA")
    lines = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "code,amount,note,income,age"
    rows = original_rows(tmp_path)
    assert rows != sorted(rows)
    for line, row in zip(lines[1:], rows, strict=True):
        code, amount, note, income, age, _ = cells[row][1:]
        assert line.startswith(f"{code},{amount},{note},"), "as in the original file"
        assert not line.endswith(f"{income},{age}") or age == "NA"
        assert line.endswith(",NA") == (age == "NA")


def test_plain_mask_leaves_rows_and_key_in_place(tmp_path, cells):
    done = good(tmp_path, *MASK, "--na", "NA")
    lines = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "id,code,amount,note,income,age"
    for line, row in zip(lines[1:], cells, strict=True):
        assert line.startswith(",".join(row[:4]) + ",")
    assert "the rows are shuffled" not in done.stdout
    assert "not published: gone\n" in done.stdout


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "dta", "sav", "xpt"])
@pytest.mark.parametrize("command", WRITERS)
def test_no_format_has_the_key_or_a_dropped_column(tmp_path, cells, command, suffix):
    given = [word.replace("out.csv", f"out.{suffix}") for word in WRITERS[command]]
    given[given.index("code,amount,note")] = "code,amount"
    good(tmp_path, *given, "--unit", "note", "--na", "NA")
    frame = read(tmp_path / f"out.{suffix}").frame
    assert frame.columns == ["code", "amount", "note", "income", "age"]
    assert b"gone" not in (tmp_path / f"out.{suffix}").read_bytes()
    assert frame.height == len(cells)
    assert sorted(frame["note"].unique()) == list(range(1, frame["note"].n_unique() + 1)), "a unit"


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt"])
@pytest.mark.parametrize("to", ["same", ".csv", ".parquet"])
def test_labels_and_codes_of_statistical_files_follow_their_rows(tmp_path, suffix, to):
    path = MAKERS[suffix](tmp_path / f"in{suffix}")
    out = tmp_path / f"out{suffix if to == 'same' else to}"
    words = ["--method", "noise", "--release", "--drop", "town", *ORDER]
    before = read(path)
    left = [name for name in before.frame.columns if name != "town"]
    words += ["--untouched", ",".join(name for name in left if name not in {"age", "income"})]
    good(tmp_path, "mask", path.name, "-o", out.name, *words, "--columns", "age,income")
    rows, after = original_rows(tmp_path), read(out)
    assert after.frame.columns == left
    for name in [name for name in left if name not in {"age", "income"}]:
        ours, theirs = (column.cast(str) for column in (before.frame[name][rows], after.frame[name]))
        assert theirs.str.replace("T", " ").to_list() == ours.to_list(), name
    assert after.frame["age"].is_null().equals(before.frame["age"].is_null()[rows])
    if to == "same":
        (ours, _), (theirs, _) = raw(path), raw(out)
        for name in ("sex", "born"):  # with the codes of missing cells
            assert theirs[name] == [ours[name][row] for row in rows]
        assert after.meta.labels == before.meta.labels
        assert after.meta.value_labels.get("sex") == before.meta.value_labels.get("sex")
        assert all(word.encode() not in out.read_bytes() for word in ("Köln", "town", "am Rhein"))


def test_labels_of_units_are_not_handed_out(tmp_path):
    path = MAKERS[".sav"](tmp_path / "in.sav")
    assert b"weiblich" in path.read_bytes()
    words = ["--method", "noise", "--release", "--unit", "sex", "--columns", "age,income", *ORDER]
    good(tmp_path, "mask", "in.sav", "-o", "out.sav", *words, "--untouched", "town,born")
    out = read(tmp_path / "out.sav")
    assert "sex" not in out.meta.value_labels
    assert b"weiblich" not in (tmp_path / "out.sav").read_bytes()
    assert set(out.frame["sex"].drop_nulls()) == {1, 2}


# --- the same figures again ---


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize("name", ["order.csv", "order.parquet"])
def test_evaluate_prints_the_figures_of_the_release(tmp_path, command, name):
    more = ["--na", "NA", "--json"]
    made = json.loads(good(tmp_path, *WRITERS[command], "--crosswalk", name, *more).stdout)
    known = ["noise"]
    if command == "recommend":
        known = ["mdav", "--set", f"k={made['choice']['parameters']['k']}", "--set", "gaps=merge"]
    method = ["--made-by", *known]
    again = good(tmp_path, "evaluate", "data.csv", "out.csv", *ROLES, "--crosswalk", name, *method, *more)
    assert json.loads(again.stdout)["table"] == made["table"]
    assert json.loads(again.stdout)["meaning"] == made["meaning"]


def test_records_follow_the_original(tmp_path, cells):
    more = ["--na", "NA", "--metrics", "brmae,mae"]
    grouped = [word.replace("noise", "mdav") for word in MASK]  # without draws, both cells are the same
    for words, out in (([*grouped, "--release", *ORDER], "a.csv"), (grouped, "b.csv")):
        good(tmp_path, *words, "--overwrite", *more)
        given = ORDER if out == "a.csv" else []
        good(tmp_path, "evaluate", "data.csv", "out.csv", *ROLES, *given, *more, "--records", out)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert read(tmp_path / "a.csv").frame["id"].to_list() == [row[0] for row in cells]


def test_each_of_several_files_has_its_crosswalk(tmp_path):
    tables = []
    for name in ("a", "b"):
        words = [word.replace("out.csv", f"{name}.csv") for word in RELEASE]
        more = ["--na", "NA", "--metrics", "brmae", "--json"]
        made = good(tmp_path, *words, *more, "--crosswalk", f"{name}.order.csv")
        tables.append(json.loads(made.stdout)["table"])
    orders = ["--crosswalk", "a.order.csv", "--crosswalk", "b.order.csv"]
    done = good(tmp_path, "evaluate", "data.csv", "a.csv", "b.csv", *ROLES, *orders, *more)
    found = json.loads(done.stdout)["files"]
    assert [found[name]["table"] for name in ("a.csv", "b.csv")] == tables


def test_the_same_entropy_gives_the_same_files_again(tmp_path):
    found = []
    for number in (1, 1, 2):
        with drawn_from(number):
            good(tmp_path, *RELEASE, *ORDER, "--overwrite", "--na", "NA")
        found.append(contents(tmp_path))
    assert found[0] == found[1]
    assert not any(found[2][name] == found[0][name] for name in ("order.csv", "out.csv"))


@pytest.mark.parametrize("command", WRITERS)
def test_a_seed_is_refused(tmp_path, command):
    before = contents(tmp_path)
    done = run_here(tmp_path, *WRITERS[command], "--seed", "12345")
    assert (done.returncode, contents(tmp_path)) == (2, before)
    assert done.stderr == (
        "error: --seed would let an intruder undo the release by trying seeds; drop it: the private "
        "record makes a release repeatable\n"
    )


def test_a_working_copy_with_a_seed_is_not_for_publication(tmp_path):
    done = good(tmp_path, *MASK, "--na", "NA", "--seed", "3")
    assert (
        "warning: the masking follows from --seed, which is found by trying: the file is not for"
        in done.stderr
    )
    assert "--seed" not in good(tmp_path, *MASK, "--na", "NA", "--overwrite").stderr


def test_a_kept_order_has_no_crosswalk_and_says_so(tmp_path, cells):
    done = good(tmp_path, *RELEASE, "--keep-order", "--na", "NA")
    assert read(tmp_path / "out.csv").frame["code"].to_list() == [row[1] for row in cells]
    assert "note: the rows are in the order of the original, which the attacks use" in done.stdout


# --- the crosswalk is secret ---


@contextmanager
def umask(mode):
    before = os.umask(mode)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("mode", [0, 0o022, 0o777])
@pytest.mark.parametrize("name", ["order.csv", "order.parquet"])
@pytest.mark.parametrize("old", [False, True])
def test_the_crosswalk_is_for_its_owner_alone(tmp_path, monkeypatch, mode, name, old):
    if old:
        put(tmp_path, name, "precious").chmod(0o666)
    seen, write = [], crosswalk.write_draft

    @contextmanager
    def watch(*words, **more):
        with write(*words, **more) as draft:
            seen.append(stat.S_IMODE(draft.stat().st_mode))
            yield draft

    monkeypatch.setattr(crosswalk, "write_draft", watch)
    with umask(mode):
        done = good(tmp_path, *RELEASE, "--crosswalk", name, "--na", "NA", *["--overwrite"] * old)
    assert [*seen, stat.S_IMODE((tmp_path / name).stat().st_mode)] == [0o600] * 2
    assert re.search(
        rf"^warning: '{name}' says which original row .*; keep it secret", done.stderr, re.MULTILINE
    )
    assert read(tmp_path / name).frame.columns == ["published_row", "original_row", "id"]


def test_a_warning_is_not_hushed(tmp_path):
    done = good(tmp_path, *RELEASE, *ORDER, "--na", "NA", "-q")
    assert "keep it secret" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("command", WRITERS)
def test_a_crosswalk_that_exists_is_never_replaced_unasked(tmp_path, command):
    put(tmp_path, "order.csv", "precious")
    before = contents(tmp_path)
    done = run_here(tmp_path, *WRITERS[command], *ORDER)
    assert done.returncode == 2
    assert (
        done.stderr
        == "error: 'order.csv' exists already; choose another name or overwrite it (--overwrite)\n"
    )
    assert contents(tmp_path) == before


REFUSED = {
    "--crosswalk is for a file that is handed out; add --release or drop --crosswalk": [*MASK, *ORDER],
    "--keep-order is for a file that is handed out; add --release or drop --keep-order": [
        *MASK,
        "--keep-order",
    ],
    "--keep-order leaves nothing for --crosswalk to say; drop one of them": [
        *RELEASE,
        *ORDER,
        "--keep-order",
    ],
    "'out.csv' is the output, too; give the crosswalk another name": [*RELEASE, "--crosswalk", "out.csv"],
    "cannot write 'order.dta' by its suffix; use one of: .csv": [*RELEASE, "--crosswalk", "order.dta"],
    "'data.csv' is the input file, which is never changed": [
        *RELEASE,
        "--crosswalk",
        "data.csv",
        "--overwrite",
    ],
    "no folder 'no' to write 'o.csv' into; create it first": [*RELEASE, "--crosswalk", "no/o.csv"],
    "--crosswalk is given for 1 of 2 masked files; give one for each": [
        *["evaluate", "data.csv", "data.csv", "other.csv", *ORDER]
    ],
    "no file 'order.csv'; check its name and folder": ["evaluate", "data.csv", "data.csv", *ORDER],
    "'data.csv' is no crosswalk: it has no row numbers 'published_row'; give the file that was written": [
        *["evaluate", "data.csv", "data.csv", "--crosswalk", "data.csv"]
    ],
}


@pytest.mark.parametrize("text", REFUSED)
def test_options_that_make_no_sense_are_refused(tmp_path, text):
    before = contents(tmp_path)
    done = run_here(tmp_path, *REFUSED[text])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {text}")
    assert done.stderr.count("\n") == 1
    assert contents(tmp_path) == before


WRONG = {
    "has not each of the 60 rows once in 'published_row'; give the file": lambda order: order.head(59),
    "has not each of the 60 rows once in 'original_row'": lambda order: order.with_columns(original_row=1),
    "has other values of 'id' than the rows of the original; give": lambda order: order.with_columns(
        pl.col("id").reverse()
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_crosswalk_of_another_file_is_refused(tmp_path, text):
    good(tmp_path, *RELEASE, *ORDER, "--na", "NA")
    WRONG[text](read(tmp_path / "order.csv").frame).write_csv(tmp_path / "order.csv")
    done = run_here(tmp_path, "evaluate", "data.csv", "out.csv", *ROLES, *ORDER, "--na", "NA")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: 'order.csv' {text}")


# --- both files or none ---


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize("old", [False, True])
def test_a_full_disk_leaves_neither_file(tmp_path, command, old):
    for name in ("out.csv", "order.csv") if old else ():
        put(tmp_path, name, "precious")
    before = contents(tmp_path)
    more = ["--na", "NA", *["--overwrite"] * old]
    with full_disk():
        done = run_here(tmp_path, *WRITERS[command], *ORDER, *more)
    assert done.returncode == 2, done.stderr
    assert re.fullmatch(r"error: could not write 'out.csv': file too large; raise .*\n", done.stderr)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("failing", ["order.csv", "out.csv"])
def test_what_fails_at_the_last_step_leaves_neither_file(tmp_path, monkeypatch, error, failing):
    """The crosswalk gets its name first; if the release gets none, the crosswalk goes again."""
    before, move = contents(tmp_path), atomic._move_to_target  # noqa: SLF001 - the last step

    def fail(temporary, target, path, *, overwrite):
        if target.name == failing:
            raise error
        move(temporary, target, path, overwrite=overwrite)

    monkeypatch.setattr(atomic, "_move_to_target", fail)
    done = run_here(tmp_path, *RELEASE, *ORDER, "--na", "NA")
    assert done.returncode == (130 if isinstance(error, KeyboardInterrupt) else 2)
    assert done.stdout == ""
    assert contents(tmp_path) == before
