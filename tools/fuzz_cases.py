"""Cases of the fuzzer: files with damage and command lines with odd options, each made from a seed."""

from __future__ import annotations

import random
import struct
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
import polars as pl

from fuzz_pools import CELLS, JOB, NUMBERS, OUTPUTS, PLAN, POOLS, TOKENS, WORDS
from sdckit.cli import sdckit
from sdckit.io import crosswalk, files
from sdckit.masking import METHODS

ROWS = 24
SUFFIXES = (".csv", ".tsv", ".parquet", ".dta", ".sav", ".zsav", ".xpt")
COMMANDS = {"describe": ["data.csv"], "mask": ["data.csv"], "evaluate": ["data.csv", "masked.csv"]}
COMMANDS |= {"sweep": ["data.csv"], "recommend": ["data.csv"], "metrics": [], "methods": []}
COMMANDS |= {"run": ["job.toml"], "check": ["masked.csv"], "releases": [], "schema": ["job"]}
COMMANDS |= {"replay": ["20260131-0123abcd", "data.csv"]}
# A cluster; help that ends at once; a folder outside the case's own; a program.
LEFT_OUT = {"master", "help", "private", "made_by_command"}
SMALL = {"sweep": ["--grid", "mdav.k=3"], "recommend": ["--method", "mdav", "--replications", "1"]}


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
