"""Parse command lines: repeated options, lists of names, error texts."""

from __future__ import annotations

import csv
import re
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

WORD = re.compile(r"--?[\w-]+ (?:'[^']*'|[^\s-]\S*)|(?:'[^']*'|\S)+")  # an option goes with its value
GONE = {
    "--log": "no log is kept; write `2> FILE` after the command to keep its warnings and errors",
    "--ranks": "write --variables --metrics rank_mae,rank_mse,brmae,brmse, and --ties for another rule",
}
EXPECTED = (click.ClickException, MemoryError, ValueError, TypeError, OSError)  # errors that get one line


class WithExamples(click.Command):
    """A click command whose examples go on in the next line where the screen is too narrow for one."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples; a line that is too long ends with a backslash, as shells take it."""
        if self.epilog:
            width = formatter.width - 2  # the help is indented
            lines = [broken for line in self.epilog.splitlines() for broken in continued(line, width)]
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text("\n".join(lines))


def continued(line: str, width: int) -> list[str]:
    """Return a command as lines of at most `width` characters each, if its words allow it, for a shell."""
    if len(line) <= width:
        return [line]
    indent = len(line) - len(line.lstrip())
    words = WORD.findall(line)
    lines = [" " * indent + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + len("  \\") > width:
            lines[-1] += " \\"
            lines.append(" " * (indent + 4) + word)
        else:
            lines[-1] += f" {word}"
    return lines


class SingleValueCommand(WithExamples):
    """A click command that refuses two values of a single-valued option; click would take the last."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raise an error for a single-valued option given twice, then parse the arguments."""
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for option in given:
            single = isinstance(option, click.Option) and not (option.multiple or option.is_flag)
            if single and given.count(option) > 1 and not ctx.resilient_parsing:
                raise click.UsageError(f"{option.opts[-1]} is given twice and takes one value", ctx)
        return super().parse_args(ctx, args)


def usage_error_text(error: click.ClickException) -> str:
    """Return the text of a click error as one line in the style of this package."""
    if isinstance(error, click.NoSuchOption) and error.option_name in GONE:
        return f"{error.option_name} is gone: {GONE[error.option_name]}"
    text = re.sub(
        r"\. \(?Did you mean (.*?)\?\)?$", r" (did you mean \1?)", error.format_message().rstrip(".")
    )
    context = getattr(error, "ctx", None)
    return f"{text[:1].lower()}{text[1:]}; see {context.command_path if context else 'sdckit'} --help"


def error_text(error: BaseException) -> str:
    """Return the text that the command line prints for one of the expected errors."""
    if isinstance(error, click.ClickException):
        return usage_error_text(error)
    if isinstance(error, MemoryError):
        return "not enough memory for these data; use fewer columns or a larger machine"
    system = isinstance(error, OSError) and error.errno is not None
    return f"{error}; check disk space and permissions" if system else str(error)


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


def parse_names(texts: Sequence[str], known: Collection[str] = ()) -> list[str] | None:
    """Return the names given by a repeatable option, each once; None where the option is not given.

    A value is a name or a list of names with commas between them. A name with a comma is put in quotation
    marks. Blanks around a name are dropped unless `known` has the name with them.
    """
    found = [name for text in texts for name in _split_names(text, known)]
    return list(dict.fromkeys(found)) if texts else None


def quoted_name(name: str) -> str:
    """Return a name as `parse_names` takes it: quoted if it has a comma, a quotation mark or a line end."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if any(mark in name for mark in ',"\r\n') else name


def parse_name(text: str | None, known: Collection[str] = ()) -> str | None:
    """Return the one name that an option gives, without blanks around it unless `known` has it with them."""
    return text if text is None or text in known else text.strip()


def _split_names(text: str, known: Collection[str]) -> list[str]:
    """Return the names in a text with commas between them; `known` names may have blanks at their ends."""
    try:
        exact, found = (next(csv.reader([text], skipinitialspace=skip), []) for skip in (False, True))
    except csv.Error as error:
        raise ValueError(
            f"{text!r} is no list of names ({error}); put names with line ends or commas in quotation marks"
        ) from error
    if len(exact) != len(found):  # a blank before a quotation mark
        exact = found
    return [
        next((name for name in (raw, cell) if name in known), cell.strip())
        for raw, cell in zip(exact, found, strict=True)
        if cell.strip()
    ]


def parse_settings(words: Sequence[str], option: str = "--set", example: str = "k=5") -> dict[str, str]:
    """Parse words of the form NAME=VALUE, such as the parameters of a method; return a dict of texts."""
    found: dict[str, str] = {}
    for word in words:
        split = word.partition if option == "--set" else word.rpartition  # names of metrics may contain =
        name, _, value = (part.strip() for part in split("="))
        if not name or not value:
            raise ValueError(
                f"{option} {word!r} has no name or no value; write NAME=VALUE, such as {example}"
            )
        if name in found:
            raise ValueError(f"{option} gives {name!r} twice; give it once")
        found[name] = value
    return found
