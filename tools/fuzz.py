"""Fuzz the command line: damaged files, odd options, signals at any moment; each failure with its seed.

    python tools/fuzz.py --seconds 60 --seed 1              as many cases as there is time for
    python tools/fuzz.py --inputs 10000 --options 2000      so many of each kind
    python tools/fuzz.py --kills 200                        commands that are killed, and run again
    python tools/fuzz.py --seed 1 --only input:17           one case once more

Every run must end with exit code 0, 1, 2 or 130 and at most one line that says why, and must leave no
traceback, no changed input, no draft, and no output of a run that failed; else this tool ends with 1.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing as mp
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from multiprocessing.connection import Connection

Answer = tuple[str, list[str], object, list[str]]  # name, words, exit code and broken promises of a case
HANGING = 120  # seconds after which a case is taken to hang


def run_cases(seed: int, names: Sequence[str], answers: Connection) -> None:
    """Run cases one by one in this process, which imports the package once; answer what each broke."""
    import fuzz_cases  # noqa: PLC0415 - for the processes that run cases
    from fuzz_judge import broken_promises  # noqa: PLC0415

    make = {"input": fuzz_cases.input_case, "odd": fuzz_cases.odd_case, "options": fuzz_cases.option_case}
    for name in names:
        kind, number = name.split(":")
        case = make[kind](seed, int(number))
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
    parser.add_argument("--kills", type=int, default=0, help="number of commands that are killed")
    parser.add_argument("--signal", default="KILL", help="KILL, INT or TERM")
    parser.add_argument("--only", metavar="CASE", help="repeat one case, such as input:17")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run the cases that the options ask for; return 1 if one of them failed."""
    given = parsed(words)
    if given.kills:
        import fuzz_kill  # noqa: PLC0415 - it imports the whole package

        return int(fuzz_kill.run(given.seed, given.kills, given.signal) > 0)
    names = [given.only] if given.only else list(names_in_turn(given.inputs, given.options))
    if not names:
        if given.seconds == float("inf"):
            sys.exit("nothing to do; give --seconds, --inputs, --options, --kills or --only")
        names = list(itertools.islice(names_in_turn(50_000, 10_000), 60_000))
    return int(report(given.seed, answered(given.seed, names), given.seconds) > 0)


if __name__ == "__main__":
    sys.exit(main())
