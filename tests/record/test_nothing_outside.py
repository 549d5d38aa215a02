"""An attacker searches all that commands leave outside the private record, and finds no secret."""

import json
import re

import numpy as np
import polars as pl
import pytest

from command import good, run_here
from kept import ROLES, mask, only_entry, people, put_people, store_in
from sdckit.io import crosswalk

LIMITS = ["--max-risk", "linkage=1"]


def secrets_of(store):
    """Forms in which the entropy, the order of the rows, and the key of fingerprints could be written."""
    for one in store.ids():
        entry = store.read(one)
        secret = entry.entropy_bytes
        yield from (secret, secret[::-1], entry.entropy.encode(), entry.entropy.upper().encode())
        yield from (str(int.from_bytes(secret, order)).encode() for order in ("big", "little"))
        rows = pl.read_parquet(store.folder / one / "crosswalk.parquet")[crosswalk.ORIGINAL].to_numpy()
        for numbers in (rows, rows - 1, np.argsort(rows), np.argsort(rows) + 1):
            start = numbers[:12]
            yield from (np.asarray(start, kind).tobytes() for kind in ("<i8", "<i4", "<f8"))
            yield from (mark.join(map(str, start)).encode() for mark in (",", ", ", "\n", " ", ";"))
    yield store.secret()
    yield store.secret().hex().encode()


def written(folder, private):
    files = [path for path in folder.rglob("*") if path.is_file() and private not in path.parents]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """A folder in which every command has run on one file; what they printed is in files, too."""
    folder = tmp_path_factory.mktemp("office")
    put_people(folder)
    private = ["--private", "record"]
    mask(folder, *private)
    roles = ["--drop", "street", "--untouched", "region", "--unknown", "region", "--drop", "name"]
    printed = {
        "a": good(folder, "recommend", "data.csv", "-o", "safe.csv", *LIMITS, *ROLES, *private, "--json",
                  "--grid", "mdav.k=3:6", "--report", "safe.html", "--save-job", "job.toml"),
        "b": good(folder, "evaluate", "data.csv", "out.csv", "safe.csv", *roles, *private, "--json"),
        "c": good(folder, "evaluate", "data.csv", "out.csv", *roles, *private, "--records", "records.csv",
                  "--report", "out.html"),
        "d": good(folder, "releases", *private, "--json"),
        "e": good(folder, "check", "out.csv", *private),
        "run": good(folder, "run", "job.toml", "--overwrite", "--json"),
        "f": good(folder, "sweep", "data.csv", "-o", "sweep", "--grid", "mdav.k=3", *ROLES, "--quiet"),
    }  # fmt: skip
    store = store_in(folder)
    for number, one in enumerate(store.ids()):
        printed[f"replay {number}"] = good(folder, "replay", one, "data.csv", "-o", f"{one}.csv", *private)
    for name, done in printed.items():
        (folder / f"printed {name}").write_text(done.stdout + done.stderr)
    return folder, store


def test_the_search_finds_what_is_there(office):
    """The same search over the record itself finds each kind of secret."""
    folder, store = office
    inside = b"".join(path.read_bytes() for path in store.folder.rglob("*") if path.is_file())
    assert only_found(secrets_of(store), inside)
    keys = pl.read_parquet(store.folder / store.ids()[0] / "crosswalk.parquet")["name"]
    assert sorted(keys) == sorted(pl.read_csv(folder / "data.csv")["name"])


def only_found(secrets, content):
    return [secret for secret in secrets if secret in content]


def test_no_secret_is_outside_the_record(office):
    folder, store = office
    outside = written(folder, store.folder)
    assert {"out.csv", "safe.csv", "safe.html", "records.csv", "job.toml", "printed a", "printed run"} <= set(
        outside
    )
    assert sum(name.startswith("2") for name in outside) == 3
    for name, content in outside.items():
        assert not only_found(secrets_of(store), content), name


def test_no_key_and_no_dropped_value_is_outside_the_record(office):
    folder, store = office
    for name, content in written(folder, store.folder).items():
        if name != "data.csv":
            assert not re.search(rb"Zq\d{4}xK|Wv\d{4}yR", content), name


def test_without_private_nothing_lies_beside_the_release(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    work = tmp_path / "work"
    work.mkdir()
    put_people(work)
    mask(work)
    assert sorted(path.name for path in work.iterdir()) == ["data.csv", "out.csv"]
    assert only_entry(store_in(tmp_path, "state/sdckit/releases")).output["name"] == "out.csv"


@pytest.mark.parametrize("method", ["noise", "mdav"])
def test_the_order_of_the_release_tells_nothing_of_the_original_one(tmp_path, method):
    """Neither as it is, nor after sorting by any column, new numbers of records and groups included."""
    put_people(tmp_path, people(400, seed=9))
    more = ["--groups", "group"] if method == "mdav" else []
    given = ["mask", "data.csv", "-o", "out.csv", "--release", "--method", method, *more, *ROLES]
    good(tmp_path, *given, "--numbered", "record", "--private", "record", "--metrics", "brmae", "--quiet")
    store = store_in(tmp_path)
    rows = pl.read_parquet(store.crosswalk(only_entry(store)))[crosswalk.ORIGINAL].to_numpy()
    out = pl.read_csv(tmp_path / "out.csv")
    assert set(out.columns) - {"group"} == {"region", "wages", "rent", "food", "record"}
    orders = [np.arange(400), *(np.argsort(out[name].to_numpy(), kind="stable") for name in out.columns)]
    for order in orders:
        assert abs(np.corrcoef(rows[order], np.arange(400))[0, 1]) < 4 / np.sqrt(400)


@pytest.mark.parametrize("where", [["-o", "record/out.csv"], ["-o", "out.csv", "--report", "record/a.html"]])
def test_what_is_handed_out_never_lies_in_the_record(tmp_path, where):
    put_people(tmp_path)
    given = ["mask", "data.csv", "--method", "mdav", "--release", *ROLES, "--private", "record", *where]
    (tmp_path / "record").mkdir()
    done = run_here(tmp_path, *given)
    assert done.returncode == 2
    assert "would lie in the private record" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_job_in_the_record_names_the_options(office):
    _, store = office
    jobs = [json.loads((store.folder / one / "release.json").read_bytes())["job"] for one in store.ids()]
    assert {"percent": 100} in [job.get("masking", {}).get("set") for job in jobs]
