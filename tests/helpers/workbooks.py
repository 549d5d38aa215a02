"""Workbooks of Excel and OpenDocument with given cells, written without a library."""

import datetime as dt
import io
import zipfile
from xml.sax.saxutils import escape

LOCKED = (
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "EncryptedPackage".encode("utf-16-le") + bytes(500)
)
FIRST_DAY = dt.datetime(1899, 12, 30)  # noqa: DTZ001 - Excel knows no time zones
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OPEN = "urn:oasis:names:tc:opendocument:xmlns"
STYLES = (
    f'<styleSheet xmlns="{MAIN}"><numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy-mm-dd hh:mm:ss"/>'
    '</numFmts><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs></styleSheet>'
)


class Fault(str):
    """A cell whose formula has no value, such as #N/A."""

    __slots__ = ()


class Far(str):
    """The place of a cell far from the others, such as XFD1048576."""

    __slots__ = ()


def packed(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        for name, text in files.items():
            out.writestr(name, text)
    return buffer.getvalue()


def excel_number(cell):
    """A date or time as the number that Excel stores."""
    if isinstance(cell, dt.time):
        return (cell.hour * 3600 + cell.minute * 60 + cell.second) / 86400
    moment = cell if isinstance(cell, dt.datetime) else dt.datetime.combine(cell, dt.time())
    return (moment - FIRST_DAY) / dt.timedelta(days=1)


def excel_cell(row, column, cell):
    place = f'r="{chr(65 + column)}{row}"'
    if isinstance(cell, Far):
        place, cell = f'r="{cell}"', 1
    if cell is None:
        return f'<c {place} s="0"/>'
    if isinstance(cell, Fault):
        return f'<c {place} t="e"><v>{cell}</v></c>'
    if isinstance(cell, str):
        return f'<c {place} t="inlineStr"><is><t xml:space="preserve">{escape(cell)}</t></is></c>'
    if isinstance(cell, bool):
        return f'<c {place} t="b"><v>{int(cell)}</v></c>'
    if isinstance(cell, (dt.date, dt.time)):
        return f'<c {place} s="1"><v>{excel_number(cell)!r}</v></c>'
    return f"<c {place}><v>{cell!r}</v></c>"


def xlsx(**sheets):
    """The bytes of an Excel file; each sheet is a list of rows."""
    files, listed, links = {}, "", ""
    for number, (name, rows) in enumerate(sheets.items(), 1):
        cells = "".join(
            f'<row r="{i}">{"".join(excel_cell(i, j, cell) for j, cell in enumerate(row))}</row>'
            for i, row in enumerate(rows, 1)
        )
        files[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{MAIN}"><sheetData>{cells}</sheetData></worksheet>'
        )
        listed += f'<sheet name="{name}" sheetId="{number}" r:id="r{number}"/>'
        links += (
            f'<Relationship Id="r{number}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        )
    links += f'<Relationship Id="s" Type="{OFFICE}/styles" Target="styles.xml"/>'
    top = f'<Relationship Id="w" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    return packed(
        {
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"></Types>',
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{top}</Relationships>',
            "xl/workbook.xml": (
                f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>'
            ),
            "xl/_rels/workbook.xml.rels": (
                f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>'
            ),
            "xl/styles.xml": STYLES,
            **files,
        }
    )


def open_cell(cell):
    if cell is None:
        return "<table:table-cell/>"
    if isinstance(cell, str):
        lines = "".join(f"<text:p>{escape(line)}</text:p>" for line in cell.split("\n"))
        return f'<table:table-cell office:value-type="string">{lines}</table:table-cell>'
    if isinstance(cell, dt.date):
        return f'<table:table-cell office:value-type="date" office:date-value="{cell.isoformat()}"/>'
    return f'<table:table-cell office:value-type="float" office:value="{cell!r}"/>'


def ods(**sheets):
    """The bytes of an OpenDocument file; each sheet is a list of rows."""
    tables = "".join(
        f'<table:table table:name="{name}">'
        + "".join(f"<table:table-row>{''.join(map(open_cell, row))}</table:table-row>" for row in rows)
        + "</table:table>"
        for name, rows in sheets.items()
    )
    spaces = " ".join(f'xmlns:{name}="{OPEN}:{name}:1.0"' for name in ("office", "table", "text"))
    content = f"<office:spreadsheet>{tables}</office:spreadsheet>"
    return packed(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{OPEN}:manifest:1.0"/>',
            "content.xml": (
                f'<office:document-content {spaces} office:version="1.2">'
                f"<office:body>{content}</office:body></office:document-content>"
            ),
        }
    )
