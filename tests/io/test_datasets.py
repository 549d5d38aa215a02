# ruff: noqa: SLF001 - the steps of a download are tested one by one

import hashlib
import http.server
import importlib.util
import os
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

from sdckit.io import datasets

ROOT = Path(__file__).parents[2]
needs_data = pytest.mark.skipif(
    not os.environ.get("SDCKIT_DATA"), reason="SDCKIT_DATA names no folder with the data sets"
)
GOOD = b"not really R, but with a known hash"


class Server(http.server.BaseHTTPRequestHandler):
    body = GOOD
    promised = None
    status = 200
    asked = 0

    def do_GET(self):
        type(self).asked += 1
        self.send_response(self.status)
        self.send_header("Content-Length", str(self.promised or len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args):
        pass


@pytest.fixture
def answers(monkeypatch, tmp_path):
    """A server whose answer a test may change, an empty cache, and a file format we can forge."""
    handler = type("Handler", (Server,), {})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.delenv("SDCKIT_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path / "cache" / "sdckit")
    monkeypatch.setattr(datasets, "ADDRESS", f"http://127.0.0.1:{server.server_port}/")
    known = datasets._DatasetFile("EIA", hashlib.sha256(GOOD).hexdigest())
    monkeypatch.setitem(datasets.DATASETS, "eia", known)
    monkeypatch.setattr(datasets.r_table, "import_rdata", lambda: None)
    monkeypatch.setattr(datasets, "_table_from_rda", lambda data, _: pl.DataFrame({"bytes": [data]}))
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


def cached(tmp_path):
    return sorted(path.name for path in tmp_path.rglob("*") if path.is_file())


def test_a_download_is_cached_and_not_repeated(answers, tmp_path):
    assert datasets.load_dataset("eia")["bytes"].to_list() == [GOOD]
    assert cached(tmp_path) == ["EIA.rda"]
    assert datasets.load_dataset("eia")["bytes"].to_list() == [GOOD]
    assert answers.asked == 1


def test_a_damaged_copy_in_the_cache_is_downloaded_again(answers, tmp_path):
    copy = tmp_path / "cache" / "sdckit" / "EIA.rda"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(GOOD[:10])
    assert datasets.load_dataset("eia")["bytes"].to_list() == [GOOD]
    assert copy.read_bytes() == GOOD
    assert answers.asked == 1


def test_no_place_for_a_cache_is_no_obstacle(answers, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path / "file" / "sdckit")
    assert datasets.load_dataset("eia")["bytes"].to_list() == [GOOD]
    assert answers.asked == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"body": GOOD[::-1]}, "sha-256 is not the expected one"),
        ({"promised": 84_252}, f"cut after {len(GOOD)} of 84252 bytes"),
        ({"status": 404}, "the server answered 404"),
        ({"body": bytes(datasets.LARGEST + 1)}, "larger than 2000000 bytes"),
    ],
)
def test_a_bad_download_is_explained_and_leaves_nothing(answers, tmp_path, change, message):
    for name, value in change.items():
        setattr(answers, name, value)
    with pytest.raises(OSError, match=message) as caught:
        datasets.load_dataset("eia")
    line = str(caught.value)
    assert "\n" not in line
    assert "SDCKIT_DATA" in line
    assert cached(tmp_path) == []


@pytest.mark.usefixtures("answers")
def test_without_a_network_the_error_names_the_folder_variable(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "ADDRESS", "http://127.0.0.1:1/")
    with pytest.raises(OSError, match=r"connection refused; put EIA.csv or EIA.rda .* SDCKIT_DATA"):
        datasets.load_dataset("eia")
    monkeypatch.setenv("SDCKIT_DATA", str(tmp_path))
    with pytest.raises(OSError, match="which has neither"):
        datasets.load_dataset("eia")


@pytest.mark.usefixtures("answers")
def test_a_silent_server_is_given_up_on(monkeypatch):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setattr(datasets, "ADDRESS", f"http://127.0.0.1:{mute.getsockname()[1]}/")
        monkeypatch.setattr(datasets, "TIMEOUT", 0.2)
        with pytest.raises(OSError, match="timed out; put EIA"):
            datasets.load_dataset("eia")


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="unknown data set 'x'; choose from: tarragona, census, eia"):
        datasets.load_dataset("x")


def test_a_missing_extra_is_named_before_anything_is_downloaded(monkeypatch, tmp_path):
    monkeypatch.delenv("SDCKIT_DATA", raising=False)
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(datasets, "_download", lambda *_: pytest.fail("downloaded"))
    monkeypatch.setitem(sys.modules, "rdata", None)
    with pytest.raises(ValueError, match=r'pip install "sdckit\[datasets\]"'):
        datasets.load_dataset("eia")


def test_a_folder_wins_and_csv_wins_over_rda(monkeypatch, tmp_path):
    monkeypatch.setenv("SDCKIT_DATA", str(tmp_path))
    (tmp_path / "EIA.csv").write_text("a\n1\n")
    (tmp_path / "EIA.rda").write_bytes(b"damaged")
    assert datasets.load_dataset("eia")["a"].to_list() == [1]


def test_a_damaged_rda_in_the_folder_is_explained(monkeypatch, tmp_path):
    pytest.importorskip("rdata", reason="rdata is not installed")
    monkeypatch.setenv("SDCKIT_DATA", str(tmp_path))
    (tmp_path / "EIA.rda").write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r"EIA.rda' is no whole R file .*; copy or save it again"):
        datasets.load_dataset("eia")


@needs_data
@pytest.mark.parametrize(("name", "shape"), [("tarragona", (834, 13)), ("census", (1080, 13))])
def test_rda_and_csv_hold_the_same_table(name, shape):
    pytest.importorskip("rdata", reason="rdata is not installed")
    folder = Path(os.environ["SDCKIT_DATA"])
    file = datasets.DATASETS[name]
    packed = folder / f"{file.stem}.rda"
    if not packed.is_file():
        pytest.skip(f"no {packed.name} in SDCKIT_DATA")
    data = packed.read_bytes()
    assert datasets._sha256(data) == file.digest
    table = datasets.load_dataset(name)
    assert table.shape == shape
    unpacked = datasets._table_from_rda(data, packed.name)
    assert unpacked.schema == table.schema
    assert unpacked.equals(table)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="other systems keep caches elsewhere")
def test_the_cache_follows_the_system(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / "sdckit"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / ".cache" / "sdckit"


def make_sample():
    specification = importlib.util.spec_from_file_location("make_sample", ROOT / "tools" / "make_sample.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_sample_is_what_its_generator_writes():
    module = make_sample()
    assert module.TARGET.read_bytes() == module.sample().encode()
