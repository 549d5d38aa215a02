"""Job files on the command line: every option survives the way through one, and jobs do what commands do."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import click
import jsonschema
import polars as pl
import pytest

import command
import described_files
import sdckit as sdc
from cases import each
from command import good, run_here
from sdckit.cli import sdckit as commands
from sdckit.request.options import COMMANDS, OPTIONS, Request, options_of
from sdckit.request.results import schemas
from sdckit.request.toml import (
    check_job,
    job_of_request,
    job_text,
    public_job_text,
    read_job,
    request_of_job,
    toml_text,
)
from sdckit.request.words import request_of_words, spelled_as, words_of_job

SAVING = [name for name, one in commands.commands.items() if any(p.name == "save_job" for p in one.params)]
SEARCH = "recommend survey.csv -o r.csv --columns rent"
NAMES = ("a", "b c", '"d, e"', '"f""g"', "größe", "x=y", "p:q", "-minus")
GIVEN = {  # values as click hands them over, by the kind of the key
    "text": "expected",
    "path": Path("sub/file.toml"),
    "paths": (Path("one.csv"), Path("sub/two.csv")),
    "flag": True,
    "number": "0.25",
    "name": "b c",
    "names": NAMES,
    "texts": ("total = a + b", 'say "x"', "tab\there"),
    "codes": ("-999", "NA", "1e3", "0.50"),
    "limits": ("linkage=0.1", "dbrl:places=2=0.20"),
    "losses": ("suppressed=0.01", "brmae=0.20"),
    "settings": ("k=5", "gamma=0.2", "p=north:5,south:3", "tails=1e-3"),
    "recodings": ("age=5", "x=y=rare:20", "born=year"),
    "grid": ("mdav.k=2:30", "mdav.gaps=merge", "noise", "rank_swap.p=0.10", "rank_swap.tails=0.05"),
    "scenarios": ('press=a,"d, e","p:q":linkage=0.1,dbrl:places=2=0.2', "state=b c"),
}


def given_to(name):
    """Every option and argument of a command with a value that is not its default."""
    left = {"seed": 7, "overwrite": True, "quiet": True, "as_json": True, "as_csv": True}
    left |= {"save_job": Path("job.toml")}
    left |= {"made_by_command": "cp {input} {output}", "made_by_seconds": "9"}
    return {one.name: left[one.name] if one.unjobbed else GIVEN[one.kind] for one in options_of(name)}


def parsed(name, words):
    """What click makes of the words of a command."""
    parent = click.Context(commands, **commands.context_settings)  # else click caches another help option
    params = commands.commands[name].make_context(name, list(words), parent=parent).params
    return request_of_words(name, params)


def settled(request):
    """A request whose paths and names can be compared."""
    found = {}
    for option in options_of(request.command):
        value = getattr(spelled_as(request, ()), option.name)
        if isinstance(value, Path):
            value = value.resolve()
        elif option.kind == "paths":
            value = [path.resolve() for path in value]
        found[option.name] = value
    return found


def test_the_commands_that_save_jobs():
    assert [*COMMANDS] == SAVING


def test_an_option_is_in_jobs_or_says_why_not():
    asked = {one.name: bool(one.section) for one in OPTIONS.values() if {*one.commands} & {*COMMANDS}}
    assert asked == {name: not OPTIONS[name].unjobbed for name in asked}
    for name in COMMANDS:
        assert {p.name for p in commands.commands[name].params} == {one.name for one in options_of(name)}


@each("name", SAVING)
@each("folder", ["", "jobs", "jobs/deep"])
def test_options_to_job_to_options_is_the_identity(name, folder):
    request = request_of_words(name, given_to(name))
    default = Request(command=name)
    assert all(getattr(request, one.name) != getattr(default, one.name) for one in options_of(name))
    job = job_of_request(request, Path(folder))
    again = check_job(tomllib.loads(job_text(job)), Path(folder))
    unjobbed = {one.name: one.default for one in options_of(name) if one.unjobbed}
    expected = settled(replace(request, **unjobbed))
    assert settled(request_of_job(again)) == expected
    assert settled(parsed(name, words_of_job(again))) == expected


@pytest.mark.parametrize("name", SAVING)
def test_defaults_are_left_out_and_come_back(name):
    words = {"mask": "a.csv -o out.csv --method mdav", "evaluate": "a.csv b.csv", "sweep": "a.csv -o out.csv"}
    given = parsed(name, words.get(name, "a.csv -o out.csv --max-risk linkage=0.1").split())
    job = job_of_request(given)
    kept = {option.name for option, _ in job.values()}
    assert kept <= {"limits", "method", "output", "data", "masked", "release"}
    assert settled(parsed(name, words_of_job(check_job(job.content)))) == settled(given)
    assert settled(request_of_job(check_job(job.content))) == settled(given)


def test_names_with_blanks_are_kept_where_the_file_has_them():
    given = parsed("mask", ["a.csv", "-o", "b.csv", "--method", "mdav", "--columns", " a, b", "--unit", " u"])
    content = [job_of_request(given, columns=known).content["roles"] for known in ((), (" a", " b", " u"))]
    assert content == [{"columns": ["a", "b"], "unit": "u"}, {"columns": [" a", " b"], "unit": " u"}]


def test_lists_in_a_grid_are_values_to_try():
    grid = {
        "mdav": {"k": [3, 5, 10]},
        "rank_swap": {"bound": ["inclusive", "exclusive"], "p": 0.1},
        "noise": {},
    }
    job = check_job(
        {
            "input": {"data": "a"},
            "output": {"output": "b"},
            "search": {"max_risk": {"linkage": 1}, "grid": grid},
        }
    )
    expected = {
        "mdav": {"k": "3,5,10"},
        "rank_swap": {"bound": "inclusive,exclusive", "p": "0.1"},
        "noise": {},
    }
    assert parsed("recommend", words_of_job(job)).grids == request_of_job(job).grids == expected


def test_what_a_report_shows_has_no_folder_no_private_file_and_no_stratum():
    given = given_to("mask") | {"output": Path("/secret/folder/out.csv")}
    job = job_of_request(request_of_words("mask", given))
    text = public_job_text(job)
    assert tomllib.loads(text)["output"]["output"] == "out.csv"
    for hidden in ("secret", "sub/", "private", "crosswalk", "scratch", "north", "seed"):
        assert hidden not in text
    assert "north" in job_text(job)


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """A folder with a file of households, two masked ones, and a subfolder for jobs."""
    folder = tmp_path_factory.mktemp("jobs")
    data = described_files.households(300).select("hhid", "age", "region", "income", "rent", "food")
    data.write_csv(folder / "survey.csv")
    for name, k in (("one", 3), ("two", 9)):
        masked = sdc.Microdata(data, columns=["income", "rent"], untouched=["hhid", "region"]).mask(
            "mdav", k=k
        )
        masked.write_csv(folder / f"{name}.csv")
    (folder / "jobs").mkdir()
    return folder


@pytest.mark.long
def test_the_draft_of_describe_runs_once_its_questions_are_answered(survey):
    done = good(survey, "describe", "survey.csv", "-o", "jobs/job.toml", "--na", "-999", "--untouched", "age")
    assert "wrote jobs/job.toml: edit it, then sdckit run jobs/job.toml" in done.stdout
    path = survey / "jobs" / "job.toml"
    draft = path.read_text()
    assert read_job(path).content["input"] == {"data": "../survey.csv", "na": [-999]}
    undecided = run_here(survey, "run", "jobs/job.toml")
    assert undecided.returncode == 2
    assert "a release needs a decision on" in undecided.stderr
    (question,) = [line for line in draft.splitlines() if line.startswith("# unit =")]
    assert question.endswith("does it number households, firms or persons? then they get fresh numbers")
    edited = draft.replace("# unit =", "unit =").replace('# "region",  # or', '"region",  # or')
    edited = edited.replace("\n[recode]\n", "\n[recode]\nage = 50\n").replace('    "age",', '    # "age",')
    edited = edited.replace(
        "linkage = 0.1 }", 'linkage = 0.5, linkage_sure = 1 }\ngrid = { noise = { percent = "100:500:200" } }'
    )
    path.write_text(edited + "decimals = 1\n")
    done = good(survey, "run", "jobs/job.toml", "--json")
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schemas()["recommend"])
    assert (printed["original"], printed["masked"]) == ("survey.csv", ["survey-masked.csv"])
    released = pl.read_csv(survey / "jobs" / "survey-masked.csv")
    assert {*released["age"].unique()} <= {0, 50}
    assert "region" not in released.columns
    page = (survey / "jobs" / "survey-report.html").read_text()
    assert "How to repeat this" in page
    assert "../survey.csv" not in page
    assert "exists already" in run_here(survey, "run", "jobs/job.toml").stderr
    command.forget_releases()
    assert good(survey, "run", "jobs/job.toml", "--overwrite", "-q").stdout == ""


def test_a_saved_job_does_what_the_command_did(survey):
    words = (
        "mask survey.csv -o out.csv --method mdav --set k=5 --columns income,rent --drop hhid,age,region,food"
    )
    done = good(survey, *words.split(), "--save-job", "jobs/mask.toml", "--seed", "1")
    assert "note: wrote jobs/mask.toml" in done.stderr
    assert "note: --seed is not part of the job: a release draws its own random numbers" in done.stderr
    assert read_job(survey / "jobs" / "mask.toml").content["output"] == {
        "output": "../out.csv",
        "release": False,
    }
    first = (survey / "out.csv").read_bytes()
    good(survey, "run", "jobs/mask.toml", "--overwrite")
    assert (survey / "out.csv").read_bytes() == first
    judged = "evaluate survey.csv out.csv --columns income,rent --metrics brmae --max-loss brmae=0.0001"
    done = run_here(survey, *judged.split(), "--save-job", "gate.toml", "--json")
    again = run_here(survey, "run", "gate.toml", "--json")
    assert (done.returncode, again.returncode) == (1, 1)
    assert done.stdout == again.stdout
    jsonschema.validate(json.loads(done.stdout), schemas()["evaluate"])
    again = run_here(survey, *judged.split(), "--save-job", "gate.toml")
    assert again.returncode == 2
    assert "'gate.toml' exists already" in again.stderr


def test_a_sweep_is_repeated_by_its_job(survey):
    words = "sweep survey.csv -o sweep --grid mdav.k=3,9 --columns income,rent --metrics brmae -q"
    assert "note" not in good(survey, *words.split(), "--save-job", "sweep.toml").stderr
    table = pl.read_csv(survey / "sweep" / "summary.csv")
    good(survey, "run", "sweep.toml", "--overwrite", "-q")
    assert pl.read_csv(survey / "sweep" / "summary.csv").equals(table)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("describe survey.csv --json", "describe"),
        ("mask survey.csv -o a.csv --method mdav --columns income,rent --json", "mask"),
        (
            "evaluate survey.csv one.csv --columns income --scenario press=income --variables --json",
            "evaluate",
        ),
        ("evaluate survey.csv one.csv two.csv --columns income --max-loss brmae=1 --json", "evaluate"),
        ("evaluate survey.csv one.csv two.csv --columns income --together --json", "evaluate"),
        (f"{SEARCH} --drop hhid,region --grid mdav.k=2 --max-risk rid=0 --json", "recommend"),
        (f"{SEARCH} --drop hhid,region --max-risk linkage=0 --json", "recommend"),
    ],
)
def test_outputs_are_as_their_schemas_say(survey, words, name):
    done = run_here(survey, *words.split())
    jsonschema.validate(json.loads(done.stdout), schemas()[name])
    shipped = json.loads(good(survey, "schema", name).stdout)
    assert shipped == schemas()[name]


def test_jobs_are_as_their_schema_says():
    for name in SAVING:
        job = job_of_request(request_of_words(name, given_to(name)))
        jsonschema.validate(tomllib.loads(toml_text(job.content)), schemas()["job"])
    assert "unknown schema 'jobs' (did you mean 'job'?)" in run_here(Path(), "schema", "jobs").stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[search]\nmax_risk = { linkages = 0.1 }", "unknown metric 'linkages' (did you mean 'linkage'?)"),
        (
            "[search]\nmax_risk = { linkage = 0.1 }\ngrid = { mdaf = {} }",
            "unknown method 'mdaf' (did you mean",
        ),
        (
            "[search]\nmax_risk = { linkage = 0.1 }\nmethod = 'mdav'",
            "[search] method is in the wrong section",
        ),
        (
            "[[scenario]]\nname = 'a=b'\nknown = ['c']\n[search]\nmax_risk = {linkage = 1}",
            "with an equals sign",
        ),
    ],
)
def test_a_wrong_job_ends_with_one_line_and_no_trace(tmp_path, text, expected):
    command.put(tmp_path, "job.toml", f'[input]\ndata = "a.csv"\n[output]\noutput = "b.csv"\n{text}\n')
    before = command.contents(tmp_path)
    done = run_here(tmp_path, "run", "job.toml")
    assert done.returncode == 2
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert command.contents(tmp_path) == before


def test_a_key_that_is_gone_is_ignored_with_a_warning(survey):
    text = (
        '[input]\ndata = "survey.csv"\nmasked = ["one.csv"]\n[measures]\nmetrics = ["brmae"]\nranks = true\n'
    )
    (survey / "old.toml").write_text(text)
    done = good(survey, "run", "old.toml", "--json")
    assert "warning: 'old.toml': [measures] ranks is gone and ignored; give metrics = " in done.stderr
