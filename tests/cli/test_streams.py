"""Standard streams that are closed or full, and signals: the exit code is the documented one."""

import os
import signal
import subprocess

import pytest

from command import HANGING, arguments, environment, put_survey, said
from sdckit import terminal

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
DESCRIBE, WRONG = ["describe", "data.csv"], ["describe", "no.csv"]
MASK = [
    *("mask", "data.csv", "-o", "out.csv", "--method", "round_to"),
    *("--no-measure", "--columns", "income,age"),
]
MASK += ["--key", "id", "--weights", "weight"]


@pytest.mark.parametrize(
    ("words", "streams", "code", "error"),
    [
        (MASK, ">&-", 0, ""),
        (DESCRIBE, ">/dev/full", 2, "error: [errno 28] no space left on device; check"),
        (WRONG, "2>/dev/full", 2, ""),
        (WRONG, ">&- 2>&-", 2, ""),
    ],
)
def test_closed_and_full_streams_end_as_documented(tmp_path, words, streams, code, error):
    put_survey(tmp_path)
    script = f'"$@" {streams}'
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *arguments(words)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=HANGING,
        check=False,
    )
    assert done.returncode == code
    errors = said(done)  # a busy machine shows progress, too
    assert errors.lower().startswith(error)
    assert len(errors.splitlines()) == bool(error)
    if words is MASK:
        assert (tmp_path / "out.csv").read_text(encoding="utf-8").startswith("id,grade,region")


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_signals_that_end_a_process_let_it_clean_up(name, code):
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)
    try:
        terminal.exit_on_signals()
        with pytest.raises(SystemExit) as stop:
            signal.raise_signal(number)
        assert stop.value.code == code
        signal.signal(number, signal.SIG_IGN)
        terminal.exit_on_signals()
        assert signal.getsignal(number) is signal.SIG_IGN  # as nohup asks
    finally:
        signal.signal(number, before)
