"""A release is made again byte for byte, on another number of cores; anything else is never written."""

import importlib.util
import json
import os
import shutil
from pathlib import Path
from unittest import mock

import pytest

from command import contents, good, run_here, run_together
from kept import ROLES, mask, only_entry, people, put_people, raw_entry, store_in
from sdckit.io import files
from sdckit.kernels.jit import digest_of_kernels
from sdckit.record import entry as environment
from sdckit.record.entry import REPEATED, checksum
from sdckit.record.store import ENTRY, Store, digest_of_file
from sdckit.selection.release import ReleasePlan

EARLIER = Path(__file__).with_name("version_0_1")  # a file and entries as that version wrote them
ONE_CORE = dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
MEASURED = {"metrics", "ties", "missing", "limits", "tries", "per_record", "scenarios", "in_place"}
SETTINGS = {
    "noise": ["--method", "noise", "--set", "percent=30", "--by", "region", "--decimals", "0"],
    "mdav": ["--method", "mdav", "--set", "k=4", "--groups", "group", "--rule", "discover"],
    "rank_swap": ["--method", "rank_swap", "--keep-order", "--numbered", "record"],
    "shuffle": ["--method", "shuffle", "--recode", "street=rare:2"],
}


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """Releases in all formats from data in all formats, with one private record each."""
    folder = tmp_path_factory.mktemp("office")
    frame = people()
    names = ["data.csv", "data.parquet", "data.csv.gz", "data.arrow"]
    for name in names[:2]:
        put_people(folder, frame, name)
    for name in names[2:]:
        files.write(folder / name, frame)
    if importlib.util.find_spec("pyreadstat"):
        files.write(folder / "data.dta", frame)
        names += ["data.dta"]
    for name in names:
        output = name.replace("data", "out")
        mask(folder, "--private", f"record {name}", data=name, output=output)
    return folder, names


@pytest.mark.long
def test_the_same_bytes_on_one_core(office):
    folder, names = office
    again = folder / "again"
    again.mkdir()
    cases = []
    for name in names:
        one = only_entry(store_in(folder, f"record {name}")).id
        output = again / name.replace("data", "out")
        cases.append((folder, ["replay", one, name, "-o", output, "--private", f"record {name}"]))
    with mock.patch.dict(os.environ, ONE_CORE):
        results = run_together(cases)
    for name, done in zip(names, results, strict=True):
        output = name.replace("data", "out")
        assert done.returncode == 0, done.stderr
        assert (again / output).read_bytes() == (folder / output).read_bytes()
        assert "the same bytes as release" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_option_that_decides_bytes_is_kept(tmp_path, setting):
    put_people(tmp_path)
    roles = [] if "--recode" in SETTINGS[setting] else ["--drop", "street"]
    roles += [] if "--by" in SETTINGS[setting] else ["--untouched", "region"]
    given = ["mask", "data.csv", "-o", "out.csv", "--release", "--key", "name", *roles, *SETTINGS[setting]]
    good(tmp_path, *given, "--quiet", "--private", "record")
    one = only_entry(store_in(tmp_path)).id
    good(tmp_path, "replay", one, "data.csv", "-o", "again.csv", "--private", "record")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


def test_the_draw_that_met_its_limits_is_made_again(tmp_path):
    put_people(tmp_path)
    given = [
        "recommend",
        "data.csv",
        "-o",
        "out.csv",
        "--max-risk",
        "linkage=0.2",
        "--grid",
        "noise.percent=150",
    ]
    good(tmp_path, *given, *ROLES, "--quiet")
    store = Store.at()
    entry = only_entry(store)
    assert entry.limits == {"linkage": 0.2, "linkage_sure": 0.02}
    good(tmp_path, "replay", entry.id, "data.csv", "-o", "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()
    done = good(tmp_path, "check", "again.csv", "--json")
    limits = {limit["metric"]: limit for limit in json.loads(done.stdout)["limits"]}
    assert limits.keys() == entry.limits.keys()
    for risk, most in entry.limits.items():
        assert limits[risk]["met"]
        assert limits[risk]["value"] <= most


def test_every_field_of_a_plan_is_repeated_or_only_measured():
    fields = set(ReleasePlan.__dataclass_fields__)
    assert fields == {*REPEATED, "rules"} | MEASURED


def refused(folder, *words, code=2):
    before = contents(folder)
    done = run_here(folder, "replay", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1), done.stderr
    assert contents(folder) == before
    return done.stderr


def test_other_data_another_id_and_another_suffix_are_refused(office):
    folder, _ = office
    one = only_entry(store_in(folder, "record data.csv")).id
    private = ["--private", "record data.csv"]
    put_people(folder, people(seed=6), "other.csv")
    text = refused(folder, one, "other.csv", "-o", "x.csv", *private)
    assert "'other.csv' is not the file that release" in text
    for wrong in ("20200101-00000000", "x", "../record", ".key", one[:-1], ""):
        assert "sdckit releases lists those" in refused(folder, wrong, "data.csv", "-o", "x.csv", *private)
    assert "suffix .csv" in refused(folder, one, "data.csv", "-o", "x.parquet", *private)
    assert "exists already" in refused(folder, one, "data.csv", "-o", "out.csv", *private)
    assert "input file" in refused(folder, one, "data.csv", "-o", "data.csv", "--overwrite", *private)
    assert "no release" in refused(folder, one, "data.csv", "-o", "x.csv", "--private", "nothing")


@pytest.fixture
def altered(office, tmp_path):
    """A copy of the record whose entry says something else under a checksum that fits."""
    folder, _ = office
    shutil.copytree(folder / "record data.csv", tmp_path / "record")
    shutil.copy(folder / "data.csv", tmp_path / "data.csv")
    store = store_in(tmp_path)
    one = only_entry(store).id

    def alter(**changes):
        path = store.folder / one / ENTRY
        content = json.loads(path.read_bytes()) | changes
        del content["checksum"]
        path.write_text(json.dumps(content | {"checksum": checksum(content)}))
        return one

    return tmp_path, alter


def test_what_differs_is_named_where_the_bytes_differ(altered):
    folder, alter = altered
    given = ["data.csv", "-o", "again.csv", "--private", "record"]
    versions = environment.versions() | {"numpy": "1.0", "polars": "0.1"}
    one = alter(entropy="00" * 32, versions=versions, kernels="0" * 64)
    text = refused(folder, one, *given, code=1)
    for word in ("numpy 1.0 then and", "polars 0.1 then", "other sources of kernels", "nothing is written"):
        assert word in text
    alter(versions=environment.versions(), kernels=digest_of_kernels(), cpu=["abacus"])
    assert "CPU features" in refused(folder, one, *given, code=1)
    alter(cpu=environment.cpu_features())
    assert "no difference of versions or CPU is known" in refused(folder, one, *given, code=1)


def test_other_versions_that_give_the_same_bytes_are_no_reason_to_refuse(altered):
    folder, alter = altered
    one = alter(versions={"numpy": "1.0"}, kernels="0" * 64, cpu=[])
    good(folder, "replay", one, "data.csv", "-o", "again.csv", "--private", "record")


def test_evaluate_finds_the_crosswalk_and_says_so(office):
    folder, _ = office
    entry = only_entry(store_in(folder, "record data.csv"))
    roles = ["--key", "name", "--drop", "street", "--untouched", "region", "--made-by", "noise"]
    given = ["evaluate", "data.csv", "out.csv", *roles, "--set", "percent=100", "--json"]
    found = json.loads(good(folder, *given, "--private", "record data.csv").stdout)
    assert any(f"is release {entry.id}: its rows are aligned by the crosswalk" in n for n in found["notes"])
    values = {
        row["metric"]: row["value"] for row in found["table"] if row["variable"] == row["stratum"] == "all"
    }
    for row in entry.measured:
        assert values[row["metric"]] == pytest.approx(row["value"]), row["metric"]
    (folder / "changed.csv").write_text((folder / "data.csv").read_text().replace("north", "south"))
    given[1] = "changed.csv"
    given[given.index("--key")] = "--drop"
    notes = json.loads(good(folder, *given, "--private", "record data.csv").stdout)["notes"]
    assert any("another file than 'changed.csv': its crosswalk is not used" in note for note in notes)


def test_check_and_releases(office):
    folder, _ = office
    private = ["--private", "record data.csv"]
    entry = only_entry(store_in(folder, "record data.csv"))
    assert f"'out.csv' is release {entry.id}" in good(folder, "check", "out.csv", *private).stdout
    (row,) = json.loads(good(folder, "releases", *private, "--json").stdout)
    assert (row["id"], row["records"], row["limits"]) == (entry.id, 80, "none")
    assert entry.id in good(folder, "releases", *private).stdout
    done = run_here(folder, "check", "data.csv", *private)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "none of the releases" in done.stderr
    assert "no releases in" in good(folder, "releases", "--private", "nothing").stdout
    assert not (folder / "nothing").exists()


def test_check_exits_with_1_where_a_limit_is_missed(altered):
    folder, alter = altered
    entry = only_entry(store_in(folder))
    alter(limits={"linkage": 0.0001, "uniques": 1.0})
    shutil.copy(store_in(folder).published(entry), folder / "out.csv")
    done = run_here(folder, "check", "out.csv", "--private", "record")
    assert done.returncode == 1
    assert "limit 0.0001 not met" in done.stderr
    assert "uniques 0.0000, limit 1 met" in done.stdout


# --- records of version 0.1, in which groups with missing cells were merged by default ---


@pytest.mark.parametrize("name", ["mdav", "mdav_suppress", "rank_swap"])
def test_a_release_of_version_0_1_is_made_again(tmp_path, name):
    entry = json.loads((EARLIER / f"{name}.json").read_bytes())
    assert name != "mdav" or "gaps" not in entry["parameters"]
    folder = tmp_path / "record" / entry["id"]
    folder.mkdir(parents=True)
    shutil.copy(EARLIER / f"{name}.json", folder / ENTRY)
    shutil.copy(EARLIER / "data.csv", tmp_path)
    good(tmp_path, "replay", entry["id"], "data.csv", "-o", "again.csv", "--private", "record")
    assert digest_of_file(tmp_path / "again.csv") == entry["output"]["sha256"]


def test_a_record_states_parameters_whose_default_has_changed(tmp_path):
    put_people(tmp_path)
    given = ["mask", "data.csv", "-o", "out.csv", "--release", "--method", "mdav", "--set", "k=4"]
    good(tmp_path, *given, "--quiet", *ROLES)
    assert raw_entry(Store.at(), only_entry(Store.at()).id)["parameters"] == {"k": "4", "gaps": "alike"}
