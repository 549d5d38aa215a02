"""Completion as shells ask for it: another process, the words in its environment, proposals on its output."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sdckit as sdc
from cases import each
from command import HANGING, environment, put, put_survey
from sdckit.cli import completion
from sdckit.io.packing import packed
from sdckit.io.suffixes import PACKED_SUFFIXES, READABLE, TEXT_SUFFIXES

BASH = shutil.which("bash")
HEAVY = {"numpy", "polars", "numba", "scipy", "pyarrow", "rich"}
ASK = "import sys; from sdckit.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("completion")
    frame = put_survey(place)
    frame.write_parquet(place / "data.parquet")
    put(place, "semicolons.csv", 'id;"odd; name";größe\n1;2;3\n')
    put(place, "broken.parquet", "no such format")
    put(place, "notes.md", "no data")
    return place


def ask(folder, *words, program="bash"):
    """The proposals for the last of the words, and the modules that were imported for them."""
    zsh_or_bash = {"COMP_WORDS": " ".join(["sdckit", *words]), "COMP_CWORD": str(len(words))}
    fish = {"COMP_WORDS": " ".join(["sdckit", *words]), "COMP_CWORD": words[-1]}
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=folder,
        env=environment(_SDCKIT_COMPLETE=f"{program}_complete")
        | (fish if program == "fish" else zsh_or_bash),
        capture_output=True,
        encoding="utf-8",
        timeout=HANGING,
        check=True,
    )
    return done.stdout.strip().splitlines(), set(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["mask", "data.csv", "--method", "corr"], ["correlated_noise"]),
        (["mask", "data.csv", "--method", "noise", "--set", ""], ["percent="]),
        (["evaluate", "data.csv", "data.csv", "--made-by", "vm"], ["vmdav"]),
        (["sweep", "data.csv", "--grid", "vmd"], ["vmdav."]),
        (["sweep", "data.csv", "--grid", "vmdav.g"], ["vmdav.gamma=", "vmdav.gaps="]),
        (["evaluate", "data.csv", "data.csv", "--metrics", "brmae,brm"], ["brmae,brmse"]),
        (["recommend", "data.csv", "--max-risk", "linkage_u"], ["linkage_units="]),
        (["recommend", "data.csv", "--minimise", "linkage"], []),
        (["mask", "data.csv", "--untouched", "grade,re"], ["grade,region"]),
        (["mask", "semicolons.csv", "--decimal-comma", "--by", ""], ["id", "größe"]),
        (["mask", "broken.parquet", "--by", ""], []),
        (["mask", "absent.csv", "--by", ""], []),
        (["recommend", "--max-risk", "linkage", "=", "0.1", "data.csv", "--weights", "w"], ["weight"]),
        (["mask", "data.csv", "--set", "k", "=", ""], []),
        (["describe", "d"], ["data.csv", "data.parquet"]),
        (["methods", "sh"], ["shuffle"]),
    ],
    ids=" ".join,
)
def test_bash_is_told_what_fits(folder, words, found):
    proposed, modules = ask(folder, *words)
    assert proposed == [f"plain,{name}" for name in found]
    assert not modules & HEAVY - ({"polars"} if "broken.parquet" in words else set())


def test_columns_of_parquet_files(folder):
    proposed, _ = ask(folder, "mask", "data.parquet", "--key", "i")
    assert proposed == ["plain,id", "plain,income"]


def test_zsh_and_fish_also_say_what_a_name_is(folder):
    title = sdc.METHODS["vmdav"].title
    assert ask(folder, "mask", "data.csv", "--method", "vm", program="zsh")[0] == ["plain", "vmdav", title]
    assert "vmdav" in ask(folder, "mask", "data.csv", "--method", "vm", program="fish")[0][-1]


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_the_line_of_the_page_works_in_bash(folder):
    script = f"""
    sdckit() {{ "{sys.executable}" -m sdckit "$@"; }}
    eval "$(_SDCKIT_COMPLETE=bash_source sdckit)"
    COMP_WORDS=(sdckit recommend data.csv --max-risk linkage_o) COMP_CWORD=4
    compopt() {{ echo "compopt $*"; }}
    _sdckit_completion sdckit
    echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        [BASH, "--norc", "-c", script],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=HANGING,
        check=True,
    )
    assert done.stdout.split() == ["compopt", "-o", "nospace", "linkage_outliers="]


def test_names_are_those_of_the_registry():
    names = json.loads(completion.NAMES.read_text(encoding="utf-8"))
    assert list(names["methods"]) == list(sdc.METHODS)
    assert list(names["metrics"]) == list(sdc.METRICS)
    for name, method in sdc.METHODS.items():
        assert list(names["methods"][name]["parameters"]) == [one.name for one in method.parameters]


@pytest.mark.parametrize("suffix", ["", *PACKED_SUFFIXES])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_packed_files_have_columns_too(tmp_path, suffix, mark):
    path = tmp_path / f"data.csv{suffix}"
    content = f"{mark}first,second\n1,2\n".encode()
    path.write_bytes(packed(path, content) if suffix else content)
    for given in ({}, {"encoding": "utf-8"}, {"encoding": "UTF8"}):
        assert completion.header_of(path, given) == ["first", "second"]


@each("suffix", READABLE)
def test_files_are_proposed_as_they_can_be_read(suffix):
    assert completion.DataPath().fits(Path(f"a{suffix}"))
    assert completion.DataPath().fits(Path(f"A{suffix.upper()}"))
    if suffix not in TEXT_SUFFIXES:
        assert not completion.DataPath().fits(Path(f"a{suffix}.gz"))


def test_jobs_are_proposed_as_they_can_be_read():
    assert completion.DataPath(".toml").fits(Path("job.toml"))
    assert not completion.DataPath(".toml").fits(Path("job.toml.gz"))
