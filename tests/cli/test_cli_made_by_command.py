"""`evaluate --made-by-command`: a command masks the file again, in a folder that vanishes in any case."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from command import arguments, contents, environment, good, run_here
from sdckit.cli import sdckit as commands
from sdckit.io.atomic import draft_folder
from sdckit.request import made_by_command
from sdckit.request.options import JOB_OPTIONS

PRINTED = "SECRET-4711"
SCRIPT = """
import csv, json, os, random, stat, sys, time
source, target, seed, way, *more = sys.argv[1:]
print("SECRET-4711"); print("SECRET-4711", file=sys.stderr)
if more:
    facts = {"seed": seed, "environment": dict(os.environ), "folder": os.getcwd()}
    facts["modes"] = [stat.S_IMODE(os.stat(path).st_mode) for path in (".", "..")]
    facts["files"], facts["input"] = os.listdir(), open(source).read()
    with open(more[0], "a") as file:
        print(json.dumps(facts), file=file)
rng = random.Random(0 if way == "fixed" else int(seed))
head, *rows = csv.reader(open(source))
if way == "fails":
    sys.exit(3)
if way == "hangs":
    time.sleep(600)
if way == "rows":
    rows = rows[:-1]
masked = [[f"{float(cell) * (1 + 0.3 * rng.gauss(0, 1)):.2f}" for cell in row] for row in rows]
if way == "columns":
    head, masked = head[:1], [row[:1] for row in masked]
if way == "more":
    head, masked = [*head, "new"], [[*row, "1"] for row in masked]
if way == "text":
    masked[0][0] = "SECRET-4711"
if way != "nothing":
    with open(target, "w", newline="") as file:
        file.write("a,b\\n1\\n2,3,4\\n") if way == "damaged" else csv.writer(file).writerows([head, *masked])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with original, masked file and script; what is temporary goes to a folder of its own."""
    place, temporary = tmp_path / "here", tmp_path / "temporary"
    place.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    (place / "mask.py").write_text(SCRIPT)
    values = np.exp(8 + np.random.default_rng(1).normal(size=(60, 2))).round(2)
    pl.DataFrame(values, schema=["a", "b"]).write_csv(place / "data.csv")
    subprocess.run([sys.executable, "mask.py", "data.csv", "masked.csv", "77", ""], cwd=place, check=True)
    return place


def command(way="usual", *more):
    words = [sys.executable, "{here}/mask.py", "{input}", "{output}", "{seed}", way, *more]
    return ["--made-by-command", " ".join(words)]


def words(*more):
    return ["evaluate", "data.csv", "masked.csv", "--metrics", "linkage", *more]


def left(folder):
    return [path.name for path in folder.with_name("temporary").iterdir()]


def facts(folder):
    return [json.loads(line) for line in (folder / "facts.txt").read_text().splitlines()]


# --- what it does ---


@pytest.mark.long
def test_the_figure_is_that_of_the_same_masking_in_python(folder):
    found = json.loads(good(folder, *words("--json", *command())).stdout)

    def own(_table, rng):
        """Run the script as the command does."""
        seed = int(rng.integers(made_by_command.LARGEST_SEED))
        named = [sys.executable, "mask.py", "data.csv", "again.csv", str(seed), ""]
        subprocess.run(named, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return pl.read_csv(folder / "again.csv")

    tables = [pl.read_csv(folder / name) for name in ("data.csv", "masked.csv")]
    assert found["table"][0]["value"] == sdc.evaluate(*tables, metrics="linkage", made_by=own)["linkage"]
    assert not any("nobody said" in note for note in found["notes"])
    assert left(folder) == []


def test_it_runs_alone_in_a_private_folder_without_secrets(folder):
    before = contents(folder)
    place = str(folder / "facts.txt")
    good(folder, *words(*command("usual", place)), MY_TOKEN="4711-0815")  # noqa: S106 - of nothing
    seen = facts(folder)
    original = (folder / "data.csv").read_text()
    for one in seen:
        assert one["modes"] == [0o700, 0o700]
        assert one["files"] == ["input.csv"]
        assert one["input"] == original
        assert "MY_TOKEN" not in one["environment"]
        assert one["environment"]["TMPDIR"] == one["folder"]
        assert Path(one["folder"]).parents[1] == folder.with_name("temporary")
    assert len({one["folder"] for one in seen}) == len(seen)
    assert {**before, "facts.txt": (folder / "facts.txt").read_bytes()} == contents(folder)
    assert left(folder) == []


@pytest.mark.long
def test_its_numbers_are_the_intruders_own_and_the_same_at_every_run(folder):
    place = folder / "facts.txt"
    numbers = []
    for seed in ("1", "2"):
        good(folder, *words("--seed", seed, *command("usual", str(place))))
        numbers.append([one["seed"] for one in facts(folder)])
        place.unlink()
    assert numbers[0] == numbers[1]
    assert len(set(numbers[0][2:])) == len(numbers[0]) - 2 >= 40


def test_parquet_comes_as_parquet_and_other_formats_as_csv(folder):
    frame = pl.read_csv(folder / "data.csv")
    frame.write_parquet(folder / "data.parquet")
    frame.write_ipc(folder / "data.arrow")
    for name, suffix in {"data.parquet": ".parquet", "data.arrow": ".csv"}.items():
        done = good(
            folder,
            *("evaluate", name, "data.csv", "--metrics", "linkage"),
            *("--made-by-command", f"sh -c 'test -s $PWD/input{suffix} && cp {{input}} {{output}}'"),
        )
        assert "nobody said" not in done.stdout  # it draws nothing and makes this file


def test_a_command_that_draws_nothing(folder):
    made = folder / "masked.csv"
    named = [sys.executable, "mask.py", "data.csv", made, "1", "fixed"]
    other = run_here(folder, *words(*command("fixed")))
    assert other.returncode == 0
    assert "draws nothing and does not make this file: 120 of 120 cells differ" in other.stderr
    subprocess.run(named, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    same = good(folder, *words("--json", *command("fixed")))
    assert json.loads(same.stdout)["table"][0]["value"] == 1
    assert same.stderr == ""


@pytest.mark.long
def test_several_files_and_releases_together(folder):
    named = [sys.executable, "mask.py", "data.csv", "other.csv", "5", ""]
    subprocess.run(named, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    base = ["evaluate", "data.csv", "masked.csv", "other.csv", "--metrics", "linkage", "--json"]
    alone = json.loads(good(folder, *base, *command()).stdout)["files"]
    both = json.loads(good(folder, *base, "--together", *command()).stdout)["table"][0]["value"]
    assert both > max(one["table"][0]["value"] for one in alone.values())
    assert left(folder) == []


# --- what goes wrong ---

WRONG = {
    "fails": "ended with exit code 3; try it by hand; it starts in an empty folder",
    "hangs": "did not end within 2 seconds; raise --made-by-seconds or mend it",
    "rows": "returned 59 records of 60; return all records",
    "columns": "returned no column 'b'; return every column",
    "more": "returned a column that neither file has: 'new'",
    "text": "returned text in column 'a'; return numbers",
    "nothing": "ended without writing {output}; let it write the masked file there",
    "damaged": "wrote a file that cannot be read as CSV; let it write {output} in the form of {input}",
}


@pytest.mark.parametrize("way", WRONG)
def test_what_a_command_does_wrong_is_one_line_and_nothing_is_written(folder, way):
    before = contents(folder)
    more = ["--made-by-seconds", "2"] if way == "hangs" else []
    begun = time.monotonic()
    done = run_here(folder, *words("--report", "r.html", "--records", "r.csv", *command(way), *more))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: the command of --made-by-command {WRONG[way]}")
    assert done.stderr.count("\n") == 1
    assert PRINTED not in done.stderr
    assert contents(folder) == before
    assert left(folder) == []
    assert time.monotonic() - begun < 300


@pytest.mark.long
def test_what_it_prints_is_discarded(folder):
    done = good(folder, *words("--report", "r.html", *command()))
    assert PRINTED not in done.stdout + done.stderr + (folder / "r.html").read_text()


REFUSED = {
    "nonsense {input} {output}": "was not found: 'nonsense'; give the name of a program",
    "{here}/data.csv {input} {output}": "cannot be started: '{here}/data.csv'; give the name",
    "cp {input}": "--made-by-command has no {output}; write it as in",
    "": "--made-by-command has no {input} and no {output}; write it as in",
    "cp '{input} {output}": "--made-by-command has an open quotation mark or backslash; close it",
}


@pytest.mark.parametrize("text", REFUSED)
def test_commands_that_cannot_work(folder, text):
    done = run_here(folder, *words("--made-by-command", text))
    assert (done.returncode, done.stdout) == (2, "")
    assert REFUSED[text] in done.stderr
    assert left(folder) == []


def test_no_shell_reads_the_command(folder):
    done = run_here(folder, *words("--made-by-command", "cp {input} {output} ; touch {here}/made"))
    assert done.returncode == 2
    assert not (folder / "made").exists()


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            ["--made-by", "noise"],
            "--made-by-command and --made-by exclude each other, as both say how it was",
        ),
        (["--made-by", "noise", "--set", "percent=3"], "and --made-by exclude each other"),
        (["--unpaired"], "--made-by-command and --unpaired exclude each other"),
        (["--save-job", "job.toml"], "and --save-job exclude each other, as no job file starts a program"),
        (["--made-by-seconds", "0"], "--made-by-seconds is '0'; give a number above 0, such as 60"),
        (["--made-by-seconds", "soon"], "--made-by-seconds is 'soon'; give a number above 0"),
        (["--engine", "local"], "--made-by-command needs all records in memory and the engine is local"),
    ],
)
def test_options_that_do_not_fit(folder, more, text):
    if "--engine" in more:
        for name in ("data", "masked"):
            pl.read_csv(folder / f"{name}.csv").write_parquet(folder / f"{name}.parquet")
    files = [word.replace(".csv", ".parquet") if "--engine" in more else word for word in words()]
    done = run_here(
        folder, *files, *(["--metrics", "brmae"] if "--engine" in more else []), *command(), *more
    )
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "job.toml").exists()


def test_seconds_need_a_command(folder):
    done = run_here(folder, *words("--made-by-seconds", "5"))
    assert done.returncode == 2
    assert "--made-by-seconds needs a command; give it with --made-by-command" in done.stderr


# --- only there ---


def test_no_other_command_no_job_and_no_page_starts_a_program(folder):
    having = [
        name
        for name, one in commands.commands.items()
        if any(p.name == "made_by_command" for p in one.params)
    ]
    assert having == ["evaluate"]
    assert not any("command" in field.key or "command" in field.name for field in JOB_OPTIONS)
    for section in ("masking", "private", "measures"):
        text = f'command = "evaluate"\n[input]\ndata = "data.csv"\nmasked = ["masked.csv"]\n[{section}]\n'
        (folder / "job.toml").write_text(f'{text}made_by_command = "touch made {{input}} {{output}}"\n')
        done = run_here(folder, "run", "job.toml")
        assert done.returncode == 2
        assert f"unknown key [{section}] made_by_command" in done.stderr
    assert not (folder / "made").exists()
    page = Path(sdc.__file__).with_name("app")
    files = [path for path in page.rglob("*") if path.suffix in {".py", ".html", ".js"}]
    assert len(files) > 30
    assert not any(
        "made_by_command" in path.read_text() or "made-by-command" in path.read_text() for path in files
    )


@pytest.mark.parametrize("method", ['made_by = "x\\" --made-by-command=\\"touch made {input} {output}"'])
def test_a_job_cannot_smuggle_the_option_in(folder, method):
    text = 'command = "evaluate"\n[input]\ndata = "data.csv"\n'
    text += 'masked = ["masked.csv", "--made-by-command=true"]\n'
    (folder / "job.toml").write_text(f"{text}[masking]\n{method}\n")
    assert run_here(folder, "run", "job.toml").returncode == 2
    assert not (folder / "made").exists()


# --- stopped ---


def started(folder, pid_file):
    """A command that hangs, in its own process; return it when the command has started."""
    shell = f"sh -c 'sleep 600 & echo $! > {pid_file}; wait; : {{input}} {{output}}'"
    named = arguments(words("--made-by-command", shell))
    process = subprocess.Popen(
        named, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    until(lambda: pid_file.exists() and pid_file.read_text().strip(), process)
    assert len(left(folder)) == 1
    place = next(folder.with_name("temporary").iterdir())
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    return process, int(pid_file.read_text())


def until(holds, process=None, seconds=300):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        assert process is None or process.poll() is None, process.stderr.read()
        time.sleep(0.05)


def runs(pid):
    """Return True while a process has not ended, whether or not somebody has asked how."""
    try:
        os.kill(pid, 0)
        facts_of_process = Path(f"/proc/{pid}/stat")
        return (
            not facts_of_process.exists() or facts_of_process.read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda one: one.name)
def test_a_stop_ends_the_command_and_removes_its_folder(folder, number):
    process, sleeping = started(folder, folder / "pid")
    os.kill(process.pid, number)
    process.communicate(timeout=300)
    until(lambda: not left(folder) and not runs(sleeping))


@pytest.mark.long
def test_what_a_killed_guard_left_is_removed_at_the_next_start(folder):
    home = folder.with_name("temporary")
    with draft_folder(home) as place:
        name = place.name
    (home / name).mkdir()  # as if nobody had removed it
    (home / name / "input.csv").write_text("a,b\n1,2\n")
    good(folder, *words(*command()))
    assert left(folder) == []
