"""What results with a table share: it is had as a dataframe, or written to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sdckit.core.table import converted
from sdckit.io import files


class TableResult:
    """Base of results that have a `table`; `kind` is the type of the original's dataframe."""

    table: Any  # a polars DataFrame
    kind: Any

    def to_frame(self, kind: str | None = None) -> Any:
        """Return the table as a dataframe.

        Parameters
        ----------
        kind : str, optional
            "polars", "pandas" or "pyarrow"; by default that of the original, and polars for arrays and files.

        Returns
        -------
        dataframe

        Examples
        --------
        >>> import sdckit as sdc
        >>> found = sdc.evaluate([1.0, 2.0, 3.0], [2.0, 1.0, 3.0], metrics="brmae")
        >>> found.to_frame("pandas")["variable"].tolist()
        ['all', 'x1']
        """
        return converted(self.table, kind, self.kind)

    def to_csv(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the table to a CSV or Parquet file, by its suffix; on an error no file is left."""
        files.write(path, self.table, overwrite=overwrite)
