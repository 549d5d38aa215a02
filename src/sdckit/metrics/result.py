"""What results share: their table as a dataframe or a file, and the page that reports them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit.core.notebook import WrittenReport  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.core.table import converted
from sdckit.io.atomic import AnyPath  # noqa: TC001 - typing.get_type_hints looks for it

if TYPE_CHECKING:
    from types import ModuleType


def page_builder() -> ModuleType:
    """Return the module that builds reports and charts; it is above this package, and slow to import."""
    from sdckit.report import build  # noqa: PLC0415 - see above

    return build


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
        from sdckit.io import files  # noqa: PLC0415 - only needed to write

        files.write(path, self.table, overwrite=overwrite)


class ReportedResult(TableResult):
    """Base of results that have a page of their own."""

    def to_html(self, name: str | None = None) -> str:
        """Return the report as one self-contained HTML page, without original records."""
        raise NotImplementedError

    def report(self, path: AnyPath, *, name: str | None = None, overwrite: bool = False) -> WrittenReport:
        """Write a self-contained HTML report, without original records.

        Parameters
        ----------
        path : str or Path
            A file ending in .html or .htm; on an error no file is left.
        name : str, optional
            What the report calls the data or the masked file.
        overwrite : bool
            Replace a file that exists.

        Returns
        -------
        WrittenReport
            The path, which a notebook shows as the report itself.

        Raises
        ------
        FileExistsError
            The file exists, and `overwrite` is not set.
        """
        written: WrittenReport = page_builder().write_report(
            path, lambda: self.to_html(name), overwrite=overwrite
        )
        return written
