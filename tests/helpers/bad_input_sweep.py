"""What users get wrong with sweeps: the files, the command, and what its one line must say."""

import hashlib
import json

GOOD = "--grid mdav.k=2:3"


def sweep(more=GOOD, *, data="data.csv", output="out"):
    settled = [] if "--key id" in more else ["--drop", "id"]
    return [*f"sweep {data} -o {output} --columns income,age".split(), *settled, *more.split()]


def grid(word):
    return [*sweep(""), "--grid", word]


def plan(content, more=""):
    return {"plan.toml": content}, sweep(f"--plan plan.toml {more}")


def checksum(content):
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def earlier(**changes):
    """The folder of an earlier sweep, with its finished work."""
    identity = {"data": "0" * 64, "metrics": ["brmae"], "ties": "average"} | changes.pop("identity", {})
    content = {"identity": identity, "entropy": "5"} | changes
    kept = json.dumps(content | {"checksum": checksum(content)})
    return {"out/private/sweep.json": kept, "out/private/cells.bin": "precious", "out/sweep.csv": "precious"}


NO_RANGE = r"the grid {} is no range; write FROM:TO or FROM:TO:STEP, such as 2:30"
WHOLE = "is '{}'; give a whole number of at least 1"

SWEEP_CASES = {
    # grids
    "grid of an unknown method": (grid("mdaw.k=3"), r"unknown method 'mdaw' \(did you mean 'mdav'\?\)"),
    "grid of no method": (grid(""), "unknown method ''; choose from: mdav"),
    "grid of an unknown parameter": (
        grid("mdav.percent=3"),
        "method 'mdav' has no parameter 'percent'; choose from: k",
    ),
    "range backwards": (grid("mdav.k=5:2"), NO_RANGE.format("k=5:2")),
    "range without a step forward": (grid("rank_swap.p=0:1:0"), NO_RANGE.format("p=0:1:0")),
    "range narrower than its step": (
        grid("rank_swap.p=0.001:0.3"),
        "the grid p=0.001:0.3 is narrower than its step of 1; add a step, as in 0.001:0.3:0.01",
    ),
    "range without an end": (grid("mdav.k=2:inf"), NO_RANGE.format("k=2:inf")),
    "range of no numbers": (grid("mdav.k=nan:5"), NO_RANGE.format("k=nan:5")),
    "grid of commas": (grid("mdav.k=,"), "the grid of k is empty; give a value, a list or a range"),
    "grid without values": (grid("mdav.k="), "grid 'mdav.k=' is unclear; write METHOD.PARAMETER=VALUES"),
    "grid without a parameter": (grid("mdav=5"), "grid 'mdav=5' is unclear; write METHOD.PARAMETER=V"),
    "grid out of range": (grid("rank_swap.p=0.5,1.5"), "p is 1.5, out of range; give .* from 0 to 1"),
    "grid of halves": (grid("mdav.k=2:3:0.5"), "k is '2.5'; give a whole number of at least 1"),
    "grid of unknown choices": (grid("rank_swap.start=middle"), "unknown start 'middle'; choose from: l"),
    "endless grid": (grid("noise.percent=0:100:0.00001"), "is no range|points; give at most 1000000"),
    "same grid twice": (
        sweep("--grid mdav.k=2 --grid mdav.k=3"),
        "the grid gives 'mdav.k' twice; join its values with a comma",
    ),
    # plans
    "plan and grid": (
        *plan("[mdav]\nk = 3\n", GOOD),
        "--plan excludes --grid and --method; put all grids into one of them",
    ),
    "no such plan": (sweep("--plan plan.tml"), "no file 'plan.tml'; check its name and folder"),
    "folder as plan": ({"in/x": ""}, sweep("--plan in"), "cannot read 'in' as text: .*; give a TOML file"),
    "broken plan": (*plan("[mdav\nk = 3\n"), "'plan.toml' is no TOML file: .*line 1.*; see the reference"),
    "undecodable plan": (*plan(b"\xff\xfe[mdav]"), "cannot read 'plan.toml' as text: .*; give a TOML file"),
    "empty plan": (*plan(""), "the plan is empty; name at least one method, such as mdav"),
    "unknown entry": (
        *plan("replication = 5\n[mdav]\nk = 3\n"),
        r"unknown entry of 'plan.toml' 'replication' \(did you mean 'replications'\?\); choose from: mdav",
    ),
    "plan with an unknown parameter": (
        *plan("[mdav]\nkk = 3\n"),
        "'mdav' has no parameter 'kk'; choose from",
    ),
    "plan without a grid": (*plan("mdav = 3\n"), "the grid of mdav is 3; give parameters, such as"),
    "plan without replications": (
        *plan("replications = 0\n[mdav]\nk = 2\n"),
        "replications is 0; give a whole numb",
    ),
    "plan with half a replication": (
        *plan("replications = 1.5\n[mdav]\nk = 2\n"),
        "replications is 1.5; give a who",
    ),
    "plan with a number of metrics": (*plan("metrics = 5\n[mdav]\n"), "metrics.* 5; "),
    # numbers, names
    "no replications": (sweep(f"{GOOD} --replications 0"), f"replications {WHOLE.format(0)}"),
    "no workers": (sweep(f"{GOOD} --workers 0"), f"workers {WHOLE.format(0)}"),
    "half a worker": (sweep(f"{GOOD} --workers 0.5"), f"workers {WHOLE.format(0.5)}"),
    "unknown format": (sweep(f"{GOOD} --format xlsx"), "unknown format 'xlsx'; choose from: parquet, csv"),
    "unknown draws": (sweep(f"{GOOD} --draws own"), "unknown rule for draws 'own'; choose from: common, f"),
    # metrics
    "unknown value of an option": (
        sweep(f"{GOOD} --metrics il1:zeros=never"),
        "unknown zeros 'never'; choose from: keep, drop, error",
    ),
    "unknown option of a metric": (
        sweep(f"{GOOD} --metrics il1:foo=1"),
        "unknown option of il1 'foo'; choose from: zeros, missing",
    ),
    "option without a value": (sweep(f"{GOOD} --metrics brmae:ties"), "unknown ties ''; choose from: aver"),
    "penalty fixed without an end": (
        sweep(f"{GOOD} --metrics mae:missing=penalise"),
        "mae.* has no largest value, so missing='penalise' is undefined; use 'pairwise'",
    ),
    "weights with a fixed tie rule": (
        sweep(f"{GOOD} --weights weight --metrics brmae:ties=first"),
        "weights go with ties='average' only, not 'first'; drop one of the two",
    ),
    # data
    "k larger than a stratum": (
        sweep("--grid individual_ranking.k=2:6 --by region"),
        "stratum 'south' has 5 records, fewer than k = 6 of individual_ranking; lower k or merge strata$",
    ),
    # folders
    "sweep into a file": ({"out": "precious"}, sweep(), "'out' is a file; choose another folder"),
    "sweep below a file": (sweep(output="data.csv/x"), "could not write 'data.csv/x.*: not a directory; ch"),
    "sweep among other files": (
        {"out/thesis.tex": "precious"},
        sweep(),
        "folder 'out' holds other files; choose another one",
    ),
    "sweep among other private files": (
        {"out/private/diary.txt": "precious"},
        sweep(),
        "folder 'out/private' holds other files; choose another one",
    ),
    "sweep without a folder": (["sweep", "data.csv"], "missing option '-o' / '--output'; see sdckit sweep"),
    "folder of another sweep": (
        earlier(),
        sweep(f"{GOOD} --seed 6"),
        r"folder 'out/private' holds another sweep \(different: data, metrics, .*seed\); choose another",
    ),
    "damaged folder": (
        earlier() | {"out/private/sweep.json": '{"identity": {'},
        sweep(),
        "'out/private/sweep.json' is damaged; choose another folder",
    ),
    # finished work stays until the new one can begin
    "overwriting for data that are not there": (
        earlier(),
        sweep(f"{GOOD} --overwrite", data="dta.csv"),
        "no file 'dta.csv'; check",
    ),
    "overwriting for too large groups": (
        earlier(),
        sweep("--grid mdav.k=13 --overwrite"),
        "the file has 12 records, fewer than k = 13 of mdav; lower k$",
    ),
}
