"""What results share that have a page of their own."""

from __future__ import annotations

from sdckit.core.notebook import WrittenReport  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.io.atomic import AnyPath  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.io.table_result import TableResult
from sdckit.report import build


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
        return build.write_report(path, lambda: self.to_html(name), overwrite=overwrite)
