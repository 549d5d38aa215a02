"""The site: it builds, links lead somewhere, it has every name of the program, and it needs no network."""

import ast
import builtins
import collections.abc
import dataclasses
import inspect
import re
import signal
import subprocess
import sys
import typing
from pathlib import Path

import click
import pytest

import sdckit as sdc
from browser import DESKTOP, PHONE
from sdckit import terminal
from sdckit.cli import sdckit as group
from sdckit.request.options import JOB_OPTIONS, SECTIONS
from sdckit.request.results import schemas

pytestmark = pytest.mark.long

HERE = Path(__file__).parent.parent
INHERITED = {"add_note", "args", "with_traceback"}  # what Python gives to every error


def build(source, folder):
    """Build the site strictly: what Sphinx warns of, such as a link that leads nowhere, ends the build."""
    words = ["-m", "sphinx", "-q", "-W", "-n", "-c", HERE / "tools" / "site", source, folder]
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = build(HERE, folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def sections():
    """The text below each heading of a page of the reference, by page and heading, without marks of code."""
    found = {}
    for path in (HERE / "docs" / "reference").glob("*.md"):
        text = path.read_text(encoding="utf-8").replace("`", "").replace("\\|", "|")
        pieces = re.split(r"^#+ (.+)$", text, flags=re.MULTILINE)[1:]
        found |= {(path.stem, head): below for head, below in zip(pieces[::2], pieces[1::2], strict=True)}
    return found


def has(text, name):
    """Whether a text has a name that is no part of a longer one."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def walk(name, command):
    yield name, command
    for own, below in getattr(command, "commands", {}).items():
        yield from walk(f"{name} {own}", below)


def test_every_page_is_in_the_site(site):
    sources = [path.relative_to(HERE) for path in (HERE / "docs").rglob("*.md")]
    assert all((site / path.with_suffix(".html")).exists() for path in sources)
    assert len(sources) > 20


def test_every_command_and_option_is_documented(sections):
    for name, command in walk("sdckit", group):
        text = sections["commands", name]
        params = command.get_params(click.Context(command, **group.context_settings))
        shown = [one for one in params if isinstance(one, click.Option) and not one.hidden]
        options = [word for one in shown for word in one.opts]
        assert "--help" in options
        assert [word for word in [*options, *_arguments(params)] if not has(text, word)] == []


def _arguments(params):
    return [one.human_readable_name.upper() for one in params if isinstance(one, click.Argument)]


@pytest.mark.parametrize("records", [sdc.METRICS, sdc.METHODS], ids=["metrics", "methods"])
def test_every_metric_method_and_parameter_is_documented(sections, records):
    for name, record in records.items():
        text = sections["metrics-and-methods", name]
        missing = [one for one in record.parameters if not has(text, one.name) or one.text not in text]
        assert not missing, name
        assert record.reference.replace("`", "") in text


def test_every_key_of_job_files_is_documented(sections):
    for field in JOB_OPTIONS:
        text = sections["job-file", field.section]
        assert field.path in text
        assert field.text.replace("`", "") in text
        assert all(has(text, command) for command in field.jobs)
    assert {field.section for field in JOB_OPTIONS} == set(SECTIONS)


def keys(schema):
    """The names of all keys of a schema, at any depth."""
    if isinstance(schema, list):
        return set().union(*map(keys, schema))
    if not isinstance(schema, dict):
        return set()
    named = schema.get("properties")
    own = set(named) if isinstance(named, dict) else set()
    return own.union(*map(keys, schema.values()))


def test_every_key_of_json_is_documented(sections):
    printed = {name: one for name, one in schemas().items() if name != "job"}
    for name, schema in printed.items():
        assert keys(schema)
        assert [key for key in keys(schema) if not has(sections["json", name], key)] == []


def test_every_exit_code_is_documented(sections):
    codes = {0, 2, *_numbers(HERE / "src/sdckit/cli/__init__.py", "code")}
    for path in (HERE / "src").rglob("*.py"):
        codes |= _numbers(path, "exit_code")
    names = re.findall(r'"(SIG\w+)"', inspect.getsource(terminal.exit_on_signals))
    codes |= {128 + getattr(signal, name) for name in names}
    assert codes >= {0, 1, 2, 129, 130, 143}
    assert [code for code in codes if not has(sections["exit-codes", "Exit codes"], str(code))] == []


def _numbers(path, name):
    """The numbers that a module assigns to a name."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text if f"{name} =" in text else "")
    assigned = [one for one in ast.walk(tree) if isinstance(one, ast.Assign)]
    values = [one.value for one in assigned if getattr(one.targets[0], "id", None) == name]
    return {one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, int)}


def test_every_public_name_is_documented(sections):
    metrics = {*sdc.loss.__all__, *sdc.risk.__all__}
    for name in dir(sdc):
        value = getattr(sdc, name)
        page = "classes" if inspect.isclass(value) else "metrics" if name in metrics else ""
        page = "metrics" if inspect.ismodule(value) else page
        page = "" if name == "estimates" else page  # the function; the loss of that name is loss.estimates
        assert sections[f"python-{page}".rstrip("-"), name], name
    assert sections["python-metrics", "loss.estimates"]


def test_every_parameter_of_a_function_is_explained():
    for name in dir(sdc):
        value = getattr(sdc, name)
        if inspect.isfunction(value):
            text = inspect.getdoc(value)
            assert [one for one in inspect.signature(value).parameters if not has(text, one)] == [], name


def test_every_member_of_a_class_is_documented(sections):
    for name, owner in inspect.getmembers(sdc, inspect.isclass):
        fields = [one.name for one in dataclasses.fields(owner)] if dataclasses.is_dataclass(owner) else []
        assert [field for field in fields if not has(inspect.getdoc(owner), field)] == [], name
        assert [field for field in fields if not has(sections["python-classes", name], field)] == [], name
        others = {one for one in dir(owner) if not one.startswith("_")} - set(fields) - INHERITED
        assert all(sections["python-classes", f"{name}.{one}"] for one in others)


def types_of(value):
    """The types that the signature of a function or property has, or those of the fields of a class."""
    function = value.fget if isinstance(value, property) else getattr(value, "func", value)
    if dataclasses.is_dataclass(value):
        return [one.type for one in dataclasses.fields(value)]
    return list(getattr(function, "__annotations__", {}).values())


def test_every_type_in_a_signature_is_explained(sections):
    owners = [one for _, one in inspect.getmembers(sdc, inspect.isclass)]
    members = [one for owner in owners for name, one in vars(owner).items() if not name.startswith("_")]
    values = [getattr(sdc, name) for name in dir(sdc)] + members
    texts = [one for value in values for one in types_of(value) if isinstance(one, str)]
    named = {word for text in texts for word in re.findall(r"[A-Za-z_.]+", text)} - {"..."}
    usual = {*dir(builtins), *typing.__all__, *collections.abc.__all__, *dir(sdc)}
    explained = sections["python-classes", "Types in signatures"]
    assert {"AnyPath", "pl.DataFrame"} <= named
    assert [word for word in named - usual if not has(explained, word)] == []


@pytest.mark.parametrize("link", ["nowhere.md", "index.md#no-heading", "#no-heading", "nothing.png"])
def test_a_link_that_leads_nowhere_ends_the_build(link, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# One\n\n[one](#one) and [none]({link})\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "index.md:3: WARNING" in done.stderr


@pytest.fixture
def opened(browser, site):
    """A function that opens a page of the site; in the end, no error came and no request left the site."""
    complaints, contexts = [], []

    def allow(route):
        inside = route.request.url.startswith(site.as_uri())
        complaints.extend([] if inside else [route.request.url])
        _ = route.continue_() if inside else route.abort()

    def answer(page, viewport=DESKTOP, **more):
        contexts.append(browser.new_context(viewport=viewport, offline=True, **more))
        opened = contexts[-1].new_page()
        opened.route("**/*", allow)
        opened.on("console", lambda message: complaints.append(message.text))
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.goto((site / page).as_uri())
        return opened

    yield answer
    for context in contexts:
        context.close()
    assert complaints == []


def test_the_search_works_from_the_file_system(opened):
    page = opened("search.html")
    page.fill("article input[name=q], .sidebar-search", "rank swapping")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a[href*='docs/explanation/methods.html']")  # shown one by one


def test_every_page_opens_without_a_network_and_has_its_pictures(opened, site):
    page = opened("docs/index.html")
    for path in sorted((site / "docs").rglob("*.html")):
        page.goto(path.as_uri())
        assert page.evaluate("[...document.images].every((one) => one.naturalWidth > 0)"), path


def test_no_page_is_wider_than_a_phone(opened):
    for name in ("index", "tutorial", "explanation/methods", "reference/json", "reference/python-classes"):
        page = opened(f"docs/{name}.html", PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"], name
