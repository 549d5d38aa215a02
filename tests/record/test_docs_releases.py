"""The page on releases: its commands run, and it names every file and every command of the private record."""

import re
import shlex
from pathlib import Path

from command import good
from kept import put_people, store_in
from sdckit.record import store as stores

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "releases.md").read_text(encoding="utf-8")
EXAMPLE = "20260131-0123abcd"


def test_the_commands_run_one_after_another(tmp_path):
    put_people(tmp_path)
    lines = re.findall(r"^\$ sdckit (.*)$", PAGE, re.MULTILINE)
    assert {line.split()[0] for line in lines} == {"mask", "releases", "check", "replay", "evaluate"}
    for line in lines:
        ids = store_in(tmp_path).ids()
        good(tmp_path, *shlex.split(line.replace(EXAMPLE, ids[0] if ids else EXAMPLE)))
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


def test_every_file_of_the_record_is_named():
    for name in (
        stores.ENTRY,
        stores.CROSSWALK,
        stores.FINGERPRINTS,
        stores.ORIGINALS,
        stores.KEY,
        stores.LOCK,
    ):
        assert f"`{name}`" in PAGE or f"/{name}`" in PAGE, name
