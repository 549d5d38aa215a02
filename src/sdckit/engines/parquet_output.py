"""Masked Parquet files with the schema of the original: written in parts, whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl

from sdckit.core.table import replaced_series
from sdckit.engines.spill import exit_when_terminated
from sdckit.io.atomic import POLARS_ERRORS, atomic, check_target, explain_write_errors
from sdckit.io.drafts import draft_folder, sweep_drafts, sync_folder, usual_folder_mode
from sdckit.io.suffixes import PARQUET_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.engines.parquet_files import ParquetFiles
    from sdckit.kernels.jit import Floats

PART = "part-{:015d}.parquet"  # by the number of its first row, so that names sort as rows do


def published_type(kind: pl.DataType, decimals: int | None) -> pl.DataType:
    """Return the type of a masked column: that of the original where it can hold the masked values."""
    if kind.is_integer():
        return kind if decimals == 0 else pl.Float64()
    if isinstance(kind, pl.Decimal):
        return kind if decimals is not None and decimals <= kind.scale else pl.Float64()
    return kind


@dataclass(frozen=True)
class PartWriter:
    """Write stretches of rows as Parquet files: masked columns, and the others as they are.

    `columns` are the published ones in their order, `types` those of the masked ones, `decimals` how many
    decimals the masked columns are rounded to.
    """

    files: ParquetFiles
    folder: str
    columns: tuple[str, ...]
    types: Mapping[str, pl.DataType]
    decimals: Mapping[str, int] = field(default_factory=dict)
    schema: Any = None  # an Arrow schema, where it says more than the types
    keeps_missing: bool = True  # False where missing cells are published as masked, see `Method.alike`

    def write(self, first: int, masked: Floats, original: Floats) -> None:
        """Write the rows from number `first` on, given their masked and their original values.

        A cell that is missing in the original is written as it was: null, NaN or a code; as masked unless
        `keeps_missing`.
        """
        frame = self.files.read(first, len(masked), self.columns)
        columns = [
            self._column(frame[name], masked[:, j], original[:, j])
            for j, name in enumerate(self.types)
            if name in frame.columns
        ]
        target = Path(self.folder) / PART.format(first)
        hidden = target.with_name(f".{secrets.token_hex(8)}.part")
        with refused_writes(target.parent.parent):  # the folder of the output
            frame.with_columns(columns).write_parquet(hidden, arrow_schema=self.schema)
            hidden.replace(target)  # a task that runs twice writes the same

    def _column(self, old: pl.Series, values: Floats, original: Floats) -> pl.Series:
        """Return a column with masked values in the published type, missing cells as they were."""
        kind, name = self.types[old.name], old.name
        made = replaced_series(nw.from_native(old, series_only=True), values, self.decimals.get(name))
        try:
            fresh: pl.Series = made.to_native().cast(kind)
            lost = kind == pl.Float32 and bool(fresh.is_infinite().any())
        except pl.exceptions.InvalidOperationError:
            lost = True
        if lost:
            low, high = np.fmin.reduce(values), np.fmax.reduce(values)
            raise ValueError(
                f"column {name!r} has masked values from {low:g} to {high:g}, which {kind} cannot hold; "
                "write the original with a wider type, or weaken the masking"
            )
        missing = np.isnan(original) & self.keeps_missing
        return fresh.zip_with(pl.Series(~missing), old.cast(kind)) if missing.any() else fresh


@contextmanager
def refused_writes(path: Path) -> Iterator[None]:
    """Turn an error of the operating system or of polars while writing into one line with a remedy."""
    try:
        with explain_write_errors(path):
            yield
    except POLARS_ERRORS as error:
        reason = str(error).splitlines()[0]  # polars may hide why the system refused
        raise OSError(
            f"could not write to '{path}': no space left, or {reason}; free some space or use another folder"
        ) from error


@dataclass(frozen=True)
class Output:
    """Where a masked file goes: one file, or a folder of part files; checked before any work."""

    path: Path
    overwrite: bool = False

    @property
    def is_file(self) -> bool:
        """True for one file, by its suffix; a folder has none."""
        return self.path.suffix.lower() in PARQUET_SUFFIXES

    def check(self, originals: Sequence[str]) -> None:
        """Raise an error if the output cannot be written, or would replace what it is made from."""
        inside = [Path(one).resolve() for one in originals]
        target = self.path.resolve()
        if target in inside or any(target in one.parents for one in inside):
            raise ValueError(f"'{self.path}' holds the original data; choose another name for the output")
        if self.is_file:
            check_target(self.path, self.overwrite, PARQUET_SUFFIXES)
        elif self.path.exists() and not (self.overwrite and self.path.is_dir()):
            raise FileExistsError(
                f"'{self.path}' exists already; choose another name or overwrite it (overwrite=True)"
            )
        elif self.path.is_dir() and {one.suffix.lower() for one in self.path.iterdir()} - {*PARQUET_SUFFIXES}:
            raise FileExistsError(
                f"'{self.path}' holds other files than Parquet files, which overwriting would remove; "
                "choose another name"
            )
        elif not self.path.parent.is_dir():
            raise FileNotFoundError(
                f"no folder '{self.path.parent}' to write '{self.path.name}' into; create it first"
            )

    @contextmanager
    def parts(self, schema: Any = None) -> Iterator[Path]:
        """Yield a folder for part files; make the output of them if the `with` block raises no error.

        After any error, Ctrl-C included, the folder is deleted and the output is as it was.
        """
        target = Path(os.path.realpath(self.path))
        with ExitStack() as stack:
            with explain_write_errors(self.path):
                sweep_drafts(target.parent)
                folder = stack.enter_context(draft_folder(target.parent))
            with exit_when_terminated():
                yield folder
            _remove_strays(folder)
            if self.is_file:
                self._write_file(sorted(folder.iterdir()), schema)
            else:
                with explain_write_errors(self.path):
                    _move_folder(folder, target, overwrite=self.overwrite)

    def _write_file(self, parts: Sequence[Path], schema: Any) -> None:
        """Write the rows of all part files, in their order, as one file."""
        with atomic(self.path, self.overwrite) as temporary:
            rows = pl.scan_parquet(list(parts), glob=False, hive_partitioning=False)
            rows.sink_parquet(temporary, arrow_schema=schema)


def _remove_strays(folder: Path) -> None:
    """Delete what tasks that were stopped have left in a folder of part files."""
    for stray in folder.glob(".*"):
        stray.unlink()


def _move_folder(folder: Path, target: Path, *, overwrite: bool) -> None:
    """Rename a folder to its target, which takes the place of an older one if `overwrite`."""
    old = target.with_name(f".sdckit-{secrets.token_hex(8)}.old")
    if overwrite and target.exists():
        target.rename(old)
    try:
        folder.chmod(usual_folder_mode(folder.parent))
        folder.rename(target)
        sync_folder(target.parent)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise
    with suppress(OSError):
        shutil.rmtree(old)


def required_schema(files: ParquetFiles, columns: Mapping[str, pl.DataType], masked: Sequence[str]) -> Any:
    """Return an Arrow schema of columns that keeps which of the original must not be null; None if all may.

    Masked columns may be null, since a method or a repair can suppress cells. Needs pyarrow, and is None
    without it.
    """
    if find_spec("pyarrow") is None:
        return None
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    original = pq.read_schema(files.paths[0])
    strict = {field.name for field in original if not field.nullable} - set(masked)
    if not strict & set(columns):
        return None
    plain = pa.schema(pl.Schema(columns))
    return pa.schema([field.with_nullable(field.name not in strict) for field in plain])
