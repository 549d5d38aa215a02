"""Make a published file again, byte for byte, from the original and the private record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sdckit.core.table import Table
from sdckit.core.text import listed
from sdckit.io import files
from sdckit.io.formats import suffix_of
from sdckit.metrics.original import Original
from sdckit.record.entry import differences, digest_of_table
from sdckit.record.publish import ReleaseFile
from sdckit.record.store import digest_of_file
from sdckit.selection.release import ReleasePlan

if TYPE_CHECKING:
    from pathlib import Path

    from sdckit.io.files import Source
    from sdckit.record.entry import Entry
    from sdckit.record.store import Store


class NotRepeated(ValueError):  # noqa: N818 - not a fault of the input
    """Error raised if the file made again differs from the one that was published."""

    exit_code = 1


def check_suffix(entry: Entry, output: Path) -> None:
    """Raise ValueError if the file would be written in another format than the published one."""
    if suffix_of(output) != entry.output["suffix"].lower():
        raise ValueError(
            f"release {entry.id} is a {entry.output['suffix']} file and the output is '{output.name}'; "
            f"give it the suffix {entry.output['suffix']}"
        )


def check_input(entry: Entry, data: Path, source: Source | None = None) -> None:
    """Raise ValueError unless the data are those that the release was made from.

    A release of a table that was no file is compared by its cells, which `source` has.
    """
    stated = entry.input["sha256"]
    if stated is not None:
        same = (digest_of_file(data) if source is None else source.sha256) == stated
    else:
        same = source is None or digest_of_table(Table(source.frame)) == entry.input["cells"]
    if not same:
        raise ValueError(
            f"'{data}' is not the file that release {entry.id} was made from ('{entry.input['name']}'); "
            "give that file, unchanged"
        )


def replay(store: Store, one: str, data: Path, output: Path, *, overwrite: bool = False) -> Entry:
    """Make the file of a release again and write it; return the entry of the release.

    Parameters
    ----------
    store, one
        The private record and the ID of the release.
    data
        The original file, unchanged.
    output, overwrite
        The file to write, of the suffix of the published one, and whether it may replace one that exists.

    Raises
    ------
    ValueError
        The ID is unknown, the record is damaged, or the data are others.
    NotRepeated
        The file would differ from the published one; nothing is written.
    """
    entry = store.read(one)
    check_suffix(entry, output)
    check_input(entry, data)
    source = read_input(entry, data)
    check_input(entry, data, source)
    original, plan = read_original(entry, source), ReleasePlan(**entry.plan_options())
    generator, secret, _ = plan.random_sources(entry.entropy_bytes, entry.draws)
    published = plan.publish(plan.mask(original, generator), original, secret)
    file = ReleaseFile(
        output,
        source=source if entry.input["sha256"] is not None else None,
        columns=entry.variables,
        whole=entry.variables if entry.decimals == 0 else (),
        dialect=entry.read_dialect(),
        overwrite=overwrite,
    )
    with file.draft(published) as draft:
        if digest_of_file(draft) != entry.output["sha256"]:
            why = "no difference of versions or CPU is known"
            if changed := differences(entry):
                why = f"what differs: {listed(changed)}"
            raise NotRepeated(
                f"the file made again differs from release {entry.id}, so nothing is written; {why}; "
                "use the versions of the record, or its copy of the published file"
            )
    return entry


def read_input(entry: Entry, data: Path) -> Source:
    """Return the table of a file, or of all Parquet files in a folder, read as a release read it."""
    if not data.is_dir():
        return files.read(data, entry.read_dialect())
    from sdckit.engines.files import read_folder  # noqa: PLC0415 - only for folders

    return read_folder(data, entry.read_dialect())


def read_original(entry: Entry, source: Source) -> Original:
    """Return the original of a release with the roles that it had."""
    return Original.of(source.frame, **entry.prepare_options(), labelled=source.labelled, warn=False)
