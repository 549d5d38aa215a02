"""The command that starts the page in the browser; its imports wait until it runs, so that help is fast."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from sdckit.cli import examples
from sdckit.cli.parsing import SingleValueCommand

PACKAGES = ("starlette", "uvicorn")


@click.command(cls=SingleValueCommand, epilog=examples.APP)
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option("--port", metavar="N", type=int, help="Port of 127.0.0.1.  [default: a random free one]")
@click.option("--no-browser", is_flag=True, help="Only print the address; open no browser.")
@click.option("--no-preview", is_flag=True, help="Show no rows of the file.")
@click.option(
    "--idle",
    metavar="MINUTES",
    type=float,
    default=60,
    show_default=True,
    help="End after so long without a request and without running work.",
)
@click.option(
    "--finish", is_flag=True, help="At Ctrl-C, finish a running search or release instead of stopping it."
)
def app(data: Path | None, **given: Any) -> None:
    """Do the whole job in the browser, from a file to a release.

    Prints an address that works once, and opens it. The page is for this user on this machine alone, and sees
    files of the working directory and of folders in it, or of the folder of DATA if that lies elsewhere.
    Ctrl-C ends it; finished runs of a search are kept, and the same command goes on with them.
    """
    require_packages()
    from sdckit.app.launch import run_app

    run_app(
        data,
        port=given["port"],
        browser=not given["no_browser"],
        preview=not given["no_preview"],
        idle=given["idle"],
        finish=given["finish"],
    )


def require_packages() -> None:
    """Raise ValueError with the install command if a package that the page needs is missing."""
    try:
        for name in PACKAGES:
            import_module(name)
    except ImportError as error:
        raise ValueError('the page needs starlette and uvicorn; pip install "sdckit[app]"') from error
