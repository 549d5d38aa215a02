"""Files that cannot grow, as on a full disk: in this process, and for a script that writes a table."""

import resource
import sys
from contextlib import contextmanager
from unittest import mock

LIMITED = """
import resource, sys
sys.dont_write_bytecode = True  # compiled modules would be cut off
import polars as pl
from sdckit.io import files
frame = pl.DataFrame({"a": [i / 7 for i in range(20_000)]})
resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, 8_192))
try:
    files.write(sys.argv[1], frame, overwrite=True)
except OSError as error:
    print(error)
"""


@contextmanager
def full_disk(size=1024):
    """Let no file of this process grow beyond a size in bytes."""
    before, written = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # compiled modules would be cut off
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        with mock.patch("numba.core.caching.IndexDataCacheFile.save"):  # so would compiled kernels
            yield
    finally:
        sys.dont_write_bytecode = written
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
