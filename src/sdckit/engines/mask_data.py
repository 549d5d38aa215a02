"""Mask files, Spark frames and tables on the engines local and spark."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core.engine_choice import is_path, is_spark_frame
from sdckit.core.roles import OPTIONS
from sdckit.core.table import Table
from sdckit.engines.masking import mask_files
from sdckit.engines.opening import aligned_files, transport_on, with_columns_of_array
from sdckit.progress import track

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sdckit.core.disclosure import Disclosure
    from sdckit.engines.masking import FileMasking
    from sdckit.engines.opening import Settings
    from sdckit.engines.source import Source
    from sdckit.engines.transport import Transport

CHECKING = 0.1  # share of the progress at which keys are checked
HOW = ("rng", "decimals", "rules")  # options of `mask` besides roles of columns and parameters


def mask_data(
    settings: Settings,
    data: Any,
    method: str,
    options: Mapping[str, Any],
    *,
    output: Any = None,
    overwrite: bool = False,
) -> Any:
    """Return data masked on the engine local or spark, or the path of the output; `options` are `mask`'s."""
    if output is not None:
        return mask_on_engine(settings, data, method, output, options, overwrite=overwrite).path
    if is_path(data):
        raise ValueError("the data are a file and there is no output; name the file to write with output=")
    if is_spark_frame(data):
        return _masked_frame(settings, data, method, options)
    with settings.folder() as folder:
        made = mask_on_engine(settings, data, method, folder / "masked", options)
        return _like_original(Table(data), pl.read_parquet(made.path), made.disclosure.columns)


def mask_on_engine(
    settings: Settings,
    data: Any,
    method: str,
    output: Any,
    options: Mapping[str, Any],
    *,
    overwrite: bool = False,
    measure: Callable[[Path, Disclosure], None] | None = None,
) -> FileMasking:
    """Mask data on the engine local or spark, and write them; `options` are those of `mask`.

    `measure` is called with a folder of the finished part files before the output gets its name.
    """
    options = with_columns_of_array(data, options)
    given = {name: value for name, value in options.items() if value is not None}
    if "groups" in given:
        raise ValueError(f"the engine {settings.engine} numbers no groups; leave groups= out")
    checking = 0.0 if "key" not in given else CHECKING
    with settings.folder() as scratch, track("masking", 1.0) as report:
        report(0.0, checking)

        def transport(source: Source) -> Transport:
            """Return the engine of a source, once its key is known to be unique."""
            if checking:
                _require_unique_key(settings, source, options["key"], scratch)
            report(checking, 1.0 - checking, "masking")
            return transport_on(settings, source, scratch)

        return mask_files(
            aligned_files(settings, data, None, None, scratch),
            method,
            transport=transport,
            output=output,
            overwrite=overwrite,
            roles={name: given.pop(name) for name in OPTIONS if name in given},
            **{name: given.pop(name) for name in HOW if name in given},
            parameters=given,
            measure=measure,
        )


def _require_unique_key(settings: Settings, source: Source, key: Any, scratch: Path) -> None:
    """Raise ValueError if a key of the data to be masked is missing or repeats."""
    from sdckit.engines.alignment import require_unique_key  # noqa: PLC0415 - only with a key

    require_unique_key(source.original, key, scratch, memory=settings.memory)


def _masked_frame(settings: Settings, data: Any, method: str, options: Mapping[str, Any]) -> Any:
    """Return a masked Spark frame, which reads files that are removed when Python ends."""
    from sdckit.engines.spark_frames import frame_of  # noqa: PLC0415 - an optional package

    folder = tempfile.mkdtemp(prefix="sdckit-masked-", dir=settings.scratch)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = mask_on_engine(settings, data, method, Path(folder) / "masked", options)
    return frame_of(data.sparkSession, made.path)


def _like_original(original: Table, masked: pl.DataFrame, columns: tuple[str, ...]) -> Any:
    """Return a masked table in the type of the original, without the columns that are not published."""
    kept = [name for name in columns if name in masked.columns]
    kinds = {name: masked.schema[name] for name in kept}
    decimals = {name: getattr(kind, "scale", 0) for name, kind in kinds.items() if not kind.is_float()}
    made = original.with_values(kept, Table(masked).floats(kept), decimals=decimals)
    return made if original.frame is None else Table(made).take(masked.columns)
