"""Files, columns, categories and fields that somebody prepared: pages show them as text or refuse them."""

import re
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

import app_server
from app_server import CANARY, OUTSIDE, PREVIEWED, assert_guarded, running

SCREENS = ["open", "roles", "rules", "goal", "search", "map", "release"]
UNSEEN = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
FILE = "data\"><evil-tag title='file'>.csv"
COLUMNS = [
    "pay<evil-tag onfocus=alert(1)>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(1)</script>",
    "' autofocus onfocus='alert(1)",
    "{{1234567*7}}{% raw %}${1234567*7}",
    "age\u202egnp.exe\x1b[2J",
    "javascript:alert(1)",
]
CATEGORIES = ["<evil-tag id=cell>", "</textarea><script>alert(2)</script>", "south\x1b[0m\u202e"]
FIELD = "\"'><evil-tag>{{1234567*7}}\u202e"


class Page(HTMLParser):
    """Elements, words and forms of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.forms, self.links = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.tags.append((tag, attributes))
        if tag == "form":
            self.forms.append((attributes.get("method", "get").lower(), attributes.get("action", ""), {}))
        elif tag == "a":
            self.links.append(attributes.get("href", ""))
        elif tag in {"input", "select", "textarea", "button"} and self.forms and attributes.get("name"):
            self.forms[-1][2].setdefault(attributes["name"], attributes.get("value", ""))

    def handle_data(self, data):
        self.words.append(data)


def quoted(cell):
    """Write a cell of a CSV file."""
    return '"' + cell.replace('"', '""') + '"'


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    root = tmp_path_factory.mktemp("hostile")
    start = app_server.prepare(root)
    lines = [",".join(map(quoted, [*COLUMNS, "group"]))]
    for i in range(60):
        cells = [str((i * 37 + j * 11) % 101 + j) for j in range(len(COLUMNS))]
        lines.append(",".join([*cells, quoted(CATEGORIES[i % 3])]))
    (start / FILE).write_text("\n".join([*lines, ""]))
    (start / "seen\x1b[2J\u202e\n<evil-tag>.csv").write_text("a\n1\n")
    (start / "<evil-tag>folder").mkdir()
    with running(root, FILE, "--no-browser") as server:
        server.exchange(server.navigate(f"/open?token={server.token}"))
        yield server


def assert_harmless(got):
    """Check that nothing of the hostile text became markup, a script or a control character."""
    assert_guarded(got)
    assert not UNSEEN.findall(got.text), ascii(UNSEEN.findall(got.text))
    assert "8641969" not in got.text
    if not dict(got.headers).get("content-type", "").startswith("text/html"):
        return
    for tag, attributes in Page(got.text).tags:
        assert tag != "evil-tag"
        assert not [name for name in attributes if name.startswith("on") or name == "autofocus"], attributes
        assert tag != "script" or "src" in attributes or attributes.get("type") == "application/json"
        assert urlsplit(attributes.get("src", "")).netloc == ""
        for name in ("href", "src", "action", "formaction"):
            assert not re.match(
                r"\s*(javascript|vbscript|data:text)", attributes.get(name, ""), re.IGNORECASE
            )


def send(server, target, fields, name, value):
    """Send a form with one field replaced, as of the present state of the job: old forms are not read."""
    form = Page(server.navigate("open").text).forms[0][2]
    present = {"version": form["version"]} if "version" in form else {}
    return server.ask("POST", target, urlencode(fields | present | {name: value}).encode())


def own(server, screen, target):
    """Return the target that a link or form of a screen leads to, without prefix; None where it leads out."""
    parts = urlsplit(target or screen)
    if parts.netloc not in {"", server.own} or parts.scheme not in {"", "http"}:
        return None
    path = parts.path or screen
    if path.startswith("/"):
        if not path.startswith(f"/{server.prefix}/"):
            return None
        path = path.removeprefix(f"/{server.prefix}/")
    return path.removeprefix("./"), dict(parse_qsl(parts.query, keep_blank_values=True))


# Guard: names are escaped wherever they are shown.


@pytest.mark.parametrize("screen", SCREENS)
def test_no_screen_takes_names_for_markup(page, screen):
    got = page.navigate(screen)
    assert got.status in {200, 303, 409, 422}
    assert_harmless(got)


def test_hostile_columns_categories_and_files_are_shown_as_text(page):
    words = "".join(word for screen in ("open", "roles") for word in Page(page.navigate(screen).text).words)
    for name in (*COLUMNS[:5], *CATEGORIES[:2], FILE):
        assert name in words
    assert "\\u202e" in words


@pytest.mark.long
@pytest.mark.parametrize("screen", SCREENS)
def test_what_is_typed_or_named_in_an_address_comes_back_as_text(page, screen):
    seen = Page(page.navigate(screen).text)
    for method, action, fields in seen.forms:
        path, _ = own(page, screen, action)
        if method == "post" and not path.startswith(("release/", "search/")):
            for name in fields:
                assert_harmless(send(page, path, fields, name, FIELD))
    for target in ("map/panel?id={}", "map/compare?a={}&b={}", f"{screen}?path={{}}&message={{}}&error={{}}"):
        hostile = urlencode({"": FIELD})[1:]
        assert_harmless(page.ask("GET", target.replace("{}", hostile), origin=None))


# Guard: paths of the form and of links are confined.

PATHS = [
    "../outside/secret.csv",
    "below/../../outside/secret.csv",
    "..\\outside\\secret.csv",
    "..%2foutside%2fsecret.csv",
    "/etc/passwd",
    "{root}/outside/secret.csv",
    "file://{root}/outside/secret.csv",
    "link.csv",
    "linked/secret.csv",
    "linked",
    "loop.csv",
    "pipe.csv",  # whoever opens it waits for ever
    "below",
    ".",
    "/dev/zero",
    "data.csv\x00",
    "data.csv\r\nset-cookie: a=b",
    "a" * 5000,
    "a" * 300,
    "http://127.0.0.1/data.csv",
    "https://evil.example/data.csv",
    "s3://evil/data.csv",
    "*.csv",
    "~/data.csv",
]


def path_fields(page):
    """Return (target, fields, name of the field that takes a path) of the forms of the first screen."""
    found = []
    for method, action, fields in Page(page.navigate("open").text).forms:
        path, _ = own(page, "open", action)
        for name in fields if method == "post" else ():
            good, bad = (send(page, path, fields, name, text) for text in ("data.csv", "no-such.csv"))
            if good.status < 400 <= bad.status:
                found.append((path, fields, name))
    return found


@pytest.fixture(scope="module")
def forms(page):
    return path_fields(page)


def test_the_first_screen_has_a_field_for_a_path(forms):
    assert forms


@pytest.mark.parametrize("path", PATHS, ids=[text[:20] for text in map(ascii, PATHS)])
def test_no_form_and_no_link_opens_what_lies_outside(page, forms, path):
    path = path.replace("{root}", str(page.root))
    before = page.files()
    for target, fields, name in forms:
        got = send(page, target, fields, name, path)
        assert got.status in range(400, 500), (target, name)
        assert_kept(page, got, path)
    for link in Page(page.navigate("open").text).links:
        target, query = own(page, "open", link) or (None, {})
        for name in query:
            got = page.navigate(f"{target}?{urlencode(query | {name: path})}")
            assert got.status in range(200, 500)
            assert_kept(page, got, path)
    assert page.files() == before


def assert_kept(page, got, typed):
    """Check that an answer shows nothing of files outside, of the machine, and no header that was sent."""
    assert_harmless(got)
    assert OUTSIDE not in got.text
    assert "root:" not in got.text
    outside = str(page.root / "outside")  # the start folder itself is shown to the user
    assert outside in typed or outside not in got.text
    assert "set-cookie" not in [name for name, _ in got.headers]


# Guard: no record beyond the preview is shown, and none with --no-preview.


def texts(server):
    """Return what all screens show."""
    return "\n".join(server.navigate(screen).text for screen in SCREENS)


def test_only_the_preview_shows_records(attacked):
    assert PREVIEWED in attacked.navigate("open").text
    assert CANARY not in texts(attacked)


@pytest.mark.long
def test_without_preview_no_record_is_shown(tmp_path):
    app_server.prepare(tmp_path)
    with running(tmp_path, "data.csv", "--no-browser", "--no-preview") as server:
        server.exchange(server.navigate(f"/open?token={server.token}"))
        shown = texts(server)
    assert "income" in shown
    assert PREVIEWED not in shown
    assert CANARY not in shown
