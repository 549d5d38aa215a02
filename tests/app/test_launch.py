"""The command that starts the page: bad input in one line, one address, and an end that leaves nothing."""

import re
import signal
import socket
import stat
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest

from command import HANGING, environment, interruptible, put, run_here
from sdckit.app.folders import confined
from sdckit.app.launch import Redirect, listen
from sdckit.terminal import fault_text

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/open\?token=[\w-]{40,}\n")
BASE = {
    "altair",
    "click",
    "jinja2",
    "narwhals",
    "numba",
    "numpy",
    "platformdirs",
    "polars",
    "randomgen",
    "rich",
}
BASE |= {"scipy", "tzdata", "vl-convert-python"}  # tzdata on Windows only
PAGE = """
import os, sys
from sdckit import cli
from sdckit.app import launch

class Work:
    def busy(self):
        return False
    def close(self):
        print("closed", file=sys.stderr)

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        for moment in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{moment}.complete"})
        return
    await receive()
    if scope["path"].endswith("/fault"):
        raise KeyError("a secret value")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while scope["path"].endswith("/events"):
        await send({"type": "http.response.body", "body": b"data: 1\\n\\n", "more_body": True})
        await receive()
    await send({"type": "http.response.body", "body": scope["root_path"].encode()})

launch.make_page = lambda start, data, preview: (app, Work())
cli.main(["app", "--no-browser", *sys.argv[1:]])
"""


def refused(folder, *words):
    """Run the command with words that it must refuse; return its one line."""
    done = run_here(folder, "app", "--no-browser", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["none.csv"], "error: no file 'none.csv'; check its name and folder\n"),
        (["."], "error: '.' is a folder; name a file in it\n"),
        (["notes.md"], "error: cannot read 'notes.md' by its suffix; use one of: .csv, "),
        (["device.csv"], "error: 'device.csv' is no file; name one that holds a table\n"),
        (
            ["--port", "0"],
            "error: there is no port 0; give --port a number from 1 to 65535, or leave it out\n",
        ),
        (["--port", "65536"], "error: there is no port 65536; "),
        (["--idle", "0"], "error: --idle is 0; give a number of minutes above 0\n"),
        (["--idle", "nan"], "error: --idle is nan; "),
    ],
)
def test_bad_input_is_refused_in_one_line(tmp_path, words, line):
    put(tmp_path, "notes.md", "text")
    (tmp_path / "device.csv").symlink_to("/dev/null")
    assert refused(tmp_path, *words).startswith(line)


def test_a_port_in_use_is_refused_in_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = f"error: cannot use port {port}: address already in use; give another --port, or none\n"
        assert refused(tmp_path, "--port", port) == line


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_without_the_packages_one_line_says_how_to_get_them(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    line = 'error: the page needs starlette and uvicorn; pip install "sdckit[app]"\n'
    assert refused(tmp_path) == line


def test_the_page_adds_two_packages_to_an_extra_and_none_to_the_base():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    names = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]}
    assert names == BASE, "an office must get each package approved: is it needed without the page, too?"
    assert {re.match(r"[\w-]+", line)[0] for line in extras["app"]} == {"starlette", "uvicorn"}
    assert "app" in re.search(r"sdckit\[(.*)\]", extras["dev"][0])[1].split(",")


def test_the_page_listens_on_this_machine_only():
    with listen(None) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


def test_the_redirect_file_is_private_and_leaves_nothing():
    redirect = Redirect("http://127.0.0.1:1/open?token=abc")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (redirect.folder, redirect.file)]
    assert modes == [0o700, 0o600]
    assert "url=http://127.0.0.1:1/open?token=abc" in redirect.file.read_text()
    redirect.delete()
    assert not redirect.folder.exists()


def test_a_fault_is_named_by_its_type_and_its_place_alone(tmp_path):
    with pytest.raises(ValueError, match="outside") as caught:
        confined(tmp_path, "../secret.csv")
    assert re.fullmatch(r"ValueError at sdckit/app/folders\.py:\d+", fault_text(caught.value))
    group = ExceptionGroup("several", [caught.value])
    assert fault_text(group) == fault_text(caught.value)


def begin(folder, *words):
    """Start the command on a small application; return the process and its address."""
    with interruptible():
        process = subprocess.Popen(
            [sys.executable, "-c", PAGE, *words],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    return process, process.stdout.readline()


def asked(url, **headers):
    """Ask for an address; return the open answer."""
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=HANGING)  # noqa: S310


def test_the_address_opens_the_page_and_ctrl_c_ends_it_with_a_stream_open(tmp_path):
    process, address = begin(tmp_path)
    port = int(ADDRESS.fullmatch(address)[1])
    with asked(address.strip()) as answer:
        cookie = answer.headers["set-cookie"].split(";")[0]
        home = f"http://127.0.0.1:{port}" + re.search(r'url=([^"]+)"', answer.read().decode())[1]
    with asked(home + "roles", Cookie=cookie) as answer:
        assert home.endswith(answer.read().decode() + "/")
    with pytest.raises(HTTPError) as fault:
        asked(home + "fault", Cookie=cookie)
    with fault.value as answer:
        assert (answer.status, answer.read()) == (500, b"internal error")
    with asked(home + "events", Cookie=cookie, Origin=f"http://127.0.0.1:{port}") as stream:
        assert stream.readline() == b"data: 1\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANGING)
    assert (process.returncode, out) == (130, "")
    first, *rest = err.splitlines()
    assert re.fullmatch(r"internal error: KeyError at sdckit/app/guards\.py:\d+", first)
    assert rest == ["closed", "stopped: the page is closed; finished runs of a search are kept"]
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.parametrize(("words", "code"), [(["--idle", "0.001"], 0), ([], 143)], ids=["idle", "sigterm"])
def test_the_page_ends_when_idle_or_asked_to(tmp_path, words, code):
    process, address = begin(tmp_path, *words)
    assert ADDRESS.fullmatch(address)
    if code:
        with pytest.raises(HTTPError) as unknown:  # the server runs when it answers
            asked(address.split("/open")[0])
        unknown.value.close()
        process.terminate()
    out, err = process.communicate(timeout=HANGING)
    assert (process.returncode, out, err) == (code, "", "closed\n")
