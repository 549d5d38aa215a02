"""The commands that list what there is; their imports wait until they run, so that help is fast."""

from __future__ import annotations

import click

from sdckit.cli import examples, terminal
from sdckit.cli.options import listing
from sdckit.cli.parsing import SingleValueCommand


@click.command(cls=SingleValueCommand, epilog=examples.METRICS)
@click.argument("name", metavar="[NAME]", required=False)
@listing
def metrics(name: str | None, **given: bool) -> None:
    """List the metrics, or show one: its range, options and source."""
    from sdckit.cli import registered

    registered.show_metrics(name, given)


@click.command(cls=SingleValueCommand, epilog=examples.METHODS)
@click.argument("name", metavar="[NAME]", required=False)
@listing
def methods(name: str | None, **given: bool) -> None:
    """List the masking methods, or show one with its parameters."""
    from sdckit.cli import registered

    registered.show_methods(name, given)


@click.command(cls=SingleValueCommand, epilog=examples.SCHEMA)
@click.argument("name", metavar="NAME")
def schema(name: str) -> None:
    """Print the JSON schema of a job file or of what --json prints.

    NAME is job, or a command: describe, mask, evaluate or recommend.
    """
    from sdckit.cli import json_schemas

    terminal.print_line(json_schemas.read(name))
