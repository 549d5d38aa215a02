"""The site: it builds, links lead somewhere, it has every name of the program, and it needs no network."""

import ast
import builtins
import collections.abc
import dataclasses
import inspect
import json
import re
import signal
import typing
from pathlib import Path

import click
import pytest
from axe_playwright_python.sync_playwright import Axe

import make_site
import sdckit as sdc
from browser import DESKTOP, PHONE
from sdckit.cli import json_schemas, streams
from sdckit.cli import sdckit as group
from sdckit.job.fields import FIELDS, SECTIONS
from site_pages import read_page

pytestmark = pytest.mark.long

HERE = Path(__file__).parent.parent
INHERITED = {"add_note", "args", "with_traceback"}  # what Python gives to every error


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built strictly: a link that leads nowhere ends the build."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    make_site.main(folder)
    return folder


@pytest.fixture(scope="module")
def sections(site):
    """The text below each heading of a page of the reference, by page and heading, as the search knows it."""
    text = (site / "search-index.js").read_text(encoding="utf-8")
    rows = json.loads(text.removeprefix("window.searchIndex = ").rstrip(";\n"))
    return {(Path(page).stem, heading): text for page, _, _, heading, text in rows}


def has(text, name):
    """Whether a text has a name that is no part of a longer one."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def walk(name, command):
    yield name, command
    for own, below in getattr(command, "commands", {}).items():
        yield from walk(f"{name} {own}", below)


def test_the_program_that_builds_the_site_has_a_help(capsys):
    with pytest.raises(SystemExit) as stop:
        make_site.parsed(["--help"])
    assert stop.value.code == 0
    assert "folder to write" in capsys.readouterr().out
    assert make_site.parsed([]).folder == HERE / "site"
    assert make_site.parsed(["elsewhere"]).folder == Path("elsewhere")


def test_every_page_is_in_the_site(site):
    sources = [path.relative_to(HERE / "docs") for path in (HERE / "docs").rglob("*.md")]
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
    for field in FIELDS:
        text = sections["job-file", field.section]
        assert field.path in text
        assert field.text in text
        assert all(has(text, command) for command in field.commands)
    assert {field.section for field in FIELDS} == set(SECTIONS)


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
    printed = {name: one for name, one in json_schemas.schemas().items() if name != "job"}
    for name, schema in printed.items():
        assert keys(schema)
        assert [key for key in keys(schema) if not has(sections["json", name], key)] == []


def test_every_exit_code_is_documented(sections):
    codes = {0, 2, *_numbers(HERE / "src/sdckit/cli/__init__.py", "code")}
    for path in (HERE / "src").rglob("*.py"):
        codes |= _numbers(path, "exit_code")
    names = re.findall(r'"(SIG\w+)"', inspect.getsource(streams.exit_on_signals))
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


@pytest.mark.parametrize(
    "link", ["nowhere.md", "README.md#no-heading", "#no-heading", "docs/nothing.png", "docs/explanation", ""]
)
def test_a_link_that_leads_nowhere_is_found(link, monkeypatch, tmp_path):
    (tmp_path / "README.md").write_text(
        f"# One\n\n[somewhere](#one) and [nowhere]({link})\n", encoding="utf-8"
    )
    (tmp_path / "docs" / "explanation").mkdir(parents=True)
    monkeypatch.setattr(make_site, "HERE", tmp_path)
    page = read_page(tmp_path / "README.md")
    assert make_site.broken_links([page], {page.path: page}) == [f"README.md: {link}"]


def test_a_picture_from_outside_is_found(monkeypatch, tmp_path):
    (tmp_path / "one.md").write_text("# One\n\n![x](https://example.org/x.png) <https://example.org>\n")
    monkeypatch.setattr(make_site, "HERE", tmp_path)
    page = read_page(tmp_path / "one.md")
    assert make_site.broken_links([page], {page.path: page}) == ["one.md: https://example.org/x.png"]


def test_a_page_that_no_section_has_is_found(monkeypatch, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "new.md").write_text("# New\n", encoding="utf-8")
    monkeypatch.setattr(make_site, "HERE", tmp_path)
    with pytest.raises(SystemExit, match=r"no section of tools/site/site\.toml has .*new\.md"):
        make_site.read_pages({"sections": []})


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "kept.txt").touch()
    with pytest.raises(SystemExit, match="is not empty and no site"):
        make_site.main(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


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


def test_the_search_finds_terms_and_leads_to_them(opened):
    page = opened("explanation/risk.html")
    page.keyboard.press("/")
    page.keyboard.type("rank swapping")
    page.wait_for_selector("#found a")
    found = {link.get_attribute("href"): link.inner_text().lower() for link in page.locator("#found a").all()}
    assert "../reference/metrics-and-methods.html#rank_swap" in list(found)[:3]
    assert all("rank" in text for text in found.values())
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{next(iter(found)).removeprefix('../')}")
    page.fill("#query", "total = a + b")
    page.wait_for_selector("#found a:first-child[href$='#keep-edit-rules']")
    page.fill("#query", "xyzzy")
    page.wait_for_selector("#found p")
    assert page.locator("#found").inner_text() == 'No page has "xyzzy".'


def test_dark_mode_is_kept_from_page_to_page(opened):
    page = opened("index.html")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    page.click("#theme")
    dark = page.evaluate(colour)
    assert dark != "rgb(255, 255, 255)"
    page.click("a[rel=next]")
    page.wait_for_url("**/tutorial.html")
    assert page.evaluate(colour) == dark
    assert opened("index.html", color_scheme="dark").evaluate(colour) == dark


def test_no_page_is_wider_than_a_phone(opened, site):
    page = opened("index.html", PHONE)
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"], path
        assert page.evaluate("[...document.images].every((one) => one.naturalWidth > 0)"), path


@pytest.mark.parametrize("name", ["explanation/methods", "reference/json", "reference/python-classes"])
def test_large_tables_and_pictures_fit_on_a_desktop(opened, name):
    page = opened(f"{name}.html")
    assert page.evaluate("document.documentElement.scrollWidth") == DESKTOP["width"]
    assert page.locator("aside").is_visible()


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_everybody_can_read_a_page(opened, colours):
    page = opened("tutorial.html", color_scheme=colours)
    found = Axe().run(page, options={"preload": False}).response["violations"]  # it would read the style anew
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_the_menu_opens_on_a_phone(opened):
    page = opened("reference/commands.html", PHONE)
    assert not page.locator("#pages").is_visible()
    page.click("#menu")
    page.click("#pages >> text=Job files")
    page.wait_for_url("**/reference/job-file.html")
