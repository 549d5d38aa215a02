"""The job that is run, and the line that is copied: the command writes the same job file, to the byte."""

import json
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import called
from command import good
from sdckit.app.job import canonical, command_text, effective_job, job_file_text, open_job
from sdckit.app.state import Pick, State, WorkFolder
from sdckit.cli import sdckit as commands
from sdckit.request.toml import check_job, job_of_request
from sdckit.request.words import request_of_words

BASE = {
    "command": "recommend",
    "input": {"data": "survey.csv"},
    "roles": {"columns": ["a", "b"], "untouched": ["sex", "age"], "key": ["id"]},
    "search": {"max_risk": {"linkage": 0.5}, "grid": {"mdav": {"k": 3}}},
    "output": {"output": "out.csv"},
}


def changed(**sections):
    """The base with some keys of some sections changed; None takes a key away."""
    found = dict(BASE)
    for name, entries in sections.items():
        section = entries if isinstance(entries, list) else found.get(name, {}) | entries
        if isinstance(section, dict):
            section = {key: value for key, value in section.items() if value is not None}
        found[name] = section
    return found


def given_by(line, columns=()):
    """The job that the words of a line stand for."""
    words = shlex.split(line)
    assert words[:2] == ["sdckit", "recommend"]
    command = commands.commands["recommend"]
    with command.make_context("recommend", words[2:]) as context:
        return job_of_request(request_of_words("recommend", context.params), Path(), columns)


LETTERS = st.sampled_from(
    ["a", "B", "1", " ", ",", '"', "'", "=", ":", "-", "\n", "\r", "\t", "ß", "雪", "$", "\\", "#"]
)
NAMES = st.one_of(
    st.text(LETTERS, min_size=1, max_size=6), st.text(st.characters(exclude_categories=["Cs", "Cc"]))
)
COLUMNS = st.lists(NAMES.filter(str.strip), min_size=1, max_size=5, unique=True)
NUMBERS = st.one_of(st.floats(0, 1), st.integers(0, 9), st.sampled_from(["0.10", "1e-3"]))
PATHS = st.sampled_from(["survey.csv", "sub/my file.csv", "-odd.csv", "it's.csv", "ä/ö.csv", "--.csv"])


@st.composite
def jobs(draw):
    """A job whose roles name some of its columns, which have odd names, and the columns."""
    columns = draw(COLUMNS)
    split = draw(st.lists(st.sampled_from(["columns", "untouched", "key", "drop"]), min_size=5, max_size=5))
    roles = {}
    for role, name in zip(split, columns, strict=False):
        roles.setdefault(role, []).append(name)
    if draw(st.booleans()):
        roles["weights"] = draw(st.sampled_from(columns))
    content = {
        "command": "recommend",
        "input": {
            "data": draw(PATHS),
            "na": draw(st.lists(st.sampled_from([-9, "NA", "-", 0.5]), unique=True)),
        },
        "roles": roles,
        "search": {
            "max_risk": draw(st.dictionaries(st.sampled_from(["linkage", "dbrl"]), NUMBERS, min_size=1)),
            "grid": draw(st.sampled_from([{}, {"mdav": {"k": [3, 5]}, "noise": {}}, {"mdav": {"k": "2:9"}}])),
        },
        "scenario": [{"name": "press", "known": columns[:2], "max_risk": {"linkage": 0.25}}],
        "output": {"output": draw(PATHS), "keep_order": draw(st.booleans())},
    }
    named = [name for name in columns if name == name.strip()]
    if named:
        content["recode"] = {draw(st.sampled_from(named)): draw(st.sampled_from([5, "rare:20"]))}
    return content, columns


@given(jobs())
@settings(deadline=None, max_examples=40)
def test_the_copied_line_stands_for_the_same_job(made):
    content, columns = made
    job = canonical(check_job(content), columns)
    assert job.content["roles"] == content["roles"]
    assert job.content["scenario"] == content["scenario"]
    assert {name: str(way) for name, way in job.content.get("recode", {}).items()} == {
        name: str(way) for name, way in content.get("recode", {}).items()
    }
    assert canonical(job, columns).content == job.content
    assert given_by(command_text(job), columns).content == job.content


def test_the_line_is_as_people_write_it():
    job = canonical(check_job(changed(input={"na": [-9]}, output={"keep_order": True})))
    assert command_text(job) == (
        "sdckit recommend survey.csv -o out.csv --na=-9 --columns a,b --key id --untouched sex,age "
        "--max-risk linkage=0.5 --grid mdav.k=3 --keep-order"
    )
    odd = canonical(check_job(changed(input={"data": "-x.csv"})))
    assert command_text(odd).endswith(" -- -x.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a small file."""
    place = tmp_path_factory.mktemp("start")
    rng = np.random.default_rng(3)
    pl.DataFrame(
        {
            "id": np.arange(80),
            "sex": 1 + np.arange(80) % 2,
            "age": np.arange(80) % 7,
            "a": [-9, *rng.integers(1, 1000, 79)],
            "b": rng.integers(1, 1000, 80),
        }
    ).write_csv(place / "survey.csv")
    return place


@pytest.fixture
def work(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return WorkFolder(folder, "survey.csv")


VARIANTS = {
    "untouched": changed(roles={"untouched": ["sex"], "drop": ["age"]}),
    "unknown": changed(roles={"unknown": ["sex"]}),
    "columns": changed(roles={"columns": ["a"], "drop": ["b"]}),
    "weights": changed(roles={"weights": "sex", "untouched": ["age"]}),
    "strata": changed(roles={"by": ["sex"], "untouched": ["age"]}),
    "recode": changed(roles={"untouched": ["sex"]}, recode={"age": 2}),
    "rules": changed(rules={"rule": ["a <= 5000"]}),
    "loss": changed(search={"minimise": "il1s"}),
    "risk": changed(search={"max_risk": {"linkage": 0.5, "dbrl": 0.5}}),
    "max loss": changed(search={"max_loss": {"brmse": 0.9}}),
    "ties": changed(measures={"ties": "expected"}),
    "missing": changed(measures={"missing": "pairwise"}),
    "decimals": changed(output={"decimals": "none"}),
    "codes": changed(input={"na": [-9]}),
    "scenario": changed(scenario=[{"name": "x", "known": ["a"], "max_risk": {"linkage": 0.9}}]),
    "its name": changed(scenario=[{"name": "y", "known": ["a"], "max_risk": {"linkage": 0.9}}]),
    "its columns": changed(scenario=[{"name": "x", "known": ["b"], "max_risk": {"linkage": 0.9}}]),
    "its risk": changed(scenario=[{"name": "x", "known": ["a"], "max_risk": {"dbrl": 0.9}}]),
    "sampled": changed(measures={"sample_queries": 20}),
    "sampled, other limit": changed(measures={"sample_queries": 20}, search={"max_risk": {"linkage": 0.6}}),
    "sampled, more": changed(measures={"sample_queries": 21}),
}
SAME = {
    "base": BASE,
    "limit": changed(search={"max_risk": {"linkage": 0.9}}),
    "plan": changed(search={"grid": None, "methods": ["mdav"]}),
    "effort": changed(search={"workers": 1, "replications": 2}),
    "files": changed(output={"output": "b.csv", "report": "r.html", "keep_order": True, "numbered": "nr"}),
    "private": changed(private={"private": "record", "crosswalk": "c.csv"}),
    "spelling": changed(
        search={"minimise": "brmae"}, measures={"ties": "average"}, output={"decimals": "original"}
    ),
}


class Opened(Exception):  # noqa: N818 - no error
    """Raised with the identity of a search when it opens its folder."""


def identity_of(job):
    """What a search says that it is when it opens its folder; no setting is measured."""
    opened = open_job(job)
    with pytest.raises(Opened) as found:
        called("recommend", opened.prepare(), **opened.search_options())
    return found.value.args[0]


def open_nothing(_work, _folder, identity, *_more, **_named):
    raise Opened(json.dumps(identity))


@pytest.mark.long
def test_the_folder_of_a_search_has_another_name_where_the_search_is_another(work, monkeypatch):
    monkeypatch.setattr("sdckit.selection.search.opened", open_nothing)
    variants = VARIANTS | SAME
    found = {variant: effective_job(State(content), work, 80) for variant, content in variants.items()}
    names = {variant: job.content["private"]["folder"] for variant, job in found.items()}
    identities = {variant: identity_of(job) for variant, job in found.items()}
    assert {names[variant] for variant in SAME} == {names["base"]}
    assert len({*names.values()}) == len(VARIANTS) + 1
    met = list(identities.values())
    assert {variant for variant in VARIANTS if met.count(identities[variant]) > 1} == set()
    assert {identities[variant] for variant in SAME} == {identities["base"]}


def test_the_size_and_content_of_the_file_count(work, folder):
    first = effective_job(State(BASE), work, 80).content["private"]["folder"]
    assert first.startswith("survey-sdckit/search-")
    assert len(first) == len("survey-sdckit/search-") + 8
    limits = [State(changed(search={"max_risk": {"linkage": limit}})) for limit in (0.5, 0.6)]
    small, large = (
        {effective_job(s, work, n).content["private"]["folder"] for s in limits} for n in (80, 30_000)
    )
    assert (len(small), len(large)) == (1, 2)
    other = WorkFolder(folder, "survey.csv")
    other.stamp = type(work.stamp)(*("survey.csv", 1, 1, 1, "0" * 64))
    assert effective_job(State(BASE), other, 80).content["private"]["folder"] != first


def test_a_chosen_setting_is_the_only_one_tried_and_nothing_else_is_set(work):
    content = changed(search={"methods": ["noise"], "grid": {"mdav": {"k": "2:9"}}})
    plain = effective_job(State(content), work, 80)
    chosen = effective_job(State(content, Pick("rank_swap", {"p": 0.1, "bound": "inclusive"})), work, 80)
    assert chosen.content["search"] == {
        "max_risk": {"linkage": 0.5},
        "grid": {"rank_swap": {"p": 0.1, "bound": "inclusive"}},
    }
    assert {**chosen.content, "search": 0} == {**plain.content, "search": 0}
    private = plain.content["private"]
    assert {**plain.content, "private": private} == content | {"private": private}
    by_column = Pick("mdav", {"k": 3, "keep": ["a", "b, c"]})
    grid = effective_job(State(content, by_column), work, 80).content["search"]["grid"]
    assert grid == {"mdav": {"k": 3, "keep": 'a,"b, c"'}}


@pytest.mark.long
def test_the_copied_line_writes_the_same_job_file_and_takes_up_the_search(work, folder):
    content = changed(
        search={"max_risk": {"linkage": 0.95, "linkage_sure": 1}},
        output={"report": "r.html"},
        private={"private": "record"},
    )
    state = State(content, Pick("mdav", {"k": 4}))
    work.ensure()
    job = effective_job(state, work, 80)
    opened = open_job(job)
    choice = called("recommend", opened.prepare(), **opened.search_options())
    words = shlex.split(command_text(job))[1:]
    done = good(folder, *words, "--save-job", "survey-sdckit/saved.toml", "--json")
    found = json.loads(done.stdout)["choice"]
    assert (found["method"], found["parameters"]) == ("mdav", {"k": 4})
    assert found["values"] == choice.public().to_dict()["values"]
    saved = (folder / "survey-sdckit" / "saved.toml").read_text()
    assert job_file_text(job, Path("survey-sdckit")) == saved
