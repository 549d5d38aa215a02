"""Job files: what is wrong with one is said in a line with the path of the key."""

from itertools import product

import pytest

from sdckit.request.options import JOB_OPTIONS, KINDS, SECTIONS
from sdckit.request.toml import check_job, job_schema, read_job

JOB = '[input]\ndata = "data.csv"\n[output]\noutput = "out.csv"\n'
SEARCH = JOB + "[search]\nmax_risk = { linkage = 0.1 }\n"
MASK = JOB + '[masking]\nmethod = "mdav"\n'


def refused(tmp_path, text):
    path = tmp_path / "job.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r".") as error:
        read_job(path)
    assert str(error.value).startswith(f"'{path}'")
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (SEARCH, "recommend"),
        (MASK, "mask"),
        ('[input]\ndata = "a.csv"\nmasked = ["b.csv"]\n', "evaluate"),
        ('command = "sweep"\n' + JOB, "sweep"),
    ],
)
def test_a_job_knows_its_command(tmp_path, text, command):
    path = tmp_path / "job.toml"
    path.write_text("\ufeff" + text, encoding="utf-8")  # as some editors begin a file
    job = read_job(path)
    assert (job.command, job.folder) == (command, tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SEARCH + "minimize = 3", "unknown key [search] minimize (did you mean [search] minimise?)"),
        (SEARCH + "[serch]\na = 1", "unknown section [serch] (did you mean [search]?)"),
        (SEARCH + 'drop = ["a"]', "[search] drop is in the wrong section; it belongs to [roles] drop"),
        (SEARCH + "minimise = 3", "[search] minimise is 3; give a text in quotation marks"),
        (SEARCH + "replications = true", "[search] replications is True; give a number"),
        (SEARCH + "[roles]\ncolumns = [1]", "[roles] columns, an entry of the list, is 1; give names"),
        (SEARCH + "[roles]\ndrop = { a = 1 }", "[roles] drop is {'a': 1}; give names in a list"),
        (SEARCH + "grid = { mdav = { k = true } }", "[search] grid mdav k is True; give a table such as"),
        (SEARCH + "grid = ['mdav']", "[search] grid is ['mdav']; give a table such as { mdav ="),
        (SEARCH + "[recode]\nage = ['a']", "[recode] age is ['a']; give a table such as { age = 5"),
        (SEARCH + "[scenario]\nname = 'a'", "[[scenario]] is {'name': 'a'}; give tables with name, known"),
        (SEARCH + "[[scenario]]\nname = 'a'", "[[scenario]], an entry of the list, has no known"),
        (SEARCH + "[[scenario]]\nname='a'\nknown=['b']\nmaxrisk={}", "did you mean [[scenario]], an entry"),
        ("roles = 3\n" + SEARCH, "[roles] is 3; write [roles] on a line"),
        (JOB, "section [search] is missing; add it with max_risk = { linkage = 0.1 }, or [masking] with"),
        (
            SEARCH.replace("[output]", "[roles]").replace("output =", "key ="),
            "[output] output is missing; add",
        ),
        ("[search]\nmax_risk = { linkage = 0.1 }", "[input] data is missing; add data = "),
        ('command = "mask"\n' + JOB, '[masking] method is missing; add method = "mdav" for mask'),
        ('command = "masking"\n' + JOB, "unknown command 'masking' (did you mean 'mask'?); choose from"),
        (
            MASK + "[search]\ngrid = { mdav = { k = 3 } }",
            "[masking] method and [search] grid exclude each other",
        ),
        (MASK + '[private]\nfolder = "a"', "[private] folder is not for mask but for recommend; drop it"),
        (
            MASK + "[[scenario]]\nname='a'\nknown=['b']",
            "[[scenario]] is not for mask but for evaluate, recomm",
        ),
        (SEARCH + "a = \n", "is no TOML file: Invalid value (at line 7, column 5); mend that line"),
        (SEARCH + "max_risk = 1\n", "is no TOML file: Cannot overwrite a value (at line 7"),
        ("a = " + "[" * 100_000, "is no TOML file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, text, expected):
    assert expected in refused(tmp_path, text)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file '.*no.toml'; check its name and folder"):
        read_job(tmp_path / "no.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"cannot read '.*bytes.toml' as text"):
        read_job(tmp_path / "bytes.toml")
    with pytest.raises(ValueError, match="as text"):
        read_job(tmp_path)


def test_the_reader_takes_what_the_schema_takes():
    """Each key with a value of each type: refused by the reader exactly if the schema refuses it."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(job_schema())
    values = ["a", 1, 0.5, True, ["a"], [1], [True], {}, {"a": 1}, {"a": {"b": [1]}}, {"a": {"b": True}}]
    values += [[{"name": "a", "known": ["b"]}], [{"name": "a"}], [{"name": "a", "known": "b", "limit": 1}]]
    verdicts = set()
    for field, value in product(JOB_OPTIONS, values):
        content = {"input": {"data": "a"}, field.section: {field.key: value} if field.key else value}
        content["input"].setdefault("data", "a")
        verdicts.add(fits := validator.is_valid(content))
        assert taken(field.jobs[0], content) == fits, (field.path, value)
    assert verdicts == {True, False}


def taken(command, content):
    """Whether the reader takes a job, apart from keys that the command cannot do without."""
    try:
        check_job({"command": command, **content})
    except ValueError as error:
        return " is missing; add " in str(error)
    return True


def test_the_table_of_keys_is_whole():
    assert {field.section for field in JOB_OPTIONS} == {*SECTIONS}
    assert {field.kind for field in JOB_OPTIONS} == {*KINDS}
    for command in ("mask", "evaluate", "sweep", "recommend"):
        keys = [(field.section, field.key) for field in JOB_OPTIONS if command in field.jobs]
        assert len(keys) == len({*keys})
