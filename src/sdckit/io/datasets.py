"""Data sets: a bundled synthetic sample, and three files used in the literature."""

import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from sdckit.io import atomic, files, r_table
from sdckit.io.cell_types import as_numbers

ADDRESS = "https://raw.githubusercontent.com/sdcTools/sdcMicro/cf3251017482bb215f0a9abf4a930f502399fb72/data/"
TIMEOUT = 30.0  # seconds to wait for the server
LARGEST = 2_000_000  # bytes; the files have less than a tenth of that


@dataclass(frozen=True)
class _DatasetFile:
    """Name without suffix and SHA-256 digest of a file that can be downloaded."""

    stem: str
    digest: str


DATASETS = {
    "tarragona": _DatasetFile(
        "Tarragona", "e83def0648be5e47eaf202b4dd60dd6981591d0858fd249817b9a2cc97cf2aef"
    ),
    "census": _DatasetFile(
        "CASCrefmicrodata", "147d0d7fa823a384e36c2297174560e32cdbe6e39803f22f797610fb1a2993d6"
    ),
    "eia": _DatasetFile("EIA", "8b61ceb0d1fa01d024bd62171655601abed62ff70a5e9e6fd550c43a1f76695e"),
}


def load_sample() -> pl.DataFrame:
    """Load the bundled sample, a made-up survey of 1,000 firms.

    Amounts are in thousands. `domestic_sales` and `export_sales` add up to `turnover`, `sector` is
    the stratum, `weight` the survey weight; some variables have ties, many zeros or missing cells.

    Returns
    -------
    polars.DataFrame
        `firm`, `sector`, `weight` and ten numeric variables.

    Examples
    --------
    >>> load_sample().select("firm", "sector", "employees", "turnover").row(0)
    ('F0001', 'trade', 1, 113)
    """
    return files.read(Path(__file__).parents[1] / "data" / "sample.csv").frame


def load_dataset(name: str) -> pl.DataFrame:
    """Load Tarragona, Census or EIA, three files that the literature on masking uses.

    They come from the folder that the environment variable SDCKIT_DATA names (as .csv or .rda),
    else from the cache, else from the public repository of the R package sdcMicro; what was
    downloaded is checked and cached.

    Parameters
    ----------
    name
        `tarragona`, `census` or `eia`.

    Returns
    -------
    polars.DataFrame
        The table, whole numbers as integers.

    Raises
    ------
    ValueError
        No such data set, its file is damaged, or reading it needs the extra `datasets`.
    OSError
        It is neither in the folder nor in the cache, and could not be downloaded.

    Examples
    --------
    >>> load_dataset("iris")
    Traceback (most recent call last):
    ValueError: unknown data set 'iris'; choose from: tarragona, census, eia
    """
    if name not in DATASETS:
        raise ValueError(f"unknown data set {name!r}; choose from: {', '.join(DATASETS)}")
    file = DATASETS[name]
    folder = os.environ.get("SDCKIT_DATA")
    if folder:
        table, packed = (Path(folder, file.stem + suffix) for suffix in (".csv", ".rda"))
        if table.is_file():
            return files.read(table).frame
        if packed.is_file():
            return _table_from_rda(packed.read_bytes(), str(packed))
    return _table_from_rda(_cached_bytes(file) or _download_and_cache(name, file), f"{file.stem}.rda")


def cache_folder() -> Path:
    """Return the folder for downloaded files, in the operating system's folder for caches.

    Returns
    -------
    pathlib.Path
        A folder named `sdckit`, not necessarily there yet.
    """
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or ""
        base = base if Path(base).is_absolute() else str(Path.home() / ".cache")
    return Path(base, "sdckit")


def _sha256(data: bytes) -> str:
    """Return the SHA-256 digest of bytes as hexadecimal text."""
    return hashlib.sha256(data).hexdigest()


def _cached_bytes(file: _DatasetFile) -> bytes | None:
    """Return the cached copy of a data file; None where it is missing or damaged."""
    try:
        data = (cache_folder() / f"{file.stem}.rda").read_bytes()
    except OSError:
        return None
    return data if _sha256(data) == file.digest else None


def _download_and_cache(name: str, file: _DatasetFile) -> bytes:
    """Return the bytes of a data set's file, downloaded and, if possible, stored in the cache."""
    try:
        r_table.import_rdata()  # without this package the downloaded file could not be read
    except ValueError as error:
        raise ValueError(
            f'data set {name!r} is not on this computer; pip install "sdckit[datasets]" to download it, '
            f"or put {file.stem}.csv into a folder and name the folder in SDCKIT_DATA"
        ) from error
    data = _download(name, file)
    target = cache_folder() / f"{file.stem}.rda"
    with suppress(OSError):  # the data are returned even where no cache can be written
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic.atomic(target, overwrite=True) as temporary:
            temporary.write_bytes(data)
    return data


def _download(name: str, file: _DatasetFile) -> bytes:
    """Return the bytes of a data set's file from the internet, checked against their digest."""
    address = f"{ADDRESS}{file.stem}.rda"
    remedy = f"put {file.stem}.csv or {file.stem}.rda into a folder and name the folder in SDCKIT_DATA"
    if folder := os.environ.get("SDCKIT_DATA"):
        remedy += f" (now '{folder}', which has neither)"

    def download_error(reason: object) -> OSError:
        """Return the OSError for a failed download, with its reason and a remedy."""
        line = " ".join(str(getattr(reason, "strerror", None) or reason).split()).lower()
        return OSError(f"could not download data set {name!r} from {address}: {line}; {remedy}")

    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:  # noqa: S310 - our own address
            promised = answer.headers.get("Content-Length")
            data: bytes = answer.read(LARGEST + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise download_error(f"the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise download_error(error.reason) from error
    except (OSError, http.client.HTTPException) as error:
        raise download_error(error or type(error).__name__) from error
    if len(data) > LARGEST:
        raise download_error(f"it is larger than {LARGEST} bytes")
    if promised is not None and promised.isdigit() and len(data) < int(promised):
        raise download_error(f"the connection was cut after {len(data)} of {promised} bytes")
    if _sha256(data) != file.digest:
        raise download_error("its sha-256 is not the expected one, so the file is damaged or was changed")
    return data


def _table_from_rda(data: bytes, where: str) -> pl.DataFrame:
    """Return the one table of an R data file, with types as if read from a CSV."""
    frame = r_table.parse_r(Path(where), data).cast({pl.Int32: pl.Int64})
    return pl.DataFrame([as_numbers(column) if column.dtype == pl.String else column for column in frame])
