"""Short rounds of the fuzzers, which must be able to fail; long ones are run by hand (tools/)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fuzz
from command import HANGING, environment

TOOL = Path(__file__).parents[2] / "tools" / "kills.py"
ROUND = [
    *(("input", i) for i in range(60)),
    *(("odd", i) for i in range(15)),
    *(("options", i) for i in range(15)),
]
CASE = fuzz.Case("x:0", {"data.csv": b"a\n1\n"}, ["describe", "data.csv"])


@pytest.mark.long
def test_a_short_round_breaks_no_promise(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    codes = set()
    for kind, number in ROUND:
        case = fuzz.MAKE[kind](1, number)
        folder = tmp_path / case.name.replace(":", "-")
        folder.mkdir()
        code, found = fuzz.broken_promises(case, folder)
        assert found == [], (case.name, case.words)
        codes.add(code)
    assert {0, 2} <= codes


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="Windows cannot fork")
def test_commands_killed_at_five_moments_leave_nothing_and_run_again():
    words = [sys.executable, TOOL, "--commands", "5", "--seed", "1"]
    done = subprocess.run(
        words, env=environment(), capture_output=True, text=True, timeout=HANGING, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SIGKILL at 5 moments, 0 failures" in done.stdout


def test_a_case_is_made_again_from_its_seed():
    for make in fuzz.MAKE.values():
        one, again, other = make(1, 5), make(1, 5), make(2, 5)
        assert one == again
        assert one != other


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        ("raise KeyError('x')", "ended with KeyError"),
        ("raise SystemExit(7)", "ended with 7"),
        ("raise SystemExit(2)", "not with one line"),
        ("print('error: a\\nerror: b', file=sys.stderr); raise SystemExit(2)", "not with one line"),
        ("os.write(2, b'thread panicked at')", "printed a traceback"),
        ("print('\\x1b[2J')", "printed '\\x1b'"),
        ("Path('data.csv').write_text('')", "changed the input data.csv"),
        ("Path('.sdckit-0.part').touch()", "left the draft .sdckit-0.part"),
        (
            "Path('o.csv').touch(); print('error: a', file=sys.stderr); sys.exit(2)",
            "ended with 2 and left o.csv",
        ),
    ],
)
def test_every_broken_promise_is_found(tmp_path, monkeypatch, broken, text):
    def main(_words):
        exec(broken)  # noqa: S102 - the lines above
        raise SystemExit(0)

    monkeypatch.setattr(fuzz, "main", main)
    _, found = fuzz.broken_promises(CASE, tmp_path)
    assert any(text in line for line in found), found
