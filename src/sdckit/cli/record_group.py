"""The commands on the private record of releases; their imports wait until they run, so that help is fast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sdckit.cli import examples
from sdckit.cli.options import listing, private_option
from sdckit.cli.parsing import SingleValueCommand


@click.command(cls=SingleValueCommand, epilog=examples.REPLAY)
@click.argument("release", metavar="ID")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="File to write.")
@private_option
@click.option("--overwrite", is_flag=True, help="Replace an output file that exists.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing.")
def replay(release: str, data: Path, output: Path, **given: Any) -> None:
    """Make the file of a release again, byte for byte.

    ID is that of the private record, and DATA the original file, unchanged. If the file made now differs
    from the published one, nothing is written and the exit code is 1.
    """
    from sdckit.cli import record_commands

    record_commands.run_replay(release, data, output, given)


@click.command(cls=SingleValueCommand, epilog=examples.RELEASES)
@private_option
@listing
def releases(**given: Any) -> None:
    """List the releases of the private record."""
    from sdckit.cli import record_commands

    record_commands.run_releases(given)


@click.command(cls=SingleValueCommand, epilog=examples.CHECK)
@click.argument("masked", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path), required=False)
@private_option
@listing
def check(masked: Path, data: Path | None, **given: Any) -> None:
    """Check a published file against the private record.

    With DATA, the original file, unchanged, its risks are measured again with the attacks of today, and what
    changed is printed. Exit code 1 means that it is none of the releases, byte for byte, or that one of its
    limits is not met.
    """
    from sdckit.cli import record_commands

    record_commands.run_check(masked, data, given)
