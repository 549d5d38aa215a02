"""A script that writes a table where no file may grow beyond 8 KiB, as on a full disk."""

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
