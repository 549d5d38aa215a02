"""Runs the examples of a page of the documentation; what it shows is compared with what was printed."""

import doctest
import json
import re
import shlex
from contextlib import chdir

from command import run_here

BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)  # kind, file, text
EXAMPLE = "20260131-0123abcd"  # stands on a page for the ID of its first release
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
SHOWN_ONLY = {"text", "r", "json", "yaml", "bash"}  # what other programs, or whole outputs, look like


def run_page(page, folder):
    """Run each example of a page in the folder; return how many there were.

    `console` holds commands after `$ ` and lines that they print, `python` statements or a doctest, all in
    one namespace. A block with the name of a file writes that file; a `toml` block without a name shows lines
    of `job.toml`.
    """
    names = {}
    ran = 0
    for place, (kind, file, text) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
        ran += kind not in SHOWN_ONLY
        if file:
            (folder / file).write_text(text, encoding="utf-8")
        elif kind == "console":
            run_transcript(text, folder)
        elif kind == "python":
            run_python(text, names, folder, f"{page.name}, block {place}")
        elif kind == "toml":
            assert_printed(text.splitlines(), (folder / "job.toml").read_text(encoding="utf-8"))
        else:
            assert kind in SHOWN_ONLY, f"{page.name}: {kind} is no kind of example"
    return ran


def run_transcript(text, folder):
    """Run the commands of a transcript; standard error comes after standard output."""
    for part in re.split(r"^\$ ", text.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
        first, *shown = part.splitlines()
        if EXAMPLE in part:
            kept = json.loads(run_here(folder, "releases", "--json").stdout)
            release = next(row["id"] for row in kept if (folder / row["file"]).exists())
            first, *shown = (line.replace(EXAMPLE, release) for line in (first, *shown))
        program, *words = shlex.split(first)
        assert program == "sdckit", first
        done = run_here(folder, *words)
        failing = any(line.startswith(("error:", "not met:")) for line in shown)
        assert (done.returncode != 0) == failing, first + "\n" + done.stdout + done.stderr
        assert_printed(shown, done.stdout + done.stderr)


def run_python(text, names, folder, name):
    """Run statements, or examples with their results, in a namespace that blocks of a page share."""
    with chdir(folder):
        if ">>>" not in text:
            exec(compile(text, name, "exec"), names)  # noqa: S102 - our own page
            return
        test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
        test.globs = names  # else a copy
        failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(test, clear_globs=False)
        assert failed == 0, name


def pattern(line):
    """A line of a transcript as a regular expression: `...` is any text, blanks are as many as there are."""
    words = " ".join(line.split())
    return re.compile(".*".join(map(re.escape, words.split("..."))).replace(r"\ .*", ".*"))


def assert_printed(shown, printed):
    """Each line that is shown comes in the printed ones, in order; a line of dots stands for any number."""
    left = [" ".join(line.split()) for line in printed.splitlines()]
    for line in shown:
        if line != "...":
            place = next((i for i, one in enumerate(left) if pattern(line).fullmatch(one)), None)
            assert place is not None, f"not printed: {line}\n" + "\n".join(left)
            left = left[place + 1 :]
