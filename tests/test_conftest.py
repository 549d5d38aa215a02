import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("forbidden", "code"), [("", 0), ("1", 1)])
def test_a_skipped_test_fails_the_session_only_where_skips_are_forbidden(tmp_path, forbidden, code):
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_done(): pass\ndef test_left(): pytest.skip('no reason')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env={**os.environ, "SDCKIT_FORBID_SKIPS": forbidden},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("skipped: test_it.py::test_left" in done.stdout) == bool(forbidden)
