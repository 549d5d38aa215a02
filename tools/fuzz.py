"""Fuzz the command line: damaged files and odd options; each failure with its seed.

    python tools/fuzz.py --seconds 60 --seed 1              as many cases as there is time for
    python tools/fuzz.py --inputs 10000 --options 2000      so many of each kind
    python tools/fuzz.py --seed 1 --only input:17           one case once more

Every run must end with exit code 0, 1, 2 or 130 and at most one line that says why, and must leave no
traceback, no changed input, no draft, and no output of a run that failed; else this tool ends with 1.
"""

from __future__ import annotations

import argparse
import io
import itertools
import multiprocessing as mp
import os
import random
import re
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from sdckit.cli import main, sdckit
from sdckit.core.registry import METRICS
from sdckit.io import crosswalk, files
from sdckit.masking import METHODS
from sdckit.progress import show_progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from multiprocessing.connection import Connection

Answer = tuple[str, list[str], object, list[str]]  # name, words, exit code and broken promises of a case
HANGING = 120  # seconds after which a case is taken to hang
CODES = {0, 1, 2, 130}
ENDS = re.compile("^(error|not met|stopped): ", re.MULTILINE)
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
ROWS = 24
SUFFIXES = (".csv", ".tsv", ".parquet", ".dta", ".sav", ".zsav", ".xpt")
COMMANDS = {"describe": ["data.csv"], "mask": ["data.csv"], "evaluate": ["data.csv", "masked.csv"]}
COMMANDS |= {"sweep": ["data.csv"], "recommend": ["data.csv"], "metrics": [], "methods": []}
COMMANDS |= {"run": ["job.toml"], "check": ["masked.csv"], "releases": [], "schema": ["job"]}
COMMANDS |= {"replay": ["20260131-0123abcd", "data.csv"]}
# A cluster; help that ends at once; a folder outside the case's own; a program.
LEFT_OUT = {"master", "help", "private", "made_by_command"}
SMALL = {"sweep": ["--grid", "mdav.k=3"], "recommend": ["--method", "mdav", "--replications", "1"]}
# Words, cells and bytes to draw from: sensible ones, and those that often break a program.
PLAN = b"""replications = 2
draws = "fresh"
metrics = ["brmae", "il1:zeros=drop"]
key = "id"

[mdav]
k = "3:5"

[[rank_swap]]
p = "0.1:0.3:0.1"
start = "highest"
"""
JOB = b"""[input]
data = "data.csv"

[roles]
columns = ["income", "age"]
key = "id"
untouched = ["region"]
unknown = "weight"

[recode]
region = "rare:3"

[rules]
rule = ["income >= 0"]

[search]
max_risk = { linkage = 0.9 }
methods = ["mdav"]
grid = { noise = { percent = "100:200:50" } }
replications = 1
workers = 1

[output]
output = "out.csv"
"""
ODD_TOKENS = "\" , ; = [ ]] { # NA nan inf 1e400 -0 '' \u202e"
TOKENS = [*(token.encode() for token in ODD_TOKENS.split()), b"9" * 30]
TOKENS += [b"\n", b"\r", b"\0", b"\t", b" ", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[2J"]
NUMBERS = [0, 1, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]
ODD_CELLS = "0 -0 1 2 3.5 -7 1e308 -1e308 5e-324 1e-160 9007199254740992 9223372036854775808 1e15 0.1 99"
CELLS = [None, *map(float, ODD_CELLS.split())]
CELLS += [float("inf"), float("nan"), -99.0, 1e16 + 2, 127.0, 255.0, 1e7, 42.42]
NAMES = ["income", "age", "region", "id", "weight", "income,age", "no", "", "region,region", "age,weight"]
WORDS = ["", " ", "x" * 3000, "9" * 30, "a\nb", "\x1b[2J", "\u202e", "noise.percent=10:30:10", *NAMES]
ODD_WORDS = "0 1 -1 0.5 1e400 nan inf 5 all none é \" ' = a=b=c k=3 [1 { - -- linkage=0.5 brmae mdav"
WORDS += ODD_WORDS.split()
ODD_OUTPUTS = "out.csv,out.parquet,out.dta,out.sav,out.xpt,out.xyz,,.,data.csv,no/such.csv"
OUTPUTS = ODD_OUTPUTS.split(",")
OUTPUTS += ["page.html", "folder", "data.csv/x.csv", "a" * 300 + ".csv", "\x1b.csv", "masked.csv"]
LISTS = {  # of words without blanks
    "settings": "k=3 k=0 k=1e9 percent=20 p=0.1 p=nan k=3.5 k bound=exclusive digits=2",
    "grids": "mdav.k=3:5 noise.percent=10:30:10 rank_swap mdav.k=5:3 mdav.k=1:9:0 x.y=1 mdav.k=",
    "limits": "linkage=0.5 linkage=1 linkage=0 linkage_outliers=0.9 brmae=1 linkage=nan interval=1",
    "loss_limits": "suppressed=0.1 brmae=1 brmae=0 linkage=1 brmae=-1",
    "replications": "1 2 0 x 1.5",
    "workers": "1 2 0 -1 x",
    "sample_queries": "10 0 all 1e3 x",
    "engine": "memory local none",
    "memory": "1GB 200MB 0GB x",
    "decimals": "0 2 original none -1 400 x",
    "recode": "age=5 age=10 region=1 income=top age= =5 age=0 age=nan",
    "scenario": "press=age,income:linkage=0.5 a=income a= = a=income:linkage=2 a=no:x=1",
    "seed": "1 0 -1 x 99999999999999999999",
    "encoding": "utf-8 latin-1 utf-16 rot13 nonsense idna hex",
    "form": "csv parquet x",
    "ties": "average expected random first min x",
    "missing": "pairwise penalise x",
    "draws": "common fresh x",
    "na": "-99 NA north nan",
    "window": "0.1 0 2 x",
    "known_share": "0.75 1 0 2 x",
    "made_by_seconds": "60 0 x",
}
POOLS = {name: words.split() for name, words in LISTS.items()}
POOLS |= {
    "delimiter": [",", ";", "\t", "ab", "", "\n", '"', "é"],
    "rules": ["income > 0", "income >= age", "income = ", "1/0", "income = age + weight", "(" * 200],
    "groups": ["g", "income", "", "a,b"],
    "minimise": [*METRICS, "x"],
    "metrics": [*METRICS, "brmae,linkage", "il1:zeros=drop", "brmae:ties=", "x"],
}
POOLS |= {name: [*METHODS, "x", ""] for name in ("method", "methods", "made_by")}
COLUMNS = ("columns", "known", "key", "by", "drop", "confidential", "untouched", "unit", "unknown", "weights")
POOLS |= dict.fromkeys(COLUMNS, NAMES)


@dataclass(frozen=True)
class Case:
    """Files in a folder, by name, and the words of a command that is run in it."""

    name: str  # kind and number, from which the case is made again
    files: dict[str, bytes]
    words: list[str]


def table() -> pl.DataFrame:
    """Return a small survey with a key, codes, weights, missing cells and dates."""
    rng = random.Random(7)
    return pl.DataFrame(
        {
            "id": range(1, ROWS + 1),
            "region": [("north", "süd", "west")[i % 3] for i in range(ROWS)],
            "weight": [round(rng.uniform(1, 9), 1) for _ in range(ROWS)],
            "income": [round(rng.lognormvariate(7, 1), 2) for _ in range(ROWS)],
            "age": [None if i % 9 == 4 else rng.randint(16, 90) for i in range(ROWS)],
        }
    )


@cache
def corpus() -> dict[str, bytes]:
    """Return sound files of every format, by name, as this package writes them."""
    frame = table()
    masked = frame.with_columns(pl.col("income") * 1.1, pl.col("age") + 1)
    with tempfile.TemporaryDirectory() as folder:
        for suffix in SUFFIXES:
            files.write(Path(folder, f"data{suffix}"), frame)
        files.write(Path(folder, "masked.csv"), masked)
        rows = pl.Series(range(ROWS)).to_numpy()
        files.write(Path(folder, "order.csv"), crosswalk.crosswalk_table(rows))
        found = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    return found | {"plan.toml": PLAN, "job.toml": JOB}


def odd_table(rng: random.Random) -> pl.DataFrame:
    """Return a table whose columns are sound and unusual: constant, missing, huge, of any type, few rows."""
    rows = rng.choice((1, 2, 3, 5, 11, ROWS, ROWS))
    kinds: list[Any] = [pl.Int8, pl.Int32, pl.UInt64, pl.Float32, pl.Int128, pl.Decimal(10, 2), pl.Boolean]
    columns = {"id": pl.Series(range(rows))}
    for place in range(rng.randrange(1, 6)):
        few = rng.sample(CELLS, rng.randrange(1, 4))
        cells = pl.Series([rng.choice(few) for _ in range(rows)], dtype=pl.Float64)
        if rng.random() < 0.3:
            cells = cells.cast(rng.choice(kinds), strict=False)
        elif rng.random() < 0.2:
            cells = rng.choice([_as_texts, _as_lists, _as_days])(cells)
        columns[rng.choice(["income", "age", "x y", "ü", "1", "_", "if", "x" * 40]) + str(place)] = cells
    return pl.DataFrame(columns)


def _as_texts(cells: pl.Series) -> pl.Series:
    """Return numbers as texts."""
    return cells.cast(pl.String)


def _as_lists(cells: pl.Series) -> pl.Series:
    """Return numbers as lists of one."""
    return cells.reshape((len(cells), 1)).arr.to_list()


def _as_days(cells: pl.Series) -> pl.Series:
    """Return numbers as days."""
    return cells.cast(pl.Int32, strict=False).cast(pl.Date)


def odd_case(seed: int, number: int) -> Case:
    """Return a case of a sound file with odd cells that is masked and measured."""
    name = f"odd:{number}"
    rng = random.Random(f"{seed} {name}")
    found, frame = dict(corpus()), odd_table(rng)
    victim = f"odd{rng.choice(SUFFIXES)}"
    with tempfile.TemporaryDirectory() as folder, suppress(ValueError):  # where the format cannot hold it
        files.write(Path(folder, victim), frame)
        found[victim] = Path(folder, victim).read_bytes()
    method, seen = (
        rng.choice(list(METHODS)),
        rng.choice(["--no-measure", "-q", "--json", "--release", "--report=a.html"]),
    )
    mask = ["mask", victim, "-o", f"out{rng.choice(SUFFIXES)}", "--method", method, seen]
    evaluate, report = (
        ["evaluate", victim, victim],
        rng.choice(["--variables", "--records=r.csv", "--unpaired"]),
    )
    words = rng.choice([mask, mask, mask, ["describe", victim], [*evaluate, report]])
    return Case(name, found, [*words, *rng.choice([[], ["--key", "id"]])])


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with one to four changes: bits, bytes, numbers, tokens, stretches lost or doubled."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        place, length = rng.randrange(len(data) + 1), rng.choice((1, 2, 4, 8, 40))
        stretch = data[place : place + length]
        number = rng.choice(NUMBERS)
        new = rng.choice(
            [
                bytes(byte ^ 1 << rng.randrange(8) for byte in stretch),
                rng.randbytes(len(stretch)),
                struct.pack(rng.choice("<>") + "Q", number)[: rng.choice((2, 4, 8))],
                rng.choice(TOKENS),
                b"",
                stretch * 3,
                stretch + rng.choice(TOKENS),
                stretch[::-1],
            ]
        )
        data = data[:place] + new + data[place + length :]
        if rng.random() < 0.05:
            data = data[: rng.randrange(len(data) + 1)]
    return data


def input_case(seed: int, number: int) -> Case:
    """Return a case in which one file is damaged, and a command that reads it."""
    name = f"input:{number}"
    rng = random.Random(f"{seed} {name}")
    found = dict(corpus())
    victim = rng.choice(
        [*(f"data{suffix}" for suffix in SUFFIXES), "masked.csv", "order.csv", "plan.toml", "job.toml"]
    )
    found[victim] = mutated(found[victim], rng)
    output = f"out{rng.choice(SUFFIXES)}"
    method = rng.choice(list(METHODS))
    if victim == "plan.toml":
        words = ["sweep", "data.csv", "-o", "folder", "--plan", victim, "--workers", "1", "-q"]
    elif victim == "job.toml":
        words = ["run", victim, "-q"]
    elif victim == "order.csv":
        words = ["evaluate", "data.csv", "masked.csv", "--crosswalk", victim, "--metrics", "brmae"]
    elif victim == "masked.csv":
        words = ["evaluate", "data.csv", victim, "--key", "id", "--metrics", "brmae"]
    else:
        describe, unmeasured = ["describe", victim], ["--method", method, "--no-measure", "-q"]
        words = rng.choice([describe, ["mask", victim, "-o", output, *unmeasured]])
    return Case(name, found, words)


def option_case(seed: int, number: int) -> Case:
    """Return a case of sound files and a command with options drawn from all that it has."""
    name = f"options:{number}"
    rng = random.Random(f"{seed} {name}")
    command = rng.choice(list(COMMANDS))
    words = [command, *COMMANDS[command], *SMALL.get(command, ())]
    known = sdckit.commands[command].params
    options = [one for one in known if isinstance(one, click.Option) and one.name not in LEFT_OUT]
    chosen = [one for one in options if one.required and rng.random() < 0.95]
    chosen += rng.sample(options, rng.randrange(min(len(options), 5) + 1))
    for option in dict.fromkeys(chosen):
        words += _words_of(option, command, rng)
    if rng.random() < 0.05:
        words.insert(rng.randrange(len(words) + 1), rng.choice(WORDS))
    return Case(name, dict(corpus()), words)


def _words_of(option: click.Option, command: str, rng: random.Random) -> list[str]:
    """Return an option with a value that is more often sensible than not."""
    flag = option.opts[-1]
    if option.is_flag:
        return [flag]
    return [flag, rng.choice(WORDS if rng.random() < 0.06 else _pool(option, command))]


def _pool(option: click.Option, command: str) -> list[str]:
    """Return values of an option, most of which are of the right kind."""
    if option.name == "output":
        return ["folder", "new/folder", *OUTPUTS] if command == "sweep" else ["out.csv"] * 9 + OUTPUTS
    if isinstance(option.type, click.Path):
        return [*OUTPUTS, "page.html", "order.csv", "plan.toml"]
    pools: Any = POOLS.get(str(option.name), WORDS)
    return list(pools)


MAKE = {"input": input_case, "odd": odd_case, "options": option_case}


def broken_promises(case: Case, folder: Path) -> tuple[object, list[str]]:
    """Run a case in an empty folder; return its exit code and a line for each promise that it broke."""
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    with printed_by_libraries() as printed:
        code, output, errors = run(folder, case.words)
    errors += printed.getvalue()
    found = []
    if code not in CODES:
        found.append(f"ended with {code}: {errors.strip()[-3000:]}")
    if "Traceback" in errors or "panicked" in errors:
        found.append(f"printed a traceback: {errors.strip()[-3000:]}")
    if len(ENDS.findall(errors)) != (code != 0):
        found.append(f"ended with {code} and not with one line: {errors.strip()[-500:]}")
    if seen := UNSEEN.findall(output + errors):
        found.append(f"printed {seen[0]!a}")
    return code, found + broken_files(case, folder, code)


def run(folder: Path, words: list[str]) -> tuple[object, str, str]:
    """Run a command in a folder; return its exit code or error, and what it printed."""
    output, errors = io.StringIO(), io.StringIO()
    code: object = None
    with (
        chdir(folder),
        redirect_stdout(output),
        redirect_stderr(errors),
        warnings.catch_warnings(action="always"),
    ):
        try:
            main(words)
        except SystemExit as stop:
            code = stop.code or 0
        except BaseException as error:  # noqa: BLE001 - that it is raised at all is the finding
            code = type(error).__name__
            errors.write(traceback.format_exc())
    show_progress(False)
    return code, output.getvalue(), errors.getvalue()


@contextmanager
def printed_by_libraries() -> Iterator[io.StringIO]:
    """Yield a text that holds, after the `with`, what compiled libraries wrote to standard error."""
    found, kept = io.StringIO(), os.dup(2)
    with tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        os.dup2(file.fileno(), 2)
        try:
            yield found
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            found.write(file.read().decode(errors="replace"))


def broken_files(case: Case, folder: Path, code: object) -> list[str]:
    """Return a line for each input that was changed, draft that was left, and file of a failed run."""
    there = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    allowed = "--overwrite" in case.words  # as an output, the option names it
    changed = [
        name
        for name, data in case.files.items()
        if (name not in there or there[name].read_bytes() != data)
        and not (allowed and name in case.words[2:])
    ]
    drafts = [str(path.relative_to(folder)) for path in folder.rglob(".sdckit-*")]
    left = [name for name in there if name not in case.files and "private/" not in name]
    found = [f"changed the input {name}" for name in changed]
    found += [f"left the draft {name}" for name in drafts]
    return found + [f"ended with {code} and left {name}" for name in left if code == 2]


def run_cases(seed: int, names: Sequence[str], answers: Connection) -> None:
    """Run cases one by one in this process, which imports the package once; answer what each broke."""
    for name in names:
        kind, number = name.split(":")
        case = MAKE[kind](seed, int(number))
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_STATE_HOME"] = folder + "-state"
            answer = broken_promises(case, Path(folder))
        answers.send((name, case.words, *answer))


def answered(seed: int, names: Sequence[str]) -> Iterator[Answer]:
    """Yield what each case broke; a case that ends or blocks its process counts, and the next one goes on."""
    context: Any = mp.get_context("spawn")
    left = list(names)
    while left:
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=run_cases, args=(seed, left, theirs), daemon=True)
        worker.start()
        theirs.close()
        try:
            while left:
                if not ours.poll(HANGING):
                    break
                answer = ours.recv()
                left.pop(0)
                yield answer
            if left:
                yield left.pop(0), [], None, [f"took more than {HANGING} s"]
        except EOFError:
            worker.join()
            yield left.pop(0), [], None, [f"crashed with {worker.exitcode}"]
        finally:
            worker.kill()
            worker.join()


def names_in_turn(inputs: int, options: int) -> Iterator[str]:
    """Yield names of cases: damaged files, every fourth a sound one of odd cells, mixed with options."""
    places = [((i + 0.5) / inputs, f"{'odd' if i % 4 == 3 else 'input'}:{i}") for i in range(inputs)]
    places += [((i + 0.5) / options, f"options:{i}") for i in range(options)]
    return (name for _, name in sorted(places))


def report(seed: int, results: Iterable[Answer], seconds: float) -> int:
    """Print each failure with the command that repeats it, until the time is over; return their number."""
    start, failures, codes = time.monotonic(), 0, Counter[object]()
    for name, words, code, found in results:
        codes[code] += 1
        if found:
            failures += 1
            print(f"{name}: sdckit {' '.join(map(ascii, words))}", *found, sep="\n  ", flush=True)
            print(f"  repeat: python tools/fuzz.py --seed {seed} --only {name}", flush=True)
        if time.monotonic() - start > seconds:
            break
    ends = ", ".join(f"{count} ended with {code}" for code, count in codes.most_common())
    print(f"seed {seed}: {codes.total()} cases, {failures} failures ({ends})", flush=True)
    return failures


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of this tool."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many seconds")
    parser.add_argument("--inputs", type=int, default=0, help="number of damaged files")
    parser.add_argument("--options", type=int, default=0, help="number of command lines")
    parser.add_argument("--only", metavar="CASE", help="repeat one case, such as input:17")
    return parser.parse_args(words)


def fuzz(words: Sequence[str] | None = None) -> int:
    """Run the cases that the options ask for; return 1 if one of them failed."""
    given = parsed(words)
    names = [given.only] if given.only else list(names_in_turn(given.inputs, given.options))
    if not names:
        if given.seconds == float("inf"):
            sys.exit("nothing to do; give --seconds, --inputs, --options or --only")
        names = list(itertools.islice(names_in_turn(50_000, 10_000), 60_000))
    return int(report(given.seed, answered(given.seed, names), given.seconds) > 0)


if __name__ == "__main__":
    sys.exit(fuzz())
