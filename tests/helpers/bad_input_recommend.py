"""What users get wrong with recommendations, reports and several masked files: the one line each must get."""

from bad_input import MASKED, PEOPLE, text

GRID = "--grid mdav.k=2:4"
NO_LIMIT = "the limit of linkage is '{}'; give a share from 0 to 1, such as 0.05"


def recommend(
    more="", *, limit="linkage=0.9", data="data.csv", output="out.csv", columns="income,age", people=True
):
    """A command that recommends; `people` says that the file has the columns of people that need a role."""
    chosen = ["--columns", columns] if columns else []
    workers = [] if "--workers" in more else ["--workers", "1"]
    settled = [*([] if "--key id" in more else ["--drop", "id"]), "--untouched", "weight"] if people else []
    words = ["recommend", data, "-o", output, *chosen, *settled, *GRID.split(), *workers, *more.split()]
    return [*words, *(["--max-risk", limit] if limit is not None else [])]


def several(more="", *files):
    return ["evaluate", "data.csv", *(files or ("masked.csv", "other.csv")), *more.split()]


OTHER = {"other.csv": text(MASKED)}

RECOMMEND_CASES = {
    # limits
    "no limit": (recommend(limit=None), "missing option '--max-risk'; see sdckit recommend --help"),
    "limit of an unknown risk": (
        recommend(limit="linkag=0.1"),
        r"unknown metric 'linkag' \(did you mean 'linkage'\?\); choose from",
    ),
    "limit of no risk": (recommend(limit="=0.1"), "--max-risk '=0.1' has no name or no value; write"),
    "limit without a value": (
        recommend(limit="linkage="),
        "--max-risk 'linkage=' has no name or no value; write NAME=VALUE, such as linkage=0.1",
    ),
    "limit without a sign": (
        recommend(limit="linkage"),
        "--max-risk 'linkage' has no name or no value; write NAME=VALUE, such as linkage=0.1",
    ),
    "limit above 1": (recommend(limit="linkage=1.1"), NO_LIMIT.format("1.1")),
    "limit below 0": (recommend(limit="linkage=-0.1"), NO_LIMIT.format("-0.1")),
    "limit in percent": (recommend(limit="linkage=10%"), NO_LIMIT.format("10%")),
    "limit with a comma": (recommend(limit="linkage=0,1"), NO_LIMIT.format("0,1")),
    "limit that is no number": (recommend(limit="linkage=nan"), NO_LIMIT.format("nan")),
    "limit twice": (recommend("--max-risk linkage=0.2"), "--max-risk gives 'linkage' twice; give it once"),
    "loss as a limit": (
        recommend(limit="brmae=0.1"),
        "'brmae' is a loss; limit a risk, such as linkage, and minimise the loss or limit it with --max-loss",
    ),
    "unknown option of a risk": (
        recommend(limit="linkage:foo=1=0.1"),
        "unknown option of linkage 'foo'; choose from",
    ),
    "risk to minimise": (
        recommend("--minimise linkage"),
        "'linkage' is a risk; minimise a loss, such as brmae, and limit the risk",
    ),
    # plan and numbers
    "empty range to search": (recommend("--grid noise.percent=5:2"), "the grid percent=5:2 is no range"),
    "seed of a release": (recommend("--seed -3"), "--seed would let an intruder undo the release.*; drop it"),
    "metrics of a release": (recommend("--metrics mae"), "no such option:? '?--metrics.*; see sdckit"),
    # data
    "gaps everywhere": (
        {"data.csv": "income,age\n" + ",\n" * 12},
        recommend(people=False),
        "column 'income' is not numeric but text; convert it or leave it out",
    ),
    # outputs
    "release exists": ({"out.csv": "precious"}, recommend(), "'out.csv' exists already; choose another name"),
    "release is the input": (
        recommend("--overwrite", output="data.csv"),
        "'data.csv' is the input file, which is never changed; choose another output",
    ),
    "release without a folder": (recommend(output="no/out.csv"), "no folder 'no' to write 'out.csv'"),
    "no release": (["recommend", "data.csv"], "missing option '-o' / '--output'; see sdckit recommend"),
    "report exists": (
        {"r.html": "precious"},
        recommend("--report r.html"),
        r"'r.html' exists already; choose another name or overwrite it \(--overwrite\)",
    ),
    "report by another suffix": (
        recommend("--report r.pdf"),
        "cannot write 'r.pdf' by its suffix; use one of: .html, .htm",
    ),
    "report into no folder": (recommend("--report no/r.html"), "no folder 'no' to write 'r.html' into"),
    "report is a folder": ({"r.html/x": ""}, recommend("--report r.html"), "'r.html' is a folder; name a"),
    "report of an evaluation exists": (
        {"r.html": "precious"},
        ["evaluate", "data.csv", "masked.csv", "--report", "r.html"],
        "'r.html' exists already; choose",
    ),
    "report of an evaluation by another suffix": (
        ["evaluate", "data.csv", "masked.csv", "--report", "r.csv"],
        "cannot write 'r.csv' by its suffix; use one of: .html, .htm",
    ),
    "report of a sweep exists": (
        {"r.html": "precious"},
        ["sweep", "data.csv", "-o", "out", *GRID.split(), "--report", "r.html"],
        "'r.html' exists already; choose",
    ),
    # windows
    "window above 1": (
        ["evaluate", "data.csv", "masked.csv", "--window", "5"],
        "window is '5'; give a share from 0 to 1, such as 0.05",
    ),
    # several files
    **{
        f"{option} of several files": (
            OTHER,
            several(f"--{option}{value}"),
            f"--{option} is for one masked file and there are 2; evaluate them one by one",
        )
        for option, value in {"records": " r.csv", "variables": ""}.items()
    },
    "the same file twice": (
        {"sub/x": ""},
        several("", "masked.csv", "sub/../masked.csv"),
        "a masked file is named twice; name each once",
    ),
    "a second file that is not there": (OTHER, several("", "masked.csv", "othr.csv"), "no file 'othr.csv'"),
    "a second file with other records": (
        {"other.csv": text(MASKED.head(9))},
        several(),
        "'other.csv': the masked data have 9 records, the original 12; ",
    ),
    "a second file without a column": (
        {"other.csv": text(MASKED.drop("age"))},
        several("--key id"),
        "'other.csv': the masked data have no column 'age'; they have",
    ),
    "a second file with other keys": (
        {"other.csv": text(MASKED.with_columns(id=PEOPLE["id"].str.replace("p", "q")))},
        several("--key id"),
        "'other.csv': key 'id' does not match: 12 of 12 original records",
    ),
    "a second file of text": (
        {"other.csv": text(MASKED.with_columns(age=MASKED["region"]))},
        several("--key id"),
        "'other.csv': column 'age' is not numeric but text",
    ),
    "map over an input": (
        OTHER,
        several("--report masked.csv --overwrite"),
        "'masked.csv' is the input file, which is never changed",
    ),
}
