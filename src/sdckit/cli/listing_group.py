"""The commands that list what there is; their imports wait until they run, so that help is fast."""

from __future__ import annotations

import click

from sdckit.cli import examples, terminal
from sdckit.cli.options import listing
from sdckit.cli.parsing import SingleValueCommand


@click.command(cls=SingleValueCommand, epilog=examples.METRICS)
@listing
def metrics(**given: bool) -> None:
    """List the metrics: what each measures, its range and options."""
    from sdckit.cli import registered

    terminal.show_rows(registered.metric_rows(), given)


@click.command(cls=SingleValueCommand, epilog=examples.METHODS)
@listing
def methods(**given: bool) -> None:
    """List the masking methods and their parameters."""
    from sdckit.cli import registered

    terminal.show_rows(registered.method_rows(), given)


@click.command(cls=SingleValueCommand, epilog=examples.SCHEMA)
@click.argument("name", metavar="NAME")
def schema(name: str) -> None:
    """Print the JSON schema of a job file or of what --json prints.

    NAME is job, or a command: describe, mask, evaluate or recommend.
    """
    from sdckit.cli import json_schemas

    terminal.print_line(json_schemas.read(name))
