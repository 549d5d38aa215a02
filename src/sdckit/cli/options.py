"""Commands of click: their options from the table of options, their help, and how words are refused."""

from __future__ import annotations

import inspect
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sdckit.request.options import REPEATED, options_of

if TYPE_CHECKING:
    from sdckit.request.options import Option

ORDER = (  # of the sections in the help of a command; options that no job has come last
    *("output", "masking", "search", "private", "rules", "scenario", "roles", "recode"),
    *("measures", "engine", "input", ""),
)


def parameters(command: str) -> list[click.Parameter]:
    """Return the arguments and options of a command by the table, in the order of its help."""
    found = sorted(options_of(command), key=lambda one: (not one.argument, ORDER.index(one.section)))
    return [_parameter(one, command) for one in found]


def _parameter(option: Option, command: str) -> click.Parameter:
    """Return an option of the table as click knows it."""
    kind = click.Path(path_type=Path) if option.kind in {"path", "paths"} else None
    required = command in option.needed
    if option.argument:
        original = "ORIGINAL" if (command, option.name) == ("evaluate", "data") else None
        several = -1 if option.kind == "paths" else 1
        return click.Argument([option.name], type=kind, nargs=several, required=required, metavar=original)
    names, text = [*option.flags[1:], option.flag, option.name], option.help_of(command)
    if option.kind == "flag":
        return click.Option(names, is_flag=True, help=text)
    hidden = command in option.hidden
    return click.Option(
        names,
        type=int if option.kind == "seed" and not hidden else kind,
        multiple=option.kind in REPEATED,
        required=required,
        **({"default": option.default, "show_default": True} if option.default else {}),
        metavar=option.metavar or None,
        help=text,
        hidden=hidden,
    )


class WithExamples(click.Command):
    """A click command whose help ends with the examples of its docstring."""

    def __init__(self, *names: Any, **given: Any) -> None:
        super().__init__(*names, **given)
        about, _, examples = inspect.cleandoc(self.help or "").partition("\n\nExamples\n--------\n")
        self.help, self.epilog = about, f"\b\nExamples:\n{textwrap.indent(examples, '  ')}"


class SingleValueCommand(WithExamples):
    """A click command that refuses two values of an option that takes one, and two forms of output."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse words; raise an error for two values of an option that takes one, or two forms of output."""
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for option in given:
            single = isinstance(option, click.Option) and not (option.multiple or option.is_flag)
            if single and given.count(option) > 1 and not ctx.resilient_parsing:
                raise click.UsageError(f"{option.opts[-1]} is given twice and takes one value", ctx)
        left = super().parse_args(ctx, args)
        if ctx.params.get("as_json") and ctx.params.get("as_csv") and not ctx.resilient_parsing:
            raise ValueError("--json and --csv exclude each other; give one of them")
        return left


class CommandGroup(WithExamples, click.Group):
    """A group of `SingleValueCommand`s; after Ctrl-C it prints click's empty line on terminals only."""

    command_class = SingleValueCommand

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            if sys.stderr.isatty():
                raise
            raise click.Abort from stop
